"""The public functions: compositions of primitives, under PyTorch's names; also Tensor's methods and operators.

Each module declares what it gives: `__all__` are the public functions (``minitorch.<name>``), `METHODS` those that are
methods of `Tensor` too, `OPERATORS` what Python's operators mean, `PROPERTIES` what is read without a call. This file
collects and installs them; it is the only place that changes the class.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from ..autograd import backward, detach, register_hook, retain_grad
from ..tensor import Tensor
from .inplace_methods import in_place_methods

# Every public function by name: what the course counts when it compares 2000 operators with the primitives.
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def _install() -> None:
    for found in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name):
        module = importlib.import_module(f"{__name__}.{found.name}")
        FUNCTIONS.update({name: getattr(module, name) for name in getattr(module, "__all__", ())})
        for name in getattr(module, "METHODS", ()):
            setattr(Tensor, name, getattr(module, name))
        for name, function in getattr(module, "OPERATORS", {}).items():
            setattr(Tensor, name, function)
        for name, function in getattr(module, "PROPERTIES", {}).items():
            made = function if isinstance(function, property) else property(function, doc=function.__doc__)
            setattr(Tensor, name, made)
    for method in (backward, detach, register_hook, retain_grad):
        setattr(Tensor, method.__name__, method)
    for name, method in in_place_methods(FUNCTIONS).items():
        setattr(Tensor, name, method)


_install()
