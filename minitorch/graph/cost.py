"""Cost analysis: bytes, FLOPs and peak memory of a graph, counted from shapes and types alone.

The counts are those of the *unfused* execution, node by node, as the `interpret` backend does it: every node reads all
of its inputs from memory and writes its whole output. They are what a fusing compiler starts from. Exactly:

- a movement that only views its input (`Primitive.is_view`) reads and writes nothing; the users of a view read
  its elements, those of an expanded or unfolded one once only;
- a splat constant is part of the instruction; a constant array is read by its users, and never written;
- a node that uses one input twice reads it once; an input counts as a whole, even where `gather` reads a part;
- `flops` counts one per output element for elementwise arithmetic and comparison, one per input element for
  reductions and scans, 2*m*n*k for `dot`, a comparison per step of a merge sort for `argsort`, one per update
  for `scatter_add`;
- a loop counts what its body does, as often as it repeats if that is known, and of two branches the larger;
- `transcendentals` counts the elements of exp, log, sqrt, sin, pow and the like, which are not in `flops`, as in
  XLA's cost analysis;
- `peak_bytes` is the most memory alive at once in program order: inputs and constant arrays always, a value
  until its last use or that of a view of it, outputs until the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..ir import Node
from ..primitives import constant
from .values import bodies, is_splat, siblings

if TYPE_CHECKING:
    from .graph import Graph


class Traffic:
    """Counts of bytes and operations, and the figures that follow from them."""

    bytes_read: int
    bytes_written: int
    flops: int
    transcendentals: int

    @property
    def bytes(self) -> int:
        """Read and written together."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float:
        """Arithmetic per byte moved: the horizontal axis of a roofline plot."""
        return (self.flops + self.transcendentals) / self.bytes if self.bytes else 0.0


@dataclass(frozen=True)
class Cost(Traffic):
    """The counts of one graph, by the rules at the top of this file.

    Attributes:
        nodes: operations, without inputs and constants.
        bytes_read: from memory, of all nodes.
        bytes_written: to memory, of all nodes.
        flops: arithmetic on elements of any type.
        transcendentals: elements of exp, log, sqrt and the like.
        peak_bytes: the most memory alive at once.
    """

    nodes: int
    bytes_read: int
    bytes_written: int
    flops: int
    transcendentals: int
    peak_bytes: int


def _of_output(node: Node) -> int:
    return node.spec.size


def _of_input(node: Node) -> int:
    return node.inputs[0].spec.size


def _of_contraction(node: Node) -> int:
    """Count two FLOPs, a multiplication and an addition, for each point of the iteration space."""
    lowered = node.params.get("lengths")  # of a contraction over named dimensions
    return 2 * math.prod((*node.shape, node.inputs[0].shape[-1]) if lowered is None else lowered)


def _of_sort(node: Node) -> int:
    length: int = node.shape[node.params["dim"]]
    return node.spec.size * max(length - 1, 0).bit_length()


def _of_decomposition(node: Node) -> int:
    """Count the size of a matrix times its lesser length, of which routines take a few times as many."""
    x = node.inputs[0].spec
    return x.size * min(x.shape[-2:])


def _of_indexing(node: Node) -> int:
    return node.inputs[1].spec.size if node.primitive.name == "scatter_add" else 0


def _of_bodies(node: Node) -> int:
    return repeated(node, flops)


def repeated(node: Node, of: Callable[[Node], int]) -> int:
    """Count something in the bodies of a loop or branch: in all known repetitions, and in the larger branch."""
    counts = [sum(of(first) for first in _counted(body.nodes)) for body in bodies(node).values()]
    together = sum if node.primitive.name == "while_loop" else max
    return int(together(counts)) * int(node.params.get("length", 1))


def _counted(nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield the nodes whose operations are not counted with others: of siblings the first."""
    later = {node for group in siblings(nodes).values() for node in group[1:]}
    return (node for node in nodes if node not in later)


def _nothing(node: Node) -> int:
    return 0


FLOPS: dict[str, Callable[[Node], int]] = {  # by kind of the primitive
    "unary": _of_output,
    "binary": _of_output,
    "ternary": _of_output,
    "reduction": _of_input,
    "argreduction": _of_input,
    "scan": _of_input,
    "contraction": _of_contraction,
    "control": _of_bodies,
    "sort": _of_sort,
    "decomposition": _of_decomposition,
    "indexing": _of_indexing,
    "movement": _nothing,
    "source": _nothing,
    "random": _nothing,
    "operator": _of_output,
}


def flops(node: Node) -> int:
    """Count the arithmetic of one node, without transcendental functions."""
    return FLOPS[node.primitive.kind](node) if node.primitive.work in ("arithmetic", "division") else 0


def transcendentals(node: Node) -> int:
    """Count the elements of one node that take a transcendental function."""
    if node.primitive.together:
        return repeated(node, transcendentals)
    return node.spec.size if node.primitive.work == "function" else 0


def memory_roots(graph: Graph) -> dict[Node, Node]:
    """Map every node of a graph to the one whose memory holds it: the base of a view, or the node itself."""
    roots: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        roots[node] = roots[node.inputs[0]] if node.primitive.is_view else node
    return roots


def costs(graph: Graph) -> dict[Node, tuple[int, int, int, int]]:
    """Return bytes read and written, FLOPs and transcendentals of every operation of a graph except constants."""
    # Bytes that reading a value takes: a view's own, at most those of its base.
    to_read = {node: node.spec.nbytes for node in graph.inputs}
    found = {}
    counted = set(_counted(graph.nodes))
    for node in graph.nodes:
        if node.primitive is constant:
            to_read[node] = 0 if is_splat(node) else node.spec.nbytes
        elif node.primitive.is_view:
            to_read[node] = min(node.spec.nbytes, to_read[node.inputs[0]])
            found[node] = (0, 0, 0, 0)
        else:
            to_read[node] = node.spec.nbytes
            read = sum(to_read[operand] for operand in set(node.inputs))
            work = (flops(node), transcendentals(node)) if node in counted else (0, 0)
            found[node] = (read if node in counted else 0, node.spec.nbytes, *work)
    return found


def count(graph: Graph) -> Cost:
    """Return the cost of a graph."""
    found = costs(graph)
    read, written, arithmetic, special = map(sum, zip(*found.values(), strict=True)) if found else (0, 0, 0, 0)
    nodes = sum(node in found for node in _counted(graph.nodes))
    return Cost(nodes, read, written, arithmetic, special, max(live_bytes(graph).values(), default=always(graph)))


def always(graph: Graph) -> int:
    """Count the bytes alive throughout: inputs and array constants."""
    constants = (node for node in graph.nodes if node.primitive is constant and not is_splat(node))
    return sum(node.spec.nbytes for node in (*graph.inputs, *constants))


def live_bytes(graph: Graph) -> dict[Node, int]:
    """Return the bytes alive while each operation runs, in program order; the peak is the largest.

    Example:
        >>> import minitorch as mt
        >>> graph = mt.jit(lambda x: (x.exp() + x).sum()).graph(mt.ones(100))
        >>> [(node.primitive.name, alive) for node, alive in live_bytes(graph).items()]
        [('exp', 800), ('add', 1200), ('reduce_sum', 804)]
    """
    roots = memory_roots(graph)
    last_use: dict[Node, float] = {}
    for position, node in enumerate(graph.nodes):
        last_use[roots[node]] = position
        for operand in node.inputs:
            last_use[roots[operand]] = position
    for node in (*graph.inputs, *graph.outputs):
        last_use[roots[node]] = math.inf
    last_use.update(dict.fromkeys((node for node in graph.nodes if node.primitive is constant), math.inf))
    alive = always(graph)
    found = {}
    for position, node in enumerate(graph.nodes):
        if node.primitive is not constant:
            alive += node.spec.nbytes if roots[node] is node else 0
            found[node] = alive
        for root in {roots[node], *(roots[operand] for operand in node.inputs)}:
            if last_use[root] == position:
                alive -= root.spec.nbytes
    return found


def in_units(number: float, unit: str = "") -> str:
    """Return a number with an SI prefix, to about three digits.

    Example:
        >>> in_units(999, "B"), in_units(12_345, "B"), in_units(4.2e9)
        ('999 B', '12.3 kB', '4.2 G')
    """
    for prefix in ("", "k", "M", "G"):
        if abs(number) < 999.5 or prefix == "G":
            break
        number /= 1000
    digits = f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"
    return f"{digits} {prefix}{unit}".rstrip()
