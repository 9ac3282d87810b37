"""Animations: successive pictures of loops, a sweep and a collective operation."""
