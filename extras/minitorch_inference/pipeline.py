"""`FREEZING`: the passes of a graph whose parameters are constants, in the place of `minitorch.passes.DEFAULT`."""

from __future__ import annotations

from minitorch.passes import ALGEBRA, COMMON_SUBEXPRESSIONS, DEAD_CODE, MOVEMENT, REQUANTISATION, Pass

from . import affine
from .affine import AFFINE_FOLDING
from .folding import FOLDING

FREEZING: tuple[Pass, ...] = (
    DEAD_CODE,
    COMMON_SUBEXPRESSIONS,
    MOVEMENT,
    FOLDING,
    ALGEBRA,
    MOVEMENT,
    REQUANTISATION,  # before scales become others
    AFFINE_FOLDING,  # the one pass that rounds otherwise; see its bound
    FOLDING,
    COMMON_SUBEXPRESSIONS,
    DEAD_CODE,
)

__all__ = ["AFFINE_FOLDING", "FOLDING", "FREEZING", "affine"]
