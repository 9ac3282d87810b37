"""What stands where a part of the engine is withheld: it can be imported and named, and raises when it is used.

An exercise declares what it needs of the engine (`harness.needs`). When work is graded, and in ``minitorch check``, the
rest is not there. This module imports nothing of the package, because it is imported first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from types import ModuleType
from typing import Any, NoReturn


class WithheldError(RuntimeError):
    """A part of the engine was used that the exercise does not need: it would do the task, or has no part in it."""


def refuse(name: str) -> NoReturn:
    """Say that a part of the engine, by its whole name, is withheld.

    Raises:
        WithheldError: always.
    """
    raise WithheldError(f"{name} is no part of this exercise, and is not there when it is graded")


class Withheld(type):
    """The type of all names of a withheld module. They are classes, so that they can be asked of with `isinstance`."""

    def __call__(cls, *_: object, **__: object) -> NoReturn:
        refuse(f"{cls.__module__}.{cls.__name__}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        refuse(f"{cls.__module__}.{cls.__name__}.{name}")

    def __iter__(cls) -> Iterator[Any]:
        """Nothing: a module may go through a table of another one while it is imported."""
        return iter(())

    keys = __iter__


def names_of(module: str, among: Collection[str] | None = None) -> Callable[[str], Any]:
    """The `__getattr__` of a withheld module: it has every name that is asked for, or those `among` some.

    Example:
        >>> mse_loss = names_of("minitorch.nn.functional")("mse_loss")
        >>> try:
        ...     mse_loss(1, 2)
        ... except WithheldError as error:
        ...     print(error)
        minitorch.nn.functional.mse_loss is no part of this exercise, and is not there when it is graded
    """

    def named(name: str) -> Any:
        if name.startswith("__") or (among is not None and name not in among):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return Withheld(name, (), {"__module__": module})

    return named


def complete(module: dict[str, Any], public: Collection[str], hidden: Collection[str]) -> None:
    """Let the package have all of its public names, also those that come from withheld modules.

    Args:
        module: its ``globals()``.
        public: the names.
        hidden: those among them that are no module, and that a submodule of the same name stands in the way of.
    """
    found, named = module.get("__getattr__"), names_of(str(module["__name__"]), public)

    def later(name: str) -> Any:
        """Take a name from its module, which may be withheld, or say that it is."""
        try:
            return found(name) if found else named(name)
        except AttributeError:
            return named(name)

    module["__getattr__"] = later
    module.update((name, named(name)) for name in hidden if isinstance(module.get(name), ModuleType))
