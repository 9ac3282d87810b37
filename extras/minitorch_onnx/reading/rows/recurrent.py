"""RNN, GRU and LSTM: weights in ONNX's order of gates are put into ours; the steps are those of `nn.recurrent`.

ONNX has the gates of an LSTM as input, output, forget, cell, and those of a GRU as update, reset, new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import minitorch as mt
from minitorch.functional.operands import to_dtype
from minitorch.nn.recurrent.recurrence import KINDS, Kind, State, rnn_step
from minitorch.tensor import Tensor

from ..decoding.limits import refuse, require
from ..program import Row
from ..running import Call
from .products import rounded_to_8_bits

ORDERS = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
USUAL = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"]}
FUNCTIONS = {"tanh": mt.tanh, "relu": mt.relu, "sigmoid": mt.sigmoid}


def _kind(op: str, given: Mapping[str, Any], direction: int) -> Kind:
    activations = [each.lower() for each in given["activations"] or []]
    count = 1 if op == "RNN" else len(USUAL[op])
    names = activations[direction * count : (direction + 1) * count] or USUAL.get(op, ["tanh"])
    clip, coupled = given["clip"], given.get("input_forget")
    is_usual = (names[0] in FUNCTIONS if op == "RNN" else names == USUAL[op]) and clip is None and not coupled
    text = "a recurrence with the activations {}, clip {}, input_forget {}"
    require(is_usual, text, names, clip, coupled)
    return Kind(1, 1, rnn_step(FUNCTIONS[names[0]])) if op == "RNN" else KINDS[op]


def _quantised(
    x: Tensor, weight: Tensor, recurrent: Tensor, *others: Tensor | None, layout: int, direction: str, call: Call
) -> tuple[Tensor, ...]:
    """ONNX Runtime's LSTM of integers, which has a scale for each direction, or for each column of it."""
    given = [*others, *[None] * (9 - len(others))]
    wide = []
    for integers, (scale, zero) in ((weight, given[5:7]), (recurrent, given[7:9])):
        if scale is None:
            refuse("its weights have no scale")
        shape = (scale.shape[0], 1, -1)
        floats = to_dtype(integers, scale.dtype)
        floats = floats if zero is None else floats - mt.reshape(to_dtype(zero, scale.dtype), shape)
        wide.append(mt.transpose(floats * mt.reshape(scale, shape), 1, 2))
    return _recurrence(x, *wide, *given[:5], layout=layout, direction=direction, call=call)


def _ordered(x: Tensor, op: str, axis: int) -> Tensor:
    parts = mt.chunk(x, len(ORDERS[op]), axis)
    return mt.cat([parts[at] for at in ORDERS[op]], axis)


def _recurrence(
    x: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor | None = None, lengths: Tensor | None = None,
    first: Tensor | None = None, cell: Tensor | None = None, peepholes: Tensor | None = None,
    *, layout: int, direction: str, call: Call,
) -> tuple[Tensor, ...]:  # fmt: skip
    require(peepholes is None, "a recurrence with peepholes")
    op, directions = call.step.op.removeprefix("DynamicQuantize"), 2 if direction == "bidirectional" else 1
    if layout:
        x = mt.transpose(x, 0, 1)
        first, cell = (None if each is None else mt.transpose(each, 0, 1) for each in (first, cell))
    _check_shapes(directions, len(ORDERS[op]), x, weight, recurrent, bias, lengths, first, cell)
    # ONNX Runtime's LSTM of integers rounds what a product reads to 8 bits, by the range that it has.
    read = rounded_to_8_bits if call.step.op != op else lambda each: each
    outputs, ends = [], []
    for at in range(directions):
        kind = _kind(op, call.step.attributes, at)
        zeros = mt.zeros(x.shape[1], recurrent.shape[-1], dtype=x.dtype)
        state = tuple([zeros if each is None else each[at] for each in (first, cell)[: kind.states]])
        ih, hh = (_ordered(each[at], op, 0) for each in (weight, recurrent))
        b_ih, b_hh = (None, None) if bias is None else [_ordered(each, op, 0) for each in mt.chunk(bias[at], 2, 0)]
        given = mt.matmul(read(x), mt.transpose(ih, 0, 1))
        given = given if b_ih is None else given + b_ih
        step = _step(op, kind, read, hh, b_hh, call)
        rows, end = _steps(step, given, state, at == 1 or direction == "reverse", lengths, call)
        outputs.append(mt.stack(rows))
        ends.append(end)
    y, last = mt.stack(outputs, 1), [mt.stack(each) for each in zip(*ends, strict=True)]
    return (y.permute(2, 0, 1, 3), *(mt.transpose(each, 0, 1) for each in last)) if layout else (y, *last)


def _check_shapes(directions: int, gates: int, x: Tensor, weight: Tensor, *others: Tensor | None) -> None:
    """Compare all shapes with those that ONNX gives them."""
    require(x.ndim == weight.ndim == 3, "a recurrence of {} with {}", x.spec, weight.spec)
    hidden, batch = weight.shape[1] // gates, x.shape[1]
    wide, state = gates * hidden, (directions, batch, hidden)
    wanted = {
        "W": (directions, wide, x.shape[2]), "R": (directions, wide, hidden), "B": (directions, 2 * wide),
        "sequence_lens": (batch,), "initial_h": state, "initial_c": state,
    }  # fmt: skip
    for (name, shape), each in zip(wanted.items(), (weight, *others), strict=True):
        if each is not None:
            text = "{} is {}, and has to be of the shape {} for X of {}"
            require(each.shape == shape, text, name, each.spec, list(shape), x.spec)
    require(x.shape[0], "a recurrence over no time: X is {}", x.spec)


def _step(
    op: str, kind: Kind, read: Callable[[Tensor], Tensor], weight: Tensor, bias: Tensor | None, call: Call
) -> Any:
    """The next state, of the product of the input at one time and of the state."""
    right = mt.transpose(weight, 0, 1)
    if op == "GRU" and not call.step.attributes["linear_before_reset"]:
        return lambda x, state: (_gru_step(x, state[0], right, bias),)

    def step(x: Tensor, state: State) -> State:
        product = mt.matmul(read(state[0]), right)
        return kind.step(x, product if bias is None else product + bias, state)

    return step


def _steps(
    step: Callable[[Tensor, State], State], given: Tensor, state: State, back: bool, lengths: Tensor | None, call: Call
) -> tuple[Sequence[Tensor], State]:
    """The recurrence over time; sequences that have ended keep their state, and give zeros."""
    found = []
    for time in range(given.shape[0])[:: -1 if back else 1]:
        call.run.step()
        new = step(given[time], state)
        found.append(new[0])
        if lengths is not None:
            running = mt.unsqueeze(lengths > time, 1)
            found[-1] = mt.where(running, new[0], 0.0)
            new = tuple([mt.where(running, each, old) for each, old in zip(new, state, strict=True)])
        state = new
    return found[::-1] if back else found, state


def _gru_step(x: Tensor, h: Tensor, right: Tensor, bias: Tensor | None) -> Tensor:
    """A GRU as in Cho and others (arXiv:1406.1078): the reset comes before the product."""
    size = h.shape[-1]
    xr, xz, xn = mt.chunk(x, 3, -1)
    gates = mt.matmul(h, right[:, : 2 * size])
    br, bz, bn = (0.0, 0.0, 0.0) if bias is None else mt.chunk(bias, 3, 0)
    hr, hz = mt.chunk(gates, 2, -1)
    r, z = mt.sigmoid(xr + hr + br), mt.sigmoid(xz + hz + bz)
    n = mt.tanh(xn + mt.matmul(r * h, right[:, 2 * size :]) + bn)
    return n + z * (h - n)


ROWS: dict[str, Row | Callable[..., Any]] = {
    "com.microsoft.DynamicQuantizeLSTM": Row(_quantised, untrained=(8, 10)),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrence),
}
