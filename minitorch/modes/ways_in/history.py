"""History of a lazy block, which its `explain()` prints: the programs that ran, and their causes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...ir import Source
from ..tracing.explain import counted
from ..tracing.program import Program

if TYPE_CHECKING:
    from ...compiler.kernels.kernel import Kernel

MOST_PROGRAMS = 128  # programs of a history; beyond that the oldest are forgotten
MOST_LISTED = 8


@dataclass
class ProgramReport:
    """Program of a lazy block.

    Attributes:
        cause: the request of a value when it ran first: ``"item()"``, ``"repr"``, ``"the end of the block"``.
        source: the line that asked for it; None at the end of the block.
        program: the graph, before and after the passes, and its executable.
        compiled: whether it was compiled for this block, rather than found compiled.
        runs: how often it ran in this block.
    """

    cause: str
    source: Source | None
    program: Program
    compiled: bool
    runs: int = 0

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that it was fused into; none if the backend does not fuse."""
        ledger = getattr(self.program.compiled, "ledger", None)
        return ledger.kernels if ledger else ()

    def __str__(self) -> str:
        where = f" at {self.source}" if self.source else ""
        kernels = f", {counted(len(self.kernels), 'kernel')}" if self.kernels else ""
        graph = self.program.graph
        found = f"compiled in {self.program.compile_time * 1e3:.1f} ms" if self.compiled else "was compiled before"
        return (
            f"{counted(self.runs, 'run')}, first for {self.cause}{where}: "
            f"{counted(graph.count().total(), 'operation')}, {counted(len(graph.outputs), 'output')}{kernels}, {found}"
        )


class History:
    """History of a lazy block: the programs that it ran; print it, or read its parts.

    Attributes:
        runs: the number of runs of all programs.
        compiled: how many of the programs had to be compiled.
    """

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.runs = self.compiled = 0
        self._reports: OrderedDict[int, ProgramReport] = OrderedDict()

    def add(self, program: Program, compiled: bool, cause: str, source: Source | None) -> None:
        """Note a run."""
        self.runs += 1
        self.compiled += compiled
        report = self._reports.setdefault(id(program), ProgramReport(cause, source, program, compiled))
        report.runs += 1
        if len(self._reports) > MOST_PROGRAMS:
            self._reports.popitem(last=False)

    @property
    def programs(self) -> tuple[ProgramReport, ...]:
        """One row for each program, in the order of the first runs."""
        return tuple(self._reports.values())

    def __str__(self) -> str:
        lines = [
            f"lazy on backend {self.backend!r}: {counted(self.runs, 'run')} of "
            f"{counted(len(self._reports), 'program')}, {self.compiled} compiled"
        ]
        lines += [f"  {number}. {report}" for number, report in enumerate(self.programs[:MOST_LISTED], 1)]
        if len(self._reports) > MOST_LISTED:
            lines.append(f"  and {len(self._reports) - MOST_LISTED} more")
        return "\n".join(lines)

    __repr__ = __str__
