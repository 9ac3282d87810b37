"""The bytes that a kernel moves, and the operations that share one: by a rule that fits on a card.

A kernel goes once over the elements of one shape. A sum or maximum over a dimension goes over the elements that it
reads; it is done when the kernel is, so nothing in the same kernel can read it. Numbers in a program move nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from minitorch import primitives as P
from minitorch.graph import Graph
from minitorch.graph.text import node_names
from minitorch.ir import Node

from ...harness.fusion import REDUCTIONS, loop_shape, operations


def bytes_of(graph: Graph, kernel: Sequence[Node]) -> tuple[int, int]:
    """Bytes that a kernel reads and writes: every value once, and of its own only those that somebody else needs."""
    inside = set(kernel)
    read = {operand for node in kernel for operand in node.inputs if operand not in inside}
    outside = {operand for node in graph.nodes if node not in inside for operand in node.inputs} | set(graph.outputs)
    written = [node for node in inside if node in outside]
    return (
        sum(node.spec.nbytes for node in read if node.primitive is not P.constant),
        sum(node.spec.nbytes for node in written),
    )


def traffic(graph: Graph, kernels: Sequence[Sequence[Node]]) -> int:
    """Bytes that all kernels move."""
    return sum(sum(bytes_of(graph, kernel)) for kernel in kernels)


def illegal(graph: Graph, kernels: Sequence[Sequence[Node]]) -> str | None:
    """Why these kernels cannot run; None if they can."""
    names = node_names(graph)
    home: dict[Node, int] = {}
    for number, kernel in enumerate(kernels):
        for node in kernel:
            if node in home:
                return f"{names[node]} is in two kernels"
            home[node] = number
    for node in operations(graph):
        if node not in home:
            return f"{names[node]} is in no kernel"
    for kernel in kernels:
        for node in kernel:
            if loop_shape(node) != loop_shape(kernel[0]):
                shapes = f"{list(loop_shape(kernel[0]))} and {list(loop_shape(node))}"
                return f"{names[kernel[0]]} and {names[node]} share a kernel, and run over {shapes}"
            for operand in node.inputs:
                if operand.primitive in REDUCTIONS and home.get(operand) == home[node]:
                    return (
                        f"{names[node]} shares a kernel with {names[operand]}, which is done only when all elements are"
                    )
    if _cyclic(len(kernels), home):
        return "two kernels wait for each other: each reads what the other one writes"
    return None


def _cyclic(count: int, home: dict[Node, int]) -> bool:
    """Whether some kernels need each other, by taking away again and again those that need none of the rest."""
    needs: list[set[int]] = [set() for _ in range(count)]
    for node, number in home.items():
        needs[number] |= {home[operand] for operand in node.inputs if operand in home} - {number}
    left = set(range(count))
    while ready := {number for number in left if not needs[number] & left}:
        left -= ready
    return bool(left)


def reference(graph: Graph) -> list[list[Node]]:
    """A good partition: kernels in the order in which they run, and every operation in the first that it may join.

    An operation may join a kernel that does not run before those that it reads from, and runs after the reductions that
    it reads. So an order of the kernels is there from the beginning, and no two can wait for each other.
    """
    kernels: list[list[Node]] = []
    place: dict[Node, int] = {}
    for node in operations(graph):
        reads = [operand for operand in node.inputs if operand in place]
        first = max([place[operand] + (operand.primitive in REDUCTIONS) for operand in reads], default=0)
        fitting = (at for at in range(first, len(kernels)) if loop_shape(kernels[at][0]) == loop_shape(node))
        place[node] = next(fitting, len(kernels))
        if place[node] == len(kernels):
            kernels.append([])
        kernels[place[node]].append(node)
    return kernels


def joined_to_the_last(graph: Graph) -> list[list[Node]]:
    """A partition that anybody finds: in program order, each operation joins the kernel before it if it may."""
    kernels: list[list[Node]] = []
    for node in operations(graph):
        ended = kernels and any(each.primitive in REDUCTIONS and each in kernels[-1] for each in node.inputs)
        if kernels and not ended and loop_shape(kernels[-1][0]) == loop_shape(node):
            kernels[-1].append(node)
        else:
            kernels.append([node])
    return kernels
