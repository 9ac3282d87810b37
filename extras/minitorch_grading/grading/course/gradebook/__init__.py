"""nbgrader's gradebook: read, written, and what is wrong with one that cannot be used."""
