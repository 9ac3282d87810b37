"""Graphs for inference: weights as constants (`freeze`), what can be computed beforehand, and programs in files."""
