"""Functions of each element by itself: arithmetic, comparisons, conversions between types."""
