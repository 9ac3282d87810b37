"""Exercise 12, inference graphs: folding in numbers and as a pass, data that finds mistakes, a bound, a server."""

from __future__ import annotations

from .bounds import error_bound
from .layers import convincing, fold_layer
from .passes import fold
from .serving import serve

__all__ = ["convincing", "error_bound", "fold", "fold_layer", "serve"]
