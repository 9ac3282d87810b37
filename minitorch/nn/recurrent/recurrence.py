"""Recurrences: the step of each kind of recurrent network, and the loop over time.

    x [T, N, features] ──one product for all times──► [T, N, gates * hidden] ──taken apart──► x_0, x_1, ...
                                                                                              │
    state ──product with the hidden state──► [N, gates * hidden] ──step(x_t, .)──► state ◄────┘     T times

There is no loop in a graph: a recorded program has the T steps one after another. Each step is a product and the
pointwise kernel of its gates, or one kernel of both where they are small; all steps run the same machine code. A step
of an LSTM is 54 nodes, and 13 ms of processor time when the graph is compiled: 6.5 s for 500 steps of batch 8 and 64
features, and 27 s where the parameters are trained, with the graph of the gradient (measured on a busy Xeon). Sequences
of several lengths are several graphs.

Gates lie side by side along the last axis, in PyTorch's order: input, forget, cell, output of an LSTM (Hochreiter and
Schmidhuber, 1997, with the forget gate of Gers and others, 2000), reset, update, new of a GRU (Cho and others,
arXiv:1406.1078, with the reset after the product).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...autograd import Context, Function
from ...errors import ShapeError
from ...functional.movement.arranging import stack
from ...functional.movement.parts import chunk, unbind
from ...functional.movement.selection import relu
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


class TakenApart(Function):
    """`unbind` along the first axis, with `stack` as its gradient.

    The gradient of a slice is as large as all slices together, so that T of them would take T * T reads and writes.
    """

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> tuple[Tensor, ...]:
        """Take [T, ...] apart into T tensors."""
        return unbind(x, 0)

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> Tensor:
        """Stack T tensors into [T, ...]."""
        return stack(cotangents)


def scan(
    kind: Kind,
    x: Tensor,
    state: State,
    hidden: Callable[[Tensor], Tensor],
    project: Callable[[Tensor], Tensor] | None = None,
    reverse: bool = False,
) -> tuple[Sequence[Tensor], State]:
    """Run the recurrence over all times.

    Args:
        kind: the kind of network, which gives the step.
        x: [T, N, gates * hidden], the product of the input, for every time.
        state: [N, hidden] each, before the first step.
        hidden: the product of a hidden state, [N, gates * hidden].
        project: optional projection of the hidden state after each step.
        reverse: whether the last time comes first.

    Returns:
        The hidden state after each step, in the order of x, and the last state.

    Example:
        >>> import minitorch as mt
        >>> hs, (h,) = scan(KINDS["RNN_RELU"], mt.ones(3, 1, 2), (mt.zeros(1, 2),), lambda h: h)
        >>> [each.tolist() for each in hs]
        [[[1.0, 1.0]], [[2.0, 2.0]], [[3.0, 3.0]]]
    """
    times: Sequence[Tensor] = TakenApart.apply(x)
    found = []
    for each in reversed(times) if reverse else times:
        state = kind.step(each, hidden(state[0]), state)
        state = state if project is None else (project(state[0]), *state[1:])
        found.append(state[0])
    return found[::-1] if reverse else found, state
