"""The backend for inspection: the fused kernels, run by Python element by element.

The same kernels and the same loops as in `llvm`, evaluated instead of emitted: slow by four orders of magnitude, easy
to follow in a debugger, and the reference for the machine code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from time import perf_counter_ns
from typing import Any

import numpy as np

from ..compiler.codegen.host import host
from ..compiler.fusion import ALL_ON
from ..compiler.kernels.kernel import Kernel
from ..compiler.kernels.ledger import Ledger, ledger_of
from ..compiler.runtime.isolated import Known, by_python, run_alone, run_watched
from ..compiler.scheduling.schedules.choice import Own
from ..graph import Graph
from ..interpreters import Watcher, current_watcher
from .interpret import refusal

Array = np.ndarray[Any, Any]


class Evaluated:
    """A graph as loops in Python; call it with one array per input."""

    def __init__(self, graph: Graph, without: Set[str] = ALL_ON, own: Own | None = None) -> None:
        self.ledger: Ledger = ledger_of(graph, host(), without, own)

    def __call__(self, arrays: Sequence[Array], overwrite: bool = False) -> list[Array]:
        """Run the kernels. The results are always new arrays."""
        watcher = current_watcher()
        if watcher is None:
            try:
                return run_alone(self.ledger, arrays, by_python)
            except (IndexError, ValueError) as error:
                raise refusal(self.ledger.graph, arrays, str(error)) from None
        if not watcher.times:
            return run_watched(self.ledger, arrays, by_python, watcher)
        with watcher.span("call", self.ledger.graph.name):
            return run_alone(self.ledger, arrays, _timed(watcher))


def _timed(watcher: Watcher) -> Callable[[Kernel, Known], None]:
    """Run a kernel, and tell its time and its new memory."""

    def run(kernel: Kernel, known: Known) -> None:
        begin = perf_counter_ns()
        by_python(kernel, known)
        watcher.ran(begin, "kernel", kernel)
        for node in kernel.made:
            watcher.made(known[node])

    return run


def compile(
    graph: Graph,
    updates: Mapping[int, int] | None = None,
    donated: Collection[int] = (),
    without: Set[str] = ALL_ON,
    own: Own | None = None,
) -> Evaluated:
    """Compile a graph to loops in Python: the backend's interface."""
    return Evaluated(graph, without, own)
