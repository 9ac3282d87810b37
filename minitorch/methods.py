"""`TensorMethods`, the base class of `Tensor` whose methods rooms further down install.

A method such as ``x.sum()`` is a composition of primitives, and primitives are made of tensors. So the class cannot be
written where `Tensor` is; `install` fills it as the package is imported. The stub beside this file (``methods.pyi``,
written by ``make stubs``) lists the methods for type checkers and editors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .drawable import Drawable


class TensorMethods(Drawable):
    """The methods and operators of `Tensor`; its data is in `Tensor` itself."""

    __slots__ = ()


def install(methods: Mapping[str, Callable[..., Any] | property], into: type = TensorMethods) -> None:
    """Give a class methods, operators or properties, by name."""
    for name, method in methods.items():
        setattr(into, name, method)
