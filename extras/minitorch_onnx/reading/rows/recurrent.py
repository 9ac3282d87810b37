"""RNN, GRU and LSTM: weights in ONNX's order of gates are put into ours; the steps are those of `nn.recurrent`.

ONNX has the gates of an LSTM as input, output, forget, cell, and those of a GRU as update, reset, new.
"""

from __future__ import annotations

from collections.abc import Sequence

import minitorch as mt
from minitorch.functional.operands import to_dtype
from minitorch.nn.recurrent.recurrence import KINDS, Kind, State, rnn_step
from minitorch.tensor import Tensor

from ..decoding.limits import refuse
from ..program import Row
from ..running import Call
from .products import rounded_to_8_bits

ORDERS = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
USUAL = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"]}
FUNCTIONS = {"tanh": mt.tanh, "relu": mt.relu, "sigmoid": mt.sigmoid}


def _op(call: Call) -> str:
    return call.op.removeprefix("DynamicQuantize")


def _kind(call: Call, direction: int) -> Kind:
    op = _op(call)
    given = [each.lower() for each in call["activations"] or []]
    count = 1 if op == "RNN" else len(USUAL[op])
    names = given[direction * count : (direction + 1) * count] or USUAL.get(op, ["tanh"])
    is_usual = names[0] in FUNCTIONS if op == "RNN" else names == USUAL[op]
    if not is_usual or call["clip"] is not None or call["input_forget"]:
        refuse(f"a recurrence with the activations {names}, clip {call['clip']}, input_forget {call['input_forget']}")
    return Kind(1, 1, rnn_step(FUNCTIONS[names[0]])) if op == "RNN" else KINDS[op]


def _read(call: Call, x: Tensor) -> Tensor:
    """What a product reads; ONNX Runtime's LSTM of integers rounds it to 8 bits, by the range that it has."""
    return x if call.op in ORDERS else rounded_to_8_bits(x)


def _quantised(call: Call, x: Tensor, weight: Tensor, recurrent: Tensor, *others: Tensor | None) -> tuple[Tensor, ...]:
    """ONNX Runtime's LSTM of integers, which has a scale for each direction, or for each column of it."""
    given = [*others, *[None] * (9 - len(others))]
    scales = given[5:]
    wide = []
    for integers, (scale, zero) in ((weight, scales[:2]), (recurrent, scales[2:])):
        if scale is None:
            refuse("its weights have no scale")
        shape = (scale.shape[0], 1, -1)
        floats = to_dtype(integers, scale.dtype)
        floats = floats if zero is None else floats - mt.reshape(to_dtype(zero, scale.dtype), shape)
        wide.append(mt.transpose(floats * mt.reshape(scale, shape), 1, 2))
    return _recurrence(call, x, wide[0], wide[1], *given[:5])


def _ordered(x: Tensor, op: str, axis: int) -> Tensor:
    parts = mt.chunk(x, len(ORDERS[op]), axis)
    return mt.cat([parts[at] for at in ORDERS[op]], axis)


def _recurrence(
    call: Call,
    x: Tensor,
    weight: Tensor,
    recurrent: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    first: Tensor | None = None,
    cell: Tensor | None = None,
    peepholes: Tensor | None = None,
) -> tuple[Tensor, ...]:
    if peepholes is not None:
        refuse("a recurrence with peepholes")
    directions = 2 if call["direction"] == "bidirectional" else 1
    _check_shapes(call, directions, x, weight, recurrent, bias, lengths, first, cell)
    if call["layout"]:
        x = mt.transpose(x, 0, 1)
    hidden = recurrent.shape[-1]
    outputs, ends = [], []
    for at in range(directions):
        kind = _kind(call, at)
        backwards = at == 1 or call["direction"] == "reverse"
        states = [first, cell][: kind.states]
        begin = tuple(
            [
                mt.zeros(x.shape[1], hidden, dtype=x.dtype)
                if each is None
                else (each[:, at] if call["layout"] else each[at])
                for each in states
            ]
        )
        both = None if bias is None else mt.chunk(bias[at], 2, 0)
        ih, hh = _ordered(weight[at], _op(call), 0), _ordered(recurrent[at], _op(call), 0)
        given = mt.matmul(_read(call, x), mt.transpose(ih, 0, 1))
        b_ih, b_hh = (None, None) if both is None else [_ordered(each, _op(call), 0) for each in both]
        given = given if b_ih is None else given + b_ih
        rows, end = _steps(call, kind, given, begin, hh, b_hh, backwards, lengths)
        outputs.append(mt.stack(rows))
        ends.append(end)
    y = mt.stack(outputs, 1)
    last = [mt.stack(each) for each in zip(*ends, strict=True)]
    if call["layout"]:
        y, last = y.permute(2, 0, 1, 3), [mt.transpose(each, 0, 1) for each in last]
    return y, *last


def _check_shapes(call: Call, directions: int, x: Tensor, weight: Tensor, *others: Tensor | None) -> None:
    """Compare all shapes with those that ONNX gives them."""
    if x.ndim != 3 or weight.ndim != 3:
        refuse(f"a recurrence of {x.spec} with {weight.spec}")
    gates = len(ORDERS[_op(call)])
    hidden, batch = weight.shape[1] // gates, x.shape[0 if call["layout"] else 1]
    state = (batch, directions, hidden) if call["layout"] else (directions, batch, hidden)
    wide = (directions, gates * hidden, x.shape[2])
    names = ("R", "B", "sequence_lens", "initial_h", "initial_c")
    wanted = ((directions, gates * hidden, hidden), (directions, 2 * gates * hidden), (batch,), state, state)
    for name, shape, each in zip(("W", *names), (wide, *wanted), (weight, *others), strict=True):
        if each is not None and each.shape != shape:
            refuse(f"{name} is {each.spec}, and has to be of the shape {list(shape)} for X of {x.spec}")
    if not x.shape[1 if call["layout"] else 0]:
        refuse(f"a recurrence over no time: X is {x.spec}")


def _steps(
    call: Call, kind: Kind, given: Tensor, state: State, weight: Tensor, bias: Tensor | None, back: bool,
    lengths: Tensor | None,
) -> tuple[Sequence[Tensor], State]:  # fmt: skip
    """The recurrence over time; sequences that have ended keep their state, and give zeros."""
    right = mt.transpose(weight, 0, 1)
    early_reset = _op(call) == "GRU" and not call["linear_before_reset"]
    found = []
    for time in reversed(range(given.shape[0])) if back else range(given.shape[0]):
        call.run.step()
        x = given[time]
        if early_reset:
            new: State = (_gru_step(x, state[0], right, bias),)
        else:
            product = mt.matmul(_read(call, state[0]), right)
            new = kind.step(x, product if bias is None else product + bias, state)
        if lengths is not None:
            running = mt.unsqueeze(lengths > time, 1)
            found.append(mt.where(running, new[0], 0.0))
            new = tuple([mt.where(running, each, old) for each, old in zip(new, state, strict=True)])
        else:
            found.append(new[0])
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


ROWS: dict[str, Row] = {
    "com.microsoft.DynamicQuantizeLSTM": Row(_quantised, untrained=(8, 10)),
    **{name: Row(_recurrence) for name in ("GRU", "LSTM", "RNN")},
}
