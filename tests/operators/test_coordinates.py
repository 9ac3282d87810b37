"""Where moved elements come from, as digits of their index: the places that evaluating the movements gives."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from minitorch import primitives as P
from minitorch.dtypes import float32
from minitorch.graph import Graph
from minitorch.graph.build import apply, input_node
from minitorch.interpreters import Staging, interpreting
from minitorch.ir import Node, Spec
from minitorch.nn import functional as F
from minitorch.passes import DEAD_CODE, MOVEMENT
from minitorch.tensor import with_value
from minitorch_operators.lifting import LIFTING
from minitorch_operators.lifting.coordinates import coordinates


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_coordinates_are_those_of_moved_positions(seed):
    """Digits say for each element where it comes from, or that they cannot; never a wrong place."""
    choose = Random(seed)
    source = node = input_node("x", Spec((2, choose.choice([1, 3]), choose.choice([1, 4, 6]), 6), float32))
    chain = [node]
    for _ in range(choose.randrange(1, 6)):
        node = _moved(choose, node)
        chain.insert(0, node)
    found = coordinates(chain)
    if found is None:
        return
    positions = np.arange(1, source.spec.size + 1).reshape(source.shape)
    for each in reversed(chain[:-1]):
        positions = each.primitive.evaluate(positions, **each.params)
    expected = np.zeros(node.shape, np.int64)
    for index in np.ndindex(*node.shape):
        at = list(found.offsets)
        for place, dim in zip(index, found.dims, strict=True):
            for digit in reversed(dim):
                at[digit.axis] += place % digit.length * digit.stride
                place //= digit.length
        if all(low <= each < high for each, (low, high) in zip(at, found.inside, strict=True)):
            expected[index] = np.ravel_multi_index(at, source.shape) + 1
    np.testing.assert_array_equal(positions, expected, str([each.primitive.name for each in chain]))


def _moved(choose: Random, node: Node) -> Node:
    """A random movement of a value."""
    shape, rank = node.shape, len(node.shape)
    kind = choose.randrange(5)
    if kind == 0:
        return apply(P.permute, node, dims=tuple(choose.sample(range(rank), rank)))
    if kind == 1:
        lengths, rest = [], node.spec.size
        while rest > 1:
            lengths.append(choose.choice([by for by in (2, 3, 4, 6, rest) if rest % by == 0]))
            rest //= lengths[-1]
        return apply(P.reshape, node, shape=tuple(lengths) or (1,))
    if kind == 2:
        dim = choose.randrange(rank)
        size = choose.randrange(1, min(shape[dim], 3) + 1)
        return apply(P.unfold, node, dim=dim, size=size, step=choose.randrange(1, 3), dilation=1)
    if kind == 3:
        padding = [(choose.choice([0, 0, 1]), choose.choice([0, 0, 2]), choose.choice([0] * 9 + [1])) for _ in shape]
        return apply(P.pad, node, padding=tuple(padding), value=0)
    start = [choose.randrange(length) if choose.random() < 0.3 else 0 for length in shape]
    stop = [choose.randrange(low, length) + 1 for low, length in zip(start, shape, strict=True)]
    step = tuple([choose.choice([1, 1, 2]) for _ in shape])
    return apply(P.slice_, node, start=tuple(start), stop=tuple(stop), step=step)


def test_convolutions_are_found_without_looking_at_elements():
    def f(x, weight):
        return F.max_pool2d(F.conv2d(x, weight, stride=2, padding=3), 3, 2, 1)

    staging = Staging("f")
    inputs = [staging.input(Spec(shape, float32), "x") for shape in ((1 << 12, 64, 224, 224), (64, 64, 7, 7))]
    with interpreting(staging):
        result = f(*map(with_value, inputs))
    graph = DEAD_CODE(MOVEMENT(Graph(inputs, [result._value])))
    found = LIFTING(graph).count()
    assert found["conv"] == found["max_pool"] == 1 and not found["unfold"]
