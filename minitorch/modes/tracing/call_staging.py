"""`CallStaging`, the recording of a call, with facts for gradients and guards."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.function import in_forward
from ...graph import Graph
from ...graph.evaluation import values_of
from ...interpreters import Captured, Handle, Staging, is_grad_enabled
from ...ir import INPUT, Node, Primitive, Spec
from ...tensor import Tensor, fetched

if TYPE_CHECKING:
    from ...sizes import Guard
    from ..guards.observed import Observed
    from ..guards.running import Profile
    from .recording import Recorded

Array = np.ndarray[Any, Any]

_MOST_KNOWN = 1000  # operations for a value that decides a shape; raising it finds more, and traces more slowly


class CallStaging(Staging):
    """Recording of a call.

    Attributes:
        untaped: the nodes of operations under `no_grad`, which the tape did not see, such as those of `detach`.
            Operations of a `Function` are not among them, since its result has a derivative.
        overwritten: the last tensor that was written in place although it is on the tape.
        known: tensors from outside whose values decide shapes; the trace depends on these.
        sized_inputs: the inputs that have symbolic sizes.
        observer: the profile function that looks for the user's functions, if there is one.
    """

    def __init__(self, name: str, names: dict[int, str]) -> None:
        super().__init__(name, names)
        self.untaped: set[Node] = set()
        self.overwritten: Spec | None = None
        self.known: list[Captured] = []  # those whose values decide shapes
        self.sized_inputs: list[Node] = []
        self.observer: Profile | None = None

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Record the operation, without being observed: none of this is the user's code."""
        if self.observer is None or sys.getprofile() is not self.observer:
            return super().bind(primitive, inputs, params)
        sys.setprofile(None)
        try:
            return super().bind(primitive, inputs, params)
        finally:
            sys.setprofile(self.observer)

    def _append(self, primitive: Primitive, nodes: tuple[Node, ...], params: Mapping[str, Any]) -> Node:
        node = super()._append(primitive, nodes, params)
        if not is_grad_enabled() and not in_forward():
            self.untaped.add(node)
        return node

    def assign(self, tensor: Tensor, value: Tensor) -> Handle | None:
        """Give a tensor a new value of the same shape and type, as an in-place operation does."""
        if tensor._entry is not None:
            self.overwritten = tensor.spec
        return super().assign(tensor, value)

    def concrete(self, tensor: Tensor, what: str, code: str = "MT102", fix: str | None = None) -> Array:
        """Return a tensor's value; while recording, only one that decides a shape and follows from tensors outside."""
        found = self._value_of(self.node_of(tensor)) if code == "MT103" else None
        return super().concrete(tensor, what, code, fix) if found is None else found

    def _value_of(self, node: Node) -> Array | None:
        """Return the value of a node that depends on neither arguments nor random numbers; None for another one."""
        outside = {item.input: item for item in self.captured.values()}
        needed = Graph([], [node], name=self.trace.name, verify=False).nodes
        inputs = {operand for each in needed for operand in each.inputs if operand.primitive is INPUT}
        inputs |= {node} if node.primitive is INPUT else set()
        if len(needed) > _MOST_KNOWN or not inputs <= outside.keys():
            return None
        if any(each.primitive.name == "random_bits" for each in needed):
            return None
        values: dict[Node, Any] = {each: fetched(outside[each].tensor) for each in inputs}
        if not all(isinstance(value, np.ndarray) for value in values.values()):
            return None
        self.known += [outside[each] for each in inputs]
        return np.array(values_of(needed, values)[node])

    def settled_guards(self, recorded: Recorded, around: Observed) -> tuple[Guard, ...]:
        """Return the guards of a recording that is over; without symbolic sizes there are none."""
        return ()

    def graph(self, inputs: Sequence[Node], outputs: Sequence[Node], nodes: Sequence[Node]) -> Graph:
        """Return the recorded graph, of some of its nodes."""
        return Graph(inputs, outputs, nodes, name=self.trace.name)
