"""The backend for looking closely: the kernels of the fused graph, run by Python element by element.

The same schedule and the same loops as in `llvm`, evaluated instead of emitted: slow by four orders of magnitude, easy
to follow in a debugger, and what the machine code is compared with.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler import evaluate
from ..compiler.kernel import Kernel
from ..compiler.roots import is_stored_already, output_base
from ..compiler.schedule import Schedule, schedule
from ..graph import Graph
from ..interpreters import current_observer, run_silently
from ..ir import Node
from .interpret import Interpreted

Array = np.ndarray[Any, Any]


class Evaluated:
    """A graph as loops in Python; call it with one array per input."""

    def __init__(self, graph: Graph) -> None:
        self.schedule: Schedule = schedule(graph)

    def __call__(self, arrays: Sequence[Array], overwrite: bool = False) -> list[Array]:
        """Run the kernels; node by node, if somebody wants to see every value. What comes back is always new."""
        graph = self.schedule.graph
        if current_observer() is not None:
            return Interpreted(graph)(arrays)
        known: dict[Node, Array] = dict(zip(graph.inputs, map(np.ascontiguousarray, arrays), strict=True))
        known |= {
            node: np.ascontiguousarray(node.params["value"].array)
            for node in graph.nodes
            if is_stored_already(node) and node not in known
        }
        for kernel in self.schedule.kernels:
            _run(kernel, known)
        return [np.array(known[output_base(node)]).reshape(node.shape) for node in graph.outputs]


def _run(kernel: Kernel, known: dict[Node, Array]) -> None:
    if kernel.loops is None:
        (node,) = kernel.nodes
        operands = [_viewed(operand, known) for operand in node.inputs]
        known[node] = np.ascontiguousarray(run_silently(lambda: node.primitive.evaluate(*operands, **node.params)))
        return
    known |= {node: np.empty(node.shape, node.dtype.numpy) for node in kernel.made}
    evaluate.run(kernel.loops, [known[node].reshape(-1) for node in kernel.buffers])


def _viewed(node: Node, known: Mapping[Node, Array]) -> Array:
    """A value in memory, or views of one."""
    chain = []
    while node.primitive.is_view:
        chain.append(node)
        node = node.inputs[0]
    array = known[node]
    for view in reversed(chain):
        array = np.asarray(view.primitive.evaluate(array, **view.params))
    return array


def compile(graph: Graph, updates: Mapping[int, int] | None = None, donated: Collection[int] = ()) -> Evaluated:
    """Make a graph run as loops in Python."""
    return Evaluated(graph)
