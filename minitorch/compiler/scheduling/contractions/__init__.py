"""Contractions: which nests are matrix products or attention, and the sizes of their tiles."""
