"""`Bounded`: eager mode that refuses a value for which there is no memory, before it is computed.

The shape rule of a primitive says how large its result is. Arrays with memory of their own are counted while they live;
views take none, and the operands that a primitive copies for itself are not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from minitorch.interpreters import Layer, shares_memory
from minitorch.interpreters.shapes import common_shape
from minitorch.interpreters.state import thread
from minitorch.ir import Primitive, Spec
from minitorch.tensor import Tensor

SMALL = 1024
"""Bytes of an array that is not counted: it weighs about as much as the objects around it."""

FREE = 1 << 20
"""Bytes of a result whose shape is not computed beforehand, which would take as long as small operations do."""

INVENTING = ("pad", "constant", "iota", "random_bits")
"""Primitives whose results may have more elements than all combinations of the operands'."""

Refuse = Callable[[str], NoReturn]


class Bounded(Layer):
    """Eager mode within a bound of memory.

    Args:
        most: bytes of all arrays together that are made and still live.
        refuse: called with what asks for more; raises.

    Attributes:
        held: bytes of the arrays that live.
    """

    def __init__(self, most: int, refuse: Refuse) -> None:
        self.most = most
        self.refuse = refuse
        self.held = 0
        self.alive: dict[int, tuple[ref[Any], int]] = {}

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Evaluate the primitive now, if there is memory for its result."""
        bound = 8  # bytes of one element; a result has an element for each combination of the operands', at most
        for tensor in inputs:
            bound *= getattr(tensor._value, "size", 0) + 1  # a value on a device is not this memory's
        if bound > FREE or primitive.name in INVENTING:
            self._check(primitive, inputs, params)
        output = self.below.bind(primitive, inputs, params)
        self._hold(primitive, inputs, output._value)
        if self.held > self.most:
            self._refuse(primitive, output.spec)
        return output

    def _check(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> None:
        """Refuse a result that there is no memory for; a view takes none, but a reshape may be a copy."""
        if primitive.is_view and (primitive.name != "reshape" or inputs[0]._value.flags.c_contiguous):
            return
        spec = _inferred(primitive, inputs, params)
        if spec is not None and spec.nbytes > self.most - self.held:
            self._refuse(primitive, spec)

    def _refuse(self, primitive: Primitive, spec: Spec) -> NoReturn:
        self.refuse(
            f"{primitive.name} gives {spec}, of {spec.nbytes:,} bytes; "
            f"{self.held:,} are taken, and {self.most:,} is all that there is"
        )

    def _hold(self, primitive: Primitive, inputs: tuple[Tensor, ...], value: Any) -> None:
        if type(value) is not np.ndarray or value.nbytes <= SMALL:
            return
        if primitive.is_view:
            if value.base is None or (primitive.name != "reshape" or shares_memory(inputs[0]._value, value)):
                return
            value = value.base  # it could not be a view: NumPy has made a copy, and a view of that
        if type(value) is np.ndarray:
            self.held += value.nbytes
            reference = ref(value, self._freed)
            self.alive[id(reference)] = reference, value.nbytes

    def _freed(self, reference: Any) -> None:
        _, size = self.alive.pop(id(reference), (None, 0))
        self.held -= size


def _inferred(primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Spec | None:
    """Shape and type of a result; None where the rule refuses the operands, which the computation will, too."""
    try:
        specs = [tensor.spec for tensor in inputs]
        if primitive.broadcasts:
            shape = common_shape(inputs, primitive.name)
            specs = [Spec(shape, spec.dtype) for spec in specs]
        return primitive.infer(*specs, **params)
    except (ValueError, TypeError, LookupError, ArithmeticError):
        return None


@contextmanager
def bounded(most: int, refuse: Refuse) -> Iterator[None]:
    """Bound the memory of what is computed at once in a `with` block, also beside a recording.

    Args:
        most: bytes of all arrays together that are made in the block and live.
        refuse: called with what asks for more; raises.
    """
    state = thread
    previous = state.eager, state.interpreter
    bound = Bounded(most, refuse)
    bound.below, state.eager = state.eager, bound
    if state.interpreter is previous[0]:
        state.interpreter = bound
    try:
        yield
    finally:
        state.eager, state.interpreter = previous
        bound.alive.clear()
