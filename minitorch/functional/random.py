"""Random tensors: rand, randn, normal, bernoulli, randint, randperm, and in-place writes of random numbers.

Each is arithmetic on the draws of a `Generator`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import dtypes
from .. import primitives as P
from ..autograd import no_grad
from ..dtypes import DType
from ..interpreters import broadcast_shapes
from ..tensor import Tensor
from .arithmetic import add, mul
from .creation import as_shape
from .data import leaf
from .devices import on_cpu
from .generator import (
    Generator,
    default_generator,
    gaussian,
    initial_seed,
    integers,
    joined,
    manual_seed,
    seed,
    uniform,
    unpacked,
)
from .inplace import assign
from .operands import (
    checked,
    is_traced,
    like,
    number,
    operand,
    probability,
    real,
    require_float,
    require_tensor,
    to_dtype,
)

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "initial_seed",
    "manual_seed",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
]
METHODS = ("bernoulli",)


# Real numbers -----------------------------------------------------------------------------------------------


def _float_type(name: str, dtype: Any, default: DType = dtypes.DEFAULT_FLOAT) -> DType:
    kind = default if dtype is None else dtypes.as_dtype(dtype)
    if not kind.is_floating_point:
        raise TypeError(f"{name} draws from a float type, not {kind.name}")
    return kind


def rand(
    *lengths: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return uniform random numbers in [0, 1).

    Example:
        >>> import minitorch as mt
        >>> mt.rand(2, 3).shape, mt.rand((2, 3), dtype=mt.float64).dtype
        ((2, 3), minitorch.float64)
    """
    shape = as_shape("rand", lengths if size is None else (size,))
    return leaf(uniform(shape, _float_type("rand", dtype), generator), requires_grad, device)


def randn(
    *lengths: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return normal random numbers with mean 0 and variance 1.

    Example:
        >>> import minitorch as mt
        >>> mt.randn(1000).abs().max().item() < 6
        True
    """
    shape = as_shape("randn", lengths if size is None else (size,))
    return leaf(gaussian(shape, _float_type("randn", dtype), generator), requires_grad, device)


def rand_like(
    input: Tensor,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return uniform random numbers in [0, 1), with the shape and type of another tensor.

    Example:
        >>> import minitorch as mt
        >>> x = mt.rand_like(mt.zeros(2, 3, dtype=mt.float16))
        >>> x.shape, x.dtype
        ((2, 3), minitorch.float16)
    """
    kind = _float_type("rand_like", dtype, input.dtype)
    return rand(input.shape, dtype=kind, device=device, requires_grad=requires_grad, generator=generator)


def randn_like(
    input: Tensor,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return normal random numbers, with the shape and type of another tensor.

    Example:
        >>> import minitorch as mt
        >>> x = mt.randn_like(mt.zeros(2, 3, dtype=mt.float64))
        >>> x.shape, x.dtype
        ((2, 3), minitorch.float64)
    """
    kind = _float_type("randn_like", dtype, input.dtype)
    return randn(input.shape, dtype=kind, device=device, requires_grad=requires_grad, generator=generator)


def _deviation(name: str, std: Any) -> Any:
    """Return a standard deviation, which must not be negative."""
    if isinstance(std, Tensor):
        return checked(f"{name}: the standard deviation", std, 0, math.inf)
    if not real(f"{name}: the standard deviation", std) >= 0:
        raise ValueError(f"{name}: the standard deviation cannot be negative: {std}")
    return std


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
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
    on_cpu(device)
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


# Integers ---------------------------------------------------------------------------------------------------


def randint(
    low: int = 0,
    high: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
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
        low, high, size = 0, low, high
    count = high - low
    if count >= 2**63:
        raise ValueError(
            f"randint: from {low} up to {high} there are {count} values, and at most 2**63 - 1 are supported"
        )
    if count <= 0:
        raise ValueError(f"randint: there is no integer from {low} up to, but not including, {high}")
    whole = integers(count, as_shape("randint", (size,)), generator or default_generator)
    result = whole if low == 0 else P.add(whole, like(low, whole))
    kind = dtypes.DEFAULT_INT if dtype is None else dtypes.as_dtype(dtype)
    return leaf(to_dtype(result, kind), requires_grad, device)


def randint_like(
    input: Tensor,
    low: int = 0,
    high: int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Return random integers in the shape and type of another tensor.

    Example:
        >>> import minitorch as mt
        >>> mt.randint_like(mt.zeros(3), 5, 6)
        tensor([5., 5., 5.])
    """
    bounds = (0, low) if high is None else (low, high)
    return randint(*bounds, input.shape, dtype=dtype or input.dtype, device=device, generator=generator)


def randperm(n: int, *, dtype: Any = None, device: Any = None, generator: Generator | None = None) -> Tensor:
    """Return the integers from 0 to n-1 in a random order: the order that sorts random numbers.

    Example:
        >>> import minitorch as mt
        >>> mt.randperm(5).sort().values
        tensor([0, 1, 2, 3, 4])
    """
    words = (generator or default_generator).bits((2, *as_shape("randperm", (n,))))
    high, low = [P.cast(word, dtype=dtypes.int64) for word in unpacked(words)]
    order = P.argsort(joined(high, low), dim=0, descending=False)
    return leaf(to_dtype(order, dtypes.DEFAULT_INT if dtype is None else dtypes.as_dtype(dtype)), False, device)


# In place ---------------------------------------------------------------------------------------------------


def uniform_(tensor: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
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
    drawn = uniform(tensor.shape, _float_type("uniform_", None, tensor.dtype), generator)
    return assign(tensor, add(mul(drawn, to - from_), from_), "uniform_")


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
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
    drawn = gaussian(tensor.shape, _float_type("normal_", None, tensor.dtype), generator)
    return assign(tensor, add(mul(drawn, std), mean), "normal_")


def bernoulli_(tensor: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Write 1 with the probability `p`, else 0, into each element.

    Raises:
        ValueError: if `p` is outside of [0, 1].

    Example:
        >>> import minitorch as mt
        >>> mt.empty(3).bernoulli_(1.0)
        tensor([1., 1., 1.])
    """
    return assign(tensor, bernoulli(tensor, p, generator=generator), "bernoulli_")


OPERATORS = {"bernoulli_": bernoulli_, "normal_": normal_, "uniform_": uniform_}
