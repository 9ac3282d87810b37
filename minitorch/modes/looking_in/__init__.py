"""Inspection of traced programs: stages, ablation, values, debugging, reproducers."""
