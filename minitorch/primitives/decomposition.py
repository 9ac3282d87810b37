"""`decompose`: routines of LAPACK, called by way of NumPy: factors of matrices, inverses, determinants and solutions.

A routine of several results has them side by side in one array, so that it runs once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import float32, float64
from ..errors import DTypeError, ShapeError
from ..ir import Primitive, Shape, Spec
from .declare import declare
from .movement import together

Array = np.ndarray[Any, Any]
Sizes = Callable[..., tuple[Shape, ...]]  # from rows, columns and the lesser of both, the shapes of the results

_of_svd = np.linalg.svd
# Of each routine the call, the shapes of its results, and whether the matrices have to be square.
ROUTINES: dict[str, tuple[Callable[..., Any], Sizes, bool]] = {
    "cholesky": (np.linalg.cholesky, lambda m, n, k: ((n, n),), True),
    "det": (np.linalg.det, lambda m, n, k: ((),), True),
    "eigh": (np.linalg.eigh, lambda m, n, k: ((n,), (n, n)), True),
    "inv": (np.linalg.inv, lambda m, n, k: ((n, n),), True),
    "qr": (np.linalg.qr, lambda m, n, k: ((m, k), (k, n)), False),
    "qr_complete": (lambda x: np.linalg.qr(x, mode="complete"), lambda m, n, k: ((m, m), (m, n)), False),
    "slogdet": (np.linalg.slogdet, lambda m, n, k: ((), ()), True),
    "solve": (np.linalg.solve, lambda m, n, k: ((n, n),), True),
    "svd": (lambda x: _of_svd(x, full_matrices=False), lambda m, n, k: ((m, k), (k,), (k, n)), False),
    "svd_full": (_of_svd, lambda m, n, k: ((m, m), (k,), (n, n)), False),
}


def results(routine: str, *shapes: Shape) -> tuple[Shape, ...]:
    """Return the shapes of a routine's results, without the batch."""
    m, n = shapes[0][-2:]
    return (shapes[1][-2:],) if routine == "solve" else ROUTINES[routine][1](m, n, min(m, n))


def _infer_decompose(x: Spec, *others: Spec, routine: str) -> Spec:
    if routine not in ROUTINES or len(others) != (routine == "solve"):
        raise ValueError(f"decompose: the routine is one of {', '.join(ROUTINES)}, of one operand, and solve of two")
    if x.dtype not in (float32, float64) or any(each.dtype is not x.dtype for each in others):
        kinds = " and ".join(str(each) for each in (x, *others))
        raise DTypeError("MT202", f"{routine}: {kinds}", why="it is for float32 or float64", fix="convert: x.float()")
    square = ROUTINES[routine][2]
    fits = x.ndim > 1 and (not square or x.shape[-1] == x.shape[-2])
    if not fits or any(each.shape[:-1] != x.shape[:-1] for each in others):
        wanted = "square matrices, or batches of them" if square else "matrices, or batches of them"
        raise ShapeError("MT201", f"{routine}: {' and '.join(map(str, (x, *others)))}", why=f"it takes {wanted}")
    found = results(routine, x.shape, *[each.shape for each in others])
    return Spec((*x.shape[:-2], *(found[0] if len(found) == 1 else (sum(map(math.prod, found)),))), x.dtype)


def _evaluate_decompose(x: Array, *others: Array, routine: str) -> Array:
    try:
        found = ROUTINES[routine][0](x, *others)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(f"{routine}: {error}") from None
    if not isinstance(found, tuple):
        return np.asarray(found)
    batch = x.shape[:-2]
    shapes = results(routine, x.shape)
    return np.concatenate(
        [np.reshape(each, (*batch, math.prod(shape))) for each, shape in zip(found, shapes, strict=True)], -1
    )


decompose: Primitive = declare(
    "decompose",
    "decomposition",
    _infer_decompose,
    _evaluate_decompose,
    variadic=True,
    refuses="biuV",
    batch=lambda *operands, **params: decompose(*together(*operands), **params),
    doc="a routine of LAPACK: cholesky, det, eigh, inv, qr, slogdet, solve, svd",
)
