"""How the tasks of exercise 05 ask: lazy values that we run, pairs of recordings, and a loop over lazy numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .ask import Ask, asks, call_with_arguments
from .limit import Limited, limited
from .needs import Needs
from .plain import described

NEEDS = Needs(engine=("interpreters", "primitives", "tensor"))

# --- seen, runs -------------------------------------------------------------------------------------------------

seen, runs = (Ask(f"deferred.{name}", call_with_arguments, NEEDS) for name in ("seen", "runs"))

# --- rows, which lazy values write down ---------------------------------------------------------------------------

Row = tuple[str, str, list[Any]]  # a name, an operation, and operands: a name, a number, or ``(number,)`` for an input


def rounded(number: float) -> float:
    """A number with 32 bits, as runs compute: what Python computes with 64 bits is told apart from it.

    Example:
        >>> rounded(0.5), rounded(0.1)
        (0.5, 0.10000000149011612)
    """
    return float(np.float32(number))


OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: rounded(rounded(a) + rounded(b)),
    "mul": lambda a, b: rounded(rounded(a) * rounded(b)),
    "sub": lambda a, b: rounded(rounded(a) - rounded(b)),
}


def _known(operand: Any, values: dict[str, float]) -> float:
    """The value of an operand of a row."""
    if isinstance(operand, tuple) and len(operand) == 1:
        (operand,) = operand
    elif isinstance(operand, str):
        if operand not in values:
            known = "a value that is known already goes in as a number"
            raise ValueError(f"the operand {operand!r} is no earlier row of this run; {known}")
        return values[operand]
    if not isinstance(operand, (int, float)):
        raise ValueError(f"an operand is the name of a row or a float, and not {described(operand)}")
    return float(operand)


def run_rows(rows: Any) -> list[float]:
    """The values of rows, in their order."""
    values: dict[str, float] = {}
    for row in rows:
        if not isinstance(row, (tuple, list)) or len(row) != 3 or not isinstance(row[0], str):
            raise ValueError("a row is (name, operation, operands), and the name is a text")
        target, operation, operands = row
        if operation not in OPERATIONS or len(operands) != 2:
            raise ValueError(f"the operation of {target} is none of {', '.join(OPERATIONS)}, with two operands")
        if target in values:
            raise ValueError(f"two rows of a run are called {target}")
        values[target] = OPERATIONS[operation](*[_known(each, values) for each in operands])
    return list(values.values())


# --- lazy -------------------------------------------------------------------------------------------------------


def _sent(rows: Any) -> list[Any]:
    """Rows as they are sent: names and numbers of classes of their own are taken for what they stand for."""

    def operand(each: Any) -> Any:
        return str.__str__(each) if isinstance(each, str) else float(each) if isinstance(each, float) else each

    return [
        (*map(operand, row[:2]), [operand(each) for each in row[2]]) if type(row) in (tuple, list) else row
        for row in rows
    ]


def _followed(call: Limited) -> None:
    """Follow a program, of which the judge tells one step after the other, with the student's lazy values."""
    tensor = call.function(lambda rows: call.consult(("run", _sent(rows))))
    if not callable(tensor):
        raise TypeError(f"lazy returns a function, and that is a {type(tensor).__name__}")
    values: list[Any] = []
    steps: dict[str, Callable[..., Any]] = {
        "tensor": lambda number: values.append(tensor(number)),
        "add": lambda a, b: values.append(values[a] + (values[b] if type(b) is int else b)),
        "mul": lambda a, b: values.append(values[a] * (values[b] if type(b) is int else b)),
        "float": lambda a: float(values[a]),
        "bool": lambda a: bool(values[a]),
    }
    step = call.consult(("next", None))
    while step is not None:
        step = call.consult(("next", steps[step[0]](*step[1:])))


@asks("deferred.lazy", NEEDS)
def lazy(call: Limited, case: tuple[str, Any]) -> Any:
    """Nothing: the judge has the program, and runs rows."""
    return limited(partial(_followed, call), call.seconds)


# --- key --------------------------------------------------------------------------------------------------------


@asks("deferred.key", NEEDS)
def key(call: Limited, case: tuple[str, Any]) -> Any:
    """Two recordings; the answer says whether a dict takes the second key for the first."""
    one, other = case[1]
    return limited(lambda: call.function(*other) in {call.function(*one): 0}, call.seconds)


# --- descend ----------------------------------------------------------------------------------------------------


def program_of(rows: list[Row]) -> str:
    """What a program for some rows depends on: everything but the values of its inputs."""
    return repr([(name, each[0], ["input" if type(e) is tuple else e for e in each[1]]) for name, *each in rows])


class _Recording:
    """Lazy numbers of 32 bits, and what waits; it counts its runs, and programs that were compiled for them."""

    def __init__(self, run: Callable[[list[Row]], list[float]]) -> None:
        self._run = run
        self._waiting: list[tuple[_Number, Row]] = []
        self.programs: set[str] = set()
        self.runs = 0

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


class _Number:
    """A lazy number: its operand is a name as long as it waits, and then its value."""

    def __init__(self, recording: _Recording, operand: Any) -> None:
        self._recording, self.operand = recording, operand

    def __float__(self) -> float:
        if type(self.operand) is str:
            self._recording.flush()
        return float(self.operand[0])

    def __bool__(self) -> bool:
        return bool(float(self))

    def __repr__(self) -> str:
        return f"lazy({float(self)})"


for _operation in OPERATIONS:
    for _method, _turn in ((f"__{_operation}__", 1), (f"__r{_operation}__", -1)):
        _write = lambda a, b, operation=_operation, turn=_turn: a._recording.record(operation, *(a, b)[::turn])  # noqa: E731
        setattr(_Number, _method, _write)


def lazy_numbers(run: Callable[[list[Row]], list[float]] = run_rows) -> Callable[[float], Any]:
    """A function that makes lazy numbers of one recording, which are run by `run`; `function.recording` counts.

    Example:
        >>> tensor = lazy_numbers()
        >>> x = tensor(2.0) * 3.0 + 1.0
        >>> tensor.recording.runs, float(x), tensor.recording.runs
        (0, 7.0, 1)
    """
    recording = _Recording(run)

    def tensor(number: float) -> Any:
        return _Number(recording, (rounded(number),))

    tensor.recording = recording  # type: ignore[attr-defined]
    return tensor


@asks("deferred.descend", NEEDS)
def descend(call: Limited, case: tuple[str, Any]) -> Any:
    """A number to start from, the rates, and after how many rounds somebody has to look; the judge runs rows."""
    return call(lazy_numbers(call.consult), *case[1])
