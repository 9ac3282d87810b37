"""Looking for trouble: `check_nan` names the first operation that made a NaN or an infinity, in any mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .dtypes import BY_NUMPY
from .errors import NonFiniteError
from .interpreters import observing
from .ir import Primitive, Source, Spec

Array = np.ndarray[Any, Any]


def _has(test: Callable[[Array], Array], array: Array) -> bool:
    array = np.asarray(array)
    return bool(BY_NUMPY[array.dtype].is_floating_point and np.any(test(array)))


class _NonFinite:
    """The observer behind `check_nan`."""

    def __init__(self, infinities: bool) -> None:
        self.infinities = infinities

    def suspects(self, array: Array) -> bool:
        """Whether a result of a compiled kernel has a NaN or an infinity."""
        return _has(np.isnan, array) or (self.infinities and _has(np.isinf, array))

    def __call__(self, primitive: Primitive, inputs: Sequence[Array], array: Array, source: Source | None) -> None:
        dtype = BY_NUMPY[array.dtype]
        if not dtype.is_floating_point or not inputs:
            return
        nans = int(np.count_nonzero(np.isnan(array)))
        infinite = int(np.count_nonzero(np.isinf(array))) if self.infinities else 0
        if any(_has(np.isnan, operand) for operand in inputs):
            return  # passed on, not made here
        if infinite and any(_has(np.isinf, operand) for operand in inputs):
            infinite = 0
        if not nans and not infinite:
            return
        kinds = [f"{nans} NaN"] * bool(nans) + [f"{infinite} infinite"] * bool(infinite)
        first = np.argwhere(~np.isfinite(array) if self.infinities else np.isnan(array))[0].tolist()
        raise NonFiniteError(
            "MT501",
            f"{primitive.name} made {' and '.join(kinds)} among {array.size} values of {Spec(array.shape, dtype)}",
            where=f"asked for at {source}; the first is at index {first}",
            why="none of its operands had one, so it was made here, and everything computed from it inherits it",
            fix="look at the operands on that line: a log or division near 0, exp of something large, 0 * inf",
        )


@contextmanager
def check_nan(infinities: bool = True) -> Iterator[None]:
    """Stop at the first NaN (or infinity) that is computed inside the `with` block.

    In eager mode, and on the backend `interpret`, it looks at every value as it is computed, and names the operation
    and the line of the program that asked for it. Compiled code runs as it is, kernel by kernel: it looks at what each
    kernel writes, and goes through the kernel node by node if there is a NaN (or infinity); one that no result of the
    kernel shows is not found then. An operation that only passes on what its operands had (a mask of -inf, a NaN in the
    data) is not blamed.

    Args:
        infinities: whether infinities count as well.

    Raises:
        NonFiniteError: ``MT501``.

    Example:
        >>> import minitorch as mt
        >>> with mt.debug.check_nan():
        ...     mt.log(mt.tensor([1.0, -1.0]))
        Traceback (most recent call last):
        minitorch.errors.NonFiniteError: MT501: log made 1 NaN among 2 values of f32[2]...
    """
    with observing(_NonFinite(infinities)):
        yield
