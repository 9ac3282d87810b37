"""Steps of recurrent layers, found by their own nodes; `minitorch.nn.recurrent.recurrence` has the formulas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import minitorch_operators as O
from minitorch import primitives as P
from minitorch.ir import Node, Primitive
from minitorch.passes.patterns import Wildcard, op, wildcard

from .matching import Found, either, is_number, matched, operands


def _named(names: str) -> list[Wildcard]:
    return list(map(wildcard, names.split()))


_i, _f, _g, _o, _c, _before = _named("i f g o c before")
_LSTM = op.sigmoid(_o) * op.tanh(_c)
_CELL = op.sigmoid(_f) * _before + op.sigmoid(_i) * op.tanh(_g)
_xr, _xz, _xn, _hr, _hz, _hn = _named("xr xz xn hr hz hn")
_new = op.tanh(_xn + op.sigmoid(_xr + _hr) * _hn)
_GRU = _new + op.sigmoid(_xz + _hz) * (_before - _new)


@dataclass(frozen=True)
class Step:
    """One step of a recurrence.

    Attributes:
        kind: the operator of the layer.
        state: the hidden state after it, and the cell state of an LSTM.
        x: its part of the product of the sequence.
        before: the state before it.
        weight, bias: of the product of the hidden state, turned and repeated as the product has them.
    """

    kind: Primitive
    state: tuple[Node, ...]
    x: Node
    before: tuple[Node, ...]
    weight: Node
    bias: Found


def steps_of(h: Node) -> Iterator[Step]:
    """The steps that a node is the hidden state after."""
    for find in (_lstm, _gru, _plain):
        yield from find(h)


def _lstm(h: Node) -> Iterator[Step]:
    """``c = f * c + i * g`` and ``h = o * tanh(c)``."""
    for found in matched(_LSTM, h, {}):
        for gates in matched(_CELL, found["c"], found):
            z = _parts([gates[each] for each in "ifgo"])
            for x, (hidden, weight, bias) in _sums(z):
                yield Step(O.lstm, (h, gates["c"]), x, (hidden, gates["before"]), weight, bias)


def _gru(h: Node) -> Iterator[Step]:
    """``h = n + z * (h - n)`` with ``n = tanh(x_n + r * (W h)_n)``."""
    for found in matched(_GRU, h, {}):
        x, hidden = (_parts([found[side + gate] for gate in "rzn"]) for side in "xh")
        product = _product(hidden)
        if x is not None and product is not None and _same_state(product[0], found["before"]):
            yield Step(O.gru, (h,), x, (product[0],), *product[1:])


def _plain(h: Node) -> Iterator[Step]:
    """``h = tanh(x + W h)``, or with relu."""
    kind = {P.tanh: O.rnn_tanh, O.relu: O.rnn_relu}.get(h.primitive)
    if kind is not None:
        for x, (hidden, weight, bias) in _sums(h.inputs[0]):
            yield Step(kind, (h,), x, (hidden,), weight, bias)


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
    """A hidden state, the matrix that it is multiplied by, and its bias."""
    if node is None:
        return None
    pairs: list[tuple[Node, Found]] = [(node, None), *either(node, P.add)]
    for product, bias in pairs:
        if product.primitive is P.dot and len(product.shape) == 2 and product.params["dtype"] is product.dtype:
            hidden, matrix = product.inputs
            return hidden, matrix, bias
    return None


def _same_state(one: Node, other: Node) -> bool:
    return one is other or (one.spec == other.spec and is_number(one, 0) and is_number(other, 0))
