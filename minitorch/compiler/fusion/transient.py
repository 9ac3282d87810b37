"""Transient values: contractions in the middle of a kernel that are never stored, such as the scores of attention.

The matrix of scores between attention's two matrix products is larger than its operands, and only sums over its rows
are used. FlashAttention (Dao et al., 2022) keeps it out of memory. Here that is a rule about values. A contraction is
*transient* if

- its result is large beside its operands, and an element is cheap to recompute: the shared dimension is short;
- its users are pointwise until they end in reductions and further contractions, and the result of a reduction flows
  back to them (a maximum that is subtracted, a sum that is divided by).

All values of its size on the way are transient, too, and are recomputed tile by tile where they are used. If there is
no schedule for the resulting loops, the contraction is stored after all.

Two things change with respect to eager mode. A factor of a row, such as the division by the sum of the weights, is
applied to the sum and not to every term, so numbers near the largest of a type may overflow. In 16 bits the weights
stay in float32 until the product is complete.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from ... import primitives as P
from ...graph import Graph
from ...ir import POINTWISE, Node
from .roots import output_base

DEEPEST = 256  # the longest shared dimension of a transient contraction; raising it recomputes more
# How often a stored matrix of scores would be written and read, together with the values computed from it; raising it
# makes more contractions transient. Without a batch it is not used: the contraction may be a layer with weights.
TRAFFIC = 4
AGAIN = "transient: larger than its operands, so it is recomputed tile by tile and never stored"

Users = Mapping[Node, tuple[Node, ...]]


def find_transient(graph: Graph, refused: Collection[Node] = ()) -> set[Node]:
    """The transient values of a graph, except those computed from contractions in `refused`."""
    if sum(node.primitive.kind == "contraction" for node in graph.nodes) < 2:
        return set()
    users, outputs = graph.users(), set(map(output_base, graph.outputs))
    found: set[Node] = set()
    for node in graph.nodes:
        if node.primitive is P.dot and node not in refused and _is_large(node):
            found |= set(_cone(node, users, outputs) or ())
    return found


def _is_large(node: Node) -> bool:
    """Whether storing a contraction costs more than its operands, and recomputing it little."""
    (*batch, rows, columns), depth = node.shape, node.inputs[0].shape[-1]
    if min(rows, columns, depth) < 2 or depth > DEEPEST or not node.dtype.is_floating_point:
        return False
    traffic = TRAFFIC if math.prod(batch) > 1 else 1
    return traffic * node.spec.size > sum(operand.spec.size for operand in node.inputs)


def _cone(contraction: Node, users: Users, outputs: set[Node]) -> list[Node] | None:
    """The values computed element by element from a contraction, if only reductions and contractions read them."""
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
    """Whether the result of a reduction is read by a value of the cone."""
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
    """Whether a contraction sums over transient values."""
    return node.primitive.kind == "contraction" and any(operand in transient for operand in node.inputs)


def outer_axes(node: Node, transient: Collection[Node]) -> tuple[int, ...]:
    """The axes of a contraction over transient values that are theirs; the remaining one is the other operand's."""
    last = len(node.shape) - 1
    return (*range(last - 1), last - 1 if node.inputs[0] in transient else last)
