"""Primitives: one declaration per operation, with shape rule, NumPy evaluation and gradient.

`PRIMITIVES` is the table, by name; printing this module lists it, ``len`` counts it. Everything a user calls is a
composition of its rows (`minitorch.functional`, `minitorch.nn`), so a backend or a pass has to know only these.
Gradient rules are written as calls of primitives, and a call is a `bind`, so primitives are declared below the
interpreters.
"""

import sys
from collections.abc import Iterator
from types import ModuleType

from ..ir import PRIMITIVES, Primitive
from .checking import check
from .contraction import dot
from .decomposition import decompose
from .elementwise import (
    absolute,
    add,
    atan2,
    bitcast,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cast,
    cos,
    div,
    equal,
    erf,
    exp,
    expm1,
    floor,
    floor_divide,
    less,
    less_equal,
    log,
    log1p,
    maximum,
    mul,
    neg,
    power,
    remainder,
    shift_left,
    shift_right,
    sin,
    sqrt,
    sub,
    tanh,
    trunc,
    where,
)
from .indexing import argsort, gather, scatter, scatter_add
from .movement import barrier, concatenate, diagonal, expand, flip, pad, permute, reshape, slice_, unfold
from .reductions import argmax, cumprod, cumsum, reduce_max, reduce_prod, reduce_sum
from .sources import Literal, constant, iota, random_bits

__all__ = [
    "PRIMITIVES", "Literal", "Primitive", "absolute", "add", "argmax", "argsort", "atan2", "barrier", "bitcast",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cast", "check", "concatenate", "constant", "cos",
    "cumprod", "cumsum", "decompose", "diagonal", "div", "dot", "equal", "erf", "exp", "expand", "expm1", "flip",
    "floor", "floor_divide", "gather", "iota", "less", "less_equal", "log", "log1p", "maximum", "mul", "neg", "pad",
    "permute", "power", "random_bits", "reduce_max", "reduce_prod", "reduce_sum", "remainder", "reshape", "scatter",
    "scatter_add", "shift_left", "shift_right", "sin", "slice_", "sqrt", "sub", "tanh", "trunc", "unfold",
    "where",
]  # fmt: skip


class _Listing(ModuleType):
    """The class of this module, which shows it as the table of primitives."""

    def __len__(self) -> int:
        return len(PRIMITIVES)

    def __iter__(self) -> Iterator[Primitive]:
        return iter(PRIMITIVES.values())

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        families: dict[str, list[str]] = {}
        for primitive in self:
            families.setdefault(primitive.kind, []).append(f"  {primitive.name:<14}{primitive.doc}")
        lines = [line for kind in sorted(families) for line in (kind, *sorted(families[kind]))]
        return "\n".join([*lines, f"{len(self)} primitives"])


sys.modules[__name__].__class__ = _Listing
