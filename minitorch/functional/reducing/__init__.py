"""Functions of many elements: sums, products of matrices, statistics, extremes, orders."""
