"""In-place writes: one function, `assign`, in which every method with a trailing underscore ends.

Eager writes into the memory, so that all views of it see the write, as in PyTorch. A trace has no memory: a write
through a view is turned into a new value of the tensor that the view is taken from (`_WRITE_BACK`, one row per
movement), and later reads of any view of it start from there. Writes to tensors from outside the trace become outputs
of the graph.

The methods themselves (`add_`, `copy_`, ...) are made from a table in `inplace_methods`.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import primitives as P
from ..dtypes import bool_
from ..errors import AutogradError, DTypeError, ShapeError, TracingError
from ..interpreters import current, current_staging, is_grad_enabled, set_grad_enabled
from ..ir import Shape, user_source
from ..primitives.movement import folded, inverse_permutation, on_diagonal, windows_overlap
from ..tensor import Tensor, note_write
from .bits import read_as


def assign(tensor: Tensor, value: Tensor, what: str = "an in-place write") -> Tensor:
    """Write a value into a tensor, and return the tensor.

    Args:
        tensor: the target of the write.
        value: of a shape that broadcasts to the tensor's; converted to its type.
        what: the operation's name, for errors.

    Raises:
        AutogradError: ``MT401`` if a gradient would have to pass through the write.
        ShapeError: ``MT201`` if the value does not fit.
        TracingError: ``MT109`` for memory that shows one element in several places.
    """
    staging = current_staging()
    if staging is not None:
        tensor = staging.written(tensor)
    _check_autograd(tensor, value, what)
    previous = set_grad_enabled(False)
    try:
        value = _fitted(tensor, value, what)
        target = tensor
        if staging is not None:
            while target._view is not None:
                view = target._view
                value = _WRITE_BACK[view.primitive](view.base, value, **view.params)
                target = view.base
        handle = current().assign(target, value)
    finally:
        set_grad_enabled(previous)
    note_write(tensor)
    return tensor if staging is None or handle is None else handle(tensor, staging.node_of(tensor))


def _check_autograd(tensor: Tensor, value: Tensor, what: str) -> None:
    if not is_grad_enabled():
        return
    if tensor._requires_grad:
        kind = "a leaf" if tensor._root._entry is None else "a recorded result"
        raise AutogradError(
            "MT401",
            f"{what} writes to {tensor.spec}, {kind} that requires a gradient",
            where=str(user_source()),
            why="the tape keeps values, not memory: it could not tell the old value from the new one",
            fix="make a new tensor (x = x + y), or write under mt.no_grad() if the gradient shall not see it",
        )
    if value._requires_grad:
        raise AutogradError(
            "MT401",
            f"{what} writes a value that requires a gradient into {tensor.spec}, which has no place on the tape",
            where=str(user_source()),
            why="the gradient could not find its way back through the memory",
            fix="build the result with mt.where, mt.cat or mt.stack, or write value.detach()",
        )


def _fitted(tensor: Tensor, value: Tensor, what: str) -> Tensor:
    if value.dtype is not tensor.dtype:
        value = P.cast(value, dtype=tensor.dtype)
    if value.shape == tensor.shape:
        return value
    try:
        return P.expand(value, shape=tensor.shape)
    except ShapeError:
        raise ShapeError(
            "MT201",
            f"{what}: {value.spec} cannot be written to {tensor.spec}",
            why="a tensor keeps its shape; the value must have that shape or broadcast to it",
            fix="reshape the value, or make a new tensor instead",
        ) from None


# How a new value of a view becomes a new value of its base ----------------------------------------------------


def _into_slice(base: Tensor, value: Tensor, start: Shape, stop: Shape, step: Shape) -> Tensor:
    """Return the base with a part replaced: the value padded to full size, chosen where a padded mask says so."""
    padding = []
    for low, by, length, total in zip(start, step, value.shape, base.shape, strict=True):
        covered = (length - 1) * by + 1 if length else 0
        padding.append((low, total - low - covered, by - 1))
    inside = P.constant(value=True, shape=value.shape, dtype=bool_)
    mask = P.pad(inside, padding=tuple(padding), value=False)
    return P.where(mask, P.pad(value, padding=tuple(padding), value=0), base)


def _into_diagonal(base: Tensor, value: Tensor, offset: int) -> Tensor:
    rows, columns = base.shape[-2:]
    inside = on_diagonal(P.constant(value=True, shape=value.shape, dtype=bool_), rows, columns, offset)
    return P.where(inside, on_diagonal(value, rows, columns, offset), base)


def _into_windows(base: Tensor, value: Tensor, dim: int, size: int, step: int, dilation: int) -> Tensor:
    if windows_overlap(base.shape[dim], size, step, dilation):
        return _not_written(base, value)
    inside = folded(P.constant(value=1, shape=value.shape, dtype=value.dtype), base, dim, size, step, dilation)
    return P.where(P.cast(inside, dtype=bool_), folded(value, base, dim, size, step, dilation), base)


def _into_expanded(base: Tensor, value: Tensor, shape: Shape) -> Tensor:
    return P.reshape(value, shape=base.shape) if base.numel() == value.numel() else _not_written(base, value)


def _not_written(base: Tensor, value: Tensor) -> Tensor:
    raise TracingError(
        "MT109",
        f"an in-place write to {value.spec}, in which elements of {base.spec} appear more than once",
        why="one place in memory would get several values",
        fix="write to a .clone() of the expanded tensor",
    )


_WRITE_BACK: dict[P.Primitive, Callable[..., Tensor]] = {
    P.reshape: lambda base, value, shape: P.reshape(value, shape=base.shape),
    P.permute: lambda base, value, dims: P.permute(value, dims=inverse_permutation(dims)),
    P.slice_: _into_slice,
    P.diagonal: _into_diagonal,
    P.bitcast: lambda base, value, dtype: read_as(value, base.dtype),
    P.barrier: lambda base, value: P.barrier(value),
    P.expand: _into_expanded,
    P.unfold: _into_windows,
}


def checked_arithmetic(tensor: Tensor, result: Tensor, what: str) -> Tensor:
    """Assign as `assign` for arithmetic: the result's category must not be above the tensor's (no float into int).

    Raises:
        DTypeError: ``MT202``, as PyTorch.
    """
    order = {"bool": 0, "int": 1, "float": 2}
    if order[result.dtype.category] > order[tensor.dtype.category]:
        raise DTypeError(
            "MT202",
            f"{what}: the result is {result.dtype.name} and cannot be kept in a tensor of {tensor.dtype.name}",
            why="an in-place operation keeps the tensor's type",
            fix="convert the tensor first (x = x.float()), or make a new one",
        )
    return assign(tensor, result, what)
