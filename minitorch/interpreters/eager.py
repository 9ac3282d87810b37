"""`Eager`, the interpreter that computes each operation when it is called."""

from __future__ import annotations

import contextvars
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import DType
from ..errors import ShapeError, TracingError
from ..ir import MOST, Node, Primitive, Spec
from ..tensor import Batched, Remote, Tensor, fetched, readable, with_value
from .provenance import leaked
from .shapes import common_shape

if TYPE_CHECKING:
    from .staging import Staging
    from .watching import Watcher


class Eager:
    """The interpreter that computes each operation with NumPy when it is called; one instance per thread."""

    recording: Staging | None = None
    watcher: Watcher | None = None
    mapped: Any = None
    call: Callable[..., Any] | None = None
    called: Callable[..., Any] | None = None
    operands: Callable[..., Any] | None = None

    def __init__(self) -> None:
        # PyTorch is silent about overflow and 0/0, NumPy warns. The setting is made in a separate context,
        # so that the user's NumPy stays as it was, at a tenth of the cost of np.errstate per operation.
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.run: Callable[..., Any] = context.run

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Evaluate the primitive now."""
        try:
            if primitive.refuses and inputs[0]._value.dtype.kind in primitive.refuses:
                raise TypeError(primitive.name)
            value = self.run(primitive.evaluate, *[tensor._value for tensor in inputs], **params)
        except Exception as error:
            if any(isinstance(tensor._value, Remote) for tensor in inputs):
                for tensor in inputs:
                    fetched(tensor)
                return self.bind(primitive, inputs, params)
            raise explained(error, primitive, inputs, params) from None
        if type(value) is not np.ndarray or not value.flags.c_contiguous:
            value = settled(value, primitive)
        return with_value(value)

    def number(self, value: bool | int | float, dtype: DType) -> Tensor:
        """Return a constant of no dimensions, by a short path: every `x * 2` makes one."""
        return with_value(self.run(np.array, value, dtype.numpy))

    def assign(self, tensor: Tensor, value: Tensor) -> None:
        """Write into the memory, which all views share."""
        array = fetched(tensor)
        if not isinstance(array, np.ndarray):
            raise leaked(tensor)
        check_writeable(array, tensor)
        np.copyto(array, fetched(value))

    def concrete(self, tensor: Tensor, what: str, code: str = "MT102", fix: str | None = None) -> np.ndarray[Any, Any]:
        """Return the array of a tensor.

        Raises:
            TracingError: for a value of an ended trace (``MT104``).
        """
        value = readable(tensor)
        if isinstance(value, np.ndarray):
            return value
        raise leaked(tensor)

    def grad_of(self, tensor: Tensor) -> Tensor | None:
        """Return ``tensor.grad``."""
        return tensor._grad

    def set_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        """Assign ``tensor.grad``."""
        tensor._grad = grad

    def callback(self, function: Callable[[list[np.ndarray[Any, Any]]], None], tensors: Sequence[Tensor]) -> None:
        """Call a function with the values of tensors now."""
        function([self.concrete(tensor, "a callback") for tensor in tensors])


def check_writeable(array: np.ndarray[Any, Any], tensor: Tensor) -> None:
    """Refuse an in-place write to memory that cannot be written.

    Raises:
        TracingError: ``MT109``.
    """
    if not array.flags.writeable:
        raise TracingError(
            "MT109",
            f"an in-place write to {tensor.spec}, whose memory cannot be written",
            why="it is an expanded view, in which elements share their place, or belongs to a read-only array",
            fix="write to a .clone() of it",
        )


def settled(value: Any, primitive: Primitive) -> np.ndarray[Any, Any]:
    """Return the result of `evaluate` as an array; results that own their memory are contiguous.

    The rule holds in every mode, so that a reshape of the result is a view in all modes or in none.
    """
    if type(value) is not np.ndarray:
        return np.asarray(value)
    if not value.flags.c_contiguous and not primitive.is_view:
        return np.ascontiguousarray(value)
    return value


def explained(
    error: Exception, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]
) -> Exception:
    """Return the error that a user sees when an evaluation failed; NumPy's own text is the last resort."""
    for tensor in inputs:
        if isinstance(tensor._value, (Node, Batched)):
            return leaked(tensor)
    try:
        specs = [tensor.spec for tensor in inputs]
        if primitive.broadcasts:
            shape = common_shape(inputs, primitive.name)
            specs = [Spec(shape, spec.dtype) for spec in specs]
        shape = primitive.infer(*specs, **params).shape
    except (ValueError, TypeError) as better:
        return better
    if math.prod(length or 1 for length in shape) >= MOST:
        return ShapeError("MT201", f"{primitive.name}: no array in memory has the shape {list(shape)}")
    return error
