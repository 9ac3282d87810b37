"""Movement primitives: they move elements, and compute none.

Each is index algebra: the element at some index of the result is the element at another index of the input. Eager
makes most of them NumPy views; a compiler needs no code for them but arithmetic on indices. Only the gradients of
`expand` and `unfold`, which show an element more than once, add anything up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError
from ..ir import PRIMITIVES, Primitive, Shape, Spec
from ..sizes import larger, smaller
from ..tensor import Tensor
from .declare import axis_error, declare
from .elementwise import add

Array = np.ndarray[Any, Any]
Padding = tuple[tuple[int, int, int], ...]  # for each dimension: before, after, between


def _infer_reshape(x: Spec, *, shape: Shape) -> Spec:
    if math.prod(shape) != x.size:
        raise ShapeError(
            "MT201",
            f"reshape: {x} cannot become {list(shape)}",
            why=f"it has {x.size} elements, the new shape {math.prod(shape)}",
            fix="use -1 for the one dimension that follows from the others",
        )
    return Spec(shape, x.dtype)


reshape: Primitive = declare(
    "reshape",
    "movement",
    _infer_reshape,
    lambda x, *, shape: np.reshape(x, shape),
    gradient=(lambda g, y, x, shape: reshape(g, shape=x.shape),),
    is_view=True,
    doc="the elements in the same order under another shape",
)


def _infer_permute(x: Spec, *, dims: tuple[int, ...]) -> Spec:
    if sorted(dims) != list(range(x.ndim)):
        raise axis_error("permute", dims, x)
    return Spec(tuple(x.shape[dim] for dim in dims), x.dtype)


def inverse_permutation(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Return the permutation that undoes another one."""
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


permute: Primitive = declare(
    "permute",
    "movement",
    _infer_permute,
    lambda x, *, dims: np.transpose(x, dims),
    gradient=(lambda g, y, x, dims: permute(g, dims=inverse_permutation(dims)),),
    is_view=True,
    batch=lambda x, dims: permute(x, dims=(0, *[dim + 1 for dim in dims])),
    doc="the dimensions in another order",
)


def _infer_expand(x: Spec, *, shape: Shape) -> Spec:
    new = len(shape) - x.ndim
    if new < 0 or any(old not in (1, wanted) for old, wanted in zip(x.shape, shape[new:], strict=True)):
        raise ShapeError(
            "MT201",
            f"expand: {x} cannot become {list(shape)}",
            why="only dimensions of length 1 can be repeated, and new ones come first",
            fix="insert dimensions of length 1 with unsqueeze or reshape",
        )
    if any(length < 0 for length in shape):
        raise ShapeError("MT201", f"expand: {x} cannot become {list(shape)}: a length is negative")
    return Spec(shape, x.dtype)


def _expand_rule(g: Tensor, y: Tensor, x: Tensor, shape: Shape) -> Tensor:
    """Undo broadcasting: sum over every repeated dimension. No other place does it."""
    new = len(shape) - x.ndim
    dims = tuple(axis for axis, length in enumerate(shape) if axis < new or (x.shape[axis - new] == 1 and length != 1))
    if dims:
        g = PRIMITIVES["reduce_sum"](g, dims=dims)
    return g if g.shape == x.shape else reshape(g, shape=x.shape)


def _evaluate_expand(x: Array, *, shape: Shape) -> Array:
    """Broadcast; NumPy's result is read-only, which is right only if something is repeated."""
    new = len(shape) - x.ndim
    if shape[max(new, 0) :] == x.shape and math.prod(shape) == x.size:
        return x.reshape(shape)
    found = np.broadcast_to(x, shape)
    return found if found.size != x.size else x.reshape(shape)


def with_dimensions(x: Tensor, count: int) -> Tensor:
    """Return examples with so many dimensions each, new ones of length 1 in front of their own."""
    new = (1,) * (count + 1 - x.ndim)
    return reshape(x, shape=(x.shape[0], *new, *x.shape[1:])) if new else x


def together(*xs: Tensor) -> list[Tensor]:
    """Repeat what examples share, so that all tensors have one for each example, if one of them has."""
    count = next((x.shape[0] for x in xs if x.shape[0] != 1), 1)
    return [x if x.shape[0] == count else expand(x, shape=(count, *x.shape[1:])) for x in xs]


expand: Primitive = declare(
    "expand",
    "movement",
    _infer_expand,
    _evaluate_expand,
    gradient=(_expand_rule,),
    is_view=True,
    batch=lambda x, shape: expand(with_dimensions(x, len(shape)), shape=(x.shape[0], *shape)),
    doc="dimensions of length 1 repeated, and new ones added in front",
)


def _infer_slice(x: Spec, *, start: Shape, stop: Shape, step: Shape) -> Spec:
    if not len(start) == len(stop) == len(step) == x.ndim:
        raise axis_error("slice", f"for each of {len(start)} bounds", x)
    for axis, (low, high, by, length) in enumerate(zip(start, stop, step, x.shape, strict=True)):
        if not (0 <= low <= high <= length and by >= 1):
            raise ShapeError("MT201", f"slice: {low}:{high}:{by} in dimension {axis} of {x} is out of bounds")
    return Spec(tuple([taken(*bounds) for bounds in zip(start, stop, step, strict=True)]), x.dtype)


def taken(start: int, stop: int, step: int) -> int:
    """Return how many elements a slice has; its start is not behind its stop."""
    return stop - start if step == 1 else (stop - start + step - 1) // step


def _slice_rule(g: Tensor, y: Tensor, x: Tensor, start: Shape, stop: Shape, step: Shape) -> Tensor:
    """Return the cotangent at the elements of the slice, with zeros between and around them."""
    padding = []
    for low, by, taken, length in zip(start, step, y.shape, x.shape, strict=True):
        covered = (taken - 1) * by + 1 if taken else 0
        padding.append((low, length - low - covered, by - 1))
    return pad(g, padding=tuple(padding), value=0)


slice_: Primitive = declare(
    "slice",
    "movement",
    _infer_slice,
    lambda x, *, start, stop, step: x[tuple(map(slice, start, stop, step))],
    gradient=(_slice_rule,),
    is_view=True,
    doc="every step-th element from start up to stop, in each dimension",
)


def _padded_length(length: int, before: int, after: int, between: int) -> int:
    return before + length + between * larger(length - 1, 0) + after


def _infer_pad(x: Spec, *, padding: Padding, value: float) -> Spec:
    if len(padding) != x.ndim or any(amount < 0 for amounts in padding for amount in amounts):
        raise ShapeError("MT201", f"pad: {padding} does not fit {x}: three amounts from 0 up for each dimension")
    return Spec(
        tuple(_padded_length(length, *amounts) for length, amounts in zip(x.shape, padding, strict=True)),
        x.dtype,
    )


def _inside(padded: Shape, padding: Padding) -> tuple[Shape, Shape, Shape]:
    """Return the bounds of the original elements inside a padded tensor."""
    start = tuple(smaller(before, length) for (before, _, _), length in zip(padding, padded, strict=True))
    stop = tuple(length - after for (_, after, _), length in zip(padding, padded, strict=True))
    return start, stop, tuple(between + 1 for _, _, between in padding)


def _evaluate_pad(x: Array, *, padding: Padding, value: float) -> Array:
    shape = tuple(_padded_length(length, *amounts) for length, amounts in zip(x.shape, padding, strict=True))
    result = np.full(shape, value, x.dtype)
    result[tuple(map(slice, *_inside(shape, padding)))] = x
    return result


def _pad_rule(g: Tensor, y: Tensor, x: Tensor, padding: Padding, value: float) -> Tensor:
    start, stop, step = _inside(y.shape, padding)
    return slice_(g, start=start, stop=stop, step=step)


pad: Primitive = declare(
    "pad",
    "movement",
    _infer_pad,
    _evaluate_pad,
    gradient=(_pad_rule,),
    doc="a value put before, after and between the elements, in each dimension",
)


def _infer_flip(x: Spec, *, dims: tuple[int, ...]) -> Spec:
    if len(set(dims)) != len(dims) or not all(0 <= dim < x.ndim for dim in dims):
        raise axis_error("flip", dims, x)
    return x


flip: Primitive = declare(
    "flip",
    "movement",
    _infer_flip,
    lambda x, *, dims: np.flip(x, dims).copy(),  # not a view, as in PyTorch
    gradient=(lambda g, y, x, dims: flip(g, dims=dims),),
    doc="dimensions read backwards",
)


def _infer_concatenate(*xs: Spec, dim: int) -> Spec:
    if not xs:
        raise ShapeError("MT201", "concatenate: no tensors were given", fix="pass at least one")
    first = xs[0]
    if not 0 <= dim < first.ndim:
        raise axis_error("concatenate", dim, first)
    for x in xs[1:]:
        if x.dtype is not first.dtype:
            raise DTypeError("MT202", f"concatenate: {first} and {x} have different types")
        if x.ndim != first.ndim or any(
            a != b for axis, (a, b) in enumerate(zip(x.shape, first.shape, strict=True)) if axis != dim
        ):
            raise ShapeError(
                "MT201",
                f"concatenate: {first} and {x} do not fit along dimension {dim}",
                why="all other dimensions must be equal",
            )
    total = sum(x.shape[dim] for x in xs)
    return Spec((*first.shape[:dim], total, *first.shape[dim + 1 :]), first.dtype)


def _concatenate_rule(g: Tensor, y: Tensor, *xs: Tensor, dim: int, index: int) -> Tensor:
    begin = sum(x.shape[dim] for x in xs[:index])
    start = tuple(begin if axis == dim else 0 for axis in range(g.ndim))
    stop = tuple(low + length for low, length in zip(start, xs[index].shape, strict=True))
    return slice_(g, start=start, stop=stop, step=(1,) * g.ndim)


concatenate: Primitive = declare(
    "concatenate",
    "movement",
    _infer_concatenate,
    lambda *xs, dim: np.concatenate(xs, axis=dim, dtype=xs[0].dtype, casting="no"),
    gradient=(_concatenate_rule,),
    variadic=True,
    batch=lambda *xs, dim: concatenate(*together(*xs), dim=dim + 1),
    doc="tensors one after another along a dimension",
)


def _infer_unfold(x: Spec, *, dim: int, size: int, step: int, dilation: int) -> Spec:
    if not 0 <= dim < x.ndim:
        raise axis_error("unfold", dim, x)
    reach = (size - 1) * dilation + 1
    if min(size, step, dilation) < 1 or reach > x.shape[dim]:
        raise ShapeError(
            "MT201",
            f"unfold: a window of {size} elements, {dilation} apart, does not fit dimension {dim} of {x}",
            why=f"it reaches over {reach} elements",
            fix="pad the tensor, or use a smaller window",
        )
    count = (x.shape[dim] - reach) // step + 1
    return Spec((*x.shape[:dim], count, *x.shape[dim + 1 :], size), x.dtype)


def windows_overlap(length: int, size: int, step: int, dilation: int) -> bool:
    """Return whether an element of a dimension can be in several windows."""
    reach = (size - 1) * dilation + 1
    return step < reach and length >= reach + step


def _evaluate_unfold(x: Array, *, dim: int, size: int, step: int, dilation: int) -> Array:
    reach = (size - 1) * dilation + 1
    windows = np.lib.stride_tricks.sliding_window_view(
        x, reach, axis=dim, writeable=not windows_overlap(x.shape[dim], size, step, dilation)
    )
    every = [slice(None)] * windows.ndim
    every[dim], every[-1] = slice(None, None, step), slice(None, None, dilation)
    return windows[tuple(every)]


def folded(g: Tensor, x: Tensor, dim: int, size: int, step: int, dilation: int) -> Tensor:
    """Overlay windows and add them up, each of the `size` places in the window shifted to where it read."""
    total: Tensor | None = None
    for place in range(size):
        start = (0,) * (g.ndim - 1) + (place,)
        stop = (*g.shape[:-1], place + 1)
        part = reshape(slice_(g, start=start, stop=stop, step=(1,) * g.ndim), shape=g.shape[:-1])
        before = place * dilation
        covered = (part.shape[dim] - 1) * step + 1
        padding = [(0, 0, 0)] * part.ndim
        padding[dim] = (before, x.shape[dim] - before - covered, step - 1)
        part = pad(part, padding=tuple(padding), value=0)
        total = part if total is None else add(total, part)
    assert total is not None
    return total


unfold: Primitive = declare(
    "unfold",
    "movement",
    _infer_unfold,
    _evaluate_unfold,
    gradient=(lambda g, y, x, **window: folded(g, x, **window),),
    is_view=True,
    doc="sliding windows along a dimension; the place inside the window becomes the last dimension",
)


def _infer_diagonal(x: Spec, *, offset: int) -> Spec:
    if x.ndim < 2:
        raise axis_error("diagonal", (-2, -1), x)
    rows, columns = x.shape[-2:]
    return Spec((*x.shape[:-2], larger(0, smaller(rows + smaller(offset, 0), columns - larger(offset, 0)))), x.dtype)


def _evaluate_diagonal(x: Array, *, offset: int) -> Array:
    result = np.diagonal(x, offset, -2, -1)
    result.flags.writeable = x.flags.writeable  # NumPy's is read-only
    return result


def on_diagonal(values: Tensor, rows: int, columns: int, offset: int) -> Tensor:
    """Return matrices with the elements of the last dimension on a diagonal, and zeros elsewhere."""
    *batch, length = values.shape
    # In a row, neighbours on the diagonal are columns + 1 apart: pad between them.
    before = (offset if offset >= 0 else -offset * columns) if length else 0
    covered = (length - 1) * (columns + 1) + 1 if length else 0
    padding = (*((0, 0, 0),) * len(batch), (before, rows * columns - before - covered, columns))
    return reshape(pad(values, padding=padding, value=0), shape=(*batch, rows, columns))


diagonal: Primitive = declare(
    "diagonal",
    "movement",
    _infer_diagonal,
    _evaluate_diagonal,
    gradient=(lambda g, y, x, offset: on_diagonal(g, x.shape[-2], x.shape[-1], offset),),
    is_view=True,
    doc="the diagonal of the last two dimensions, so many columns to the right of the main one",
)


barrier: Primitive = declare(
    "barrier",
    "movement",
    lambda x: x,
    lambda x: x[...],
    gradient=(lambda g, y, x: g,),
    is_view=True,
    doc="the same value, which no pass may take for it: what is computed from it is computed there",
)
