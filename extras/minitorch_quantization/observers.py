"""Observers: modules that pass on what they are given, remember its range, and say how to quantise it.

The names, arguments and numerics are those of `torch.ao.quantization`. The state of an observer is two buffers,
`min_val` and `max_val`, written in place, so an observer inside a compiled training step does not make it trace anew.
`HistogramObserver` and `PercentileObserver`, which look at the whole distribution, are in `histogram`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from minitorch.autograd import no_grad
from minitorch.dtypes import DType, float32, uint8
from minitorch.errors import QuantizationError
from minitorch.functional.creation.creation import full
from minitorch.functional.inplace import assign
from minitorch.functional.movement.selection import maximum, minimum, where
from minitorch.functional.options import wrap_dim
from minitorch.functional.pointwise.casting import numel
from minitorch.functional.reducing.extremes import amax, amin
from minitorch.interpreters import current_staging
from minitorch.nn.module import Module
from minitorch.tensor import Tensor

from .schemes import (
    EPS,
    PER_CHANNEL,
    PER_TENSOR,
    RANGES,
    REDUCED,
    SYMMETRIC,
    QParams,
    choose_qparams,
    integers_of,
    per_channel_affine,
    per_tensor_affine,
    require_finite,
    require_scale,
)


class Observer(Module):
    """What all observers share.

    Args:
        dtype: uint8 or int8.
        qscheme: one of the four names in `minitorch.quantization`, such as ``per_tensor_symmetric``.
        reduce_range: leave one bit unused; without VNNI, kernels then add pairs of products in 16 bits.
        quant_min: the least integer; by default, that of the type.
        quant_max: the largest one.
        eps: the least scale.

    Attributes:
        name: how errors call it; `prepare` sets the name of the layer.

    Raises:
        QuantizationError: for a type, a range or a scheme that does not fit (``MT702``).
    """

    schemes: tuple[str, ...] = PER_TENSOR
    axis: int | None = None
    min_val: Tensor
    max_val: Tensor

    def __init__(
        self,
        dtype: DType = uint8,
        qscheme: str = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = EPS,
    ) -> None:
        super().__init__()
        self.name = kind = type(self).__name__
        if qscheme not in self.schemes:
            raise QuantizationError(
                "MT702", f"{kind}: the scheme {qscheme!r}", fix=f"use one of {', '.join(map(repr, self.schemes))}"
            )
        low, high = integers_of(dtype, quant_min, quant_max, kind)
        if reduce_range:
            low, high = REDUCED[dtype] if (low, high) == RANGES[dtype] else (low // 2, high // 2)
        self.dtype, self.qscheme, self.quant_min, self.quant_max, self.eps = dtype, qscheme, low, high, eps
        self.reset_min_max_vals()

    @classmethod
    def with_args(cls, **options: Any) -> Callable[[], Self]:
        """A function that makes observers with these arguments: a row of a `QConfig`.

        Example:
            >>> import minitorch as mt
            >>> mt.quantization.MinMaxObserver.with_args(dtype=mt.int8)()
            MinMaxObserver(min_val=inf, max_val=-inf)
        """
        return partial(cls, **options)

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.register_buffer("min_val", full((), math.inf))
        self.register_buffer("max_val", full((), -math.inf))

    def forward(self, input: Tensor) -> Tensor:
        """Look at a tensor, and return it.

        Raises:
            QuantizationError: if it has a NaN or an infinity (``MT701``).
        """
        if numel(input):
            with no_grad():
                self.observe(input.detach().to(float32))
        return input

    def observe(self, x: Tensor) -> None:
        """Take the range of a tensor into account."""
        low, high = self.extremes(x)
        require_finite(self.name, low, high, of=x)
        if self.min_val.shape != low.shape:
            self._take_channels(low)
        assign(self.min_val, self.merge(self.min_val, low, minimum), "an observer")
        assign(self.max_val, self.merge(self.max_val, high, maximum), "an observer")

    def extremes(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The smallest and the largest number; of each channel, where there is an axis."""
        if self.axis is None:
            return amin(x), amax(x)
        axis = wrap_dim(self.axis, x.ndim)
        others = tuple([dim for dim in range(x.ndim) if dim != axis])
        return amin(x, others), amax(x, others)

    def merge(self, seen: Tensor, new: Tensor, further: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """A bound of all that was seen, from that so far and that of one more tensor."""
        return further(seen, new)

    def _take_channels(self, like: Tensor) -> None:
        """Make the buffers as long as there are channels.

        Raises:
            QuantizationError: if there were others before, or if a graph is being recorded, which has no other lengths
                of its inputs (``MT702``).
        """
        if self.min_val.ndim or current_staging() is not None:
            raise QuantizationError(
                "MT702",
                f"{self.name}: {like.numel()} channels along axis {self.axis}, after {self.min_val.numel()}",
                why="each channel has a range of its own",
                fix="observe tensors with the same channels, the first of them outside of jit",
            )
        self.register_buffer("min_val", full(like.shape, math.inf))
        self.register_buffer("max_val", full(like.shape, -math.inf))

    def bounds(self) -> tuple[Tensor, Tensor]:
        """The range that is mapped onto the integers."""
        return self.min_val, self.max_val

    def qparams(self) -> QParams:
        """How to quantise what was seen.

        Raises:
            QuantizationError: if nothing was seen (``MT701``).
        """
        if current_staging() is None and (self.min_val > self.max_val).any().item():
            raise QuantizationError(
                "MT701",
                f"{self.name} has seen no data, so it has no range",
                why="a scale is the range of the data, divided by the number of integers",
                fix="run the prepared model on some batches first: mt.quantization.calibrate(prepared, data)",
            )
        low, high = self.bounds()
        if current_staging() is None and self.qscheme not in SYMMETRIC:
            for least, most in zip(low.reshape(-1).tolist(), high.reshape(-1).tolist(), strict=True):
                require_scale(self.name, min(least, 0.0), max(most, 0.0))
        return choose_qparams(
            low,
            high,
            self.dtype,
            self.quant_min,
            self.quant_max,
            symmetric=self.qscheme in SYMMETRIC,
            eps=self.eps,
            axis=self.axis,
        )

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale (float32) and the zero point (int32): [], or [channels].

        Raises:
            QuantizationError: if nothing was seen (``MT701``).
        """
        found = self.qparams()
        return found.scale, found.zero_point

    def extra_repr(self) -> str:
        """The range."""
        if self.min_val.ndim:
            return f"{self.min_val.numel()} channels"
        return f"min_val={self.min_val.item():.6g}, max_val={self.max_val.item():.6g}"


class MinMaxObserver(Observer):
    """The range from the smallest number to the largest of all that was seen.

    Example:
        >>> import minitorch as mt
        >>> observer = mt.quantization.MinMaxObserver()
        >>> _ = observer(mt.tensor([-1.0, 0.5])), observer(mt.tensor([4.1]))
        >>> observer.calculate_qparams()
        (tensor(0.0200), tensor(50, dtype=minitorch.int32))
    """


class MovingAverageMinMaxObserver(Observer):
    """The moving average of the smallest and the largest number of each tensor.

    Args:
        averaging_constant: the weight of a new tensor; that of the first one is 1.
        options: as of `Observer`.

    Example:
        >>> import minitorch as mt
        >>> observer = mt.quantization.MovingAverageMinMaxObserver(averaging_constant=0.5)
        >>> _ = observer(mt.tensor([0.0, 1.0])), observer(mt.tensor([0.0, 2.0]))
        >>> observer.max_val
        tensor(1.5000)
    """

    def __init__(self, averaging_constant: float = 0.01, **options: Any) -> None:
        super().__init__(**options)
        self.averaging_constant = averaging_constant

    def merge(self, seen: Tensor, new: Tensor, further: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """``seen + averaging_constant * (new - seen)``; the new bound itself if it is the first."""
        first = seen.abs() == math.inf
        before = where(first, 0.0, seen)
        return where(first, new, before + self.averaging_constant * (new - before))


class PerChannelMinMaxObserver(Observer):
    """The range of each slice along an axis.

    Args:
        ch_axis: the axis of the channels; 0 is that of a weight's outputs.
        dtype: uint8 or int8.
        qscheme: ``per_channel_affine`` or ``per_channel_symmetric``.
        options: as of `Observer`.

    Example:
        >>> import minitorch as mt
        >>> observer = mt.quantization.PerChannelMinMaxObserver(dtype=mt.int8, qscheme="per_channel_symmetric")
        >>> _ = observer(mt.tensor([[-1.275, 1.0], [2.55, 0.0]]))
        >>> observer.calculate_qparams()
        (tensor([0.0100, 0.0200]), tensor([0, 0], dtype=minitorch.int32))
    """

    schemes = PER_CHANNEL

    def __init__(
        self, ch_axis: int = 0, dtype: DType = uint8, qscheme: str = per_channel_affine, **options: Any
    ) -> None:
        super().__init__(dtype=dtype, qscheme=qscheme, **options)
        self.axis = ch_axis


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver, MovingAverageMinMaxObserver):
    """The moving average of the range of each slice along an axis.

    Args:
        averaging_constant: the weight of a new tensor.
        ch_axis: the axis of the channels.
        options: as of `PerChannelMinMaxObserver`.

    Example:
        >>> import minitorch as mt
        >>> observer = mt.quantization.MovingAveragePerChannelMinMaxObserver(averaging_constant=0.5)
        >>> _ = observer(mt.tensor([[1.0], [2.0]])), observer(mt.tensor([[3.0], [2.0]]))
        >>> observer.max_val
        tensor([2., 2.])
    """
