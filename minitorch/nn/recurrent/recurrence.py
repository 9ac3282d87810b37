"""Recurrences: the step of each kind of recurrent network, and the loop over time.

    x [T, N, features] ──one product for all times──► [T, N, gates * hidden] ──taken apart──► x_0, x_1, ...
                                                                                              │
    state ──product with the hidden state──► [N, gates * hidden] ──step(x_t, .)──► state ◄────┘     T times

In a recording the loop is a node, `mt.scan`, whose body is compiled once; a few steps are written one after another.

Gates lie side by side along the last axis, in PyTorch's order: input, forget, cell, output of an LSTM (Hochreiter and
Schmidhuber, 1997, with the forget gate of Gers and others, 2000), reset, update, new of a GRU (Cho and others,
arXiv:1406.1078, with the reset after the product).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...control import control_flow
from ...control.bodies import recording
from ...errors import ShapeError
from ...functional.movement.arranging import stack
from ...functional.movement.parts import chunk
from ...functional.movement.selection import relu, where
from ...functional.options import require_tensor
from ...functional.pointwise.elementwise import sigmoid, tanh
from ...tensor import Tensor

State = tuple[Tensor, ...]  # the hidden state, and the cell state of an LSTM: [batch, hidden] each
Step = Callable[[Tensor, Tensor, State], State]


def rnn_step(activation: Callable[[Tensor], Tensor]) -> Step:
    """Step a plain (Elman) network: ``h = activation(x + W h)``."""
    return lambda x, hidden, state: (activation(x + hidden),)


def lstm_step(x: Tensor, hidden: Tensor, state: State) -> State:
    """Step an LSTM: ``c = f * c + i * g``, ``h = o * tanh(c)``, from the products of the input and of the hidden state.

    Example:
        >>> import minitorch as mt
        >>> zero = mt.zeros(1, 1)
        >>> lstm_step(mt.zeros(1, 4), mt.ones(1, 4), (zero, zero))
        (tensor([[0.3696]]), tensor([[0.5568]]))
    """
    i, f, g, o = chunk(x + hidden, 4, -1)
    c = sigmoid(f) * state[1] + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


def gru_step(x: Tensor, hidden: Tensor, state: State) -> State:
    """Step a GRU: ``h = n + z * (h - n)`` with ``n = tanh(x_n + r * (W h)_n)``.

    Example:
        >>> import minitorch as mt
        >>> gru_step(mt.zeros(1, 3), mt.ones(1, 3), (mt.zeros(1, 1),))
        (tensor([[0.1677]]),)
    """
    (xr, xz, xn), (hr, hz, hn) = chunk(x, 3, -1), chunk(hidden, 3, -1)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    n = tanh(xn + r * hn)
    return (n + z * (state[0] - n),)


@dataclass(frozen=True)
class Kind:
    """Kind of recurrent network.

    Attributes:
        gates: the number of vectors of the hidden size in a product.
        states: the number of tensors in the state.
        step: the next state, from the product of the input, that of the hidden state, and the state.
    """

    gates: int
    states: int
    step: Step


KINDS: dict[str, Kind] = {
    "RNN_TANH": Kind(1, 1, rnn_step(tanh)),
    "RNN_RELU": Kind(1, 1, rnn_step(relu)),
    "LSTM": Kind(4, 2, lstm_step),
    "GRU": Kind(3, 1, gru_step),
}


def stopping(kind: Kind, project: Callable[[Tensor], Tensor] | None) -> Kind:
    """Return a kind whose state stays as it is where the last column of the input is 0: a sequence has ended."""

    def step(x: Tensor, hidden: Tensor, state: State) -> State:
        goes_on = x[..., -1:].ne(0)
        new = kind.step(x[..., :-1], hidden, state)
        new = new if project is None else (project(new[0]), *new[1:])
        return tuple([where(goes_on, after, before) for after, before in zip(new, state, strict=True)])

    return replace(kind, step=step)


def checked_state(title: str, hx: Any, shapes: Mapping[str, tuple[int, ...]], why: str) -> State:
    """Return a given state as a tuple of tensors, which have these names and shapes.

    Raises:
        TypeError: if it is something else.
        ShapeError: if a shape differs (``MT201``).
    """
    given = tuple(hx) if len(shapes) > 1 and isinstance(hx, (tuple, list)) else (hx,)
    if len(given) != len(shapes):
        raise TypeError(f"{title}: hx is a pair of tensors ({', '.join(shapes)}), not {type(hx).__name__}")
    for each, (name, shape) in zip(given, shapes.items(), strict=True):
        require_tensor(title, name, each)
        if each.shape != shape:
            what, fix = f"{name} is {each.spec}, and not of shape {list(shape)}", "leave it out to begin with zeros"
            raise ShapeError("MT201", f"{title}: {what}", why=why, fix=fix)
    return given


def scan(
    kind: Kind,
    x: Tensor,
    state: State,
    hidden: Callable[[Tensor], Tensor],
    project: Callable[[Tensor], Tensor] | None = None,
    reverse: bool = False,
    loops: bool = True,
) -> tuple[Tensor, State]:
    """Run the recurrence over all times.

    Args:
        kind: the kind of network, which gives the step.
        x: [T, N, gates * hidden], the product of the input, for every time.
        state: [N, hidden] each, before the first step.
        hidden: the product of a hidden state, [N, gates * hidden].
        project: optional projection of the hidden state after each step.
        reverse: whether the last time comes first.
        loops: whether a recording may have a loop: not if the step depends on the time in Python.

    Returns:
        The hidden state after each step, in the order of x, and the last state.

    Example:
        >>> import minitorch as mt
        >>> hs, (h,) = scan(KINDS["RNN_RELU"], mt.ones(3, 1, 2), (mt.zeros(1, 2),), lambda h: h)
        >>> hs.tolist()
        [[[1.0, 1.0]], [[2.0, 2.0]], [[3.0, 3.0]]]
    """

    def step(state: State, given: Tensor) -> tuple[State, Tensor]:
        state = kind.step(given, hidden(state[0]), state)
        state = state if project is None else (project(state[0]), *state[1:])
        return state, state[0]

    staging = recording() if loops else None
    if staging is not None and x.shape[0] > staging.few:
        last, hs = control_flow.scan(step, state, x, reverse=reverse)
        return hs, last
    found, times = [], control_flow.TakenApart.apply(x)
    for each in reversed(times) if reverse else times:
        state, h = step(state, each)
        found.append(h)
    return stack(found[::-1] if reverse else found), state
