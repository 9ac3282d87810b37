"""Recurrent layers as operators: all steps of a layer, in one direction or in both.

The operands are x [T, N, features]; for each direction the weights of input and hidden state, [gates * H, features] and
[gates * H, H], and their biases, [gates * H] each; and at the end the first states, [directions, N, H] each, if they
are given. Gates are in the order of `minitorch.nn.recurrent.recurrence`.

A node has one result, so there are up to three nodes with the same operands: all hidden states
[T, directions, N, H], and the last hidden and cell states, [directions, N, H]. ONNX has them as one node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minitorch.ir import Primitive, Spec

from .declaring import Array, declare, refuse
from .functions import logistic

Step = Callable[[Array, Array, Sequence[Array]], tuple[Array, ...]]
RESULTS = ("all", "hidden", "cell")


def _lstm(x: Array, hidden: Array, state: Sequence[Array]) -> tuple[Array, ...]:
    i, f, g, o = np.split(x + hidden, 4, -1)
    c = logistic(f) * state[1] + logistic(i) * np.tanh(g)
    return logistic(o) * np.tanh(c), c


def _gru(x: Array, hidden: Array, state: Sequence[Array]) -> tuple[Array, ...]:
    (xr, xz, xn), (hr, hz, hn) = np.split(x, 3, -1), np.split(hidden, 3, -1)
    n = np.tanh(xn + logistic(xr + hr) * hn)
    return (n + logistic(xz + hz) * (state[0] - n),)


def _tanh(x: Array, hidden: Array, state: Sequence[Array]) -> tuple[Array, ...]:
    return (np.tanh(x + hidden),)


def _relu(x: Array, hidden: Array, state: Sequence[Array]) -> tuple[Array, ...]:
    return (np.maximum(x + hidden, 0),)


@dataclass(frozen=True)
class Kind:
    """How many vectors of the hidden size a product gives, how many tensors the state has, and the step."""

    gates: int
    states: int
    step: Step


KINDS = {
    "lstm": Kind(4, 2, _lstm),
    "gru": Kind(3, 1, _gru),
    "rnn_tanh": Kind(1, 1, _tanh),
    "rnn_relu": Kind(1, 1, _relu),
}


def taken_apart(operands: Sequence[Any], directions: int) -> tuple[list[Sequence[Any]], Sequence[Any]]:
    """The four parameters of each direction, and the first states, of the operands after x."""
    parameters = [operands[4 * at : 4 * at + 4] for at in range(directions)]
    return parameters, operands[4 * directions :]


def _declared(name: str) -> Primitive:
    kind = KINDS[name]

    def infer(x: Spec, *operands: Spec, reverse: tuple[bool, ...], gives: str) -> Spec:
        directions = len(reverse)
        parameters, states = taken_apart(operands, directions)
        if x.ndim != 3 or directions not in (1, 2) or gives not in RESULTS[: kind.states + 1]:
            refuse(name, x)
        hidden = parameters[0][1].shape[-1]
        gates = kind.gates * hidden
        for each in parameters:
            shapes = [(gates, x.shape[2]), (gates, hidden), (gates,), (gates,)]
            if [one.shape for one in each] != shapes:
                refuse(name, x, *each)
        last = (directions, x.shape[1], hidden)
        if len(states) not in (0, kind.states) or any(each.shape != last for each in states):
            refuse(name, x, *states)
        return Spec((x.shape[0], *last) if gives == "all" else last, x.dtype)

    def evaluate(x: Array, *operands: Array, reverse: tuple[bool, ...], gives: str) -> Array:
        parameters, first = taken_apart(operands, len(reverse))
        found = []
        for at, (ih, hh, b_ih, b_hh) in enumerate(parameters):
            given = np.matmul(x, ih.T) + b_ih
            zero = np.zeros((x.shape[1], hh.shape[1]), x.dtype)
            state: tuple[Array, ...] = tuple([each[at] for each in first] or [zero] * kind.states)
            rows = []
            for each in given[::-1] if reverse[at] else given:
                state = kind.step(each, np.matmul(state[0], hh.T) + b_hh, state)
                rows.append(state[0])
            rows = rows[::-1] if reverse[at] else rows
            found.append(np.stack(rows) if gives == "all" else state[RESULTS.index(gives) - 1])
        result: Array = np.stack(found, 1 if gives == "all" else 0)
        return result.astype(x.dtype)

    return declare(
        name, infer, evaluate, f"all steps of {name.partition('_')[0].upper()}: hidden states, or the last state"
    )


lstm, gru, rnn_tanh, rnn_relu = map(_declared, KINDS)
