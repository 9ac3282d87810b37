"""Materialisation: the values of a graph that are stored (roots), and those that every reader recomputes.

A *root* is stored in memory, in an accumulator, or in a scratch row of the kernel that computes it. Recomputing all
other values costs arithmetic and saves memory traffic. Every rule is a reason that the ledger can print.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from ...dtypes import int8, uint8
from ...graph import Graph
from ...ir import INPUT, POINTWISE, Node
from ...passes.lowering.contract import labels_of, space_of
from ...primitives import Literal
from ..loop_ir.lower import can_lower
from .cost_model import MOST_WORK, is_expensive

# The depth of an expression, in operations. Raising it stores fewer values, and takes more registers and compile time.
MOST_OPERATIONS = 200
# Rows or columns of a contraction's result up to which an operand is packed about once. Raising it recomputes the
# expensive operands of larger contractions.
MOST_PACKED = 512

# Elements of a view for each of its operand's, from which on expensive ones are stored. Raising it recomputes more.
MOST_OF = {"expand": 1, "unfold": 1, "gather": 1, "pad": MOST_WORK, "concatenate": MOST_WORK}

OUTPUT = "it is an output"
REDUCTION = "it is the result of a reduction"
CONTRACTION = "it is the result of a contraction"
EPILOGUE = "it is the epilogue of one contraction and an operand of another"
NARROW = "it is the epilogue of a contraction, in 8 bits, and an operand of a reduction"
JOINED = "it is the epilogue of a contraction, in 8 bits, and an operand of another one's"
VECTOR = "it is a vector of 8 bits, and every column of a product reads it"
REREAD = "it is a quantisation, and a convolution reads each element repeatedly"
CALL = "a library call computes it"
BODY = "a loop or a branch computes it"
OPERAND = "a library call reads it from memory"
SHARED = "it is expensive and read more than once"
REPEATED = "it is expensive and each element is read repeatedly"
AGAIN = "stored: expensive recomputation"
LOOKED_UP = "an index is computed from it, which was itself looked up by an index"
LONG = "the expression is too long"
SWITCHED_OFF = "recomputation is switched off"
TILE_BY_TILE = "transient: larger than its operands, so it is recomputed tile by tile and never stored"
NONE_KEPT: Mapping[Node, str] = MappingProxyType({})


@dataclass(frozen=True)
class Transient:
    """Decisions about contractions that are large beside their operands.

    Attributes:
        values: those that are never stored.
        refused: those that are stored although they look like the scores of attention, each with the reason.
    """

    values: frozenset[Node] = frozenset()
    refused: Mapping[Node, str] = field(default_factory=dict)


def is_stored_already(node: Node) -> bool:
    """Return whether a value is in memory before anything runs: an input, or an array constant."""
    return node.primitive is INPUT or isinstance(node.params.get("value"), Literal)


def inlined(node: Node, roots: Container[Node]) -> Iterator[Node]:
    """Yield a node and the nodes between it and stored values, which are computed with it."""
    pending, seen = [node], {node}
    while pending:
        at = pending.pop()
        yield at
        for operand in at.inputs:
            if operand not in seen and operand not in roots and not is_stored_already(operand):
                seen.add(operand)
                pending.append(operand)


def is_call(node: Node) -> bool:
    """Return whether NumPy runs a node, instead of generated loops."""
    return not can_lower(node) and node.primitive.kind not in ("reduction", "contraction")


def base_of(node: Node) -> Node:
    """Return the value at the beginning of a chain of views."""
    while node.primitive.is_view:
        node = node.inputs[0]
    return node


def _unpadded(node: Node) -> Node:
    """Return the value at the beginning of a chain of views and paddings, as before a convolution.

    A padding with a number that is not known is a selection: of the padded value inside, and of that number around it.
    """
    while True:
        is_selected = node.primitive.name == "where" and _is_padded(node.inputs[0]) and _is_padded(node.inputs[1])
        if not (is_selected or node.primitive.is_view or node.primitive.name == "pad"):
            return node
        node = node.inputs[is_selected]


def _is_padded(node: Node) -> bool:
    return base_of(node).primitive.name == "pad"


def _reread(operand: Node) -> Node | None:
    """Return the value that a convolution rereads if it is quantised here: padded, so that nothing is masked.

    An element is a few bytes to read and a byte to store; to quantise it for every place in a filter costs more.
    """
    base, at = _unpadded(operand), operand
    is_quantised = base.dtype in (int8, uint8) and base.primitive.kind in POINTWISE and not is_stored_already(base)
    if not is_quantised or operand.spec.size < 2 * base.spec.size:
        return None
    while at is not base and at.primitive.name != "pad":
        at = at.inputs[0]
    return at


def output_base(node: Node) -> Node:
    """Return the value that has to be in memory for an output: a reshape of it is the same memory."""
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
    """Return the roots in program order, each with its reason.

    Args:
        graph: the program.
        transient: values that are never roots.
        kept: cheap values that are roots nevertheless, each with the reason.
        remade: expensive, shared values that are no roots.
        store_all: make every computed value a root.
    """
    users = graph.users()
    wanted: dict[Node, str] = {}
    epilogue: dict[Node, int] = {}  # values computed element by element from contractions, with the place of the last
    narrow: dict[Node, Node] = {}  # of these, the last value in 8 bits on the way
    for node in map(output_base, graph.outputs):
        if not is_stored_already(node):
            wanted[node] = OUTPUT
    for place, node in enumerate(graph.nodes):
        if is_call(node):
            wanted.setdefault(node, BODY if node.primitive.together else CALL)
            for operand in node.inputs:
                base = base_of(operand)
                if not is_stored_already(base):
                    wanted.setdefault(base, OPERAND)
        elif node.primitive.kind == "reduction":
            wanted.setdefault(node, REDUCTION)
            for base in map(base_of, node.inputs):
                if base in narrow:
                    wanted.setdefault(narrow[base], NARROW)  # a quarter of the bytes of the contraction's sums
        elif node.primitive.kind == "contraction":
            wanted.setdefault(node, CONTRACTION)
            for base in map(_unpadded, node.inputs):
                if base in epilogue and base not in transient and base.primitive.kind != "contraction":
                    wanted.setdefault(base, EPILOGUE)
                for part in map(base_of, base.inputs if base.primitive.name == "concatenate" else ()):
                    if part in narrow:  # in 8 bits, also if it is joined with others first
                        wanted.setdefault(narrow[part], EPILOGUE)
            is_packed = all(times > 1 for _, times in _uses(node))
            if not is_packed:
                repeated = (base_of(operand) for operand, times in packings(node) if times > 1)
                for base in repeated:  # each column would quantise the vector again
                    if base.dtype in (int8, uint8) and base.primitive.kind in POINTWISE:
                        wanted.setdefault(base, VECTOR)
            for read in map(_reread, node.inputs):
                if read is not None and (not is_packed or _unpadded(read) not in epilogue):
                    wanted.setdefault(read, REREAD)
            epilogue[node] = place
        if node.primitive.kind in POINTWISE:
            last = max([epilogue.get(output_base(operand), -1) for operand in node.inputs], default=-1)
            if last >= 0:
                epilogue[node] = last
                before = [operand for operand in node.inputs if operand in narrow]
                for operand in before:
                    if epilogue[operand] < last:  # one of two kernels has to store its part
                        wanted.setdefault(narrow[operand], JOINED)
                if node.dtype in (int8, uint8):
                    narrow[node] = node
                elif before:
                    narrow[node] = narrow[before[0]]
    roots: dict[Node, str] = {}
    depth: dict[Node, int] = {}
    heavy: dict[Node, tuple[Node, ...]] = {}  # the expensive nodes that would be computed again
    lookups: dict[Node, Node] = {}  # values computed from a gather's result, with the last before views and checks
    for node in graph.nodes:
        if node in transient:
            heavy[node], depth[node] = (), 0
            continue
        inside = [operand for operand in node.inputs if operand not in roots and not is_stored_already(operand)]
        own = int(node.primitive.kind in POINTWISE)
        depth[node] = 1 + max((depth[operand] for operand in inside), default=0)
        for operand in (*(operand for operand, times in packings(node) if times > 1), *_repeated(node)):
            roots |= dict.fromkeys(heavy.get(operand, ()), REPEATED)
            heavy[operand] = ()
        if node.primitive.name == "gather":
            # Each lookup reads at several places, so a chain of them would grow exponentially.
            roots |= dict.fromkeys((lookups.pop(each) for each in node.inputs[1:] if each in lookups), LOOKED_UP)
        known = [lookups[operand] for operand in inside if operand in lookups and operand not in roots]
        if known or node.primitive.name == "gather":
            is_same = node.primitive.is_view or node.primitive.name == "check"
            lookups[node] = known[0] if is_same and known else node
        again = tuple(dict.fromkeys(each for operand in inside for each in heavy[operand]))
        heavy[node] = (node,) if is_expensive(node) else again
        reason = wanted.get(node) or kept.get(node)
        if reason is None and own and heavy[node] and len(users[node]) > 1:
            if node in remade:
                heavy[node] = ()
            else:
                reason = SHARED
        if reason is None and own and store_all:
            reason = SWITCHED_OFF
        if reason is None and depth[node] > MOST_OPERATIONS:
            reason = LONG
        if reason is not None:
            roots[node] = reason
            heavy[node], depth[node] = (), 0
    return {node: roots[node] for node in graph.nodes if node in roots}


def count_readers(node: Node, users: Mapping[Node, Sequence[Node]]) -> int:
    """Return how many nodes read a value, or a view of it."""
    count, pending = 0, [node]
    while pending:
        for user in users[pending.pop()]:
            count += not user.primitive.is_view
            pending += [user] * user.primitive.is_view
    return count


def packings(node: Node) -> Iterator[tuple[Node, int]]:
    """Yield the operands of a contraction, and how often it computes each element of them.

    Once for each time that the element is packed. A product with a vector, or of two, packs nothing, and computes it
    for each use.
    """
    if node.primitive.kind == "contraction":
        used = [times for _, times in _uses(node)]
        is_packed = 1 not in used and math.prod(space_of(node)) > node.spec.size
        for operand, times in _uses(node):
            yield operand, -(-times // MOST_PACKED) if is_packed else times


def _uses(node: Node) -> Iterator[tuple[Node, int]]:
    """Yield the operands of a contraction, and for how many rows or columns of the result it uses each element."""
    if node.primitive.kind == "contraction":
        for operand, dims in zip(node.inputs, labels_of(node), strict=True):
            own = {label for labels in dims for label in labels}
            yield operand, math.prod(length for label, length in enumerate(space_of(node)) if label not in own)


def _repeated(node: Node) -> Iterator[Node]:
    """Yield the operands of which a node computes elements more than once, or far more than it needs.

    A padding computes an element for each of its own, also where it then takes a number, and so does a concatenation.
    """
    most = MOST_OF.get(node.primitive.name)
    if most is not None:
        operands = node.inputs if node.primitive.name == "concatenate" else node.inputs[:1]
        yield from (operand for operand in operands if node.spec.size > most * operand.spec.size)
