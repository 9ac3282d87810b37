"""Fusion: the values that are stored (roots), the roots that share a kernel, and the reasons against it."""
