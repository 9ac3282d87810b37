"""Rounding errors: how far results differ, and how far rounding alone can move them."""
