"""Break-even: the number of calls after which compiling has paid, measured by running the trace both ways."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minitorch.graph import Graph
from minitorch.graph.values import is_splat
from minitorch.interpreters import interpreting
from minitorch.ir import Node, Spec
from minitorch.modes.tracing.explain import Argued, SignatureReport
from minitorch.modes.tracing.program import Program
from minitorch.modes.ways_in.inspection import Inspectable
from minitorch.tables import Tabular
from minitorch.tensor import Tensor, fetched, with_value
from minitorch.tree import unflatten

LONG = 0.05  # seconds; slower programs get one further run, as the first one finds cold caches
VERY_LONG = 0.5  # seconds; slower programs are run once
SHORT = 1e-3  # seconds of repetitions, at least; raising it averages more noise out


@dataclass(frozen=True, repr=False)
class BreakEven(Tabular):
    """The cost of compiling, and the time that it saves.

    All times are measured. An eager call is the traced operations, applied one by one; a compiled call is the compiled
    graph, and what a call does around it. Not counted are the Python of the function itself, which runs eagerly and not
    in a compiled call, and on the other side what a compiled call does besides if it has effects: writing back what was
    written in place, connecting the results with a gradient. So compiling may pay somewhat earlier or later.

    Attributes:
        spent: seconds that tracing and compiling took.
        eager: seconds that the traced operations take eagerly.
        compiled: seconds that a compiled call takes, `around` included.
        around: seconds of it outside of the graph: signature lookup, and tensors for the results.
    """

    spent: float
    eager: float
    compiled: float
    around: float = 0.0

    @property
    def calls(self) -> int | None:
        """The number of calls after which compiling has paid; None if it never does.

        Example:
            >>> BreakEven(spent=1.0, eager=0.3, compiled=0.1).calls, BreakEven(1.0, 0.1, 0.1).calls
            (5, None)
        """
        saved = self.eager - self.compiled
        return math.ceil(round(self.spent / saved, 6)) if saved > 0 else None

    def per_call(self, calls: float) -> float:
        """Average seconds of so many compiled calls, tracing and compiling included.

        Example:
            >>> BreakEven(spent=1.0, eager=0.3, compiled=0.1).per_call(10)
            0.2
        """
        return self.spent / calls + self.compiled

    def _parts(self) -> list[str]:
        paid = "never pays" if self.calls is None else f"pays after {self.calls:,} call{'s' * (self.calls != 1)}"
        return [f"{paid}: {self.eager * 1e3:.4f} ms eagerly, one by one, {self.compiled * 1e3:.4f} ms compiled"]


def measure(program: Program, spent: float, arrays: Sequence[np.ndarray[Any, Any]], around: float) -> BreakEven:
    """Run a program both ways; the arrays are its inputs, and may be written to.

    Args:
        spent: seconds that tracing and compiling took.
        around: seconds that a call takes around the program.
    """
    run = eagerly(program.graph)
    with interpreting(None):
        eager = shortest(lambda: run(arrays))
    given: Sequence[Any] = arrays
    if program.takes_devices:  # where values lie there, and what is compiled in a first call is no part of a call
        given = [program.compiled.moved(array) for array in arrays]  # type: ignore[attr-defined]
        program.compiled(given)
    return BreakEven(spent, eager, shortest(lambda: program.compiled(given)) + around, around)


def of_call(f: Inspectable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> BreakEven:
    """Measure a call, on copies of what its graph reads."""
    report = f.traced(*args, **kwargs).report
    program, arrays = f.program(*args, **kwargs)
    return measure(program, report.trace_time + report.compile_time, arrays, around(f, args, kwargs))


def of_signature(f: Inspectable[..., Any], report: SignatureReport, program: Program) -> BreakEven | None:
    """Measure a signature with tensors of zeros; None if these lead to an index out of range."""
    first: dict[str, Any] = {}
    for name, value in report.arguments.items():
        if name in report.same:
            first[name] = first[report.same[name]]
        elif isinstance(value, Spec):
            first[name] = with_value(np.zeros(value.shape, value.dtype.numpy), name in report.needs_grad)
        else:
            first[name] = value.module() if isinstance(value, Argued) else value
    args, kwargs = unflatten(report.structure, list(first.values()))
    arrays = [np.zeros(node.shape, node.dtype.numpy) for node in program.graph.inputs]
    try:
        return measure(program, report.trace_time + report.compile_time, arrays, around(f, args, kwargs))
    except IndexError:
        return None


def around(f: Inspectable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """Measure the seconds of a call outside of its compiled graph, as far as it has no effects."""
    traced, tensors = f.find(args, kwargs)
    seconds = shortest(lambda: f.find(args, kwargs))
    if traced is None or not traced.has_results_alone:
        return seconds
    values = traced.program.compiled(list(map(fetched, traced.inputs(tensors))))
    return seconds + shortest(lambda: traced(tensors, lambda arrays, overwrites: values))


def shortest(call: Callable[[], Any]) -> float:
    """Seconds of the fastest call: disturbances can only make one slower."""
    times: list[float] = []
    while len(times) < 2 or sum(times) < (LONG if len(times) < 5 else SHORT):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
        if times[0] > VERY_LONG:
            break
    return min(times)


def eagerly(graph: Graph) -> Callable[[Sequence[np.ndarray[Any, Any]]], list[Tensor]]:
    """A function that applies a graph's primitives one by one, and frees values after their last use.

    Numbers in the program are there beforehand, as views of one element: eager operations take them as they are.
    """
    last = {operand: node for node in graph.nodes for operand in node.inputs}
    place = {node: number for number, node in enumerate((*graph.inputs, *graph.nodes))}
    nodes = [node for node in graph.nodes if not is_splat(node)]
    ends, steps = {*nodes} - {*graph.outputs}, []
    for node in nodes:
        freed = {each for each in node.inputs if last[each] is node} & ends
        operands, needed_no_more = ([place[each] for each in several] for several in (node.inputs, freed))
        steps.append((node.primitive, operands, dict(node.params), place[node], needed_no_more))
    beside = [_literal(node) if is_splat(node) else None for node in graph.nodes]
    outputs = [place[node] for node in graph.outputs]

    def run(arrays: Sequence[np.ndarray[Any, Any]]) -> list[Tensor]:
        values: list[Any] = [*map(with_value, arrays), *beside]
        for primitive, operands, params, at, needed_no_more in steps:
            values[at] = primitive(*[values[each] for each in operands], **params)
            for each in needed_no_more:
                values[each] = None
        return [values[each] for each in outputs]

    return run


def _literal(node: Node) -> Tensor:
    return with_value(np.broadcast_to(np.asarray(node.params["value"], node.dtype.numpy), node.shape))
