"""How the tasks of exercise 05 ask: lazy values that we run, pairs of recordings, and a loop over lazy numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from .ask import Ask, asks, call_with_arguments
from .limit import Limited, limited
from .needs import Needs

NEEDS = Needs(engine=("interpreters", "primitives", "tensor"))

# --- seen, runs -------------------------------------------------------------------------------------------------

seen, runs = (Ask(f"deferred.{name}", call_with_arguments, NEEDS) for name in ("seen", "runs"))

# --- lazy -------------------------------------------------------------------------------------------------------


def _shared(tensor: Any) -> list[float]:
    a = tensor(0.2) * tensor(0.3)
    b, c = a * 0.7, a + 5.1
    return [float(b), float(c), float(a)]


def _later(tensor: Any) -> list[float]:
    a = tensor(0.2) * 0.3
    found = [float(a)]
    b = a + a
    return [*found, float(b * a)]


def _again(tensor: Any) -> list[float]:
    a = tensor(0.1) + 0.2
    return [float(a), float(a), float(a * 0.3), float(a)]


def _decided(tensor: Any) -> list[float]:
    a = tensor(1.0) + -1.0
    b = a + 4.1
    return [float(b * 2.0)] if a else [float(b)]


def _never(tensor: Any) -> list[float]:
    tensor(2.0) * tensor(3.0) + 1.0
    return []


# Of each program: the part, the program, and how many operations each of its runs has.
PROGRAMS: dict[str, tuple[str, Callable[[Any], list[float]], list[int]]] = {
    "float(t(0.1) * 3 + t(0.7))": ("the right numbers", lambda t: [float(t(0.1) * 3.0 + t(0.7))], [2]),
    "float(t(3) * 0.3 + 1)": ("the right numbers", lambda t: [float(t(3.0) * 0.3 + 1.0)], [2]),
    "t(2) * t(3) + 1, and no more": ("nothing runs unasked", _never, []),
    "float(t(4))": ("nothing runs unasked", lambda t: [float(t(4.0))], []),
    "a = t(0.2) * t(0.3); b, c = a * 0.7, a + 5.1; float(b), float(c), float(a)": (
        "all that waits runs at once",
        _shared,
        [3],
    ),
    "a = t(1) + -1; b = a + 4.1; b * 2 if a else b": ("all that waits runs at once", _decided, [2]),
    "a = t(0.2) * 0.3; float(a); float((a + a) * a)": ("nothing runs twice", _later, [1, 2]),
    "a = t(0.1) + 0.2; float(a), float(a), float(a * 0.3), float(a)": ("nothing runs twice", _again, [1, 1]),
}


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
}


def _known(operand: Any, values: dict[str, float]) -> float:
    """The value of an operand of a row."""
    if isinstance(operand, str):
        if operand not in values:
            known = "a value that is known already goes in as a number"
            raise ValueError(f"the operand {operand!r} is no earlier row of this run; {known}")
        return values[operand]
    if not isinstance(operand, (int, float)):
        raise TypeError(f"an operand is the name of a row or a float, and not a {type(operand).__name__}")
    return float(operand)


def _run(rows: list[Any]) -> list[float]:
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


def _recorded(lazy: Any, name: str) -> Any:
    """The numbers of a program with a student's lazy values, and the rows of each run."""
    ran: list[Any] = []

    def run(rows: Any) -> list[float]:
        rows = list(rows)  # which the student's code may empty
        found = _run(rows)
        ran.append([(row[0], row[1], list(row[2])) for row in rows])
        return found

    tensor = lazy(run)
    if not callable(tensor):
        raise TypeError(f"lazy returns a function, and that is a {type(tensor).__name__}")
    return list(PROGRAMS[name][1](tensor)), ran


@asks("deferred.lazy", NEEDS)
def lazy(call: Limited, case: tuple[str, Any]) -> Any:
    """The name of a program."""
    return limited(partial(_recorded, call.function, *case[1]), call.seconds)


# --- key --------------------------------------------------------------------------------------------------------


@asks("deferred.key", NEEDS)
def key(call: Limited, case: tuple[str, Any]) -> Any:
    """Two recordings; the answer says whether a dict takes the second key for the first."""
    one, other = case[1]
    return limited(lambda: call.function(*other) in {call.function(*one): 0}, call.seconds)


# --- descend ----------------------------------------------------------------------------------------------------


class _Recording:
    """Lazy numbers of 32 bits, run by closures: how many runs there were, of how many programs, and how much waited."""

    def __init__(self) -> None:
        self.waiting: list[_Number] = []
        self.kinds: dict[Any, int] = {}
        self.programs: set[Any] = set()
        self.runs = self.most = 0
        self.numbers = count()

    def kind(self, structure: Any) -> int:
        """A number for a structure, the same for the same."""
        return self.kinds.setdefault(structure, len(self.kinds))

    def flush(self) -> None:
        """Run all that waits."""
        self.runs += 1
        self.programs.add(tuple(each.kind for each in self.waiting))
        for each in self.waiting:
            each.value = rounded(each.work())
        self.waiting.clear()


class _Number:
    """A lazy number."""

    def __init__(self, recording: _Recording, kind: int, work: Callable[[], float], value: float | None = None) -> None:
        self._recording, self.kind, self.work, self.value = recording, kind, work, value
        if value is None:
            recording.waiting.append(self)
            recording.most = max(recording.most, len(recording.waiting))

    def _with(self, name: str, other: Any, function: Callable[[float, float], float]) -> _Number:
        number = isinstance(other, _Number)
        parts = [self._kind(), other._kind() if number else repr(other)]
        kind = self._recording.kind((name, *parts))
        return _Number(self._recording, kind, lambda: function(self._now(), other._now() if number else rounded(other)))

    def _kind(self) -> Any:
        return ("waits", self.kind) if self.value is None else "input"

    def _now(self) -> float:
        assert self.value is not None
        return self.value

    def __add__(self, other: Any) -> _Number:
        return self._with("add", other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> _Number:
        return self._with("sub", other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> _Number:
        return self._with("mul", other, lambda a, b: a * b)

    def __rsub__(self, other: Any) -> _Number:
        return self._with("sub from", other, lambda a, b: b - a)

    __radd__, __rmul__ = __add__, __mul__

    def __float__(self) -> float:
        if self.value is None:
            self._recording.flush()
        return self._now()

    def __bool__(self) -> bool:
        return bool(float(self))

    def __repr__(self) -> str:
        return f"lazy({float(self)})"


def lazy_numbers() -> Callable[[float], Any]:
    """A function that makes lazy numbers of one recording; `function.recording` counts.

    Example:
        >>> tensor = lazy_numbers()
        >>> x = tensor(2.0) * 3.0 + 1.0
        >>> tensor.recording.runs, float(x), tensor.recording.runs
        (0, 7.0, 1)
    """
    recording = _Recording()

    def tensor(number: float) -> Any:
        return _Number(recording, -1, lambda: float(number), rounded(number))

    tensor.recording = recording  # type: ignore[attr-defined]
    return tensor


def _descended(descend: Any, start: float, rates: list[float], every: int) -> Any:
    """What a student's loop reports, and runs, programs, and the most operations that waited at once."""
    tensor = lazy_numbers()
    recording: _Recording = tensor.recording  # type: ignore[attr-defined]
    answer = descend(lambda number: tensor(number), start, list(rates), every)  # which has no `recording` to write to
    return answer, recording.runs, len(recording.programs), recording.most


@asks("deferred.descend", NEEDS)
def descend(call: Limited, case: tuple[str, Any]) -> Any:
    """A number to start from, the rates, and after how many rounds somebody has to look."""
    return limited(partial(_descended, call.function, *case[1]), call.seconds)
