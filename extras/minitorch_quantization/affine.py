"""Quantise, dequantise and fake quantise: compositions of primitives, which work in every mode.

    quantise    q = cast(clamp(round(x / scale) + zero_point, quant_min, quant_max))      float32 to uint8 or int8
    dequantise  y = (cast(q) - zero_point) * scale                                        back to float32
    fake        y = dequantise(quantise(x)), with a gradient; no integer is made

A graph with the first two in it is in *Q/DQ form* (ONNX's QuantizeLinear and DequantizeLinear): it says with floats
what a quantised program computes. Passes make products of integers of it. Rounding is to the nearest, of two equally
near ones to the even one, and x / scale is x * (1 / scale), as in PyTorch.

Infinities are clamped like all large numbers. NaN becomes `quant_max`, as in `torch.quantize_per_tensor`, here and in
fake quantisation, in every mode. So quantising is monotone, with NaN above all numbers, and commutes with the maximum
of a pool, of which NaN is the result. PyTorch is of several minds: its `quantize_per_channel` makes 0 of NaN, and its
fake quantisation `quant_min`, as ONNX Runtime's QuantizeLinear does. The ONNX standard does not say.
"""

from __future__ import annotations

from typing import Any

from minitorch import primitives as P
from minitorch.autograd import Context, Function
from minitorch.dtypes import DType, float32, int8, int32, uint8
from minitorch.errors import DTypeError, QuantizationError
from minitorch.functional.movement.selection import where
from minitorch.functional.operands import operand
from minitorch.functional.options import wrap_dim
from minitorch.functional.reducing.quantised import bounds, clamped, dequantised, quantised, to_whole
from minitorch.interpreters import current_staging
from minitorch.tensor import Tensor

from .schemes import QParams, integers_of


def quantize(input: Tensor, qparams: QParams) -> Tensor:
    """Numbers as integers: ``clamp(round(input / scale) + zero_point, quant_min, quant_max)``.

    Args:
        input: of a float type, any shape.
        qparams: its scale per tensor, or per channel of an axis.

    Returns:
        Of the same shape, of type `qparams.dtype`.

    Raises:
        QuantizationError: if there are not as many scales as channels, and as for `quantize_per_tensor` (``MT702``).

    Example:
        >>> import minitorch as mt
        >>> q = mt.quantization
        >>> q.quantize(mt.tensor([0.0, 0.9]), q.choose_qparams(mt.tensor(-1.0), mt.tensor(1.55)))
        tensor([100, 190], dtype=minitorch.uint8)
    """
    _require_floats("quantize", input)
    scale, zero_point = _placed(input, qparams, "quantize")
    return quantised(input, scale, zero_point, qparams.quant_min, qparams.quant_max, qparams.dtype)


def dequantize(input: Tensor, qparams: QParams) -> Tensor:
    """The numbers that integers stand for: ``(input - zero_point) * scale``, in float32.

    Args:
        input: of an integer type, any shape.
        qparams: with which they were made.

    Raises:
        QuantizationError: if there are not as many scales as channels (``MT702``).

    Example:
        >>> import minitorch as mt
        >>> q = mt.quantization
        >>> found = q.choose_qparams(mt.tensor(-1.0), mt.tensor(1.55))
        >>> q.dequantize(q.quantize(mt.tensor([0.0, 0.9]), found), found)
        tensor([0.0000, 0.9000])
    """
    scale, zero_point = _placed(input, qparams, "dequantize")
    return dequantised(input, scale, zero_point)


def fake_quantize(input: Tensor, qparams: QParams) -> Tensor:
    """``dequantize(quantize(input))``, with the straight-through estimator as its gradient (arXiv:1308.3432).

    The gradient passes unchanged where the rounded number is one of the integers, and is 0 where it was clamped.

    Args:
        input: of a float type, any shape.
        qparams: its scale per tensor, or per channel of an axis.

    Raises:
        QuantizationError: as for `quantize`.

    Example:
        >>> import minitorch as mt
        >>> q = mt.quantization
        >>> x = mt.tensor([0.9, 7.0], requires_grad=True)
        >>> y = q.fake_quantize(x, q.choose_qparams(mt.tensor(-1.0), mt.tensor(1.55)))
        >>> y.sum().backward()
        >>> y.detach(), x.grad
        (tensor([0.9000, 1.5500]), tensor([1., 0.]))
    """
    _require_floats("fake_quantize", input)
    scale, zero_point = _placed(input, qparams, "fake_quantize")
    low, high = bounds(zero_point, qparams.quant_min, qparams.quant_max)
    result: Tensor = _FakeQuantize.apply(input, scale.detach(), low, high)
    return result


class _FakeQuantize(Function):
    """Rounded and clamped, in units of the scale, measured from the zero point."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """No integer type in between: a training step has no use for it."""
        ctx.save_for_backward(x, scale, low, high)
        return (clamped(to_whole(x, scale), low, high) * scale).to(x.dtype)

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        """PyTorch's mask: whether the rounded number is one of the integers."""
        x, scale, low, high = ctx.saved_tensors
        units = to_whole(x, scale)
        inside = (low <= units) & (units <= high)
        return where(inside, cotangents[0], 0.0), None, None, None


def quantize_per_tensor(
    input: Tensor,
    scale: Tensor | float,
    zero_point: Tensor | int,
    dtype: DType,
    quant_min: int | None = None,
    quant_max: int | None = None,
) -> Tensor:
    """Numbers as integers, with one scale, as `torch.quantize_per_tensor`; the result is a tensor of integers.

    Args:
        input: of a float type, any shape.
        scale: the distance of two neighbouring numbers, above 0.
        zero_point: the integer that stands for 0.0.
        dtype: uint8 or int8.
        quant_min: the least integer; by default, that of the type.
        quant_max: the largest one.

    Raises:
        QuantizationError: if the scale is not a number above 0, or the zero point none of the integers (``MT702``).

    Example:
        >>> import minitorch as mt
        >>> mt.quantization.quantize_per_tensor(mt.tensor([-1.0, 0.25, 0.35, 9.0]), 0.1, 10, mt.uint8)
        tensor([ 0, 12, 14, 100], dtype=minitorch.uint8)
    """
    return quantize(input, _given("quantize_per_tensor", scale, zero_point, dtype, quant_min, quant_max))


def quantize_per_channel(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    axis: int,
    dtype: DType,
    quant_min: int | None = None,
    quant_max: int | None = None,
) -> Tensor:
    """Numbers as integers, with a scale for every slice along an axis, as `torch.quantize_per_channel`.

    Args:
        input: of a float type, any shape.
        scales: [channels], above 0.
        zero_points: [channels].
        axis: of the channels.
        dtype: uint8 or int8.
        quant_min: the least integer; by default, that of the type.
        quant_max: the largest one.

    Raises:
        QuantizationError: as for `quantize_per_tensor`, and if there are not as many scales as channels (``MT702``).

    Example:
        >>> import minitorch as mt
        >>> x, scales = mt.tensor([[1.0, -1.0], [1.0, -1.0]]), mt.tensor([0.01, 0.1])
        >>> mt.quantization.quantize_per_channel(x, scales, mt.tensor([0, 0]), 0, mt.int8)
        tensor([[ 100, -100],
                [  10,  -10]], dtype=minitorch.int8)
    """
    return quantize(input, _given("quantize_per_channel", scales, zero_points, dtype, quant_min, quant_max, axis))


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Tensor | float, zero_point: Tensor | int, quant_min: int, quant_max: int
) -> Tensor:
    """Numbers rounded to those that quantised ones stand for, with one scale: `torch.fake_quantize_per_tensor_affine`.

    Args:
        input: of a float type, any shape.
        scale: above 0.
        zero_point: the integer that stands for 0.0.
        quant_min: the least integer, at most 0.
        quant_max: the largest integer, at least 0.

    Raises:
        QuantizationError: as for `quantize_per_tensor` (``MT702``).

    Example:
        >>> import minitorch as mt
        >>> mt.quantization.fake_quantize_per_tensor_affine(mt.tensor([0.26, 9.0]), 0.1, 0, 0, 15)
        tensor([0.3000, 1.5000])
    """
    name = "fake_quantize_per_tensor_affine"
    return fake_quantize(input, _given(name, scale, zero_point, _holding(quant_min), quant_min, quant_max))


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """Numbers rounded to those that quantised ones stand for: `torch.fake_quantize_per_channel_affine`.

    Args:
        input: of a float type, any shape.
        scale: [channels], above 0.
        zero_point: [channels].
        axis: of the channels.
        quant_min: the least integer, at most 0.
        quant_max: the largest integer, at least 0.

    Raises:
        QuantizationError: as for `quantize_per_channel` (``MT702``).

    Example:
        >>> import minitorch as mt
        >>> x, scales = mt.tensor([[0.26], [0.26]]), mt.tensor([0.1, 0.2])
        >>> mt.quantization.fake_quantize_per_channel_affine(x, scales, mt.tensor([0, 0]), 0, -8, 7)
        tensor([[0.3000],
                [0.2000]])
    """
    name = "fake_quantize_per_channel_affine"
    return fake_quantize(input, _given(name, scale, zero_point, _holding(quant_min), quant_min, quant_max, axis))


def _require_floats(name: str, x: Tensor) -> None:
    if not x.dtype.is_floating_point:
        raise DTypeError("MT202", f"{name}: {x.spec} has no floats to quantise", fix="convert it: x.float()")


def _placed(x: Tensor, qparams: QParams, name: str) -> tuple[Tensor, Tensor]:
    """Scale and zero point in a shape that broadcasts to the tensor's.

    Raises:
        QuantizationError: if there are not as many scales as channels (``MT702``).
    """
    scale, zero_point = qparams.scale, qparams.zero_point
    if qparams.axis is None:
        return scale, zero_point
    axis = wrap_dim(qparams.axis, x.ndim)
    if scale.shape != (x.shape[axis],) or zero_point.shape != scale.shape:
        raise QuantizationError(
            "MT702",
            f"{name}: {x.spec} has {x.shape[axis]} channels along axis {axis}, and there are {scale.numel()} scales "
            f"and {zero_point.numel()} zero points",
            fix="give one of each for every channel, or name another axis",
        )
    shape = tuple([length if dim == axis else 1 for dim, length in enumerate(x.shape)])
    return P.reshape(scale, shape=shape), P.reshape(zero_point, shape=shape)


def _holding(quant_min: int) -> DType:
    """An 8-bit type that holds numbers from here on."""
    return int8 if quant_min < 0 else uint8


def _given(
    name: str, scale: Any, zero_point: Any, dtype: DType, low: int | None, high: int | None, axis: int | None = None
) -> QParams:
    """Parameters from a user.

    Raises:
        QuantizationError: for integers that do not fit, a scale that is not above 0, or a zero point that is none of
            the integers (``MT702``); the numbers of a recorded tensor are not known.
    """
    least, largest = integers_of(dtype, low, high, name)
    scale, given = operand(scale).to(float32), operand(zero_point)
    zero_point = given.to(int32)
    if axis is None:
        if scale.numel() != 1 or zero_point.numel() != 1:
            raise QuantizationError(
                "MT702",
                f"{name}: {scale.numel()} scales and {zero_point.numel()} zero points for a whole tensor",
                fix="give one of each, or quantise per channel",
            )
        scale, zero_point = scale.reshape(()), zero_point.reshape(())
    if current_staging() is None:
        for each in given.reshape(-1).tolist():
            if each != int(each):
                raise QuantizationError("MT702", f"{name}: the zero point {each:g} is no integer", fix="round it")
        for each in scale.reshape(-1).tolist():
            if not 0 < each < float("inf"):
                raise QuantizationError(
                    "MT702",
                    f"{name}: a scale of {each:g}",
                    why="numbers are divided by their scale",
                    fix="give finite scales above 0, such as an observer's",
                )
        for each in zero_point.reshape(-1).tolist():
            if not least <= each <= largest:
                raise QuantizationError(
                    "MT702",
                    f"{name}: the zero point {each} is not one of the integers from {least} to {largest}",
                    why="0.0 would not be one of the quantised numbers",
                    fix="give a zero point of this range",
                )
    return QParams(scale, zero_point, dtype, least, largest, axis)
