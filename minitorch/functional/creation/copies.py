"""Copies and pickles of tensors: the value, the gradient of a leaf that is no parameter, and the memory of views.

As in PyTorch, a view is a view of the copied memory: within one `deepcopy` or one pickle, tensors that share memory go
on sharing it. A view is made again from a copy of its base, so all of the base is copied with it. Hooks and the tape
are not copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import TracedValueError
from ...interpreters import concrete, current_staging, made_by
from ...ir import Node, Primitive
from ...tensor import Tensor, View, fetched, with_value

Movement = tuple[Primitive, Mapping[str, Any]]


def _reduced(tensor: Tensor) -> tuple[Any, ...]:
    """Return the parts that a copy or a pickle is made of; a shallow copy shares the memory.

    Raises:
        TracedValueError: for a traced value, which has no number yet (``MT102``).
    """
    array = _value(tensor)
    base, movements = tensor, list[Movement]()
    while base._view is not None:
        movements.append((base._view.primitive, base._view.params))
        base = base._view.base
    movements.reverse()
    leaf = tensor._requires_grad and tensor._entry is None
    rest = leaf, tensor._grad, getattr(tensor, "__dict__", None)
    if movements and _same_memory(_moved(base, movements)._value, array):
        return _viewed, (type(tensor), base, tuple(movements), *rest)
    return _made, (type(tensor), array, *rest)


def _value(tensor: Tensor) -> np.ndarray[Any, Any]:
    staging = current_staging()
    if staging is not None and staging.defers:
        concrete(tensor, "a copy")  # runs pending operations
    array = fetched(tensor)
    if isinstance(array, np.ndarray):
        return array
    made = f", {made_by(array)}," if isinstance(array, Node) else ""
    raise TracedValueError(
        "MT102",
        f"a traced {tensor.spec}{made} has no value that could be copied or stored",
        why="it stands for a value of a program that runs later",
        fix="call x.clone() for a copy within the program, or copy what the compiled function returns",
    )


def _moved(base: Tensor, movements: tuple[Movement, ...] | list[Movement]) -> Tensor:
    """Return a view of a tensor, by the movements one after another."""
    for primitive, params in movements:
        view = with_value(primitive.evaluate(fetched(base), **params))
        view._view = View(base, primitive, params, None)
        base = view
    return base


def _same_memory(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    return one.__array_interface__ == other.__array_interface__


def _made(kind: type[Tensor], array: Any, leaf: bool, grad: Tensor | None, attributes: Any) -> Tensor:
    """Return a tensor of these parts."""
    tensor = kind.__new__(kind)
    tensor._hold(array, leaf)
    tensor._grad = grad
    if attributes:
        vars(tensor).update(attributes)
    return tensor


def _viewed(kind: type[Tensor], base: Tensor, movements: tuple[Movement, ...], *rest: Any) -> Tensor:
    """Return a view of a tensor, with these parts."""
    view = _moved(base, movements)
    tensor = _made(kind, view._value, *rest)
    tensor._view = view._view
    return tensor


OPERATORS = {"__reduce__": _reduced}
