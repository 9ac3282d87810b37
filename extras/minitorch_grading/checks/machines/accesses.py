"""Accesses to memory of a program of loops, counted from its text as an assembly listing would show them.

The machine has vectors of eight lanes and sixteen registers. A loop over vectors loads neighbours at once, or one
number for all lanes; other lanes are loaded one by one. In loops that are written out, what does not change along a
loop is loaded once and held, if there are registers for it. Local arrays are in memory, unless they are in registers.
A register holds eight neighbours, one for each lane, or one number for all lanes: no instruction of this machine takes
one of eight out of a register. A guard counts as if it always held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from minitorch.compiler.loop_ir.expressions import Expression, Load
from minitorch.compiler.loop_ir.index import Index, Variable
from minitorch.compiler.loop_ir.tree import (
    Accumulate,
    Allocate,
    Block,
    For,
    If,
    Kind,
    Local,
    Place,
    Procedure,
    Read,
    Store,
)

LANES = 8
REGISTERS = 16

Array = int | Local


@dataclass(frozen=True)
class Counts:
    """What is counted of a program.

    Attributes:
        accesses: loads and stores.
        registers: vector registers that it needs.
        apart: accesses whose lanes are no neighbours.
        single: arrays in registers that take a register for each number.
    """

    accesses: int
    registers: int
    apart: tuple[str, ...]
    single: tuple[str, ...]


@dataclass
class _Region:
    """The body of a loop that is not written out, but for loops in it that are not."""

    loads: dict[tuple[Array, Index], tuple[int, int]] = field(default_factory=dict)  # how many, and how many are held
    others: int = 0

    @property
    def accesses(self) -> int:
        return self.others + sum(many for many, _ in self.loads.values())


class _Counter:
    def __init__(self) -> None:
        self.accesses = 0
        self.held = 0
        self.locals: dict[Local, int] = {}  # how many registers each takes
        self.apart: dict[str, None] = {}

    def region(self, block: Block, times: int) -> None:
        """Count the accesses of so many runs of a block."""
        found = _Region()
        self.block(block, times, (), found)
        self.accesses += times * found.accesses
        self.held = max(self.held, sum(held for _, held in found.loads.values()))

    def block(self, block: Block, times: int, around: tuple[For, ...], found: _Region) -> None:
        for each in block:
            match each:
                case For(kind=Kind.UNROLLED | Kind.VECTOR):
                    self.block(each.body, times, (*around, each), found)
                case For():
                    runs = prod(loop.variable.extent for loop in around)
                    self.region(each.body, times * runs * each.variable.extent)
                case If():
                    self.block(each.body, times, around, found)
                case Allocate():
                    if each.local.place is Place.REGISTERS:
                        self.locals[each.local] = -(-each.local.size // LANES)
                case Store() | Accumulate():
                    self.statement(each, around, found)
                case _:
                    raise TypeError(f"{type(each).__name__} is no statement that is counted here")

    def statement(self, each: Store | Accumulate, around: tuple[For, ...], found: _Region) -> None:
        for array, index in loads_of(each.value):
            if in_memory(array):
                found.loads[array, index] = self.loaded(array, index, around)
            else:
                self.in_registers(array, index, around)
        if not in_memory(each.array):
            self.in_registers(each.array, each.index, around)
        else:
            runs = prod(loop.variable.extent for loop in around if loop.kind is Kind.UNROLLED)
            once = runs * self.lanes(each.array, each.index, around)
            found.others += once * (2 if isinstance(each, Accumulate) else 1)

    def in_registers(self, array: Array, index: Index, around: tuple[For, ...]) -> None:
        """An access to an array in registers: one by one, unless it is of neighbours by the lanes of a loop."""
        lanes = [loop.variable for loop in around if loop.kind is Kind.VECTOR]
        if isinstance(array, Local) and not any(step_of(index, lane) == 1 for lane in lanes):
            self.locals[array] = array.size

    def loaded(self, array: Array, index: Index, around: tuple[For, ...]) -> tuple[int, int]:
        """How often it is loaded in a region, and how many registers hold it for later iterations."""
        unrolled = [loop for loop in around if loop.kind is Kind.UNROLLED]
        depends = [index.depends_on(loop.variable) for loop in unrolled]
        vectors = self.lanes(array, index, around)
        many = vectors * prod(loop.variable.extent for loop, own in zip(unrolled, depends, strict=True) if own)
        first = depends.index(False) + 1 if False in depends else len(depends)
        rest = zip(unrolled[first:], depends[first:], strict=True)
        return many, vectors * prod(loop.variable.extent for loop, own in rest if own)

    def lanes(self, array: Array, index: Index, around: tuple[For, ...]) -> int:
        """Accesses of all lanes together."""
        for loop in around:
            if loop.kind is Kind.VECTOR:
                step = step_of(index, loop.variable)
                if step == 0:
                    return 1
                if step == 1:
                    return -(-loop.variable.extent // LANES)
                far = f"{step} elements apart" if step else "at places that no step describes"
                self.apart[f"the lanes of {name_of(array)} are {far}"] = None
                return loop.variable.extent
        return 1


def step_of(index: Index, variable: Variable) -> int | None:
    """By how much an index rises with a variable; None if it is no multiple of it."""
    factors = [factor for atom, factor in index.terms if atom == variable]
    others = any(atom != variable and Index(((atom, 1),)).depends_on(variable) for atom, _ in index.terms)
    return None if others else sum(factors)


def in_memory(array: Array) -> bool:
    """Whether an array is in memory."""
    return not (isinstance(array, Local) and array.place is Place.REGISTERS)


def name_of(array: Array) -> str:
    """As the program prints it."""
    return array.name if isinstance(array, Local) else f"{'out' if array == 2 else 'x'}{array}"


def loads_of(value: Expression) -> Iterator[tuple[Array, Index]]:
    """The elements that a value is computed from."""
    for part in value.all_parts:
        if isinstance(part, Load):
            yield part.buffer, part.index
        elif isinstance(part, Read):
            yield part.local, part.index


def counts(program: Procedure) -> Counts:
    """The accesses of a program."""
    counter = _Counter()
    counter.region(program.body, 1)
    single = tuple(local.name for local, many in counter.locals.items() if many == local.size > 1)
    return Counts(counter.accesses, counter.held + sum(counter.locals.values()), tuple(counter.apart), single)
