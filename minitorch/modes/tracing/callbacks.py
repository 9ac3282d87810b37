"""Callbacks of a recorded program, such as `debug.print` and `debug.breakpoint`.

The values of callbacks are computed by a program of their own, before the main program. So a callback is no part of the
graph that passes and fusion rewrite: nothing can drop it, merge it, or change its place among the others, and the main
program has the same kernels, and gives the same bits, with and without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ...graph import Graph
from ...interpreters import Callback, callback, interpreting
from ...ir import Node
from ...tensor import Tensor
from .program import Program, replay

Array = np.ndarray[Any, Any]


class Callbacks:
    """Callbacks of a recording, in program order; call it with the arrays of a run, before the run.

    Args:
        inputs: of the recording's graph.
        compile: compiles a graph.
    """

    def __init__(
        self, inputs: Sequence[Node], callbacks: Sequence[Callback], name: str, compile: Callable[[Graph], Program]
    ) -> None:
        self.callbacks = tuple(callbacks)
        self.graph = Graph(inputs, [node for each in callbacks for node in each.nodes], name=f"{name}.callbacks")
        self._program = compile(self.graph) if self.graph.outputs else None

    def __call__(self, arrays: Sequence[Array]) -> None:
        """Compute the values, and call back."""
        values = iter(self._program.execute(arrays, False) if self._program else ())
        with interpreting(None):
            for each in self.callbacks:
                each.function(list(islice(values, len(each.nodes))))

    def recorded(self, tensors: Sequence[Tensor]) -> None:
        """Return the same inside another recording, whose runs call them."""
        values = iter(replay(self.graph, tensors))
        for each in self.callbacks:
            callback(each.function, list(islice(values, len(each.nodes))))
