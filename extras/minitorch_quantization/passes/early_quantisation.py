"""Early quantisation: floats become 8-bit integers before they are moved, joined or pooled, not afterwards.

In Q/DQ form every layer quantises its own input, behind whatever stands between the layers. Rounding and clamping look
at each element alone, so they commute with movements, and they never turn the order of two numbers around, so they
commute with the maximum of a pool:

    quantise(movement(x))  =  movement(quantise(x))
    quantise(max(x))       =  max(quantise(x))          if the scale is positive, and the values are clamped

Both laws are exact. The second needs the clamp in sight: a cast alone wraps, so that 255 would be more than 256, and
NaN, which is the maximum of whatever it is in, has to be clamped to the largest number. They hold for any function of
single elements that ends in a cast to 8 bits, such as a ReLU with a quantisation, as long as its other operands are the
same for all elements. The function so arrives at the product before it, becomes a part of its epilogue, and what is
stored between two layers has 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from minitorch import primitives as P
from minitorch.dtypes import float32
from minitorch.graph.build import apply, literal
from minitorch.graph.graph import Graph
from minitorch.graph.values import is_splat
from minitorch.ir import POINTWISE, Node, Primitive, Spec

from .dequantized import BYTES

# Movements whose results consist of elements of the operand; padding makes others.
COMMUTING = frozenset((P.reshape, P.permute, P.slice_, P.flip, P.expand, P.unfold, P.concatenate))


MOST_OPERATIONS = 100  # of a function that is moved: a quantisation has 7, an activation before it up to 20 more


def quantise_early(graph: Graph) -> Graph:
    """The graph with quantisations before movements and maxima, where nobody else reads these.

    Example:
        >>> graph = Graph.parse('''
        ... graph(x: f32[2,8]):
        ...   %0 = reshape(x, shape=[2,4,2])
        ...   %1 = mul(%0, 10.0)
        ...   %2 = cast(%1, dtype=u8)
        ...   return %2
        ... ''')
        >>> print(quantise_early(graph))
        graph(x: f32[2,8]):
          %0 = mul(x, 10.0)               : f32[2,8]
          %1 = cast(%0, dtype=u8)         : u8[2,8]
          %2 = reshape(%1, shape=[2,4,2]) : u8[2,4,2]
          return %2
    """
    while True:
        users = graph.users()
        outputs = set(graph.outputs)
        moves = {}
        for node in graph.nodes:
            if node.primitive is P.cast and node.dtype in BYTES and node.inputs[0].dtype is float32:
                new = _moved(node, users, outputs)
                if new is not None:
                    moves[node] = new
                    break  # one at a time: the next may begin in this one
        if not moves:
            return graph
        changed = graph.substitute(moves)
        needed = changed.subgraph(changed.outputs)
        graph = graph.with_nodes(needed.nodes, needed.outputs)


def _moved(node: Node, users: Mapping[Node, tuple[Node, ...]], outputs: set[Node]) -> Node | None:
    """The same values, with the quantisation one operation earlier; None if that is not possible."""
    cone = _cone(node)
    if cone is None:
        return None
    inside, source = cone
    if (
        len(inside) > MOST_OPERATIONS
        or any(user not in inside for user in users[source])
        or not outputs.isdisjoint((*inside - {node}, source))
    ):
        return None
    if any(user not in inside for each in inside - {node} for user in users[each]):
        return None
    is_maximum = source.primitive is P.reduce_max and _is_clamped(node) and _rises(node.inputs[0], source)
    if source.primitive not in COMMUTING and not is_maximum:
        return None
    early = [_rebuilt(node, source, operand) for operand in source.inputs]
    return apply(source.primitive, *early, source=source.source, **source.params)


def _uniform(node: Node) -> Node | None:
    """The one number that a value repeats, as a value of one element; None if it is not known to repeat one."""
    if is_splat(node):
        return node
    while node.primitive in (P.expand, P.reshape):
        if node.spec.size == 1:
            return node
        node = node.inputs[0]
    return node if node.spec.size == 1 else None


def _cone(node: Node) -> tuple[set[Node], Node] | None:
    """The pointwise operations that end in a node, and the only value of many elements that they are computed from."""
    inside: set[Node] = set()
    sources: set[Node] = set()
    pending = [node]
    while pending:
        each = pending.pop()
        if each in inside or _uniform(each) is not None:
            continue
        if each.primitive.kind in POINTWISE:
            inside.add(each)
            pending += each.inputs
        else:
            sources.add(each)
    return (inside, sources.pop()) if len(sources) == 1 and inside else None


def _rebuilt(node: Node, source: Node, new: Node) -> Node:
    """The operations of a cone on another source."""
    made = {source: new}
    pending = [node]
    while pending:
        each = pending[-1]
        if each in made:
            pending.pop()
            continue
        one = _uniform(each)
        if one is not None:
            made[each] = _repeated(one, Spec(new.shape, each.dtype))
            continue
        missing = [operand for operand in each.inputs if operand not in made]
        if missing:
            pending += missing
        else:
            operands = [made[operand] for operand in each.inputs]
            made[each] = apply(each.primitive, *operands, source=each.source, **each.params)
    return made[node]


def _repeated(one: Node, spec: Spec) -> Node:
    if is_splat(one):
        return literal(one.params["value"], spec, one.source)
    scalar = one if one.spec.ndim == 0 else apply(P.reshape, one, shape=(), source=one.source)
    return apply(P.expand, scalar, shape=spec.shape, source=one.source)


# Order ------------------------------------------------------------------------------------------------------------


def _is_positive(node: Node) -> bool:
    """Whether a repeated number is known to be above 0."""
    one = _uniform(node)
    while one is not None:
        if one.primitive is P.constant:
            value = one.params["value"]
            return bool(np.all(np.asarray(value if is_splat(one) else value.array) > 0))
        if one.primitive in (P.expand, P.reshape):
            one = one.inputs[0]
        elif one.primitive is P.div and _is_positive(one.inputs[0]):
            one = one.inputs[1]
        else:
            return one.primitive is P.maximum and _is_positive(one.inputs[1])
    return False


def _sum_rises(node: Node, rises: Callable[[Node], bool]) -> bool:
    return all(map(rises, node.inputs))


def _difference_rises(node: Node, rises: Callable[[Node], bool]) -> bool:
    return rises(node.inputs[0]) and _uniform(node.inputs[1]) is not None


def _product_rises(node: Node, rises: Callable[[Node], bool]) -> bool:
    one, other = node.inputs
    return (rises(one) and _is_positive(other)) or (rises(other) and _is_positive(one))


@dataclass(frozen=True)
class _Bounded:
    """A minimum or maximum of x and a number, by a comparison of both; `takes_nan` if NaN becomes the number."""

    x: Node
    number: Node
    is_minimum: bool
    takes_nan: bool


def _bounded(node: Node) -> _Bounded | None:
    """A selection as a minimum or maximum under which NaN stays above all numbers, as `reduce_max` has it.

    NaN stays what it is in ``where(h < x, h, x)`` and ``where(x <= h, h, x)``, and becomes the largest number in
    ``where(x < h, x, h)``. In ``where(h < x, x, h)`` it would become the least one.
    """
    condition, here, elsewhere = node.inputs
    if condition.primitive not in (P.less, P.less_equal):
        return None
    low, high = condition.inputs
    for x, number in ((elsewhere, here), (here, elsewhere)):
        beside = high if x is low else low if x is high else None
        if beside is not None and _same_number(beside, number):
            found = _Bounded(x, number, is_minimum=(x is low) is (x is here), takes_nan=x is here)
            return found if found.is_minimum or not found.takes_nan else None
    return None


def _choice_rises(node: Node, rises: Callable[[Node], bool]) -> bool:
    found = _bounded(node)
    return found is not None and rises(found.x)


def _same_number(a: Node, b: Node) -> bool:
    one, other = _uniform(a), _uniform(b)
    if one is None or other is None:
        return False
    if is_splat(one) and is_splat(other):
        return bool(one.params["value"] == other.params["value"])
    return one is other


def _cast_rises(node: Node, rises: Callable[[Node], bool]) -> bool:
    """A cast to floats rounds; one to integers wraps."""
    return node.dtype.is_floating_point and rises(node.inputs[0])


def _is_clamped(node: Node) -> bool:
    """Whether a cast to 8 bits is of a number that was brought into the range of the type, perhaps before a sum."""
    limits, at, shift = np.iinfo(node.dtype.numpy), node.inputs[0], None
    if at.primitive is P.add and _uniform(at.inputs[1]) is not None:
        at, shift = at.inputs[0], at.inputs[1]
    least, most, takes_nan = -np.inf, np.inf, False
    while True:
        if at.primitive is P.maximum and _uniform(at.inputs[1]) is not None:
            each = _Bounded(at.inputs[0], at.inputs[1], is_minimum=False, takes_nan=False)
        elif at.primitive is P.where and (selected := _bounded(at)) is not None:
            each = selected
        else:
            return bool(limits.min <= least and most <= limits.max) and takes_nan
        bound = shifted(each.number, shift)
        if bound is None:
            return False
        takes_nan = takes_nan or each.takes_nan
        if each.is_minimum:
            most = min(most, bound)
        else:
            least = max(least, min(bound, most))
        at = each.x


def shifted(number: Node, shift: Node | None) -> float | None:
    """The number that a bound and what is added to it make; None if that is not known."""
    one, by = _uniform(number), None if shift is None else _uniform(shift)
    if one is None:
        return None
    if one.primitive is P.sub and by is not None and _same_number(one.inputs[1], by):  # (255 - z) + z
        one, by = _uniform(one.inputs[0]), None
    if one is None or not is_splat(one) or not (by is None or is_splat(by)):
        return None
    return float(one.params["value"]) + (0.0 if by is None else float(by.params["value"]))


_RISES: dict[Primitive, Callable[[Node, Callable[[Node], bool]], bool]] = {
    P.add: _sum_rises,
    P.maximum: _sum_rises,
    P.cast: _cast_rises,
    P.floor: _sum_rises,
    P.sub: _difference_rises,
    P.mul: _product_rises,
    P.where: _choice_rises,
}


def _rises(node: Node, source: Node) -> bool:
    """Whether a function of the elements of a source never turns their order around."""

    def rises(each: Node) -> bool:
        if each is source or _uniform(each) is not None:
            return True
        rule = _RISES.get(each.primitive)
        return rule is not None and rule(each, rises)

    return rises(node)
