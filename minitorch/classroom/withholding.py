"""Out of use for a while: the parts of the engine that an exercise does not need, in a process that has all of them.

In a student's notebook the whole engine is loaded. While a check calls the student's function, whatever will not be
there when the exercise is graded raises, by whatever name it is reached: the code of the functions is exchanged, not
their names. So nobody learns only from the grade that a function did the task for them. This is no protection; it can
be undone, and where a class is graded there is nothing to undo (`grading.sandbox.image`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import CodeType, FunctionType

from .asks.needs import Needs
from .parts import NAME, kept, withheld_names

KEPT = ("__del__", "__eq__", "__getattr__", "__hash__", "__repr__", "__str__")  # which Python calls by itself


@contextmanager
def withheld(needs: Needs) -> Iterator[None]:
    """See that nothing is used that an exercise does not need.

    Args:
        needs: what it needs.

    Example:
        >>> import minitorch as mt
        >>> from minitorch.classroom.asks.graph import NEEDS
        >>> from minitorch.classroom.withheld import WithheldError
        >>> try:
        ...     with withheld(NEEDS):
        ...         mt.nn.functional.mse_loss(mt.ones(2), mt.ones(2))
        ... except WithheldError as error:
        ...     print(error)
        minitorch.nn.functional.losses.mse_loss is no part of this exercise, and is not there when it is graded
    """
    codes = _codes(needs, len(sys.modules))
    before = [(function, function.__code__) for function, _ in codes]
    try:
        for function, code in codes:
            function.__code__ = code
        yield
    finally:
        for function, code in before:
            function.__code__ = code


@cache
def _codes(needs: Needs, loaded: int) -> tuple[tuple[FunctionType, CodeType], ...]:
    """The functions that are withheld, each with the code that it has meanwhile; `loaded` is how many modules are."""
    parts, names = kept(needs), withheld_names(needs)
    found = []
    for module in [name for name in sys.modules if name.startswith(f"{NAME}.")]:
        if module.startswith(f"{NAME}.classroom"):
            continue
        for name, function in _functions(sys.modules[module], module):
            if module not in parts or name in names.get(module, ()):
                found.append((function, _refusing(f"{module}.{name}")))
    return tuple(found)


def _functions(holder: object, module: str, inside: str = "") -> Iterator[tuple[str, FunctionType]]:
    """The functions that are defined in a module, and the methods of its classes, by their names in it."""
    for name, value in list(vars(holder).items()):
        value = getattr(value, "__func__", value)  # of a static method, or one of the class
        if isinstance(value, FunctionType):
            if value.__module__ == module and name not in KEPT and not value.__code__.co_freevars:
                yield f"{inside}{name}", value
        elif isinstance(value, type) and value.__module__ == module and not inside:
            yield from _functions(value, module, f"{name}.")


def _template(*_: object, **__: object) -> None:
    from minitorch.classroom.withheld import refuse

    refuse("NAME")


def _refusing(name: str) -> CodeType:
    code = _template.__code__
    return code.replace(co_consts=tuple(name if each == "NAME" else each for each in code.co_consts))
