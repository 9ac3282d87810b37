"""Decisions of affine folding: what was folded where, and what was not and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from minitorch.dtypes import DType
from minitorch.ir import Node

from .channels import Array
from .maps import stored

FOLDED = "folded"

# Why a scale or a shift stays an operation of its own.
SECOND_READER = "the value before it is read by somebody else, who needs it as it is"
RESULT = "the value before it is a result of the program, which is needed as it is"
DATA = "it depends on data, as the statistics of a batch do, and is not known before a call"
ROWS = "it varies along an axis of the data, and so is no factor of a column of the weights"
SUMMED = "it varies along an axis of the data that is not summed, and so is no factor of a row of the weights"
WINDOWS = "it varies along an axis on which elements are used several times, each with another factor"
PADDING = "zeros are padded behind the shift, and would be shifted too"
CAST = "the value is rounded to another type before it"
ROUNDING = "a constant is added there so that the sum is rounded, which no other order of operations does"
INTEGERS = "the product is one of integers, whose weights have no fractions"
DECODED = "the weights are decoded from a smaller type, and would take more memory"
NOT_FINITE = "the scale, the shift or a weight times the scale is not finite"
VANISHES = "the scale is too small for the weights' type, and would become 0"
MORE = "it would cost more operations than it saves"


@dataclass(frozen=True)
class Decision:
    """What affine folding made of a scale and a shift, or of a pair of products.

    Attributes:
        rule: how the law that applies reads.
        where: the line of the user's program of the contraction, or of the last step.
        reason: `FOLDED`, or why not.
        saved: the operations on elements that a call is spared.
    """

    rule: str
    where: str
    reason: str
    saved: int = 0

    @property
    def is_folded(self) -> bool:
        """Whether the graph has changed."""
        return self.reason == FOLDED

    def __str__(self) -> str:
        saved = f" ({self.saved} operations fewer)" if self.is_folded and self.saved else ""
        where = f"{self.where}: " if self.where else ""
        return f"{where}{self.rule}: {self.reason}{saved}"


@dataclass(frozen=True)
class Match:
    """A place where a rule applies.

    Attributes:
        end: the node that is replaced.
        build: from a function that gives the new node of an old one, to the replacement.
        decision: for the list.
    """

    end: Node
    build: Callable[[Callable[[Node], Node]], Node]
    decision: Decision


def where(node: Node) -> str:
    """The line of the user's program that made a node."""
    return str(node.source) if node.source else ""


def fault_of(numbers: Array, dtype: DType, is_factor: bool = False) -> str:
    """Why numbers cannot be kept in a type; empty if they can.

    Args:
        is_factor: whether a number other than 0 may not become 0 either.
    """
    rounded = stored(numbers, dtype)
    if not np.isfinite(rounded.astype(np.float64)).all():
        return NOT_FINITE
    return VANISHES if is_factor and bool(((numbers != 0) & (rounded == 0)).any()) else ""
