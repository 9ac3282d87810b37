"""Products of vectors, matrices and batches of them; all end in the primitive `dot` (or in `mul`, where
nothing is summed).

`matmul` brings its operands into the form of `dot` by views: vectors get a dimension, batch dimensions are
expanded. The general case, `einsum`, is in `minitorch.functional.reducing.contraction`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import primitives as P
from ...dtypes import int64
from ...errors import ShapeError
from ...interpreters import broadcast_shapes, handled
from ...packages import load
from ...tensor import Tensor, with_value
from ..movement.arranging import roll
from ..movement.parts import diagonal
from ..movement.selection import where
from ..movement.shaping import broadcast_tensors
from ..operands import Operand, fitting, is_operand, number, operand, promote, promote_all, to_dtype, widened
from ..options import as_int, equals, ints, is_traced, wrap_dim
from .contraction import check_types, contract

Number = bool | int | float
Product = Callable[[Tensor, Tensor], Tensor]


@handled
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the matrix product ``input @ other``, with NumPy's and PyTorch's rules for other ranks than two.

    A vector counts as a row on the left and as a column on the right, and its dimension goes away; dimensions
    before the last two are batches, and broadcast.

    Raises:
        ShapeError: if the summed lengths differ, batches do not broadcast, or a rank is 0 (``MT201``).
        DTypeError: if the types differ (``MT202``).

    Example:
        >>> import minitorch as mt
        >>> a = mt.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> a @ a, a @ mt.tensor([1.0, 0.0])
        (tensor([[ 7., 10.],
                [15., 22.]]), tensor([1., 3.]))
    """
    return _product(input, other)


def _product(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype is not b.dtype:
        check_types("matmul", a, b)
    if a.ndim == b.ndim == 2:
        return P.dot(a, b, dtype=a.dtype)
    if not a.ndim or not b.ndim:
        raise ShapeError("MT201", f"matmul: {a.spec} and {b.spec}", why="one has no dimensions", fix="use a * b")
    row = P.reshape(a, shape=(1, *a.shape)) if a.ndim == 1 else a
    column = P.reshape(b, shape=(*b.shape, 1)) if b.ndim == 1 else b
    if row.shape[-1] != column.shape[-2]:
        raise ShapeError(
            "MT201",
            f"matmul: {a.spec} and {b.spec} do not fit",
            why=f"the sum runs over {row.shape[-1]} elements on the left and {column.shape[-2]} on the right",
            fix="transpose one of them (x.mT)",
        )
    product = _batched(row, column)
    shape = (
        product.shape[:-2] + (() if a.ndim == 1 else product.shape[-2:-1]) + (() if b.ndim == 1 else product.shape[-1:])
    )
    return product if product.shape == shape else P.reshape(product, shape=shape)


def _batched(a: Tensor, b: Tensor) -> Tensor:
    """Return the product of matrices and batches of them."""
    if b.ndim == 2 and a.ndim > 2:  # one matrix on the right: all rows of all batches are rows of one matrix
        rows = P.reshape(a, shape=(math.prod(a.shape[:-1]), a.shape[-1]))
        return P.reshape(P.dot(rows, b, dtype=a.dtype), shape=(*a.shape[:-1], b.shape[-1]))
    if a.shape[:-2] != b.shape[:-2]:
        batch = broadcast_shapes((_batch_of(a), _batch_of(b)))
        a, b = (P.expand(x, shape=(*batch, *x.shape[-2:])) for x in (a, b))
    return P.dot(a, b, dtype=a.dtype)


def _batch_of(x: Tensor) -> Tensor:
    """Return a tensor that has the shape of the batch dimensions; its values do not matter."""
    return with_value(type(x.spec)(x.shape[:-2], x.dtype))


# The same product, for given ranks ------------------------------------------------------------------------

# The dimensions of both operands.
_RANKS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1)}


def _ranked(name: str, a: Tensor, b: Tensor) -> Tensor:
    left, right = _RANKS[name]
    same_batch = left < 3 or a.shape[:1] == b.shape[:1]
    if a.ndim != left or b.ndim != right or not same_batch:
        raise ShapeError(
            "MT201",
            f"{name}: {a.spec} and {b.spec}",
            why=f"it takes tensors of {left} and {right} dimensions" + (" with equal batches" if left == 3 else ""),
            fix="use matmul, which takes all ranks and broadcasts",
        )
    return _product(a, b)


@handled
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices: `matmul` for these ranks alone.

    Example:
        >>> import minitorch as mt
        >>> mt.ones(2, 3).mm(mt.ones(3, 4)).shape
        (2, 4)
    """
    return _ranked("mm", input, mat2)


@handled
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the products of two batches of matrices: `matmul` for these ranks alone.

    Example:
        >>> import minitorch as mt
        >>> mt.ones(5, 2, 3).bmm(mt.ones(5, 3, 4)).shape
        (5, 2, 4)
    """
    return _ranked("bmm", input, mat2)


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Return a matrix times a vector: `matmul` for these ranks alone.

    Example:
        >>> import minitorch as mt
        >>> mt.ones(2, 3).mv(mt.ones(3))
        tensor([3., 3.])
    """
    return _ranked("mv", input, vec)


def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Return the product of two vectors, a number: `matmul` for these ranks alone.

    Example:
        >>> import minitorch as mt
        >>> mt.ones(3).dot(mt.ones(3))
        tensor(3.)
    """
    return _ranked("dot", input, tensor)


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Return `dot`, from which it differs for complex numbers alone.

    Example:
        >>> import minitorch as mt
        >>> mt.ones(3).vdot(mt.ones(3))
        tensor(3.)
    """
    return dot(input, other)


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return every element of one vector times every element of another.

    Example:
        >>> import minitorch as mt
        >>> mt.outer(mt.tensor([1, 2]), mt.tensor([3, 4]))
        tensor([[3, 4],
                [6, 8]])
    """
    if input.ndim != 1 or vec2.ndim != 1:
        raise ShapeError(
            "MT201", f"outer: {input.spec} and {vec2.spec} are not both vectors", fix="use tensordot(dims=0)"
        )
    a, b = promote(input, vec2)
    return P.mul(P.reshape(a, shape=(*a.shape, 1)), b)


ger = outer


def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Any] = 2) -> Tensor:
    """Return the product of two tensors, summed over the last `dims` of one and the first of the other, or over
    named dimensions. A dimension of length 1 is expanded to the length of the one that it meets.

    Example:
        >>> import minitorch as mt
        >>> mt.tensordot(mt.ones(2, 3, 4), mt.ones(4, 2), dims=([0, 2], [1, 0])).shape
        (3,)
    """
    check_types("tensordot", a, b)
    if not isinstance(dims, Sequence):
        dims = as_int(dims)
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: of {a.spec} and {b.spec} 0 to all dimensions are summed over, not {dims}")
        left, right = [*range(a.ndim - dims, a.ndim)], [*range(dims)]
    else:
        left = [wrap_dim(dim, a.ndim) for dim in ints((dims[0],))]
        right = [wrap_dim(dim, b.ndim) for dim in ints((dims[1],))]
    lengths = [[x.shape[dim] for dim in side if 0 <= dim < x.ndim] for x, side in ((a, left), (b, right))]
    pairs = list(zip(*lengths, strict=False))
    if not len(left) == len(right) == len(pairs) or any(m != n and 1 not in (m, n) for m, n in pairs):
        raise ShapeError("MT201", f"tensordot: dimensions {left} of {a.spec} and {right} of {b.spec} do not fit")
    a = _summed(a, [dim for dim, (m, n) in zip(left, pairs, strict=True) if m != n == 1])
    b = _summed(b, [dim for dim, (m, n) in zip(right, pairs, strict=True) if n != m == 1])
    summed = dict(zip(right, left, strict=True))
    of_a = list(range(a.ndim))
    of_b = [summed.get(dim, a.ndim + dim) for dim in range(b.ndim)]
    kept = [label for label in (*of_a, *of_b) if label not in left]
    return contract(a, of_a, b, of_b, kept)[0]


def _summed(x: Tensor, dims: list[int]) -> Tensor:
    """Sum a tensor where the other factor has length 1, and so is the same for all terms."""
    return x.sum(dims, keepdim=True, dtype=x.dtype) if dims else x


def inner(input: Tensor, other: Tensor) -> Tensor:
    """Return the products summed over the last dimension of both; with a number, the product.

    Example:
        >>> import minitorch as mt
        >>> mt.inner(mt.ones(2, 3), mt.ones(4, 3)).shape
        (2, 4)
    """
    if not input.ndim or not other.ndim:
        return P.mul(*promote(input, other))
    if input.shape[-1] != other.shape[-1]:
        raise ShapeError("MT201", f"inner: the last dimensions of {input.spec} and {other.spec} do not fit")
    return tensordot(input, other, dims=([-1], [-1]))


def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return the Kronecker product: every element of the first replaced by itself times the whole second.

    Example:
        >>> import minitorch as mt
        >>> mt.kron(mt.tensor([1, 10]), mt.tensor([1, 2]))
        tensor([ 1,  2, 10, 20])
    """
    a, b = promote(input, other)
    ndim = max(a.ndim, b.ndim)
    of_a, of_b = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
    left = P.reshape(a, shape=tuple(length for mine in of_a for length in (mine, 1)))
    right = P.reshape(b, shape=tuple(length for mine in of_b for length in (1, mine)))
    return P.reshape(P.mul(left, right), shape=tuple(x * y for x, y in zip(of_a, of_b, strict=True)))


@handled
def trace(input: Tensor) -> Tensor:
    """Return the sum of a matrix's diagonal; of integers, in int64.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1, 2], [3, 4]]).trace()
        tensor(5)
    """
    if input.ndim != 2:
        raise ShapeError("MT201", f"trace is for a matrix, not for {input.spec}")
    on_it = diagonal(input)
    return P.reduce_sum(on_it if on_it.dtype.is_floating_point else to_dtype(on_it, int64), dims=(0,))


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return the cross product of two vectors of three elements, in each place of the other dimensions.

    They lie along `dim` of both operands, broadcast together; by default along the first dimension of length 3.

    Raises:
        ShapeError: ``MT201`` if there is no such dimension.

    Example:
        >>> import minitorch as mt
        >>> mt.cross(mt.tensor([1, 0, 0]), mt.tensor([0, 1, 0]))
        tensor([0, 0, 1])
    """
    a, b = broadcast_tensors(*promote(input, other))
    if dim is None:
        dim = a.shape.index(3) if 3 in a.shape else -1
    axis = wrap_dim(dim, a.ndim)
    if a.shape[axis : axis + 1] != (3,):
        raise ShapeError("MT201", f"cross: dimension {dim} of {input.spec} and {other.spec} must have the length 3")
    ahead, behind = P.mul(roll(a, -1, axis), roll(b, -2, axis)), P.mul(roll(a, -2, axis), roll(b, -1, axis))
    return P.sub(ahead, behind)


@widened
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """Return the distance of each row of one matrix from each row of another, the p-norm of the difference.

    Args:
        x1, x2: matrices, or batches of them, whose rows have one length.
        p: the norm, from 0 to infinity.
        compute_mode: how PyTorch computes it; here always from the differences.

    Example:
        >>> import minitorch as mt
        >>> mt.cdist(mt.tensor([[0.0, 0.0]]), mt.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5., 1.]])
    """
    check_types("cdist", x1, x2)
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError("MT201", f"cdist: the rows of {x1.spec} and {x2.spec} do not fit")
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1)


# input * beta + product * alpha ---------------------------------------------------------------------------


def _sum_of_batch(a: Tensor, b: Tensor) -> Tensor:
    return P.reduce_sum(bmm(a, b), dims=(0,))


def _scaled(name: str, x: Tensor, factor: Number) -> Tensor:
    return x if equals(factor, 1) else P.mul(x, number(fitting(name, factor, x.dtype), x.dtype))


@widened
def _added(
    input: Tensor, first: Tensor, second: Tensor, name: str, product_of: Product, beta: Number, alpha: Number
) -> Tensor:
    product = _scaled(name, product_of(first, second), alpha)
    if broadcast_shapes((input, product)) != product.shape:
        raise ShapeError("MT201", f"{name}: {input.spec} does not broadcast to the product, {product.spec}")
    if is_traced(beta) or beta == 0:  # then even a NaN has no effect; the gradient is 0, not none
        counts = P.bitwise_not(P.equal(number(beta, input.dtype), number(0, input.dtype)))
        input, beta = P.where(counts, input, number(0, input.dtype)), beta or 1 if not is_traced(beta) else beta
    return P.add(_scaled(name, input, beta), product)


def _fused(name: str, product_of: Product, *tensors: Tensor, beta: Number, alpha: Number) -> Tensor:
    check_types(name, *tensors)
    return _added(*tensors, name, product_of, beta, alpha)


@handled
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Return ``beta * input`` plus ``alpha`` times the product of two matrices.

    `input` broadcasts, and is not read if beta is 0.

    Example:
        >>> import minitorch as mt
        >>> mt.addmm(mt.zeros(2), mt.ones(2, 3), mt.ones(3, 2)).shape
        (2, 2)
    """
    return _fused("addmm", mm, input, mat1, mat2, beta=beta, alpha=alpha)


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Return ``beta * input`` plus ``alpha`` times a matrix times a vector.

    `input` broadcasts, and is not read if beta is 0.

    Example:
        >>> import minitorch as mt
        >>> mt.addmv(mt.zeros(2), mt.ones(2, 3), mt.ones(3)).shape
        (2,)
    """
    return _fused("addmv", mv, input, mat, vec, beta=beta, alpha=alpha)


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Return ``beta * input`` plus ``alpha`` times the outer product of two vectors.

    `input` broadcasts, and is not read if beta is 0.

    Example:
        >>> import minitorch as mt
        >>> mt.addr(mt.zeros(2), mt.ones(3), mt.ones(2)).shape
        (3, 2)
    """
    return _fused("addr", outer, *promote_all(input, vec1, vec2), beta=beta, alpha=alpha)


@handled
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Return ``beta * input`` plus ``alpha`` times the products of two batches.

    `input` broadcasts, and is not read if beta is 0.

    Example:
        >>> import minitorch as mt
        >>> mt.baddbmm(mt.zeros(2), mt.ones(5, 2, 3), mt.ones(5, 3, 2)).shape
        (5, 2, 2)
    """
    return _fused("baddbmm", bmm, input, batch1, batch2, beta=beta, alpha=alpha)


@handled
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Return ``beta * input`` plus ``alpha`` times the sum of the products of two batches.

    `input` broadcasts, and is not read if beta is 0.

    Example:
        >>> import minitorch as mt
        >>> mt.addbmm(mt.zeros(2), mt.ones(5, 2, 3), mt.ones(5, 3, 2)).shape
        (2, 2)
    """
    return _fused("addbmm", _sum_of_batch, input, batch1, batch2, beta=beta, alpha=alpha)


# Factors and inverses, in `minitorch.linalg` ----------------------------------------------------------------


def _linalg() -> Any:
    """Return the module `minitorch.linalg`, loaded when it is used."""
    return load("minitorch.functional.linalg")


def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Return `linalg.cholesky`: the triangular L with ``input = L @ L.mT``.

    Example:
        >>> import minitorch as mt
        >>> mt.cholesky(mt.tensor([[4.0, 0.0], [0.0, 9.0]]))
        tensor([[2., 0.],
                [0., 3.]])
    """
    return _linalg().cholesky(input, upper=upper)  # type: ignore[no-any-return]


def det(input: Tensor) -> Tensor:
    """Return the determinant of a square matrix.

    Example:
        >>> import minitorch as mt
        >>> mt.det(mt.tensor([[2.0, 1.0], [0.0, 4.0]]))
        tensor(8.)
    """
    return _linalg().det(input)  # type: ignore[no-any-return]


def logdet(input: Tensor) -> Tensor:
    """Return the logarithm of the determinant, NaN if that is negative.

    Example:
        >>> import minitorch as mt
        >>> mt.logdet(mt.eye(3))
        tensor(0.)
    """
    sign, result = _linalg().slogdet(input)
    return where(sign.lt(0), math.nan, result).to(result.dtype)


def slogdet(input: Tensor) -> Any:
    """Return `linalg.slogdet`: the sign of the determinant, and the logarithm of its absolute value.

    Example:
        >>> import minitorch as mt
        >>> mt.slogdet(mt.eye(3)).logabsdet
        tensor(0.)
    """
    return _linalg().slogdet(input)


def inverse(input: Tensor) -> Tensor:
    """Return the inverse of a square matrix.

    Example:
        >>> import minitorch as mt
        >>> mt.inverse(mt.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    return _linalg().inv(input)  # type: ignore[no-any-return]


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return `linalg.pinv`: the Moore-Penrose inverse.

    Example:
        >>> import minitorch as mt
        >>> mt.pinverse(mt.tensor([[2.0], [0.0]]))
        tensor([[0.5000, 0.0000]])
    """
    return _linalg().pinv(input, rcond)  # type: ignore[no-any-return]


def matrix_power(input: Tensor, n: int) -> Tensor:
    """Return a square matrix times itself, n times.

    Example:
        >>> import minitorch as mt
        >>> mt.matrix_power(mt.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
        tensor([[1., 5.],
                [0., 1.]])
    """
    return _linalg().matrix_power(input, n)  # type: ignore[no-any-return]


def qr(input: Tensor, some: bool = True) -> Any:
    """Return `linalg.qr`, reduced if `some`, else complete.

    Example:
        >>> import minitorch as mt
        >>> mt.qr(mt.eye(2)).R.abs()
        tensor([[1., 0.],
                [0., 1.]])
    """
    return _linalg().qr(input, "reduced" if some else "complete")


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, S and V with ``input = U @ diag(S) @ V.mT``; `linalg.svd` returns V transposed.

    Example:
        >>> import minitorch as mt
        >>> mt.svd(mt.tensor([[3.0, 0.0], [0.0, 4.0]]))[1]
        tensor([4., 3.])
    """
    u, s, vh = _linalg().svd(input, not some)
    return (u, s, vh.mT) if compute_uv else (u * 0, s, vh.mT * 0)


# The operator @ -------------------------------------------------------------------------------------------


def _matmul(a: Tensor, b: Operand) -> Tensor:
    if isinstance(b, Tensor):
        return matmul(a, b)
    return matmul(a, operand(b)) if is_operand(b) else NotImplemented


def _reflected_matmul(a: Tensor, b: Operand) -> Tensor:
    return matmul(operand(b), a) if is_operand(b) else NotImplemented


OPERATORS: dict[str, Callable[..., Any]] = {"__matmul__": _matmul, "__rmatmul__": _reflected_matmul}
