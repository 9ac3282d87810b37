"""The blank of notebook 05: the structure of the operations that wait, which is the key of the compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import minitorch as mt

from ..blanking import Blank, Case

waiting: list[Any] = []  # the notebook has its own


def structure(waiting: Any) -> Any:
    """Return the rows of what waits, and the values that it reads from outside."""
    names: Any = {}
    inputs: Any = []
    rows: Any = []
    for lazy in waiting:
        for each in lazy.operands:
            if isinstance(each, Lazy) and each not in names:  # it has a value already
                names[each] = f"x{len(inputs)}"
                inputs.append(each.value)
        operands = tuple(names.get(each, each) for each in lazy.operands)
        rows.append((lazy.operation, operands))
        names[lazy] = f"%{len(rows) - 1}"
    return tuple(rows), inputs


class Lazy:
    """The notebook's own has `numpy` and `sum` besides."""

    def __init__(self, operation: Any, *operands: Any, value: Any = None) -> None:
        self.operation, self.operands, self.value = operation, operands, value
        if value is None:
            waiting.append(self)

    def __mul__(self, other: Any) -> Lazy:
        return Lazy(mt.mul, self, other)

    def __add__(self, other: Any) -> Lazy:
        return Lazy(mt.add, self, other)


def _squared_twice(x: Any, y: Any) -> Any:
    product = x * y
    return product * product + x


def _programs() -> Iterable[Case]:
    yield "For x * 2 + 1", lambda x, y: x * 2 + 1
    yield "For x * y + x", lambda x, y: x * y + x
    yield "For a product that is used twice", _squared_twice


def _told(function: Callable[..., Any], program: Callable[..., Any]) -> str:
    """Let a program of two tensors wait, and say its structure and its inputs."""
    names = function.__globals__  # of the notebook
    before, names["waiting"][:] = names["waiting"][:], []
    try:
        lazy = names["Lazy"]
        program(*(lazy(None, value=mt.tensor(value)) for value in (3.0, 5.0)))
        rows, inputs = function(names["waiting"])
        told = [f"{row[0].__name__}({', '.join(map(_name, row[1]))})" for row in rows]
        values = [each.item() if isinstance(each, mt.Tensor) else str(each) for each in inputs]
        return f"rows {', '.join(told)}, inputs {values}"
    finally:
        names["waiting"][:] = before


def _name(operand: Any) -> str:
    return str(operand) if isinstance(operand, (str, int, float)) else f"a {type(operand).__name__}"


BLANKS = {
    "structure": Blank(
        structure,
        _programs,
        {
            "A row has the operands themselves in place of their names: then no two lists have the same key.": {
                "names.get(each, each)": "each"
            },
            "The plain numbers are missing. They are written into the program, so they belong to its key.": {
                "names.get(each, each)": "names[each]",
                "lazy.operands)": "lazy.operands if each in names)",
            },
            "A result has no name, so the next row takes it for a value from outside.": {
                'names[lazy] = f"%{len(rows) - 1}"': "pass"
            },
        },
        ask=_told,
    )
}
