"""Transient values: contractions in the middle of a kernel that are never stored, such as the scores of attention.

The matrix of scores between attention's two matrix products is larger than its operands, and only sums over its rows
are used. FlashAttention (Dao et al., 2022) keeps it out of memory. Here that is a rule about values. A contraction is
*transient* if

- storing it costs more than recomputing it (`cost_model.is_dear_to_store`);
- its users are pointwise until they end in reductions and further contractions, and the result of a reduction flows
  back to them (a maximum that is subtracted, a sum that is divided by);
- every kernel that is computed from it has a schedule in tiles (`scheduling.schedules.attention`).

All values of its size on the way, its *cone*, are transient, too, and are recomputed tile by tile where they are used.
This module proposes contractions. The ledger fuses and schedules, and stores those that no schedule computes in tiles.

Two things change with respect to eager mode. A factor of a row, such as the division by the sum of the weights, is
applied to the sum and not to every term, so numbers near the largest of a type may overflow. In 16 bits the weights
stay in float32 until the product is complete.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from ... import primitives as P
from ...graph import Graph
from ...ir import POINTWISE, Node
from .cost_model import is_dear_to_store
from .roots import Transient, output_base

NESTED = "its operand is recomputed tile by tile itself"

Users = Mapping[Node, tuple[Node, ...]]


def find_transient(graph: Graph, refused: Mapping[Node, str]) -> Transient:
    """Propose the transient values of a graph, without the contractions that have been refused, each for a reason."""
    users, outputs = graph.users(), set(map(output_base, graph.outputs))
    found: set[Node] = set()
    stored: dict[Node, str] = {}
    for node in graph.nodes:
        if node.primitive is P.dot and is_dear_to_store(node):
            cone = _cone(node, users, outputs)
            reason = NESTED if found.intersection(node.inputs) else refused.get(node, "")
            if reason:
                stored |= dict.fromkeys(cone, f"stored: {reason}")
            else:
                found |= cone
    return Transient(frozenset(found), stored)


def _cone(contraction: Node, users: Users, outputs: set[Node]) -> set[Node]:
    """Return the values computed element by element from a contraction, if none of them has to be stored.

    Only reductions and contractions read them, and the result of a reduction flows back to them; else there are none.
    """
    cone, ends, pending = {contraction}, dict[Node, None](), [contraction]
    for value in pending:
        if value in outputs:
            return set()
        for user in users[value]:
            kind = user.primitive.kind
            if kind in POINTWISE or user.primitive.name in ("permute", "reshape", "expand"):
                if user.spec.size != contraction.spec.size:
                    return set()
                if user not in cone:
                    cone.add(user)
                    pending.append(user)
            elif kind == "reduction" or user.primitive is P.dot:
                ends[user] = None
            else:
                return set()
    outer = [end for end in ends if end.primitive.kind == "contraction"]
    if not outer or any(cone.issuperset(end.inputs) for end in outer):
        return set()
    return cone if _flows_back((end for end in ends if end not in outer), cone, users) else set()


def _flows_back(reductions: Iterable[Node], cone: Container[Node], users: Users) -> bool:
    """Return whether a value of the cone reads the result of a reduction."""
    pending = [*reductions]
    seen = {*pending}
    for node in pending:
        for user in users[node]:
            if user in cone:
                return True
            if user not in seen and user.primitive.kind != "contraction":
                seen.add(user)
                pending.append(user)
    return False
