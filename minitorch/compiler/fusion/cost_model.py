"""The cost model of fusion: picoseconds of one core, for arithmetic and for traffic to memory.

A value that several kernels read is stored, or recomputed by each of them (rematerialisation). Storing it costs a
write, and a read by every kernel. Recomputing it costs its operations, once for every element that is needed, and
reads of its operands. `minitorch.compiler.fusion.remat` compares the two; `roots` and the loops use the same weights to
find expensive values.

The figures are round ones of a core of 3 GHz with vectors of 16 float32 lanes. Decisions depend on their ratios, which
differ less between processors than the figures do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...graph.cost import flops, transcendentals
from ...ir import POINTWISE, Node, Primitive

# Picoseconds for a byte to or from memory: 10 GB/s, the share of one core of several. If it is raised, fewer expensive
# values are stored.
BYTE = 100
# Picoseconds for an element of an addition, a comparison or a choice: one vector in a cycle. If it is raised, more is
# stored.
OPERATION = 20
# Picoseconds for an element of a division, a root or an elementary function: some twenty instructions, or a divider
# that is not pipelined. If it is raised, more of these are stored.
EXPENSIVE = 20 * OPERATION
# Picoseconds for an element of random bits: rounds of 64-bit multiplications (`primitives.sources`).
RANDOM = 100 * OPERATION
# Picoseconds for an element of a concatenation or a padding: comparisons of the index, and a masked read. If it is
# raised, nested concatenations are stored more often.
PART = 5 * OPERATION
# Picoseconds for an element of a value with zeros between its elements: its index is divided, and it is read alone.
# If it is raised, the images of transposed convolutions are stored more often.
SPREAD = 10 * OPERATION
# Picoseconds that one more kernel takes: its call, and waking other threads. If it is raised, there are fewer kernels.
KERNEL = 4096 * BYTE
# The work of a kernel, as a multiple of that of its operations, each by itself: an estimate, so that counts
# from the loops stay within 3. Raising it stores fewer values.
MOST_WORK = 2.5
# The longest shared dimension of a contraction that is recomputed tile by tile rather than stored: its multiply-adds
# for an element, sixteen in a cycle, then take less time than the element's way to memory and back several times. If it
# is raised, more contractions are recomputed.
DEEPEST = 256
# How often a stored matrix of scores is written and read, together with the values computed from it. If it is raised,
# more contractions are recomputed. Without a batch it is not used: the contraction may be a layer with weights.
TRAFFIC = 4
# Picoseconds of cheap arithmetic for an element that hide behind memory traffic: a float32 is read, another is
# written. If it is raised, longer expressions are recomputed.
HIDDEN = 2 * 4 * BYTE


def price(primitive: Primitive) -> int:
    """Return the picoseconds for an element of a pointwise primitive, or of random bits; 0 for others."""
    if primitive.kind == "random":
        return RANDOM
    if primitive.work in ("division", "function"):
        return EXPENSIVE
    return OPERATION if primitive.kind in POINTWISE else 0


def spreads(node: Node) -> bool:
    """Return whether a node puts numbers between the elements of a value, as before a transposed convolution."""
    return node.primitive.name == "pad" and any(
        between > 0 or length == 1 < length + before + after
        for (before, after, between), length in zip(node.params["padding"], node.inputs[0].shape, strict=True)
    )


def weight(node: Node) -> int:
    """Return the picoseconds for an element of a node without its operands; movements are index arithmetic."""
    if node.primitive.name == "concatenate":
        return PART * len(node.inputs)  # all are read, and one is chosen
    if node.primitive.name == "pad":
        return SPREAD if spreads(node) else PART
    if node.primitive.name == "div" and is_repeated(node.inputs[1]):
        return OPERATION  # by one number of a row
    return price(node.primitive)


def is_repeated(node: Node) -> bool:
    """Return whether a value is an expanded one, or a view of it."""
    while node.primitive.is_view and node.primitive.name != "expand":
        node = node.inputs[0]
    return node.primitive.name == "expand"


def work(node: Node) -> int:
    """Return the picoseconds of a node that is computed once, as `scheduling.count` counts those of loops."""
    choices = {"pad": 1, "concatenate": len(node.inputs)}.get(node.primitive.name, 0) * node.spec.size
    return OPERATION * (flops(node) + choices) + EXPENSIVE * transcendentals(node)


def is_expensive(node: Node) -> bool:
    """Return whether computing a node, once, costs far more than reading a stored number."""
    return price(node.primitive) >= EXPENSIVE and weight(node) >= EXPENSIVE


def times_of(nodes: Iterable[tuple[Node, int]]) -> tuple[int, int]:
    """Return the picoseconds of cheap and of expensive operations for nodes and how often each is computed."""
    cheap = expensive = 0
    for node, times in nodes:
        time = times * weight(node)
        expensive += time if is_expensive(node) else 0
        cheap += 0 if is_expensive(node) else time
    return cheap, expensive


def noticed(cheap: int, expensive: int, hidden: int = HIDDEN) -> int:
    """Return the picoseconds that arithmetic adds to a kernel: memory traffic hides cheap operations only.

    Args:
        cheap, expensive: picoseconds of arithmetic.
        hidden: picoseconds of memory traffic; for an element unless told.
    """
    return expensive + max(0, cheap - hidden)


def is_dear_to_store(contraction: Node) -> bool:
    """Return whether a contraction's result costs more to move than its operands to read, and little to recompute.

    It is then computed tile by tile where it is used, if `transient` finds that it can be.
    """
    (*batch, rows, columns), depth = contraction.shape, contraction.inputs[0].shape[-1]
    if min(rows, columns, depth) < 2 or depth > DEEPEST or not contraction.dtype.is_floating_point:
        return False
    traffic = TRAFFIC if math.prod(batch) > 1 else 1
    stored, read = contraction.spec.size, sum(operand.spec.size for operand in contraction.inputs)
    return traffic * stored > read
