"""Public functions: compositions of primitives, under PyTorch's names; also Tensor's methods and operators.

Each module declares its functions: `__all__` are the public ones (``minitorch.<name>``), `METHODS` those that are also
methods of `Tensor`, `OPERATORS` the meanings of Python's operators, `PROPERTIES` those read without a call. This file
collects and installs them. ``make stubs`` adds a new name to the stubs.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..autograd import gradients
from ..methods import install
from .arguments import public
from .inplace_methods import in_place_methods

# Every public function by name, counted when the course compares 2000 operators with the primitives.
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def _methods_of(module: ModuleType) -> dict[str, Callable[..., Any] | property]:
    """Return the methods of tensors that a module declares, by name."""
    methods = {name: getattr(module, name) for name in getattr(module, "METHODS", ())}
    methods |= getattr(module, "OPERATORS", {})
    for name, function in getattr(module, "PROPERTIES", {}).items():
        methods[name] = function if isinstance(function, property) else property(function, doc=function.__doc__)
    return methods


def _public(methods: dict[str, Any]) -> dict[str, Any]:
    return {name: public(name, method) for name, method in methods.items()}


def _install() -> None:
    install(_public(_methods_of(gradients)))
    for found in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name):
        module = importlib.import_module(f"{__name__}.{found.name}")
        methods = _methods_of(module)
        for name in getattr(module, "__all__", ()):
            FUNCTIONS[name] = public(name, getattr(module, name), "minitorch")
        install(_public(methods))
    install(_public(in_place_methods(FUNCTIONS)))


_install()
