"""Other libraries beside this engine: programs for all of them, where they run, and what they told once."""
