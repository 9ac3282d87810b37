"""Transient values: contractions in the middle of a kernel, and what is made of them, which are never stored.

Between the two matrix products of attention lies a matrix of scores, which is larger than everything that it is made
of, and of which nothing is left in the end but sums over its rows. Such a matrix need not exist. A contraction is
*transient* if

- its result is large beside its operands, and an element costs little to compute again: the shared dimension is short;
- what becomes of it is pointwise, until it is reduced: by reductions, one of which flows back into what comes after it
  (a maximum that is subtracted, a sum that is divided by), and by further contractions.

Everything of its size on the way is transient too: it is computed again, tile by tile, wherever it is needed. Whether
the loops that come out of this can be done in tiles is for `minitorch.compiler.scheduling.sweeps` to say; if not, the
contraction is refused, and is stored after all.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from ... import primitives as P
from ...graph import Graph
from ...ir import POINTWISE, Node
from .roots import output_base

DEEPEST = 256  # the longest shared dimension of a contraction that is computed again
# How often a value that is not transient is written and read, with what is made of it. What has no batch is compared as
# it is: it may be a layer with weights, whose result is needed again and again.
TRAFFIC = 4
AGAIN = "computed again, tile by tile: it is larger than what it is made of"

Users = Mapping[Node, tuple[Node, ...]]


def find_transient(graph: Graph, refused: Collection[Node] = ()) -> set[Node]:
    """The transient values of a graph; those that are computed from contractions in `refused` apart."""
    if sum(node.primitive.kind == "contraction" for node in graph.nodes) < 2:
        return set()
    users, outputs = graph.users(), set(map(output_base, graph.outputs))
    found: set[Node] = set()
    for node in graph.nodes:
        if node.primitive is P.dot and node not in refused and _is_large(node):
            found |= set(_cone(node, users, outputs) or ())
    return found


def _is_large(node: Node) -> bool:
    """Whether storing a contraction would cost more than what it is made of, and computing it again not much."""
    (*batch, rows, columns), depth = node.shape, node.inputs[0].shape[-1]
    if min(rows, columns, depth) < 2 or depth > DEEPEST or not node.dtype.is_floating_point:
        return False
    traffic = TRAFFIC if math.prod(batch) > 1 else 1
    return traffic * node.spec.size > sum(operand.spec.size for operand in node.inputs)


def _cone(contraction: Node, users: Users, outputs: set[Node]) -> list[Node] | None:
    """What is computed element by element from a contraction, if reductions and contractions are all that reads it."""
    cone, ends = [contraction], []
    known = {contraction}
    for value in cone:
        if value in outputs:
            return None
        for user in users[value]:
            kind = user.primitive.kind
            if user in known:
                continue
            known.add(user)
            if kind in POINTWISE or (user.primitive.name in ("permute", "reshape", "expand")):
                if user.spec.size != contraction.spec.size:
                    return None
                cone.append(user)
            elif kind == "reduction" or user.primitive is P.dot:
                ends.append(user)
            else:
                return None
    contractions = [end for end in ends if end.primitive.kind == "contraction"]
    if not contractions or any(set(end.inputs) <= set(cone) for end in contractions):
        return None
    return cone if _flows_back([end for end in ends if end not in contractions], set(cone), users) else None


def _flows_back(reductions: list[Node], cone: set[Node], users: Users) -> bool:
    """Whether what is reduced is needed to go on."""
    pending, seen = list(reductions), set(reductions)
    while pending:
        for user in users[pending.pop()]:
            if user in cone:
                return True
            if user not in seen and user.primitive.kind != "contraction":
                seen.add(user)
                pending.append(user)
    return False


def is_outer(node: Node, transient: Collection[Node]) -> bool:
    """Whether a contraction sums up transient values."""
    return node.primitive.kind == "contraction" and any(operand in transient for operand in node.inputs)


def outer_axes(node: Node, transient: Collection[Node]) -> tuple[int, ...]:
    """The axes of a contraction over transient values that are theirs; the one left is the other operand's."""
    last = len(node.shape) - 1
    return (*range(last - 1), last - 1 if node.inputs[0] in transient else last)
