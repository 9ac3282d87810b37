"""Shapes: what is joined, cut, moved and indexed with plain numbers."""

from __future__ import annotations

import math
from typing import Any

from ..arguments import Call, a_dim
from ..program import Code, Ref, text_of
from ..scope import Scope, UnfitError
from .table import dtype_of, factors, like, maybe, recipe, shape_of


@recipe("cat", "concat", "concatenate")
def _joined(scope: Scope) -> Call:
    first = scope.with_dims(1)
    shape, dim = shape_of(scope, first), a_dim(scope, first)
    parts = [first]
    for _ in range(scope.below(3)):
        other = list(shape)
        if -len(shape) <= dim < len(shape):
            other[dim] = scope.pick(shape[dim], 1, 2, 3)
        parts.append(like(scope, first, tuple(other)))
    return (parts,), {"dim": dim} if scope.chance(0.5) else {}


@recipe("hstack", "vstack", "row_stack")
def _side_by_side(scope: Scope) -> Call:
    first = scope.tensor()
    return ([first, like(scope, first, shape_of(scope, first))],), {}


@recipe("stack")
def _stack(scope: Scope) -> Call:
    first = scope.tensor()
    parts = [first, *(like(scope, first, shape_of(scope, first)) for _ in range(scope.below(3)))]
    return (parts,), maybe(scope, dim=range(-1, len(shape_of(scope, first)) + 1))


@recipe("meshgrid")
def _meshgrid(scope: Scope) -> Call:
    first = scope.input(scope.any_shape(1), scope.any_dtype())
    return (first, like(scope, first, scope.any_shape(1))), {"indexing": scope.pick("ij", "xy")}


@recipe("broadcast_tensors", "atleast_1d", "atleast_2d", "atleast_3d")
def _several(scope: Scope) -> Call:
    first = scope.tensor()
    return (first, scope.tensor(scope.broadcastable(shape_of(scope, first)))), {}


@recipe("split")
def _split(scope: Scope) -> Call:
    x = scope.with_dims(1)
    dim = a_dim(scope, x)
    length = shape_of(scope, x)[dim] if -len(shape_of(scope, x)) <= dim < len(shape_of(scope, x)) else 1
    at = scope.below(length + 1)
    least = max(1, math.ceil(length / 4))
    return (x, scope.pick(scope.random.randint(least, least + 3), [at, length - at])), {"dim": dim}


@recipe("tensor_split")
def _tensor_split(scope: Scope) -> Call:
    return (scope.with_dims(1), scope.pick(1, 2, 3, [1], [1, 2], [0, 5])), {}


@recipe("unbind")
def _unbind(scope: Scope) -> Call:
    x = scope.with_dims(1)
    short = [dim for dim, length in enumerate(shape_of(scope, x)) if length <= 5]
    if not short:
        raise UnfitError
    return (x, scope.pick(*short)), {}


@recipe("narrow")
def _narrow(scope: Scope) -> Call:
    x = scope.with_dims(1)
    dim = scope.below(len(shape_of(scope, x)))
    length = shape_of(scope, x)[dim]
    start = scope.below(length + 1)
    return (x, dim, start, scope.below(length - start + 1)), {}


@recipe("select")
def _select(scope: Scope) -> Call:
    x = scope.with_dims(1)
    dim = scope.below(len(shape_of(scope, x)))
    length = shape_of(scope, x)[dim]
    return (x, dim, scope.random.randint(-length, max(0, length - 1))), {}


@recipe("unfold")
def _unfold(scope: Scope) -> Call:
    x = scope.with_dims(1, 3)
    dim = scope.below(len(shape_of(scope, x)))
    return (x, dim, scope.random.randint(0, max(1, shape_of(scope, x)[dim])), scope.pick(1, 1, 2, 3)), {}


@recipe("diagonal", "diag_embed")
def _diagonal(scope: Scope) -> Call:
    return (scope.with_dims(2, 3),), maybe(scope, offset=(-1, 0, 1, 2))


@recipe("trace", "t", "diag", "tril", "triu", "fliplr")
def _matrix(scope: Scope) -> Call:
    return (scope.with_dims(2, 2),), {}


@recipe("reshape", "view")
def _reshape(scope: Scope) -> Call:
    x = scope.tensor()
    shape = list(factors(scope, math.prod(shape_of(scope, x))))
    if scope.chance(0.4):
        shape[scope.below(len(shape))] = -1
    return ((x, tuple(shape)) if scope.chance(0.5) else (x, *shape)), {}


@recipe("reshape_as", "view_as")
def _reshape_as(scope: Scope) -> Call:
    x = scope.tensor()
    return (x, scope.input(factors(scope, math.prod(shape_of(scope, x))), scope.any_dtype())), {}


@recipe("unflatten")
def _unflatten(scope: Scope) -> Call:
    x = scope.with_dims(1)
    dim = scope.below(len(shape_of(scope, x)))
    return (x, dim, factors(scope, shape_of(scope, x)[dim])), {}


@recipe("expand", "broadcast_to")
def _expand(scope: Scope) -> Call:
    x = scope.input(scope.broadcastable(scope.shape), scope.any_dtype()) if scope.chance(0.5) else scope.tensor()
    shape = tuple(scope.pick(2, 3, 5) if length == 1 else length for length in shape_of(scope, x))
    return (x, (*scope.pick((), (2,), (3, 1)), *shape)), {}


@recipe("expand_as")
def _expand_as(scope: Scope) -> Call:
    x = scope.tensor()
    shape = tuple(3 if length == 1 else length for length in shape_of(scope, x))
    return (x, scope.tensor(shape)), {}


@recipe("permute")
def _permute(scope: Scope) -> Call:
    x = scope.tensor()
    order = list(range(len(shape_of(scope, x))))
    scope.random.shuffle(order)
    return (x, tuple(order)), {}


@recipe("movedim", "moveaxis")
def _movedim(scope: Scope) -> Call:
    x = scope.with_dims(1)
    return (x, a_dim(scope, x), a_dim(scope, x)), {}


@recipe("flip")
def _flip(scope: Scope) -> Call:
    x = scope.with_dims(1)
    dims = scope.random.sample(range(len(shape_of(scope, x))), scope.random.randint(1, len(shape_of(scope, x))))
    return scope.pick(((x, tuple(dims)), {}), ((x,), {"dims": tuple(dims)}))


@recipe("roll")
def _roll(scope: Scope) -> Call:
    x = scope.with_dims(1)
    return (x, scope.pick(0, 1, -1, 2, 7)), maybe(scope, dims=range(len(shape_of(scope, x))))


@recipe("tile", "repeat")
def _tile(scope: Scope) -> Call:
    x = scope.tensor()
    count = len(shape_of(scope, x)) + scope.below(2)
    return (x, tuple(scope.pick(1, 1, 2, 3, 0) if scope.strange else scope.pick(1, 1, 2) for _ in range(count))), {}


@recipe("repeat_interleave")
def _repeat_interleave(scope: Scope) -> Call:
    x = scope.with_dims(1)
    return (x, scope.pick(1, 2, 3)), maybe(scope, dim=range(len(shape_of(scope, x))))


@recipe("pad")
def _pad(scope: Scope) -> Call:
    x = scope.with_dims(1)
    sides = scope.random.randint(1, len(shape_of(scope, x)))
    low = -1 if scope.strange else 0
    widths = tuple(scope.random.randint(low, 3) for _ in range(2 * sides))
    return (x, widths), maybe(scope, value=(1.5, 2, 0.0, float("-inf")))


@recipe("getitem")
def _getitem(scope: Scope) -> Call:
    x = scope.with_dims(1)
    return (x, an_index(scope, x)), {}


def an_index(scope: Scope, x: Ref) -> Any:
    """What may stand in the brackets after a tensor."""
    tensor = scope.tensor_of(x)
    if scope.chance(0.12):
        return scope.tensor(shape_of(scope, x)[: scope.pick(1, tensor.ndim)], "bool")
    parts: list[Any] = []
    for length in tensor.shape[: scope.random.randint(1, tensor.ndim)]:
        kind = scope.below(10)
        if kind < 4:
            bounds = sorted((scope.random.randint(-length, length), scope.random.randint(-length, length + 1)))
            given = [None if scope.chance(0.4) else each for each in bounds]
            parts.append(slice(given[0], given[1], scope.pick(None, 1, 2, 3)))
        elif kind < 6 and length:
            parts.append(scope.random.randint(-length, length - 1))
        elif kind == 6 and length:
            parts.append(scope.indices(scope.pick((), (2,), (3,), (2, 2)), length))
        elif kind == 7:
            parts.append(None)
            parts.append(slice(None))
        elif kind == 8 and Ellipsis not in parts:
            parts.append(Ellipsis)
            break
        else:
            parts.append(slice(None))
    written = [part if isinstance(part, Ref) else Code(text_of(part)) for part in parts]
    tensors = any(isinstance(part, Ref) for part in written)
    return Index(written) if tensors else Code(", ".join(map(text_of, written)))


class Index(tuple[Any, ...]):
    """Several indices, some of which are tensors: each is an operand of its own."""


@recipe("setitem")
def _setitem(scope: Scope) -> Call:
    (x, index), _ = _getitem(scope)
    return (
        x,
        index,
        scope.number(dtype_of(scope, x)) if scope.chance(0.5) else scope.tensor((), dtype_of(scope, x)),
    ), {}
