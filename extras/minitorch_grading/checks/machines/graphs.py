"""A graph that a student's function wrote down: run on numbers that it has not seen, differentiated, and counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.graph import Graph
from minitorch.modes import jit
from minitorch.modes.tracing.program import replay
from minitorch.tensor import Tensor

from ...asks.plain import Array, described
from ..reasons import indented
from ..samples import is_harmless

MOST = 500
"""Nodes of a graph: kernels are counted by compiling it, which takes longer the more there are."""

UNCOUNTED = (P.constant, P.expand, P.reshape)
"""Primitives that are no operation: numbers of the program, and other shapes of a value."""

GIVEN = (
    P.absolute, P.add, P.div, P.equal, P.exp, P.less, P.log, P.log1p, P.maximum, P.mul, P.neg, P.reduce_sum, P.sqrt,
    P.sub, P.tanh, P.where,
)  # fmt: skip
"""The operations that the notebook has."""


@dataclass(frozen=True)
class Written:
    """A graph of one value."""

    graph: Graph

    def __call__(self, x: Tensor) -> Tensor:
        """Run it, node by node."""
        return replay(self.graph, [x])[0]

    def run(self, x: Array) -> tuple[Array, Array]:
        """The values, and the gradient of their sum."""
        given = Tensor(x.astype(np.float32))
        given.requires_grad = True
        with np.errstate(all="ignore"):
            found = self(given)
            found.sum().backward()
        gradient = np.zeros_like(x) if given.grad is None else given.grad.numpy()
        return np.asarray(found.detach().numpy()), np.asarray(gradient)

    @cached_property
    def kernels(self) -> int:
        """How many kernels the engine makes of it."""
        found = jit(self.__call__).cost(Tensor(np.ones(self.graph.inputs[0].shape, np.float32)))
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


def written(answer: Any) -> Written | str:
    """The graph of an answer, or why there is none."""
    if type(answer) is not str:
        return f"the function has to return a value that it computed from x, and it is {described(answer)}"
    graph = Graph.parse(answer)
    if len(graph.inputs) != 1 or len(graph.outputs) != 1 or len(graph.nodes) > MOST or not is_harmless(graph):
        return "the graph is far larger than the task asks for"
    for node in graph.nodes:
        if node.primitive not in (*GIVEN, *UNCOUNTED):
            return f"the graph has {node.primitive.name}, which is none of the operations of this notebook"
    return Written(graph)


def unlike(found: Array, right: Array, x: Array, what: str, relative: float, absolute: float) -> str | None:
    """The first element that is not as it should be; None if there is none."""
    if found.shape != right.shape:
        return f"{what} has shape {list(found.shape)} and should have {list(right.shape)}"
    with np.errstate(all="ignore"):
        near = (np.abs(found - right) <= absolute + relative * np.abs(right)) & np.isfinite(found)
    if near.all():
        return None
    at = tuple(map(int, np.unravel_index(int(np.argmin(near)), right.shape)))
    given = f" for x = {x[at]:.6g}" if x.shape == right.shape else f", element {list(at)},"
    return f"{what}{given} is {found[at]:.6g} and should be {right[at]:.6g}"
