"""Activation functions, element by element between two layers; `relu` and `softmax` are public functions as well.

Each is a formula of one to six operations. Where the obvious formula overflows (`exp` of a large number), the operand
is limited before, not the result after: a gradient passes through both, and 0 times infinity is NaN.
"""

from __future__ import annotations

import math

from ... import primitives as P
from ...dtypes import DType, int64
from ...errors import DTypeError, ShapeError
from ...functional.creation.random import rand_like
from ...functional.movement.parts import chunk
from ...functional.operands import fitting, widened
from ...functional.options import equals, is_traced, real, require_float, require_number, wrap_dim
from ...functional.pointwise.elementwise import sigmoid, tanh
from ...functional.pointwise.formulas import with_derivative
from ...functional.reducing.reductions import softmax
from ...primitives.elementwise import scalar
from ...tensor import Tensor, share

# With a corner ---------------------------------------------------------------------------------------------


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Limit x to a range; the gradient is 0 outside of it, at its ends and for NaN.

    Raises:
        ValueError: if the range is empty.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.hardtanh(mt.tensor([-3.0, 0.5, 3.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """
    require_number(input, "hardtanh")
    require_range("hardtanh", min_val, max_val)
    low, high = (scalar(fitting("hardtanh", bound, input.dtype), input) for bound in (min_val, max_val))
    low_or_nan = P.where(P.less_equal(input, low), low, share(input))
    return P.where(P.less_equal(high, input), high, P.where(P.less(low, input), input, low_or_nan))


def require_range(name: str, min_val: float, max_val: float) -> None:
    """Refuse a range without numbers.

    Raises:
        TypeError: if a bound is not a number.
        ValueError: if the range is empty.
    """
    known = not (is_traced(min_val) or is_traced(max_val))
    if known and not real(f"{name}: min_val", min_val) <= real(f"{name}: max_val", max_val):
        raise ValueError(f"{name}: min_val={min_val} is above max_val={max_val}")


def relu6(input: Tensor) -> Tensor:
    """Limit x to 0 ... 6.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.relu6(mt.tensor([-1.0, 3.0, 8.0]))
        tensor([0., 3., 6.])
    """
    return hardtanh(input, 0.0, 6.0)


@widened
def hardsigmoid(input: Tensor) -> Tensor:
    """Return ``relu6(x + 3) / 6``, a sigmoid of three straight lines.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.hardsigmoid(mt.tensor([-4.0, 0.0, 1.5]))
        tensor([0.0000, 0.5000, 0.7500])
    """
    return relu6(input + 3) / 6


@widened
def hardswish(input: Tensor) -> Tensor:
    """Return ``x * hardsigmoid(x)``, a `silu` without exponentials (Howard et al., arXiv:1905.02244).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.hardswish(mt.tensor([-1.0, 1.5, 4.0]))
        tensor([-0.3333,  1.1250,  4.0000])
    """
    return input * relu6(input + 3) / 6


def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Return x where it is positive, `negative_slope` times x elsewhere.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.leaky_relu(mt.tensor([-2.0, 2.0]), 0.5)
        tensor([-1.,  2.])
    """
    return P.where(P.less(scalar(0, input), input), input, input * negative_slope)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """Return x where it is above a threshold, a value elsewhere.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.threshold(mt.tensor([-1.0, 0.5, 2.0]), 1.0, 0.0)
        tensor([0., 0., 2.])
    """
    require_number(input, "threshold")
    bound, other = (scalar(fitting("threshold", each, input.dtype), input) for each in (threshold, value))
    return P.where(P.less_equal(input, bound), other, input)


@widened
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return 0 where x is from ``-lambd`` to `lambd`, x elsewhere.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.hardshrink(mt.tensor([-1.0, 0.5, 2.0]))
        tensor([-1.,  0.,  2.])
    """
    require_float(input, "hardshrink")
    return P.where(P.less_equal(P.absolute(input), scalar(lambd, input)), scalar(0, input), input)


@widened
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x moved towards 0 by `lambd`, and 0 where it is nearer.

    Raises:
        ValueError: if `lambd` is negative.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.softshrink(mt.tensor([-1.0, 0.5, 2.0]))
        tensor([-0.5000,  0.0000,  1.5000])
    """
    if not is_traced(lambd) and real("softshrink: lambd", lambd) < 0:
        raise ValueError(f"softshrink: lambd is 0 or more, not {lambd}")
    require_float(input, "softshrink")
    bound = scalar(lambd, input)
    near = P.less_equal(P.absolute(input), bound)
    return P.where(near, scalar(0, input), P.where(P.less(bound, input), input - lambd, input + lambd))


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """Return `leaky_relu` with random slopes from `lower` to `upper`, or with their mean (Xu et al., arXiv:1505.00853).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.rrelu(mt.tensor([-8.0, 2.0]), 0.25, 0.75)
        tensor([-4.,  2.])
    """
    require_float(input, "rrelu")
    if not (is_traced(lower) or is_traced(upper)) and not real("rrelu: lower", lower) <= real("rrelu: upper", upper):
        raise ValueError(f"rrelu: lower={lower} is above upper={upper}")
    slopes = rand_like(input) * (upper - lower) + lower if training else (lower + upper) / 2
    return leaky_relu(input, slopes)  # type: ignore[arg-type]


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return x where it is positive, a trained slope times x elsewhere (He et al., arXiv:1502.01852).

    Args:
        input: a float tensor.
        weight: of the same type: one slope, or one for each channel (dimension 1).

    Raises:
        ShapeError: if the number of slopes is another one (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.prelu(mt.tensor([-2.0, 2.0]), mt.tensor([0.25]))
        tensor([-0.5000,  2.0000])
    """
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.numel() not in (1, channels):
        raise ShapeError(
            "MT201", f"prelu: the weight is {weight.spec}, for an input {input.spec} of {channels} channels"
        )
    if input.dtype is not weight.dtype:
        raise DTypeError("MT202", f"prelu: the input is {input.spec}, the weight {weight.spec}")
    slope = P.reshape(weight, shape=(weight.numel(), *(1,) * max(input.ndim - 2, 0)))
    return leaky_relu(input, slope if input.ndim else P.reshape(weight, shape=()))  # type: ignore[arg-type]


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half of a dimension times the sigmoid of the second (Dauphin et al., arXiv:1612.08083).

    Raises:
        ShapeError: if the dimension has an odd length (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.glu(mt.tensor([3.0, 0.0]))
        tensor([1.5000])
    """
    require_float(input, "glu")
    if not input.ndim or input.shape[wrap_dim(dim, input.ndim)] % 2:
        raise ShapeError("MT201", f"glu: dimension {dim} of {input.spec} has no two halves")
    return _glu(*chunk(input, 2, dim))


@widened
def _glu(x: Tensor, gate: Tensor) -> Tensor:
    return x * sigmoid(gate)


# Smooth ---------------------------------------------------------------------------------------------------


@widened
def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Return x where it is positive, ``alpha * (e**x - 1)`` elsewhere (Clevert et al., arXiv:1511.07289).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.elu(mt.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return _elu(input, alpha)


def _elu(x: Tensor, alpha: float, scale: float = 1.0) -> Tensor:
    zero = scalar(0, x)
    positive = P.less(zero, x)
    return P.where(positive, x if scale == 1 else x * scale, P.expm1(P.where(positive, zero, x)) * (alpha * scale))


@widened
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Return `elu` with a slope of 1 at 0 for every alpha: ``alpha * (e**(x / alpha) - 1)`` (Barron, arXiv:1704.07483).

    Raises:
        ValueError: if alpha is 0.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.celu(mt.tensor([-1.0, 2.0]), 0.5)
        tensor([-0.4323,  2.0000])
    """
    require_float(input, "celu")
    if not is_traced(alpha) and real("celu: alpha", alpha) == 0:
        raise ValueError("celu: alpha cannot be 0")
    zero = scalar(0, input)
    positive = P.less(zero, input)
    return P.where(positive, input, P.expm1(P.where(positive, zero, input) / alpha) * alpha)


@widened
def selu(input: Tensor) -> Tensor:
    """Return `elu`, scaled so that mean 0 and variance 1 are kept (Klambauer et al., arXiv:1706.02515).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.selu(mt.tensor([-1.0, 1.0]))
        tensor([-1.1113,  1.0507])
    """
    return _elu(input, 1.6732632423543772, 1.0507009873554805)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return x times the probability that a normal variable is below x (Hendrycks and Gimpel, arXiv:1606.08415).

    Args:
        input: a float tensor.
        approximate: ``"none"``, or ``"tanh"`` for the approximation of section 2 of the paper.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.gelu(mt.tensor([-1.0, 1.0]))
        tensor([-0.1587,  0.8413])
    """
    if approximate not in _GELU:
        raise RuntimeError(f'gelu: approximate is "none" or "tanh", not {approximate!r}')
    return _GELU[approximate](input)


@widened
def _gelu_exact(x: Tensor) -> Tensor:
    return x * 0.5 * (P.erf(x * math.sqrt(0.5)) + 1)


@widened
def _gelu_tanh(x: Tensor) -> Tensor:
    return x * 0.5 * (P.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1)


_GELU = {"none": _gelu_exact, "tanh": _gelu_tanh}


def _silu_slope(x: Tensor) -> Tensor:
    bent = sigmoid(x)
    return bent + x * bent * (1 - bent)


# A cotangent times x would overflow where the slope is 0.
_silu = widened(with_derivative("silu", lambda x: x * sigmoid(x), _silu_slope))


def silu(input: Tensor) -> Tensor:
    """Return ``x * sigmoid(x)``, also called swish.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.silu(mt.tensor([-1.0, 1.0]))
        tensor([-0.2689,  0.7311])
    """
    return _silu(input)


def _mish_slope(x: Tensor) -> Tensor:
    bent = P.tanh(softplus(x))
    return bent + x * sigmoid(x) * (1 - bent * bent)


_mish = widened(with_derivative("mish", lambda x: x * P.tanh(softplus(x)), _mish_slope))


def mish(input: Tensor) -> Tensor:
    """Return ``x * tanh(softplus(x))`` (Misra, arXiv:1908.08681).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.mish(mt.tensor([-1.0, 1.0]))
        tensor([-0.3034,  0.8651])
    """
    return _mish(input)


@widened
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return ``log(1 + e**(beta * x)) / beta``, a smooth relu; x where ``beta * x`` is above the threshold.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.softplus(mt.tensor([-1.0, 0.0, 50.0]))
        tensor([ 0.3133,  0.6931, 50.0000])
    """
    scaled = input if equals(beta, 1) else input * beta
    above = P.less(scalar(threshold, input), scaled)
    soft = P.log1p(P.exp(P.where(above, scalar(0, input), scaled)))
    return P.where(above, input, soft if equals(beta, 1) else soft / beta)


def log_sigmoid(input: Tensor) -> Tensor:
    """Return ``log(sigmoid(x))``, exact also where the sigmoid is too small for a float.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.log_sigmoid(mt.tensor([-200.0, 0.0]))
        tensor([-200.0000,   -0.6931])
    """
    return -softplus(-input, threshold=40.0)  # e**-40 is below the last bit of 40 in every type


logsigmoid = log_sigmoid  # PyTorch's name of it


@widened
def softsign(input: Tensor) -> Tensor:
    """Return ``x / (1 + |x|)``.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.softsign(mt.tensor([-1.0, 3.0]))
        tensor([-0.5000,  0.7500])
    """
    return input / (P.absolute(input) + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """Return ``x - tanh(x)``.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.tanhshrink(mt.tensor([-1.0, 3.0]))
        tensor([-0.2384,  2.0049])
    """
    return input - tanh(input)


def softmin(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """Return `softmax` of -x.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.softmin(mt.tensor([0.0, 100.0]), dim=0)
        tensor([1.0000e+00, 3.7835e-44])
    """
    return softmax(-input, dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Return a random point near a corner of the simplex, drawn by `logits` (Jang et al., arXiv:1611.01144).

    Args:
        logits: unnormalised log-probabilities.
        tau: the temperature: the lower, the nearer to a corner.
        hard: whether the result is the corner itself, a one-hot vector, with the gradient of the point.
        eps: without effect, as in PyTorch.
        dim: the dimension of the classes.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.gumbel_softmax(mt.tensor([0.0, 0.0, 100.0]), hard=True)
        tensor([0., 0., 1.])
    """
    require_float(logits, "gumbel_softmax")
    noise = -(-rand_like(logits)).log1p().neg().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    places = P.iota(size=logits.shape[dim], dtype=int64)
    corner = P.cast(soft.detach().movedim(dim, -1).argmax(-1, keepdim=True).eq(places), dtype=soft.dtype)
    return corner.movedim(-1, dim) - soft.detach() + soft
