"""Primitives whose indices are data: `gather` reads at them, `scatter` and `scatter_add` write; `argsort` makes some.

The others index the leading dimensions: with `k` index tensors of one shape `S`, ``gather(x, i1, ..., ik)`` is
NumPy's ``x[i1, ..., ik]``, of shape ``S + x.shape[k:]``. Negative indices count from the end; an index out of range is
an `IndexError` when the value is computed. Sorting is `argsort` and `gather`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import BY_NUMPY, bfloat16, int64
from ..errors import DTypeError, ShapeError
from ..ir import PRIMITIVES, Primitive, Spec
from ..tensor import Tensor
from .declare import axis_error, declare
from .elementwise import scalar
from .movement import expand, reshape, together

Array = np.ndarray[Any, Any]


def _indexed(name: str, x: Spec, indices: tuple[Spec, ...]) -> Spec:
    if not indices or len(indices) > x.ndim:
        raise axis_error(name, f"for each of {len(indices)} indices", x)
    for index in indices:
        if index.dtype.category != "int":
            raise DTypeError("MT202", f"{name}: an index of type {index.dtype.name}", fix="use integers, e.g. i.long()")
        if index.shape != indices[0].shape:
            raise ShapeError("MT201", f"{name}: indices {indices[0]} and {index} have different shapes")
    return Spec(indices[0].shape + x.shape[len(indices) :], x.dtype)


def _infer_gather(x: Spec, *indices: Spec) -> Spec:
    return _indexed("gather", x, indices)


def _check_bounds(x: Array, indices: tuple[Array, ...]) -> None:
    """Say which index is not there: called where NumPy has refused one.

    Raises:
        IndexError: naming the index, the dimension and its length.
    """
    for dim, (index, length) in enumerate(zip(indices, x.shape, strict=False)):
        wrong = index[(index < -length) | (index >= length)]
        if wrong.size:
            spec = Spec(x.shape, BY_NUMPY[x.dtype])
            places = f"from {-length} to {length - 1}" if length else "nowhere"
            raise IndexError(f"index {wrong.flat[0]} is out of bounds for dim {dim} of {spec}: indices go {places}")


def _evaluate_gather(x: Array, *indices: Array) -> Array:
    try:
        found: Array = x[indices]
    except IndexError:
        _check_bounds(x, indices)
        raise
    return found


def _zeros_like(x: Tensor) -> Tensor:
    return expand(scalar(0, x), shape=x.shape)


def _gather_rule(g: Tensor, y: Tensor, x: Tensor, *indices: Tensor) -> Tensor:
    return scatter_add(_zeros_like(x), g, *indices)


def _with_places(first: int, *xs: Tensor) -> list[Tensor]:
    """Return tensors of examples, with their places among the examples as the first index, which begins at `first`."""
    xs = tuple(together(*xs))
    count, shape = xs[first].shape[0], xs[first].shape
    places = reshape(PRIMITIVES["iota"](size=count, dtype=int64), shape=(count, *(1,) * (len(shape) - 1)))
    return [*xs[:first], expand(places, shape=shape), *xs[first:]]


def _batch_gather(x: Tensor, *indices: Tensor) -> Tensor:
    if x.shape[0] == 1:
        return gather(reshape(x, shape=x.shape[1:]), *together(*indices))
    return gather(*_with_places(1, x, *indices))


gather: Primitive = declare(
    "gather",
    "indexing",
    _infer_gather,
    _evaluate_gather,
    gradient=(_gather_rule, None),
    saves=tuple(range(1, 64)),
    variadic=True,
    batch=_batch_gather,
    doc="x[i1, ..., ik]",
)


def _infer_scatter(name: str, x: Spec, updates: Spec, indices: tuple[Spec, ...]) -> Spec:
    place = _indexed(name, x, indices)
    if updates != place:
        raise ShapeError("MT201", f"{name}: the updates are {updates}, the indices select {place}")
    return x


def _evaluate_scatter(x: Array, updates: Array, *indices: Array) -> Array:
    result = x.copy()
    try:
        result[indices] = updates
    except IndexError:
        _check_bounds(x, indices)
        raise
    return result


def _evaluate_scatter_add(x: Array, updates: Array, *indices: Array) -> Array:
    result = x.copy()
    try:
        np.add.at(result, indices, updates)
    except IndexError:
        _check_bounds(x, indices)
        raise
    return result


scatter_add: Primitive = declare(
    "scatter_add",
    "indexing",
    lambda x, updates, *indices: _infer_scatter("scatter_add", x, updates, indices),
    _evaluate_scatter_add,
    gradient=(
        lambda g, y, x, updates, *indices: g,
        lambda g, y, x, updates, *indices: gather(g, *indices),
        None,
    ),
    saves=tuple(range(2, 64)),
    variadic=True,
    reorders=True,
    batch=lambda *operands: scatter_add(*_with_places(2, *operands)),
    doc="x with updates added at [i1, ..., ik]; equal indices add up",
)

scatter: Primitive = declare(
    "scatter",
    "indexing",
    lambda x, updates, *indices: _infer_scatter("scatter", x, updates, indices),
    _evaluate_scatter,
    gradient=(
        lambda g, y, x, updates, *indices: scatter(g, _zeros_like(updates), *indices),
        lambda g, y, x, updates, *indices: gather(g, *indices),
        None,
    ),
    saves=tuple(range(2, 64)),
    variadic=True,
    batch=lambda *operands: scatter(*_with_places(2, *operands)),
    doc="x with updates written at [i1, ..., ik]; of equal indices the last wins",
)


# Order ---------------------------------------------------------------------------------------------------


def _infer_argsort(x: Spec, *, dim: int, descending: bool) -> Spec:
    if not 0 <= dim < x.ndim:
        raise axis_error("argsort", dim, x)
    return Spec(x.shape, int64)


def sortable(x: Array) -> Array:
    """Return the same numbers in a type that NumPy can sort: it misplaces NaN and other elements of bfloat16."""
    return x.astype(np.float32) if x.dtype == bfloat16.numpy else x


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
