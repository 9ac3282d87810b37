"""Layers that normalize: weight and bias start as 1 and 0, which leaves the normalized input unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..dtypes import DType, int64
from ..errors import ShapeError
from ..functional.creation.creation import ones, zeros
from ..functional.devices import on_cpu
from ..functional.inplace import assign
from ..functional.movement.shaping import squeeze, unsqueeze
from ..functional.options import whole
from ..functional.pointwise.elementwise import reciprocal
from ..tensor import Tensor
from . import functional as F
from . import init
from .layers import parameter
from .module import Module
from .parameter import Parameter, concretely


class _Norm(Module):
    """Base class: a weight and a bias, or one of them, or none.

    Attributes:
        _shown: the options as text, with fields for the layer and `has_bias`.
    """

    weight: Parameter | None
    bias: Parameter | None
    _shown: ClassVar[str]

    def _add_parameters(self, shape: Sequence[int], dtype: DType | None, device: Any, **given: bool) -> None:
        on_cpu(device)
        for name, is_there in given.items():
            self.register_parameter(name, parameter(*shape, dtype=dtype) if is_there else None)

    def reset_parameters(self) -> None:
        """Write the initial values."""
        self._start(weight=1, bias=0)

    def _start(self, **values: float) -> None:
        for name, value in values.items():
            if (each := getattr(self, name, None)) is not None:
                init.constant_(each, value)

    def extra_repr(self) -> str:
        """Return the options as text."""
        return self._shown.format(self, has_bias=getattr(self, "bias", None) is not None)


def _lengths(normalized_shape: int | Sequence[int], name: str) -> tuple[int, ...]:
    """Return the last lengths of the normalized input; one may be given by itself."""
    lengths = normalized_shape if isinstance(normalized_shape, Sequence) else (normalized_shape,)
    return tuple([whole(f"{name}: a length", each) for each in lengths])


class LayerNorm(_Norm):
    """`minitorch.nn.functional.layer_norm` with a trained weight and bias, which start as 1 and 0.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.LayerNorm(3)(mt.tensor([[1.0, 2.0, 3.0]])).detach()
        tensor([[-1.2247,  0.0000,  1.2247]])
    """

    _shown = "{0.normalized_shape}, eps={0.eps}, elementwise_affine={0.elementwise_affine}, bias={has_bias}"

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
        self.normalized_shape = _lengths(normalized_shape, type(self).__name__)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        affine = elementwise_affine
        self._add_parameters(self.normalized_shape, dtype, device, weight=affine, bias=affine and bias)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """Normalize; the shape stays."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(_Norm):
    """`minitorch.nn.functional.rms_norm` with a trained weight, which starts as 1.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.RMSNorm(2)(mt.tensor([[3.0, 3.0]])).detach()
        tensor([[1., 1.]])
    """

    _shown = "{0.normalized_shape}, eps={0.eps}, elementwise_affine={0.elementwise_affine}"

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _lengths(normalized_shape, type(self).__name__)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._add_parameters(self.normalized_shape, dtype, device, weight=elementwise_affine)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """Normalize; the shape stays."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(_Norm):
    """`minitorch.nn.functional.group_norm` with a trained weight and bias per channel, which start as 1 and 0.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.GroupNorm(2, 4)(mt.zeros(1, 4, 3)).shape
        (1, 4, 3)
    """

    _shown = "{0.num_groups}, {0.num_channels}, eps={0.eps}, affine={0.affine}, bias={has_bias}"

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
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        if num_groups < 1 or whole("GroupNorm: num_channels", num_channels) % num_groups:
            raise ValueError(f"GroupNorm: {num_channels} channels do not divide into {num_groups} groups")
        self._add_parameters((num_channels,), dtype, device, weight=affine, bias=affine and bias)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """Normalize; the shape stays."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class _BatchNorm(_Norm):
    """Batch normalization of inputs whose number of dimensions is in `_ndims`; the subclasses are its rows."""

    _ndims: tuple[int, ...]
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    _shown = (
        "{0.num_features}, eps={0.eps}, momentum={0.momentum}, affine={0.affine}, bias={has_bias}, "
        "track_running_stats={0.track_running_stats}"
    )

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
        self.num_features = whole(f"{type(self).__name__}: num_features", num_features)
        self.eps, self.momentum, self.affine, self.track_running_stats = eps, momentum, affine, track_running_stats
        self._add_parameters((num_features,), dtype, device, weight=affine, bias=affine and bias)
        tracked = track_running_stats
        with concretely():
            self.register_buffer("running_mean", zeros(num_features, dtype=dtype) if tracked else None)
            self.register_buffer("running_var", ones(num_features, dtype=dtype) if tracked else None)
            self.register_buffer("num_batches_tracked", zeros((), dtype=int64) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the statistics of all batches."""
        self._start(running_mean=0, running_var=1, num_batches_tracked=0)

    def reset_parameters(self) -> None:
        """Write the initial values, also of the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check(self, input: Tensor) -> None:
        if input.ndim not in self._ndims or input.shape[1] != self.num_features:
            raise ShapeError(
                "MT201",
                f"{type(self).__name__}({self.num_features}): an input {input.spec}",
                why=f"it takes [batch, {self.num_features}, ...] with {' or '.join(map(str, self._ndims))} dimensions",
                fix="check which dimension has the channels",
            )

    def forward(self, input: Tensor) -> Tensor:
        """Normalize; the shape stays. In training, the running statistics are moved towards the batch's."""
        self._check(input)
        momentum: float | Tensor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            count = assign(self.num_batches_tracked, self.num_batches_tracked + 1)
            if self.momentum is None:  # then the running statistics are the mean over all batches
                momentum = reciprocal(count)
        by_batch = self.training or self.running_mean is None
        kept = (self.running_mean, self.running_var) if not by_batch or self.track_running_stats else (None, None)
        return F.batch_norm(input, *kept, self.weight, self.bias, by_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """`minitorch.nn.functional.batch_norm` of [batch, channels] or [batch, channels, length].

    Example:
        >>> import minitorch as mt
        >>> mt.nn.BatchNorm1d(2, affine=False)(mt.tensor([[1.0, 2.0], [3.0, 2.0]]))
        tensor([[-1.0000,  0.0000],
                [ 1.0000,  0.0000]])
    """

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`minitorch.nn.functional.batch_norm` of [batch, channels, height, width].

    In a graph for a `Session`, ``optimizer.minimize(loss)`` updates the running statistics, too.

    Example:
        >>> import minitorch as mt
        >>> norm = mt.nn.BatchNorm2d(3)
        >>> norm(mt.ones(4, 3, 2, 2)).shape, norm.running_mean
        ((4, 3, 2, 2), tensor([0.1000, 0.1000, 0.1000]))
    """

    _ndims = (4,)


class _InstanceNorm(_BatchNorm):
    """Instance normalization; the last of `_ndims` is that of a batch. Statistics and parameters are asked for."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        dtype: DType | None = None,
        device: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, device, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """Normalize; the shape stays."""
        if input.ndim == self._ndims[0]:
            return squeeze(self.forward(unsqueeze(input, 0)), 0)
        self._check(input)
        by_sample = self.training or self.running_mean is None
        running, momentum = (self.running_mean, self.running_var), self.momentum or 0.0
        return F.instance_norm(input, *running, self.weight, self.bias, by_sample, momentum, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """`minitorch.nn.functional.instance_norm` of [batch, channels, length] or [channels, length].

    Example:
        >>> import minitorch as mt
        >>> mt.nn.InstanceNorm1d(2)(mt.tensor([[1.0, 3.0], [10.0, 30.0]]))
        tensor([[-1.0000,  1.0000],
                [-1.0000,  1.0000]])
    """

    _ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """`minitorch.nn.functional.instance_norm` of [batch, channels, height, width] or [channels, height, width].

    Example:
        >>> import minitorch as mt
        >>> mt.nn.InstanceNorm2d(3, affine=True)(mt.ones(4, 3, 2, 2)).shape
        (4, 3, 2, 2)
    """

    _ndims = (3, 4)
