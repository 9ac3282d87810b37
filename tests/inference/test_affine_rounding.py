"""Affine folding of random programs stays within the derived bound, and planted wrong rules do not."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import minitorch as mt
from minitorch import dtypes, nn
from minitorch import primitives as P
from minitorch.errors import GraphError, MismatchError, ShapeError
from minitorch.graph import Graph, apply, input_node, literal
from minitorch.ir import Node, Spec
from minitorch.passes import DEFAULT, LOWERING
from minitorch_inference import affine
from minitorch_inference.affine import AFFINE_FOLDING, after, before, channels, fold_affine, maps, products
from tests.inference.affine import assert_within_bound, count, frozen_graph, overflows, randomized
from tests.support.graphs import Array

Patch = pytest.MonkeyPatch

# Scales that rounding could go wrong at: of all sizes, both signs, and those that cancel.
SCALES = (1.0, -1.0, 3.0, 1 / 3, 1e-3, -7e4, 1e12, 1e-12, 1e-30, 1e30, 2.0**-140, 0.0)
SHIFTS = (0.0, 1.0, -1.0, 1 / 3, 1e6, -1e6, 1e-20, 1e20)
TYPES = (dtypes.float32, dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)


class Program:
    """A program that is being made, node by node, from one input."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.dtype = self.draw(st.sampled_from(TYPES))
        self.random = np.random.default_rng(self.draw(st.integers(0, 1000)))
        shape = tuple(self.draw(st.lists(st.integers(1, 4), min_size=2, max_size=4)))
        self.input = input_node("x", Spec(shape, self.dtype))
        self.made = [self.input]

    def draw(self, strategy: Any) -> Any:
        return self.data.draw(strategy)

    @property
    def last(self) -> Node:
        return self.made[-1]

    def array(self, shape: tuple[int, ...], numbers: tuple[float, ...]) -> Node:
        """A constant of adversarial and ordinary numbers."""
        chosen = self.random.choice(np.array(numbers), shape)
        ordinary = self.random.normal(size=shape)
        with np.errstate(all="ignore"):
            return literal(np.where(self.random.random(shape) < 0.5, chosen, ordinary).astype(self.dtype.numpy))

    def step(self) -> Node:
        """An operation by a constant, which varies along some of the axes."""
        x = self.last
        primitive = self.draw(st.sampled_from((P.add, P.sub, P.mul, P.div)))
        axes = self.draw(st.sets(st.integers(0, x.spec.ndim - 1), max_size=2))
        shape = tuple(length if axis in axes else 1 for axis, length in enumerate(x.shape))
        numbers: tuple[float, ...] = SHIFTS if primitive in (P.add, P.sub) else SCALES
        if primitive is P.div:
            numbers = tuple(number for number in numbers if abs(number) > 1e-6)
        constant = apply(P.expand, self.array(shape, numbers), shape=x.shape)
        swapped = primitive is not P.div and self.draw(st.booleans())
        return apply(primitive, constant, x) if swapped else apply(primitive, x, constant)

    def product(self) -> Node:
        """The data times weights, or weights times the data."""
        x, length = self.last, self.draw(st.integers(1, 4))
        if self.draw(st.booleans()):
            weights = self.array((*x.shape[:-2], x.shape[-1], length), (1.0, 0.0))
            return apply(P.dot, x, weights, dtype=self.dtype)
        weights = self.array((*x.shape[:-2], length, x.shape[-2]), (1.0, 0.0))
        return apply(P.dot, weights, x, dtype=self.dtype)

    def movement(self) -> Node:
        """The same elements elsewhere, or with zeros around them."""
        x = self.last
        kind = self.draw(st.sampled_from(("permute", "join", "split", "pad", "flip", "slice", "unfold")))
        if kind == "permute":
            return apply(P.permute, x, dims=tuple(self.draw(st.permutations(range(x.spec.ndim)))))
        if kind == "join" and x.spec.ndim > 2:
            at = self.draw(st.integers(0, x.spec.ndim - 2))
            return apply(P.reshape, x, shape=(*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :]))
        if kind == "split" and 4 in x.shape:
            at = x.shape.index(4)
            return apply(P.reshape, x, shape=(*x.shape[:at], 2, 2, *x.shape[at + 1 :]))
        axis = self.draw(st.integers(0, x.spec.ndim - 1))
        own = [each == axis for each in range(x.spec.ndim)]
        if kind == "pad":
            return apply(
                P.pad, x, padding=tuple((1, 0, int(x.shape[axis] < 3)) if it else (0, 0, 0) for it in own), value=0.0
            )
        if kind == "flip":
            return apply(P.flip, x, dims=(axis,))
        if kind == "unfold" and x.shape[axis] > 1 and x.spec.ndim < 5:
            return apply(P.unfold, x, dim=axis, size=2, step=1, dilation=1)
        start = tuple(int(it and length > 1) for it, length in zip(own, x.shape, strict=True))
        return apply(P.slice_, x, start=start, stop=x.shape, step=(1,) * x.spec.ndim)

    def relu(self) -> Node:
        zero = literal(0.0, self.last.spec)
        return apply(P.where, apply(P.less_equal, self.last, zero), zero, self.last)

    def graph(self) -> Graph:
        kinds = (self.step, self.step, self.step, self.product, self.product, self.movement, self.movement, self.relu)
        for _ in range(self.draw(st.integers(3, 12))):
            node = self.draw(st.sampled_from(kinds))()
            if node.spec.size <= 1500:
                self.made.append(node)
        outputs = [self.last]
        if self.draw(st.integers(0, 4)) == 0:
            outputs.append(self.draw(st.sampled_from(self.made)))
        return Graph([self.input], outputs)


@given(st.data())
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_programs_stay_within_the_bound(data):
    program = Program(data)
    graph = program.graph()
    result = fold_affine(graph)
    result.graph.verify()
    assert count(result.graph, "dot") <= count(graph, "dot")
    assert fold_affine(result.graph).graph is result.graph
    x = program.random.normal(size=program.input.shape).astype(program.dtype.numpy)
    assume(not overflows(graph, [x]) and not overflows(result.graph, [x]))
    assert_within_bound(graph, result, [x])


# Planted --------------------------------------------------------------------------------------------------------


def as_it_is(patch: Patch) -> None:
    """The scale of a permuted axis is taken for that of another."""
    patch.setitem(channels.BACKWARD, P.permute, lambda numbers, node: numbers)


def whatever_reads(patch: Patch) -> None:
    """The first reader is taken for the only one, and the product is replaced for all of them."""
    patch.setattr(maps.View, "reader", lambda self, node: next(iter(self.readers(node)), None))
    replaced = affine._replaced

    def for_all(graph: Graph, matches: dict[Node, Any]) -> Graph:
        changed = replaced(graph, matches)
        new = next(node for node in changed.nodes if node.primitive is P.dot)
        return changed.substitute({node: new for node in changed.nodes if node.primitive is P.dot})

    patch.setattr(affine, "_replaced", for_all)


def through_padding(patch: Patch) -> None:
    """Zeros that are padded are shifted with the rest."""
    moved = maps.AffineMap.moved
    everywhere = {**channels.FORWARD, P.pad: lambda numbers, node: numbers}

    def wrongly(self: maps.AffineMap, node: Node) -> maps.AffineMap | None:
        if node.primitive is not P.pad:
            return moved(self, node)
        rule = everywhere[node.primitive]
        return maps.AffineMap(rule(self.scale, node), rule(self.shift, node), self.steps, self.scales)

    patch.setattr(maps.AffineMap, "moved", wrongly)


def shift_for_bias(patch: Patch) -> None:
    """The shift before a product is not multiplied by the weights."""
    patch.setattr(before, "_bias", lambda weights, shift, dot, side: np.ones((1, 1)))


def twice(patch: Patch) -> None:
    """The shift is scaled once more."""
    then = maps.AffineMap.then
    patch.setattr(maps.AffineMap, "then", lambda self, step: scaled_twice(then(self, step), step))


def scaled_twice(found: maps.AffineMap, step: maps.Step) -> maps.AffineMap:
    more = step.number if step.primitive is P.mul else 1.0
    return maps.AffineMap(found.scale, found.shift * more, found.steps, found.scales)


def whatever_moves(patch: Patch) -> None:
    """Two products are taken for one, whatever movements are between."""
    patch.setattr(products, "are_undone", lambda movements, base: True)


HEAD = "graph(x: f32[3,3]): %0 = constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.5]]) : f32[3,3] "
TAIL = "%1 = dot(x, %0, dtype=f32) "
PLANTED: dict[str, tuple[Callable[[Patch], None], str]] = {
    "the scale of the wrong axis": (
        as_it_is,
        TAIL + "%2 = permute(%1, dims=[1,0]) %3 = constant([[2.0, 3.0, -1.0]]) : f32[1,3] "
        "%4 = expand(%3, shape=[3,3]) %5 = mul(%2, %4) return %5",
    ),
    "across a second reader": (whatever_reads, TAIL + "%2 = mul(%1, 2.0) %3 = add(%1, %2) return %3"),
    "a shift through zero padding": (
        through_padding,
        TAIL + "%2 = add(%1, 1.0) %3 = pad(%2, padding=[[1,0,0],[0,0,0]], value=0.0) %4 = mul(%3, 2.0) return %4",
    ),
    "a shift for a bias": (shift_for_bias, "%1 = mul(x, 2.0) %2 = add(%1, 3.0) %3 = dot(%2, %0, dtype=f32) return %3"),
    "two products with a transposition between": (
        whatever_moves,
        TAIL + "%2 = permute(%1, dims=[1,0]) %3 = dot(%2, %0, dtype=f32) return %3",
    ),
    "a shift scaled twice": (twice, TAIL + "%2 = add(%1, 1.0) %3 = mul(%2, 3.0) return %3"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_wrong_rule_breaks_the_bound(name, monkeypatch):
    plant, program = PLANTED[name]
    graph = Graph.parse(HEAD + program)
    x = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    assert_within_bound(graph, fold_affine(graph), [x])
    plant(monkeypatch)
    wrong = fold_affine(graph)
    assert wrong.folded
    with pytest.raises(AssertionError):
        assert_within_bound(graph, wrong, [x])


def test_a_product_for_each_reader_costs_more_than_it_saves(monkeypatch):
    """Planted without replacing the product for all: the numbers are right, and there is a product more."""
    graph = Graph.parse(HEAD + PLANTED["across a second reader"][1])
    monkeypatch.setattr(maps.View, "reader", lambda self, node: next(iter(self.readers(node)), None))
    assert count(fold_affine(graph).graph, "dot") == 2 > count(graph, "dot")


def test_shadow_mode_blames_the_pass(monkeypatch, tmp_path):
    """What eager mode computes is compared with what is left after the pass; a right fold is no mismatch."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    passes = (*DEFAULT, AFFINE_FOLDING, *LOWERING)

    def function(x: mt.Tensor) -> mt.Tensor:
        w = mt.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.5]])
        return (x @ w).permute(1, 0) * mt.tensor([[2.0], [3.0], [-1.0]]) + 0.5

    def turned(x: mt.Tensor) -> mt.Tensor:
        w = mt.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.5]])
        return (x @ w).permute(1, 0) * mt.tensor([[2.0, 3.0, -1.0]]) + 0.5

    x = mt.rand(3, 3)
    mt.jit(function, passes=passes, check=True)(x)
    as_it_is(monkeypatch)
    with pytest.raises(MismatchError, match="affine folding"):
        mt.jit(turned, passes=passes, check=True)(x)


def test_the_verifier_refuses_another_shape(monkeypatch):
    """Planted: the shift is not expanded to the shape of the product."""

    def small(numbers: Array, spec: Spec, source: object) -> Node:
        return literal(numbers)

    monkeypatch.setattr(after, "constant_like", small)
    with pytest.raises((GraphError, ShapeError)):
        AFFINE_FOLDING(Graph.parse(HEAD + TAIL + "%2 = add(%1, 1.0) %3 = mul(%2, 3.0) return %3"))


def test_a_network_at_adversarial_scales_stays_within_the_bound():
    """Variances near 0 and near infinity, means that cancel, and weights of all sizes."""
    conv, norm = nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6)
    model = randomized(nn.Sequential(conv, norm, nn.ReLU(), nn.Conv2d(6, 2, 1)))
    norm.running_var.copy_(mt.tensor([0.0, 1e-30, 1e30, 1e-12, 4.0, 1e12]))
    norm.running_mean.copy_(conv.bias.detach() * (1 + 1e-7))
    norm.weight.detach().copy_(mt.tensor([1e-6, 1e3, 1e10, -1e-20, 0.0, -3.0]))
    graph = frozen_graph(model, mt.zeros(1, 2, 5, 5))
    result = fold_affine(graph)
    assert result.folded
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=(1, 2, 5, 5)).astype(np.float32)
        assert_within_bound(graph, result, [x])
