"""Finding the operations between quantised layers, by the data that flows between them in a recording of the model.

    model(example) ──Staging──► nodes, and which of them belong to which call of a layer
                       │
                       ▼
    a sum of two activations, or a mean over places, is quantised if every reader of its operands quantises, too

A reader is a quantised layer, another such operation, or something that keeps the order of numbers and commutes with
rounding (a ReLU, a max-pool, a movement), whose readers are. So a residual sum behind a convolution is found, and the
residual stream of a transformer is not: a layer normalization reads that in float32, and 8 bits would be one more copy.
The answer is the greatest set with this property.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from minitorch import primitives as P
from minitorch.autograd import no_grad
from minitorch.dtypes import float32
from minitorch.errors import TracedValueError, TracingError
from minitorch.interpreters import Staging, interpreting, on_top
from minitorch.ir import Node, Primitive
from minitorch.nn.module import Module
from minitorch.tensor import Tensor, with_value
from minitorch.tree import flatten

from .modules.operations import Operands, is_counted
from .replacing import is_under

# Operations that rounding commutes with, and the comparisons that choose between numbers.
_MOVING = (
    P.reshape,
    P.permute,
    P.expand,
    P.slice_,
    P.flip,
    P.unfold,
    P.pad,
    P.concatenate,
    P.gather,
    P.barrier,
)
THROUGH = frozenset((*_MOVING, P.less, P.less_equal, P.where, P.maximum, P.reduce_max))


def _passes(primitive: Primitive) -> bool:
    return primitive in THROUGH or primitive.is_identity


@dataclass(frozen=True)
class Found:
    """The result of `find_operations`.

    Attributes:
        operations: for the name of a module, the place of each operation, with its primitive's name, and a number for
            each of its operands.
        inputs: for the name of a layer, the number of its input. Equal numbers are one value.
        totals: for the name of a module with operations, how many sums it carries out in a call.
        left: the names of operations that are to be left in float.
    """

    operations: dict[str, dict[str, tuple[int, ...]]]
    inputs: dict[str, int]
    totals: dict[str, int]
    left: frozenset[str] = frozenset()


class _Spy:
    """Notes the operations of every module, by their place in its call."""

    def __init__(self, staging: Staging, name: str, noted: list[tuple[str, str, int]]) -> None:
        self.staging, self.name, self.noted = staging, name, noted
        self.totals: set[int] = set()  # of the calls

    def around(self, forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What `forward` returns."""
        count = 0

        def operands(primitive: Primitive, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            nonlocal count
            if is_counted(primitive, inputs):
                if all(x.shape == inputs[0].shape for x in inputs):  # then the next node is this operation
                    for each in inputs:
                        self.staging.node_of(each)
                    self.noted.append((self.name, f"{primitive.name}_{count}", len(self.staging.nodes)))
                count += 1
            return inputs

        try:
            with on_top(Operands(operands)):
                return forward(*args, **kwargs)
        finally:
            self.totals.add(count)


def find_operations(
    model: Module, arguments: tuple[Any, ...], layers: Collection[Module], leave: Collection[str] = ()
) -> Found:
    """The operations of a model whose operands are worth 8 bits.

    Args:
        model: in evaluation; its weights and structure stay as they are.
        arguments: an example; if the model cannot be recorded with it, there are no operations.
        layers: the modules that will quantise their input.
        leave: names of modules and of operations that stay in float.

    Example:
        >>> import minitorch as mt
        >>> class Block(mt.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.a, self.b = mt.nn.Linear(4, 4), mt.nn.Linear(4, 4)
        ...     def forward(self, x):
        ...         x = self.a(x).relu()
        ...         return self.b(x) + x
        >>> model = mt.nn.Sequential(Block(), mt.nn.ReLU(), mt.nn.Linear(4, 2)).eval()
        >>> found = find_operations(model, (mt.ones(1, 4),), [model[0].a, model[0].b, model[2]])
        >>> found.operations["0"].keys()
        dict_keys(['add_0'])
    """
    staging = Staging("prepare")
    staging.has_loops = False
    noted: list[tuple[str, str, int]] = []
    spies: dict[str, _Spy] = {}
    named = list(model.named_modules())
    try:
        for name, module in named:
            module.quantised = spies[name] = _Spy(staging, name, noted)
        with interpreting(staging), no_grad():
            given = [with_value(staging.input(x.spec, "x")) if isinstance(x, Tensor) else x for x in arguments]
            leaves = [x for x in flatten(model(*given))[0] if isinstance(x, Tensor)]
            outputs = {staging.node_of(x) for x in leaves}
        fed = [x._value for x in given if isinstance(x, Tensor)]
    except (TracedValueError, TracingError):  # a branch on data: no graph says what flows where
        return Found({}, {}, {})
    finally:
        for _, module in named:
            del module.quantised
    names = {id(module): name for name, module in named}
    chosen = {id(module) for module in layers}
    calls = [
        (names[id(span.what)], staging.nodes[span.begin : span.end])
        for span in staging.calls
        if id(span.what) in chosen
    ]
    labels = [f"{name}.quantised.{place}".lstrip(".") for name, place, _ in noted]
    sites = [
        (name, place, staging.nodes[at])
        for (name, place, at), label in zip(noted, labels, strict=True)
        if not is_under(label, leave) and len(spies[name].totals) == 1  # else a place means different operations
    ]
    operations, inputs = _Flow(staging.nodes, fed, outputs, calls).found(sites)
    totals = {name: total for name in operations for total in spies[name].totals}
    return Found(operations, inputs, totals, frozenset(labels).intersection(leave))


class _Flow:
    """The data flow of a recording."""

    def __init__(
        self, nodes: list[Node], fed: Collection[Any], outputs: set[Node], calls: list[tuple[str, list[Node]]]
    ) -> None:
        self.outputs, self.calls = outputs, calls
        self.inside = {node for _, span in calls for node in span}
        self.readers: dict[Node, list[Node]] = defaultdict(list)
        self.moving = set(fed)  # what depends on the input
        for node in nodes:
            for operand in node.inputs:
                self.readers[operand].append(node)
            if not self.moving.isdisjoint(node.inputs):
                self.moving.add(node)

    def found(self, sites: list[tuple[str, str, Node]]) -> tuple[dict[str, dict[str, tuple[int, ...]]], dict[str, int]]:
        """The greatest set of operations of which every one passes `_is_fit`, and the numbers of the layers' inputs."""
        places: dict[tuple[str, str], list[Node]] = defaultdict(list)
        for name, place, node in sites:
            places[name, place].append(node)
        before = -1
        while len(places) != before:
            before = len(places)
            taken = {node for nodes in places.values() for node in nodes}
            places = {key: nodes for key, nodes in places.items() if all(self._is_fit(node, taken) for node in nodes)}
        numbers: dict[Node, int] = {}
        inputs: dict[str, list[int]] = defaultdict(list)
        for name, span in self.calls:
            given = self._given(span)
            inputs[name].append(numbers.setdefault(given, len(numbers)) if given is not None else -1)
        operations: dict[str, dict[str, tuple[int, ...]]] = defaultdict(dict)
        for (name, place), nodes in places.items():
            once = len(nodes) == 1
            numbers_of = [numbers.setdefault(each, len(numbers)) if once else -1 for each in nodes[0].inputs]
            operations[name][place] = tuple(numbers_of)
        return dict(operations), {name: own[0] for name, own in inputs.items() if len(own) == 1 and own[0] >= 0}

    def _given(self, span: list[Node]) -> Node | None:
        """The input of a layer."""
        own = set(span)
        found = {x for node in span for x in node.inputs if x not in own and x in self.moving}
        return found.pop() if len(found) == 1 else None

    def _is_fit(self, node: Node, taken: set[Node]) -> bool:
        """Whether 8 bits are what all readers of its operands take."""
        if node in self.inside or node.dtype is not float32:
            return False
        for operand in node.inputs:
            if operand not in self.moving or operand.spec.ndim < 2 or not self._is_rounded(operand, taken):
                return False
        return node.primitive is P.add or self._is_of_layers(node.inputs[0], taken)

    def _is_rounded(self, value: Node, taken: set[Node]) -> bool:
        """Whether all that becomes of a value is quantised before it is computed with."""
        return value not in self.outputs and all(
            reader in taken or reader in self.inside or (_passes(reader.primitive) and reader not in self.outputs)
            for reader in _walk(value, lambda node: self.readers[node], self._stops(taken))
        )

    def _is_of_layers(self, value: Node, taken: set[Node]) -> bool:
        """Whether a value was made by quantised layers: the mean of anything else may be a part of a norm."""
        stops = self._stops(taken)
        if stops(value):
            return True
        return _passes(value.primitive) and all(
            stops(node) or _passes(node.primitive)
            for node in _walk(value, lambda node: [x for x in node.inputs if x in self.moving], stops)
        )

    def _stops(self, taken: set[Node]) -> Any:
        return lambda node: node in taken or node in self.inside


def _walk(start: Node, beside: Any, stops: Any) -> Iterator[Node]:
    """All nodes that are reached from one, those where the walk stops included."""
    seen: set[Node] = set()
    pending = list(beside(start))
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            yield node
            if not stops(node) and _passes(node.primitive):
                pending += beside(node)
