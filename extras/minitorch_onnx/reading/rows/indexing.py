"""Elements found and written by their positions, and positions found by elements.

A position below 0 counts from the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import minitorch as mt
from minitorch import primitives as P
from minitorch.dtypes import int64
from minitorch.functional.movement.indexing import gathered, getitem
from minitorch.functional.operands import from_array, to_dtype
from minitorch.interpreters import concrete
from minitorch.tensor import Tensor

from ..decoding.limits import check_numbers, refuse
from ..program import Row
from ..running import Call
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


def _gather(call: Call, x: Tensor, indices: Tensor) -> Tensor:
    axis = dimension(call["axis"], x.ndim)
    return getitem(x, (*(slice(None),) * axis, to_dtype(indices, int64)))


def _coordinates(x: Tensor, indices: Tensor, batch: int) -> tuple[Tensor, ...]:
    """The positions in each dimension that rows of indices name: behind those of the batch, which are their own."""
    if indices.ndim <= batch or not 0 < indices.shape[-1] <= x.ndim - batch or x.shape[:batch] != indices.shape[:batch]:
        refuse(f"the indices {indices.spec} do not fit {x.spec}")
    rows = indices.shape[:-1]
    return (*(line(axis, rows) for axis in range(batch)), *mt.unbind(indices, indices.ndim - 1))


# Writing ----------------------------------------------------------------------------------------------------


def _written(x: Tensor, updates: Tensor, at: tuple[Tensor, ...], reduction: str) -> Tensor:
    """A copy with numbers written; what goes to one position is added, multiplied, or the largest or least counts."""
    if reduction == "none":
        return P.scatter(x, updates, *at)
    if reduction == "add":
        return P.scatter_add(x, updates, *at)
    if reduction == "mul":
        return _multiplied(x, updates, at)
    # The last one that is written wins: so they are written in order, the present number among them.
    choose = {"max": mt.maximum, "min": mt.minimum}.get(reduction)
    if choose is None:
        refuse(f"{reduction!r} is no way to combine elements")
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
    wrapped = [np.where(each < 0, each + n, each) for each, n in zip(arrays, x.shape, strict=False)]
    seen: dict[tuple[int, ...], int] = {}
    turns: list[list[int]] = []
    for number, place in enumerate(zip(*[each.tolist() for each in wrapped], strict=True)):
        turn = seen[place] = seen.get(place, -1) + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(number)
    flat = mt.reshape(updates, (arrays[0].size, *x.shape[len(at) :]))
    for turn_of in turns:
        chosen = from_array(np.array(turn_of, np.int64))
        places = [from_array(each[turn_of].astype(np.int64)) for each in arrays]
        x = P.scatter(x, P.gather(x, *places) * P.gather(flat, chosen), *places)
    return x


def _scatter_elements(call: Call, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    axis = dimension(call["axis"], x.ndim)
    if indices.shape != updates.shape or indices.ndim != x.ndim:
        refuse(f"the indices {indices.spec} and the updates {updates.spec} do not fit {x.spec}")
    at = tuple([indices if dim == axis else line(dim, indices.shape) for dim in range(x.ndim)])
    return _written(x, updates, at, call["reduction"] or "none")


def _tensor_scatter(call: Call, cache: Tensor, update: Tensor, begin: Tensor | None = None) -> Tensor:
    """Each sequence of the batch written from its own position on, at the end or around it (``circular``)."""
    axis = dimension(call["axis"], cache.ndim)
    check_ndim("the update", update, cache.ndim)
    shape = update.shape
    place = line(axis, shape)
    if begin is not None:
        place = place + mt.reshape(begin, (-1, *(1,) * (cache.ndim - 1)))
    if call["mode"] == "circular":
        place = place % cache.shape[axis]
    at = tuple([place if dim == axis else line(dim, shape) for dim in range(cache.ndim)])
    return P.scatter(cache, update, *at)


def _reverse_sequence(call: Call, x: Tensor, lengths: Tensor) -> Tensor:
    """The first elements of each sequence turned around, as many as it has."""
    time, batch = call["time_axis"], call["batch_axis"]
    if x.ndim < 2 or {time, batch} != {0, 1}:
        refuse(f"the axes of time and batch are {time} and {batch}")
    step = line(time, x.shape[:2])
    count = mt.reshape(lengths, (-1, 1) if batch == 0 else (1, -1))
    place = mt.where(step < count, count - 1 - step, step)
    other = line(batch, x.shape[:2])
    return P.gather(x, *((other, place) if batch == 0 else (place, other)))


# Finding ----------------------------------------------------------------------------------------------------


def _compress(call: Call, x: Tensor, condition: Array) -> Tensor:
    places = from_array(np.flatnonzero(condition).astype(np.int64))
    if call["axis"] is None:
        return mt.index_select(mt.ravel(x), 0, places)
    return mt.index_select(x, call["axis"], places)


def _nonzero(call: Call, x: Tensor) -> Tensor:
    check_numbers("the positions of its input", x.numel() * x.ndim)
    found: Tensor = mt.nonzero(x)
    return mt.permute(found, 1, 0)


def _top_k(call: Call, x: Tensor, k: Array) -> tuple[Tensor, ...]:
    found = mt.topk(x, whole("the count", k), call["axis"], bool(call["largest"]), bool(call["sorted"]))
    return found[0], found[1]


def _unique(call: Call, x: Array) -> tuple[Tensor, ...]:
    """The different elements or slices, in order or (``sorted=0``) as they come first; places and counts."""
    axis = None if call["axis"] is None else dimension(call["axis"], x.ndim)
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not call["sorted"]:
        order = np.argsort(first, kind="stable")
        values = np.take(values, order, axis=0 if axis is None else axis)
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        first, inverse, counts = first[order], place[inverse], counts[order]
    return tuple(
        [from_array(np.ascontiguousarray(values))]
        + [from_array(each.astype(np.int64)) for each in (first, inverse, counts)]
    )


def _extract(call: Call, x: Tensor, places: Tensor) -> Tensor:
    """Elements of the last dimension; those of a vector are a row."""
    found = mt.index_select(x, -1, mt.reshape(places, -1))
    return found if x.ndim > 1 else mt.unsqueeze(found, 0)


ROWS: dict[str, Row] = {
    "ai.onnx.ml.ArrayFeatureExtractor": Row(_extract),
    "Compress": Row(_compress, known=(1,)),
    "Gather": Row(_gather),
    "GatherElements": Row(lambda call, x, indices: gathered("GatherElements", x, call["axis"], indices, from_end=True)),
    "GatherND": Row(lambda call, x, indices: P.gather(x, *_coordinates(x, indices, call["batch_dims"]))),
    "NonZero": Row(_nonzero),
    "ReverseSequence": Row(_reverse_sequence),
    "ScatterElements": Row(_scatter_elements),
    "ScatterND": Row(
        lambda call, x, indices, updates: _written(x, updates, _coordinates(x, indices, 0), call["reduction"])
    ),
    "TensorScatter": Row(_tensor_scatter),
    "TopK": Row(_top_k, known=(1,)),
    "Unique": Row(_unique, known=(0,)),
}
