"""Linear algebra under the names of `torch.linalg`: factors of matrices, norms, inverses and solutions.

Factors are computed by LAPACK (the primitive `decompose`); gradients are formulas of the factors, in tensor operations.
Matrices are the last two dimensions, those before are batches; types are float32 and float64.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import primitives as P
from ..autograd import Context, Function
from ..dtypes import DType
from ..errors import AutogradError, ShapeError
from ..interpreters import broadcast_shapes
from ..primitives.decomposition import results
from ..tensor import Tensor
from .arguments import public
from .creation.creation import eye, zeros
from .movement.arranging import diag_embed
from .movement.parts import diagonal, part
from .movement.selection import where
from .movement.shaping import movedim
from .options import as_int
from .reducing import linalg as products
from .reducing import reductions
from .reducing.contraction import check_types

LinAlgError = np.linalg.LinAlgError

__all__ = [
    "cholesky", "cond", "cross", "det", "eigh", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd",
    "svdvals", "vecdot", "vector_norm",
]  # fmt: skip


def _factors(routine: str, *xs: Tensor) -> tuple[Tensor, ...]:
    """Return the results of a routine of several results."""
    packed, start, found = P.decompose(*xs, routine=routine), 0, []
    batch = packed.shape[:-1]
    for shape in results(routine, xs[0].shape):
        stop = start + functools.reduce(lambda a, b: a * b, shape, 1)
        found.append(P.reshape(part(packed, packed.ndim - 1, start, stop), shape=(*batch, *shape)))
        start = stop
    return tuple(found)


# Factors --------------------------------------------------------------------------------------------------


class _Cholesky(Function):
    """Gradient of Murray, "Differentiation of the Cholesky decomposition", arXiv:1602.07527, section 3.1."""

    @staticmethod
    def forward(ctx: Context, a: Tensor) -> Tensor:
        factor = P.decompose(a, routine="cholesky")
        ctx.save_for_backward(factor)
        return factor

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> Tensor:
        (factor,) = ctx.saved_tensors
        inside = (factor.mT @ cotangents[0]).tril()
        inside = inside - diag_embed(diagonal(inside, 0, -2, -1)) * 0.5
        found = solve(factor.mT, solve(factor.mT, inside).mT)
        return (found + found.mT) * 0.5


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """Return the lower triangular L with ``A = L @ L.mT`` of a symmetric positive definite matrix; or its transpose.

    Raises:
        LinAlgError: if a matrix is not positive definite.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.cholesky(mt.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    factor: Tensor = _Cholesky.apply(A)
    return factor.mT if upper else factor


class _Eigen(Function):
    """Gradient of Giles, "An extended collection of matrix derivative results" (2008), section 3.1."""

    @staticmethod
    def forward(ctx: Context, a: Tensor) -> tuple[Tensor, ...]:
        found = _factors("eigh", a)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*found)
        return found

    @staticmethod
    def backward(ctx: Context, *cotangents: Any) -> Tensor:
        values, vectors = ctx.saved_tensors
        by_values, by_vectors = cotangents
        inside: Any = 0 if by_values is None else diag_embed(by_values)
        if by_vectors is not None:
            gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
            inside = inside + _off_diagonal(_skew(vectors.mT @ by_vectors), gaps) * 0.5
        result: Tensor = vectors @ inside @ vectors.mT
        return result


def _off_diagonal(x: Tensor, gaps: Tensor) -> Tensor:
    """Divide a matrix by another one, with zeros on the diagonal."""
    on_it = eye(x.shape[-1]).bool()
    return where(on_it, 0.0, x / where(on_it, 1.0, gaps).to(x.dtype)).to(x.dtype)


class Eigen(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eigh(A: Tensor, UPLO: str = "L") -> Eigen:
    """Return the eigenvalues of a symmetric matrix, in rising order, and its eigenvectors as columns.

    Args:
        A: symmetric matrices.
        UPLO: the triangle that is read, ``"L"`` or ``"U"``.

    Gradients through the vectors are those of a loss that does not depend on their signs, for values that differ.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.eigh(mt.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
        tensor([1., 3.])
    """
    return Eigen(*_Eigen.apply(A if UPLO == "L" else A.mT))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of a symmetric matrix, in rising order.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.eigvalsh(mt.tensor([[2.0, 1.0], [1.0, 2.0]]))
        tensor([1., 3.])
    """
    return eigh(A, UPLO).eigenvalues


class _QR(Function):
    """Gradient of Roberts and Roberts, "QR and LQ decomposition matrix backpropagation", arXiv:2009.10071."""

    @staticmethod
    def forward(ctx: Context, a: Tensor, routine: str) -> tuple[Tensor, ...]:
        found = _factors(routine, a)
        ctx.save_for_backward(*found)
        return found

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> tuple[Tensor, None]:
        q, r = ctx.saved_tensors
        by_q, by_r = cotangents
        rows, columns = r.shape[-2:]
        if rows > columns:
            raise AutogradError(
                "MT405",
                f'qr: no gradient for mode="complete" of matrices with more rows than columns, {rows}×{columns}',
                why="the columns of Q beyond those of A are any that are orthonormal to them, no function of A",
                fix='write mode="reduced", whose factors have a gradient',
            )
        if rows < columns:  # the first columns are factorised, and the others turned alongside
            inside = q.mT @ by_q - by_r @ r.mT
            square = part(r, r.ndim - 1, 0, rows)
            turned = solve(square, (inside - inside.mT).tril().mT).mT
            rest = zeros(*turned.shape[:-1], columns - rows, dtype=turned.dtype)
            return q @ (P.concatenate(turned, rest, dim=turned.ndim - 1) + by_r), None
        inside = (by_r @ r.mT - q.mT @ by_q).triu()
        inside = inside + inside.mT - diag_embed(diagonal(inside, 0, -2, -1))
        return solve(r, (by_q + q @ inside).mT).mT, None


class QR(NamedTuple):
    """Orthonormal columns, and an upper triangular matrix."""

    Q: Tensor
    R: Tensor


def qr(A: Tensor, mode: str = "reduced") -> QR:
    """Return Q with orthonormal columns and an upper triangular R, with ``A = Q @ R``.

    Args:
        A: matrices, m x n.
        mode: ``"reduced"`` (min(m, n) columns), ``"complete"`` (m columns), or ``"r"`` (Q is left out, and empty).

    Example:
        >>> import minitorch as mt
        >>> Q, R = mt.linalg.qr(mt.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> R.abs()
        tensor([[5.0000, 2.2000],
                [0.0000, 0.4000]])
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f'qr: mode is "reduced", "complete" or "r", not {mode!r}')
    found = QR(*_QR.apply(A, "qr_complete" if mode == "complete" else "qr"))
    return QR(zeros(0, dtype=A.dtype), found.R) if mode == "r" else found


class _SVD(Function):
    """Gradient of Townsend, "Differentiating the singular value decomposition" (2016)."""

    @staticmethod
    def forward(ctx: Context, a: Tensor, routine: str) -> tuple[Tensor, ...]:
        found = _factors(routine, a)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*found)
        return found

    @staticmethod
    def backward(ctx: Context, *cotangents: Any) -> tuple[Tensor, None]:
        u, s, vh = ctx.saved_tensors
        by_u, by_s, by_vh = cotangents
        k = s.shape[-1]
        m, n = u.shape[-2], vh.shape[-1]
        u, vh = part(u, u.ndim - 1, 0, k), part(vh, vh.ndim - 2, 0, k)
        by_u = None if by_u is None else part(by_u, u.ndim - 1, 0, k)
        by_vh = None if by_vh is None else part(by_vh, vh.ndim - 2, 0, k)
        squares = (s * s).unsqueeze(-2) - (s * s).unsqueeze(-1)
        row, column = s.unsqueeze(-2), s.unsqueeze(-1)
        inside: Any = 0 if by_s is None else diag_embed(by_s)
        if by_u is not None:
            inside = inside + _off_diagonal(_skew(u.mT @ by_u), squares) * row
        if by_vh is not None:
            inside = inside + column * _off_diagonal(_skew(vh @ by_vh.mT), squares)
        found = u @ inside @ vh
        if by_u is not None and m > k:
            beside = by_u / row
            found = found + (beside - u @ (u.mT @ beside)) @ vh
        if by_vh is not None and n > k:
            beside = by_vh / column
            found = found + u @ (beside - beside @ vh.mT @ vh)
        return found, None


def _skew(x: Tensor) -> Tensor:
    return x - x.mT


class SVD(NamedTuple):
    """Left singular vectors as columns, singular values, and right singular vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """Return the singular value decomposition ``A = U @ diag(S) @ Vh``, with values in falling order.

    Args:
        A: matrices, m x n.
        full_matrices: whether U is m x m and Vh n x n; gradients then pass through their first min(m, n) vectors.
        driver: without effect.

    Gradients through vectors are those of a loss that does not depend on their signs, for values that differ.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.svd(mt.tensor([[3.0, 0.0], [0.0, 4.0]])).S
        tensor([4., 3.])
    """
    return SVD(*_SVD.apply(A, "svd_full" if full_matrices else "svd"))


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Return the singular values, in falling order.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.svdvals(mt.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor([4., 3.])
    """
    return svd(A, full_matrices=False).S


# Inverses and solutions -----------------------------------------------------------------------------------


class _Inverse(Function):
    @staticmethod
    def forward(ctx: Context, a: Tensor) -> Tensor:
        found = P.decompose(a, routine="inv")
        ctx.save_for_backward(found)
        return found

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> Tensor:
        (found,) = ctx.saved_tensors
        result: Tensor = -(found.mT @ cotangents[0] @ found.mT)
        return result


def inv(A: Tensor) -> Tensor:
    """Return the inverse of a square matrix.

    Raises:
        LinAlgError: if a matrix is singular.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.inv(mt.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    result: Tensor = _Inverse.apply(A)
    return result


class _Determinant(Function):
    @staticmethod
    def forward(ctx: Context, a: Tensor) -> Tensor:
        found = P.decompose(a, routine="det")
        ctx.save_for_backward(a, found)
        return found

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> Tensor:
        a, found = ctx.saved_tensors
        invertible = where(found.eq(0)[..., None, None], eye(a.shape[-1], dtype=a.dtype), a)
        result: Tensor = (cotangents[0] * found)[..., None, None] * inv(invertible).mT
        return result


def det(A: Tensor) -> Tensor:
    """Return the determinant of a square matrix; its gradient takes the inverse, and is 0 where the determinant is.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.det(mt.tensor([[2.0, 1.0], [0.0, 4.0]]))
        tensor(8.)
    """
    result: Tensor = _Determinant.apply(A)
    return result


class _LogDeterminant(Function):
    @staticmethod
    def forward(ctx: Context, a: Tensor) -> tuple[Tensor, ...]:
        found = _factors("slogdet", a)
        ctx.mark_non_differentiable(found[0])
        ctx.save_for_backward(a)
        return found

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> Tensor:
        (a,) = ctx.saved_tensors
        result: Tensor = cotangents[1][..., None, None] * inv(a).mT
        return result


class LogDeterminant(NamedTuple):
    """Sign of a determinant, and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


def slogdet(A: Tensor) -> LogDeterminant:
    """Return the sign of the determinant, and the logarithm of its absolute value.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.slogdet(mt.tensor([[1.0, 0.0], [0.0, -1.0]])).sign
        tensor(-1.)
    """
    return LogDeterminant(*_LogDeterminant.apply(A))


class _Solution(Function):
    @staticmethod
    def forward(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
        found = P.decompose(a, b, routine="solve")
        ctx.save_for_backward(a, found)
        return found

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> tuple[Tensor, Tensor]:
        a, found = ctx.saved_tensors
        by_b = solve(a.mT, cotangents[0])
        return -(by_b @ found.mT), by_b


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Return X with ``A @ X = B`` (or ``X @ A = B`` if not `left`), for a square A.

    Args:
        A: square matrices.
        B: matrices; or vectors, of the shape of A without its last dimension. Batches broadcast.
        left: whether A is on the left.

    Raises:
        LinAlgError: if a matrix is singular.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.solve(mt.tensor([[2.0, 0.0], [0.0, 4.0]]), mt.tensor([2.0, 2.0]))
        tensor([1.0000, 0.5000])
    """
    if not left:
        return solve(A.mT, B.mT).mT
    if A.ndim < 2 or not B.ndim:
        raise ShapeError("MT201", f"solve: {A.spec} and {B.spec} do not fit")
    check_types("solve", A, B)
    is_vector = B.ndim == 1 or B.shape == A.shape[:-1]
    b = B.unsqueeze(-1) if is_vector else B
    a = A
    if a.shape[:-2] != b.shape[:-2]:
        batch = broadcast_shapes((a[..., 0, 0], b[..., 0, 0]))
        a, b = (x.expand(*batch, *x.shape[-2:]) for x in (a, b))
    result: Tensor = _Solution.apply(a, b)
    return result.squeeze(-1) if is_vector else result


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Return `solve` of one triangle of a matrix.

    Args:
        A: square matrices.
        B: matrices.
        upper: whether the upper triangle is read, and not the lower one.
        left: whether A is on the left.
        unitriangular: whether ones are taken for its diagonal.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.solve_triangular(mt.tensor([[2.0, 9.0], [1.0, 1.0]]), mt.tensor([[2.0], [3.0]]), upper=False)
        tensor([[1.],
                [2.]])
    """
    triangle = A.triu() if upper else A.tril()
    if unitriangular:
        triangle = where(eye(A.shape[-1]).bool(), 1.0, triangle).to(A.dtype)
    return solve(triangle, B, left=left)


class _Pseudoinverse(Function):
    """Gradient of Golub and Pereyra, "The differentiation of pseudo-inverses" (1973), theorem 4.3."""

    @staticmethod
    def forward(ctx: Context, a: Tensor, atol: Any, rtol: Any) -> Tensor:
        u, s, vh = _factors("svd", a)
        counts = s > _tolerance(a, s, atol, rtol)
        found = vh.mT @ (where(counts, 1 / where(counts, s, 1.0), 0.0).to(a.dtype).unsqueeze(-1) * u.mT)
        ctx.save_for_backward(a, found)
        return found

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> tuple[Tensor, None, None]:
        a, p = ctx.saved_tensors
        g, ph = cotangents[0], p.mT
        first, second = ph @ p @ g.mT, g.mT @ p @ ph
        return first - first @ p @ a + second - a @ p @ second - ph @ g @ ph, None, None


def _tolerance(a: Tensor, s: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Return the singular value up to which one counts as 0."""
    if rtol is None:
        rtol = float(np.finfo(a.dtype.numpy).eps) * max(a.shape[-2:]) if atol is None else 0.0
    least: Tensor = (s.amax(-1, keepdim=True) * rtol).clamp(min=0.0 if atol is None else atol)
    return least


def pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """Return the Moore-Penrose inverse.

    Args:
        A: matrices, m x n.
        rcond: another name of `rtol`.
        hermitian: without effect.
        atol: the singular value up to which one counts as 0.
        rtol: the same, as a share of the largest; by default the precision of the type times max(m, n).

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.pinv(mt.tensor([[2.0], [0.0]]))
        tensor([[0.5000, 0.0000]])
    """
    result: Tensor = _Pseudoinverse.apply(A, atol, rtol if rcond is None else rcond)
    return result


class LeastSquares(NamedTuple):
    """Solution, the sums of the squares of what is left, and the number of independent rows."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> LeastSquares:
    """Return the X of least norm among those that make ``A @ X - B`` shortest.

    Args:
        A: matrices, m x n.
        B: matrices, m x k, or vectors of length m.
        rcond: the share of the largest singular value up to which one counts as 0.
        driver: without effect.

    Returns:
        The solution, the squared lengths of the columns of ``A @ X - B`` (empty unless m > n), the rank, and nothing.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.lstsq(mt.tensor([[2.0], [0.0]]), mt.tensor([[3.0], [1.0]])).solution
        tensor([[1.5000]])
    """
    is_vector = B.ndim == A.ndim - 1
    b = B.unsqueeze(-1) if is_vector else B
    found = pinv(A, rcond) @ b
    rest = A @ found - b
    empty = zeros(0, dtype=A.dtype)
    residuals = (rest * rest).sum(-2) if A.shape[-2] > A.shape[-1] else empty
    return LeastSquares(found.squeeze(-1) if is_vector else found, residuals, matrix_rank(A, rtol=rcond), empty)


def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """Return the number of singular values that do not count as 0; options as in `pinv`, `tol` for `atol`.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.matrix_rank(mt.ones(3, 3))
        tensor(1)
    """
    s = svdvals(A.detach())
    return (s > _tolerance(A, s, atol if tol is None else tol, rtol)).sum(-1)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """Return a square matrix times itself, n times; of a negative n, the inverse.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.matrix_power(mt.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
        tensor([[1., 5.],
                [0., 1.]])
    """
    n = as_int(n)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError("MT201", f"matrix_power: {A.spec} is no square matrix")
    if n < 0:
        A, n = inv(A), -n
    if n == 0:
        return P.expand(eye(A.shape[-1], dtype=A.dtype), shape=A.shape)
    square, result = A, None
    while n:
        if n & 1:
            result = square if result is None else result @ square
        n >>= 1
        square = square @ square if n else square
    assert result is not None
    return result


# Norms and products ---------------------------------------------------------------------------------------


def vector_norm(
    x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Return the `ord`-norm of the elements, of all or along some dimensions.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.vector_norm(mt.tensor([3.0, -4.0])), mt.linalg.vector_norm(mt.tensor([3.0, -4.0]), 1)
        (tensor(5.), tensor(7.))
    """
    return reductions.norm(x if dtype is None else x.to(dtype), ord, dim, keepdim)


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Return a norm of matrices.

    Args:
        A: the matrices.
        ord: ``"fro"`` (all elements as a vector), ``"nuc"`` (the sum of the singular values), 2 or -2 (the largest or
            the least of these), 1 or -1 (of the sums of columns), ``inf`` or ``-inf`` (of those of rows).
        dim: the dimensions of rows and columns.
        keepdim: whether they stay, with length 1.
        dtype: the type to compute in.

    Example:
        >>> import minitorch as mt
        >>> A = mt.tensor([[3.0, 0.0], [0.0, 4.0]])
        >>> mt.linalg.matrix_norm(A), mt.linalg.matrix_norm(A, "nuc"), mt.linalg.matrix_norm(A, 1)
        (tensor(5.), tensor(7.), tensor(4.))
    """
    x = A if dtype is None else A.to(dtype)
    if ord == "fro":
        return reductions.norm(x, 2, tuple(dim), keepdim)
    x = movedim(x, tuple(dim), (-2, -1))
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        result = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
    elif ord in (1, -1, float("inf"), -float("inf")):
        sums = x.abs().sum(-2 if abs(ord) == 1 else -1)
        result = sums.amax(-1) if ord > 0 else sums.amin(-1)
    else:
        raise ValueError(f'matrix_norm: ord is "fro", "nuc", 1, -1, 2, -2, inf or -inf, not {ord!r}')
    return movedim(result[..., None, None], (-2, -1), tuple(dim)) if keepdim else result


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return `vector_norm`, or `matrix_norm` for two dimensions and an `ord`.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.norm(mt.tensor([[3.0, 0.0], [0.0, 4.0]])), mt.linalg.norm(mt.tensor([3.0, -4.0]), 1)
        (tensor(5.), tensor(7.))
    """
    two = A.ndim == 2 if dim is None else isinstance(dim, Sequence) and len(dim) == 2
    if ord is not None and two:
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """Return the condition number: a `matrix_norm` times that of the inverse; by default that of singular values.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.cond(mt.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor(2.)
    """
    if p in (None, 2, -2):
        s = svdvals(A)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return matrix_norm(A, p) * matrix_norm(inv(A), p)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of matrices, from left to right; the first and the last may be vectors.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.multi_dot([mt.ones(2, 3), mt.ones(3, 4), mt.ones(4)])
        tensor([12., 12.])
    """
    return functools.reduce(products.matmul, tensors)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return the sum of the products along a dimension.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.vecdot(mt.ones(2, 3), mt.ones(3))
        tensor([3., 3.])
    """
    return (x * y).sum(dim)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return the cross product of vectors of three elements, which lie along a dimension.

    Example:
        >>> import minitorch as mt
        >>> mt.linalg.cross(mt.tensor([1, 0, 0]), mt.tensor([0, 1, 0]))
        tensor([0, 0, 1])
    """
    return products.cross(input, other, dim)


matmul = products.matmul
globals().update({name: public(name, globals()[name], "minitorch.linalg", strict=True) for name in __all__})
