"""The layers of prepared and of quantised models.

    float layer        y = layer(x, w) + b
    Prepared           y = layer(observed(x), observed(w)) + b             an observer, or a fake quantiser
    Quantized          y = layer(DQ(Q(x)), DQ(w)) + b                      scales are fixed, w is int8
    DynamicQuantized   y = layer(DQ(Q(x)), DQ(w)) + b                      the scale of x is that of its own range

The last two are in Q/DQ form, which runs in every mode as it is. The output of a layer stays a float until the next
layer quantises it; passes move that Q back to where the float is made, so that what is stored is 8 bits.

All layers with stored integers, those of `weight_only` included, compute as `Stored` says: in float32, whatever the
input's type, and the result has that type again, as PyTorch's fake quantisation has it, with which a model is trained.
Autocast is off inside: the integers are the lower precision already.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

from minitorch.autograd import no_grad
from minitorch.dtypes import float32, int8, int32, uint8
from minitorch.errors import DTypeError, QuantizationError, ShapeError
from minitorch.functional.creation.creation import zeros
from minitorch.functional.movement.selection import where
from minitorch.functional.pointwise.casting import numel
from minitorch.functional.pointwise.comparison import isfinite
from minitorch.functional.reducing.extremes import amax, amin
from minitorch.functional.reducing.quantised import positive
from minitorch.interpreters import handling
from minitorch.nn.layers import Affine
from minitorch.nn.module import Module
from minitorch.tensor import Tensor

from ..affine import dequantize, quantize
from ..observers import Observer
from ..qconfig import FakeQuantize, QConfig
from ..schemes import SYMMETRIC, QParams, choose_qparams
from .states import Scaled

LENGTHS = ("", "length", "height, width")  # of a convolution's input


class Prepared(Module):
    """A float layer whose input and weight are observed, or fake quantised.

    Args:
        name: of the layer in its model, for messages.
        layer: a `Linear`, `Conv1d` or `Conv2d`.
        qconfig: of which `activation` and `weight` are made.
        group: a number that all readers of its input share, if that is known.

    Raises:
        QuantizationError: if the weight would not be int8 and symmetric, or the input not of one scale (``MT702``), or
            if the weight is not finite (``MT701``).
    """

    def __init__(self, name: str, layer: Affine, qconfig: QConfig, group: int | None = None) -> None:
        super().__init__()
        self.name, self.layer, self.group = name, layer, group
        self.activation, self.weight_observer = qconfig.activation(), qconfig.weight()
        of_input, of_weight = (observer_of(each) for each in (self.activation, self.weight_observer))
        of_input.name, of_weight.name = (f"the {each} of {called(name, layer)}" for each in ("input", "weight"))
        if of_weight.dtype is not int8 or of_weight.qscheme not in SYMMETRIC or of_weight.axis not in (None, 0):
            raise QuantizationError(
                "MT702",
                f"{of_weight.name}: an observer of {of_weight.dtype.name}, {of_weight.qscheme}, axis {of_weight.axis}",
                why="the zero point of a weight would cost every product a sum over its other operand",
                fix='use dtype=mt.int8 and a symmetric scheme; "per_channel_symmetric" along axis 0 is the most exact',
            )
        if of_input.axis is not None:
            raise QuantizationError(
                "MT702",
                f"{of_input.name}: an observer of scales along axis {of_input.axis}",
                why="a scale that varies along what a product sums over cannot be taken out of the sum",
                fix="use an observer of the whole tensor, such as HistogramObserver",
            )
        with no_grad():
            of_weight(layer.weight)  # so that its buffers are as long as there are channels

    def forward(self, input: Tensor) -> Tensor:
        """The layer of what the observers return.

        Raises:
            ShapeError: if the input has another number of channels than the layer takes (``MT201``).
        """
        require_fitting(self.name, self.layer, input)
        return self.layer.applied(self.activation(input), self.weight_observer(self.layer.weight), self.layer.bias)

    @property
    def weight(self) -> Tensor:
        """The weight of the layer, for code of the model's that reads it."""
        return self.layer.weight

    @property
    def bias(self) -> Tensor | None:
        """The bias of the layer."""
        return self.layer.bias

    def stored(self) -> Affine:
        """The layer whose weight is stored as integers."""
        return self.layer


def called(name: str, layer: Module) -> str:
    """A layer, in messages: by its qualified name, and its class."""
    return f"{name or 'the model'} ({type(layer).__name__})"


def require_fitting(name: str, layer: Affine, input: Tensor) -> None:
    """Refuse an input that a layer does not take, before anything is made of it.

    Raises:
        ShapeError: naming the layer, the input and the number of channels (``MT201``).
        DTypeError: if it is no float (``MT202``).
    """
    if not isinstance(input, Tensor):
        raise TypeError(
            f"the input of {called(name, layer)} is a tensor, not {type(input).__name__}; make one with mt.tensor(...)"
        )
    dims = getattr(layer, "dims", 0)  # of a convolution, behind the channels
    channels: int = getattr(layer, "in_channels" if dims else "in_features")
    has_rank = input.ndim == dims + 2 if dims else input.ndim > 0
    if not has_rank or input.shape[-1 - dims] != channels:
        wanted = f"[batch, {channels}, {LENGTHS[dims]}]" if dims else f"[..., {channels}]"
        raise ShapeError(
            "MT201",
            f"the input of {called(name, layer)} is {input.spec}, and the layer takes {wanted}",
            fix="look at the layer before it, or at what reshapes the input",
        )
    if not input.dtype.is_floating_point:
        raise DTypeError(
            "MT202",
            f"the input of {called(name, layer)} is {input.spec}; a quantised layer takes floats",
            why="it quantises its input itself",
            fix="convert it: x.float()",
        )


def require_prepared(function: str, model: Module) -> None:
    """Refuse a model without observers.

    Raises:
        QuantizationError: naming the class of the model (``MT702``).
    """
    if not any(isinstance(each, Observer) for each in model.modules()):
        raise QuantizationError(
            "MT702",
            f"{function}: {type(model).__name__} has no layer with an observer",
            fix="prepare it first: mt.quantization.prepare(model)",
        )


def observer_of(module: Observer | FakeQuantize) -> Observer:
    """The observer itself, also of a fake quantiser."""
    return module.observer if isinstance(module, FakeQuantize) else module


class Stored(Scaled):
    """A layer whose weight is stored as integers: `computed` is the layer itself, in float32.

    Args:
        name: of the layer in its model, for messages.
        layer: a `Linear`, `Conv1d` or `Conv2d`.
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(self, name: str, layer: Affine) -> None:
        super().__init__()
        self.name, self.kind = name, type(layer).__name__
        with no_grad():
            self.register_buffer("bias", None if layer.bias is None else layer.bias.detach().to(float32, copy=True))
        options: Any = copy.copy(layer)
        options.weight = options.bias = None
        self._layer, self._options = (options,), layer.extra_repr()  # in a tuple: no part of the model

    def forward(self, input: Tensor) -> Tensor:
        """The layer, computed in float32 with autocast off; the result is of the input's type.

        Raises:
            ShapeError: if the input has another number of channels than the layer takes (``MT201``).
            DTypeError: if it is no float (``MT202``).
        """
        require_fitting(self.name, self._layer[0], input)
        with handling(None):
            return self.computed(input.to(float32)).to(input.dtype)

    def computed(self, input: Tensor) -> Tensor:
        """The layer of a float32 input that fits."""
        raise NotImplementedError

    def applied(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The float layer's function, with its options, of another weight and bias."""
        result: Tensor = self._layer[0].applied(input, weight, bias)
        return result


class _Integers(Stored):
    """A layer whose weight is int8."""

    weight_scale: Tensor

    def __init__(self, name: str, layer: Affine, qparams: QParams) -> None:
        super().__init__(name, layer)
        self.axis, self.quant_min, self.quant_max = qparams.axis, qparams.quant_min, qparams.quant_max
        with no_grad():
            self.register_buffer("weight", quantize(layer.weight.detach(), qparams))
            self.register_buffer("weight_scale", qparams.scale.clone())

    def weight_qparams(self) -> QParams:
        """The scale of the weight, and its zero point, which is 0: no number of a program, but a part of it."""
        zero_point = zeros(self.weight_scale.shape, dtype=int32)
        return QParams(self.weight_scale, zero_point, int8, self.quant_min, self.quant_max, self.axis)

    def dequantized_weight(self) -> Tensor:
        """The weight in float32."""
        return dequantize(self.weight, self.weight_qparams())

    def quantized(self, input: Tensor) -> QParams:
        """The scale and the zero point of an input."""
        raise NotImplementedError

    def computed(self, input: Tensor) -> Tensor:
        """The layer, in Q/DQ form."""
        if numel(input):
            given = self.quantized(input)
            input = dequantize(quantize(input, given), given)
        return self.applied(input, self.dequantized_weight(), self.bias)

    def extra_repr(self) -> str:
        """The layer, and its types."""
        scales = "per channel" if self.weight_scale.ndim else "per tensor"
        return f"{self.kind}({self._options}), weight int8 {scales}"


class Quantized(_Integers):
    """A layer with a weight in int8 and a fixed scale of its input: what `convert` makes of a `Prepared` one.

    Its buffers: `weight` (int8), `weight_scale` (float32, [] or [channels]), `bias` (float32), and of its input `scale`
    (float32, []) and `zero_point` ([], of the integers' own type, as in ONNX: so every graph shows that it is one),
    which layers with the same input share.

    Args:
        prepared: the layer with its observers.
        given: how its input is quantised, the zero point of the integers' type.
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(self, prepared: Prepared, given: QParams) -> None:
        super().__init__(prepared.name, prepared.stored(), prepared.weight_observer.qparams())
        self.dtype, self.range = given.dtype, (given.quant_min, given.quant_max)
        self.register_buffer("scale", given.scale)
        self.register_buffer("zero_point", given.zero_point)

    def quantized(self, input: Tensor) -> QParams:
        """The fixed ones."""
        return QParams(positive(self.scale), self.zero_point.to(int32), self.dtype, *self.range)

    def extra_repr(self) -> str:
        """The layer, its types, and the scale of its input."""
        given = f"scale={self.scale.item():.4g}, zero_point={self.zero_point.item()}"
        return f"{super().extra_repr()}, input {self.dtype.name} {given}"


class DynamicQuantized(_Integers):
    """A layer with a weight in int8, whose input is quantised by the range that it has in each call.

    A NaN or an infinity in the input makes all of the result NaN: there is no scale for it.
    """

    def quantized(self, input: Tensor) -> QParams:
        """Those of the input's own range, uint8 and affine."""
        with no_grad():
            given = choose_qparams(amin(input), amax(input), uint8)
            return replace(given, scale=where(isfinite(given.scale), given.scale, math.nan))

    def extra_repr(self) -> str:
        """The layer, its types, and where the scale of its input comes from."""
        return f"{super().extra_repr()}, input uint8 by its range"
