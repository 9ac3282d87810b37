"""The range of the 8-bit integers in an array: of constants, their values; of stored values, their clamp.

It decides which instructions are exact. Ends are rounded to whole bits, so that layers whose weights differ a little
have the same kernel.
"""

from __future__ import annotations

from collections.abc import Container

from ....ir import Node
from ....passes.intervals import Range, of_type
from ....primitives import Literal
from ...loop_ir.expressions import Expression, Inside, Load
from ...loop_ir.index import linear, variable
from ...loop_ir.loops import Bounds
from ...loop_ir.lower import At, Lowering, Reader, can_lower
from ..analysis.ranges import value_range

FURTHEST = 3  # values on the way to a known range: a cast reads a clamped value, which may be read twice


def known_bounds(node: Node, roots: Container[Node]) -> Bounds | None:
    """Return the least and the largest number of an 8-bit integer array; None if they may be those of the type.

    Args:
        node: the value in the array.
        roots: the values that kernels compute once, and read from memory or from registers.

    Example:
        >>> from minitorch.graph.graph import Graph
        >>> graph = Graph.parse('''
        ... graph(x: f32[4]):
        ...   %0 = maximum(x, 3.0)
        ...   %1 = less(%0, 90.0)
        ...   %2 = where(%1, %0, 90.0)
        ...   %3 = cast(%2, dtype=u8)
        ...   return %3
        ... ''')
        >>> known_bounds(graph.outputs[0], ())
        (0, 127)
    """
    value = node.params.get("value")
    if isinstance(value, Literal):
        return _whole_bits(int(value.array.min()), int(value.array.max()), node) if value.array.size else None
    found = _range(node, roots, FURTHEST)
    return _whole_bits(int(found.low), int(found.high), node)


def _range(node: Node, roots: Container[Node], further: int) -> Range:
    """Return the range of a value, as far as `further` values that it is computed from tell."""
    if not further or not _is_expression(node):
        return of_type(node.dtype)
    leaves: list[Node] = []

    def read(other: Node) -> Reader | None:
        if other not in roots and _is_expression(other):
            return None

        def load(at: At, inside: Inside) -> Expression:
            leaves.append(other)
            return Load(other.dtype, len(leaves) - 1, linear(at, other.shape), inside)

        return load

    def of_leaf(part: Expression) -> Range | None:
        return _range(leaves[part.buffer], roots, further - 1) if isinstance(part, Load) else None

    at = tuple(variable(f"i{number}", length) for number, length in enumerate(node.shape))
    return value_range(Lowering(read).computed(node, at), of_leaf)


def _is_expression(node: Node) -> bool:
    """Return whether an element is computed from single elements of others."""
    is_stored = isinstance(node.params.get("value"), Literal)
    return can_lower(node) and node.primitive.kind not in ("reduction", "contraction") and not is_stored


def _whole_bits(low: int, high: int, node: Node) -> Bounds | None:
    """Return the bounds of the fewest bits; None of all bits of the type."""
    bits = max(high.bit_length(), (-low - 1).bit_length() if low < 0 else 0)
    bounds = (-(1 << bits) if low < 0 else 0, (1 << bits) - 1)
    limits = of_type(node.dtype)
    return bounds if limits.low < bounds[0] or bounds[1] < limits.high else None
