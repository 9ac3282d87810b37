"""Modules that stand in for layers: prepared, quantised, for training, recurrent, and operations between layers."""
