"""Random tensors: rand, randn, normal, bernoulli, randint, randperm, and in-place writes of random numbers.

Each is arithmetic on the draws of a `Generator`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ... import primitives as P
from ...autograd import no_grad
from ...dtypes import DType
from ...errors import ShapeError
from ...interpreters import broadcast_shapes
from ...tensor import Tensor
from ..inplace import assign
from ..operands import like, number, operand, to_dtype
from ..options import as_shape, checked, is_traced, probability, real, require_float, require_tensor, whole
from ..pointwise.arithmetic import add, mul
from .data import factory
from .generator import Generator, default_generator, gaussian, integers, joined, uniform, unpacked

# Real numbers -----------------------------------------------------------------------------------------------


def _float_type(name: str, dtype: DType) -> DType:
    if not dtype.is_floating_point:
        raise TypeError(f"{name} draws from a float type, not {dtype.name}")
    return dtype


@factory
def rand(
    *lengths: Any, size: Any = None, dtype: DType = dtypes.DEFAULT_FLOAT, generator: Generator | None = None
) -> Tensor:
    """Return uniform random numbers in [0, 1).

    Example:
        >>> import minitorch as mt
        >>> mt.rand(2, 3).shape, mt.rand((2, 3), dtype=mt.float64).dtype
        ((2, 3), minitorch.float64)
    """
    shape = as_shape("rand", lengths if size is None else (size,))
    return uniform(shape, _float_type("rand", dtype), generator)


@factory
def randn(
    *lengths: Any, size: Any = None, dtype: DType = dtypes.DEFAULT_FLOAT, generator: Generator | None = None
) -> Tensor:
    """Return normal random numbers with mean 0 and variance 1.

    Example:
        >>> import minitorch as mt
        >>> mt.randn(1000).abs().max().item() < 6
        True
    """
    shape = as_shape("randn", lengths if size is None else (size,))
    return gaussian(shape, _float_type("randn", dtype), generator)


@factory
def rand_like(input: Tensor, *, dtype: DType | None = None, generator: Generator | None = None) -> Tensor:
    """Return uniform random numbers in [0, 1), with the shape and type of another tensor.

    Example:
        >>> import minitorch as mt
        >>> x = mt.rand_like(mt.zeros(2, 3, dtype=mt.float16))
        >>> x.shape, x.dtype
        ((2, 3), minitorch.float16)
    """
    return rand(input.shape, dtype=dtype or input.dtype, generator=generator)


@factory
def randn_like(input: Tensor, *, dtype: DType | None = None, generator: Generator | None = None) -> Tensor:
    """Return normal random numbers, with the shape and type of another tensor.

    Example:
        >>> import minitorch as mt
        >>> x = mt.randn_like(mt.zeros(2, 3, dtype=mt.float64))
        >>> x.shape, x.dtype
        ((2, 3), minitorch.float64)
    """
    return randn(input.shape, dtype=dtype or input.dtype, generator=generator)


def _deviation(name: str, std: Any) -> Any:
    """Return a standard deviation, which must not be negative."""
    if isinstance(std, Tensor):
        return checked(f"{name}: the standard deviation", std, 0, math.inf)
    if not real(f"{name}: the standard deviation", std) >= 0:
        raise ValueError(f"{name}: the standard deviation cannot be negative: {std}")
    return std


@factory
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Sequence[int] | None = None,
    *,
    dtype: DType = dtypes.DEFAULT_FLOAT,
    generator: Generator | None = None,
) -> Tensor:
    """Return normal random numbers with given mean and standard deviation, numbers or tensors; `dtype` is for numbers.

    Raises:
        ValueError: for a negative standard deviation; tensors are checked in eager mode only.

    Example:
        >>> import minitorch as mt
        >>> mt.normal(0.0, 0.02, (3, 2)).shape, mt.normal(mt.zeros(4), 1.0).shape
        ((3, 2), (4,))
    """
    std = _deviation("normal", std)
    center, spread = operand(mean), operand(std)
    shape = broadcast_shapes((center, spread)) if size is None else as_shape("normal", (size,))
    kind = dtypes.promote_types(dtypes.promote_types(center.dtype, spread.dtype), dtypes.float16)
    noise = gaussian(shape, kind if center.ndim or spread.ndim else _float_type("normal", dtype), generator)
    return add(mul(noise, std), mean)


def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Return 1 with the probability in each element (or with probability `p`), else 0.

    Raises:
        TypeError: if the input is not a tensor.
        ValueError: for probabilities outside of [0, 1].

    Example:
        >>> import minitorch as mt
        >>> mt.bernoulli(mt.tensor([0.0, 1.0]))
        tensor([0., 1.])
    """
    require_tensor("bernoulli", "input", input)
    wide = dtypes.float64 if input.dtype is dtypes.float64 else dtypes.float32
    if p is None:
        require_float(input, "bernoulli")
        threshold = to_dtype(checked("bernoulli: the input", input, 0, 1), wide)
    else:
        threshold = number(probability("bernoulli: p", p), wide)
    with no_grad():
        return P.cast(P.less(uniform(input.shape, wide, generator), threshold), dtype=input.dtype)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Return positions along the last dimension, each drawn with the weight that stands there.

    Without replacement, these are the largest of the weights divided by random numbers of an exponential distribution.

    Args:
        input: a row of weights, or several rows; each row is divided by its sum.
        num_samples: how many are drawn of each row.
        replacement: whether a position can be drawn again.
        generator: the source of the random numbers.

    Raises:
        ShapeError: ``MT201`` for other shapes, and for more samples than positions.
        ValueError: for a weight that is negative or infinite, and for a row of zeros.

    Example:
        >>> import minitorch as mt
        >>> mt.multinomial(mt.tensor([0.0, 0.5, 0.5]), 2).sort().values
        tensor([1, 2])
        >>> mt.multinomial(mt.tensor([[0.0, 1.0], [3.0, 0.0]]), 3, replacement=True)
        tensor([[1, 1, 1],
                [0, 0, 0]])
    """
    require_float(input, "multinomial")
    count = whole("multinomial: num_samples", num_samples)
    if input.ndim not in (1, 2) or not count * input.numel() or (count > input.shape[-1] and not replacement):
        raise ShapeError(
            "MT201",
            f"multinomial: {count} samples of {input.spec}",
            why="a row of weights, or several, are needed, and without replacement no row gives more than it has",
            fix="draw fewer, or with replacement=True",
        )
    with no_grad():
        weights = checked("multinomial: the weights", to_dtype(input, dtypes.float64), 0, sys.float_info.max)
        total = checked("multinomial: the sum of the weights", weights.sum(-1, keepdim=True), 5e-324, math.inf)
        if not replacement:
            race = weights / -(-uniform(weights.shape, dtypes.float64, generator)).log1p()
            return race.topk(count).indices
        draws = uniform((*weights.shape[:-1], count), dtypes.float64, generator) * total
        sums = weights.cumsum(-1)
        found = (sums.unsqueeze(-2) <= draws.unsqueeze(-1)).sum(-1)
        return found.minimum(sums.argmax(-1, keepdim=True))  # a draw may round up to the sum


# Integers ---------------------------------------------------------------------------------------------------


@factory
def randint(
    low: int = 0,
    high: Any = None,
    size: Any = None,
    *,
    dtype: DType = dtypes.DEFAULT_INT,
    generator: Generator | None = None,
) -> Tensor:
    """Return random integers from `low` (0 if left out) up to, but not including, `high`.

    A random fraction x/2**64 is multiplied by the size of the range and rounded down, exactly, as in Lemire, "Fast
    random integer generation in an interval" (2019): no integer is likelier than another by more than 2**-33 of its
    probability. (Ranges above 2**31 take 63 bits modulo the size.)

    Raises:
        ValueError: if the range is empty, or holds more than 2**63 - 1 integers.

    Example:
        >>> import minitorch as mt
        >>> mt.randint(10, (2, 3)).shape, mt.randint(5, 6, (4,))
        ((2, 3), tensor([5, 5, 5, 5]))
    """
    if size is None:
        high, size = None, high
    if high is None:
        low, high = 0, low
    count = high - low
    if count >= 2**63:
        raise ValueError(
            f"randint: from {low} up to {high} there are {count} values, and at most 2**63 - 1 are supported"
        )
    if count <= 0:
        raise ValueError(f"randint: there is no integer from {low} up to, but not including, {high}")
    drawn = integers(count, as_shape("randint", (size,)), generator or default_generator)
    result = drawn if low == 0 else P.add(drawn, like(low, drawn))
    return to_dtype(result, dtype)


@factory
def randint_like(
    input: Tensor,
    low: int = 0,
    high: int | None = None,
    *,
    dtype: DType | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Return random integers in the shape and type of another tensor.

    Example:
        >>> import minitorch as mt
        >>> mt.randint_like(mt.zeros(3), 5, 6)
        tensor([5., 5., 5.])
    """
    bounds = (0, low) if high is None else (low, high)
    return randint(*bounds, input.shape, dtype=dtype or input.dtype, generator=generator)


@factory
def randperm(n: int, *, dtype: DType = dtypes.DEFAULT_INT, generator: Generator | None = None) -> Tensor:
    """Return the integers from 0 to n-1 in a random order: the order that sorts random numbers.

    Example:
        >>> import minitorch as mt
        >>> mt.randperm(5).sort().values
        tensor([0, 1, 2, 3, 4])
    """
    words = (generator or default_generator).bits((2, *as_shape("randperm", (n,))))
    high, low = [P.cast(word, dtype=dtypes.int64) for word in unpacked(words)]
    order = P.argsort(joined(high, low), dim=0, descending=False)
    return to_dtype(order, dtype)


# In place ---------------------------------------------------------------------------------------------------


def uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write uniform random numbers from `from_` up to `to` into the tensor, of a float type.

    Raises:
        ValueError: if `from_` is larger than `to`.

    Example:
        >>> import minitorch as mt
        >>> mt.empty(100).uniform_(2, 3).floor().unique()
        tensor([2.])
    """
    known = not (is_traced(from_) or is_traced(to))
    if known and not real("uniform_: from", from_) <= real("uniform_: to", to):
        raise ValueError(f"uniform_: from {from_} up to {to} there is no number; give the smaller bound first")
    drawn = uniform(self.shape, _float_type("uniform_", self.dtype), generator)
    return assign(self, add(mul(drawn, to - from_), from_), "uniform_")


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write normal random numbers into the tensor, of a float type.

    Raises:
        ValueError: for a negative standard deviation.

    Example:
        >>> import minitorch as mt
        >>> mt.empty(2, 3).normal_(5.0, std=0.0)
        tensor([[5., 5., 5.],
                [5., 5., 5.]])
    """
    std = _deviation("normal_", std)
    drawn = gaussian(self.shape, _float_type("normal_", self.dtype), generator)
    return assign(self, add(mul(drawn, std), mean), "normal_")


def bernoulli_(self: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Write 1 with the probability `p`, else 0, into each element.

    Raises:
        ValueError: if `p` is outside of [0, 1].

    Example:
        >>> import minitorch as mt
        >>> mt.empty(3).bernoulli_(1.0)
        tensor([1., 1., 1.])
    """
    return assign(self, bernoulli(self, p, generator=generator), "bernoulli_")


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write random numbers of an exponential distribution with the rate `lambd` into the tensor, of a float type.

    Raises:
        ValueError: if `lambd` is not positive.

    Example:
        >>> import minitorch as mt
        >>> (mt.empty(100).exponential_(10.0) >= 0).all()
        tensor(True)
    """
    if not is_traced(lambd) and not real("exponential_: lambd", lambd) > 0:
        raise ValueError(f"exponential_: lambd is above 0, not {lambd}")
    drawn = uniform(self.shape, _float_type("exponential_", self.dtype), generator)
    return assign(self, (-drawn).log1p() / -lambd, "exponential_")
