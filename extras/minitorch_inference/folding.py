"""Freezing: whatever hangs on constants alone is computed once, when the program is compiled, however large it is.

The pipeline `FREEZING` is for graphs whose parameters are constants (`minitorch.freeze`). It is `DEFAULT` with
`FOLDING` in place of the folding of small constants. Folding trades arithmetic for memory, so it asks whether that is
a gain. Some operations make more bytes than they read and are next to nothing where they are used, in the loops of a
kernel:

- views, such as a transposed matrix, are indices there, and so are movements that repeat elements (`expand`, `pad`);
  where an operand is packed, packing transposes it, once (`compiler/scheduling/prepacking.py`). A product with
  few rows reads a weight best along its rows, as it lies: transposed beforehand, it was up to 1.4 times slower;
- casts to a wider type, and the arithmetic on it, decode weights that are stored in 8 bits or less (dequantisation);
- `iota`, and masks made of it, are counted there.

So a cheap operation is folded only if its result takes no more bytes than the arrays that it is computed from. A sum, a
product of matrices, a sort or a transcendental function is folded up to `MOST_GROWN` bytes more than these take.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minitorch.graph.build import topological_order, with_inputs
from minitorch.graph.graph import Graph
from minitorch.graph.values import is_splat
from minitorch.ir import Node
from minitorch.passes.constant_folding import ELEMENTWISE, fold, is_finite, literal_of
from minitorch.passes.pipeline import Pass
from minitorch.primitives import barrier, constant, reshape

Array = np.ndarray[Any, Any]

MOST_GROWN = 1 << 24  # bytes that the result of costly work may be larger than its operands; raising it takes memory
CHEAP = ELEMENTWISE | {"movement", "source"}  # kinds of primitives; transcendental functions apart


def _hang_on_constants(graph: Graph) -> Iterator[Node]:
    """The nodes that depend on constants alone, in program order; neither draws nor barriers, which passes keep."""
    found: set[Node] = set()
    for node in graph.nodes:
        is_known = node.primitive.kind == "source" if not node.inputs else all(map(found.__contains__, node.inputs))
        if is_known and node.primitive is not barrier and node.primitive.kind != "random":
            found.add(node)
            yield node


def _is_costly(node: Node) -> bool:
    return node.primitive.kind not in CHEAP or node.primitive.work == "function"


def _is_free(node: Node) -> bool:
    """Whether it is a view; a reshape of anything but an array as it lies is a copy."""
    is_copy = node.primitive is reshape and node.inputs[0].primitive is not constant
    return node.primitive.is_view and not is_copy


class _Folding:
    """One run of the pass: the values that are known, and the arrays that each of them is computed from."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.hanging = set(_hang_on_constants(graph))
        self.done: dict[Node, Node] = {node: node for node in graph.inputs}
        self.arrays: dict[Node, frozenset[Node]] = {}  # the array literals behind a value, by the new node
        self.costly: set[Node] = set()  # new nodes that are costly, or computed from such
        self.values: dict[Node, Array] = {}

    def run(self) -> Graph:
        program = []
        for node in self.graph.nodes:
            now = with_inputs(node, tuple([self.done[operand] for operand in node.inputs]))
            if node in self.hanging:
                now = self._folded(now)
            self.done[node] = now
            program.append(now)
        if all(new is old for new, old in zip(program, self.graph.nodes, strict=True)):
            return self.graph
        return self.graph.with_nodes(program, [self.done[node] for node in self.graph.outputs])

    def _folded(self, node: Node) -> Node:
        """A constant in place of a node, or the node."""
        if node.primitive is constant:
            self.arrays[node] = frozenset() if is_splat(node) else frozenset((node,))
            return node
        if node.inputs and all(map(is_splat, node.inputs)):
            small = fold(node)
            if small is not None and is_splat(small):
                self.arrays[small] = frozenset()
                return small
        behind = frozenset[Node]().union(*(self.arrays[operand] for operand in node.inputs))
        is_costly = _is_costly(node) or any(operand in self.costly for operand in node.inputs)
        size = sum(each.spec.nbytes for each in behind)
        is_small = node.spec.size == 1 or node.spec.nbytes <= size + (MOST_GROWN if is_costly else 0)
        if node.inputs and is_small and not _is_free(node):
            value = self._value(node)
            if value is not None:
                found = literal_of(value, node)
                self.arrays[found] = frozenset() if is_splat(found) else frozenset((found,))
                return found
        self.arrays[node] = behind
        if is_costly:
            self.costly.add(node)
        return node

    def _value(self, wanted: Node) -> Array | None:
        """The value of a node; None if it cannot be computed, or is not finite although its operands are."""
        try:
            with np.errstate(all="ignore"):
                for node in topological_order((wanted,), self.values):
                    operands = [self.values[operand] for operand in node.inputs]
                    value = np.asarray(node.primitive.evaluate(*operands, **node.params))
                    self.values[node] = np.ascontiguousarray(value).reshape(value.shape)  # as sums take them
        except Exception:  # an index out of range, for instance: the run will say it, with the user's line
            return None
        found = self.values[wanted]
        if not is_finite(found) and all(is_finite(self.values[operand]) for operand in wanted.inputs):
            return None  # the run will say it: `check_nan` can name the line
        return found


def fold_all(graph: Graph) -> Graph:
    """The graph with whatever hangs on constants alone evaluated, as far as that is a gain.

    Example:
        >>> graph = Graph.parse('''
        ... graph(x: f32[2,2]):
        ...   %0 = constant([[1.0, 2.0], [3.0, 4.0]]) : f32[2,2]
        ...   %1 = permute(%0, dims=[1,0])
        ...   %2 = mul(%1, 2.0)
        ...   %3 = dot(x, %2, dtype=f32)
        ...   return %3
        ... ''')
        >>> from minitorch.passes.dead_code import remove_dead_code
        >>> print(remove_dead_code(fold_all(graph)))
        graph(x: f32[2,2]):
          %0 = constant([[2.0, 6.0], [4.0, 8.0]]) : f32[2,2]
          %1 = dot(x, %0, dtype=f32)              : f32[2,2]
          return %1
    """
    return _Folding(graph).run()


def folded(graph: Graph) -> list[Node]:
    """The operations that `fold_all` carries out beforehand, in program order.

    Example:
        >>> graph = Graph.parse('''
        ... graph(x: f32[2,2]):
        ...   %0 = constant([1.0, 2.0]) : f32[2]
        ...   %1 = exp(%0)
        ...   %2 = expand(%1, shape=[2,2])
        ...   %3 = mul(x, %2)
        ...   return %3
        ... ''')
        >>> [node.primitive.name for node in folded(graph)]
        ['exp']
    """
    folding = _Folding(graph)
    left = set(topological_order(folding.run().outputs))
    needed = set(topological_order(graph.outputs))
    hanging = (node for node in graph.nodes if node in folding.hanging and node.primitive is not constant)
    done = folding.done
    return [node for node in hanging if node in needed and (done[node] not in left or done[node].primitive is constant)]


FOLDING = Pass("freezing", fold_all, "Evaluate whatever depends on constants alone, of any size, where it pays.")
