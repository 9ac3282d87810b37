"""What recipes share: the table, and operands that fit others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..arguments import Call
from ..program import Ref
from ..scope import Scope
from ..values import Shape

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
