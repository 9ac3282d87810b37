"""Drivers of exercise 09: a kernel is recorded, so that it can be run and counted where it cannot reach.

The student's function gets arrays of which no element is known. Whatever it does with them is written down: loads,
arithmetic, stores, in their order (the trace of notebook 04). The record is the answer. The judge runs it on numbers of
its own, and counts what it loads and how many numbers it holds at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .driver import Driver, call_purely, within
from .needs import EAGER as NEEDS
from .recording import OPERATORS, operators, refusal

MOST = 10_000  # instructions of a record
ARITHMETIC = {"add": 2, "sub": 2, "mul": 2, "div": 2, "neg": 1, "maximum": 2, "exp": 1, "log": 1}

Shape = tuple[int, ...]


# --- what the notebook works with, too --------------------------------------------------------------------------


def _recorded(name: str, *operands: Any) -> Number:
    record: Record = next(each.record for each in operands if isinstance(each, Number))
    return record.apply(name, *operands)


@operators(_recorded, {name: methods for name, methods in OPERATORS.items() if name in ARITHMETIC})
class Number:
    """A number in a register, of which nothing is known while the kernel is recorded."""

    def __init__(self, record: Record, place: int) -> None:
        self.record, self.place = record, place

    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = refusal(
        "a kernel is recorded before it has numbers, so they cannot be compared: use maximum(a, b)"
    )
    __float__ = __array_ufunc__ = refusal(
        "a kernel is recorded before it has numbers, so functions of math and NumPy do not work: use exp, log and "
        "maximum of this notebook"
    )
    __pow__ = refusal("this machine has no powers: multiply a number by itself")


class Memory:
    """An array in memory: ``x[i]`` is a load, ``x[i] = number`` a store. With two dimensions, ``x[i, j]``."""

    def __init__(self, record: Record, name: str, shape: Shape) -> None:
        self._record, self.name, self.shape = record, name, shape

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Number]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: object) -> Number:
        return self._record.write(f"load {self.name} {self._place(index)}")

    def __setitem__(self, index: object, number: object) -> None:
        self._record.write(f"store {self.name} {self._place(index)} {self._record.operand(number)}", gives=False)

    def _place(self, index: object) -> int:
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) != len(self.shape) or not all(isinstance(each, int) for each in indices):
            wanted = "a whole number is" if len(self.shape) == 1 else f"{len(self.shape)} whole numbers are"
            raise TypeError(
                f"{self.name} has shape {list(self.shape)}: {wanted} the place of an element, and slices are not there"
            )
        place = 0
        for each, length in zip(indices, self.shape, strict=True):
            if not 0 <= each < length:
                raise IndexError(f"{self.name} has shape {list(self.shape)} and no element {list(indices)}")
            place = place * length + each
        return place


class Record:
    """The instructions of a kernel in their order. Values are numbered in the order in which they are made."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._values = 0

    def write(self, line: str, gives: bool = True) -> Number:
        """Add an instruction."""
        if len(self.lines) >= MOST:
            raise RuntimeError(f"the kernel has more than {MOST} instructions")
        self.lines.append(line)
        self._values += gives
        return Number(self, self._values - 1)

    def operand(self, value: object) -> str:
        """A value by its number, or a constant."""
        if isinstance(value, Number):
            return f"%{value.place}"
        if isinstance(value, (int, float)):
            return repr(float(value))
        raise TypeError(f"a number is wanted, and it is a {type(value).__name__}")

    def apply(self, name: str, *operands: object) -> Number:
        """Add an operation."""
        return self.write(f"{name} {' '.join(map(self.operand, operands))}")

    def __str__(self) -> str:
        found, number = [], 0
        for line in self.lines:
            gives = not line.startswith("store")
            found.append(f"%{number} = {line}" if gives else line)
            number += gives
        return "\n".join(found)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two numbers."""
    return _recorded("maximum", a, b) if Number in (type(a), type(b)) else max(a, b)


def exp(x: Any) -> Any:
    """e to the power of a number."""
    return _recorded("exp", x) if isinstance(x, Number) else math.exp(x)


def log(x: Any) -> Any:
    """The natural logarithm of a number."""
    return _recorded("log", x) if isinstance(x, Number) else math.log(x)


def record(kernel: Any, **shapes: int | Shape) -> Record:
    """The record of a kernel.

    Args:
        kernel: a function of arrays.
        shapes: of each array, in the order of the function's parameters; a number is a length.

    Example:
        >>> def double(x, out):
        ...     out[0] = 2.0 * x[0]
        >>> print(record(double, x=1, out=1))
        %0 = load x 0
        %1 = mul 2.0 %0
        store out 0 %1
    """
    found = Record()
    kernel(*[Memory(found, name, shape if isinstance(shape, tuple) else (shape,)) for name, shape in shapes.items()])
    return found


@dataclass(frozen=True)
class Counted:
    """Loads and stores of a record by array, and the most numbers that it holds at once."""

    loads: Mapping[str, int]
    stores: Mapping[str, int]
    registers: int

    @property
    def accesses(self) -> int:
        """Loads and stores of all arrays."""
        return sum(self.loads.values()) + sum(self.stores.values())

    def __str__(self) -> str:
        said = [f"{name}: {self.loads[name]} loads" for name in self.loads]
        said += [f"{name}: {self.stores[name]} stores" for name in self.stores]
        return f"{', '.join(said)}; {self.accesses} accesses, at most {self.registers} registers"


def counted(record: Record | str) -> Counted:
    """What a record loads, stores and holds. A number is held from its instruction to the last that reads it."""
    loads: Counter[str] = Counter()
    stores: Counter[str] = Counter()
    last: dict[int, int] = {}
    made: list[int] = []
    for step, line in enumerate((record if isinstance(record, str) else "\n".join(record.lines)).splitlines()):
        name, *operands = line.split()
        last |= dict.fromkeys((int(each[1:]) for each in operands if each.startswith("%")), step)
        if name == "store":
            stores[operands[0]] += 1
        else:
            made.append(step)
        if name == "load":
            loads[operands[0]] += 1
    changes: Counter[int] = Counter()
    for number, step in enumerate(made):
        if last.get(number, step) > step:
            changes[step] += 1
            changes[last[number]] -= 1
    held = most = 0
    for step in sorted(changes):
        held += changes[step]
        most = max(most, held)
    return Counted(dict(loads), dict(stores), most)


# --- the tasks --------------------------------------------------------------------------------------------------


def _lines(kernel: Any, shapes: Mapping[str, Any]) -> str:
    return "\n".join(record(kernel, **{name: tuple(shape) for name, shape in shapes.items()}).lines)


softmax, largest_and_total, variance, logsumexp, attention_row = (
    Driver(f"reductions.{name}", within(_lines), NEEDS)
    for name in ("softmax", "largest_and_total", "variance", "logsumexp", "attention_row")
)
merge_moments = Driver("reductions.merge_moments", call_purely, NEEDS)
