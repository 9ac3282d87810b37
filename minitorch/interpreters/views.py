"""View analysis: which movements are views of the same memory, decided as NumPy does, also for recorded values.

In a trace the decision may depend on the strides of an argument. These are then a condition of the trace, as far as any
view can tell them from others (`visible_strides`).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ..ir import Node, Shape
from ..sizes import hint_of, is_symbolic
from ..tensor import Batched, Remote, Tensor, View


def memory_owner(array: np.ndarray[Any, Any]) -> int:
    """Return the id of the object that owns an array's memory; arrays that may share memory have the same one."""
    owner: Any = array
    while True:
        lender = owner.base if isinstance(owner, np.ndarray) else owner.obj if isinstance(owner, memoryview) else None
        if lender is None:
            return id(owner)
        owner = lender


def may_share(one: Any, other: Any) -> bool:
    """Return whether two values may share memory; on a device a value shares memory only with itself."""
    return one is other or bool(type(one) is type(other) is np.ndarray and np.may_share_memory(one, other))


def shares_memory(base: np.ndarray[Any, Any], result: np.ndarray[Any, Any]) -> bool:
    """Return whether a movement gave a view. A reshape is a copy where no strides make it a view."""
    return result.base is base or (base.base is not None and result.base is base.base)


def layout_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return an array with the strides of a recorded tensor; its elements do not exist, and are never read.

    Each view keeps its layout, so that a long chain of views is walked once.
    """
    missing: list[View] = []
    while isinstance(tensor._value, Node) and (view := tensor._view) is not None and view.layout is None:
        missing.append(view)
        tensor = view.base
    if isinstance(tensor._value, Batched):
        examples = layout_of(tensor._value.tensor)
        memory = examples[0] if len(examples) else _with_strides(tensor.shape, _in_order(tensor.shape))
    elif isinstance(tensor._value, (Node, Remote)):  # values outside NumPy are contiguous
        known = tensor._view.layout if tensor._view is not None else None
        memory = _layout_of_root(tensor) if known is None else known
    else:
        memory = tensor._value
    for view in reversed(missing):
        if view.primitive.kind == "movement":  # a bitcast keeps the strides
            params = {name: hint_of(value) for name, value in view.params.items()}
            memory = view.primitive.evaluate(memory, **params)
        view.layout = memory
    return memory


def _layout_of_root(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return the layout of a tensor that owns its memory: an argument's as given, a computed one's contiguous."""
    given = _given_layout(tensor)
    return _with_strides(tensor.shape, _in_order(tensor.shape) if given is None else given.strides)


def is_contiguous(tensor: Tensor) -> bool:
    """Return whether the elements of a tensor, recorded or not, are contiguous in memory."""
    if (given := _given_layout(tensor)) is not None:
        given.matters = True
    return bool(layout_of(tensor).flags.c_contiguous)


def reshape_is_view(tensor: Tensor, shape: Shape) -> bool:
    """Return whether a reshape of a tensor, recorded or not, is a view of its memory, not a copy."""
    given = _given_layout(tensor)
    if given is not None and not given.matters:
        given.matters = not _reshapes_in_place(_with_strides(tensor.shape, _apart(tensor.shape)), shape)
    return _reshapes_in_place(layout_of(tensor), shape)


def _given_layout(tensor: Tensor) -> ArgumentLayout | None:
    return getattr(tensor._root, "_layout", None)


def _reshapes_in_place(memory: np.ndarray[Any, Any], shape: Shape) -> bool:
    try:
        np.reshape(memory, hint_of(shape), copy=False)
    except ValueError:
        return False
    return True


# Layouts of arguments -------------------------------------------------------------------------------------


class ArgumentLayout:
    """The strides of an argument, kept by the tensor that stands for it in a trace.

    Attributes:
        visible: its `visible_strides`.
        strides: strides that views cannot tell from the argument's.
        matters: whether the recording depends on them.
    """

    __slots__ = ("matters", "strides", "visible")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.visible = visible_strides(array)
        self.strides = _in_order(array.shape) if self.visible is None else self.visible
        self.matters = False


def visible_strides(array: np.ndarray[Any, Any]) -> Shape | None:
    """Return an array's strides in elements, as far as views can tell them from others; None if contiguous.

    Views tell strides apart by the dimensions that a reshape can join without a copy: those where one step of the outer
    one is as far as all steps of the inner one. An outer dimension that no slice of the inner ones can reach is the
    same to all views, however far away its next element is: arrays that differ in that alone have equal strides here.

    Example:
        >>> wide, wider = np.zeros((5, 10)), np.zeros((5, 12))
        >>> visible_strides(wide[:, :3]), visible_strides(wider[:, :3]), visible_strides(wide[:, ::2])
        ((5, 1), (5, 1), (10, 2))
        >>> visible_strides(wide[:, :3].T), visible_strides(wide[2:])
        ((1, 5), None)
    """
    return None if array.flags.c_contiguous else _visible(array.shape, array.strides, array.itemsize)


def layout_text(visible: Shape | None) -> str:
    """Return a layout as text.

    Example:
        >>> layout_text(None), layout_text((1, 3))
        ('contiguous', 'strided like [1, 3]')
    """
    return "contiguous" if visible is None else f"strided like {list(visible)}"


@lru_cache(maxsize=4096)
def _visible(shape: Shape, strides: Shape, itemsize: int) -> Shape:
    """Return the smallest strides that no view can tell from the given ones, from the innermost dimension out.

    A dimension of a view has n >= 2 elements that are s apart, and lies within the span of the dimensions that it was
    taken from: (n - 1) * s <= span, so n * s <= 2 * span. No stride beyond that is ever joined with it. A dimension of
    such a stride begins a new group, within which strides keep their ratios.
    """
    moving = [axis for axis, length in enumerate(shape) if length > 1 and strides[axis]]
    found = [0] * len(shape)
    unit, span = 0, 0  # the group's smallest stride; the bytes that all dimensions so far span
    new_unit, new_span = 1, 0  # the same for the strides found, in elements
    for axis in sorted(moving, key=lambda axis: abs(strides[axis])):
        stride, steps = abs(strides[axis]), shape[axis] - 1
        if not unit:
            unit, new_unit = stride, 1 if stride == itemsize else 2  # neighbours, or not
        elif stride > 2 * span:
            unit, new_unit = stride, 2 * new_span + 1
        elif stride % unit:
            return tuple([stride // itemsize for stride in strides])  # an odd layout, which is its own kind
        new_stride = stride // unit * new_unit
        found[axis] = new_stride if strides[axis] > 0 else -new_stride
        span, new_span = span + stride * steps, new_span + new_stride * steps
    return tuple(found)


def _in_order(shape: Shape) -> Shape:
    """Return the strides of a contiguous array, in elements."""
    return tuple([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])


def _apart(shape: Shape) -> Shape:
    """Return strides with which no two dimensions can be joined, in any order."""
    return tuple([math.prod([2 * length for length in shape[axis + 1 :]]) for axis in range(len(shape))])


def _with_strides(shape: Shape, strides: Shape) -> np.ndarray[Any, Any]:
    for length in shape:
        if is_symbolic(length):  # a dimension of length 1 joins any other: that is a question about the length
            bool(length == 1)
    return np.lib.stride_tricks.as_strided(_ONE_BYTE, hint_of(shape), hint_of(strides))


_ONE_BYTE = np.frombuffer(b"0", np.int8)  # read-only, and so is every view of it
