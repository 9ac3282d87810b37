"""Which movements are views of the same memory: decided as NumPy does, also for values that are not there yet."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir import Node
from ..tensor import Tensor, View


def memory_owner(array: np.ndarray[Any, Any]) -> int:
    """The same number for arrays that may share memory: the id of the object that owns it."""
    owner: Any = array
    while True:
        lender = owner.base if isinstance(owner, np.ndarray) else owner.obj if isinstance(owner, memoryview) else None
        if lender is None:
            return id(owner)
        owner = lender


def shares_memory(base: np.ndarray[Any, Any], result: np.ndarray[Any, Any]) -> bool:
    """Whether a movement gave a view. A reshape is a copy where no strides could make it a view."""
    return result.base is base or (base.base is not None and result.base is base.base)


def reshapes_in_place(memory: np.ndarray[Any, Any], shape: tuple[int, ...]) -> bool:
    """The same for a value that is not there yet."""
    try:
        np.reshape(memory, shape, copy=False)
    except ValueError:
        return False
    return True


def layout_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """An array that lies in memory as a recorded tensor would; its elements are not there, and nobody reads them.

    Each view keeps its own, so that a long chain of them is gone through once.
    """
    missing: list[View] = []
    while isinstance(tensor._value, Node) and (view := tensor._view) is not None and view.layout is None:
        missing.append(view)
        tensor = view.base
    if isinstance(tensor._value, Node):
        known = tensor._view.layout if tensor._view is not None else None
        memory = layout_in_order(tensor.shape) if known is None else known
    else:
        memory = tensor._value
    for view in reversed(missing):
        memory = view.layout = view.primitive.evaluate(memory, **view.params)
    return memory


def layout_in_order(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """What is computed lies in order: the last dimension next to each other, and so on."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return np.lib.stride_tricks.as_strided(_ONE_BYTE, shape, strides, writeable=False)


_ONE_BYTE = np.zeros(1, np.int8)
