"""One call, or several, of every public function: a table that the tests of every mode and every backend go through.

A `Case` is a function of tensors and arrays to call it with. Floats are float32 here; tests convert them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import minitorch as mt
from minitorch.nn import functional as F

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """A call of a public function.

    Attributes:
        name: the function's name, as in `minitorch` or, with a leading ``F.``, in `minitorch.nn.functional`.
        function: what is called; it returns a tensor or a nested structure of tensors.
        arrays: what it is called with.
        smooth: whether its derivatives by the float arguments are those that differences give.
    """

    name: str
    function: Callable[..., Any]
    arrays: tuple[Array, ...] = field(repr=False)
    smooth: bool = True

    def tensors(self, dtype: Any = None, requires_grad: bool = False) -> list[mt.Tensor]:
        """The arguments; floats in another type if one is given."""
        made = [mt.tensor(array) for array in self.arrays]
        if dtype is not None:
            made = [x.to(dtype) if x.is_floating_point() else x for x in made]
        return [x.requires_grad_() if requires_grad and x.is_floating_point() else x for x in made]

    def __str__(self) -> str:
        return self.name


_random = np.random.default_rng(0)


def real(*shape: int) -> Array:
    """Numbers of both signs, none near zero, no two alike."""
    size = int(np.prod(shape, dtype=int))
    numbers = (np.arange(size) + 1) / (size + 1) * 2.6 - 1.3
    numbers = np.where(np.abs(numbers) < 0.05, 0.07, numbers) + _random.uniform(0, 1e-3, size)
    return _random.permutation(numbers).reshape(shape).astype(np.float32)


def unit(*shape: int) -> Array:
    """Numbers between 0.1 and 0.9."""
    return (0.5 + 0.3 * real(*shape)).astype(np.float32)


def positive(*shape: int) -> Array:
    """Numbers above 1."""
    return (1.1 + np.abs(real(*shape))).astype(np.float32)


def whole(*shape: int, low: int = 0, high: int = 3) -> Array:
    """Integers from `low` up to `high`."""
    return _random.integers(low, high, shape)


def truth(*shape: int) -> Array:
    """Some true, some false."""
    return whole(*shape, high=2).astype(bool)


CASES: list[Case] = []


def add(name: str, *arrays: Array, call: Callable[..., Any] | None = None, smooth: bool = True) -> None:
    """A row; without `call` the function of that name is called with the arrays as they are."""
    space = F if name.startswith("F.") else mt
    CASES.append(Case(name, call or getattr(space, name.removeprefix("F.")), arrays, smooth))


add("checkpoint", real(2, 3), real(3), call=lambda x, y: mt.checkpoint(lambda x: (x.sin() * y).exp(), x))

# One operand ------------------------------------------------------------------------------------------------------

for _name in [
    "abs",
    "absolute",
    "arctan",
    "arcsinh",
    "asinh",
    "atan",
    "cos",
    "cosh",
    "deg2rad",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "neg",
    "negative",
    "positive",
    "rad2deg",
    "reciprocal",
    "relu",
    "sigmoid",
    "sin",
    "sinh",
    "square",
    "tan",
    "tanh",
    "frac",
    "nan_to_num",
]:
    add(_name, real(2, 3))
for _name in ["asin", "acos", "arcsin", "arccos", "atanh", "arctanh", "logit"]:
    add(_name, unit(2, 3))
for _name in ["log", "log1p", "log2", "log10", "sqrt", "rsqrt", "acosh", "arccosh"]:
    add(_name, positive(2, 3))
for _name in ["ceil", "fix", "floor", "round", "sgn", "sign", "signbit", "trunc", "isfinite", "isinf", "isnan"]:
    add(_name, real(2, 3) * 3)
add("isnan", np.array([np.nan, np.inf, -np.inf, 0], np.float32), smooth=False)
add("isinf", np.array([np.nan, np.inf, -np.inf, 0], np.float32), smooth=False)
add("isfinite", np.array([np.nan, np.inf, -np.inf, 0], np.float32), smooth=False)
add("nan_to_num", np.array([np.nan, np.inf, -np.inf, 1], np.float32), smooth=False)
add("round", np.array([0.5, 1.5, -2.5, 2.675], np.float32), call=lambda x: mt.round(x, decimals=1), smooth=False)
for _name in ["abs", "neg", "sign", "square"]:
    add(_name, whole(4, low=-3))
add("exp", whole(3))
add("clone", real(2, 3))

# Two operands, broadcasting -----------------------------------------------------------------------------------------

for _name in [
    "add",
    "sub",
    "subtract",
    "mul",
    "multiply",
    "arctan2",
    "atan2",
    "hypot",
    "logaddexp",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "copysign",
]:
    add(_name, real(2, 3), real(3))
for _name in ["div", "divide", "true_divide", "fmod", "remainder", "floor_divide"]:
    add(_name, real(2, 3) * 5, positive(2, 1))
for _name in ["add", "sub", "mul", "div", "remainder", "floor_divide", "maximum", "minimum", "fmod"]:
    add(_name, whole(2, 3, low=-7, high=9), whole(3, low=1, high=4))
add("add", real(2), whole(2))
add("add", real(3), call=lambda x: mt.add(x, 2, alpha=3))
add("sub", real(3), real(3), call=lambda x, y: mt.sub(x, y, alpha=0.5))
add("div", real(4) * 4, positive(4), call=lambda x, y: mt.div(x, y, rounding_mode="trunc"))
add("pow", positive(2, 3), real(3))
add("pow", real(3), call=lambda x: mt.pow(x, 3))
add("pow", whole(3, high=4), whole(3, high=4))
add("lerp", real(3), real(3), unit(3))
add("xlogy", real(2, 3), positive(3))
add("xlogy", np.array([0.0, 0.0, 0.0, 1.0], np.float32), np.array([0.0, -1.0, np.inf, 0.0], np.float32), smooth=False)
add("addcmul", real(3), real(2, 3), real(3), call=lambda a, b, c: mt.addcmul(a, b, c, value=0.5))
add("addcdiv", real(3), real(2, 3), positive(3))
for _name in ["eq", "ge", "gt", "le", "lt", "ne", "greater", "greater_equal", "less", "less_equal", "not_equal"]:
    add(_name, whole(3, 4), whole(4))
    add(_name, real(3), real(3), smooth=False)
for _name in ["logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"]:
    add(_name, truth(2, 3), truth(3))
for _name in ["bitwise_and", "bitwise_or", "bitwise_xor"]:
    add(_name, whole(2, 3, low=-9, high=9), whole(3, high=9))
for _name in ["bitwise_left_shift", "bitwise_right_shift"]:
    add(_name, whole(2, 3, low=-9, high=9), whole(3))
add("bitwise_not", whole(4, low=-3))
add("logical_not", truth(4))
add("isclose", real(4), real(4), smooth=False)
add("where", truth(2, 3), real(3), real(2, 1))
add("clamp", real(2, 3), call=lambda x: mt.clamp(x, -0.5, 0.8))
add("clip", real(2, 3), call=lambda x: mt.clip(x, max=0.3))
add("clamp_min", real(5), call=lambda x: mt.clamp_min(x, 0.1))
add("clamp_max", real(5), call=lambda x: mt.clamp_max(x, 0.1))

# Reductions and scans -----------------------------------------------------------------------------------------------

for _name in ["sum", "mean", "prod", "amax", "amin", "logsumexp", "var", "std", "nansum", "nanmean", "norm"]:
    add(_name, real(2, 3, 2), call=lambda x, name=_name: getattr(mt, name)(x, dim=1))
    if _name != "prod":
        add(_name, real(2, 3, 2), call=lambda x, name=_name: getattr(mt, name)(x, dim=(0, -1), keepdim=True))
for _name in ["sum", "mean", "prod", "max", "min", "var", "std"]:
    add(_name, real(2, 3))
for _name in ["sum", "prod", "cumsum"]:
    add(_name, whole(2, 3), call=lambda x, name=_name: getattr(mt, name)(x, dim=1))
for _name in ["max", "min", "median", "cumsum", "cumprod", "argmax", "argmin"]:
    add(_name, real(3, 4), call=lambda x, name=_name: getattr(mt, name)(x, dim=1))
add("argmax", real(3, 4))
add("argmin", real(3, 4), call=lambda x: mt.argmin(x, dim=0, keepdim=True))
add("max", real(3), real(3))
add("min", real(3), real(3))
add("prod", np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 1.0]], np.float32), call=lambda x: mt.prod(x, dim=1), smooth=False)
add("aminmax", real(3, 4), call=lambda x: mt.aminmax(x, dim=1))
for _name in ["std_mean", "var_mean"]:
    add(_name, real(3, 4), call=lambda x, name=_name: getattr(mt, name)(x, dim=1, correction=0))
for _name in ["all", "any"]:
    add(_name, truth(3, 4), call=lambda x, name=_name: getattr(mt, name)(x, dim=1))
add("count_nonzero", whole(3, 4), call=lambda x: mt.count_nonzero(x, dim=0))
add("norm", real(3, 4), call=lambda x: mt.norm(x, p=1, dim=1))

# Shapes -------------------------------------------------------------------------------------------------------------

add("reshape", real(2, 6), call=lambda x: mt.reshape(x, (3, -1)))
add("flatten", real(2, 3, 2), call=lambda x: mt.flatten(x, 1))
add("unflatten", real(2, 6), call=lambda x: mt.unflatten(x, 1, (2, 3)))
add("ravel", real(2, 3))
add("squeeze", real(2, 1, 3, 1), call=lambda x: mt.squeeze(x, 1))
add("squeeze", real(2, 1, 3, 1))
add("unsqueeze", real(2, 3), call=lambda x: mt.unsqueeze(x, -1))
for _name in ["transpose", "swapaxes", "swapdims"]:
    add(_name, real(2, 3, 4), call=lambda x, name=_name: getattr(mt, name)(x, 0, -1))
for _name in ["movedim", "moveaxis"]:
    add(_name, real(2, 3, 4), call=lambda x, name=_name: getattr(mt, name)(x, 0, 2))
add("permute", real(2, 3, 4), call=lambda x: mt.permute(x, (2, 0, 1)))
add("t", real(2, 3))
add("broadcast_to", real(3, 1), call=lambda x: mt.broadcast_to(x, (2, 3, 4)))
add("broadcast_tensors", real(3, 1), real(4))
for _name in ["atleast_1d", "atleast_2d", "atleast_3d"]:
    add(_name, real(3))
for _name in ["cat", "concat", "concatenate"]:
    add(_name, real(2, 3), real(1, 3), call=lambda a, b, name=_name: getattr(mt, name)([a, b, a]))
for _name in ["stack", "hstack", "vstack", "row_stack"]:
    add(_name, real(2, 3), real(2, 3), call=lambda a, b, name=_name: getattr(mt, name)([a, b]))
add("stack", real(2), whole(2), call=lambda a, b: mt.stack([a, b], dim=-1))
add("split", real(5, 2), call=lambda x: mt.split(x, 2))
add("split", real(5, 2), call=lambda x: mt.split(x, [1, 4]))
add("tensor_split", real(5, 2), call=lambda x: mt.tensor_split(x, 2))
add("chunk", real(5, 2), call=lambda x: mt.chunk(x, 2))
add("unbind", real(2, 3), call=lambda x: mt.unbind(x, 1))
add("narrow", real(4, 3), call=lambda x: mt.narrow(x, 0, 1, 2))
add("select", real(4, 3), call=lambda x: mt.select(x, 0, -1))
add("diagonal", real(3, 4), call=lambda x: mt.diagonal(x, 1))
add("diag", real(3))
add("diag", real(3, 3))
add("diag_embed", real(2, 3))
add("flip", real(2, 3), call=lambda x: mt.flip(x, (0, 1)))
add("fliplr", real(2, 3))
add("flipud", real(2, 3))
add("roll", real(2, 3), call=lambda x: mt.roll(x, 1, 1))
add("tile", real(2, 3), call=lambda x: mt.tile(x, (2, 1)))
add("repeat_interleave", real(2, 3), call=lambda x: mt.repeat_interleave(x, 2, dim=1))
add("tril", real(3, 4), call=lambda x: mt.tril(x, 1))
add("triu", real(3, 4))
add("meshgrid", real(2), real(3), call=lambda a, b: mt.meshgrid(a, b, indexing="ij"))
add("pad", real(2, 3), call=lambda x: mt.pad(x, (1, 2), value=3.0))

# Contractions -------------------------------------------------------------------------------------------------------

add("matmul", real(2, 3), real(3, 4))
add("matmul", real(3), real(3))
add("matmul", real(2, 1, 2, 3), real(3, 3, 2))
add("matmul", real(2, 3), real(3))
add("matmul", whole(2, 3), whole(3, 2))
add("mm", real(2, 3), real(3, 2))
add("bmm", real(2, 2, 3), real(2, 3, 2))
add("mv", real(2, 3), real(3))
for _name in ["dot", "vdot", "inner"]:
    add(_name, real(3), real(3))
for _name in ["outer", "ger"]:
    add(_name, real(3), real(2))
add("addmm", real(2), real(2, 3), real(3, 2), call=lambda a, b, c: mt.addmm(a, b, c, beta=0.5, alpha=2))
add("addmv", real(2), real(2, 3), real(3))
add("addr", real(2, 3), real(2), real(3))
add("baddbmm", real(2, 2, 2), real(2, 2, 3), real(2, 3, 2))
add("addbmm", real(2, 2), real(2, 2, 3), real(2, 3, 2))
add("kron", real(2, 2), real(1, 3))
add("trace", real(3, 3))
add("cross", real(2, 3), real(2, 3))
add("tensordot", real(2, 3, 4), real(3, 4, 2), call=lambda a, b: mt.tensordot(a, b, 2))
add("einsum", real(2, 3), real(3, 4), call=lambda a, b: mt.einsum("ij,jk->ki", a, b))
add("einsum", real(3, 3), call=lambda a: mt.einsum("ii->i", a))
add("einsum", real(2, 2, 3), real(2, 3), call=lambda a, b: mt.einsum("b...i,bi->...", a, b))

# Indexing, order ----------------------------------------------------------------------------------------------------

add("gather", real(3, 4), whole(3, 2), call=lambda x, i: mt.gather(x, 1, i))
add("scatter", real(3, 4), np.array([[0, 1], [3, 2], [1, 0]]), real(3, 2), call=lambda x, i, y: mt.scatter(x, 1, i, y))
add("scatter_add", real(3, 4), whole(3, 3), real(3, 3), call=lambda x, i, y: mt.scatter_add(x, 1, i, y))
add("index_select", real(3, 4), whole(5), call=lambda x, i: mt.index_select(x, 0, i))
add("index_add", real(3, 2), whole(4), real(4, 2), call=lambda x, i, y: mt.index_add(x, 0, i, y))
add("index_copy", real(3, 2), np.array([2, 0]), real(2, 2), call=lambda x, i, y: mt.index_copy(x, 0, i, y))
add("index_fill", real(3, 2), np.array([2, 0]), call=lambda x, i: mt.index_fill(x, 0, i, 5.0))
add("masked_fill", real(3, 4), truth(3, 4), call=lambda x, m: mt.masked_fill(x, m, -1.0))
add("take_along_dim", real(3, 4), whole(3, 2), call=lambda x, i: mt.take_along_dim(x, i, dim=1))
add("take", real(3, 4), whole(5, high=12))
add("sort", real(3, 4))
add("sort", whole(3, 4, high=9), call=lambda x: mt.sort(x, dim=0, descending=True, stable=True))
add("argsort", real(3, 4))
add("msort", real(3, 2))
add("topk", real(3, 4), call=lambda x: mt.topk(x, 2))
add("searchsorted", np.array([1.0, 2.0, 3.0], np.float32), real(4) * 3, smooth=False)
add("bucketize", real(4) * 3, np.array([1.0, 2.0, 3.0], np.float32), smooth=False)

# Creation and random numbers ----------------------------------------------------------------------------------------

add("arange", call=lambda: mt.arange(1, 7, 2))
add("arange", call=lambda: mt.arange(0.0, 1.0, 0.25))
add("linspace", call=lambda: mt.linspace(-1, 1, 5))
add("logspace", call=lambda: mt.logspace(0, 2, 5, base=2))
add("eye", call=lambda: mt.eye(3, 4))
add("zeros", call=lambda: mt.zeros(2, 3))
add("ones", call=lambda: mt.ones(2, 3, dtype=mt.int64))
add("full", call=lambda: mt.full((2, 3), 1.5))
for _name in ["zeros_like", "ones_like"]:
    add(_name, real(2, 3), smooth=False)
add("full_like", real(2, 3), call=lambda x: mt.full_like(x, 2), smooth=False)
add("tensor", call=lambda: mt.tensor([[1.0, 2.0], [3.0, 4.0]]))
add("tensor", real(3), call=lambda x: mt.tensor([x[0], 2.0, x[1]]), smooth=False)
add("as_tensor", real(3))
for _name in ["rand", "randn"]:
    add(_name, call=lambda name=_name: getattr(mt, name)(2, 3))
add("rand", call=lambda: mt.rand(3, dtype=mt.float64))
for _name in ["rand_like", "randn_like"]:
    add(_name, real(2, 3), smooth=False)
add("randint", call=lambda: mt.randint(2, 9, (3, 4)))
add("randint_like", whole(3), call=lambda x: mt.randint_like(x, 9))
add("randperm", call=lambda: mt.randperm(7))
add("normal", call=lambda: mt.normal(1.0, 2.0, (3,)))
add("bernoulli", unit(3, 4), smooth=False)

# Neural networks ----------------------------------------------------------------------------------------------------

for _name in [
    "elu",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "tanh",
    *["celu", "hardshrink", "softshrink", "tanhshrink", "rrelu"],
]:
    add(f"F.{_name}", real(2, 3) * 2)
add("F.threshold", real(2, 3) * 2, call=lambda x: F.threshold(x, 0.5, -2))
add("F.glu", real(2, 4))
add("F.prelu", real(2, 3), real(3))
add("F.gelu", real(4), call=lambda x: F.gelu(x, approximate="tanh"))
for _name in ["softmax", "log_softmax", "softmin"]:
    add(f"F.{_name}", real(2, 3), call=lambda x, name=_name: getattr(F, name)(x, dim=-1))
add("softmax", real(2, 3), call=lambda x: mt.softmax(x, dim=-1))
add("log_softmax", real(2, 3), call=lambda x: mt.log_softmax(x, dim=-1))
add("F.linear", real(2, 3), real(4, 3), real(4))
add("F.conv1d", real(2, 2, 5), real(3, 2, 2), real(3))
add("F.conv2d", real(1, 2, 4, 4), real(2, 2, 3, 3), real(2), call=lambda x, w, b: F.conv2d(x, w, b, 2, 1))
add("F.conv2d", real(1, 2, 4, 4), real(2, 1, 2, 2), call=lambda x, w: F.conv2d(x, w, groups=2, dilation=2))
add("F.conv3d", real(1, 1, 3, 3, 3), real(1, 1, 2, 2, 2))
add("F.conv_transpose1d", real(2, 2, 3), real(2, 3, 2), real(3), call=lambda x, w, b: F.conv_transpose1d(x, w, b, 2))
_step = {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}
add("F.conv_transpose2d", real(1, 2, 3, 2), real(2, 1, 3, 2), call=lambda x, w: F.conv_transpose2d(x, w, **_step))
add("F.max_pool1d", real(1, 2, 6), call=lambda x: F.max_pool1d(x, 2))
add("F.max_pool2d", real(1, 2, 4, 4), call=lambda x: F.max_pool2d(x, 3, 1, 1))
add("F.avg_pool1d", real(1, 2, 6), call=lambda x: F.avg_pool1d(x, 2))
add("F.avg_pool2d", real(1, 2, 4, 4), call=lambda x: F.avg_pool2d(x, 2, padding=1))
add("F.adaptive_avg_pool1d", real(1, 2, 6), call=lambda x: F.adaptive_avg_pool1d(x, 3))
add("F.adaptive_avg_pool2d", real(1, 2, 4, 4), call=lambda x: F.adaptive_avg_pool2d(x, (2, 4)))
add("F.adaptive_avg_pool2d", real(1, 2, 5, 4), call=lambda x: F.adaptive_avg_pool2d(x, (3, None)))
add("F.batch_norm", real(3, 2), call=lambda x: F.batch_norm(x, mt.zeros(2).to(x.dtype), mt.full((2,), 1.5).to(x.dtype)))
add("F.batch_norm", real(3, 2), real(2), real(2), call=lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True))
add("F.layer_norm", real(2, 3), real(3), real(3), call=lambda x, w, b: F.layer_norm(x, (3,), w, b))
add("F.rms_norm", real(2, 3), real(3), call=lambda x, w: F.rms_norm(x, (3,), w))
add("F.group_norm", real(2, 4, 3), real(4), real(4), call=lambda x, w, b: F.group_norm(x, 2, w, b))
add("F.instance_norm", real(2, 2, 3), real(2), real(2), call=lambda x, w, b: F.instance_norm(x, None, None, w, b))
add("F.local_response_norm", real(2, 4, 3), call=lambda x: F.local_response_norm(x, 3, 0.5))
_bilinear, _bicubic = {"size": (5, 3), "mode": "bilinear"}, {"size": 5, "mode": "bicubic"}
for _options in ({"scale_factor": 2}, {"size": 3}, _bilinear, _bicubic):
    add("F.interpolate", real(1, 2, 2, 3), call=lambda x, options=_options: F.interpolate(x, **options))
add("F.pixel_shuffle", real(1, 4, 2, 3), call=lambda x: F.pixel_shuffle(x, 2))
add("F.pixel_unshuffle", real(1, 1, 4, 2), call=lambda x: F.pixel_unshuffle(x, 2))
add("F.bilinear", real(3, 2), real(3, 4), real(2, 2, 4))
add("F.adaptive_max_pool1d", real(2, 2, 7), call=lambda x: F.adaptive_max_pool1d(x, 3))
add("F.adaptive_max_pool2d", real(1, 2, 5, 4), call=lambda x: F.adaptive_max_pool2d(x, (3, 2)))
add("F.unfold", real(1, 2, 4, 5), call=lambda x: F.unfold(x, (2, 3), padding=1, stride=2))
add("F.fold", real(1, 12, 9), call=lambda x: F.fold(x, (4, 5), (2, 3), padding=1, stride=2))
add("F.affine_grid", real(2, 2, 3), call=lambda x: F.affine_grid(x, (2, 1, 3, 2)))
for _mode in ("zeros", "border", "reflection"):
    add(
        "F.grid_sample",
        real(2, 2, 3, 4),
        real(2, 2, 3, 2),
        call=lambda x, y, mode=_mode: F.grid_sample(x, y, "bilinear", mode),
    )
add("F.grid_sample", real(1, 2, 3, 4), real(1, 2, 3, 2), call=lambda x, y: F.grid_sample(x, y, "bicubic"))
for _mode in ("mean", "sum", "max"):
    add(
        "F.embedding_bag",
        whole(5),
        real(4, 2),
        np.array([0, 2, 2]),
        call=lambda i, x, at, mode=_mode: F.embedding_bag(i, x, at, mode=mode),
    )
add("F.normalize", real(2, 3))
add("F.cosine_similarity", real(2, 3), real(2, 3))
add("F.embedding", whole(2, 3), real(4, 2))
add("F.one_hot", whole(4), call=lambda i: F.one_hot(i, 3))
add("F.pad", real(2, 3), call=lambda x: F.pad(x, (1, 0, 0, 2)))
for _mode in ("reflect", "replicate", "circular"):
    add("F.pad", real(2, 3, 4), call=lambda x, mode=_mode: F.pad(x, (1, 0, 2, 2), mode=mode))
add("F.gumbel_softmax", real(3, 4), call=lambda x: F.gumbel_softmax(x).sum(-1), smooth=False)
add("F.dropout", real(3, 4), call=lambda x: F.dropout(x, 0.4))
add("F.dropout1d", real(3, 4, 2), call=lambda x: F.dropout1d(x, 0.4))
add("F.dropout2d", real(3, 4, 1, 2), call=lambda x: F.dropout2d(x, 0.4))
for _name in ["mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss"]:
    add(f"F.{_name}", real(2, 3), real(2, 3) * 2)
add("F.soft_margin_loss", real(2, 3), real(2, 3))
add("F.multilabel_soft_margin_loss", real(2, 3), real(2, 3))
add("F.poisson_nll_loss", real(2, 3), positive(2, 3), call=lambda x, y: F.poisson_nll_loss(x, y, full=True))
add("F.gaussian_nll_loss", real(2, 3), real(2, 3), positive(2, 3))
add("F.pairwise_distance", real(2, 3), real(2, 3) * 2)
add("F.hinge_embedding_loss", real(2, 3), 1 - 2 * whole(2, 3, high=2))
add("F.cosine_embedding_loss", real(2, 3), real(2, 3) * 2, np.array([1, -1]))
add("F.margin_ranking_loss", real(2, 3), real(2, 3) * 2, 1 - 2 * whole(2, 3, high=2))
add("F.multi_margin_loss", real(3, 4), whole(3))
add("F.multilabel_margin_loss", real(2, 4), np.array([[3, 0, -1, 1], [2, 1, 3, -1]]))
for _name in ["triplet_margin_loss", "triplet_margin_with_distance_loss"]:
    add(f"F.{_name}", real(2, 3), real(2, 3) * 2, real(2, 3))
add("F.cross_entropy", real(3, 4), whole(3))
add("F.cross_entropy", real(3, 4), unit(3, 4), call=lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1))
_steps = np.array([[1, 2], [1, 0], [2, 2]])
for _zero in (False, True):
    add(
        "F.ctc_loss",
        real(5, 3, 3),
        _steps,
        call=lambda x, i, z=_zero: F.ctc_loss(x.log_softmax(-1), i, (5, 4, 3), (2, 1, 2), zero_infinity=z),
    )
add("F.nll_loss", real(3, 4), whole(3))
add("F.kl_div", real(2, 3), unit(2, 3))
add("F.binary_cross_entropy", unit(3), unit(3))
add("F.binary_cross_entropy_with_logits", real(3), unit(3))
add("F.scaled_dot_product_attention", real(1, 2, 3), real(1, 4, 3), real(1, 4, 2))
add(
    "F.scaled_dot_product_attention",
    real(1, 3, 2),
    real(1, 3, 2),
    real(1, 3, 2),
    call=lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
)

# Counted, ranked, reduced by position --------------------------------------------------------------------------------

add("lgamma", real(3, 4) * 4)
add("digamma", positive(3, 4))
add("quantile", real(3, 4), call=lambda x: mt.quantile(x.double(), 0.3, 1))
add("nanquantile", real(3, 4), call=lambda x: mt.nanquantile(x.double(), 0.7))
add("cummax", real(3, 4), call=lambda x: mt.cummax(x, 1))
add("cummin", real(3, 4), call=lambda x: mt.cummin(x, 0))
add("isin", whole(3, 4), whole(2))
add("histc", real(3, 4), call=lambda x: mt.histc(x, 4, -1, 1), smooth=False)
add("diff", real(3, 4), call=lambda x: mt.diff(x, 2))
add("put", real(3, 4), whole(2, high=12), real(2), call=lambda x, i, y: mt.put(x, i, y, accumulate=True))
add("put", real(3, 4), np.array([[1, -2]]), real(1, 2))
add("cdist", real(3, 4), real(2, 4))
add("scatter_reduce", real(3, 4), whole(2, 4), real(2, 4), call=lambda x, i, y: mt.scatter_reduce(x, 0, i, y, "amax"))
add("scatter_reduce", real(3, 4), whole(2, 4), real(2, 4), call=lambda x, i, y: mt.scatter_reduce(x, 0, i, y, "mean"))
add("multinomial", positive(3, 4), call=lambda x: mt.multinomial(x, 3).sort().values * 0, smooth=False)

# Functions that LAPACK computes, in float32 and float64 alone. ONNX has the determinant, and no other.
LAPACK = frozenset(
    ["cholesky", "inverse", "linalg.eigh", "linalg.inv", "linalg.lstsq", "linalg.matrix_norm", "linalg.qr",
     "linalg.solve", "linalg.svd", "logdet", "matrix_power", "pinverse", "qr", "slogdet", "svd"]
)  # fmt: skip
WIDE = LAPACK | {"det", "linalg.det"}

# Factors of matrices --------------------------------------------------------------------------------------------------

_SYMMETRIC = (np.array([[4, 1, 0.5], [1, 3, -1], [0.5, -1, 5]]) + real(3, 3) * 0).astype(np.float32)
_SQUARE = _SYMMETRIC + real(3, 3) * 0.5


def _of(name: str) -> Any:
    """The function of a name with a dot, also where `mt` stands for another library."""
    found: Any = mt
    for each in name.split("."):
        found = getattr(found, each)
    return found


def _whole(x: mt.Tensor) -> mt.Tensor:
    return (x + x.mT) / 2


for _name in ["det", "inverse", "logdet", "linalg.inv", "linalg.det"]:
    add(_name, _SQUARE, call=lambda x, name=_name: _of(name)(x))
add("slogdet", _SQUARE, call=lambda x: mt.slogdet(x)[1])
add("cholesky", _SYMMETRIC, call=lambda x: mt.cholesky(_whole(x)))
add("matrix_power", _SQUARE, call=lambda x: mt.matrix_power(x, -2))
add("pinverse", real(3, 2))
add("qr", _SQUARE)
add("svd", real(3, 2), call=lambda x: mt.svd(x)[1])
add("linalg.svd", real(2, 3), call=lambda x: mt.linalg.svd(x, full_matrices=False)[0] ** 2)
add("linalg.qr", real(2, 3), call=lambda x: mt.linalg.qr(x)[1])
add("linalg.eigh", _SYMMETRIC, call=lambda x: mt.linalg.eigh(_whole(x))[1] ** 2)
add("linalg.solve", np.stack([_SQUARE, _SYMMETRIC]), real(3, 2), call=lambda a, b: mt.linalg.solve(a, b))
add("linalg.lstsq", real(3, 2), real(3, 2), call=lambda a, b: mt.linalg.lstsq(a, b)[0])
for _order in ("nuc", 2):
    add("linalg.matrix_norm", real(2, 3), call=lambda x, order=_order: mt.linalg.matrix_norm(x, order))
for _order in ("fro", 1):
    add("linalg.norm", real(2, 3), call=lambda x, order=_order: mt.linalg.norm(x, order))
add("linalg.vector_norm", real(2, 3), call=lambda x: mt.linalg.vector_norm(x, 3, dim=1))
add("histogram", real(3, 4), call=lambda x: mt.histogram(x, 4), smooth=False)

# Methods and operators that no function above is ----------------------------------------------------------------------

METHODS: list[Case] = []


def method(name: str, *arrays: Array, call: Callable[..., Any], smooth: bool = True) -> None:
    """A row for what is not a public function."""
    METHODS.append(Case(name, call, arrays, smooth))


method("x[1]", real(3, 4), call=lambda x: x[1])
method("x[::2, None, -1]", real(3, 4), call=lambda x: x[::2, None, -1])
method("x[tensor]", real(3, 4), whole(2, 2), call=lambda x, i: x[i])
method("x[:, tensor]", real(3, 4), whole(2), call=lambda x, i: x[:, i])
method("x[tensor, tensor]", real(3, 4), whole(2), whole(2), call=lambda x, i, j: x[i, j])
method("unfold", real(2, 6), call=lambda x: x.unfold(1, 3, 2))
method("diagonal of a transposed slice", real(4, 3), call=lambda x: x[:3].t().diagonal(1))
method("other bits", real(3), call=lambda x: x.float().view(mt.int32), smooth=False)
method("repeat", real(2, 3), call=lambda x: x.repeat(2, 1))
method("expand", real(2, 1), call=lambda x: x.expand(2, 3))
method("T", real(2, 3), call=lambda x: x.T)
method("mT", real(2, 2, 3), call=lambda x: x.mT)
method("view", real(2, 3), call=lambda x: x.view(-1))
method("to", real(3) * 3, call=lambda x: x.to(mt.int64).to(mt.float32), smooth=False)
method("to half", real(3), call=lambda x: x.half(), smooth=False)
method("setitem", real(3, 4), real(4), call=lambda x, y: _assigned(x, y), smooth=False)
method("reflected", real(3), call=lambda x: (1 - x) / (2 + 3**x) - 2 / (x + 4))
method("comparison chain", real(3), call=lambda x: (x > 0) & ~(x > 1) | (x < -1), smooth=False)


def _assigned(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
    x = x.detach().clone()
    x[1] = y.detach()
    x[:, 2] *= 2
    return x


# What gives Python values, or tensors whose shape depends on data, or is about memory: it has no place in a graph.
EAGER_BY_NATURE = frozenset(
    [
        "Generator",
        "allclose",
        "argwhere",
        "bincount",
        "broadcast_shapes",
        "can_cast",
        "default_generator",
        "empty",
        "empty_like",
        "equal",
        "finfo",
        "from_dlpack",
        "from_numpy",
        "get_default_dtype",
        "iinfo",
        "initial_seed",
        "is_floating_point",
        "is_tensor",
        "manual_seed",
        "masked_select",
        "nonzero",
        "numel",
        "promote_types",
        "result_type",
        "seed",
        "unique",
    ]
)
