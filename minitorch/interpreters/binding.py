"""`bind`: apply a primitive in the current interpreter, and record it on the tape if a gradient may be asked for."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..dtypes import DType
from ..ir import Primitive
from ..tensor import Batched, TapeEntry, Tensor, View, ghost, twin_of, up_to_date
from .broadcasting import expand_operands
from .state import current_staging, thread
from .views import reshape_is_view, shares_memory

NO_PARAMS: Mapping[str, Any] = MappingProxyType({})


def bind(primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any] = NO_PARAMS) -> Tensor:
    """Apply a primitive to tensors in the current interpreter, and record it on the tape if needed."""
    state = thread
    interpreter = state.interpreter
    if interpreter.operands is not None:
        inputs = interpreter.operands(primitive, inputs)
    needs_gradient = False
    records = state.grad_enabled and primitive.gradient is not None
    if records:
        for tensor in inputs:
            view = tensor._view
            if view is not None and view.owner is not None and view.owner._entry is not view.seen:
                up_to_date(tensor)
            if tensor._requires_grad:
                needs_gradient = True
        if needs_gradient and primitive.broadcasts:
            inputs = expand_operands(inputs, primitive.name, recorded_only=True)
    output = interpreter.bind(primitive, inputs, params)
    if primitive.is_view:
        base, value = inputs[0], output._value
        staging = interpreter.recording
        if type(value) is Batched:
            if value.tensor._root is base._value.tensor._root:
                output._view = View(base, primitive, params, None, records)
        elif staging is not None:
            if primitive.name != "reshape" or reshape_is_view(base, params["shape"]):
                output._view = View(base, primitive, params, staging.node_of(base._root), records)
        elif primitive.name != "reshape" or shares_memory(base._value, value):
            output._view = View(base, primitive, params, None, records)
    if needs_gradient and output.dtype.is_floating_point:
        saved = twin(output) if primitive.saves_output else ghost(output)  # not `output`, which would make a cycle
        output._requires_grad = saved._requires_grad = True
        output._entry = TapeEntry(primitive, inputs, params, saved)
    return output


def number(value: bool | int | float, dtype: DType) -> Tensor:
    """Return a constant of no dimensions."""
    return thread.interpreter.number(value, dtype)


def twin(tensor: Tensor) -> Tensor:
    """Return a tensor with the same value and no history; a recording under way knows it as the same."""
    other = twin_of(tensor)
    staging = current_staging()
    if staging is not None:
        staging.made.append(weakref.ref(other))
        if hasattr(tensor, "_layout"):
            other._layout = tensor._layout
    return other


def _call(primitive: Primitive, *inputs: Tensor, **params: Any) -> Tensor:
    return bind(primitive, inputs, params)


Primitive.__call__ = _call  # type: ignore[method-assign, assignment]


def concrete(tensor: Tensor, what: str, code: str = "MT102", fix: str | None = None) -> np.ndarray[Any, Any]:
    """Return the array of a tensor for reading; `what` names the operation that needs it, for the error message.

    Raises:
        TracedValueError: while a graph is recorded that runs later (``MT101``, ``MT102`` or ``MT103``).
        TracingError: for a value of an ended trace (``MT104``).
    """
    return thread.interpreter.concrete(tensor, what, code, fix)


def callback(function: Callable[[list[np.ndarray[Any, Any]]], None], tensors: Sequence[Tensor]) -> None:
    """Call a function with the values of some tensors: now, or, in a recording, whenever the recorded program runs.

    Callbacks are called in program order.
    """
    thread.interpreter.callback(function, tensors)
