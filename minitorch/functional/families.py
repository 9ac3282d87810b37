"""Families of functions: one definition makes several, with names and docstrings of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..interpreters import bind
from ..ir import Primitive
from ..tensor import Tensor
from .operands import Operand, is_operand

F = TypeVar("F", bound=Callable[..., Any])


def member(name: str, **words: Any) -> Callable[[F], F]:
    """Return a decorator that names a function, and fills in the fields of its docstring.

    Example:
        >>> @member("tripled", count=3)
        ... def multiple(x):
        ...     '''Return {count} times x: ``{name}(x)``.'''
        >>> multiple.__name__, multiple.__doc__
        ('tripled', 'Return 3 times x: ``tripled(x)``.')
    """

    def named(function: F) -> F:
        function.__name__ = function.__qualname__ = name
        function.__doc__ = (function.__doc__ or "").format(name=name, **words)
        return function

    return named


# The comparisons, of which Python asks the other operand by their mirror images.
_WITHOUT_REFLECTION = ("eq", "ne", "lt", "le", "gt", "ge")


def operators(primitive: Primitive | None = None, /, **functions: Callable[..., Tensor]) -> dict[str, Any]:
    """Return Python's operators of functions by name: of ``add=add`` the methods ``__add__`` and ``__radd__``.

    With `primitive`, two tensors of one type go straight to it.
    """
    methods: dict[str, Any] = {}
    for name, function in functions.items():
        methods[f"__{name}__"], reflected = _methods(function, primitive)
        if name not in _WITHOUT_REFLECTION:
            methods[f"__r{name}__"] = reflected
    return methods


def _methods(function: Callable[..., Tensor], primitive: Primitive | None) -> tuple[Any, Any]:
    def forward(self: Tensor, other: Operand) -> Tensor:
        if primitive is not None and isinstance(other, Tensor) and self._value.dtype is other._value.dtype:
            return bind(primitive, (self, other))
        return function(self, other) if is_operand(other) else NotImplemented

    def reflected(self: Tensor, other: Operand) -> Tensor:
        return function(other, self) if is_operand(other) else NotImplemented

    return forward, reflected
