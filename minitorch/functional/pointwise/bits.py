"""Bits of a tensor read as elements of another type: ``x.view(dtype)``."""

from __future__ import annotations

from ... import primitives as P
from ...dtypes import DType, bool_, int16, int64, uint8, uint32
from ...errors import ShapeError
from ...interpreters import current_staging
from ...tensor import Batched, Tensor, View
from ..operands import like

_INTEGERS = {1: uint8, 2: int16, 4: uint32, 8: int64}  # by bytes


def read_as(x: Tensor, dtype: DType) -> Tensor:
    """Read the same bits as another type. The last dimension is longer or shorter if the type has another size.

    The result is a view in eager mode; while a graph is recorded, one of another size is computed with shifts.

    Raises:
        ShapeError: if the last dimension does not fit (``MT201``).
    """
    have, want = x.dtype.itemsize, dtype.itemsize
    staging = current_staging()
    if have == want:
        is_flag = staging is not None and dtype is bool_ and x.dtype is not bool_
        return P.cast(P.bitcast(x, dtype=uint8), dtype=bool_) if is_flag else P.bitcast(x, dtype=dtype)
    if not x.shape or x.shape[-1] * have % want:
        raise ShapeError(
            "MT201",
            f"view: {x.spec} cannot be read as {dtype.name}",
            why=f"the last dimension is made of {x.shape[-1] * have} bytes, and one element takes {want}"
            if x.shape
            else "elements of another size make the last dimension longer or shorter, and there is none",
            fix="reshape it first",
        )
    if staging is None:
        return P.bitcast(x, dtype=dtype)
    result = _taken_apart(x, dtype) if have > want else _put_together(x, dtype)
    if not isinstance(x._value, Batched):
        result._view = View(x, P.bitcast, {"dtype": dtype}, staging.node_of(x._root))  # a write to it is one to x
    return result


def _taken_apart(x: Tensor, dtype: DType) -> Tensor:
    have, want = x.dtype.itemsize, dtype.itemsize
    whole = P.bitcast(x, dtype=_INTEGERS[have])
    steps = [P.shift_right(whole, like(8 * want * place, whole)) for place in range(have // want)]
    pieces = [P.reshape(P.cast(step, dtype=_INTEGERS[want]), shape=(*x.shape, 1)) for step in steps]
    joined = P.concatenate(*pieces, dim=x.ndim)
    return read_as(P.reshape(joined, shape=(*x.shape[:-1], x.shape[-1] * have // want)), dtype)


def _put_together(x: Tensor, dtype: DType) -> Tensor:
    have, want = x.dtype.itemsize, dtype.itemsize
    count = want // have
    pieces = P.cast(P.bitcast(x, dtype=_INTEGERS[have]), dtype=int64)
    pieces = P.bitwise_and(pieces, like((1 << 8 * have) - 1, pieces))
    pieces = P.reshape(pieces, shape=(*x.shape[:-1], x.shape[-1] // count, count))
    shifts = P.mul(P.iota(size=count, dtype=int64), like(8 * have, pieces))
    whole = P.reduce_sum(P.shift_left(pieces, shifts), dims=(x.ndim,))
    return read_as(P.cast(whole, dtype=_INTEGERS[want]), dtype)
