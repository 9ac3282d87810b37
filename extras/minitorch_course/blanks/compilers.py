"""The blanks of notebook 15: bytes from a jaxpr, when a compiler has paid, and what fusion can gain at most."""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..blanking import Blank, Case

# --- bytes ----------------------------------------------------------------------------------------------------------


def eager_bytes(jaxpr: Any) -> Any:
    """Return the bytes that the equations of a jaxpr read and write, if each runs by itself."""
    values = [value for equation in jaxpr.eqns for value in [*equation.invars, *equation.outvars]]
    return sum(value.aval.size * value.aval.dtype.itemsize for value in values)


def _jaxprs() -> Iterable[Case]:
    """Jaxprs, without JAX: equations whose values have shapes and types."""

    def value(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
        return SimpleNamespace(aval=SimpleNamespace(shape=shape, size=math.prod(shape), dtype=np.dtype(dtype)))

    x, half, y = value((3, 4)), value((), np.float16), value((3,), np.float64)
    multiply = SimpleNamespace(invars=[x, x], outvars=[value((3, 4))])
    total = SimpleNamespace(invars=[x], outvars=[y])
    scale = SimpleNamespace(invars=[half, y], outvars=[value((3,), np.float64)])
    yield "For a multiplication of two arrays of 3 x 4", SimpleNamespace(eqns=[multiply])
    yield "For three equations, with float16 and float64", SimpleNamespace(eqns=[multiply, total, scale])


# --- when it has paid -----------------------------------------------------------------------------------------------


def calls_until_paid(first: Any, compiled: Any, eager: Any) -> Any:
    """Return the smallest number of calls that take less time than as many eager calls; None if there is none."""
    saved = eager - compiled
    if saved <= 0:
        return None
    calls = int((first - compiled) // saved) + 1
    return max(1, calls)


def _times() -> Iterable[Case]:
    yield "For a first call of 10 s, then 1 s, and 2 s eagerly", 10.0, 1.0, 2.0
    yield "For a first call of 10 s, then 1 s, and 4 s eagerly", 10.0, 1.0, 4.0
    yield "For a first call of 10 s, then 3 s, and 3.5 s eagerly", 10.0, 3.0, 3.5
    yield "If compiled code is slower", 10.0, 2.0, 1.75
    yield "If compiled code is as fast", 10.0, 2.0, 2.0
    yield "If the first call is the fastest", 0.25, 0.5, 2.0
    yield "If the first call is faster already", 1.0, 0.5, 2.0


# --- what can be gained ---------------------------------------------------------------------------------------------


def most_to_gain(rows: Any, peak: Any, bandwidth: Any) -> Any:
    """Return how many times as fast a program can become if all but its products were free."""
    products = sum(max(row.flops / peak, row.bytes / bandwidth) for row in rows if row.name == "dot")
    rest = sum(row.bytes / bandwidth for row in rows if row.name != "dot")
    return (products + rest) / products


def _profiles() -> Iterable[Case]:
    def row(name: str, flops: float, size: float) -> Any:
        return SimpleNamespace(name=name, flops=flops, bytes=size)

    rows = [row("dot", 400.0, 10.0), row("add", 5.0, 30.0), row("dot", 8.0, 60.0), row("tanh", 5.0, 20.0)]
    yield "For two products and two other operations", rows, 100.0, 20.0
    yield "For a product alone", rows[:1], 100.0, 20.0


BLANKS = {
    "eager_bytes": Blank(
        eager_bytes,
        _jaxprs,
        {
            "These are elements; an element of a float32 array has 4 bytes: value.aval.dtype.itemsize.": {
                " * value.aval.dtype.itemsize": ""
            },
            "Not every array is float32: ask the dtype for its itemsize.": {"value.aval.dtype.itemsize": "4"},
        },
        close=0,
    ),
    "calls_until_paid": Blank(
        calls_until_paid,
        _times,
        {
            "The first call is a call, too: it replaces a compiled one, so first - compiled has to be earned.": {
                "first - compiled": "first"
            },
            "At this number of calls both have taken the same time; one more is needed for less.": {
                "int((first - compiled) // saved) + 1": "math.ceil((first - compiled) / saved)"
            },
        },
    ),
    "most_to_gain": Blank(
        most_to_gain,
        _profiles,
        {
            "A product takes the larger of two times: that of its FLOPs, or of its bytes.": {
                "max(row.flops / peak, row.bytes / bandwidth)": "row.flops / peak"
            },
            "A product is no part of the rest.": {' if row.name != "dot"': ""},
            "Upside down: before is products + rest, after is products.": {
                "(products + rest) / products": "products / (products + rest)"
            },
        },
    ),
}
