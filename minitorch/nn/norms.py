"""Layers that normalize: weight and bias start as 1 and 0, which leaves the normalized input unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtypes import DType, int64
from ..errors import ShapeError
from ..functional.creation import ones, zeros
from ..functional.devices import on_cpu
from ..functional.elementwise import reciprocal
from ..functional.inplace import assign
from ..functional.operands import whole
from ..tensor import Tensor
from . import functional as F
from . import init
from .layers import parameter
from .module import Module
from .parameter import Parameter, concretely


def _lengths(normalized_shape: int | Sequence[int], name: str) -> tuple[int, ...]:
    """Return the last lengths of the normalized input; one may be given by itself."""
    lengths = normalized_shape if isinstance(normalized_shape, Sequence) else (normalized_shape,)
    return tuple([whole(f"{name}: a length", each) for each in lengths])


class LayerNorm(Module):
    """`minitorch.nn.functional.layer_norm` with a trained weight and bias, which start as 1 and 0.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.LayerNorm(3)(mt.tensor([[1.0, 2.0, 3.0]])).detach()
        tensor([[-1.2247,  0.0000,  1.2247]])
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        super().__init__()
        on_cpu(device)
        shape = _lengths(normalized_shape, type(self).__name__)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        self.register_parameter("weight", parameter(*shape, dtype=dtype) if elementwise_affine else None)
        self.register_parameter("bias", parameter(*shape, dtype=dtype) if elementwise_affine and bias else None)
        reset_scale(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Normalize; the shape stays."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options as text."""
        options = f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        return f"{self.normalized_shape}, eps={self.eps}, {options}"


class RMSNorm(Module):
    """`minitorch.nn.functional.rms_norm` with a trained weight, which starts as 1.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.RMSNorm(2)(mt.tensor([[3.0, 3.0]])).detach()
        tensor([[1., 1.]])
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        super().__init__()
        on_cpu(device)
        shape = _lengths(normalized_shape, type(self).__name__)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        self.register_parameter("weight", parameter(*shape, dtype=dtype) if elementwise_affine else None)
        reset_scale(self.weight, None)

    def forward(self, input: Tensor) -> Tensor:
        """Normalize; the shape stays."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the options as text."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


def reset_scale(weight: Parameter | None, bias: Parameter | None) -> None:
    """Write initial values that leave a normalized input unchanged."""
    if weight is not None:
        init.ones_(weight)
    if bias is not None:
        init.zeros_(bias)


class GroupNorm(Module):
    """`minitorch.nn.functional.group_norm` with a trained weight and bias per channel, which start as 1 and 0.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.GroupNorm(2, 4)(mt.zeros(1, 4, 3)).shape
        (1, 4, 3)
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: DType | None = None,
        device: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        on_cpu(device)
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        if num_groups < 1 or whole("GroupNorm: num_channels", num_channels) % num_groups:
            raise ValueError(f"GroupNorm: {num_channels} channels do not divide into {num_groups} groups")
        self.register_parameter("weight", parameter(num_channels, dtype=dtype) if affine else None)
        self.register_parameter("bias", parameter(num_channels, dtype=dtype) if affine and bias else None)
        reset_scale(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Normalize; the shape stays."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options as text."""
        options = f"affine={self.affine}, bias={self.bias is not None}"
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, {options}"


class _BatchNorm(Module):
    """Batch normalization of inputs whose number of dimensions is in `ndims`; the subclasses are its rows."""

    ndims: tuple[int, ...]
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: DType | None = None,
        device: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        on_cpu(device)
        self.num_features, self.eps, self.momentum = (
            whole(f"{type(self).__name__}: num_features", num_features),
            eps,
            momentum,
        )
        self.affine, self.track_running_stats = affine, track_running_stats
        self.register_parameter("weight", parameter(num_features, dtype=dtype) if affine else None)
        self.register_parameter("bias", parameter(num_features, dtype=dtype) if affine and bias else None)
        reset_scale(self.weight, self.bias)
        with concretely():
            tracked = track_running_stats
            self.register_buffer("running_mean", zeros(num_features, dtype=dtype) if tracked else None)
            self.register_buffer("running_var", ones(num_features, dtype=dtype) if tracked else None)
            self.register_buffer("num_batches_tracked", zeros((), dtype=int64) if tracked else None)

    def forward(self, input: Tensor) -> Tensor:
        """Normalize; the shape stays. In training, the running statistics are moved towards the batch's."""
        if input.ndim not in self.ndims or input.shape[1] != self.num_features:
            raise ShapeError(
                "MT201",
                f"{type(self).__name__}({self.num_features}): an input {input.spec}",
                why=f"it takes [batch, {self.num_features}, ...] with {' or '.join(map(str, self.ndims))} dimensions",
                fix="check which dimension has the channels",
            )
        momentum: float | Tensor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            count = assign(self.num_batches_tracked, self.num_batches_tracked + 1)
            if self.momentum is None:  # then the running statistics are the mean over all batches
                momentum = reciprocal(count)
        by_batch = self.training or self.running_mean is None
        kept = (self.running_mean, self.running_var) if not by_batch or self.track_running_stats else (None, None)
        return F.batch_norm(input, *kept, self.weight, self.bias, by_batch, momentum, self.eps)

    def extra_repr(self) -> str:
        """Return the options as text."""
        options = f"affine={self.affine}, bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, {options}"


class BatchNorm1d(_BatchNorm):
    """`minitorch.nn.functional.batch_norm` of [batch, channels] or [batch, channels, length].

    Example:
        >>> import minitorch as mt
        >>> mt.nn.BatchNorm1d(2, affine=False)(mt.tensor([[1.0, 2.0], [3.0, 2.0]]))
        tensor([[-1.0000,  0.0000],
                [ 1.0000,  0.0000]])
    """

    ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`minitorch.nn.functional.batch_norm` of [batch, channels, height, width].

    In a graph for a `Session`, ``optimizer.minimize(loss)`` updates the running statistics, too.

    Example:
        >>> import minitorch as mt
        >>> norm = mt.nn.BatchNorm2d(3)
        >>> norm(mt.ones(4, 3, 2, 2)).shape, norm.running_mean
        ((4, 3, 2, 2), tensor([0.1000, 0.1000, 0.1000]))
    """

    ndims = (4,)
