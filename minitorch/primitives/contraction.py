"""`dot`: products summed over a shared dimension. Every matmul, einsum and convolution ends here."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..errors import DTypeError, ShapeError
from ..ir import Primitive, Spec
from ..tensor import Tensor
from .declare import declare
from .elementwise import cast
from .movement import permute

Array = np.ndarray[Any, Any]


def _infer_dot(a: Spec, b: Spec, *, dtype: DType) -> Spec:
    if a.dtype is not b.dtype:
        raise DTypeError("MT202", f"dot: {a} and {b} have different types", fix="convert one of them first")
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
    """16-bit floats are multiplied and summed in float32, everything else in the result's type."""
    wide = np.float32 if dtype in (dtypes.float16, dtypes.bfloat16) else dtype.numpy
    result: Array = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
    return result.astype(dtype.numpy, copy=False)


def transposed(x: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    return permute(x, dims=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _same_type(g: Tensor, x: Tensor) -> Tensor:
    return g if g.dtype is x.dtype else cast(g, dtype=x.dtype)


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
    doc="[..., m, k] times [..., k, n] gives [..., m, n], a sum over k; dtype is the type of the sums",
)
