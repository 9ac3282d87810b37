"""`argsort`: the only primitive that compares elements with each other. Sorting is argsort and gather."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..ir import Primitive, Spec
from .declare import axis_error, declare

Array = np.ndarray[Any, Any]


def _infer_argsort(x: Spec, *, dim: int, descending: bool) -> Spec:
    if not 0 <= dim < x.ndim:
        raise axis_error("argsort", dim, x)
    return Spec(x.shape, dtypes.int64)


def sortable(x: Array) -> Array:
    """Return the same numbers in a type that NumPy can sort: it misplaces NaN and other elements of bfloat16."""
    return x.astype(np.float32) if x.dtype == dtypes.bfloat16.numpy else x


def _evaluate_argsort(x: Array, *, dim: int, descending: bool) -> Array:
    x = sortable(x)
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    # Backwards through the reversed array, so that equal elements keep their order.
    order = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    result: Array = x.shape[dim] - 1 - np.flip(order, dim)
    return result


argsort: Primitive = declare(
    "argsort",
    "sort",
    _infer_argsort,
    _evaluate_argsort,
    doc="the positions that put a dimension in order; stable, NaN counts as the largest",
)
