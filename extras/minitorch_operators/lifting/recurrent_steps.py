"""Steps of recurrent layers, found by their own nodes; `minitorch.nn.recurrent.recurrence` has the formulas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import minitorch_operators as O
from minitorch import primitives as P
from minitorch.ir import Node, Primitive

from .matching import Found, either, is_number, operands


@dataclass(frozen=True)
class Step:
    """One step of a recurrence.

    Attributes:
        kind: the operator of the layer.
        state: the hidden state after it, and the cell state of an LSTM.
        x: its part of the product of the sequence.
        before: the state before it.
        weight, bias: those of the product of the hidden state.
    """

    kind: Primitive
    state: tuple[Node, ...]
    x: Node
    before: tuple[Node, ...]
    weight: Node
    bias: Found

    def follows(self, other: Step) -> bool:
        """Whether it is the next one of the same layer."""
        mine, theirs = (self.kind, self.weight, self.bias), (other.kind, other.weight, other.bias)
        return self.before == other.state and mine == theirs


def steps_of(h: Node) -> Iterator[Step]:
    """The steps that a node is the hidden state after."""
    for find in (_lstm, _gru, _plain):
        yield from find(h)


def _lstm(h: Node) -> Iterator[Step]:
    """``c = f * c + i * g`` and ``h = o * tanh(c)``."""
    for o, bent in _factors(h, O.sigmoid, P.tanh):
        (c,) = bent.inputs
        for kept, new in either(c, P.add):
            for f, before in _factors(kept, O.sigmoid):
                for i, g in _factors(new, O.sigmoid, P.tanh):
                    z = _parts([each.inputs[0] for each in (i, f, g, o)])
                    for x, (hidden, weight, bias) in _sums(z):
                        yield Step(O.lstm, (h, c), x, (hidden, before), weight, bias)


def _gru(h: Node) -> Iterator[Step]:
    """``h = n + z * (h - n)`` with ``n = tanh(x_n + r * (W h)_n)``."""
    for n, moved in either(h, P.add):
        for z, away in _factors(moved, O.sigmoid, P.sub):
            before, taken = away.inputs
            if taken is not n or n.primitive is not P.tanh:
                continue
            for xn, reset in either(n.inputs[0], P.add):
                for r, hn in _factors(reset, O.sigmoid):
                    gates = [either(gate.inputs[0], P.add) for gate in (r, z)]
                    for (xr, hr), (xz, hz) in ((one, other) for one in gates[0] for other in gates[1]):
                        x, product = _parts([xr, xz, xn]), _parts([hr, hz, hn])
                        found = _product(product)
                        if x is not None and found is not None and _same_state(found[0], before):
                            yield Step(O.gru, (h,), x, (found[0],), *found[1:])


def _plain(h: Node) -> Iterator[Step]:
    """``h = tanh(x + W h)``, or with relu."""
    kind = {P.tanh: O.rnn_tanh, O.relu: O.rnn_relu}.get(h.primitive)
    if kind is not None:
        for x, (hidden, weight, bias) in _sums(h.inputs[0]):
            yield Step(kind, (h,), x, (hidden,), weight, bias)


def _factors(node: Node, *kinds: Primitive) -> list[tuple[Node, Node]]:
    """The factors of a product that are results of these primitives, in this order; of the second, of any without."""
    return [
        pair
        for pair in either(node, P.mul)
        if all(each.primitive is kind for each, kind in zip(pair, kinds, strict=False))
    ]


def _parts(nodes: list[Node]) -> Found:
    """What nodes are the equal parts of along the last dimension, in this order."""
    whole = {operands(node, P.slice_) for node in nodes}
    if len(whole) != 1 or not (given := whole.pop()):
        return None
    (z,), size = given, nodes[0].shape[-1]
    for at, node in enumerate(nodes):
        start, stop = (0,) * (len(z.shape) - 1) + (at * size,), (*z.shape[:-1], (at + 1) * size)
        if (node.params["start"], node.params["stop"], set(node.params["step"])) != (start, stop, {1}):
            return None
    return z if z.shape[-1] == len(nodes) * size else None


def _sums(z: Found) -> Iterator[tuple[Node, tuple[Node, Node, Found]]]:
    """The parts of a sum, the second of which is the product of a hidden state."""
    for x, other in either(z, P.add) if z is not None else []:
        found = _product(other)
        if found is not None:
            yield x, found


def _product(node: Found) -> tuple[Node, Node, Found] | None:
    """A hidden state, its weight and its bias."""
    if node is None or node.primitive is not O.gemm or not node.params["transposed"]:
        return None
    hidden, weight, *bias = node.inputs
    return hidden, weight, bias[0] if bias else None


def _same_state(one: Node, other: Node) -> bool:
    return one is other or (one.spec == other.spec and is_number(one, 0) and is_number(other, 0))
