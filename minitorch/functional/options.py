"""Options of functions: numbers, sizes, dimensions and tensors within bounds, checked, and brought into one form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

from .. import dtypes, interpreters
from ..errors import DTypeError, by_name
from ..interpreters import current_staging
from ..ir import MOST, Shape
from ..primitives import check
from ..sizes import hint_of, is_symbolic
from ..tensor import Batched, Tensor, View

Ints = int | Sequence[int]

# Numbers ------------------------------------------------------------------------------------------------------


def is_traced(value: Any) -> bool:
    """Return whether an option is a tensor without one known value: while a graph is recorded, and within vmap."""
    return isinstance(value, Tensor) and (current_staging() is not None or isinstance(value._value, Batched))


def equals(value: Any, known: float) -> bool:
    """Return whether an option is known to equal a number; a traced one is not, and takes part in the computation."""
    return not is_traced(value) and bool(value == known)


def as_int(value: Any) -> int:
    """Return a value as an int, by its `__index__`; a symbolic size stays as it is.

    Raises:
        TypeError: if it is not an int.
    """
    if is_symbolic(value):
        return value  # type: ignore[no-any-return]
    if not hasattr(value, "__index__"):
        raise TypeError(f"an int is needed here, not {type(value).__name__}: {value!r:.60}")
    return index(value)


def real(what: str, value: Any) -> float:
    """Return a number given as an option, as a float.

    Args:
        what: the function and the option, for the beginning of the message.
        value: a number, or a tensor of one element.

    Raises:
        TypeError: for anything else.
    """
    if not hasattr(value, "__float__"):
        raise TypeError(f"{what} is a number, not {type(value).__name__}: {value!r}")
    return float(value)


def probability(what: str, value: Any) -> float:
    """Return a number from 0 to 1 given as an option.

    Raises:
        TypeError: if it is not a number.
        ValueError: if it is outside that range, or NaN.
    """
    if is_traced(value):
        traced: float = value
        return traced
    number = real(what, value)
    if not 0 <= number <= 1:
        raise ValueError(f"{what} is a probability, from 0 to 1, not {number}")
    return number


def whole(what: str, value: Any) -> int:
    """Return an int given as an option: a count or a length.

    Raises:
        TypeError: if it is not an int.
        ValueError: if it is negative.
    """
    try:
        count = as_int(value)
    except TypeError:
        raise TypeError(f"{what} is an int, not {type(value).__name__}: {value!r}") from None
    if count < 0:
        raise ValueError(f"{what} cannot be negative: {count}")
    return count


# Sizes and dimensions -----------------------------------------------------------------------------------------


def ints(values: tuple[Any, ...], named: Any = None) -> tuple[int, ...]:
    """Return ints that were given one by one, or as one tuple or list, perhaps by name."""
    if named is not None:
        values = (named,)
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = tuple(values[0])
    return tuple([as_int(value) for value in values])


def as_shape(name: str, size: tuple[Any, ...]) -> Shape:
    """Return a shape given as ``f(2, 3)`` or ``f((2, 3))``."""
    lengths = size[0] if len(size) == 1 and isinstance(size[0], Sequence) else size
    if not all(hasattr(length, "__index__") for length in lengths):
        raise TypeError(f"{name}: a size is made of ints, not {tuple(lengths)!r}")
    shape = tuple(map(as_int, lengths))
    if any(length < 0 for length in shape):
        raise ValueError(f"{name}: a length cannot be negative: {shape}")
    if math.prod([length or 1 for length in hint_of(shape)]) >= MOST:
        raise ValueError(f"{name}: {list(shape)} are more elements than an address has bytes: make it smaller")
    return shape


def wrap_dim(dim: int, ndim: int) -> int:
    """Return a dimension counted from 0; negative ones count from the end. A 0-dimensional tensor has dims 0 and -1.

    Raises:
        IndexError: if there is no such dimension.
    """
    length = max(ndim, 1)
    try:
        wrapped = dim.__index__()
    except AttributeError:
        raise TypeError(f"a dimension is an int, not {type(dim).__name__}: {dim!r}") from None
    if not -length <= wrapped < length:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-length}, {length - 1}], but got {dim})"
        )
    return wrapped % length


def wrap_dims(dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Return dimensions as a sorted tuple, counted from 0; None stands for all of them.

    Raises:
        IndexError: if there is no such dimension, or one is named twice.
    """
    if dim is None:
        return tuple(range(ndim))
    dims = [wrap_dim(each, ndim) for each in (dim if isinstance(dim, Sequence) else (dim,))]
    if len(set(dims)) != len(dims):
        raise IndexError(f"a dimension appears more than once in dim={dim}")
    return tuple(sorted(dims)) if ndim else ()


# Tensors ------------------------------------------------------------------------------------------------------


def require_tensor(name: str, argument: str, value: object) -> None:
    """Refuse anything but a tensor.

    Raises:
        TypeError: naming the function and its argument.
    """
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}: {argument} is a tensor, not {type(value).__name__}; make one with minitorch.tensor(...)"
        )


def require_number(x: Tensor, name: str) -> None:
    """Refuse bools, as PyTorch does where arithmetic makes no sense for them.

    Raises:
        DTypeError: ``MT202``.
    """
    if x.dtype is dtypes.bool_:
        raise DTypeError("MT202", f"{name} of bool tensors", fix="convert them first, e.g. with x.int()")


def require_float(x: Tensor, name: str) -> None:
    """Refuse integers where the result would have to be rounded to one.

    Raises:
        DTypeError: ``MT202``.
    """
    if not x.dtype.is_floating_point:
        raise DTypeError(
            "MT202",
            f"{name} of a tensor of {x.dtype.name}",
            why="the result is not an integer, and the type to compute it in is yours to choose",
            fix=f"convert it first: {name}(x.float())",
        )


def checked(what: str, x: Tensor, low: float, high: float, error: str = "ValueError") -> Tensor:
    """Check that a tensor's elements are in a range. The result replaces the tensor, so that a graph checks it, too.

    Args:
        what: the function and its argument, for the beginning of the message.
        low, high: the least and the largest number of the range.
        error: the class, of `minitorch.primitives.checking.ERRORS`.

    Raises:
        ValueError, IndexError: for an element out of range, or NaN; in a recording, whenever the recorded program runs.
    """
    params: dict[str, Any] = {"low": low, "high": high, "what": by_name(what), "error": error}
    if isinstance(x._value, Batched):
        return check(x, **params)
    if (staging := current_staging()) is not None:
        result = check(x, **params)
        result._view = View(x, check, params, staging.node_of(x._root))  # in eager mode x itself: a later write counts
        return result
    check.infer(x.spec, **params)
    check.evaluate(interpreters.concrete(x, what), **params)
    return x
