"""Drawings as data: what becomes of graphs, kernels and the tape, and what is summarised."""
