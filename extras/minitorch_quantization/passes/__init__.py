"""Passes for values of 8 bits: products of integers, early quantisation, and the order in which images are stored."""
