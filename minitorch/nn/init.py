"""Initial values, written in place, under the names of `torch.nn.init`.

A layer sums `fan_in` products. With weights of variance ``gain**2 / fan_in`` the sums keep the variance of the inputs,
so signals neither vanish nor explode through many layers. All schemes here serve this.
"""

from __future__ import annotations

import math

from ..errors import ShapeError
from ..functional.creation import random
from ..functional.creation.creation import full
from ..functional.creation.generator import Generator
from ..functional.inplace import assign
from ..tensor import Tensor
from .parameter import concretely

GAINS: dict[str, float] = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d", "sigmoid"), 1.0),
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
