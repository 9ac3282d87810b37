"""How the tasks of exercise 07 ask: kernels are lists of operations, and generated source is run."""

from __future__ import annotations

import io
import math
import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from functools import partial
from itertools import islice
from random import Random
from typing import Any
from zlib import crc32

import numpy as np

from ... import primitives as P
from ...graph import Graph
from ...ir import Node, Shape
from .ask import asks
from .limit import Limited, limited
from .needs import Needs
from .plain import Fault, described

NEEDS = Needs(
    engine=("graph",),
    without=("graph.build.topological_order", "graph.cost", "graph.patterns", "graph.rewrite"),
)


# --- what the notebook works with, too --------------------------------------------------------------------------

REDUCTIONS = (P.reduce_sum, P.reduce_max)


def operations(graph: Graph) -> list[Node]:
    """The nodes that belong into kernels: all but the constants."""
    return [node for node in graph.nodes if node.primitive is not P.constant]


def loop_shape(node: Node) -> Shape:
    """The shape over which a node runs: that of its operand for a reduction, its own otherwise."""
    return node.inputs[0].shape if node.primitive in REDUCTIONS else node.shape


# --- kernel_bytes -----------------------------------------------------------------------------------------------


@asks("fusion.kernel_bytes", NEEDS)
def kernel_bytes(call: Limited, case: tuple[str, Any]) -> Any:
    """A graph, and the places of a kernel's nodes among its operations."""
    text, places = case[1]
    graph = Graph.parse(text)
    return call(graph, [operations(graph)[place] for place in places])


# --- partition --------------------------------------------------------------------------------------------------


@asks("fusion.partition", NEEDS)
def partition(call: Limited, case: tuple[str, str]) -> Any:
    """A graph; the answer has the places of the nodes of each kernel."""
    graph = Graph.parse(case[1])
    where = {id(node): place for place, node in enumerate(operations(graph))}
    kernels = call(graph)
    if not isinstance(kernels, (list, tuple)) or not all(isinstance(kernel, (list, tuple)) for kernel in kernels):
        return kernels if isinstance(kernels, Fault) else described(kernels)
    return [[where.get(id(node), -1) for node in kernel] for kernel in kernels]


# --- generate ---------------------------------------------------------------------------------------------------


def numbers_for(graph: Graph, source: str) -> list[list[float]]:
    """The elements of each input: others for every source, so that none can have the results in it."""
    random = np.random.default_rng(crc32(source.encode(errors="replace")))
    return [random.uniform(-2, 2, node.shape).tolist() for node in graph.inputs]


def _generated(generate: Any, text: str) -> Any:
    """The source that a student's generator writes, and the numbers that it computes."""
    graph = Graph.parse(text)
    source = generate(graph)
    if not isinstance(source, str):
        return described(source), None
    namespace: dict[str, Any] = {"math": math}
    exec(compile(source, "<generated>", "exec"), namespace)
    if not callable(namespace.get("kernel")):
        return source, None
    numbers = numbers_for(graph, source)
    out = [0.0] * len(numbers[0])
    namespace["kernel"](*numbers, out)
    return source, [float(each) for each in out]


@asks("fusion.generate", NEEDS)
def generate(call: Limited, case: tuple[str, str]) -> Any:
    """A graph."""
    return limited(partial(_generated, call.function, case[1]), call.seconds)


# --- merge, online_softmax --------------------------------------------------------------------------------------


@asks("fusion.merge", NEEDS)
def merge(call: Limited, case: tuple[str, Any]) -> Any:
    """Two pairs of a largest number and a total."""
    return call(*case[1])


BLOCKS, LENGTH = 256, 64  # of a long row


def long_row(start: int) -> Iterator[list[float]]:
    """The blocks of a row of which no copy lies in memory; `start` draws its numbers."""
    random = Random(start)
    return ([random.uniform(-8, 8) for _ in range(LENGTH)] for _ in range(BLOCKS))


def _vanishing(blocks: Iterable[list[float]]) -> Iterator[list[float]]:
    """The blocks, each of which is gone when the next is asked for: as if the row were larger than the cache."""
    for block in blocks:
        now = list(block)
        yield now
        now.clear()


class _Nowhere(io.TextIOBase):
    """Where text is printed that nobody keeps."""

    def write(self, text: str) -> int:
        """Take it."""
        return len(text)


def _measured(function: Any, start: int) -> tuple[Any, int]:
    """The answer to a long row, and the most bytes that were in use at once meanwhile, but for what is printed."""
    function(_vanishing(islice(long_row(start), 2)))  # modules that it imports are not counted
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        with redirect_stdout(_Nowhere()):
            answer = function(_vanishing(long_row(start)))
        return answer, tracemalloc.get_traced_memory()[1] - before
    finally:
        if not was_tracing:
            tracemalloc.stop()


def _row(function: Any, part: str, blocks: list[list[float]] | int) -> Any:
    if isinstance(blocks, int):
        return _measured(function, blocks)
    return function(_vanishing(blocks) if part == "one pass" else [list(block) for block in blocks])


@asks("fusion.online_softmax", NEEDS)
def online_softmax(call: Limited, case: tuple[str, Any]) -> Any:
    """The blocks of a row; or a number, for a long row in one pass, to which the memory belongs to the answer."""
    return limited(partial(_row, call.function, *case), call.seconds)
