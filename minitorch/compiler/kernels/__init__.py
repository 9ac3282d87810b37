"""Kernels: the loop nests of a graph in the order of their execution, and the memory of their values."""
