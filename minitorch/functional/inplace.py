"""In-place writes: one function, `assign`, in which every method with a trailing underscore ends.

Eager writes into the memory, so that all views of it see the write, as in PyTorch. A trace has no memory: a write
through a view is turned into a new value of the tensor that the view is taken from (`_WRITE_BACK`, one row per
movement), and later reads of any view of it start from there. Writes to tensors from outside the trace become outputs
of the graph.

The methods themselves (`add_`, `copy_`, ...) are public functions whose result is written into their first argument,
one name each in `FROM_FUNCTIONS`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any

from .. import primitives as P
from ..autograd.tape import keep_read, no_primitive, refuse_overwritten
from ..dtypes import PYTHON_NUMBERS, bool_
from ..errors import AutogradError, DTypeError, ShapeError, TracingError
from ..interpreters import Staging, current, current_staging, is_grad_enabled, set_grad_enabled
from ..ir import Node, Shape, user_source
from ..primitives.movement import folded, inverse_permutation, on_diagonal, windows_overlap
from ..tensor import Batched, TapeEntry, Tensor, View, ghost, note_write, renew, with_value
from .operands import fitting, operand
from .pointwise.bits import read_as


def assign(tensor: Tensor, value: Tensor, what: str = "an in-place write") -> Tensor:
    """Write a value into a tensor, and return the tensor.

    Args:
        tensor: the target of the write.
        value: of a shape that broadcasts to the tensor's; converted to its type.
        what: the operation's name, for errors.

    Raises:
        AutogradError: ``MT401`` for a leaf that requires a gradient, and for others that the tape cannot follow.
        ShapeError: ``MT201`` if the value does not fit.
        TracingError: ``MT109`` for memory that shows one element in several places.
    """
    staging = current_staging()
    if staging is not None:
        tensor = staging.written(tensor)
    value = _fitted(tensor, value, what)
    needs = is_grad_enabled() and (value.requires_grad or tensor.requires_grad or _base(tensor).requires_grad)
    entry, reader = (_entry_of_write(tensor, value, what, staging), value._entry) if needs else (None, None)
    if reader is not None:
        keep_read(reader, tensor._root)
    target = tensor
    if staging is not None and not isinstance(tensor._value, Batched):
        previous = set_grad_enabled(False)
        try:
            while target._view is not None:
                view = target._view
                value = _WRITE_BACK[view.primitive](view.base, value, **view.params)
                target = view.base
        finally:
            set_grad_enabled(previous)
    handle = current().assign(target, value)
    note_write(tensor)
    if entry is not None:
        renew(_owner(tensor), entry, tensor._root._version - 1)
        if reader is not None:
            refuse_overwritten(reader)
    return tensor if staging is None or handle is None else handle(tensor, staging.node_of(tensor))


def _owner(tensor: Tensor) -> Tensor:
    """Return the tensor whose history a write to this one changes."""
    view = tensor._view
    return tensor if view is None or view.owner is None else view.owner


def _base(tensor: Tensor) -> Tensor:
    """Return the tensor that this one is a view of, whether or not the tape knows; a detached one is a base."""
    while (view := tensor._view) is not None and not view.is_detached:
        tensor = view.base
    return tensor


def _entry_of_write(tensor: Tensor, value: Tensor, what: str, staging: Staging | None) -> TapeEntry:
    """Return the tape's entry of a write: the owner's new value, made of its old one and the written value.

    The gradient of the old value is 0 where it was overwritten, that of the written value is the part of it there.
    """
    owner, views, at = _owner(tensor), list[tuple[P.Primitive, Mapping[str, Any]]](), tensor
    while at is not owner and at._view is not None:
        if at._view.is_foreign:
            raise _refused(
                f"{what} writes to {tensor.spec}, the result of a Function that is a view of its argument",
                why="its history is that of the Function, and not the argument's",
                fix="return a copy from forward: x.clone()",
            )
        views.insert(0, (at._view.primitive, at._view.params))
        at = at._view.base
    if owner._entry is None and owner._requires_grad:
        raise _refused(
            f"{what} writes to {tensor.spec}, {'a leaf' if owner is tensor else 'a view of a leaf'} that "
            "requires a gradient",
            why="a leaf is what the gradient is taken by: nothing comes before it that could have changed it",
            fix="make a new tensor (x = x + y), or write under mt.no_grad() if the gradient shall not see it",
        )
    if owner is not _base(tensor):
        raise _refused(
            f"{what} writes to {tensor.spec}, a view that was made under no_grad",
            why="the tape does not know of what it is a view",
            fix="make the view where gradients are recorded, or write under mt.no_grad(), too",
        )
    if (
        staging is not None
        and not staging.defers
        and (id(owner) in staging.arguments or not isinstance(owner._value, (Node, Batched)))
    ):
        raise _refused(
            f"{what} writes a value that requires a gradient into {tensor.spec}, from outside the recording",
            why="the tape of the recording ends with it, and the tensor would keep a place on it",
            fix="return the value, or write value.detach()",
        )

    def rule(cotangent: Tensor, output: Tensor, old: Tensor, value: Tensor, asked: list[bool]) -> Any:
        parts = [cotangent]
        for movement, params in views:
            parts.append(movement(parts[-1], **params))
        written = parts.pop()
        kept = P.constant(value=0, shape=written.shape, dtype=written.dtype)
        for movement, params in reversed(views) if asked[0] else ():
            kept = _WRITE_BACK[movement](parts.pop(), kept, **params)
        return [kept if asked[0] else None, written if asked[1] else None]

    primitive = P.Primitive(what, "custom", no_primitive, no_primitive, gradient=(rule,))
    return TapeEntry(primitive, (owner, value), {}, ghost(owner))


def _refused(what: str, *, why: str, fix: str) -> AutogradError:
    return AutogradError("MT401", what, where=str(user_source()), why=why, fix=fix)


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


# Methods --------------------------------------------------------------------------------------------------------------

# `name_` for each of these: the function's result, written back.
FROM_FUNCTIONS = (
    "abs", "add", "addcdiv", "addcmul", "addmm", "asin", "atan", "baddbmm", "bitwise_and", "bitwise_not",
    "bitwise_or", "bitwise_xor", "ceil", "clamp", "clamp_max", "clamp_min", "clip", "cos", "cumprod", "cumsum",
    "div", "divide", "eq", "erf", "exp", "exp2", "expm1", "fill_diagonal", "floor", "floor_divide", "fmod",
    "frac", "ge", "gt", "index_add", "index_copy", "index_fill", "le", "lerp", "log", "log10", "log1p", "log2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "masked_fill", "masked_scatter", "mul",
    "multiply", "nan_to_num", "ne", "neg", "negative", "pow", "put", "reciprocal", "relu", "remainder", "round",
    "rsqrt", "scatter", "scatter_add", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "sub", "subtract", "tan",
    "tanh", "tril", "triu", "true_divide", "trunc",
)  # fmt: skip

OPERATORS_FROM = {
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
    "__ifloordiv__": "floor_divide_",
    "__imod__": "remainder_",
    "__ipow__": "pow_",
    "__iand__": "bitwise_and_",
    "__ior__": "bitwise_or_",
    "__ixor__": "bitwise_xor_",
}


def in_place(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the in-place method of a function: its result, written into its first argument."""

    def method(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return checked_arithmetic(tensor, function(tensor, *args, **kwargs), f"{name}_")

    update_wrapper(method, function, (), ())  # `inspect.signature` shows the function's arguments
    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"Write `{name}` into the tensor itself, and return it. See `minitorch.{name}`."
    return method


# `name_` for each of these: the tensor itself has the function's view of its memory from now on.
SHAPES = ("squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze")


def reshaping(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the method that gives a tensor another shape, in place."""

    def method(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        _require_alone(tensor, f"{name}_")
        before = with_value(tensor._value)
        before._requires_grad, before._entry = tensor._requires_grad, tensor._entry
        before._view, before._version = tensor._view, tensor._version
        previous = set_grad_enabled(tensor._entry is not None)
        try:
            after = function(before, *args, **kwargs)
        finally:
            set_grad_enabled(previous)
        if after is not before:
            tensor._value, tensor._view = after._value, None if tensor._view is None else after._view
            note_write(tensor)
            if tensor._entry is not None:
                tensor._entry = after._entry
        return tensor

    update_wrapper(method, function, (), ())
    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"Give the tensor itself the shape of `{name}`, without a copy, and return it."
    return method


def detach_(self: Tensor) -> Tensor:
    """Take the tensor itself off the tape, so that it is a leaf without a gradient, and return it.

    Raises:
        AutogradError: ``MT405`` for a view, whose history is that of another tensor.

    Example:
        >>> import minitorch as mt
        >>> y = mt.ones(2, requires_grad=True) * 3
        >>> y.detach_().requires_grad
        False
    """
    if self._view is not None:
        raise AutogradError(
            "MT405",
            f"detach_ of {self.spec}, a view",
            why="its history is that of the tensor that it is a view of, and both are one memory",
            fix="x.detach() is another tensor without a history",
        )
    if self._entry is None:
        self._requires_grad = False
    else:
        _require_alone(self, "detach_")
        renew(self, None, self._version)
        note_write(self)
    return self


def _require_alone(tensor: Tensor, what: str) -> None:
    """Refuse a tensor whose shape or history others rely on.

    Raises:
        AutogradError: ``MT401`` for a leaf that requires a gradient.
        TracingError: ``MT109`` for a tensor from outside of a recording, and one that is the base of a view.
    """
    staging = current_staging()
    if tensor._entry is None and tensor._requires_grad and is_grad_enabled():
        raise _refused(
            f"{what} changes {tensor.spec}, a leaf that requires a gradient",
            why="a leaf is what the gradient is taken by: nothing comes before it that could have changed it",
            fix=f"make a new tensor (x = x.{what[:-1]}()), or write under mt.no_grad()",
        )
    reason = ""
    if staging is not None and (
        not isinstance(tensor._value, (Node, Batched))
        or id(tensor) in staging.arguments
        or tensor._value in staging.aliases
    ):
        reason = "it comes from outside of the recording, which gives others new values, and no new shapes"
    elif _is_base(tensor, staging):
        reason = "another tensor is a view of it, made of it as it was"
    if reason:
        raise TracingError(
            "MT109",
            f"{what} of {tensor.spec} in place",
            where=str(user_source()),
            why=reason,
            fix=f"make another tensor: x = x.{what[:-1]}()",
        )


def _is_base(tensor: Tensor, staging: Staging | None) -> bool:
    """Return whether there is a view of a tensor; eagerly each is an array that refers to the tensor's."""
    if staging is not None:
        made = [each() for each in staging.made]
        return any(each is not None and each._view is not None and each._view.base is tensor for each in made)
    if tensor._view is None and sys.getrefcount(tensor._value) <= 2:
        return False
    return any(isinstance(each, View) and each.base is tensor for each in gc.get_referrers(tensor))


def copy_(self: Tensor, src: Any) -> Tensor:
    """Write the elements of another tensor (or a number) into this one, converted to its type.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2).copy_(mt.tensor([1, 2]))
        tensor([1., 2.])
    """
    return assign(self, src if isinstance(src, Tensor) else operand(src, self.dtype), "copy_")


def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one number (or the value of a 0-dimensional tensor) into every element.

    Raises:
        ShapeError: ``MT201`` for a tensor with dimensions.
        DTypeError: ``MT202`` if it does not fit the tensor's type.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2).fill_(7)
        tensor([7., 7.])
    """
    if isinstance(value, PYTHON_NUMBERS):
        value = fitting("fill_", value, self.dtype)
    elif (given := operand(value)).ndim:
        raise ShapeError("MT201", f"fill_: the value is {given.spec}, not one number", fix="write copy_(value)")
    return copy_(self, value)


def zero_(self: Tensor) -> Tensor:
    """Write zero into every element.

    Example:
        >>> import minitorch as mt
        >>> mt.ones(2).zero_()
        tensor([0., 0.])
    """
    return assign(self, P.constant(value=0, shape=(), dtype=self.dtype), "zero_")


def in_place_methods(functions: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Tensor]]:
    """Return all in-place methods and operators, for the existing public functions."""
    methods: dict[str, Callable[..., Tensor]] = {"copy_": copy_, "detach_": detach_, "fill_": fill_, "zero_": zero_}
    for name in FROM_FUNCTIONS:
        if name in functions:
            methods[f"{name}_"] = in_place(name, functions[name])
    for name in SHAPES:
        if name in functions:
            methods[f"{name}_"] = reshaping(name, functions[name])
    for operator, name in OPERATORS_FROM.items():
        if name in methods:
            methods[operator] = methods[name]
    return methods
