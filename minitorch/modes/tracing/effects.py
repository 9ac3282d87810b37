"""Effects of a traced call: in-place writes, and gradients that `backward` stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...autograd.gradients import backward
from ...errors import TracingError
from ...interpreters import Staging, check_writeable, may_share, memory_owner
from ...ir import Node
from ...tensor import Remote, Tensor, with_value
from .program import are_apart, write

Array = np.ndarray[Any, Any]
Where = int | Tensor  # a tensor from outside: the position of an argument, or the tensor itself


def tensor_at(where: Where, tensors: Sequence[Tensor]) -> Tensor:
    """Return a tensor from outside, given the arguments of a call."""
    return tensors[where] if isinstance(where, int) else where


class Effects:
    """Effects of a trace, by their position among the outputs of its graph.

    Attributes:
        results: the number of outputs before the effects: the function's results.
        nodes: the outputs for the effects.
        updates: of these, the ones that are the new value of an input, by position, with the position of the input. New
            gradients are not among them: their memory may be shared with unknown tensors.
        arguments: the positions of the arguments that are written in place.
        written: ids of the captured tensors that are written in place.
    """

    def __init__(self, results: int) -> None:
        self.results = results
        self.nodes: list[Node] = []
        self.updates: dict[int, int] = {}
        self._writes: list[tuple[Where, bool, int]] = []  # target, whether its grad is the target, output
        self._grads: list[tuple[Where, int | None]] = []  # owner, output (None: set to None)
        self._onward: list[tuple[int, int]] = []  # a recorded result among the arguments, output
        self.arguments: list[int] = []
        self.written: set[int] = set()
        self._asked: list[tuple[int, bool]] = []  # a leaf among the arguments, its new requires_grad
        self._captured: set[int] = set()  # ids of all captured roots
        self._around: list[tuple[Tensor, bool]] = []  # captured tensors, and whether they are written
        self._neighbours: dict[int, list[tuple[Array, bool]]] | None = None  # the same by owner of the memory

    def _output(self, node: Node) -> int:
        self.nodes.append(node)
        return self.results + len(self.nodes) - 1

    def writes(self) -> dict[int, tuple[Where, bool]]:
        """Return, by output, the target of the write, and whether the target is its earlier gradient."""
        return {place: (where, is_grad) for where, is_grad, place in self._writes}

    def gradients(self) -> dict[int, Where]:
        """Return, by output, the tensor whose gradient it becomes."""
        return {place: where for where, place in (*self._grads, *self._onward) if place is not None}

    def cleared(self) -> list[Where]:
        """Return the tensors whose gradient is set to None."""
        return [where for where, place in self._grads if place is None]

    def collect(self, staging: Staging, tracers: Sequence[Tensor], inputs: Sequence[Node]) -> None:
        """Find the effects of the traced function."""
        positions = {id(tracer): position for position, tracer in enumerate(tracers)}
        for position, (tracer, node) in enumerate(zip(tracers, inputs, strict=True)):
            argument = staging.arguments.get(id(tracer))
            if argument is not None and argument._requires_grad is not tracer._requires_grad:
                self._asked.append((position, tracer._requires_grad))
            if tracer._value is not node or tracer._version:  # a write of the own value, too, needs memory to write to
                self._writes.append((position, False, self._output(staging.node_of(tracer))))
                self.arguments.append(position)
                self.updates[self._writes[-1][2]] = position
            if tracer._grad is not None:
                self._onward.append((position, self._output(staging.node_of(tracer._grad))))
                tracer._grad = None
        for tensor, grad in list(staging.grads.values()):
            if grad is not staging.arguments.get(id(tensor), tensor)._grad:
                output = None if grad is None else self._output(staging.node_of(grad))
                self._grads.append((positions.get(id(tensor), tensor), output))
        for place, item in enumerate(list(staging.captured.values()), len(inputs)):
            owner = staging.grad_owners.get(id(item.tensor))
            if owner is None:
                self._captured.add(id(item.tensor._root))
                self._around.append((item.tensor, item.node is not item.input))
            if item.node is item.input:
                continue
            if owner is None:
                self.written.add(id(item.tensor))
                self._writes.append((item.tensor, False, self._output(item.node)))
                self.updates[self._writes[-1][2]] = place
            else:
                self._writes.append((positions.get(id(owner), owner), True, self._output(item.node)))

    def __bool__(self) -> bool:
        """Return whether there are any effects."""
        return bool(self._writes or self._grads or self._onward or self._asked)

    def check_aliases(self, tensors: Sequence[Tensor], name: str) -> None:
        """Refuse arguments that are read-only, or that share memory with another input, if one is written.

        A graph has no memory: it cannot tell that a write to one is a write to the other.

        Raises:
            TracingError: ``MT109``.
        """
        if not self._writes or not tensors:
            return
        for position in self.arguments:
            check_writeable(tensors[position]._value, tensors[position])
        roots = [id(tensor._root) for tensor in tensors]
        written = {roots[position] for position in self.arguments}
        overlapping = self._overlapping(tensors)
        for position, root in enumerate(roots):
            others = roots.count(root) > 1 or root in self._captured
            if root in self.written or (root in written and others) or position == overlapping:
                raise TracingError(
                    "MT109",
                    f"argument {position} of {name}, {tensors[position].spec}, shares its memory with another tensor "
                    f"that {name} uses, and one of them is written in place",
                    why="a graph has values and no memory: it cannot show a write to one tensor in another one",
                    fix="pass the tensor once and take the views inside, or pass a .clone()",
                )

    def _overlapping(self, tensors: Sequence[Tensor]) -> int | None:
        """Return the position of an argument that overlaps with another input of the same array, if one is written."""
        arguments = self.arguments
        values = [tensor._value for tensor in tensors]
        if all(isinstance(value, Remote) for value in values):  # which share memory with nothing else
            known_ids = {*map(id, values), *[id(tensor._value) for tensor, _ in self._around]}
            if len(known_ids) == len(values) + len(self._around):
                return None
        around = self._memories() if arguments or self.written else {}
        known: dict[int, list[tuple[Array, bool]]] = {}
        for position, tensor in enumerate(tensors):
            array, is_written = tensor._value, position in arguments
            owner = memory_owner(array)
            neighbours = known.setdefault(owner, [])
            for memory, other in (*around.get(owner, ()), *neighbours):
                if (is_written or other) and may_share(array, memory):
                    return position
            neighbours.append((array, is_written))
        return None

    def _memories(self) -> dict[int, list[tuple[Array, bool]]]:
        """Return the owners of the captured tensors' memory, and whether it is written."""
        if self._neighbours is None:
            found: dict[int, list[tuple[Array, bool]]] = {}
            for tensor, is_written in self._around:
                found.setdefault(memory_owner(tensor._value), []).append((tensor._value, is_written))
            self._neighbours = found
        return self._neighbours

    def forget_memories(self) -> None:
        """Forget these owners: a captured tensor has other memory than before."""
        self._neighbours = None

    def move(self, moved: Mapping[int, Tensor]) -> None:
        """Take other tensors in place of some from outside, given by `id`."""

        def now(where: Where) -> Where:
            return moved.get(id(where), where)

        self._writes = [(now(where), is_grad, place) for where, is_grad, place in self._writes]
        self._grads = [(now(where), place) for where, place in self._grads]
        self._around = [(moved.get(id(tensor), tensor), is_written) for tensor, is_written in self._around]
        self._captured = {id(tensor._root) for tensor, _ in self._around}
        self.written = {id(tensor) for tensor, is_written in self._around if is_written}
        self.forget_memories()

    def are_apart(self) -> bool:
        """Return whether captured tensors that are written share no memory with other captured ones."""
        written = [place for place, (_, is_written) in enumerate(self._around) if is_written]
        return are_apart([tensor._value for tensor, _ in self._around], written)

    def is_apart_from(self, arrays: Sequence[Array]) -> bool:
        """Return whether some arrays share no owner with the captured tensors."""
        memories = self._memories() if arrays else {}
        return not any(memory_owner(array) in memories for array in arrays)

    def ask_for_gradients(self, tensors: Sequence[Tensor]) -> None:
        """Repeat the function's ``requires_grad_`` calls, before the call is put on the tape."""
        for position, wanted in self._asked:
            tensors[position].requires_grad_(wanted)

    def carry_out(self, tensors: Sequence[Tensor], values: list[Array]) -> None:
        """Carry out the effects, with the values of one call."""
        for where, is_grad, output in self._writes:
            target = tensor_at(where, tensors)
            write(target._grad if is_grad and target._grad is not None else target, values[output])
        for where, place in self._grads:
            tensor = tensor_at(where, tensors)
            tensor._grad = None if place is None else with_value(values[place])
        for position, place in self._onward:
            backward(tensors[position], with_value(values[place]))
