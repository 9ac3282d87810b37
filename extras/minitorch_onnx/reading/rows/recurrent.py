"""RNN, GRU and LSTM: weights in ONNX's order of gates are put into ours; the steps are those of `nn.recurrent`.

ONNX has the gates of an LSTM as input, output, forget, cell, and those of a GRU as update, reset, new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import minitorch as mt
from minitorch.functional.operands import to_dtype
from minitorch.nn.recurrent.recurrence import KINDS, Kind, State, rnn_step, scan, stopping
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
    call.run.step(directions * x.shape[0])
    times = mt.reshape(mt.arange(x.shape[0]), (-1, 1, 1))
    within = None if lengths is None else times < mt.reshape(lengths, (-1, 1))  # [T, N, 1]
    outputs, ends = [], []
    for at in range(directions):
        kind, backwards = _kind(op, call.step.attributes, at), at == 1 or direction == "reverse"
        zeros = mt.zeros(x.shape[1], recurrent.shape[-1], dtype=x.dtype)
        state = tuple([zeros if each is None else each[at] for each in (first, cell)[: kind.states]])
        ih, hh = (mt.transpose(_ordered(each[at], op, 0), 0, 1) for each in (weight, recurrent))
        b_ih, b_hh = (0.0, 0.0) if bias is None else [_ordered(each, op, 0) for each in mt.chunk(bias[at], 2, 0)]
        step = kind.step
        product: Callable[[Tensor], Tensor] = partial(_product, read, hh, b_hh)
        if op == "GRU" and not call.step.attributes["linear_before_reset"]:
            step, product = partial(_early_reset, hh, b_hh), lambda hidden: hidden
        kind, given = replace(kind, step=step), _product(read, ih, b_ih, x)
        if within is not None:
            kind, given = stopping(kind, None), mt.cat([given, to_dtype(within, x.dtype)], -1)
        rows, end = scan(kind, given, state, product, reverse=backwards)
        outputs.append(rows)
        ends.append(end)
    y, last = mt.stack(outputs, 1), [mt.stack(each) for each in zip(*ends, strict=True)]
    if within is not None:  # behind the end of a sequence are zeros
        y = mt.where(mt.unsqueeze(within, 1), y, 0.0)
    return (y.permute(2, 0, 1, 3), *(mt.transpose(each, 0, 1) for each in last)) if layout else (y, *last)


def _product(read: Callable[[Tensor], Tensor], weight: Tensor, bias: Tensor | float, x: Tensor) -> Tensor:
    found = mt.matmul(read(x), weight)
    return found if isinstance(bias, float) else found + bias


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


def _early_reset(weight: Tensor, bias: Tensor | float, x: Tensor, h: Tensor, state: State) -> State:
    """A GRU as in Cho and others (arXiv:1406.1078): the reset comes before the product."""
    size = h.shape[-1]
    xr, xz, xn = mt.chunk(x, 3, -1)
    br, bz, bn = (bias,) * 3 if isinstance(bias, float) else mt.chunk(bias, 3, 0)
    hr, hz = mt.chunk(mt.matmul(h, weight[:, : 2 * size]), 2, -1)
    r, z = mt.sigmoid(xr + hr + br), mt.sigmoid(xz + hz + bz)
    n = mt.tanh(xn + mt.matmul(r * h, weight[:, 2 * size :]) + bn)
    return (n + z * (h - n),)


ROWS: dict[str, Row | Callable[..., Any]] = {
    "com.microsoft.DynamicQuantizeLSTM": Row(_quantised, untrained=(8, 10)),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrence),
}
