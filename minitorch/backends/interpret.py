"""The reference backend: NumPy, node by node, in program order.

Each node becomes one row of a program: a function, the slots of its arguments, the slot of its result, whether the
result is a view, and the slots that are free afterwards. Nothing is fused, and no value is kept after its last use.

Arguments and views have the strides of eager mode, and computed values are contiguous: NumPy's sums and products round
differently for other strides. So a graph as traced gives the bits of eager mode. A pass may remove an operation that
only copies, and so change the order of a sum.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from time import perf_counter_ns
from typing import Any

import numpy as np

from ..graph import Graph
from ..interpreters import Watcher, current_watcher, run_silently, settled
from ..ir import INPUT, Node
from ..primitives import Literal
from ..primitives import check as CHECK
from ..primitives import constant as CONSTANT

Array = np.ndarray[Any, Any]
ADDING = frozenset({"reduction", "contraction", "scan"})  # the kinds of primitives that add up elements
Row = tuple[Any, tuple[int, ...], int, bool, tuple[int, ...]]


class Interpreted:
    """A graph as a list of rows; call it with one array per input."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        slots = {id(node): slot for slot, node in enumerate((*graph.inputs, *graph.nodes))}
        self.outputs = [slots[id(node)] for node in graph.outputs]
        self.copied = _must_be_copied(graph)
        # The slots before the run, without the inputs: constants.
        summed = _summed(graph)
        self.initial: list[Any] = [_constant(node, node in summed) for node in graph.nodes]
        self.program: list[Row] = []
        self.nodes: list[Node] = []
        last_use = _last_uses(graph)
        for node in graph.nodes:
            if node.primitive is CONSTANT:
                continue
            function = node.primitive.evaluate
            if node.params:
                function = partial(function, **node.params)
            arguments = tuple(slots[id(operand)] for operand in node.inputs)
            dead = tuple(slots[key] for key in last_use.get(id(node), ()))
            self.program.append((function, arguments, slots[id(node)], node.primitive.is_view, dead))
            self.nodes.append(node)

    def __call__(self, arrays: Sequence[Array], overwrite: bool = True) -> list[Array]:
        """Run the program. The results are new arrays, even where an input might be overwritten."""
        watcher = current_watcher()
        values: list[Any] = [*arrays, *self.initial]
        if watcher is None:
            run_silently(self._run, values)
        else:
            with watcher.span("call", self.graph):
                run_silently(self._run_watched, values, watcher)
        return [
            np.array(values[slot], order="C") if copied else np.asarray(values[slot], order="C")
            for slot, copied in zip(self.outputs, self.copied, strict=True)
        ]

    def _run(self, values: list[Any]) -> None:
        result = -1
        try:
            for function, arguments, result, is_view, dead in self.program:
                value = function(*[values[slot] for slot in arguments])
                if type(value) is not np.ndarray or not (is_view or value.flags.c_contiguous):
                    value = np.asarray(value, order="K" if is_view else "C")
                values[result] = value
                for slot in dead:
                    values[slot] = None
        except Exception as error:
            for row, node in zip(self.program, self.nodes, strict=True):
                if row[2] == result:
                    error.add_note(f"in {node.primitive.name}: {node.spec}, recorded at {node.source}")
            raise

    def _run_watched(self, values: list[Any], watcher: Watcher) -> None:
        for (function, arguments, result, _, dead), node in zip(self.program, self.nodes, strict=True):
            operands = [values[slot] for slot in arguments]
            begin = perf_counter_ns()
            values[result] = value = settled(function(*operands), node.primitive)
            watcher.ran(begin, "node", node)
            watcher.computed(node.primitive, operands, value, node.source)
            if value.base is None:
                watcher.made(value)
            del operands, value  # the last references: memory is freed here
            for slot in dead:
                values[slot] = None


def refusal(graph: Graph, arrays: Sequence[Array], otherwise: str) -> Exception:
    """Return eager mode's error for values that a compiled program refuses; its code reports only that there is one.

    NumPy runs the graph, and says which value it is, and where. NumPy rounds differently, and may find none.
    """
    try:
        Interpreted(graph)([np.asarray(array) for array in arrays])
    except (IndexError, ValueError) as error:
        return type(error)("\n".join([str(error), *getattr(error, "__notes__", ())]))
    return IndexError(otherwise)


def _summed(graph: Graph) -> set[Node]:
    """Return the nodes whose elements, or a view's, NumPy adds up: in an order that depends on the strides."""
    found: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.primitive.kind in ADDING or (node.primitive.is_view and node in found):
            found.update(node.inputs)
    return found


def _constant(node: Node, is_summed: bool) -> Array | None:
    """Return the value of a constant: a splat is stored once, as a view of one element."""
    if node.primitive is not CONSTANT:
        return None
    if isinstance(node.params["value"], Literal):
        return node.params["value"].array
    if is_summed:
        return np.asarray(run_silently(np.full, node.shape, node.params["value"], node.dtype.numpy))
    return np.broadcast_to(run_silently(np.full, (), node.params["value"], node.dtype.numpy), node.shape)


def _last_uses(graph: Graph) -> dict[int, list[int]]:
    """Map each node to the values (by id) of which it is the last user."""
    last: dict[int, int] = {}
    for node in graph.nodes:
        if node.primitive is CONSTANT:
            continue
        last[id(node)] = id(node)
        for operand in node.inputs:
            if operand.primitive not in (INPUT, CONSTANT):
                last[id(operand)] = id(node)
    for node in graph.outputs:
        last.pop(id(node), None)
    freed: dict[int, list[int]] = {}
    for key, user in last.items():
        freed.setdefault(user, []).append(key)
    return freed


def _owner(node: Node) -> tuple[Node, bool]:
    """Return the node whose memory may hold a value, and whether the value is dense there (no element repeated)."""
    dense = True
    while node.primitive.is_view or node.primitive is CHECK:
        dense = dense and node.primitive.name not in ("expand", "unfold")
        node = node.inputs[0]
    return node, dense


def _must_be_copied(graph: Graph) -> list[bool]:
    """Return the outputs that may share memory with an input, a constant or an earlier output."""
    taken: set[int] = set()
    result = []
    for node in graph.outputs:
        owner, dense = _owner(node)
        shared = owner.primitive is INPUT or owner.primitive is CONSTANT or id(owner) in taken
        taken.add(id(owner))
        result.append(shared or not dense)
    return result


def compile(graph: Graph, updates: Mapping[int, int] | None = None, donated: Collection[int] = ()) -> Interpreted:
    """Compile a graph for NumPy: the backend's interface."""
    return Interpreted(graph)
