"""Elements found and written by their positions, and positions found by elements.

A position below 0 counts from the end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minitorch as mt
from minitorch import primitives as P
from minitorch.dtypes import int64
from minitorch.functional.movement.indexing import gathered, getitem
from minitorch.functional.operands import from_array, to_dtype
from minitorch.interpreters import concrete
from minitorch.tensor import Tensor

from ..decoding.limits import check_numbers, require
from ..program import Row
from .checks import check_ndim, dimension, whole

Array = np.ndarray[Any, Any]


def line(axis: int, shape: Sequence[int]) -> Tensor:
    """0, 1, 2, ... along one axis of a shape, the same along all others.

    Example:
        >>> line(0, (2, 3))
        tensor([[0, 0, 0],
                [1, 1, 1]])
    """
    return mt.broadcast_to(mt.reshape(mt.arange(shape[axis]), (-1, *(1,) * (len(shape) - axis - 1))), shape)


def Gather(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    return getitem(x, (*(slice(None),) * dimension(axis, x.ndim), to_dtype(indices, int64)))


def _coordinates(x: Tensor, indices: Tensor, batch: int) -> tuple[Tensor, ...]:
    """The positions in each dimension that rows of indices name: behind those of the batch, which are their own."""
    fits = indices.ndim > batch and 0 < indices.shape[-1] <= x.ndim - batch and x.shape[:batch] == indices.shape[:batch]
    require(fits, "the indices {} do not fit {}", indices.spec, x.spec)
    rows = indices.shape[:-1]
    return (*(line(axis, rows) for axis in range(batch)), *mt.unbind(indices, indices.ndim - 1))


def _along(axis: int, place: Tensor) -> tuple[Tensor, ...]:
    """The positions in each dimension: these in one, and in all others those of the elements themselves."""
    return tuple([place if dim == axis else line(dim, place.shape) for dim in range(place.ndim)])


# Writing ----------------------------------------------------------------------------------------------------


def _written(x: Tensor, updates: Tensor, at: tuple[Tensor, ...], reduction: str | None) -> Tensor:
    """A copy with numbers written; what goes to one position is added, multiplied, or the largest or least counts."""
    if reduction == "mul":
        return _multiplied(x, updates, at)
    if reduction in (None, "none", "add"):
        return (P.scatter_add if reduction == "add" else P.scatter)(x, updates, *at)
    # The last one that is written wins: so they are written in order, the present number among them.
    require(reduction in ("max", "min"), "{!r} is no way to combine elements", reduction)
    choose = mt.maximum if reduction == "max" else mt.minimum
    rows = at[0].shape
    count = math.prod(rows)
    rest = x.shape[len(at) :]
    flat = mt.reshape(choose(updates, P.gather(x, *at)), (count, *rest))
    places = [mt.reshape(each, (count,)) for each in at]
    if rest:  # every element of a slice has an order of its own
        size = math.prod(rest)
        shape = (count, size)
        places = [mt.ravel(mt.broadcast_to(mt.reshape(each, (count, 1)), shape)) for each in places]
        places += [mt.ravel(mt.broadcast_to(mt.ravel(line(axis, rest)), shape)) for axis in range(len(rest))]
        flat = mt.reshape(flat, (count * size,))
    order = mt.argsort(flat, 0, descending=reduction == "min", stable=True)
    return P.scatter(x, P.gather(flat, order), *[P.gather(each, order) for each in places])


def _multiplied(x: Tensor, updates: Tensor, at: tuple[Tensor, ...]) -> Tensor:
    """One factor for each position at a time; the positions have to be known."""
    arrays = [concrete(each, "the positions of products", "MT103").reshape(-1) for each in at]
    wrapped = [np.where(each < 0, each + n, each).tolist() for each, n in zip(arrays, x.shape, strict=False)]
    seen: Counter[tuple[int, ...]] = Counter()
    turns: dict[int, list[int]] = {}
    for number, place in enumerate(zip(*wrapped, strict=True)):
        turns.setdefault(seen[place], []).append(number)
        seen[place] += 1
    flat = mt.reshape(updates, (arrays[0].size, *x.shape[len(at) :]))
    for turn in turns.values():
        chosen = from_array(np.array(turn, np.int64))
        places = [from_array(each[turn].astype(np.int64)) for each in arrays]
        x = P.scatter(x, P.gather(x, *places) * P.gather(flat, chosen), *places)
    return x


def ScatterElements(x: Tensor, indices: Tensor, updates: Tensor, axis: int, reduction: str | None = None) -> Tensor:
    fits = indices.shape == updates.shape and indices.ndim == x.ndim
    require(fits, "the indices {} and the updates {} do not fit {}", indices.spec, updates.spec, x.spec)
    return _written(x, updates, _along(dimension(axis, x.ndim), indices), reduction)


def TensorScatter(cache: Tensor, update: Tensor, begin: Tensor | None = None, *, axis: int, mode: str) -> Tensor:
    """Each sequence of the batch written from its own position on, at the end or around it (``circular``)."""
    axis = dimension(axis, cache.ndim)
    check_ndim("the update", update, cache.ndim, cache.ndim)
    place = line(axis, update.shape)
    if begin is not None:
        place = place + mt.reshape(begin, (-1, *(1,) * (cache.ndim - 1)))
    return P.scatter(cache, update, *_along(axis, place % cache.shape[axis] if mode == "circular" else place))


def ReverseSequence(x: Tensor, lengths: Tensor, time_axis: int, batch_axis: int) -> Tensor:
    """The first elements of each sequence turned around, as many as it has."""
    fits = x.ndim >= 2 and {time_axis, batch_axis} == {0, 1}
    require(fits, "the axes of time and batch are {} and {}", time_axis, batch_axis)
    step = line(time_axis, x.shape[:2])
    count = mt.reshape(lengths, (-1, 1) if batch_axis == 0 else (1, -1))
    return P.gather(x, *_along(time_axis, mt.where(step < count, count - 1 - step, step)))


# Finding ----------------------------------------------------------------------------------------------------


def Compress(x: Tensor, condition: Array, *, axis: int | None) -> Tensor:
    places = from_array(np.flatnonzero(condition).astype(np.int64))
    return mt.index_select(mt.ravel(x) if axis is None else x, axis or 0, places)


def NonZero(x: Tensor) -> Tensor:
    check_numbers("the positions of its input", x.numel() * x.ndim)
    return mt.permute(mt.nonzero(x), 1, 0)


def Unique(x: Array, *, axis: int | None, sorted: int) -> tuple[Tensor, ...]:
    """The different elements or slices, in order or (``sorted=0``) as they come first; places and counts."""
    axis = None if axis is None else dimension(axis, x.ndim)
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    order = np.arange(first.size) if sorted else np.argsort(first, kind="stable")
    values = np.take(values, order, axis=axis or 0)
    places = first[order], np.argsort(order)[inverse.reshape(-1)], counts[order]
    return (from_array(np.ascontiguousarray(values)), *(from_array(each.astype(np.int64)) for each in places))


def _extract(x: Tensor, places: Tensor) -> Tensor:
    """Elements of the last dimension; those of a vector are a row."""
    found = mt.index_select(x, -1, mt.reshape(places, -1))
    return found if x.ndim > 1 else mt.unsqueeze(found, 0)


ROWS: dict[str, Row | Callable[..., Any]] = {
    "ai.onnx.ml.ArrayFeatureExtractor": _extract,
    "GatherElements": lambda x, indices, axis: gathered("GatherElements", x, axis, indices, from_end=True),
    "GatherND": lambda x, indices, batch_dims=0: P.gather(x, *_coordinates(x, indices, batch_dims)),
    "ScatterND": lambda x, indices, updates, reduction=None: _written(
        x, updates, _coordinates(x, indices, 0), reduction
    ),
    "TopK": Row(
        lambda x, k, *, axis, largest, sorted: (*mt.topk(x, whole("the count", k), axis, bool(largest), bool(sorted)),),
        known=(1,),
    ),
}
