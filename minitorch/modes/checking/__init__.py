"""Shadow mode: the function, its trace and the compiled program run side by side, and the faulty part is named."""
