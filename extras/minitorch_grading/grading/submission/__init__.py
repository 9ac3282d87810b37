"""One submission: from the files that a student handed in to a result, in a process of its own."""
