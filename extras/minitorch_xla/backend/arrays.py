"""Primitives on whole arrays in `jax.lax`: movements, reductions, scans, products, indexing, random bits.

Sums of 16-bit floats are carried in float32, as in eager mode. Products are asked for in full precision: by default
XLA rounds float32 to fewer bits on GPUs and TPUs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from minitorch.dtypes import BY_NUMPY, DType
from minitorch.ir import Shape
from minitorch.primitives import Literal
from minitorch.primitives.reductions import lowest
from minitorch.primitives.sources import GOLDEN, MIXING

from .elementwise import Rule, full, in_float32

AS_THEY_ARE: Any = {"mode": "promise_in_bounds", "wrap_negative_indices": False}  # see `indices`


def _expand(x: Any, *, shape: Shape) -> Any:
    return lax.broadcast_in_dim(x, shape, range(len(shape) - x.ndim, len(shape)))


def _pad(x: Any, *, padding: tuple[tuple[int, int, int], ...], value: float) -> Any:
    return lax.pad(x, jnp.asarray(value, x.dtype), padding)


def _unfold(x: Any, *, dim: int, size: int, step: int, dilation: int) -> Any:
    reach = (size - 1) * dilation + 1
    count = (x.shape[dim] - reach) // step + 1
    parts = []
    for place in range(size):
        first = place * dilation
        parts.append(lax.slice_in_dim(x, first, first + (count - 1) * step + 1, step, dim))
    return jnp.stack(parts, axis=-1)


def _diagonal(x: Any, *, offset: int) -> Any:
    return jnp.diagonal(x, offset, -2, -1)


def _dot(a: Any, b: Any, *, dtype: DType) -> Any:
    wide = jnp.float32 if dtype.itemsize == 2 and dtype.is_floating_point else dtype.numpy
    if not dtype.is_floating_point and a.dtype != b.dtype:
        a, b = (lax.convert_element_type(each, wide) for each in (a, b))
    batch = tuple(range(a.ndim - 2))
    numbers = (((a.ndim - 1,), (b.ndim - 2,)), (batch, batch))
    sums = lax.dot_general(a, b, numbers, precision=lax.Precision.HIGHEST, preferred_element_type=wide)
    return lax.convert_element_type(sums, dtype.numpy)


def _reduced(initial: Callable[[Any], Any], combine: Callable[[Any, Any], Any]) -> Rule:
    def reduce(x: Any, *, dims: tuple[int, ...]) -> Any:
        return lax.reduce(x, jnp.asarray(initial(x), x.dtype), combine, dims)

    return reduce


_sum = in_float32(_reduced(lambda x: 0, lax.add))


def _reduce_sum(x: Any, *, dims: tuple[int, ...]) -> Any:
    return lax.reduce_or(x, dims) if x.dtype == jnp.bool_ else _sum(x, dims=dims)


def _reduce_prod(x: Any, *, dims: tuple[int, ...]) -> Any:
    return lax.reduce_and(x, dims) if x.dtype == jnp.bool_ else _product(x, dims=dims)


_product = in_float32(_reduced(lambda x: 1, lax.mul))


def _scan(scan: Callable[..., Any], of_bools: Callable[..., Any]) -> Rule:
    def run(x: Any, *, dim: int) -> Any:
        if x.dtype == jnp.bool_:
            return lax.convert_element_type(of_bools(lax.convert_element_type(x, jnp.int8), axis=dim), jnp.bool_)
        return scan(x, axis=dim)

    return in_float32(run)


def _argsort(x: Any, *, dim: int, descending: bool) -> Any:
    if descending:  # backwards through the reversed array, so that equal elements keep their order
        order = _argsort(lax.rev(x, (dim,)), dim=dim, descending=False)
        return lax.sub(full(order, x.shape[dim] - 1), lax.rev(order, (dim,)))
    places = lax.broadcasted_iota(jnp.int64, x.shape, dim)
    return lax.sort((x, places), dimension=dim, is_stable=True, num_keys=1)[1]


_DECOMPOSED: dict[str, Rule] = {
    "cholesky": jnp.linalg.cholesky,
    "det": jnp.linalg.det,
    "eigh": jnp.linalg.eigh,
    "inv": jnp.linalg.inv,
    "qr": jnp.linalg.qr,
    "qr_complete": lambda x: jnp.linalg.qr(x, mode="complete"),
    "slogdet": jnp.linalg.slogdet,
    "solve": jnp.linalg.solve,
    "svd": lambda x: jnp.linalg.svd(x, full_matrices=False),
    "svd_full": jnp.linalg.svd,
}


def _decompose(x: Any, *others: Any, routine: str) -> Any:
    found = _DECOMPOSED[routine](x, *others)
    if not isinstance(found, tuple):
        return found
    return jnp.concatenate([jnp.reshape(each, (*x.shape[:-2], -1)) for each in found], -1)


def _gather(x: Any, *indices: Any) -> Any:
    return x.at[indices].get(**AS_THEY_ARE)


def _scatter_add(x: Any, updates: Any, *indices: Any) -> Any:
    if x.dtype == jnp.bool_:
        return lax.bitwise_or(x, jnp.zeros_like(x).at[indices].max(updates, **AS_THEY_ARE))
    return x.at[indices].add(updates, **AS_THEY_ARE)


def _scatter(x: Any, updates: Any, *indices: Any) -> Any:
    """Of updates at equal indices the last wins: XLA leaves their order open, but not that of a maximum."""
    count = math.prod(indices[0].shape)
    numbers = lax.reshape(lax.iota(jnp.int64, count), indices[0].shape)
    led = x.shape[: len(indices)]
    last = jnp.full(led, -1, jnp.int64).at[indices].max(numbers, **AS_THEY_ARE)
    rest = x.shape[len(indices) :]
    chosen = jnp.reshape(updates, (count, *rest))[jnp.maximum(last, 0)] if count else x
    written = jnp.reshape(last >= 0, (*led, *(1,) * len(rest)))
    return jnp.where(written, chosen, x)


def constant(*, value: Any, shape: Shape, dtype: DType) -> Any:
    """A number in every element, or an array."""
    if isinstance(value, Literal):
        return jnp.asarray(value.array)
    return lax.full(shape, np.asarray(value).astype(dtype.numpy)[()], dtype.numpy)


def _random_bits(state: Any, *, shape: Shape) -> Any:
    """The generator of `primitives.sources`, whose comments say what it is: SplitMix64 for the key, then Squares."""

    def word(value: int) -> Any:
        return jnp.uint64(np.uint64(value))

    seed, draw = (lax.convert_element_type(state[each], jnp.uint64) for each in (0, 1))
    key = seed + (draw + word(1)) * word(GOLDEN)
    for bits, factor in MIXING:
        key = (key ^ (key >> word(bits))) * word(factor)
    key = (key ^ (key >> word(31))) | word(1)
    x = y = lax.iota(jnp.uint64, math.prod(shape)) * key
    z = y + key
    half = word(32)
    for added in (y, z, y):
        x = x * x + added
        x = (x >> half) | (x << half)
    return lax.reshape(lax.convert_element_type((x * x + z) >> half, jnp.uint32), shape)


RULES: dict[str, Rule] = {
    "constant": constant,
    "iota": lambda *, size, dtype: lax.iota(dtype.numpy, size),
    "random_bits": _random_bits,
    "reshape": lambda x, *, shape: lax.reshape(x, shape),
    "permute": lambda x, *, dims: lax.transpose(x, dims),
    "expand": _expand,
    "slice": lambda x, *, start, stop, step: lax.slice(x, start, stop, step),
    "pad": _pad,
    "flip": lambda x, *, dims: lax.rev(x, dims),
    "concatenate": lambda *xs, dim: lax.concatenate(xs, dim),
    "unfold": _unfold,
    "diagonal": _diagonal,
    "dot": _dot,
    "reduce_sum": _reduce_sum,
    "reduce_prod": _reduce_prod,
    "reduce_max": _reduced(lambda x: lowest(BY_NUMPY[np.dtype(x.dtype)]), lax.max),
    "argmax": lambda x, *, dim: lax.argmax(x, dim, jnp.int64),
    "cumsum": _scan(lax.cumsum, lax.cummax),
    "cumprod": _scan(lax.cumprod, lax.cummin),
    "argsort": _argsort,
    "decompose": _decompose,
    "gather": _gather,
    "scatter": _scatter,
    "scatter_add": _scatter_add,
}
