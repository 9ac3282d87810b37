"""Tensors from outside as constants of a graph: the values that a frozen function keeps, and what it refuses.

All signatures of a frozen function have the same constants, made when a tensor is first met. A trace is good for a
frozen program if it has results alone: no effects, no random numbers, no module in training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from minitorch.autograd.tape import LeafHooks
from minitorch.errors import TracingError, compose
from minitorch.graph import Graph
from minitorch.graph.build import literal
from minitorch.interpreters import Callback, Captured, made_by
from minitorch.ir import Node, warn_user
from minitorch.modes.guards.leaks import leak
from minitorch.modes.guards.observed import Observed
from minitorch.modes.guards.surroundings import follows_training
from minitorch.modes.guards.watch import Watches
from minitorch.modes.objects.outcome import New
from minitorch.modes.tracing.call_staging import CallStaging
from minitorch.modes.tracing.options import Policy, Request
from minitorch.modes.tracing.recording import Recorded
from minitorch.nn import Module
from minitorch.tensor import Tensor, fetched

AGAIN = "freeze the function again; to have two versions, keep both frozen functions"


class Constants(Policy):
    """The constants of a frozen function, and watches on where they come from, in place of the guards of its traces.

    Attributes:
        name: of the function.
        changed: the first change that was noticed, as text; empty if there is none.
    """

    is_frozen = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.changed = ""
        self._known: dict[int, tuple[Tensor, Node]] = {}
        self._versions: list[tuple[Tensor, np.ndarray[tuple[int, ...], np.dtype[np.generic]], Tensor, int, str]] = []
        self._watches = Watches()
        self._module_watches = Watches()
        self._modules: list[tuple[Module, bool]] = []
        self._module_changes = -1

    @property
    def nbytes(self) -> int:
        """Bytes of the frozen copies."""
        return sum(node.spec.nbytes for _, node in self._known.values())

    def of(self, item: Captured) -> Node:
        """The constant for a tensor, with the value that it had when it was met first."""
        tensor = item.tensor
        if id(tensor) not in self._known:
            node = literal(fetched(tensor), source=item.input.source)
            self.keep(tensor, node, str(item.input.params["name"]))
        return self._known[id(tensor)][1]

    def value_of(self, tensor: Tensor) -> np.ndarray[Any, Any]:
        """The value that a tensor had when it was met first, or has now."""
        if id(tensor) not in self._known:
            return np.asarray(fetched(tensor))
        node = self._known[id(tensor)][1]
        return np.asarray(node.primitive.evaluate(**node.params))

    def keep(self, tensor: Tensor, node: Node, name: str) -> None:
        """Have a constant for a tensor, which has its value now."""
        self._known[id(tensor)] = tensor, node
        self._versions.append((tensor, tensor._value, tensor._root, tensor._root._version, name))

    @property
    def known(self) -> list[tuple[Tensor, Node, str]]:
        """The tensors, their constants and names, as `keep` takes them."""
        return [(*self._known[id(tensor)], name) for tensor, *_, name in self._versions]

    def _bake(
        self, graph: Graph, captured: Iterable[Captured], callbacks: Sequence[Callback]
    ) -> tuple[Graph, list[Callback]]:
        """A graph with the constants in place of the inputs for captured tensors, and its callbacks likewise."""
        watched = [node for each in callbacks for node in each.nodes]
        whole = Graph(graph.inputs, (*graph.outputs, *watched), graph.nodes, graph.name, verify=False)
        baked = whole.substitute({item.input: self.of(item) for item in captured})
        results, rest = baked.outputs[: len(graph.outputs)], iter(baked.outputs[len(graph.outputs) :])
        found = [Callback(each.function, tuple(islice(rest, len(each.nodes)))) for each in callbacks]
        return Graph(baked.inputs, results, baked.nodes, graph.name), found

    def accept(self, request: Request, recorded: Recorded, staging: CallStaging, around: Observed) -> None:
        """Refuse a trace with effects; replace tensors from outside by constants, and guards by watches.

        Raises:
            TracingError: ``MT112``.
        """
        for what, why, fix in _refusals(recorded, staging, around, self.name):
            raise TracingError("MT112", f"{self.name} cannot be frozen: {what}", why=why, fix=fix)
        captured = list(staging.captured.values())
        recorded.graph, recorded.callbacks = self._bake(recorded.graph, captured, recorded.callbacks)
        recorded.owners, recorded.guards = [], []
        staging.captured.clear()
        self._watches = Watches([*self._watches, *around.watches])
        self._module_watches = Watches([*self._module_watches, *around.module_watches])
        self._modules += around.modules
        around.watches, around.module_watches, around.modules = Watches(), Watches(), []
        self._module_changes = Module.changes + LeafHooks.changes

    # Changes --------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Notice a change since the constants were made, and warn of it once."""
        if self.changed:
            return
        for tensor, array, root, version, _ in self._versions:
            if root._version != version or tensor._value is not array:
                break
        else:
            if self._module_changes == Module.changes + LeafHooks.changes and self._watches.hold():
                return
        found = self._change()
        if not found:
            self._module_changes = Module.changes + LeafHooks.changes
            return
        self.changed = found
        warn_user(
            compose(
                "MT113",
                f"{found} since {self.name} was frozen; the frozen function goes on with what it was",
                why="freezing makes constants of the weights, and computes beforehand what depends on them alone",
                fix=AGAIN,
            )
        )

    def _change(self) -> str:
        """The first change, as text; empty if there is none."""
        for tensor, array, root, version, name in self._versions:
            if root._version != version or tensor._value is not array:
                return f"`{name}` was written to"
        for watch in (*self._watches, *self._module_watches):
            if not watch.holds():
                return f"`{watch.name}` {watch.change()}, and has changed"
        for module, training in self._modules:
            if module.training is not training and follows_training(module):
                return f"`training` of {type(module).__name__} was {training}, and has changed"
        return ""

    def refuse_if_changed(self, call: str) -> None:
        """Refuse to trace another signature after a change: it would be frozen with other weights.

        Raises:
            TracingError: ``MT113``.
        """
        self.look()
        if self.changed:
            raise TracingError(
                "MT113",
                f"{self.name} is called with ({call}), a signature that it has not been frozen for, and "
                f"{self.changed} since it was frozen",
                why="the function would have to be traced with other weights than those of its other signatures",
                fix=AGAIN,
            )


_STATELESS = "a frozen program has results and no effects, so that it can be saved, and run anywhere"
_STORE = "return the value in place of storing it, and store the result of the call"


def _refusals(recorded: Recorded, staging: CallStaging, around: Observed, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield what the function `name` does besides computing results, why that is refused, and a remedy."""
    found = leak(staging.made)
    if found is not None:
        holder, tensor = found
        yield f"it stores a {tensor.spec}, {made_by(tensor._value)}, outside of itself, in {holder}", _STATELESS, _STORE
    for place in recorded.assigned.names():
        yield f"it stores a tensor outside of itself, in {place}", _STATELESS, _STORE
    if recorded.outcome.changed:
        yield "it changes a list, dict or another container among its arguments", _STATELESS, _STORE
    for variable in around.settle(name, warn=False):  # a counter, for example
        yield (
            f"it changes `{variable}`",
            "the value is a constant of the graph, and each signature would have another one",
            f"return the new value, and assign `{variable}` outside",
        )
    paths = {id(inner): path for module, _ in around.modules for path, inner in module.named_modules() if path}
    for span in reversed(staging.calls):  # the outer ones come last, the inner ones say it better
        module = span.what
        if isinstance(module, Module) and module.training and follows_training(module):
            place = paths.get(id(module), "")
            yield (
                f"it calls {f'`{place}`, ' if place else ''}a {type(module).__name__} in training mode",
                "in training it does something else than in evaluation, and a frozen program is for evaluation",
                "call eval() on the model first",
            )
    for leaf in recorded.outcome.leaves:
        leaf = leaf.value if isinstance(leaf, New) else leaf
        if isinstance(leaf, (np.ndarray, Module)):
            yield (
                f"it returns a {type(leaf).__name__}",
                "that is no value of the graph, and may change after the function was frozen",
                "return tensors and plain values; mt.tensor(array) makes a constant of an array",
            )
    graph, effects = recorded.graph, recorded.effects
    for node in graph.nodes:
        if node.primitive.name == "random_bits":
            yield (
                f"it draws random numbers, at {node.source}",
                "every draw moves the state of a generator on, and a frozen program has no state",
                "draw them outside and pass them as an argument; call eval() on a model with dropout",
            )
    if effects or any(owner is not None for owner in recorded.owners):
        names = {id(item.tensor): str(item.input.params["name"]) for item in staging.captured.values()}
        written = [
            str(graph.inputs[where].params["name"]) if isinstance(where, int) else names.get(id(where), "a tensor")
            for where, _ in effects.writes().values()
        ]
        what = f"it writes to {', '.join(map('`{}`'.format, written))} in place" if written else "it works on gradients"
        yield what, _STATELESS, "return the new value in place of the write, or use mt.jit"
