"""`Sampler`: runs a graph with noise where compiled code may round otherwise; decisions are kept, or turned.

A *decision* is a comparison, a jump such as floor, a pole or the edge of a domain: there noise of nothing makes a
difference of anything. See `rounding` for what the samples are for, and `noise` for the noise.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minitorch.graph import topological_order
from minitorch.graph.evaluation import value_of, values_of
from minitorch.interpreters import run_silently
from minitorch.ir import Node

from .difference import ulps
from .noise import TIMES_NOISE, TIMES_ORDER, further, is_noisy, is_rounded, move, noisy

Array = np.ndarray[Any, Any]
Arrays = dict[Node, Array]

# Jumps among floats; every operation from floats to another type is a decision, too.
JUMPS = frozenset({"floor", "trunc", "floor_divide", "remainder"})

# Functions with poles, branch cuts or domains, where alone they jump.
EDGES = frozenset({"div", "sqrt", "log", "log1p", "pow", "atan2", "exp", "expm1"})

# IEEE 754 leaves open which of two zeros is the larger; NumPy's answer depends on the processor.
MAXIMA = frozenset({"maximum", "reduce_max"})


@dataclass(frozen=True)
class Decision:
    """A decision that rounding can turn, and that accounts for a difference.

    Attributes:
        node: what decides, or has a pole or the edge of its domain there.
        count: in how many elements.
        ulp: of a comparison, how far apart the values are there, at most; None of others.
    """

    node: Node
    count: int
    ulp: int | None

    def __str__(self) -> str:
        node, apart = self.node, "within rounding" if self.ulp is None else f"within {self.ulp} ulp"
        if node.primitive.name in EDGES:
            apart = "within rounding of a pole or the edge of the domain"
        if node.primitive.name in MAXIMA:
            apart = "zeros of either sign"
        return (
            f"{node.primitive.name}: {node.spec}, recorded at {node.source}, fell out differently: "
            f"in {self.count} of {node.spec.size} elements the values are {apart}"
        )


def is_decision(node: Node) -> bool:
    """Whether a small difference of an operand may become a large one of the result, or none."""
    from_floats = any(operand.dtype.is_floating_point for operand in node.inputs)
    return from_floats and (not node.dtype.is_floating_point or node.primitive.name in JUMPS)


def times(number: int) -> int:
    """The permitted multiple of a sample's effect; every other sample takes sums in another order."""
    return TIMES_ORDER if number % 2 else TIMES_NOISE


class Sampler:
    """Runs a graph with noise.

    Args:
        keeps_bits: whether arithmetic has none.

    Attributes:
        right: the values without noise.
        turned: by decision, the elements in which noise can turn it.
    """

    def __init__(self, nodes: Sequence[Node], known: Mapping[Node, Array], keeps_bits: bool = True) -> None:
        self.nodes, self.known = nodes, known
        self.right = values_of(nodes, known)
        self.turned: dict[Node, Array] = {}
        self._keeps_bits = keeps_bits
        self._class = _numbered(nodes, known)
        self._weights = _weights(nodes)

    def sample(self, number: int, wanted: Sequence[Node], decides: bool) -> Arrays:
        """The values of some nodes, with the noise of a sample.

        Args:
            decides: whether decisions that noise can turn are turned.
        """
        values: Arrays = dict(self.known)
        needed = set(topological_order(wanted, self.known))
        for node in self.nodes:
            if node not in needed or node in values:
                continue
            operands = [values[operand] for operand in node.inputs]
            moved = any(values[operand] is not self.right[operand] for operand in node.inputs)
            is_inexact = is_noisy(node.primitive) or (is_rounded(node.primitive) and not self._keeps_bits)
            if is_inexact and node.dtype.is_floating_point:
                value = noisy(node, operands, self._random(number, node), in_runs=bool(number % 2))
            elif not moved:
                value = self.right[node]
            elif is_decision(node):
                value = self._between_jumps(node, operands)
            else:
                if node.primitive.name == "cast" and node.dtype.itemsize == 2:  # as far as rounding may go
                    operands = [further(self.right[node.inputs[0]], operands[0], times(number))]
                value = value_of(node, operands)
                if is_rounded(node.primitive) and node.dtype.name in ("float32", "float64"):
                    value = np.where(self._moved(node, values), move(value, self._random(number, node)), value)
            if moved and (is_decision(node) or node.primitive.name in EDGES):
                towards = (1, -1, math.nan)[number // 2 % 3] if decides else 0
                value = self._decided(node, operands, value, towards, times(number))
            if node.primitive.name in MAXIMA and node.dtype.is_floating_point:
                value = self._of_two_zeros(node, value, (1, -1)[number % 2] if decides else 0)
            values[node] = value
            if node in self._weights:
                values[node] = move(values[node], self._random(number, node))
        return values

    def _random(self, number: int, node: Node) -> np.random.Generator:
        """The random generator of a node; equal computations share their noise."""
        return np.random.default_rng((number, self._class[node]))

    def _moved(self, node: Node, values: Arrays) -> Any:
        """The elements in which noise has moved an operand: the result's last place may differ there, too."""
        moved: Any = False
        for operand in node.inputs:
            moved = moved | (values[operand] != self.right[operand])
        return moved

    def _between_jumps(self, node: Node, operands: Sequence[Array]) -> Array:
        """The outcome of a decision under noise that does not turn it; a remainder keeps its quotient."""
        right = self.right[node]
        if node.primitive.name != "remainder":
            return right
        before = _outcome(node, [self.right[operand] for operand in node.inputs])
        return np.where(_outcome(node, operands) == before, value_of(node, operands), right)

    def _decided(self, node: Node, operands: Sequence[Array], value: Array, towards: float, times: int) -> Array:
        """The outcome of a decision: without noise where noise can turn it, or turned; elsewhere a given value.

        Args:
            towards: to which of the two sides; 0 for none; NaN for either, and for anything at an edge.
            times: how far results may be, as a multiple of this noise.
        """
        own = [self.right[operand] for operand in node.inputs]
        before, turned = _outcome(node, own), self.turned.get(node, np.zeros(node.shape, bool))
        there = self.right[node]
        for sign in (1, -1):
            moved = [further(a, b, sign * times) for a, b in zip(own, operands, strict=True)]
            by_this = ulps(before, _outcome(node, moved)) != 0
            if node.primitive.name in EDGES:  # not where NaN comes from another edge
                for a, b in zip(own, moved, strict=True):
                    by_this &= ~np.isnan(b) | np.isnan(a)
            turned = turned | by_this
            if towards == sign or math.isnan(towards):
                there = np.where(by_this, value_of(node, moved), there)
        if not turned.any():
            return value
        self.turned[node] = turned
        if math.isnan(towards) and node.primitive.name in EDGES:
            there = np.full_like(there, math.nan)
        return np.where(turned, there, value)

    def _of_two_zeros(self, node: Node, value: Array, sign: int) -> Array:
        """A maximum, which may be either of two zeros.

        Args:
            sign: of the zero that it is; 0 for the one that it is without noise.
        """
        own = [self.right[operand] for operand in node.inputs]
        if node.primitive.name == "maximum":
            both = np.signbit(own[0]) != np.signbit(own[1])
        else:
            zeros, dims = own[0] == 0, node.params["dims"]
            both = (zeros & np.signbit(own[0])).any(dims) & (zeros & ~np.signbit(own[0])).any(dims)
        both = both & (self.right[node] == 0)
        if not both.any():
            return value
        self.turned[node] = both
        return np.where(both, np.copysign(value, value.dtype.type(sign)), value) if sign else value

    def decisions(self, outputs: Sequence[Node]) -> Iterator[Decision]:
        """The decisions that noise can turn, among those that some outputs depend on."""
        for node in topological_order(outputs, self.known):
            if node in self.turned:
                turned, ulp = self.turned[node], None
                if node.primitive.name in ("less", "less_equal", "equal"):
                    a, b = (np.broadcast_to(self.right[operand], turned.shape)[turned] for operand in node.inputs)
                    ulp = int(ulps(a, b).max())
                yield Decision(node, int(turned.sum()), ulp)


def _weights(nodes: Sequence[Node]) -> set[Node]:
    """The weights of attention in 16-bit floats: their kernel keeps them in float32, and divides by their sum later.

    They are what a contraction is computed from, element by element, if there is an exp among it.
    """
    found: set[Node] = set()
    for node in nodes:
        if node.primitive.name in ("dot", "contract") and node.dtype.itemsize == 2:
            for operand in node.inputs:
                way, pending = {operand}, [operand]
                while pending:
                    each = pending.pop()
                    if each.primitive.kind in (*_BY_ELEMENT, "movement"):
                        new = [other for other in each.inputs if other not in way]
                        way.update(new)
                        pending += new
                if any(each.primitive.name == "exp" for each in way):
                    found |= {each for each in way if each.primitive.kind in _BY_ELEMENT and each.dtype.itemsize == 2}
    return found


_BY_ELEMENT = ("unary", "binary", "ternary")


def _numbered(nodes: Sequence[Node], known: Mapping[Node, Array]) -> dict[Node, int]:
    """Value numbering: a number for each node, equal for equal computations."""
    numbers: dict[Hashable, int] = {}
    found: dict[Node, int] = {}
    for node in (*known, *nodes):
        if node in found:
            continue
        if node.primitive.name == "barrier" and node not in known:
            found[node] = found[node.inputs[0]]
            continue
        key: Hashable = node
        if node not in known:
            params = tuple((name, repr(value)) for name, value in sorted(node.params.items()))
            key = (node.primitive.name, params, node.spec, tuple(found[operand] for operand in node.inputs))
        found[node] = numbers.setdefault(key, len(numbers))
    return found


def _outcome(node: Node, operands: Sequence[Array]) -> Array:
    """The outcome of a decision: of a remainder the quotient, at an edge the side."""
    name = node.primitive.name
    if name == "remainder":
        return np.asarray(run_silently(np.floor_divide, *operands))
    found = value_of(node, operands)
    if name not in EDGES:
        return found
    with np.errstate(all="ignore"):
        side = np.where(np.isnan(found), 3, np.where(np.isinf(found), 2, 0))
        if name == "div":  # from infinity to minus infinity
            side = side + 8 * np.sign(operands[1])
        if name == "atan2":  # from pi to -pi
            side = side + 8 * np.sign(operands[0]) * (operands[1] < 0)
    return np.asarray(np.nan_to_num(side), np.int64)
