"""Exercise 12, inference graphs: folding in numbers and as a pass, data that finds mistakes, a bound, a server."""

from __future__ import annotations

from .layers import convincing, error_bound, fold_layer
from .passes import fold
from .serving import serve

TASKS = (fold_layer, convincing, fold, error_bound, serve)
