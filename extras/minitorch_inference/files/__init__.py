"""Frozen programs in files."""
