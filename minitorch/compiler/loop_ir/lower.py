"""Lowering: an element of a node as an expression over stored elements.

Movement primitives become index arithmetic: each is a rule from an index of its result to an index of its input. Stored
values (inputs, other kernels' results, accumulators, scratch rows) are read through the given `readers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...dtypes import DType, bool_, int8, int64, uint8
from ...ir import POINTWISE, Node
from ...passes.lowering.contract import labels_of, space_of
from ...primitives import Literal
from ...primitives.sources import GOLDEN, MIXING
from ..lengths import Length, require_within_one, within_one
from .expressions import (
    ALWAYS,
    Apply,
    Expression,
    Inside,
    Load,
    Position,
    Sum,
    chosen,
    computed_in,
    converted,
    literal,
    looked_up,
)
from .index import NOWHERE, Index, Variable, linear, looked, reshaped, variable

uint64 = DType("uint64", "u64", np.dtype(np.uint64), "int")  # no tensor has it: random bits are computed in it

# Values in a concatenation that is part of an expression. Raising it saves copies of few small values, and costs
# comparisons and masked reads: one for each value and element.
MOST_JOINED = 32

At = tuple[Index, ...]
Reader = Callable[[At, Inside], Expression]


class Lowering:
    """Expressions for nodes, memoised by index.

    Args:
        read: gives the reader of a stored node, or None for a node to be computed in the expression.
    """

    def __init__(self, read: Callable[[Node], Reader | None]) -> None:
        self.read = read
        self._known: dict[tuple[Node, At, Inside], Expression] = {}
        self._sums: dict[Node, str] = {}  # the variables of transient contractions

    def element(self, node: Node, at: At, inside: Inside = ALWAYS) -> Expression:
        """Return the element of a node at an index; `inside` has the conditions under which it is used."""
        key = (node, at, inside)
        known = self._known.get(key)
        if known is None:
            reader = self.read(node)
            known = self._known[key] = reader(at, inside) if reader else self.computed(node, at, inside)
        return known

    def term(self, node: Node, at: At) -> Expression:
        """Return the operand of a reduction or contraction at a point of its iteration space."""
        if node.primitive.kind == "reduction":
            return self.element(node.inputs[0], at)
        return self._product(node, at)

    def _product(self, node: Node, at: At, inside: Inside = ALWAYS) -> Expression:
        lengths = space_of(node)
        a, b = (
            self.element(operand, tuple(_part(labels, at, lengths) for labels in dims), inside)
            for operand, dims in zip(node.inputs, labels_of(node), strict=True)
        )
        dtype = computed_in(node.dtype)
        return Apply(dtype, "mul", (converted(a, dtype), converted(b, dtype)))

    def sum(self, node: Node, at: At, inside: Inside = ALWAYS) -> Expression:
        """Return an element of a contraction that is not stored; sums of 16-bit floats are float32, rounded once."""
        name = self._sums.setdefault(node, f"k{len(self._sums)}")
        k = Variable(name, node.inputs[0].shape[-1])
        value = self._product(node, (*at, variable(name, k.extent)), inside)
        return converted(Sum(value.dtype, k, value), node.dtype)

    def computed(self, node: Node, at: At, inside: Inside = ALWAYS) -> Expression:
        """Return the element as computed from the node's inputs, stored or not."""
        if node.primitive.kind in POINTWISE and node.primitive.name != "check":
            operands = tuple([self.element(operand, at, inside) for operand in node.inputs])
            value = Apply(node.dtype, node.primitive.name, operands)
            if value.dtype not in (uint8, int8):
                return value
            from .quantising import quantised

            return quantised(value)
        if movement := _MOVEMENTS.get(node.primitive.name):
            return self.element(node.inputs[0], movement(node, at), inside)
        return _RULES[node.primitive.name](self, node, at, inside)


def _part(labels: tuple[int, ...], at: At, lengths: tuple[int, ...]) -> Index:
    """Return the index in an operand's dimension that joins some dimensions of a contraction's space."""
    require_within_one(tuple(lengths[label] for label in labels))
    return linear([at[label] for label in labels], tuple(lengths[label] for label in labels))


def _constant(lowering: Lowering, node: Node, at: At, inside: Inside) -> Expression:
    value = node.params["value"]
    assert not isinstance(value, Literal), "a literal array is stored"
    return literal(node.dtype, value)


def _iota(lowering: Lowering, node: Node, at: At, inside: Inside) -> Expression:
    return Position(node.dtype, at[0])


def _expanded(node: Node, at: At) -> At:
    own = zip(at[node.spec.ndim - node.inputs[0].spec.ndim :], node.inputs[0].shape, strict=True)
    return tuple(NOWHERE if length == 1 else index for index, length in own)


def _permuted(node: Node, at: At) -> At:
    place = dict(zip(node.params["dims"], at, strict=True))
    return tuple(place[dim] for dim in range(len(at)))


def _on_diagonal(node: Node, at: At) -> At:
    *batch, place = at
    offset = node.params["offset"]
    return (*batch, place + max(0, -offset), place + max(0, offset))


def _sliced(node: Node, at: At) -> At:
    bounds = zip(at, node.params["start"], node.params["step"], strict=True)
    return tuple(index * step + start for index, start, step in bounds)


def _flipped(node: Node, at: At) -> At:
    lengths = enumerate(zip(at, node.shape, strict=True))
    return tuple(index * -1 + (n - 1) if dim in node.params["dims"] else index for dim, (index, n) in lengths)


def _unfolded(node: Node, at: At) -> At:
    dim = node.params["dim"]
    place = at[dim] * node.params["step"] + at[-1] * node.params["dilation"]
    return (*at[:dim], place, *at[dim + 1 : -1])


# Where the element of a movement's result is in its input.
_MOVEMENTS: dict[str, Callable[[Node, At], At]] = {
    "reshape": lambda node, at: reshaped(at, node.shape, node.inputs[0].shape),
    "barrier": lambda node, at: at,
    "permute": _permuted,
    "expand": _expanded,
    "slice": _sliced,
    "diagonal": _on_diagonal,
    "flip": _flipped,
    "unfold": _unfolded,
}


def _pad(lowering: Lowering, node: Node, at: At, inside: Inside) -> Expression:
    (x,) = node.inputs
    places: list[Index] = []
    here = ALWAYS
    for index, (before, _, between), length in zip(at, node.params["padding"], x.shape, strict=True):
        place, step = index - before, between + 1
        here = here.and_(0, place, (length - 1) * step + 1 if length else 0)
        if step > 1:
            here = here.and_(0, place % step, 1)
        places.append(place // step)
    outside = literal(node.dtype, node.params["value"])
    if here == ALWAYS:
        return lowering.element(x, tuple(places), inside)
    return chosen(here, lowering.element(x, tuple(places), _both(inside, here)), outside)


def _concatenate(lowering: Lowering, node: Node, at: At, inside: Inside) -> Expression:
    dim, begin = node.params["dim"], 0
    parts = []
    for x in node.inputs:
        if not x.shape[dim] and node.shape[dim]:
            continue
        place = at[dim] - begin
        here = ALWAYS.and_(0, place, x.shape[dim])
        parts.append((here, lowering.element(x, (*at[:dim], place, *at[dim + 1 :]), _both(inside, here))))
        begin += x.shape[dim]
    result = parts[-1][1]
    for here, part in reversed(parts[:-1]):
        result = part if here == ALWAYS else chosen(here, part, result)
    return result


def _gather(lowering: Lowering, node: Node, at: At, inside: Inside) -> Expression:
    x, *indices = node.inputs
    count = indices[0].spec.ndim
    where = []
    for operand, length in zip(indices, x.shape, strict=False):
        if isinstance(length, Length):  # the number of a row, see `_counts`
            where.append(_counted(operand, at[:count]))
            continue
        place = lowering.element(operand, at[:count], inside)
        if isinstance(place, Position) and place.index.bounds[0] >= 0 and place.index.bounds[1] < length:
            where.append(place.index)  # as after a check
        else:
            where.append(_looked(place, length, inside))
    value = lowering.element(x, (*where, *at[count:]), inside)
    used = {atom for part in value.all_parts for atom in looked_up(part)}
    for index, length in zip(where, x.shape, strict=False):
        if not isinstance(length, Length) and not used.issuperset(atom for atom, _ in index.terms):
            value = _checked(value, index, length)
    return value


def _looked(place: Expression, length: int, inside: Inside) -> Index:
    """Return a value as an index; 0 where it is masked, as a load is."""
    return looked(place if isinstance(place, Load) else chosen(inside, place, literal(place.dtype, 0)), length)


def _checked(value: Expression, index: Index, length: int) -> Expression:
    """Return a value with an index that it does not depend on, so that an index out of range is noticed."""
    is_inside = Apply(bool_, "less", (Position(int64, index), literal(int64, length)))
    return Apply(value.dtype, "where", (is_inside, value, value))


def _check(lowering: Lowering, node: Node, at: At, inside: Inside) -> Expression:
    """Return the value, with an index that is out of range where the value is."""
    value, low, high = lowering.element(node.inputs[0], at, inside), node.params["low"], node.params["high"]
    place: Expression
    least, most = _limits(node.dtype)
    if (
        low == 0 and high < most and not node.dtype.is_floating_point
    ):  # an index, whose negative ones do not count from the end
        end, is_negative = literal(node.dtype, high + 1), Apply(bool_, "less", (value, literal(node.dtype, 0)))
        place = Apply(node.dtype, "where", (is_negative, end, value)) if low > least else value
        return Position(node.dtype, _looked(place, high + 1, inside))
    there, missing = (literal(int64, place) for place in (0, 1))
    place = there
    for is_needed, end, one, other in ((low > least, low, None, value), (high < most, high, value, None)):
        if is_needed:
            bound = literal(node.dtype, end)
            holds = Apply(bool_, "less_equal", (one or bound, other or bound))
            place = Apply(int64, "where", (holds, place, missing))
    return value if place is there else _checked(value, looked(chosen(inside, place, there), 1), 1)


def _limits(dtype: DType) -> tuple[float, float]:
    """Return the least and the largest number of a type."""
    if dtype.is_floating_point:
        return -math.inf, math.inf
    limits = np.iinfo(dtype.numpy)
    return int(limits.min), int(limits.max)


def _random_bits(lowering: Lowering, node: Node, at: At, inside: Inside) -> Expression:
    """Return `minitorch.primitives.sources.squares` of the element's position, with `mix_key` of the state as key."""

    def apply(name: str, *arguments: Expression) -> Expression:
        return Apply(uint64, name, arguments)

    def shifted(name: str, x: Expression, bits: int) -> Expression:
        return apply(name, x, literal(uint64, bits))

    def folded(x: Expression, bits: int) -> Expression:
        return apply("bitwise_xor", x, shifted("shift_right", x, bits))

    require_within_one(node.shape)
    (state,) = node.inputs
    seed, draw = (apply("cast", lowering.element(state, (NOWHERE + place,), inside)) for place in (0, 1))
    key = apply("add", seed, apply("mul", apply("add", draw, literal(uint64, 1)), literal(uint64, GOLDEN)))
    for bits, factor in MIXING:
        key = apply("mul", folded(key, bits), literal(uint64, factor))
    key = apply("bitwise_or", folded(key, 31), literal(uint64, 1))
    y = apply("mul", Position(uint64, linear(at, node.shape)), key)
    z = apply("add", y, key)
    x = y
    for added in (y, z, y):
        x = apply("add", apply("mul", x, x), added)
        x = apply("bitwise_or", shifted("shift_right", x, 32), shifted("shift_left", x, 32))
    return Apply(node.dtype, "cast", (shifted("shift_right", apply("add", apply("mul", x, x), z), 32),))


def _both(a: Inside, b: Inside) -> Inside:
    for low, index, high in b.bounds:
        a = a.and_(low, index, high)
    return a


_RULES: dict[str, Callable[[Lowering, Node, At, Inside], Expression]] = {
    "constant": _constant,
    "dot": Lowering.sum,
    "iota": _iota,
    "pad": _pad,
    "concatenate": _concatenate,
    "gather": _gather,
    "check": _check,
    "random_bits": _random_bits,
}


_SPELLED = ("where", "cast")  # pointwise primitives whose `element` is the printer's and the emitter's own


def _is_bounded(node: Node) -> bool:
    """Return whether an element is found without a comparison with a length that a call gives."""
    if node.primitive.name == "random_bits":  # of the places of elements in memory
        return within_one(node.shape)
    if node.primitive.name == "check":
        return not any(isinstance(node.params[end], Length) for end in ("low", "high"))
    x, *indices = node.inputs
    pairs = zip(indices, x.shape, strict=False)
    return all(not isinstance(length, Length) or _counts(index, length) for index, length in pairs)


def _counts(index: Node, length: Length) -> bool:
    """Return whether indices are those of all elements, as for one of each row."""
    while index.primitive.name in ("expand", "reshape", "cast", "check"):
        index = index.inputs[0]
    return index.primitive.name == "iota" and index.shape[0] == length


def _counted(index: Node, at: At) -> Index:
    """Return the element of an index that counts."""
    while index.primitive.name != "iota":
        movement = _MOVEMENTS.get(index.primitive.name)
        at = movement(index, at) if movement else at
        index = index.inputs[0]
    return at[0]


def can_lower(node: Node) -> bool:
    """Return whether a node can be part of an expression; reductions and contractions have their own loops.

    Left to NumPy are primitives without an `element`, powers of integers, bitcasts from or to a type that is computed
    in another one, and concatenations of many values, of which every element is a choice among all.
    """
    name = node.primitive.name
    if name in ("gather", "check", "random_bits") and not _is_bounded(node):
        return False
    if name == "concatenate":
        return len(node.inputs) <= MOST_JOINED
    dtype = node.inputs[0].dtype if node.inputs else node.dtype
    if name == "bitcast":
        return all(each is not bool_ and computed_in(each) is each for each in (dtype, node.dtype))
    if name == "pow":
        return dtype.is_floating_point
    return bool(node.primitive.element) or name in {*_MOVEMENTS, *_RULES, *_SPELLED}
