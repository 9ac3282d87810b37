"""Indices that are data: gathered, scattered, sorted and chosen."""

from __future__ import annotations

import math

from ..arguments import Call, operand
from ..scope import Scope, UnfitError
from .table import dtype_of, like, maybe, recipe, shape_of


@recipe("gather")
def _gather(scope: Scope) -> Call:
    x = scope.with_dims(1)
    shape, dim = list(shape_of(scope, x)), scope.below(len(shape_of(scope, x)))
    length, shape[dim] = shape[dim], scope.pick(1, 2, 3)
    return (x, dim, scope.indices(tuple(shape), length)), {}


@recipe("take_along_dim")
def _take_along_dim(scope: Scope) -> Call:
    (x, dim, index), _ = _gather(scope)
    return (x, index), {"dim": dim}


@recipe("scatter", "scatter_add")
def _scatter(scope: Scope) -> Call:
    x = scope.with_dims(1)
    shape = shape_of(scope, x)
    dim = scope.below(len(shape))
    shorter = tuple(scope.random.randint(0 if scope.strange else 1, max(1, n)) if n else 0 for n in shape)
    limit = shape[dim]
    distinct = shorter[dim] == math.prod(shorter)
    index = scope.input(shorter, "int64", f"permuted {limit}") if distinct else scope.indices(shorter, limit)
    return (x, dim, index, like(scope, x, shorter)), {}


@recipe("scatter_reduce")
def _scatter_reduce(scope: Scope) -> Call:
    (x, dim, index), _ = _gather(scope)
    source = like(scope, x, shape_of(scope, index))
    return (x, dim, index, source, scope.pick("sum", "amax", "amin")), maybe(scope, include_self=(False,))


@recipe("quantile", "nanquantile")
def _quantile(scope: Scope) -> Call:
    x = scope.with_dims(1)
    return (x, scope.pick(0.0, 0.3, 1.0)), maybe(scope, dim=(0, -1), keepdim=(True,))


@recipe("bincount")
def _bincount(scope: Scope) -> Call:
    return (scope.indices((scope.pick(1, 2, 5),), 4),), maybe(scope, minlength=(2, 7))


@recipe("index_select")
def _index_select(scope: Scope) -> Call:
    x = scope.with_dims(1)
    dim = scope.below(len(shape_of(scope, x)))
    return (x, dim, scope.indices((scope.pick(1, 2, 5),), shape_of(scope, x)[dim])), {}


@recipe("index_add", "index_copy")
def _index_add(scope: Scope) -> Call:
    x = scope.with_dims(1)
    shape, dim = list(shape_of(scope, x)), scope.below(len(shape_of(scope, x)))
    length, count = shape[dim], scope.random.randint(1, max(1, shape[dim]))
    shape[dim] = count
    if length == 0:
        raise UnfitError
    return (x, dim, scope.input((count,), "int64", f"permuted {length}"), like(scope, x, tuple(shape))), {}


@recipe("index_fill")
def _index_fill(scope: Scope) -> Call:
    (x, dim, index, _), _ = _index_add(scope)
    return (x, dim, index, scope.number(dtype_of(scope, x))), {}


@recipe("index_put_")
def _index_put(scope: Scope) -> Call:
    x = scope.with_dims(1)
    shape = shape_of(scope, x)
    count = scope.random.randint(1, max(1, shape[0]))
    if not shape[0]:
        raise UnfitError
    index = scope.input((count,), "int64", f"permuted {shape[0]}")
    return (x, (index,), like(scope, x, (count, *shape[1:]))), {}


@recipe("take")
def _take(scope: Scope) -> Call:
    x = scope.tensor()
    return (x, scope.indices(scope.any_shape(), math.prod(shape_of(scope, x)))), {}


@recipe("masked_select")
def _masked(scope: Scope) -> Call:
    x = scope.tensor()
    mask = scope.tensor(scope.broadcastable(shape_of(scope, x)), "bool")
    return (x, mask), {}


@recipe("masked_fill")
def _masked_fill(scope: Scope) -> Call:
    (x, mask), _ = _masked(scope)
    return (x, mask, scope.number(dtype_of(scope, x))), {}


@recipe("histogram")
def _histogram(scope: Scope) -> Call:
    x = scope.with_dims(1, 3, "float")
    return (x, scope.pick(1, 3, 10)), {"range": (-2.0, 2.0)} | maybe(scope, density=(True, False))


@recipe("searchsorted")
def _searchsorted(scope: Scope) -> Call:
    edges = scope.input((scope.pick(1, 3, 8),), scope.any_dtype(), "sorted")
    return (edges, scope.tensor()), maybe(scope, right=(True, False))


@recipe("bucketize")
def _bucketize(scope: Scope) -> Call:
    args, kwargs = _searchsorted(scope)
    return args[::-1], kwargs


@recipe("where")
def _where(scope: Scope) -> Call:
    x = scope.tensor()
    shape = shape_of(scope, x)
    return (scope.tensor(scope.broadcastable(shape), "bool"), x, operand(scope, x)), {}


@recipe(".where")
def _where_method(scope: Scope) -> Call:
    (condition, x, other), _ = _where(scope)
    return (x, condition, other), {}


@recipe("topk")
def _topk(scope: Scope) -> Call:
    x = scope.with_dims(1)
    length = shape_of(scope, x)[-1]
    return (x, scope.random.randint(0 if scope.strange else 1, max(1, length))), maybe(scope, largest=(True, False))


@recipe("shift", "bitwise_left_shift", "bitwise_right_shift")
def _shift(scope: Scope) -> Call:
    x = scope.tensor(category="int")
    if scope.chance(0.5):
        return (x, scope.pick(0, 1, 3, 7)), {}
    return (x, scope.input(scope.broadcastable(shape_of(scope, x)), dtype_of(scope, x), "below 8")), {}


@recipe("reflected")
def _reflected(scope: Scope) -> Call:
    x = scope.tensor()
    return (scope.number(dtype_of(scope, x)), x), {}


@recipe("property", "__neg__", "__pos__", "__invert__", "__abs__")
def _alone(scope: Scope) -> Call:
    return (scope.tensor(),), {}
