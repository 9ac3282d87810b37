"""`TensorMethods`, the base class of `Tensor` whose methods rooms further down install.

A method such as ``x.sum()`` is a composition of primitives, and primitives are made of tensors: so the class cannot be
written down where `Tensor` is, and is filled by `install` as the package is imported. The stub beside this file
(``methods.pyi``, written by ``make stubs``) tells type checkers and editors what the class then holds.
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
