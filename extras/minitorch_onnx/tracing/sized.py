"""Recording with sizes that remember how they were computed: the graph, and the formulas of its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minitorch.graph import Graph
from minitorch.ir import Node, Primitive, Source, Spec, without_lengths
from minitorch.modes.tracing.recording import CallStaging

from ..writing.polynomials import symbol
from ..writing.sizes import numbers_of
from ..writing.tracked import Decision, Formula, Ratio, Size, checking, formula_of, sized

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Traced:
    """One trace of a function.

    Attributes:
        graph: as recorded.
        parameters: the arrays of the tensors from outside, by the names of the graph's inputs.
        trained: the names of those that are parameters of a module.
        paths: the names that tensors have in the module, by those of the inputs.
        outputs: the names of the results.
        formulas: for each input and node of the graph, those of its `numbers_of`; the number itself, if it has none.
        decisions: what was decided by sizes, in this order.
    """

    graph: Graph
    parameters: dict[str, Array]
    trained: list[str]
    paths: dict[str, str]
    outputs: list[str]
    formulas: Sequence[tuple[Any, ...]] = ()
    decisions: Sequence[Decision] = ()

    @property
    def arguments(self) -> list[str]:
        """The names of the graph's inputs that are arguments."""
        names = [str(node.params["name"]) for node in self.graph.inputs]
        return [name for name in names if name not in self.parameters]


class SizedStaging(CallStaging):
    """The recording of a call whose arguments have symbolic sizes.

    Args:
        name, names: as for a `CallStaging`.
        dynamic: the symbols of an argument's dimensions, by its name.

    Attributes:
        formulas: those of each input's and node's `numbers_of`, in the order of the finished graph, which has plain
            numbers.
    """

    def __init__(self, name: str, names: dict[int, str], dynamic: Mapping[str, Mapping[int, str]]) -> None:
        super().__init__(name, names)
        self.dynamic = dict(dynamic)
        self.formulas: list[tuple[Formula | Any, ...]] = []
        self._values: dict[Node, Formula] = {}

    def input(self, spec: Spec, name: str, source: Source | None = None) -> Node:
        """A new input of the graph; the dynamic lengths of an argument are symbols."""
        symbols = self.dynamic.pop(name, {})  # arguments come first
        lengths = [
            sized(length, symbol(symbols[axis])) if axis in symbols else length
            for axis, length in enumerate(spec.shape)
        ]
        return super().input(Spec(tuple(lengths), spec.dtype), name, source)

    def _append(self, primitive: Primitive, nodes: tuple[Node, ...], params: Mapping[str, Any]) -> Node:
        value = params.get("value")
        with checking():
            if not isinstance(value, (Size, Ratio)):
                return super()._append(primitive, nodes, params)
            number = int.__int__(value) if isinstance(value, Size) else float.__float__(value)
            node = super()._append(primitive, nodes, {**params, "value": number})
        self._values[node] = value.formula
        return node

    def graph(self, inputs: Sequence[Node], outputs: Sequence[Node], nodes: Sequence[Node]) -> Graph:
        """The recorded graph with plain numbers."""
        plain: dict[Node, Node] = {}
        for node in (*inputs, *nodes):
            numbers = [formula_of(each) if isinstance(each, (Size, Ratio)) else each for each in numbers_of(node)]
            if node in self._values:
                numbers[-1] = self._values[node]
            self.formulas.append(tuple(numbers))
            params = {name: without_lengths(value) for name, value in node.params.items()}
            spec = Spec(without_lengths(node.spec.shape), node.spec.dtype)
            operands = tuple([plain[each] for each in node.inputs])
            plain[node] = Node(node.primitive, operands, params, spec, node.source, node.trace)
        return super().graph(*([plain[each] for each in part] for part in (inputs, outputs, nodes)))
