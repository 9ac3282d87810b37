"""What is written down and computed later: operators of values that have no number yet, and rows of operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import numpy as np

from minitorch.ir import PRIMITIVES

from .plain import described

Class = TypeVar("Class", bound=type)
Row = tuple[str, str, list[Any]]  # a name, an operation, and operands: a name, a number, or ``(number,)`` for an input

# Of each operation the method that writes it down, and the one whose operands come the other way round.
OPERATORS: dict[str, tuple[str, ...]] = {
    "add": ("__add__", "__radd__"),
    "sub": ("__sub__", "__rsub__"),
    "mul": ("__mul__", "__rmul__"),
    "div": ("__truediv__", "__rtruediv__"),
    "neg": ("__neg__",),
    "less": ("__lt__", "__gt__"),
}


def operators(
    write: Callable[..., Any], methods: Mapping[str, tuple[str, ...]] = OPERATORS
) -> Callable[[Class], Class]:
    """A class decorator: the operators of its objects call ``write(operation, *operands)``."""

    def decorate(kind: Class) -> Class:
        for operation, names in methods.items():
            for name, turn in zip(names, (1, -1), strict=False):
                setattr(kind, name, lambda *of, operation=operation, turn=turn: write(operation, *of[::turn]))
        return kind

    return decorate


def refusal(message: str) -> Any:
    """A method that raises a TypeError, for what cannot be written down."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise TypeError(message)

    return refuse


def run_rows(
    rows: Any,
    operations: tuple[str, ...],
    inputs: Mapping[str, float],
    number: Callable[[float], Any] = float,
    unknown: str = "",
) -> dict[str, float]:
    """The values of inputs and rows, by their names.

    Args:
        rows: a list of `Row`, which may be anything: they are a student's.
        operations: the names of the primitives that may occur.
        inputs: the values of names that no row makes.
        number: the kind of number in which it is computed.
        unknown: what to say besides of a name that is not known.

    Raises:
        ValueError: for rows that cannot be run.
    """
    values = dict(inputs)

    def value(operand: Any) -> Any:
        if type(operand) is str and operand not in values:
            raise ValueError(f"the operand {operand!r} is read before a row has made it{unknown}")
        found = values[operand] if type(operand) is str else operand[0] if type(operand) is tuple else operand
        if type(found) not in (int, float):
            raise ValueError(f"an operand is the name of a row or a float, and not {described(found)}")
        return number(found)

    for row in rows:
        if type(row) not in (tuple, list) or len(row) != 3 or type(row[0]) is not str:
            raise ValueError(f"a row is (name, operation, operands), and not {described(row)}")
        target, operation, operands = row
        if operation not in operations or type(operands) not in (tuple, list):
            raise ValueError(f"the operation of {target} is none of {', '.join(operations)}")
        if len(operands) != (2 if PRIMITIVES[operation].kind == "binary" else 1):
            raise ValueError(f"{operation} has {len(operands)} operands")
        if target in values:
            raise ValueError(f"two results are called {target}")
        with np.errstate(all="ignore"):
            values[target] = float(PRIMITIVES[operation].evaluate(*map(value, operands)))
    return values
