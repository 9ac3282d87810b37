"""Drivers of exercise 05: lazy values that we run, pairs of recordings, and a loop over lazy numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .driver import Driver, call_purely, driver, within
from .limit import Limited
from .needs import EAGER as NEEDS
from .recording import OPERATORS, Row, operators
from .recording import run_rows as run_rows_in

OPERATIONS = ("add", "mul", "sub")

# --- seen, runs -------------------------------------------------------------------------------------------------

seen, runs = (Driver(f"deferred.{name}", call_purely, NEEDS) for name in ("seen", "runs"))

# --- lazy -------------------------------------------------------------------------------------------------------


def run_rows(rows: Any) -> list[float]:
    """The values of rows, in their order, computed with 32 bits: what Python computes itself is told apart from it."""
    known = "; a value that is known already goes in as a number"
    return list(run_rows_in(rows, OPERATIONS, {}, np.float32, known).values())


def _sent(rows: Any) -> list[Any]:
    """Rows as they are sent: names and numbers of classes of their own are taken for what they stand for."""

    def operand(each: Any) -> Any:
        return str.__str__(each) if isinstance(each, str) else float(each) if isinstance(each, float) else each

    return [
        (*map(operand, row[:2]), [operand(each) for each in row[2]]) if type(row) in (tuple, list) else row
        for row in rows
    ]


def step(line: str, names: dict[str, Any]) -> Any:
    """Run a line of a program: the value of an expression, or nothing, where a name is given to it."""
    target, _, expression = line.rpartition(" = ")
    value = eval(expression, dict(names))
    if not target:
        return value
    names[target] = value


def _followed(lazy: Any, consult: Callable[[object], Any]) -> None:
    """Follow a program, of which the judge tells one line after the other, with the student's lazy values."""
    tensor = lazy(lambda rows: consult(("run", _sent(rows))))
    if not callable(tensor):
        raise TypeError(f"lazy returns a function, and that is a {type(tensor).__name__}")
    names, value = {"t": tensor}, None
    while (line := consult(("next", value))) is not None:
        value = step(line, names)


@driver("deferred.lazy", NEEDS)
def lazy(call: Limited, case: tuple[str, Any]) -> Any:
    """Nothing: the judge has the program, and runs rows."""
    return call.within(_followed, call.consult)


# --- key --------------------------------------------------------------------------------------------------------


def _is_taken(key: Any, one: Any, other: Any) -> bool:
    """Whether a dict takes the second of two recordings' keys for the first."""
    return key(*other) in {key(*one): 0}


key = Driver("deferred.key", within(_is_taken), NEEDS)


# --- descend ----------------------------------------------------------------------------------------------------


def program_of(rows: list[Row]) -> str:
    """What a program for some rows depends on: everything but the values of its inputs."""
    return repr([(name, each[0], ["input" if type(e) is tuple else e for e in each[1]]) for name, *each in rows])


class Recording:
    """Lazy numbers of 32 bits, and what waits; it counts its runs, and programs that were compiled for them."""

    def __init__(self, run: Callable[[list[Row]], list[float]]) -> None:
        self._run = run
        self._waiting: list[tuple[_Number, Row]] = []
        self.programs: set[str] = set()
        self.runs = 0

    def number(self, value: float) -> Any:
        """A lazy number that is an input."""
        return _Number(self, (value,))

    def record(self, operation: str, *operands: Any) -> _Number:
        """A number that an operation will make."""
        name = f"v{len(self._waiting)}"
        found = [each.operand if isinstance(each, _Number) else float(each) for each in operands]
        made = _Number(self, name)
        self._waiting.append((made, (name, operation, found)))
        return made

    def flush(self) -> None:
        """Run all that waits."""
        rows = [row for _, row in self._waiting]
        self.runs += 1
        self.programs.add(program_of(rows))
        for (number, _), value in zip(self._waiting, self._run(rows), strict=True):
            number.operand = (value,)
        self._waiting.clear()


def _recorded(operation: str, *operands: Any) -> _Number:
    recording: Recording = next(each.recording for each in operands if isinstance(each, _Number))
    return recording.record(operation, *operands)


@operators(_recorded, {name: OPERATORS[name] for name in OPERATIONS})
class _Number:
    """A lazy number: its operand is a name as long as it waits, and then its value."""

    def __init__(self, recording: Recording, operand: Any) -> None:
        self.recording, self.operand = recording, operand

    def __float__(self) -> float:
        if type(self.operand) is str:
            self.recording.flush()
        return float(self.operand[0])

    def __bool__(self) -> bool:
        return bool(float(self))

    def __repr__(self) -> str:
        return f"lazy({float(self)})"


def lazy_numbers(run: Callable[[list[Row]], list[float]] = run_rows) -> Callable[[float], Any]:
    """A function that makes lazy numbers of one recording, which are run by `run`; `function.recording` counts.

    Example:
        >>> tensor = lazy_numbers()
        >>> x = tensor(2.0) * 3.0 + 1.0
        >>> tensor.recording.runs, float(x), tensor.recording.runs
        (0, 7.0, 1)
    """
    recording = Recording(run)

    def tensor(number: float) -> Any:
        return recording.number(float(np.float32(number)))

    tensor.recording = recording  # type: ignore[attr-defined]
    return tensor


@driver("deferred.descend", NEEDS)
def descend(call: Limited, case: tuple[str, Any]) -> Any:
    """A number to start from, the rates, and after how many rounds somebody has to look; the judge runs rows."""
    return call(lazy_numbers(call.consult), *case[1])
