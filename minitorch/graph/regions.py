"""Regions: parts of a recording that are cut out of it again, to become the bodies of loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..errors import TracingError
from ..interpreters import Staging, Trace
from ..ir import INPUT, Node, user_source
from ..tensor import Tensor

Result = TypeVar("Result")


@dataclass
class Write:
    """An in-place write inside of a region to a tensor from outside: its value before and after."""

    tensor: Tensor
    before: Node
    after: Node


class Region:
    """What was recorded while a function ran, no longer a part of the recording.

    Attributes:
        nodes: in program order.
        writes: to tensors from outside; the tensors have their values from before the region again.
    """

    def __init__(self, staging: Staging, what: str) -> None:
        self.staging, self.what = staging, what
        self.nodes: list[Node] = []
        self.writes: list[Write] = []

    def record(self, function: Callable[[], Result]) -> Result:
        """Call a function, and cut what it records out of the recording.

        Raises:
            TracingError: if it calls back, or stores a gradient outside, which no repetition can do (``MT116``).
        """
        staging, begin, made = self.staging, len(self.staging.nodes), len(self.staging.made)
        held = [tensor for each in staging.made if (tensor := each()) is not None and isinstance(tensor._value, Node)]
        traced = [(tensor, tensor._value, tensor._view and tensor._view.stamp) for tensor in held]
        captured = {key: item.node for key, item in staging.captured.items()}
        renewed, grads = dict(staging.renewed), dict(staging.grads)
        spans = len(staging.calls), len(staging.rules), len(staging.callbacks)
        staging.regions += 1
        try:
            result = function()
            if len(staging.callbacks) > spans[2]:
                raise refused(f"{self.what}: the body calls back", "the repeated part of a graph has no place for it")
            if {key: grad for key, (_, grad) in staging.grads.items()} != {
                key: grad for key, (_, grad) in grads.items()
            }:
                raise refused(
                    f"{self.what}: the body stores a gradient", "it belongs to one repetition, and .grad to all of them"
                )
        finally:
            staging.regions -= 1
            self.nodes = staging.nodes[begin:]
            del (
                staging.nodes[begin:],
                staging.made[made:],
                staging.callbacks[spans[2] :],
                staging.rules[spans[1] :],
                staging.calls[spans[0] :],
            )
            staging.renewed, staging.grads = renewed, grads
            for item in staging.captured.values():
                before = captured.get(id(item.tensor), item.input)
                if item.node is not before:
                    self.writes.append(Write(item.tensor, before, item.node))
                    item.node = before
            for tensor, value, stamp in traced:
                if tensor._value is not value:
                    if tensor._view is None:
                        self.writes.append(Write(tensor, value, tensor._value))
                    tensor._value = value
                if tensor._view is not None:
                    tensor._view.stamp = stamp
        return result

    def end(self) -> None:
        """Make errors of the values inside, which are used nowhere else."""
        ended = Trace(f"the body of {self.what}")
        for node in self.nodes:
            node.trace = ended


def refused(problem: str, why: str, fix: str = "do it outside, with what the loop or branch returns") -> TracingError:
    """Return the error for what a body does and no loop or branch can."""
    return TracingError("MT116", problem, where=str(user_source()), why=why, fix=fix)


def free_nodes(outputs: Iterable[Node], nodes: Sequence[Node], known: Iterable[Node]) -> list[Node]:
    """Return the nodes that some nodes need and that are not among them, known ones and constants apart."""
    own, seen = set(nodes), set(known)
    found: list[Node] = []
    pending = list(outputs)
    for node in pending:  # the list grows during the loop
        if node in seen:
            continue
        seen.add(node)
        if node in own:
            pending += node.inputs
        elif node.primitive.name != "constant":
            found.append(node)
    return found


def closed(inputs: Sequence[tuple[str, Node]], outputs: Sequence[Node], nodes: Sequence[Node]) -> list[list[Node]]:
    """Return inputs, outputs and nodes of a program of its own: the part of some nodes that the outputs need."""
    own = set(nodes)
    mapped: dict[Node, Node] = {}
    for name, node in inputs:
        mapped[node] = Node(INPUT, (), {"name": name}, node.spec, node.source)
    begins = list(mapped.values())
    needed: list[Node] = []
    seen = set(mapped)
    pending = list(outputs)
    for node in pending:
        if node not in seen:
            seen.add(node)
            needed.append(node)
            pending += node.inputs if node in own else ()
    made = []
    constants = [node for node in needed if node not in own]
    for node in (*constants, *(node for node in nodes if node in seen and node not in mapped)):
        operands = tuple([mapped[operand] for operand in node.inputs])
        mapped[node] = Node(node.primitive, operands, node.params, node.spec, node.source)
        made.append(mapped[node])
    return [begins, [mapped[node] for node in outputs], made]
