"""Shadow mode: the function, its trace and the compiled program beside each other, and the part that is wrong."""
