"""`TensorMethods`, the base class of `Tensor`: the operators, methods and properties that other rooms give to it.

A method such as ``x.sum()`` is a composition of primitives, and primitives are made of tensors: so the class cannot be
written down where `Tensor` is, and is filled by `install` as the package is imported. The stub beside this file
(``methods.pyi``) says for type checkers and editors what it then holds. ``make stubs`` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class TensorMethods:
    """The methods and operators of `Tensor`; its data is in `Tensor` itself."""

    __slots__ = ()


def install(methods: Mapping[str, Callable[..., Any] | property]) -> None:
    """Give tensors methods, operators or properties, by name."""
    for name, method in methods.items():
        setattr(TensorMethods, name, method)
