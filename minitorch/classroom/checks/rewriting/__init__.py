"""Exercise 06, rewriting graphs: passes that change a program and not what it computes."""

from __future__ import annotations

from .laws import laws
from .passes import dead_code, fold_constants, merge

__all__ = ["dead_code", "fold_constants", "laws", "merge"]
