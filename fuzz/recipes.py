"""Arguments for the functions whose operands depend on each other: matrix products, windows, indices, shapes.

One row per function, a few lines each: what has to fit is made to fit, everything else is left to the dice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from .arguments import Call, a_dim, operand
from .program import Code, Ref
from .scope import Scope, UnfitError
from .values import Shape

Recipe = Callable[[Scope], Call]
RECIPES: dict[str, Recipe] = {}


def recipe(*names: str) -> Callable[[Recipe], Recipe]:
    """Enter a function of a scope as the row of these public functions."""

    def enter(function: Recipe) -> Recipe:
        RECIPES.update(dict.fromkeys(names, function))
        return function

    return enter


def shape_of(scope: Scope, ref: Ref) -> Shape:
    """The shape of a value."""
    return tuple(scope.tensor_of(ref).shape)


def dtype_of(scope: Scope, ref: Ref) -> str:
    """The name of a value's type."""
    return str(scope.tensor_of(ref).dtype.name)


def like(scope: Scope, ref: Ref, shape: Shape) -> Ref:
    """A value of the type of another one, and rarely of another type."""
    return scope.tensor(shape, "" if scope.chance(0.04) else dtype_of(scope, ref))


def maybe(scope: Scope, **choices: Iterable[Any]) -> dict[str, Any]:
    """Some of these named operands."""
    return {name: scope.pick(*values) for name, values in choices.items() if scope.chance(0.4)}


def factors(scope: Scope, size: int) -> Shape:
    """A shape of so many elements."""
    shape: list[int] = []
    while size > 1 and len(shape) < 3 and scope.chance(0.75):
        divisors = [n for n in range(1, min(size, 1000) + 1) if size % n == 0]
        shape.append(scope.pick(*divisors))
        size //= shape[-1]
    shape.insert(scope.below(len(shape) + 1), size)
    return tuple(shape)


# Joined and cut ---------------------------------------------------------------------------------------------------


@recipe("cat", "concat", "concatenate", "hstack", "vstack", "row_stack")
def _joined(scope: Scope) -> Call:
    first = scope.with_dims(1)
    shape, dim = shape_of(scope, first), a_dim(scope, first)
    parts = [first]
    for _ in range(scope.below(3)):
        other = list(shape)
        if -len(shape) <= dim < len(shape):
            other[dim] = scope.pick(shape[dim], 1, 2, 3)
        parts.append(like(scope, first, tuple(other)))
    return ([*parts],), {}


@recipe("stack")
def _stack(scope: Scope) -> Call:
    first = scope.tensor()
    parts = [first, *(like(scope, first, shape_of(scope, first)) for _ in range(scope.below(3)))]
    return ([*parts],), maybe(scope, dim=range(-1, len(shape_of(scope, first)) + 1))


@recipe("cat_dim")
def _cat_dim(scope: Scope) -> Call:
    args, _ = _joined(scope)
    return args, {"dim": 0}


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


# Shapes -------------------------------------------------------------------------------------------------------------


@recipe("reshape", "view", "property view")
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
    return Code(", ".join(code(part) for part in parts)) if not any(isinstance(p, Ref) for p in parts) else Index(parts)


class Index(tuple):
    """A tuple of indices, some of which are tensors."""

    def __new__(cls, parts: Iterable[Any]) -> Index:
        """The parts."""
        return super().__new__(cls, [part if isinstance(part, Ref) else Code(code(part)) for part in parts])


def code(part: Any) -> str:
    """A part of an index, as in brackets."""
    from .program import text_of

    return text_of(part)


@recipe("setitem")
def _setitem(scope: Scope) -> Call:
    (x, index), _ = _getitem(scope)
    return (
        x,
        index,
        scope.number(dtype_of(scope, x)) if scope.chance(0.5) else scope.tensor((), dtype_of(scope, x)),
    ), {}


# Indices --------------------------------------------------------------------------------------------------------


@recipe("gather", "take_along_dim")
def _gather(scope: Scope) -> Call:
    x = scope.with_dims(1)
    shape, dim = list(shape_of(scope, x)), scope.below(len(shape_of(scope, x)))
    length, shape[dim] = shape[dim], scope.pick(1, 2, 3)
    return (x, dim, scope.indices(tuple(shape), length)), {}


RECIPES["take_along_dim"] = lambda scope: _swapped(_gather(scope))


def _swapped(call: Call) -> Call:
    (x, dim, index), _ = call
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


@recipe("index_select")
def _index_select(scope: Scope) -> Call:
    x = scope.with_dims(1)
    dim = scope.below(len(shape_of(scope, x)))
    return (x, dim, scope.indices((scope.pick(1, 2, 5),), shape_of(scope, x)[dim])), {}


@recipe("index_add", "index_copy", "index_fill")
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


@recipe("masked_fill", "masked_select")
def _masked(scope: Scope) -> Call:
    x = scope.tensor()
    mask = scope.tensor(scope.broadcastable(shape_of(scope, x)), "bool")
    return (x, mask), {}


RECIPES["masked_fill"] = lambda scope: _valued(scope, _masked(scope))


def _valued(scope: Scope, call: Call) -> Call:
    return (*call[0], scope.number(dtype_of(scope, call[0][0]))), {}


@recipe("searchsorted")
def _searchsorted(scope: Scope) -> Call:
    edges = scope.input((scope.pick(1, 3, 8),), scope.any_dtype(), "whole")
    return (Code(f"mt.sort({edges.name})[0]"), scope.tensor()), maybe(scope, right=(True, False))


@recipe("bucketize")
def _bucketize(scope: Scope) -> Call:
    args, kwargs = _searchsorted(scope)
    return args[::-1], kwargs


@recipe("where")
def _where(scope: Scope) -> Call:
    x = scope.tensor()
    shape = shape_of(scope, x)
    return (scope.tensor(scope.broadcastable(shape), "bool"), x, operand(scope, x)), {}


RECIPES[".where"] = lambda scope: (lambda call: ((call[0][1], call[0][0], call[0][2]), {}))(_where(scope))


@recipe("topk")
def _topk(scope: Scope) -> Call:
    x = scope.with_dims(1)
    length = shape_of(scope, x)[-1]
    return (x, scope.random.randint(0 if scope.strange else 1, max(1, length))), maybe(scope, largest=(True, False))


@recipe("shift")
def _shift(scope: Scope) -> Call:
    x = scope.tensor(category="int")
    return (
        x,
        scope.pick(
            scope.pick(0, 1, 3, 7), scope.input(scope.broadcastable(shape_of(scope, x)), dtype_of(scope, x), "below 8")
        ),
    ), {}


RECIPES["bitwise_left_shift"] = RECIPES["bitwise_right_shift"] = _shift


@recipe("reflected")
def _reflected(scope: Scope) -> Call:
    x = scope.tensor()
    return (scope.number(dtype_of(scope, x)), x), {}


@recipe("property", "__neg__", "__pos__", "__invert__", "__abs__")
def _alone(scope: Scope) -> Call:
    return (scope.tensor(),), {}


# Products -------------------------------------------------------------------------------------------------------


def matrices(scope: Scope, category: str = "") -> tuple[Ref, Ref, int, int, int]:
    """[m, k] and [k, n]."""
    a = scope.with_dims(2, 2, category)
    m, k = shape_of(scope, a)
    n = scope.length()
    return a, like(scope, a, (k, n)), m, k, n


@recipe("matmul")
def _matmul(scope: Scope) -> Call:
    a = scope.with_dims(1)
    shape = shape_of(scope, a)
    k = shape[-1]
    choice = scope.below(5)
    if choice == 0:
        other: Shape = (k,)
    elif choice == 1 and len(shape) > 2:
        other = (*scope.broadcastable(shape[:-2]), k, scope.length())
    else:
        other = (k, scope.length())
    return (a, like(scope, a, other)), {}


@recipe("mm")
def _mm(scope: Scope) -> Call:
    a, b, *_ = matrices(scope)
    return (a, b), {}


@recipe("mv")
def _mv(scope: Scope) -> Call:
    a = scope.with_dims(2, 2)
    return (a, like(scope, a, shape_of(scope, a)[1:])), {}


@recipe("bmm")
def _bmm(scope: Scope) -> Call:
    a = scope.with_dims(3, 3)
    batch, _, k = shape_of(scope, a)
    return (a, like(scope, a, (batch, k, scope.length()))), {}


@recipe("dot", "vdot")
def _dot(scope: Scope) -> Call:
    a = scope.with_dims(1, 1)
    return (a, like(scope, a, shape_of(scope, a))), {}


@recipe("inner")
def _inner(scope: Scope) -> Call:
    a = scope.with_dims(1, 2)
    return (a, like(scope, a, (scope.pick(2, 3), *shape_of(scope, a)[-1:]))), {}


@recipe("outer", "ger")
def _outer(scope: Scope) -> Call:
    a = scope.with_dims(1, 1)
    return (a, like(scope, a, scope.any_shape(1))), {}


@recipe("addmm")
def _addmm(scope: Scope) -> Call:
    a, b, m, _, n = matrices(scope)
    return (like(scope, a, scope.broadcastable((m, n))), a, b), maybe(scope, alpha=(0.5, 2), beta=(0.5, 0, 2))


@recipe("addmv")
def _addmv(scope: Scope) -> Call:
    (a, v), _ = _mv(scope)
    return (like(scope, a, scope.broadcastable(shape_of(scope, a)[:1])), a, v), maybe(scope, alpha=(2,), beta=(0, 2))


@recipe("addr")
def _addr(scope: Scope) -> Call:
    (a, b), _ = _outer(scope)
    return (like(scope, a, shape_of(scope, a) + shape_of(scope, b)), a, b), maybe(scope, alpha=(2,), beta=(0, 2))


@recipe("baddbmm", "addbmm")
def _baddbmm(scope: Scope) -> Call:
    (a, b), _ = _bmm(scope)
    shape = (*shape_of(scope, a)[:2], shape_of(scope, b)[2])
    return (like(scope, a, shape), a, b), maybe(scope, alpha=(0.5, 2), beta=(0.5, 0))


RECIPES["addbmm"] = lambda scope: _less_batch(scope, _baddbmm(scope))


def _less_batch(scope: Scope, call: Call) -> Call:
    (x, a, b), kwargs = call
    return (like(scope, a, shape_of(scope, x)[1:]), a, b), kwargs


@recipe("kron")
def _kron(scope: Scope) -> Call:
    a = scope.with_dims(1, 2)
    return (a, like(scope, a, (2, 3)[: scope.pick(1, 2)])), {}


@recipe("cross")
def _cross(scope: Scope) -> Call:
    shape = (*scope.any_shape(scope.below(3)), 3)
    a = scope.tensor(shape)
    return (a, like(scope, a, shape)), {"dim": -1}


@recipe("tensordot")
def _tensordot(scope: Scope) -> Call:
    a = scope.with_dims(2, 3)
    shape = shape_of(scope, a)
    count = scope.pick(0, 1, 2) if math.prod(shape) < 100 else scope.pick(1, 2)
    return (a, like(scope, a, (*shape[len(shape) - count :], scope.pick(2, 3)))), {"dims": count}


@recipe("einsum")
def _einsum(scope: Scope) -> Call:
    a = scope.with_dims(2, 2)
    m, k = shape_of(scope, a)
    equation = scope.pick("ij,jk->ik", "ij,jk->ki", "ij,jk", "ij->ji", "ij->", "ij,ij->i", "ij,kj->ik", "i...->...")
    if "," not in equation:
        return (equation, a), {}
    other = {"ij": (m, k), "kj": (scope.pick(2, 5), k)}.get(equation[3:5], (k, scope.pick(1, 4)))
    return (equation, a, like(scope, a, other)), {}


# Creation -------------------------------------------------------------------------------------------------------


def typed(scope: Scope) -> dict[str, Any]:
    """A type, or none."""
    return {"dtype": scope.dtype_code()} if scope.chance(0.5) else {}


@recipe("zeros", "ones", "rand", "randn", "new_zeros", "new_ones")
def _filled(scope: Scope) -> Call:
    return (scope.broadcastable(scope.shape),), typed(scope)


@recipe("full")
def _full(scope: Scope) -> Call:
    dtype = typed(scope)
    return (scope.broadcastable(scope.shape), scope.number()), dtype


@recipe("new_full")
def _new_full(scope: Scope) -> Call:
    x = scope.tensor()
    return (x, scope.broadcastable(scope.shape), scope.number(dtype_of(scope, x))), {}


RECIPES["new_zeros"] = RECIPES["new_ones"] = lambda scope: ((scope.tensor(), scope.shape), typed(scope))


@recipe("eye")
def _eye(scope: Scope) -> Call:
    return (scope.pick(1, 2, 3, 5),), {**maybe(scope, m=(1, 4)), **typed(scope)}


@recipe("arange")
def _arange(scope: Scope) -> Call:
    return scope.pick((scope.below(9),), (1, 7, 2), (0.0, 1.0, 0.25), (5, -3, -2), (2, 2)), typed(scope)


@recipe("linspace", "logspace")
def _linspace(scope: Scope) -> Call:
    return (scope.pick(-1, 0.0, 2), scope.pick(1, 3.5), scope.pick(0, 1, 2, 5, 17)), {}


@recipe("tensor", "as_tensor", "new_tensor")
def _tensor(scope: Scope) -> Call:
    data = [scope.number() for _ in range(scope.random.randint(0, 3))]
    return (scope.pick(data, [data, data], scope.number()),), typed(scope)


RECIPES["new_tensor"] = lambda scope: ((scope.tensor(), [1, scope.number(), 3]), typed(scope))


@recipe("randint")
def _randint(scope: Scope) -> Call:
    return (scope.pick(-3, 0), scope.pick(2, 9, 1000), scope.broadcastable(scope.shape)), {}


@recipe("randint_like")
def _randint_like(scope: Scope) -> Call:
    return (scope.tensor(), scope.pick(0, 2), scope.pick(3, 100)), {}


@recipe("randperm")
def _randperm(scope: Scope) -> Call:
    return (scope.pick(0, 1, 7, 33),), {}


@recipe("normal")
def _normal(scope: Scope) -> Call:
    return (scope.pick(0.0, 1.0), scope.pick(1.0, 2.0), scope.shape), {}


@recipe("bernoulli")
def _bernoulli(scope: Scope) -> Call:
    return (scope.input(scope.shape, scope.any_dtype("float"), "unit"),), maybe(scope, p=(0.0, 0.3, 1.0))


@recipe("dropout")
def _dropout(scope: Scope) -> Call:
    return (scope.tensor(category="float"), scope.pick(0.0, 0.3, 0.5, 1.0)), maybe(scope, training=(True, False))


@recipe("normal_", "uniform_")
def _drawn(scope: Scope) -> Call:
    return (scope.tensor(category="float"), scope.pick(0.0, -1.0), scope.pick(1.0, 2.0)), {}


@recipe("bernoulli_")
def _drawn_bits(scope: Scope) -> Call:
    return (scope.tensor(), scope.pick(0.0, 0.3, 1.0)), {}


# Conversions and copies -------------------------------------------------------------------------------------------


@recipe("to")
def _to(scope: Scope) -> Call:
    return (scope.tensor(), scope.dtype_code()), maybe(scope, copy=(True, False))


@recipe("type")
def _type(scope: Scope) -> Call:
    return (scope.tensor(), scope.dtype_code()), {}


@recipe("type_as")
def _type_as(scope: Scope) -> Call:
    return (scope.tensor(), scope.tensor()), {}


@recipe("copy_")
def _copy(scope: Scope) -> Call:
    x = scope.tensor()
    return (x, scope.tensor(scope.broadcastable(shape_of(scope, x)))), {}


@recipe("fill_")
def _fill(scope: Scope) -> Call:
    x = scope.tensor()
    return (x, scope.number(dtype_of(scope, x))), {}


@recipe("result_type")
def _result_type(scope: Scope) -> Call:
    x = scope.tensor()
    return (x, operand(scope, x)), {}


@recipe("element_size", "dim", "numel", "nelement", "is_contiguous", "zero_", "contiguous", "detach", "item", "size")
def _itself(scope: Scope) -> Call:
    return (scope.tensor(),), {}


# Neural networks --------------------------------------------------------------------------------------------------


def images(scope: Scope, dims: int, channels: int, least: int = 1) -> Ref:
    """[batch, channels, ...], sometimes without a batch, of floats."""
    lengths = (
        (least + scope.below(9) for _ in range(dims))
        if not scope.large
        else scope.random.sample((7, 14, 16, 28, 31), dims)
    )
    batch = () if scope.chance(0.1) else (scope.pick(1, 2, 3) if not scope.strange else scope.pick(0, 1, 2),)
    return scope.tensor((*batch, channels, *(max(least, n) for n in lengths)), scope.any_dtype("float"))


def convolution(dims: int) -> Recipe:
    """A convolution over so many dimensions."""

    def make(scope: Scope) -> Call:
        groups = scope.pick(1, 1, 1, 2, 3)
        into, out = groups * scope.pick(1, 2, 3), groups * scope.pick(1, 2, 4)
        kernel = tuple(scope.pick(1, 2, 3, 3, 4) for _ in range(dims))
        dilation = scope.pick(1, 1, 1, 2)
        padding = scope.pick(0, 0, 1, 2, "same", "valid")
        stride = 1 if padding == "same" else scope.pick(1, 1, 2, 3)
        x = images(scope, dims, into, least=max((k - 1) * dilation + 1 for k in kernel))
        weight = like(scope, x, (out, into // groups, *kernel))
        bias = like(scope, x, (out,)) if scope.chance(0.5) else None
        return (x, weight, bias, stride, padding, dilation, groups), {}

    return make


for _dims in (1, 2, 3):
    RECIPES[f"conv{_dims}d"] = convolution(_dims)


def pooling(dims: int, average: bool) -> Recipe:
    """A pooling over so many dimensions."""

    def make(scope: Scope) -> Call:
        kernel = scope.pick(1, 2, 2, 3, 3)
        x = images(scope, dims, scope.pick(1, 2, 3), least=kernel)
        named = maybe(scope, stride=(1, 2, 3), padding=range(kernel // 2 + 1))
        named |= maybe(scope, count_include_pad=(True, False)) if average else {}
        return (x, kernel), named

    return make


for _dims in (1, 2):
    RECIPES[f"max_pool{_dims}d"] = pooling(_dims, False)
    RECIPES[f"avg_pool{_dims}d"] = pooling(_dims, True)
    RECIPES[f"adaptive_avg_pool{_dims}d"] = lambda scope, dims=_dims: (
        (images(scope, dims, scope.pick(1, 2)), scope.pick(1, 2, 3)),
        {},
    )


@recipe("linear")
def _linear(scope: Scope) -> Call:
    x = scope.with_dims(1, 3, "float")
    out = scope.length()
    bias = like(scope, x, (out,)) if scope.chance(0.6) else None
    return (x, like(scope, x, (out, shape_of(scope, x)[-1])), bias), {}


def scaled(scope: Scope, x: Ref, shape: Shape) -> dict[str, Any]:
    """A weight and a bias, or only one, or none."""
    return {name: like(scope, x, shape) for name in ("weight", "bias") if scope.chance(0.4)}


@recipe("batch_norm")
def _batch_norm(scope: Scope) -> Call:
    x = scope.with_dims(2, 4, "float")
    shape = shape_of(scope, x)[1:2]
    training = scope.chance(0.6)
    dtype = dtype_of(scope, x)
    running = [
        scope.input(shape, dtype, kind) if not training or scope.chance(0.6) else None for kind in ("normal", "unit")
    ]
    if None in running:
        running = [None, None]
    return (x, *running), {**scaled(scope, x, shape), "training": training}


@recipe("layer_norm", "rms_norm")
def _layer_norm(scope: Scope) -> Call:
    x = scope.with_dims(1, 4, "float")
    shape = shape_of(scope, x)[-scope.pick(1, 1, 2) :]
    return (x, shape), scaled(scope, x, shape)


RECIPES["rms_norm"] = lambda scope: (lambda c: (c[0], {k: v for k, v in c[1].items() if k != "bias"}))(
    _layer_norm(scope)
)


@recipe("group_norm")
def _group_norm(scope: Scope) -> Call:
    x = scope.with_dims(2, 4, "float")
    channels = shape_of(scope, x)[1]
    groups = [n for n in range(1, channels + 1) if channels % n == 0] or [1, 2]
    return (x, scope.pick(*groups)), scaled(scope, x, (channels,))


@recipe("embedding")
def _embedding(scope: Scope) -> Call:
    table = scope.with_dims(2, 2, "float")
    return (scope.indices(scope.any_shape(scope.below(3)), shape_of(scope, table)[0]), table), {}


@recipe("one_hot")
def _one_hot(scope: Scope) -> Call:
    count = scope.pick(1, 3, 10)
    return (scope.input(scope.any_shape(scope.below(3)), "int64", f"below {count}"), count), {}


def reduced(scope: Scope) -> dict[str, Any]:
    """How a loss is put together."""
    return maybe(scope, reduction=("none", "mean", "sum"))


@recipe("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "kl_div")
def _loss(scope: Scope) -> Call:
    x = scope.tensor(category="float")
    return (x, like(scope, x, shape_of(scope, x))), reduced(scope)


@recipe("binary_cross_entropy", "binary_cross_entropy_with_logits")
def _binary(scope: Scope) -> Call:
    shape, dtype = scope.shape, scope.any_dtype("float")
    return (scope.input(shape, dtype, "unit"), scope.input(shape, dtype, "unit")), reduced(scope)


def classes(scope: Scope) -> tuple[Ref, Ref, int]:
    """Scores [n, classes] or [n, classes, d] and labels."""
    x = scope.with_dims(1, 3, "float")
    shape = shape_of(scope, x)
    place = 1 if len(shape) > 1 else 0
    return x, scope.indices((*shape[:place], *shape[place + 1 :]), shape[place]), shape[place]


@recipe("cross_entropy")
def _cross_entropy(scope: Scope) -> Call:
    x, labels, count = classes(scope)
    named = reduced(scope) | maybe(scope, label_smoothing=(0.1, 0.5), ignore_index=(0, 1))
    if scope.chance(0.2):
        named["weight"] = scope.input((count,), dtype_of(scope, x), "unit")
    if scope.chance(0.2):
        return (x, scope.input(shape_of(scope, x), dtype_of(scope, x), "unit")), reduced(scope)
    return (x, labels), named


@recipe("nll_loss")
def _nll_loss(scope: Scope) -> Call:
    x, labels, _ = classes(scope)
    return (x, labels), reduced(scope)


@recipe("scaled_dot_product_attention")
def _attention(scope: Scope) -> Call:
    batch = scope.any_shape(scope.pick(0, 1, 2))
    n, m, k, v = (scope.length() for _ in range(4))
    dtype = scope.any_dtype("float")
    causal = scope.chance(0.4)
    if math.prod(batch) * n * m > 300_000:
        raise UnfitError
    query, key = scope.tensor((*batch, n, k), dtype), scope.tensor((*batch, m, k), dtype)
    named: dict[str, Any] = {"is_causal": True} if causal else {}
    if not causal and scope.chance(0.3):
        named["attn_mask"] = scope.tensor((n, m), scope.pick("bool", dtype))
    return (query, key, scope.tensor((*batch, m, v), dtype)), named


@recipe("cosine_similarity")
def _cosine(scope: Scope) -> Call:
    x = scope.with_dims(1, 4, "float")
    return (x, like(scope, x, scope.broadcastable(shape_of(scope, x)))), {"dim": a_dim(scope, x)}
