"""Kernels: the loop nests of a graph in the order in which they run, and the memory of their values."""
