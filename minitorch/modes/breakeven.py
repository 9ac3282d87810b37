"""After how many calls compiling has paid: measured, by running what was traced both ways."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph import Graph
from ..interpreters import interpreting
from ..ir import Node
from ..tensor import Tensor
from .recording import Program

LONG = 0.05  # seconds; what takes longer is run once more, as the first run finds nothing in its place
VERY_LONG = 0.5  # seconds; what takes longer is run once


@dataclass(frozen=True)
class BreakEven:
    """What compiling cost, and what it saves.

    The times are measured: the traced operations applied eagerly, one by one, and the compiled graph; `explain` does
    it with inputs that are all zeros. The Python around the operations is counted in neither.

    Attributes:
        spent: seconds that tracing and compiling took.
        eager: seconds that the traced operations take eagerly.
        compiled: seconds that the compiled graph takes.
    """

    spent: float
    eager: float
    compiled: float

    @property
    def calls(self) -> int | None:
        """How many calls have to be made until compiling has paid; None if it never does.

        Example:
            >>> BreakEven(spent=1.0, eager=0.3, compiled=0.1).calls, BreakEven(1.0, 0.1, 0.1).calls
            (5, None)
        """
        saved = self.eager - self.compiled
        return math.ceil(round(self.spent / saved, 6)) if saved > 0 else None

    def per_call(self, calls: float) -> float:
        """Seconds that a call takes on average, if there are so many: with what tracing and compiling took.

        Example:
            >>> BreakEven(spent=1.0, eager=0.3, compiled=0.1).per_call(10)
            0.2
        """
        return self.spent / calls + self.compiled

    def __str__(self) -> str:
        paid = "never pays" if self.calls is None else f"pays after {self.calls:,} call{'s' * (self.calls != 1)}"
        return (
            f"{paid}: {self.eager * 1e3:.3f} ms eagerly, {self.compiled * 1e3:.3f} ms compiled "
            "(measured: the traced operations one by one, and the compiled graph, on zeros)"
        )


def measure(program: Program, spent: float, arrays: Sequence[np.ndarray[Any, Any]]) -> BreakEven:
    """Run a program both ways; the arrays are its inputs, and may be written to."""
    with interpreting(None):
        eager = _shortest(lambda: run_eagerly(program.graph, arrays))
    return BreakEven(spent, eager, _shortest(lambda: program.compiled(arrays)))


def measure_on_zeros(program: Program, spent: float) -> BreakEven | None:
    """The same with inputs that are all zeros; None if these lead to an index that is out of range."""
    try:
        return measure(program, spent, [np.zeros(node.shape, node.dtype.numpy) for node in program.graph.inputs])
    except IndexError:
        return None


def _shortest(call: Callable[[], Any]) -> float:
    times: list[float] = []
    while len(times) < 5 and (len(times) < 2 or sum(times) < LONG):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
        if times[0] > VERY_LONG:
            break
    return min(times)


def run_eagerly(graph: Graph, arrays: Sequence[np.ndarray[Any, Any]]) -> list[Tensor]:
    """Apply a graph's primitives one by one; what is needed no more is freed, as it would be in a program."""
    values: dict[Node, Tensor] = dict(zip(graph.inputs, map(Tensor, arrays), strict=True))
    last = {operand: node for node in graph.nodes for operand in node.inputs}
    kept = {*graph.outputs, *graph.inputs}
    for node in graph.nodes:
        values[node] = node.primitive(*[values[operand] for operand in node.inputs], **node.params)
        for operand in set(node.inputs):
            if last[operand] is node and operand not in kept:
                del values[operand]
    return [values[node] for node in graph.outputs]
