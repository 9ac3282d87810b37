"""The classroom: checks of the exercises, what is handed out, and the commands for both. The engine does without it."""
