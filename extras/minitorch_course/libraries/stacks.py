"""`stacks`: the programs of notebook 15 in this engine, JAX and PyTorch: kernels, bytes, times and first calls.

``python -m tools.stacks --save`` records them, for readers without PyTorch. Kernels and bytes are counted, and the same
everywhere but for the width of vectors; times are those of one machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from minitorch.tables import Table, Tabular
from minitorch_inspect.plots.plot import duration

from ..conditions import version_of
from ..stopwatch import compare, first_call
from .programs import PROGRAMS, STACKS, Prepared, installed
from .records import record


@dataclass(frozen=True)
class Row:
    """A program in a stack.

    Attributes:
        program, stack: their names.
        kernels: that a call runs; of an eager stack, the operations that compute something.
        bytes: that these read and write, as the stack counts them.
        seconds: of a call, the median.
        first: seconds of the first call, traced and compiled with empty caches; imports are not counted.
        again: seconds of the first call in another process, which finds what the first one has kept on disk; None if it
            was not measured.
    """

    program: str
    stack: str
    kernels: int
    bytes: int
    seconds: float
    first: float
    again: float | None = None


class Stacks(Tabular):
    """Rows that can be asked for by program and stack; shown, a table.

    Attributes:
        rows: all of them.
        where: machine, versions and date.
    """

    COLUMNS = ("", "kernels", "MB moved", "a call", "first call", "first call, caches filled")

    def __init__(self, rows: Iterable[Row], where: str) -> None:
        self.rows, self.where = tuple(rows), where
        self._by_name = {(row.program, row.stack): row for row in self.rows}

    def __getitem__(self, name: tuple[str, str]) -> Row:
        return self._by_name[name]

    @property
    def programs(self) -> list[str]:
        """The names of the programs, in order."""
        return list(dict.fromkeys(row.program for row in self.rows))

    @property
    def stacks(self) -> list[str]:
        """The names of the stacks, in order."""
        return list(dict.fromkeys(row.stack for row in self.rows))

    def only(self, *programs: str) -> Stacks:
        """Some of the programs: those whose names begin with one of these.

        Example:
            >>> stacks().only("MLP, inference").programs
            ['MLP, inference, batch 1', 'MLP, inference, batch 64']
        """
        return Stacks((row for row in self.rows if row.program.startswith(programs)), self.where)

    def gain(self, program: str, stack: str, beside: str) -> float:
        """How many times as fast a program is in a stack as in another one."""
        return self[program, beside].seconds / self[program, stack].seconds

    def _cells(self, program: str) -> list[tuple[str, ...]]:
        found = [row for row in self.rows if row.program == program]
        return [
            (
                row.stack,
                str(row.kernels),
                f"{row.bytes / 1e6:.3f}" if row.bytes < 1e6 else f"{row.bytes / 1e6:.1f}",
                duration(row.seconds),
                duration(row.first),
                "" if row.again is None else duration(row.again),
            )
            for row in found
        ]

    def _parts(self) -> list[Table | str]:
        shown = len(self.COLUMNS) - all(row.again is None for row in self.rows)
        rows = [row for program in self.programs for row in (program, *(each[:shown] for each in self._cells(program)))]
        template = "".join(["  {:30}", *4 * ["{:>12}"], "{:>26}"][:shown])
        return [self.where, Table(template, rows, self.COLUMNS[:shown], ())]


def stacks() -> Stacks:
    """All programs in all stacks, as recorded.

    Example:
        >>> found = stacks()
        >>> found["gelu, 8 million", "torch, eager"].kernels, found["gelu, 8 million", "torch.compile"].kernels
        (9, 1)
    """
    kept = record("stacks")
    return Stacks((Row(**row) for row in kept["rows"]), f"recorded with {kept['where']}")


def stacks_here(*programs: str, without: Sequence[str] = (), rounds: int = 5) -> Stacks:
    """Run programs in all stacks that are installed, and measure them in turns.

    Args:
        programs: their names, as in `stacks().programs`.
        without: stacks that are left out: `torch.compile` takes up to a minute for each program.
        rounds: of each contender.

    Raises:
        ValueError: for a program that there is not.

    Example:
        >>> found = stacks_here("gelu, 1,000", without=["torch.compile"], rounds=1)
        >>> found["gelu, 1,000", "ours, jit"].kernels
        1
    """
    for name in programs:
        if name not in PROGRAMS:
            raise ValueError(f"there is no program {name!r}, but {', '.join(map(repr, PROGRAMS))}")
    names = [name for name in installed() if name not in without]
    rows = [row for program in programs for row in _measured(program, names, rounds)]
    versions = [f"{package} {version_of(package)}" for package in ("torch", "jax") if version_of(package)]
    return Stacks(rows, ", ".join(["run here, one thread", *versions]))


def first_calls(program: str, names: Sequence[str]) -> tuple[dict[str, Prepared], dict[str, float]]:
    """A program in some stacks, and the seconds of the first call in each."""
    prepared = {name: STACKS[name][1](PROGRAMS[program]) for name in names}
    return prepared, {name: first_call(each.call)[1] for name, each in prepared.items()}


def _measured(program: str, names: Sequence[str], rounds: int) -> list[Row]:
    prepared, first = first_calls(program, names)
    counts = {name: each.count() for name, each in prepared.items()}
    times = compare({name: each.call for name, each in prepared.items()}, rounds=rounds)
    return [Row(program, name, *counts[name], times[name].seconds, first[name]) for name in names]


def as_data(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows for a record: three digits of each time."""
    times = ("seconds", "first", "again")
    return [
        {name: float(f"{value:.3g}") if name in times and value else value for name, value in asdict(row).items()}
        for row in rows
    ]
