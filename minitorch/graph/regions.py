"""Regions: parts of a recording that are cut out of it again, to become the bodies of loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
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

    Inside, each tensor from outside has an alias in place of its node: an input of its own, so that a value that two
    tensors share, or that a view was made of before, is told from the tensor that is written. `settle` puts the nodes
    back.

    Attributes:
        nodes: in program order.
        writes: to tensors from outside; the tensors have their values from before the region again.
    """

    def __init__(self, staging: Staging, what: str) -> None:
        self.staging, self.what = staging, what
        self.nodes: list[Node] = []
        self.writes: list[Write] = []
        self.outer: dict[Node, Node] = {}  # the nodes of the recording, by alias
        self._aliases: dict[int, Node] = {}  # by the id of the tensor
        self._dead: list[Node] = []
        self.ahead: set[Node] = set()  # nodes that went back into the recording

    def _alias(self, tensor: Tensor, node: Node) -> Node:
        alias = Node(INPUT, (), {"name": "value"}, node.spec, node.source, self.staging.trace)
        self.outer[alias], self._aliases[id(tensor)] = node, alias
        return alias

    def record(self, function: Callable[[], Result]) -> Result:
        """Call a function, and cut what it records out of the recording.

        Raises:
            TracingError: if it calls back, or stores a gradient outside, which no repetition can do (``MT116``).
        """
        staging, begin, made = self.staging, len(self.staging.nodes), len(self.staging.made)
        held = [tensor for each in staging.made if (tensor := each()) is not None and isinstance(tensor._value, Node)]
        views = [(tensor, tensor._value, tensor._view.stamp) for tensor in held if tensor._view is not None]
        roots = [tensor for tensor in held if tensor._view is None]
        captured = list(staging.captured.values())
        for tensor in roots:
            tensor._value = self._alias(tensor, tensor._value)
        for item in captured:
            item.node = self._alias(item.tensor, item.node)
        staging.aliases.update(self.outer)
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
            staging.aliases = {alias: node for alias, node in staging.aliases.items() if alias not in self.outer}
            for tensor in roots:
                self._restored(tensor, tensor._value)
                tensor._value = self.outer[self._aliases[id(tensor)]]
            for item in staging.captured.values():
                self._restored(item.tensor, item.node, item.input)
                alias = self._aliases.get(id(item.tensor))
                item.node = item.input if alias is None else self.outer[alias]
            for tensor, value, stamp in views:
                tensor._value = value
                if tensor._view is not None:
                    tensor._view.stamp = stamp
        self._refuse_views()
        return result

    def _restored(self, tensor: Tensor, now: Node, first: Node | None = None) -> None:
        before = self._aliases.get(id(tensor), first)
        if before is not None and now is not before:
            self.writes.append(Write(tensor, before, now))

    def _refuse_views(self) -> None:
        """Refuse a view from outside that is an input of its own, of memory that is written."""
        read = {operand for node in self.nodes for operand in node.inputs}
        written = {id(write.tensor) for write in self.writes}
        for item in self.staging.captured.values():
            inputs = {item.input, self._aliases.get(id(item.tensor))}
            if item.tensor._view is not None and id(item.tensor._root) in written and not inputs.isdisjoint(read):
                raise refused(
                    f"{self.what}: the body writes in place to what {item.tensor.spec} is a view of, and reads that",
                    "the view is an input of its own, and would not show the write in the next repetition",
                    "take the view inside of the body",
                )

    def read(self, tensor: Tensor) -> Node | None:
        """Return the node that a tensor from outside has at the beginning of the region, if that is known."""
        known = self.staging.captured.get(id(tensor))
        return self._aliases.get(id(tensor), None if known is None else known.input)

    def before(self, write: Write) -> Node:
        """Return the node of the recording that a written tensor has before the region."""
        return self.outer.get(write.before, write.before)

    def settle(self, kept: Container[int]) -> dict[Node, Node]:
        """Put the nodes of the recording in place of aliases, but for tensors of some `id`; return what changed."""
        stay = {alias for tensor, alias in self._aliases.items() if tensor in kept}
        now = {alias: node for alias, node in self.outer.items() if alias not in stay}
        self._dead += self.nodes
        for node in self.nodes:
            operands = tuple([now.get(operand, operand) for operand in node.inputs])
            if operands != node.inputs:
                now[node] = Node(node.primitive, operands, node.params, node.spec, node.source, node.trace)
        self.nodes = [now.get(node, node) for node in self.nodes]
        for write in self.writes:
            write.after = now.get(write.after, write.after)
        return now

    def end(self) -> None:
        """Make errors of the values inside, which are used nowhere else."""
        ended = Trace(f"the body of {self.what}")
        for node in {*self.nodes, *self._dead, *self.outer} - self.ahead:
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
