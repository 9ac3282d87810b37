"""The rows of recurrent layers: ONNX's LSTM, GRU and RNN, whose gates stand in another order than ours.

ONNX packs the weights of both directions in one array, and so the biases of both products. Arrays that the model holds
are packed here. Their name is that in the module, with ONNX's letters for the gates: `lstm.weight_ih_l0_iofc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minitorch.graph.values import is_splat
from minitorch.ir import Node
from minitorch_operators.recurrent import RESULTS, taken_apart

from .building import Building, Row

ORDERS: dict[str, tuple[str, tuple[int, ...]]] = {
    "LSTM": ("iofc", (0, 3, 1, 2)),
    "GRU": ("zrh", (1, 0, 2)),
    "RNN": ("i", (0,)),
}
"""ONNX's letters for the gates, and the places of these gates in our order."""


def _recurrence(kind: str, states: int, **attributes: Any) -> Row:
    def row(b: Building, node: Node, operands: list[str]) -> str:
        reverse = node.params["reverse"]
        key = (kind, *node.inputs, *reverse)
        if key not in b.results:
            names = [b.name(f"{kind.lower()}_{each}") for each in RESULTS[: states + 1]]
            b.results[key] = b.ops(kind, _inputs(b, kind, node, operands), names, **_options(node, reverse, attributes))
        return b.results[key][RESULTS.index(node.params["gives"])]

    return row


def _options(node: Node, reverse: Sequence[bool], attributes: dict[str, Any]) -> dict[str, Any]:
    direction = "bidirectional" if len(reverse) == 2 else "reverse" if reverse[0] else "forward"
    more = {name: value * len(reverse) if isinstance(value, list) else value for name, value in attributes.items()}
    return {"hidden_size": node.shape[-1], "direction": direction, **more}


def _inputs(b: Building, kind: str, node: Node, operands: list[str]) -> list[str]:
    directions = len(node.params["reverse"])
    parameters, states = taken_apart(operands[1:], directions)
    given, _ = taken_apart(node.inputs[1:], directions)
    weights = [_packed(b, kind, [[each[at]] for each in parameters]) for at in (0, 1)]
    has_bias = not all(is_splat(one) and one.params["value"] == 0 for each in given for one in each[2:])
    bias = _packed(b, kind, [each[2:] for each in parameters]) if has_bias else ""
    found = [operands[0], *weights, bias, "", *states]
    while not found[-1]:
        found.pop()
    return found


def _packed(b: Building, kind: str, rows: Sequence[Sequence[str]]) -> str:
    """[directions, ...]: the arrays of each direction one after another, with the gates in ONNX's order."""
    letters, order = ORDERS[kind]
    held = [[b.held.get(name, b.arrays.get(name)) for name in each] for each in rows]

    def arranged(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array.reshape(len(order), -1, *array.shape[1:])[list(order)].reshape(array.shape)

    def make() -> str:
        arrays = [[each for each in row if each is not None] for row in held]
        if [len(row) for row in arrays] == [len(row) for row in rows]:
            name = b.name(f"{rows[0][0]}_{letters}")
            b.arrays[name] = np.stack([np.concatenate([arranged(each) for each in row]) for row in arrays])
            b.origins[name] = rows[0][0]
            return name
        parts = []
        for row in rows:
            gates = [gate for each in row for gate in _gates(b, each, order)]
            joined = b.op("Concat", *gates, axis=0) if len(gates) > 1 else gates[0]
            parts.append(b.op("Unsqueeze", joined, b.constant([0])))
        return parts[0] if len(parts) == 1 else b.op("Concat", *parts, axis=0)

    return b.shared(("packed", kind, *[tuple(each) for each in rows]), make)


def _gates(b: Building, name: str, order: Sequence[int]) -> list[str]:
    """The parts of a computed array, in another order."""
    if len(order) == 1:
        return [name]
    more: dict[str, Any] = {"num_outputs": len(order)} if b.opset >= 18 else {}
    found = b.ops("Split", [name], [b.name("gate") for _ in order], axis=0, **more)
    return [found[at] for at in order]


ROWS: dict[str, Row] = {
    "gru": _recurrence("GRU", 1, linear_before_reset=1),
    "lstm": _recurrence("LSTM", 2),
    "rnn_relu": _recurrence("RNN", 1, activations=["Relu"]),
    "rnn_tanh": _recurrence("RNN", 1),
}
