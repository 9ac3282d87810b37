"""Public functions: compositions of primitives, under PyTorch's names; also Tensor's methods and operators.

A function of one of these files is public (``minitorch.<name>``), unless its name begins with an underscore or the
file's `__all__` leaves it out. It is a method of `Tensor`, too, if its first parameter is called `input` or `tensor`,
and a method alone if that is called `self`. `OPERATORS` are methods with other names than their functions, such as
those of Python's operators, and `PROPERTIES` are read without a call. ``make stubs`` adds a new name to the stubs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from ..autograd import gradients
from ..methods import install
from ..tensor import Tensor
from .arguments import public
from .inplace import in_place_methods

FILES = (
    "checkpoint", "conversion", "creation.copies", "creation.creation", "creation.data", "creation.generator",
    "creation.random", "devices", "movement.arranging", "movement.gathering", "movement.indexing", "movement.parts",
    "movement.selection", "movement.shaping", "operands", "pointwise.arithmetic", "pointwise.casting",
    "pointwise.comparison", "pointwise.compound", "pointwise.elementwise", "reducing.contraction", "reducing.linalg",
    "reducing.extremes", "reducing.ordering", "reducing.reductions", "reducing.statistics",
)  # fmt: skip

# Functions of an `input` that PyTorch does not have as methods.
NO_METHODS = ("bucketize", "empty_like", "full_like", "ones_like", "pad", "rand_like", "randint_like", "randn_like",
              "std_mean", "var_mean", "zeros_like")  # fmt: skip

# Every public function by name, counted when the course compares 2000 operators with the primitives.
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def public_names(module: ModuleType) -> list[str]:
    """Return the names of a file's functions that are public."""
    functions = {name: value for name, value in vars(module).items() if isinstance(value, FunctionType)}
    own = [name for name, value in functions.items() if value.__module__ == module.__name__]
    return sorted(getattr(module, "__all__", [name for name in own if not name.startswith("_")]))


def _first_parameter(function: Callable[..., Any]) -> str:
    names: tuple[str, ...] = inspect.unwrap(function).__code__.co_varnames  # `inspect.signature` takes 20 us
    return names[0] if names else ""


def _install_from(module: ModuleType, names: Iterable[str]) -> None:
    """Enter functions of a file by name, and install its methods."""
    methods: dict[str, Any] = {}
    for name in names:
        value = getattr(module, name)
        first = _first_parameter(value) if isinstance(value, FunctionType) else ""
        if first != "self":
            FUNCTIONS[name] = public(name, value, "minitorch")
        if first in ("input", "tensor", "self") and name not in NO_METHODS and name not in vars(Tensor):
            methods[name] = value
    methods |= getattr(module, "OPERATORS", {})
    for name, function in getattr(module, "PROPERTIES", {}).items():
        methods[name] = function if isinstance(function, property) else property(function, doc=function.__doc__)
    install({name: public(name, method) for name, method in methods.items()})


_install_from(gradients, ())
for file in FILES:
    module = import_module(f"{__name__}.{file}")
    _install_from(module, public_names(module))
install({name: public(name, method) for name, method in in_place_methods(FUNCTIONS).items()})
