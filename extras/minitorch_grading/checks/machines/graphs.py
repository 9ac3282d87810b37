"""A graph that a student's function wrote down: run on numbers that it has not seen, differentiated, and counted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.graph import Graph
from minitorch.ir import Primitive
from minitorch.modes.tracing.program import replay
from minitorch.modes.ways_in.jit import jit
from minitorch.tensor import Tensor, with_value

from ...harness.plain import Array
from ..compare import off
from ..reasons import Wrong, expect, indented
from ..samples import is_harmless

MOST = 500  # nodes of a graph: kernels are counted by compiling it, which takes longer the more there are

# Primitives that are no operation: numbers of the program, and other shapes of a value.
UNCOUNTED = (P.constant, P.expand, P.reshape)

# The operations that the notebook has.
GIVEN = (
    P.absolute, P.add, P.div, P.equal, P.exp, P.less, P.log, P.log1p, P.maximum, P.mul, P.neg, P.reduce_sum, P.sqrt,
    P.sub, P.tanh, P.where,
)  # fmt: skip


@dataclass(frozen=True)
class Written:
    """A graph of one value."""

    graph: Graph

    def __call__(self, x: Tensor) -> Tensor:
        """Run it, node by node."""
        return replay(self.graph, [x])[0]

    def run(self, x: Array) -> tuple[Array, Array]:
        """The values, and the gradient of their sum."""
        given = with_value(x.astype(np.float32))
        given.requires_grad = True
        with np.errstate(all="ignore"):
            found = self(given)
            found.sum().backward()
        gradient = np.zeros_like(x) if given.grad is None else given.grad.numpy()
        return np.asarray(found.detach().numpy()), np.asarray(gradient)

    @cached_property
    def kernels(self) -> int:
        """How many kernels the engine makes of it."""
        found = jit(self.__call__).cost(with_value(np.ones(self.graph.inputs[0].shape, np.float32)))
        return int(found.kernels)

    @property
    def primitives(self) -> int:
        """How many operations it has."""
        return sum(node.primitive not in UNCOUNTED for node in self.graph.nodes)

    @property
    def indeterminate(self) -> str:
        """Why a gradient is NaN."""
        taken = any(node.primitive is P.where for node in self.graph.nodes)
        branch = ", also in a branch of `where` that is not taken," if taken else ""
        return f"the way back multiplied 0 by infinity: what overflows in the function{branch} has an infinite slope"

    @property
    def listing(self) -> str:
        """The graph as it stands in a reason."""
        return f"\n{indented(str(self.graph))}"


def graph_in(answer: Any, shapes: Sequence[Sequence[int]], primitives: Collection[Primitive], most: int) -> Graph:
    """The graph of one result that a function has written down, if it is harmless to run it.

    Args:
        answer: the text of the graph.
        shapes: of its inputs.
        primitives: that may occur.
        most: nodes of the graph.

    Raises:
        Wrong: if there is none.
    """
    expect(answer, str, "a value that the function has computed from what it was given")
    graph = Graph.parse(answer)
    if [list(node.shape) for node in graph.inputs] != [*map(list, shapes)] or len(graph.outputs) != 1:
        raise Wrong("the graph has other inputs, or other results, than the task asks for")
    if len(graph.nodes) > most or not is_harmless(graph):
        raise Wrong("the graph is far larger than the task asks for")
    if strange := [node.primitive.name for node in graph.nodes if node.primitive not in primitives]:
        raise Wrong(f"the graph has {strange[0]}, which is none of the operations of this notebook")
    return graph


def written(answer: Any, shape: Sequence[int]) -> Written:
    """The graph of one value that an answer is."""
    return Written(graph_in(answer, [shape], (*GIVEN, *UNCOUNTED), MOST))


def unlike(found: Array, right: Array, x: Array, what: str, relative: float, absolute: float) -> str | None:
    """The first element that is not as it should be; None if there is none."""

    def near(found: Array, right: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray((np.abs(found - right) <= absolute + relative * np.abs(right)) & np.isfinite(found))

    said = off(found, right, near, **({"x": x.astype(np.float32)} if x.shape == right.shape else {}))
    return said and f"{what}: {said}"
