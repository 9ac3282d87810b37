"""Graphs to try a student's code on: random ones, their values, and the smallest one on which something is wrong.

The tests of the engine draw their graphs with hypothesis, which a classroom need not have. Less is needed here: the
same graphs for the same seed on every machine, and a shrinker that takes a graph apart rather than the choices that it
was drawn from. Both are short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.dtypes import float32
from minitorch.graph import Graph, apply, input_node, literal
from minitorch.ir import INPUT, Node, Spec

from ..harness.plain import Array

SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, float("inf"), float("-inf"), float("nan"), 3e38, 1e-40)
UNARY = (P.neg, P.absolute, P.exp, P.sqrt)
BINARY = (P.add, P.sub, P.mul, P.div, P.maximum)
NUMBERS = (0.0, -0.0, 1.0, 2.0, -1.0, 0.5)
TOO_LARGE = 1 << 20  # bytes of a value in a graph that is not our own


def unforeseen() -> np.random.Generator:
    """Draw numbers that nobody can have known, to try an answer on that is there already: of no seed and no text."""
    return np.random.default_rng()


def values_for(graph: Graph, random: np.random.Generator) -> list[Array]:
    """An array for each input: ordinary numbers, and those at which laws break."""
    found = []
    for node in graph.inputs:
        chosen = np.where(
            random.random(node.shape) < 0.5, random.choice(SPECIAL, node.shape), random.normal(size=node.shape)
        )
        if not node.dtype.is_floating_point:
            chosen = random.integers(-5, 6, node.shape).astype(np.float64)
        with np.errstate(all="ignore"):
            found.append(np.asarray(chosen).astype(node.dtype.numpy))
    return found


def random_graph(
    random: Random,
    size: int,
    constants: float = 0.2,
    repeats: float = 0.0,
    outputs: int = 1,
    shape: tuple[int, ...] = (2, 3),
    reductions: bool = True,
) -> Graph:
    """A legal graph of float32 numbers.

    Args:
        random: what draws it.
        size: how many operations.
        constants: how often an operand is a constant.
        repeats: how often an operation is one that was there before.
        outputs: how many; the first is the last value made, the others are any.
        shape: of the inputs.
        reductions: whether there are sums over a dimension among the operations.
    """
    spec = Spec(shape, float32)
    inputs = [input_node(name, spec) for name in "xy"]
    pool: list[Node] = list(inputs)
    made: list[Node] = []
    for _ in range(size):
        if made and random.random() < repeats:
            old = random.choice(made)
            node = Node(old.primitive, old.inputs, old.params, old.spec)
        else:
            node = _operation(random, pool, constants, reductions)
        pool.append(node)
        made.append(node)
    found = [made[-1], *random.choices(pool, k=outputs - 1)]
    program: dict[Node, None] = {}
    for node in made:  # constants right before they are used
        program |= dict.fromkeys(operand for operand in node.inputs if operand.primitive is P.constant)
        program[node] = None
    return Graph(inputs, found, program)


def _operation(random: Random, pool: list[Node], constants: float, reductions: bool) -> Node:
    a = random.choice(pool)
    if reductions and a.spec.ndim > 1 and random.random() < 0.15:
        return apply(P.reduce_sum, a, dims=(random.randrange(a.spec.ndim),))
    if random.random() < 0.3:
        return apply(random.choice(UNARY), _sometimes_constant(random, a, constants))
    alike = [node for node in pool if node.spec == a.spec]
    b = _sometimes_constant(random, random.choice(alike), constants)
    return apply(random.choice(BINARY), _sometimes_constant(random, a, constants), b)


def _sometimes_constant(random: Random, node: Node, chance: float) -> Node:
    return literal(random.choice(NUMBERS), node.spec) if random.random() < chance else node


# Shrinking ------------------------------------------------------------------------------------------------------


def shrink(graph: Graph, is_wrong: Callable[[Graph], bool]) -> Graph:
    """The smallest graph that is reached by leaving out, as long as it is still wrong.

    Args:
        graph: one that is wrong.
        is_wrong: whether a graph is.

    Example:
        >>> big = random_graph(Random(0), 12)
        >>> print(shrink(big, lambda graph: graph.count()["sub"] > 0))
        graph(x: f32[2,3]):
          %0 = sub(x, x) : f32[2,3]
          return %0
    """
    while (smaller := next(filter(is_wrong, smaller_ones(graph)), None)) is not None:
        graph = smaller
    return graph


def smaller_ones(graph: Graph) -> Iterator[Graph]:
    """Graphs with less in them, in which something still happens."""
    return (each for each in _smaller(graph) if any(node.primitive is not P.constant for node in each.nodes))


def _smaller(graph: Graph) -> Iterator[Graph]:
    """Graphs with less in them, those first that have much less."""
    if len(graph.outputs) > 1:
        yield from (graph.subgraph([output], keep_inputs=False) for output in graph.outputs)
    for node in graph.nodes:  # a value on the way instead of the last one
        if node not in graph.outputs and node.primitive is not P.constant:
            yield graph.subgraph([node], keep_inputs=False)
    needed = set(graph.subgraph(graph.outputs).nodes)
    for node in graph.nodes:
        if node not in needed and node.primitive is not P.constant:
            yield _without(graph, node)
    alive = [node for node in (*graph.inputs, *graph.nodes) if node.primitive is not P.constant]
    for place, node in enumerate(alive):
        if node.primitive is INPUT:
            continue
        for other in alive[:place]:  # earlier values, inputs first
            if other.spec == node.spec and (other.primitive is INPUT or other in node.inputs):
                yield _kept(graph.substitute({node: other}))
    if len(graph.inputs) > 1:
        first = graph.inputs[0]
        for other in graph.inputs[1:]:
            if other.spec == first.spec:
                yield _kept(graph.substitute({other: first}))


def _without(graph: Graph, dead: Node) -> Graph:
    """Without a node that no output needs, and whatever reads it."""
    gone = {dead}
    for node in graph.nodes:
        if any(operand in gone for operand in node.inputs):
            gone.add(node)
    return Graph(graph.inputs, graph.outputs, [node for node in graph.nodes if node not in gone])


def _kept(graph: Graph) -> Graph:
    """Without constants and inputs that nothing reads any more; dead operations stay, they may be the point."""
    read = {operand for node in graph.nodes for operand in node.inputs} | set(graph.outputs)
    nodes = [node for node in graph.nodes if node.primitive is not P.constant or node in read]
    return Graph([node for node in graph.inputs if node in read], graph.outputs, nodes)


# Building by hand -----------------------------------------------------------------------------------------------


def in_parts(
    table: Mapping[str, Iterable[Any]], make: Callable[[Any], Any] = lambda each: each
) -> list[tuple[str, Any]]:
    """The cases of a table: of each part what it has, or what is made of that.

    Example:
        >>> in_parts({"small": [1, 2], "large": [9]}, str)
        [('small', '1'), ('small', '2'), ('large', '9')]
    """
    return [(part, make(each)) for part, several in table.items() for each in several]


def graph_text(spec: str, program: str) -> str:
    """The text of a graph of `x` and `y`.

    Args:
        spec: the type and shape of both.
        program: the operations, and last the outputs, apart by semicolons.

    Example:
        >>> print(graph_text("f32[2]", "%0 = neg(x); %1 = add(%0, y); %1, %0"))
        graph(x: f32[2], y: f32[2]):
        %0 = neg(x)
        %1 = add(%0, y)
        return %1, %0
    """
    *operations, outputs = program.split("; ")
    return "\n".join([f"graph(x: {spec}, y: {spec}):", *operations, f"return {outputs}"])


def listing(text: str) -> str:
    """A graph as it is printed, below a reason (see `reasons.in_context`)."""
    return f"\n{Graph.parse(text)}"


def ladder(rungs: int) -> Graph:
    """A diamond on a diamond on a diamond: the number of paths doubles with each, that of the nodes does not."""
    x = node = input_node("x", Spec((2,), float32))
    for _ in range(rungs):
        node = apply(P.add, apply(P.neg, node), apply(P.absolute, node))
    return Graph((x,), (node,))


def is_harmless(graph: Graph) -> bool:
    """Whether a graph that somebody else wrote can be computed in little time and memory."""
    sizes = [node.spec.nbytes for node in graph.nodes]
    return len(sizes) < 10_000 and max(sizes, default=0) <= TOO_LARGE and sum(sizes) <= 64 * TOO_LARGE
