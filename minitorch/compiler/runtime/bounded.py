"""Programs for many sizes: a graph with symbolic sizes, compiled once for all of them up to a bound.

See `minitorch.compiler.lengths`. The lengths of a call are one more input of the program, and so is every
number that is computed from them, such as the divisor of a mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...graph import Graph
from ...graph.build import input_node
from ...ir import Node, Shape, Spec
from ...passes.lowering.at_sizes import at_sizes
from ...primitives import expand
from ...sizes import value_at
from ..kernels.ledger import Ledger
from ..lengths import Length, Lengths, UnboundedError, lengths_in, padded, same_layout, within_one
from .program_steps import GRAIN, work_of

Array = np.ndarray[Any, Any]


class GivenLengths(NamedTuple):
    """What follows from the lengths that a call gives.

    Attributes:
        now: gives the present shapes of arrays, by those for the bounds.
        written: the shapes of the outputs that have arrays of their own.
        results: the shapes of all outputs.
        is_small: whether no kernel is worth sharing among threads.
    """

    now: Callable[[Sequence[Shape]], Sequence[Shape]]
    written: Sequence[Shape]
    results: Sequence[Shape]
    is_small: bool


class Executable(Protocol):
    """A compiled graph of this machine's code."""

    ledger: Ledger
    written: tuple[Shape, ...]

    def __call__(
        self, arrays: Sequence[Array], overwrite: bool = True, *, lengths: GivenLengths | None = None
    ) -> list[Array]:
        """Run it."""


class Bounded:
    """A program for all sizes up to a bound.

    Args:
        graph: with symbolic sizes.
        most: the largest value of each symbol.
        compile: of a graph without them.

    Attributes:
        most: as given.
        compiled: the program.

    Raises:
        UnboundedError: if no kernel is right for all sizes: a length that varies is joined to others before it, or
            there is a loop or a branch.
    """

    def __init__(self, graph: Graph, most: Mapping[str, int], compile: Callable[[Graph], Executable]) -> None:
        self.most, self._graph = dict(most), graph
        self._lengths = lengths = Lengths(most)
        self._numbers: list[tuple[Node, Any]] = []

        def number(node: Node) -> Node:
            shape = tuple(map(lengths.of, node.shape))
            given = input_node(f"number.{len(self._numbers)}", Spec((), node.dtype), node.source)
            self._numbers.append((given, node.params["value"]))
            return Node(expand, (given,), {"shape": shape}, Spec(shape, node.dtype), node.source) if shape else given

        for node in graph.nodes:
            if node.primitive.together is not None:
                raise UnboundedError(f"{node.primitive.name} is a loop or a branch")
        bounded = at_sizes(graph, lengths.of, number)
        for node in bounded.outputs:
            while node.primitive.name == "reshape":
                if not same_layout(node.shape, node.inputs[0].shape):
                    raise UnboundedError(f"a result is the memory of {node.inputs[0].spec} as {node.spec}")
                node = node.inputs[0]
        self._padded = [None if within_one(node.shape) else node.shape for node in bounded.inputs]
        inputs = (*bounded.inputs, *(given for given, _ in self._numbers), lengths.node)
        self.compiled = compile(Graph(inputs, bounded.outputs, bounded.nodes, bounded.name, verify=False))
        calls = any(kernel.loops is None for kernel in self.compiled.ledger.kernels)
        graph = self.compiled.ledger.graph
        for node in (*graph.inputs, *graph.nodes) if calls else ():  # NumPy is given the shapes of a call
            for each in lengths_in((node.shape, *node.params.values())):
                lengths.place(each.size)

    @property
    def ledger(self) -> Ledger:
        """The kernels, and why edges were fused or not; counted for the bound."""
        return self.compiled.ledger

    def at(self, sizes: Mapping[str, int]) -> Callable[..., list[Array]]:
        """Return the program as an executable for these sizes."""

        def at(shape: Shape) -> Shape:
            return tuple(value_at(_formula(length), sizes) for length in shape)

        def laid_out(shapes: Sequence[Shape]) -> list[Shape]:
            return [at(shape) if within_one(shape) else tuple(map(int, shape)) for shape in shapes]

        scale = max(length / self.most[name] for name, length in sizes.items())
        is_small = all(work_of(kernel) * scale < 2 * GRAIN for kernel in self.compiled.ledger.kernels)
        numbers = [np.asarray(value_at(value, sizes)).astype(node.dtype.numpy) for node, value in self._numbers]
        given = [*numbers, self._lengths.values(sizes)]
        results = [at(node.shape) for node in self._graph.outputs]
        lengths = GivenLengths(laid_out, laid_out(self.compiled.written), results, is_small)
        return partial(self._run, given, lengths)

    def _run(
        self, given: list[Array], lengths: GivenLengths, arrays: Sequence[Array], overwrite: bool = True
    ) -> list[Array]:
        inputs = [padded(array, shape) if shape else array for array, shape in zip(arrays, self._padded, strict=True)]
        return self.compiled([*inputs, *given], overwrite, lengths=lengths)


def _formula(length: Any) -> Any:
    return length.size if isinstance(length, Length) else length
