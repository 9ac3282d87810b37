"""Modules with parameters: the trained layers.

Each keeps its parameters, and calls its function in `minitorch.nn.functional`. The initial values are
PyTorch's: weights and biases uniform between plus and minus ``1 / sqrt(fan_in)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ..dtypes import DEFAULT_FLOAT, DType
from ..functional.creation.creation import empty
from ..functional.devices import on_cpu
from ..functional.options import whole
from ..tensor import Tensor
from . import functional as F
from . import init
from .functional.convolution import amounts
from .functional.pooling import Ints, per_dim
from .module import Module
from .parameter import Parameter, concretely


def parameter(*shape: int, dtype: DType | None = None, device: Any = None) -> Parameter:
    """Return an uninitialised parameter; concrete, also while a graph is being recorded."""
    on_cpu(device)
    with concretely():
        return Parameter(empty(shape, dtype=dtype or DEFAULT_FLOAT))


class Affine(Module):
    """Base class of `Linear` and the convolutions: a weight, an optional bias, and their initial values."""

    weight: Parameter
    bias: Parameter | None

    def applied(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Apply the layer's function, with its options, to another weight and bias."""
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer's function to its own weight and bias."""
        return self.applied(input, self.weight, self.bias)

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # the bound is 1 / sqrt(fan_in)
        if self.bias is not None:
            bound = 1 / math.sqrt(max(1, init.fans(self.weight)[0]))
            init.uniform_(self.bias, -bound, bound)


class Linear(Affine):
    """Affine map ``x @ weight.T + bias`` over the last dimension.

    Example:
        >>> import minitorch as mt
        >>> layer = mt.nn.Linear(3, 2)
        >>> layer(mt.zeros(5, 3)).shape, layer.weight.shape
        ((5, 2), (2, 3))
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dtype: DType | None = None, device: Any = None
    ) -> None:
        super().__init__()
        self.in_features = whole("Linear: in_features", in_features)
        self.out_features = whole("Linear: out_features", out_features)
        self.weight = parameter(out_features, in_features, dtype=dtype, device=device)
        self.register_parameter("bias", parameter(out_features, dtype=dtype, device=device) if bias else None)
        self.reset_parameters()

    def applied(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Map [..., in_features] to [..., out_features]."""
        return F.linear(input, weight, bias)

    def extra_repr(self) -> str:
        """Return the options as text."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class _Conv(Affine):
    """Convolution over `dims` dimensions, or a `transposed` one; the subclasses are its rows."""

    dims: int
    transposed: ClassVar[bool] = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: str | Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if padding_mode not in ("zeros", *(() if self.transposed else ("reflect", "replicate", "circular"))):
            raise ValueError(f"{name}: padding_mode={padding_mode!r} is not available")
        self.padding_mode = padding_mode
        self.in_channels = whole(f"{name}: in_channels", in_channels)
        self.out_channels = whole(f"{name}: out_channels", out_channels)
        self.groups = groups
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{name}: {in_channels} and {out_channels} channels do not divide into {groups} groups")
        self.kernel_size = per_dim(kernel_size, self.dims, "kernel_size")
        self.stride = per_dim(stride, self.dims, "stride")
        self.padding = padding if isinstance(padding, str) else per_dim(padding, self.dims, "padding")
        self.dilation = per_dim(dilation, self.dims, "dilation")
        ends = amounts(self.padding, self.kernel_size, self.stride, self.dilation, name)  # refuses invalid options
        self._ends = tuple(amount for pair in reversed(ends) for amount in pair)
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = parameter(first, second // groups, *self.kernel_size, dtype=dtype, device=device)
        self.register_parameter("bias", parameter(out_channels, dtype=dtype, device=device) if bias else None)
        self.reset_parameters()

    def applied(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Map [batch, in_channels, ...] to [batch, out_channels, ...]."""
        function, padded = (F.conv1d, F.conv2d, F.conv3d)[self.dims - 1], self.padding_mode != "zeros"
        if padded:
            input = F.pad(input, self._ends, mode=self.padding_mode)
        return function(input, weight, bias, self.stride, 0 if padded else self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        """Return the options as text; the rarer ones only if they differ from their defaults."""
        none, one = (0,) * self.dims, (1,) * self.dims
        usual = {"padding": none, "dilation": one, "output_padding": none, "groups": 1}
        shown = [f"{name}={getattr(self, name)}" for name in ("kernel_size", "stride")]
        shown += [f"{name}={value}" for name in usual if (value := getattr(self, name, usual[name])) != usual[name]]
        shown += ["bias=False"] if self.bias is None else []
        shown += [f"padding_mode={self.padding_mode}"] if self.padding_mode != "zeros" else []
        return f"{self.in_channels}, {self.out_channels}, {', '.join(shown)}"


class Conv1d(_Conv):
    """`minitorch.nn.functional.conv1d` with a trained weight and bias.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.Conv1d(3, 8, kernel_size=3)(mt.zeros(1, 3, 10)).shape
        (1, 8, 8)
    """

    dims = 1


class Conv2d(_Conv):
    """`minitorch.nn.functional.conv2d` with a trained weight and bias.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.Conv2d(3, 8, kernel_size=3, padding="same")(mt.zeros(1, 3, 10, 10)).shape
        (1, 8, 10, 10)
    """

    dims = 2


class _ConvTranspose(_Conv):
    """Transposed convolution over `dims` dimensions; the subclasses are its rows."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        options = stride, padding, dilation, groups, bias, padding_mode, dtype, device
        super().__init__(in_channels, out_channels, kernel_size, *options)
        self.output_padding = per_dim(output_padding, self.dims, "output_padding")

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Map [batch, in_channels, ...] to [batch, out_channels, ...], of these last lengths if they are given."""
        more = self.output_padding
        if output_size is not None:
            spans = [(size - 1) * apart + 1 for size, apart in zip(self.kernel_size, self.dilation, strict=True)]
            cut = per_dim(self.padding, self.dims, "padding")  # type: ignore[arg-type]
            places = zip(input.shape[-self.dims :], self.stride, spans, cut, strict=True)
            least = [(length - 1) * by + span - 2 * off for length, by, span, off in places]
            more = tuple(want - length for want, length in zip(output_size[-self.dims :], least, strict=True))
        function = (F.conv_transpose1d, F.conv_transpose2d)[self.dims - 1]
        return function(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)


class ConvTranspose1d(_ConvTranspose):
    """`minitorch.nn.functional.conv_transpose1d` with a trained weight and bias.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.ConvTranspose1d(3, 8, kernel_size=3, stride=2)(mt.zeros(1, 3, 10)).shape
        (1, 8, 21)
    """

    dims = 1


class ConvTranspose2d(_ConvTranspose):
    """`minitorch.nn.functional.conv_transpose2d` with a trained weight and bias.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.ConvTranspose2d(3, 8, kernel_size=4, stride=2, padding=1)(mt.zeros(1, 3, 10, 10)).shape
        (1, 8, 20, 20)
    """

    dims = 2


class Embedding(Module):
    """Table of vectors, looked up by number; the row `padding_idx` stays zero; `max_norm` as in `F.embedding`.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.Embedding(10, 4)(mt.tensor([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type = max_norm, norm_type
        self.num_embeddings = whole("Embedding: num_embeddings", num_embeddings)
        self.embedding_dim = whole("Embedding: embedding_dim", embedding_dim)
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"Embedding: padding_idx={padding_idx} is not a row of {num_embeddings}")
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = parameter(num_embeddings, embedding_dim, dtype=dtype, device=device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values: normal, of standard deviation 1."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with concretely():
                init.zeros_(self.weight[self.padding_idx])

    def forward(self, input: Tensor) -> Tensor:
        """Map [...] to [..., embedding_dim]."""
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type)

    def extra_repr(self) -> str:
        """Return the options as text."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        longest = "" if self.max_norm is None else f", max_norm={self.max_norm}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}{longest}"


class EmbeddingBag(Embedding):
    """`minitorch.nn.functional.embedding_bag` with a trained table.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.EmbeddingBag(10, 4)(mt.tensor([1, 2, 3, 4]), mt.tensor([0, 3])).shape
        (2, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        mode: str = "mean",
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        self.mode, self.include_last_offset = mode, include_last_offset
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, dtype, device)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Map [bags, length], or [indices] with the offsets of the bags, to [bags, embedding_dim]."""
        options = self.max_norm, self.norm_type, self.mode, per_sample_weights
        last = self.include_last_offset, self.padding_idx
        return F.embedding_bag(input, self.weight, offsets, *options, *last)

    def extra_repr(self) -> str:
        """Return the options as text."""
        return f"{super().extra_repr()}, mode={self.mode!r}"


class Bilinear(Module):
    """`minitorch.nn.functional.bilinear` with a trained weight and bias.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.Bilinear(3, 4, 2)(mt.ones(5, 3), mt.ones(5, 4)).shape
        (5, 2)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        super().__init__()
        sizes = {"in1_features": in1_features, "in2_features": in2_features, "out_features": out_features}
        for name, size in sizes.items():
            setattr(self, name, whole(f"Bilinear: {name}", size))
        if not in1_features:
            raise ValueError("Bilinear: in1_features is at least 1, not 0")
        self.weight = parameter(out_features, in1_features, in2_features, dtype=dtype, device=device)
        self.bias = parameter(out_features, dtype=dtype, device=device) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        for each in self.parameters():
            init.uniform_(each, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Map [..., in1_features] and [..., in2_features] to [..., out_features]."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the options as text."""
        out, first, second = self.weight.shape
        return f"in1_features={first}, in2_features={second}, out_features={out}, bias={self.bias is not None}"


class PReLU(Module):
    """`minitorch.nn.functional.prelu` with a trained slope, or one for each channel.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.PReLU()(mt.tensor([-2.0, 2.0])).detach()
        tensor([-0.5000,  2.0000])
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, dtype: DType | None = None, device: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = whole("PReLU: num_parameters", num_parameters), init
        self.weight = parameter(num_parameters, dtype=dtype, device=device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Write the initial slope."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Multiply negative elements by the slope."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Return the options as text."""
        return f"num_parameters={self.num_parameters}"
