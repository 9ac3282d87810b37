"""`kernel.steps`: the kernel after each rewrite of its schedule, a program that can be read, run, counted and timed.

Halide (Ragan-Kelley et al., 2013) separates an algorithm from its schedule; Exo (Ikarashi et al., 2022) shows the
program after every rewrite. These are the kernels that the engine itself runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from textwrap import wrap
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from ...graph.cost import in_units
from ...ir import Node
from ...packages import load
from ...tables import Table
from ...tensor import Tensor, with_value
from ..codegen.listing import inner_loops
from ..loop_ir.source import printed
from ..loop_ir.tree import Procedure
from ..scheduling.rewrites import Rewrite
from ..scheduling.schedules.choice import Schedule, applied

if TYPE_CHECKING:
    from .kernel import Kernel

Array = np.ndarray[Any, Any]
Call = Callable[[], list[Array]]  # runs a kernel on arrays that it was given, and returns those that it writes

# The module whose function `prepared` runs a kernel: one of a room below this one.
RUNTIME = "minitorch.compiler.runtime.isolated"

SLOW = 1.0  # seconds; slower steps are measured by one run
INTENSITY = 4  # FLOPs per byte; kernels above it are measured in FLOP/s, others in B/s
BAR = 16  # letters of the highest rate's bar in a notebook's table
WIDEST = 72  # characters of a rewrite in a line of a table; more of them go on in the next line


class Peaks(Protocol):
    """The rates that a machine reaches at best, as ``mt.machine()`` measures them."""

    @property
    def bandwidth(self) -> float:
        """Bytes read and written in a second."""

    def peak(self, dtype: str) -> float:
        """Return the additions and multiplications of a type in a second."""


class Listing(tuple[Rewrite, ...]):
    """The rewrites of a kernel, printed one in a line.

    Attributes:
        nests: the schedule of each nest.
        refused: for each nest, the laws that other schedules of the engine's break.
    """

    nests: tuple[Schedule, ...]
    refused: tuple[tuple[str, ...], ...]

    def __new__(cls, nests: Sequence[Schedule], refused: Sequence[tuple[str, ...]]) -> Listing:
        """Join the rewrites of all nests."""
        made = super().__new__(cls, (rewrite for nest in nests for rewrite in nest))
        made.nests, made.refused = tuple(nests), tuple(refused)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.nests, self.refused)

    def __repr__(self) -> str:
        lines = []
        for number, (nest, refused) in enumerate(zip(self.nests, self.refused, strict=True)):
            lines += [f"nest {number}:"] if len(self.nests) > 1 else []
            lines += [f"# since a schedule is refused: {each}" for each in refused]
            lines += list(map(repr, nest)) if nest else ["(the loops as they are defined)"]
        return "\n".join(lines)


@dataclass(frozen=True)
class Step:
    """A kernel after the first rewrites of its schedule; call it like the kernel.

    Attributes:
        number: how many rewrites were made.
        rewrite: the last of them; None for the definition.
        nest: the number of the nest that it was made in.
        kernel: the kernel with these rewrites as its schedule.
    """

    number: int
    rewrite: Rewrite | None
    nest: int
    kernel: Kernel

    @property
    def procedures(self) -> tuple[Procedure, ...]:
        """The loops of each nest."""
        assert self.kernel.loops is not None
        parts = zip(self.kernel.loops.parts, self.kernel.own, strict=True)
        return tuple(applied(nest, buffers, schedule or ()) for (nest, buffers, _), schedule in parts)

    @cached_property
    def source(self) -> str:
        """Python that runs, with the loops in the order of the machine code."""
        assert self.kernel.loops is not None
        return printed(self.kernel.loops, self.procedures)

    @property
    def llvm(self) -> str:
        """LLVM IR."""
        return self.kernel.llvm

    @property
    def assembly(self) -> str:
        """The host's assembly language."""
        return self.kernel.assembly

    @property
    def inner_loop(self) -> str:
        """The innermost loop with the most instructions, in assembly language; empty if there is no loop.

        Example:
            >>> import minitorch as mt
            >>> a, b = mt.ones(96, 64), mt.ones(64, 128)
            >>> (kernel,) = mt.jit(lambda a, b: a @ b).ledger(a, b).for_target("avx2").kernels
            >>> [step.inner_loop.count("vfmadd") for step in (kernel.steps[0], kernel.steps[-1])]
            [1, 12]
        """
        return max(inner_loops(self.assembly), key=lambda loop: loop.count("\n"), default="")

    @property
    def flops(self) -> int:
        """Arithmetic operations, which no rewrite changes."""
        return self.kernel.flops

    @property
    def bytes(self) -> int:
        """Bytes read and written, every element once."""
        return self.kernel.bytes_read + self.kernel.bytes_written

    def __call__(self, *inputs: Tensor | Array) -> Any:
        """Run the machine code.

        Args:
            inputs: the arrays that the kernel reads, in the order of the arguments of its `source`.

        Returns:
            The tensor that it writes, or a tuple of them.

        Raises:
            TypeError, ValueError: for another number of inputs, or other shapes and types.
        """
        found = tuple(map(with_value, self.prepared(*inputs)()))
        return found[0] if len(found) == 1 else found

    def prepared(self, *inputs: Tensor | Array) -> Call:
        """Return the call alone, for timing: it writes to the same memory every time."""
        wanted = [node for node in self.kernel.reads if node.primitive.name != "constant"]
        if len(inputs) != len(wanted):
            names = ", ".join(str(node.spec) for node in wanted)
            raise TypeError(f"{self.kernel.name} reads {len(wanted)} arrays ({names}), not {len(inputs)}")
        arrays = [_array(given, node) for given, node in zip(inputs, wanted, strict=True)]
        call: Call = load(RUNTIME).prepared(self.kernel, arrays)
        return call

    def __repr__(self) -> str:
        return f"<step {self.number} of {self.kernel.name}: {self.rewrite or 'the definition'}>"


def _array(given: Tensor | Array, node: Node) -> Array:
    array = np.asarray(given.numpy() if isinstance(given, Tensor) else given, order="C")
    if array.shape != node.shape or array.dtype != node.dtype.numpy:
        raise ValueError(f"the kernel reads {node.spec} here, not {array.dtype}{list(array.shape)}")
    return array


class Steps(Sequence[Step]):
    """The steps of a kernel, from its definition to the loops that are run.

    Example:
        >>> import minitorch as mt
        >>> a, b = mt.ones(8, 8), mt.ones(8, 8)
        >>> (kernel,) = mt.jit(lambda a, b: a @ b).ledger(a, b).kernels
        >>> print(kernel.steps[0].source.split("def ")[1])
        kernel(x0, x1, out2):
            # x0: f32[8,8]
            # x1: f32[8,8]
            # out2: f32[8,8]
            for i0 in range(8):
                for i1 in range(8):
                    total0 = np.float32(0)
                    for j0 in range(8):
                        total0 = total0 + (x0[8 * i0 + j0] * x1[8 * j0 + i1])
                    out2[8 * i0 + i1] = total0
        <BLANKLINE>
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._steps: list[Step] = []
        if kernel.loops is None:
            return
        schedules = kernel.schedule.nests
        done: list[Schedule] = [()] * len(schedules)
        self._add(None, 0, done)
        for nest, schedule in enumerate(schedules):
            for count, rewrite in enumerate(schedule, 1):
                done[nest] = schedule[:count]
                self._add(rewrite, nest, done)

    def _add(self, rewrite: Rewrite | None, nest: int, done: Sequence[Schedule]) -> None:
        self._steps.append(Step(len(self._steps), rewrite, nest, replace(self.kernel, own=tuple(done))))

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, number: int) -> Step: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Step]: ...
    def __getitem__(self, number: int | slice) -> Step | Sequence[Step]:
        return self._steps[number]

    def __repr__(self) -> str:
        return "\n".join(f"{step.number:>3}  {step.rewrite or 'the definition'}" for step in self)

    def measure(self, *inputs: Tensor | Array, seconds: float = 0.05, machine: Peaks | None = None) -> Measured:
        """Time every step, on the threads that kernels run on.

        Args:
            inputs: the arrays to run on; without, random numbers.
            seconds: how long each step is run; the shortest time counts.
            machine: ``mt.machine()``, so that the table has each rate as a percentage of the machine's peak, too.
        """
        rows = []
        for step in self:
            call = step.prepared(*(inputs or _examples(step.kernel)))
            rows.append((step, _shortest(call, seconds)))
        return Measured(tuple(rows), machine)


def _examples(kernel: Kernel) -> list[Array]:
    """Return numbers between 0 and 1 for the inputs of a kernel; integers, which may be indices, are zeros."""
    random = np.random.default_rng(0)
    wanted = [node for node in kernel.reads if node.primitive.name != "constant"]
    floats = [node.dtype.is_floating_point for node in wanted]
    return [
        random.random(node.shape).astype(node.dtype.numpy) if is_float else np.zeros(node.shape, node.dtype.numpy)
        for node, is_float in zip(wanted, floats, strict=True)
    ]


def _shortest(call: Call, seconds: float) -> float:
    times: list[float] = []
    while not times or (sum(times) < seconds and times[0] < SLOW):
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return min(times)


def _time(seconds: float) -> str:
    scale, unit = (1, "s") if seconds >= 1 else (1e3, "ms") if seconds >= 1e-3 else (1e6, "us")
    return f"{seconds * scale:.3g} {unit}"


@dataclass(frozen=True)
class Measured:
    """The gain of each rewrite of a schedule: a table, which notebooks show as such.

    Attributes:
        rows: each step, and its seconds.
        machine: whose peak the rates are compared with, or None.
    """

    rows: tuple[tuple[Step, float], ...]
    machine: Peaks | None = None

    @property
    def unit(self) -> str:
        """``"FLOP/s"``, or ``"B/s"`` for a kernel that does little arithmetic on what it moves."""
        step, _ = self.rows[0]
        return "FLOP/s" if step.flops > INTENSITY * step.bytes else "B/s"

    def rates(self) -> list[float]:
        """Return the rate of each step, in the table's unit."""
        return [(step.flops if self.unit == "FLOP/s" else step.bytes) / seconds for step, seconds in self.rows]

    @property
    def peak(self) -> float | None:
        """The rate that the machine reaches at best, in the table's unit; None if no machine was given."""
        if self.machine is None:
            return None
        step, _ = self.rows[0]
        dtype = step.kernel.writes[0].dtype
        return self.machine.peak(dtype.name) if self.unit == "FLOP/s" else self.machine.bandwidth

    def _cells(self) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = [("", "rewrite", "time", "rate", "bought", "of peak")]
        before, peak = self.rows[0][1], self.peak
        for (step, seconds), rate in zip(self.rows, self.rates(), strict=True):
            bought = f"{before / seconds:.2f} x" if step.rewrite else ""
            rewrite = str(step.rewrite or "the definition")
            share = f"{rate / peak:.1%}" if peak else ""
            found.append((str(step.number), rewrite, _time(seconds), in_units(rate, self.unit), bought, share))
            before = seconds
        return found if peak else [row[:-1] for row in found]

    def __str__(self) -> str:
        cells = [(number, wrap(rewrite, WIDEST), *others) for number, rewrite, *others in self._cells()]
        first = max(len(line) for _, lines, *_ in cells for line in lines)
        found = []
        for number, (rewrite, *more), time, rate, *shares in cells:
            found.append(f"{number:>3}  {rewrite:<{first}}{time:>10}{rate:>15}" + "".join(f"{x:>10}" for x in shares))
            found += [f"{'':>9}{line}" for line in more]
        return "\n".join(map(str.rstrip, found))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        shown = [(*row, self._bar(rate)) for row, rate in zip(rows, self.rates(), strict=True)]
        template = "{:>}{}" + "{:>}" * (len(head) - 2) + "{}"
        return Table(template, shown, (*head, "rate, on a logarithmic scale"), (1, len(head))).html

    def _bar(self, rate: float) -> str:
        """Draw a rate as a bar; the highest rate fills the cell."""
        highest, lowest = max(self.rates()), min(self.rates())
        share = (1 + log(rate / lowest)) / (1 + log(highest / lowest))  # the lowest is seen, too
        return "█" * max(1, round(BAR * share))
