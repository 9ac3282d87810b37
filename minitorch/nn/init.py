"""Initial values, written in place, under the names of `torch.nn.init`.

A layer sums `fan_in` products. With weights of variance ``gain**2 / fan_in`` the sums keep the variance of the inputs,
so signals neither vanish nor explode through many layers. All schemes here serve this.
"""

from __future__ import annotations

import math
from typing import Any

from ..autograd import no_grad
from ..dtypes import bool_, float64
from ..errors import ShapeError
from ..functional.creation import random
from ..functional.creation.creation import eye, full
from ..functional.creation.generator import Generator
from ..functional.inplace import assign
from ..tensor import Tensor
from .parameter import concretely

GAINS: dict[str, float] = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d", "sigmoid"), 1.0),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 1.0),
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the gain: a factor of standard deviations that keeps the variance through an activation function.

    Example:
        >>> round(calculate_gain("leaky_relu", 1.0), 6)
        1.0
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in GAINS:
        raise ValueError(f"no gain is known for {nonlinearity!r}, only for leaky_relu, {', '.join(GAINS)}")
    return GAINS[nonlinearity]


def fans(tensor: Tensor) -> tuple[int, int]:
    """Return the numbers of products that a weight's output sums, and of outputs that an input goes into.

    Example:
        >>> import minitorch as mt
        >>> fans(mt.zeros(8, 3, 5, 5))
        (75, 200)
    """
    if tensor.ndim < 2:
        raise ShapeError(
            "MT201",
            f"fan in and fan out of {tensor.spec}",
            why="they are counted for weights [outputs, inputs, *window]",
            fix="initialize a bias with zeros_, constant_ or uniform_",
        )
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def _fan(tensor: Tensor, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f'mode is "fan_in" or "fan_out", not {mode!r}')
    return max(1, fans(tensor)[mode == "fan_out"])  # 0 of a weight without elements: nothing is drawn then


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Write the same number everywhere."""
    with concretely():
        return assign(tensor, full((), val, dtype=tensor.dtype), "the initialization")


def zeros_(tensor: Tensor) -> Tensor:
    """Write zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Write ones."""
    return constant_(tensor, 1.0)


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Write numbers between `a` and `b`, all equally likely.

    Raises:
        ValueError: if `a` is larger than `b`.

    Example:
        >>> import minitorch as mt
        >>> w = mt.nn.init.uniform_(mt.empty(100), -2, -1)
        >>> bool((w >= -2).all()), bool((w < -1).all())
        (True, True)
    """
    with concretely():
        return random.uniform_(tensor, a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Write numbers of a normal distribution.

    Raises:
        ValueError: for a negative standard deviation.
    """
    with concretely():
        return random.normal_(tensor, mean, std, generator=generator)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Write uniform numbers of variance ``2 / (fan_in + fan_out)`` (Glorot and Bengio, AISTATS 2010)."""
    bound = gain * math.sqrt(6 / max(1, sum(fans(tensor))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Write normal numbers of variance ``2 / (fan_in + fan_out)`` (Glorot and Bengio, AISTATS 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / max(1, sum(fans(tensor)))), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Write uniform numbers of variance ``gain**2 / fan`` (He et al., arXiv:1502.01852).

    Args:
        tensor: the weight.
        a: the slope of a leaky_relu where it is negative.
        mode: ``"fan_in"`` keeps the variance of signals, ``"fan_out"`` that of gradients.
        nonlinearity: the activation that follows the layer.
        generator: the source of the random numbers.

    Example:
        >>> import minitorch as mt
        >>> w = mt.nn.init.kaiming_uniform_(mt.empty(4, 6))
        >>> bool((w.abs() <= 1).all())
        True
    """
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3 / _fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Write normal numbers of variance ``gain**2 / fan`` (He et al., arXiv:1502.01852)."""
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)), generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Write numbers of a normal distribution from `a` to `b`: those beyond are drawn again.

    Raises:
        ValueError: if hardly any number of the distribution is from `a` to `b`.

    Example:
        >>> import minitorch as mt
        >>> w = mt.nn.init.trunc_normal_(mt.empty(100), std=0.02, a=-0.03, b=0.03)
        >>> bool((w.abs() <= 0.03).all())
        True
    """
    with concretely(), no_grad():
        drawn, beyond = tensor, full(tensor.shape, True, dtype=bool_)
        for _ in range(1000):
            drawn = random.normal(mean, std, tensor.shape, dtype=tensor.dtype, generator=generator).where(beyond, drawn)
            beyond = (drawn < a) | (drawn > b)
            if not beyond.any():
                return assign(tensor, drawn, "the initialization")
    raise ValueError(f"trunc_normal_: hardly any number of mean {mean} and deviation {std} is from {a} to {b}")


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Write a random matrix whose rows, or columns if they are fewer, have the length `gain` and are orthogonal.

    The rows of a tensor of more dimensions are flattened (Saxe et al., arXiv:1312.6120).

    Example:
        >>> import minitorch as mt
        >>> w = mt.nn.init.orthogonal_(mt.empty(2, 5))
        >>> mt.allclose(w @ w.T, mt.eye(2), atol=1e-6)
        True
    """
    fans(tensor)  # of two dimensions at least
    with concretely(), no_grad():
        wide = tensor.reshape(tensor.shape[0], -1)
        turned = wide.shape[0] > wide.shape[1]
        shape = wide.T.shape if turned else wide.shape
        rows = random.normal(0.0, 1.0, shape, dtype=float64, generator=generator)
        for number in range(shape[0]):  # Gram and Schmidt, twice, since the first time leaves rounding errors
            row, before = rows[number], rows[:number]
            for _ in range(2):
                row = row - (before @ row) @ before
            rows[number] = row / row.norm()
        found = (rows.T if turned else rows) * gain
        return assign(tensor, found.reshape(tensor.shape).to(tensor.dtype), "the initialization")


def eye_(tensor: Tensor) -> Tensor:
    """Write 1 on the diagonal of a matrix, 0 elsewhere."""
    with concretely():
        return assign(tensor, eye(*tensor.shape, dtype=tensor.dtype), "the initialization")
