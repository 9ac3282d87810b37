"""What the tests of affine folding share: frozen graphs, and the bound on the rounding error.

The bound is that of `minitorch.passes.affine`, for whole programs: a program of additions, products with constants,
sums of products and relu (which makes no difference larger) is evaluated with absolute values, and every result is
off by at most a number of roundings of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minitorch as mt
from minitorch import primitives as P
from minitorch.dtypes import DType
from minitorch.graph import Graph, literal
from minitorch.ir import Node
from minitorch.passes import run_pipeline
from minitorch_inference.affine import AffineFolding, fold_affine
from minitorch_inference.variation import variation
from tests.support.graphs import Array, evaluate_graph

UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
LARGEST = {"float16": 65504.0, "bfloat16": 3.38e38, "float32": 3.4028234e38, "float64": 1.7976931348623157e308}


def frozen_graph(function: Any, *arguments: mt.Tensor) -> Graph:
    """The graph of a function whose tensors from outside are constants of the graph."""
    with mt.no_grad():
        graph = mt.jit(function).graph(*arguments)
    owner = function if isinstance(function, mt.nn.Module) else None
    assert owner is not None
    tensors: dict[str, mt.Tensor] = {**dict(owner.named_parameters()), **dict(owner.named_buffers())}
    constants = {
        node: literal(tensors[name].detach().numpy())
        for node in graph.inputs
        if (name := str(node.params["name"])) in tensors
    }
    return run_pipeline(graph.substitute(constants)).graph


def randomized(module: mt.nn.Module, seed: int = 0) -> mt.nn.Module:
    """A module in evaluation mode, with random parameters and statistics."""
    random = np.random.default_rng(seed)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.dtype.is_floating_point:
            values = random.normal(size=tensor.shape).astype(np.float32)
            tensor.detach().copy_(mt.tensor(np.abs(values) + 0.1 if "var" in name else values))
    return module.eval()


def count(graph: Graph, *names: str) -> int:
    """How many nodes of these primitives there are."""
    return sum(graph.count()[name] for name in names)


def elementwise_on_data(graph: Graph) -> list[str]:
    """The operations on elements that a call carries out, without those of a relu."""
    found = variation(graph)
    arithmetic = (P.add, P.sub, P.mul, P.div, P.neg, P.sqrt, P.cast)
    return [node.primitive.name for node in graph.nodes if node.primitive in arithmetic and node not in found.constants]


# The bound --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """Of a value: all terms made positive, the roundings of a term, and what underflow may add.

    Attributes:
        magnitude: the expression of absolute values.
        roundings: the number of them that a monomial passes through at most.
        underflow: an absolute error.
    """

    magnitude: Array
    roundings: int
    underflow: Array


def sizes(graph: Graph, arrays: Sequence[Array], constants_are_off: bool = False) -> Mapping[Node, Size]:
    """The sizes of all values, in float64.

    Args:
        constants_are_off: whether a constant may have underflowed when it was made.
    """
    constants = variation(graph).constants
    found: dict[Node, Size] = {}
    for node, array in zip(graph.inputs, arrays, strict=True):
        found[node] = Size(np.abs(array).astype(np.float64), 0, np.zeros(node.shape))
    values: dict[Node, Array] = {}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if node in constants:
                operands = [values[each] for each in node.inputs]
                values[node] = np.array(node.primitive.evaluate(*operands, **node.params))
                off = np.full(node.shape, SMALLEST.get(node.dtype.name, 0.0) if constants_are_off else 0.0)
                found[node] = Size(np.abs(values[node].astype(np.float64)), 0, off)
            else:
                found[node] = _size(node, [found[each] for each in node.inputs])
    return found


def _size(node: Node, operands: list[Size]) -> Size:
    a, b = operands[0], operands[-1]
    if node.primitive is P.less_equal:  # of relu, which is where(x <= 0, 0, x)
        return a
    if node.primitive is P.where:
        return b
    tiny = SMALLEST[node.dtype.name]
    rounded = max(each.roundings for each in operands) + 1
    if node.primitive in (P.add, P.sub):
        return Size(a.magnitude + b.magnitude, rounded, a.underflow + b.underflow)
    if node.primitive is P.mul:
        off = a.underflow * (b.magnitude + b.underflow) + a.magnitude * b.underflow
        return Size(a.magnitude * b.magnitude, a.roundings + b.roundings + 1, off + tiny)
    if node.primitive is P.div:
        return Size(a.magnitude / b.magnitude, rounded, a.underflow / b.magnitude + tiny)
    if node.primitive is P.dot:
        k = node.inputs[0].shape[-1]
        off = a.underflow @ (b.magnitude + b.underflow) + a.magnitude @ b.underflow
        return Size(a.magnitude @ b.magnitude, a.roundings + b.roundings + k, off + k * tiny)
    if node.primitive is P.neg:
        return a
    assert node.primitive.kind == "movement", node
    params = {**node.params, "value": abs(node.params["value"])} if node.primitive is P.pad else node.params
    unmoved = {**node.params, "value": 0.0} if node.primitive is P.pad else node.params
    magnitude, underflow = (
        np.array(node.primitive.evaluate(each, **how)) for each, how in ((a.magnitude, params), (a.underflow, unmoved))
    )
    return Size(magnitude, a.roundings, underflow)


def gamma(roundings: int, dtype: DType) -> float:
    """The relative error of so many roundings."""
    n = roundings * UNIT[dtype.name]
    return n / (1 - n) if n < 1 else np.inf


def overflows(graph: Graph, arrays: Sequence[Array]) -> bool:
    """Whether a value could be larger than its type allows, in some order of summation."""
    found = sizes(graph, arrays)
    return any(
        not (np.asarray(size.magnitude) <= LARGEST.get(node.dtype.name, np.inf) / 2).all()
        for node, size in found.items()
    )


def assert_within_bound(graph: Graph, result: AffineFolding, arrays: Sequence[Array]) -> None:
    """Every result of a folded graph is as near to that of the graph as the derived bound says."""
    before, after = evaluate_graph(graph, list(arrays)), evaluate_graph(result.graph, list(arrays))
    expected, made = sizes(graph, arrays), sizes(result.graph, arrays, constants_are_off=True)
    for one, other, old, new in zip(before, after, graph.outputs, result.graph.outputs, strict=True):
        size = expected[old]
        roundings = size.roundings + 3 * len(result.folded)
        bound = 2 * gamma(roundings, old.dtype) * size.magnitude + size.underflow + made[new].underflow
        difference = np.abs(one.astype(np.float64) - other.astype(np.float64))
        assert (difference <= bound).all(), f"{(difference / np.maximum(bound, 1e-300)).max()}\n{graph}\n{result.graph}"


def fold_and_check(graph: Graph, seed: int = 0) -> AffineFolding:
    """Fold a graph, verify the result and hold it to the bound."""
    result = fold_affine(graph)
    result.graph.verify()
    assert [node.spec for node in result.graph.outputs] == [node.spec for node in graph.outputs]
    random = np.random.default_rng(seed)
    arrays = [random.normal(size=node.shape).astype(node.dtype.numpy) for node in graph.inputs]
    assert_within_bound(graph, result, arrays)
    return result
