"""Interval analysis of integers: no number of a value lies outside of its interval."""

from __future__ import annotations

import random

import numpy as np
import pytest

from minitorch import dtypes
from minitorch import primitives as P
from minitorch.graph.build import apply, literal
from minitorch.ir import INPUT, Node, Spec
from minitorch.passes.intervals import interval

SPEC = Spec((256,), dtypes.int8)
EVERY = np.arange(-128, 128, dtype=np.int8)


def grown(draw, values):
    """A value more, by one of the operations that the analysis knows, or by one that it does not."""
    one, other = draw.sample(values, 2)
    compared = apply(draw.choice((P.less, P.less_equal, P.equal)), one, other)
    branches = draw.choice(((one, other), (other, one), tuple(draw.sample(values, 2))))
    places = apply(P.argsort, one, dim=0, descending=False)
    return draw.choice(
        (
            apply(P.maximum, one, other),
            apply(P.bitwise_not, one),
            apply(P.flip, one, dims=(0,)),
            apply(P.where, compared, *branches),
            apply(P.where, compared, *branches),
            apply(P.cast, places, dtype=dtypes.int8),
            apply(P.iota, size=256, dtype=dtypes.uint8),
            apply(P.add, one, other),
        )
    )


@pytest.mark.parametrize("seed", range(60))
def test_a_value_stays_in_its_interval(seed):
    draw = random.Random(seed)
    low = draw.randint(-128, 100)
    few = draw.randint(low, 127)
    inputs = {Node(INPUT, (), {"name": "x"}, SPEC): EVERY, Node(INPUT, (), {"name": "y"}, SPEC): EVERY.clip(low, few)}
    given = {list(inputs)[1]: (low, few)}
    values = [*inputs, *(literal(draw.randint(-128, 127), SPEC) for _ in range(3))]
    for _ in range(15):
        found = grown(draw, values)
        values.append(found if found.dtype is dtypes.int8 else apply(P.cast, found, dtype=dtypes.int8))
    known = dict(inputs)

    def evaluated(node):
        if node not in known:
            known[node] = node.primitive.evaluate(*map(evaluated, node.inputs), **node.params)
        return known[node]

    for node in values:
        low, high = interval(node, given)
        array = evaluated(node)
        assert low <= array.min() and array.max() <= high, node


def test_a_comparison_that_is_known_leaves_one_branch():
    label = Node(INPUT, (), {"name": "label"}, SPEC)
    ignored = apply(P.equal, label, literal(-100, SPEC))
    label_or_0 = apply(P.where, ignored, literal(0, SPEC), label)
    existing = apply(P.where, apply(P.less, label_or_0, literal(0, SPEC)), literal(10, SPEC), label_or_0)
    assert interval(existing) == (0, 127)
    assert interval(existing, {label: (0, 9)}) == (0, 9)
