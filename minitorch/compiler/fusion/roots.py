"""Which values of a graph get a place of their own, and which are computed wherever they are needed.

A *root* is stored: in memory, in an accumulator, or in a scratch row of the kernel that makes it. Everything else is
recomputed by each reader, which costs arithmetic and saves memory traffic. The rules are few, and each is a reason
that the ledger can print.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from types import MappingProxyType

from ...graph import Graph
from ...ir import INPUT, POINTWISE, Node
from ...primitives import Literal
from ...primitives.contract import labels_of, space_of
from ..loop_ir.lower import can_lower
from .cost_model import HIDDEN, PART, is_expensive

MOST_OPERATIONS = 200  # one after another in one expression
MOST_PACKED = 512  # rows or columns that a contraction reads an operand for, without packing it more than about once

OUTPUT = "it is an output"
REDUCTION = "it is the result of a reduction"
CONTRACTION = "it is the result of a contraction"
EPILOGUE = "it is computed where a contraction ends"
CALL = "it is made by a library call"
OPERAND = "a library call reads it from memory"
SHARED = "it is expensive and read more than once"
REPEATED = "it is expensive and each element is read repeatedly"
PARTS = "it is put together from parts, and multiplied or summed up more than once"
PIECEMEAL = "it is put together from parts, of parts, and so on, and read more than once"
LONG = "the expression grew too long"
SWITCHED_OFF = "computing it where it is read is switched off"
NONE_KEPT: Mapping[Node, str] = MappingProxyType({})


def is_stored_already(node: Node) -> bool:
    """Whether a value is in memory before anything runs: an input, or an array constant."""
    return node.primitive is INPUT or isinstance(node.params.get("value"), Literal)


def inlined(node: Node, roots: Container[Node]) -> Iterator[Node]:
    """A node and all that is computed with it: what stands between it and stored values."""
    pending, seen = [node], {node}
    while pending:
        at = pending.pop()
        yield at
        for operand in at.inputs:
            if operand not in seen and operand not in roots and not is_stored_already(operand):
                seen.add(operand)
                pending.append(operand)


def is_call(node: Node) -> bool:
    """Whether a node is run by NumPy as it stands, and not by generated loops."""
    return not can_lower(node) and node.primitive.kind not in ("reduction", "contraction")


def base_of(node: Node) -> Node:
    """What a chain of views is a view of."""
    while node.primitive.is_view:
        node = node.inputs[0]
    return node


def output_base(node: Node) -> Node:
    """What has to be in memory for an output: a reshape of it is the same memory."""
    while node.primitive.name == "reshape":
        node = node.inputs[0]
    return node


def find_roots(
    graph: Graph,
    transient: Collection[Node] = (),
    kept: Mapping[Node, str] = NONE_KEPT,
    remade: Container[Node] = (),
    store_all: bool = False,
) -> dict[Node, str]:
    """The roots in program order, each with the reason why it is one; what is transient is none.

    Cheap values are roots only if they are `kept`, each for a reason that is given with it. Expensive ones that are
    shared are roots, but for those that are `remade`. All that is computed is a root if `store_all`.
    """
    users = graph.users()
    wanted: dict[Node, str] = {}
    epilogue: set[Node] = set()  # what is computed, element by element, from the result of a contraction
    for node in map(output_base, graph.outputs):
        if not is_stored_already(node):
            wanted[node] = OUTPUT
    for node in graph.nodes:
        if is_call(node):
            wanted.setdefault(node, CALL)
            for operand in node.inputs:
                base = base_of(operand)
                if not is_stored_already(base):
                    wanted.setdefault(base, OPERAND)
        elif node.primitive.kind == "reduction":
            wanted.setdefault(node, REDUCTION)
        elif node.primitive.kind == "contraction":
            wanted.setdefault(node, CONTRACTION)
            for base in map(base_of, node.inputs):
                if base in epilogue and base not in transient:
                    wanted.setdefault(base, EPILOGUE)
        if node.primitive.kind in POINTWISE and any(
            operand.primitive.kind == "contraction" or operand in epilogue for operand in node.inputs
        ):
            epilogue.add(node)
    roots: dict[Node, str] = {}
    depth: dict[Node, int] = {}
    parts: dict[Node, int] = {}  # what is put together in the expression
    heavy: dict[Node, Node | None] = {}  # the expensive node that would be computed again
    for node in graph.nodes:
        if node in transient:
            heavy[node], depth[node], parts[node] = None, 0, 0
            continue
        inside = [operand for operand in node.inputs if operand not in roots and not is_stored_already(operand)]
        own = int(node.primitive.kind in POINTWISE)
        depth[node] = 1 + max((depth[operand] for operand in inside), default=0)
        again = next((heavy[operand] for operand in inside if heavy[operand] is not None), None)
        for operand, times in _packed(node):
            known = heavy.get(operand)
            if known is not None and times > (MOST_PACKED if 1 not in node.shape[-2:] else 1):
                roots[known] = REPEATED
                heavy[operand] = None
        heavy[node] = node if is_expensive(node) else again
        if again is not None and _repeats(node) and again not in roots:
            roots[again] = REPEATED
            heavy[node] = None
        parts[node] = sum(parts[operand] for operand in inside) + (node.primitive.name in ("pad", "concatenate"))
        reason = wanted.get(node) or kept.get(node)
        if reason is None and own and heavy[node] is not None and len(users[node]) > 1:
            if node in remade:
                heavy[node] = None
            else:
                reason = SHARED
        if reason is None and own and parts[node] > 1 and _takes_up(node, users) > 1:
            reason = PARTS
        if (
            reason is None
            and parts[node] * PART > HIDDEN
            and not node.primitive.is_view
            and count_readers(node, users) > 1
        ):
            reason = PIECEMEAL
        if reason is None and own and store_all:
            reason = SWITCHED_OFF
        if reason is None and depth[node] > MOST_OPERATIONS:
            reason = LONG
        if reason is not None:
            roots[node] = reason
            heavy[node], depth[node], parts[node] = None, 0, 0
    return {node: roots[node] for node in graph.nodes if node in roots}


def count_readers(node: Node, users: Mapping[Node, Sequence[Node]]) -> int:
    """How many nodes read a value, or a view of it."""
    count, pending = 0, [node]
    while pending:
        for user in users[pending.pop()]:
            count += not user.primitive.is_view
            pending += [user] * user.primitive.is_view
    return count


def _takes_up(node: Node, users: Mapping[Node, Sequence[Node]]) -> int:
    """How many reductions and contractions take up a value, or a view of it, as it is."""
    count, pending = 0, [node]
    while pending:
        for user in users[pending.pop()]:
            count += user.primitive.kind in ("reduction", "contraction")
            pending += [user] * user.primitive.is_view
    return count


def _packed(node: Node) -> Iterator[tuple[Node, int]]:
    """The operands of a contraction, and for how many rows or columns of the result each element is used."""
    if node.primitive.kind == "contraction":
        for operand, dims in zip(node.inputs, labels_of(node), strict=True):
            own = {label for labels in dims for label in labels}
            yield operand, math.prod(length for label, length in enumerate(space_of(node)) if label not in own)


def _repeats(node: Node) -> bool:
    """Whether elements of a node's first operand appear more than once in it."""
    return node.primitive.name in ("expand", "unfold", "gather") and node.spec.size > node.inputs[0].spec.size
