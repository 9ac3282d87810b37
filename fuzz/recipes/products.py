"""Contractions: operands whose inner dimensions agree."""

from __future__ import annotations

import math

from ..arguments import Call
from ..program import Ref
from ..scope import Scope
from ..values import Shape
from .table import like, maybe, recipe, shape_of


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


@recipe("baddbmm")
def _baddbmm(scope: Scope) -> Call:
    (a, b), _ = _bmm(scope)
    shape = (*shape_of(scope, a)[:2], shape_of(scope, b)[2])
    return (like(scope, a, shape), a, b), maybe(scope, alpha=(0.5, 2), beta=(0.5, 0))


@recipe("addbmm")
def _addbmm(scope: Scope) -> Call:
    (x, a, b), kwargs = _baddbmm(scope)
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
