"""Recurrent layers with weights in int8: dynamic quantisation of `LSTM`, `GRU`, `RNN` and their cells.

    float layer     gates = x W_ih + b_ih  +  h W_hh + b_hh                  of all times at once, and of one step
    here            gates = DQ(Q(x)) DQ(W_ih) + b_ih  +  DQ(Q(h)) DQ(W_hh) + b_hh

The computation is that of the float layers (`nn.recurrent.sequences`); each product quantises what it multiplies by the
range that it has in this call: the input of all times by one range, the hidden state of each step by its own, as
PyTorch does. Gates and states stay floats. Compiled, the products are those of uint8 and int8 with 32-bit sums.

Weights are int8, symmetric, with one scale for each matrix (PyTorch's default for these layers). Of the activations all
8 bits are used. PyTorch's kernels leave out one (`reduce_range`), which halves the precision of an activation: without
VNNI they add products in 16 bits, which would saturate. No kernel here does.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from minitorch.autograd import no_grad
from minitorch.dtypes import float32, int8, int32, uint8
from minitorch.functional.creation.creation import zeros
from minitorch.functional.movement.selection import where
from minitorch.functional.pointwise.casting import numel
from minitorch.functional.pointwise.comparison import isfinite
from minitorch.functional.reducing.extremes import amax, amin
from minitorch.interpreters import handling
from minitorch.nn import functional as F
from minitorch.nn.module import Module
from minitorch.nn.recurrent.cells import Cell, GRUCell, LSTMCell, RNNCell, RNNCellBase
from minitorch.nn.recurrent.networks import GRU, LSTM, RNN, RNNBase
from minitorch.nn.recurrent.sequences import OPTIONS, Recurrent
from minitorch.tensor import Tensor

from ..affine import dequantize, quantize
from ..schemes import REDUCED, QParams, choose_qparams, require_finite
from .states import Scaled

# Those that `quantize_dynamic` takes by default are PyTorch's; it can take an `RNN` as well.
DEFAULT: tuple[type[Module], ...] = (LSTM, GRU, LSTMCell, RNNCell, GRUCell)
RECURRENT: tuple[type[Module], ...] = (*DEFAULT, RNN)


class Products(Scaled):
    """Products with stored weights: buffers ``weight_ih_l0`` (int8), ``weight_ih_l0_scale`` (float32, []), the biases.

    Args:
        name: of the layer in its model, for messages.
        layer: whose parameters are stored.
        reduce_range: whether activations are quantised to 7 bits, as PyTorch's kernels do.

    Raises:
        QuantizationError: if a weight is not finite (``MT701``).
    """

    def __init__(self, name: str, layer: Module, reduce_range: bool = False) -> None:
        super().__init__()
        self.kind, self.reduce_range = type(layer).__name__, reduce_range
        with no_grad():
            for key, value in layer._own_parameters().items():
                if not key.startswith("weight"):
                    self.register_buffer(key, value.detach().to(float32, copy=True))
                    continue
                require_finite(f"{key} of {name or 'the model'} ({self.kind})", value)
                given = choose_qparams(amin(value), amax(value), int8, symmetric=True)
                self.register_buffer(key, quantize(value.detach(), given))
                self.register_buffer(f"{key}_scale", given.scale.clone())

    @property
    def weight_bytes(self) -> int:
        """The bytes of the stored weights and their scales, without the biases."""
        return sum(each.spec.nbytes for key, each in self._own_buffers().items() if key.startswith("weight"))

    def product(self, x: Tensor, place: str) -> Tensor:
        """[..., features] times the weight of a place, both in Q/DQ form, plus its bias; NaN if x is not finite."""
        weight, scale = getattr(self, f"weight_{place}"), getattr(self, f"weight_{place}_scale")
        stored = QParams(scale, zeros((), dtype=int32), int8, -128, 127)
        x = x.to(float32)
        if numel(x):
            with no_grad():
                given = choose_qparams(amin(x), amax(x), uint8, *(REDUCED[uint8] if self.reduce_range else ()))
                given = replace(given, scale=where(isfinite(given.scale), given.scale, math.nan))
            x = dequantize(quantize(x, given), given)
        return F.linear(x, dequantize(weight, stored), getattr(self, f"bias_{place}", None))

    def extra_repr(self) -> str:
        """The layer, and its types."""
        bits = 7 if self.reduce_range else 8
        return f"{self.kind}({super().extra_repr()}), weights int8 per tensor, inputs and states {bits} bits by range"


class DynamicQuantizedRNN(Products, Recurrent):
    """An `LSTM`, `GRU` or `RNN` whose weights are int8, and whose inputs and hidden states are quantised by range.

    Args:
        name: of the layer in its model, for messages.
        layer: the float layer.
        reduce_range: whether activations are quantised to 7 bits.

    Raises:
        QuantizationError: if a weight is not finite (``MT701``).

    Example:
        >>> import minitorch as mt
        >>> lstm = DynamicQuantizedRNN("lstm", mt.nn.LSTM(3, 4))
        >>> lstm.weight_hh_l0.dtype, lstm(mt.ones(5, 2, 3))[0].shape
        (minitorch.int8, (5, 2, 4))
    """

    loops = False  # the scales of weights would be applied ahead of a loop, and its products would be of floats

    def __init__(self, name: str, layer: RNNBase, reduce_range: bool = False) -> None:
        super().__init__(name, layer, reduce_range)
        for option in OPTIONS:
            setattr(self, option, getattr(layer, option))
        self.training = False

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Any]:
        """As of the float layer; autocast is off."""
        with handling(None):
            return super().forward(input, hx)


class DynamicQuantizedCell(Products, Cell):
    """An `LSTMCell`, `GRUCell` or `RNNCell` whose weights are int8, and whose inputs and states are quantised by range.

    Args:
        name: of the cell in its model, for messages.
        cell: the float cell.
        reduce_range: whether activations are quantised to 7 bits.

    Raises:
        QuantizationError: if a weight is not finite (``MT701``).

    Example:
        >>> import minitorch as mt
        >>> DynamicQuantizedCell("cell", mt.nn.GRUCell(3, 4))(mt.ones(2, 3)).shape
        (2, 4)
    """

    def __init__(self, name: str, cell: RNNCellBase, reduce_range: bool = False) -> None:
        super().__init__(name, cell, reduce_range)
        for option in ("mode", "input_size", "hidden_size", "bias"):
            setattr(self, option, getattr(cell, option))
        self.training = False

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """As of the float cell; autocast is off."""
        with handling(None):
            return super().forward(input, hx)


def dynamic(name: str, layer: RNNBase | RNNCellBase) -> DynamicQuantizedRNN | DynamicQuantizedCell:
    """The quantised form of a recurrent layer or cell.

    Raises:
        QuantizationError: if a weight is not finite (``MT701``).
    """
    return DynamicQuantizedRNN(name, layer) if isinstance(layer, RNNBase) else DynamicQuantizedCell(name, layer)
