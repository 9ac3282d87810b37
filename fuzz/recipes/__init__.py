"""Arguments for the functions whose operands depend on each other: matrix products, windows, indices, shapes.

One row per function, a few lines each: what has to fit is made to fit, everything else is left to the dice.
"""

from . import creation, indices, layers, products, shapes
from .shapes import Index
from .table import RECIPES

__all__ = ["RECIPES", "Index", "creation", "indices", "layers", "products", "shapes"]
