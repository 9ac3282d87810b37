"""New tensors, random ones, and conversions of old ones."""

from __future__ import annotations

from typing import Any

from ..arguments import Call, operand
from ..scope import Scope
from .table import dtype_of, maybe, recipe, shape_of


def typed(scope: Scope) -> dict[str, Any]:
    """A type, or none."""
    return {"dtype": scope.dtype_code()} if scope.chance(0.5) else {}


@recipe("zeros", "ones", "rand", "randn")
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


@recipe("new_zeros", "new_ones")
def _new_filled(scope: Scope) -> Call:
    return (scope.tensor(), scope.shape), typed(scope)


@recipe("eye")
def _eye(scope: Scope) -> Call:
    return (scope.pick(1, 2, 3, 5),), {**maybe(scope, m=(1, 4)), **typed(scope)}


@recipe("arange")
def _arange(scope: Scope) -> Call:
    return scope.pick((scope.below(9),), (1, 7, 2), (0.0, 1.0, 0.25), (5, -3, -2), (2, 2)), typed(scope)


@recipe("linspace", "logspace")
def _linspace(scope: Scope) -> Call:
    return (scope.pick(-1, 0.0, 2), scope.pick(1, 3.5), scope.pick(0, 1, 2, 5, 17)), {}


@recipe("tensor", "as_tensor")
def _tensor(scope: Scope) -> Call:
    data = [scope.number() for _ in range(scope.random.randint(0, 3))]
    return (scope.pick(data, [data, data], scope.number()),), typed(scope)


@recipe("new_tensor")
def _new_tensor(scope: Scope) -> Call:
    return (scope.tensor(), [1, scope.number(), 3]), typed(scope)


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


@recipe("multinomial")
def _multinomial(scope: Scope) -> Call:
    shape = (scope.pick(1, 3, 5),)
    return (scope.input(shape, scope.any_dtype("float"), "unit"), scope.pick(1, 4)), {"replacement": True}


@recipe("dropout")
def _dropout(scope: Scope) -> Call:
    return (scope.tensor(category="float"), scope.pick(0.0, 0.3, 0.5, 1.0)), maybe(scope, training=(True, False))


@recipe("normal_", "uniform_")
def _drawn(scope: Scope) -> Call:
    return (scope.tensor(category="float"), scope.pick(0.0, -1.0), scope.pick(1.0, 2.0)), {}


@recipe("dropout1d", "dropout2d")
def _channels_dropped(scope: Scope) -> Call:
    return (scope.with_dims(3, 3, "float"), scope.pick(0.0, 0.3, 1.0)), maybe(scope, training=(True, False))


@recipe("bernoulli_")
def _drawn_bits(scope: Scope) -> Call:
    return (scope.tensor(), scope.pick(0.0, 0.3, 1.0)), {}


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
