"""`dot`: products summed over a shared dimension. Every matmul, einsum and convolution ends here.

Both operands have one type, except that signed and unsigned 8-bit integers may be mixed where the sums are 32-bit
integers: the product of layers in 8 bits (`torch._int_mm` is that of two int8 matrices). Sums of integers are modulo
2**32, or whatever the result's type holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..errors import DTypeError, ShapeError
from ..ir import Primitive, Spec
from ..tensor import Tensor
from .declare import declare
from .elementwise import cast, mul
from .movement import permute, reshape, together

Array = np.ndarray[Any, Any]
BYTES = (dtypes.int8, dtypes.uint8)


def check_factors(name: str, a: Spec, b: Spec, dtype: DType) -> None:
    """Refuse operands of two types, unless they are 8-bit integers with 32-bit sums.

    Raises:
        DTypeError: if the types do not fit (``MT202``).
    """
    if a.dtype is b.dtype or (a.dtype in BYTES and b.dtype in BYTES and dtype is dtypes.int32):
        return
    fix = "convert one of them first"
    if a.dtype in BYTES and b.dtype in BYTES:
        fix = f"take the sums in int32, not {dtype.name}, or convert one of them first"
    raise DTypeError("MT202", f"{name}: {a} and {b} have different types", fix=fix)


def _infer_dot(a: Spec, b: Spec, *, dtype: DType) -> Spec:
    check_factors("dot", a, b, dtype)
    if a.ndim < 2 or a.ndim != b.ndim or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            "MT201",
            f"matrix product: {a} and {b} do not fit",
            why=f"the sum runs over {a.shape[-1]} elements on the left and {b.shape[-2]} on the right"
            if a.ndim == b.ndim > 1 and a.shape[:-2] == b.shape[:-2]
            else "both have two dimensions or more, and all but the last two agree",
            fix="transpose one of them (x.mT), or correct the length of one",
        )
    return Spec((*a.shape[:-1], b.shape[-1]), dtype)


def _evaluate_dot(a: Array, b: Array, *, dtype: DType) -> Array:
    """Multiply and sum 16-bit floats in float32, everything else in the result's type.

    Integers are exact. BLAS has no integers, so they are multiplied as floats where every sum is a whole number that
    the float type holds.
    """
    exact = _exact_float(a, b)
    if exact is not None and not dtype.is_floating_point:
        sums: Array = np.matmul(a.astype(exact), b.astype(exact))
        return sums.astype(np.int64).astype(dtype.numpy, copy=False)
    wide = np.float32 if dtype in (dtypes.float16, dtypes.bfloat16) else dtype.numpy
    result: Array = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
    return result.astype(dtype.numpy, copy=False)


def _exact_float(a: Array, b: Array) -> type[np.floating[Any]] | None:
    """Return the float type in which all sums of products of two integer arrays are exact, whatever they hold.

    float32 holds the whole numbers up to 2**24, float64 those up to 2**53. The types give the bound: a sum of k
    products of uint8 and int8 is at most k * 255 * 128, so float32 does for k up to 514, float64 for any k. None if no
    float is sure to be exact.
    """
    if not (np.issubdtype(a.dtype, np.integer) and np.issubdtype(b.dtype, np.integer)):
        return None
    largest = a.shape[-1]
    for each in (a, b):
        ends = np.iinfo(each.dtype)
        largest *= max(-int(ends.min), int(ends.max))
    return np.float32 if largest <= 1 << 24 else np.float64 if largest <= 1 << 53 else None


def transposed(x: Tensor) -> Tensor:
    """Exchange the last two dimensions."""
    return permute(x, dims=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _same_type(g: Tensor, x: Tensor) -> Tensor:
    return g if g.dtype is x.dtype else cast(g, dtype=x.dtype)


def _batch_dot(a: Tensor, b: Tensor, dtype: DType) -> Tensor:
    """Multiply examples; by a matrix that they share, as the rows of one matrix."""
    if a.ndim == 3 and a.shape[0] == 1 != b.shape[0]:
        return transposed(_batch_dot(transposed(b), transposed(a), dtype))
    if b.ndim == 3 and b.shape[0] == 1:
        rows = reshape(a, shape=(a.shape[0] * a.shape[1], a.shape[2]))
        product = dot(rows, reshape(b, shape=b.shape[1:]), dtype=dtype)
        return reshape(product, shape=(*a.shape[:2], b.shape[2]))
    if a.shape[-1] == 1 and a.dtype is b.dtype is dtype:  # outer products
        return mul(a, b)
    return dot(*together(a, b), dtype=dtype)


dot: Primitive = declare(
    "dot",
    "contraction",
    _infer_dot,
    _evaluate_dot,
    gradient=(
        lambda g, y, a, b, dtype: dot(_same_type(g, b), transposed(b), dtype=a.dtype),
        lambda g, y, a, b, dtype: dot(transposed(a), _same_type(g, a), dtype=b.dtype),
    ),
    saves=(0, 1),
    reorders=True,
    batch=_batch_dot,
    doc="[..., m, k] times [..., k, n] gives [..., m, n], a sum over k; dtype is the type of the sums",
)
