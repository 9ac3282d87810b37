"""Affine folding: what is folded, what is not and why, and how many kernels and bytes a folded network has."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch import nn
from minitorch.compiler.kernels.ledger import Ledger, ledger_of
from minitorch.compiler.target import TARGETS
from minitorch.graph import Graph
from minitorch.passes import lowered
from minitorch_inference.affine import AFFINE_FOLDING, fold_affine
from minitorch_inference.affine import decisions as why
from tests.inference.affine import count, elementwise_on_data, fold_and_check, frozen_graph, randomized
from tests.support.graphs import evaluate_graph


class Transposed(nn.Module):
    """A transposed convolution: the gradient of a convolution by its input."""

    def __init__(self, stride: int, padding: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(mt.zeros(4, 3, 3, 3))
        self.stride, self.padding = stride, padding

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        """[batch, 4, n, n] gives [batch, 3, (n - 1) * stride + 3 - 2 * padding, ...]."""
        return nn.functional.conv_transpose2d(x, self.weight, None, self.stride, self.padding)


# Modules, an input, the operations on elements that are left, and how many products.
CASES = {
    "Conv + BN + ReLU": ((nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()), (2, 3, 5, 5), 1, 1),
    "Conv without bias + BN": ((nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4)), (2, 3, 5, 5), 1, 1),
    "Conv with stride + BN": ((nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4)), (2, 3, 7, 7), 1, 1),
    "Conv1d + BN": ((nn.Conv1d(3, 4, 3, padding=2, dilation=2), nn.BatchNorm1d(4)), (2, 3, 8), 1, 1),
    "depthwise Conv + BN": ((nn.Conv2d(4, 4, 3, groups=4), nn.BatchNorm2d(4)), (2, 4, 5, 5), 1, 1),
    "grouped Conv + BN": ((nn.Conv2d(4, 6, 3, groups=2), nn.BatchNorm2d(6)), (2, 4, 5, 5), 1, 1),
    "Linear + BN": ((nn.Linear(5, 4), nn.BatchNorm1d(4)), (3, 5), 1, 1),
    "Linear on sequences + BN": ((nn.Linear(5, 4), nn.BatchNorm1d(7)), (3, 7, 5), 2, 1),  # per position
    "BN + Linear": ((nn.BatchNorm1d(5), nn.Linear(5, 4)), (3, 5), 1, 1),
    "BN + Linear + BN": ((nn.BatchNorm1d(5), nn.Linear(5, 4), nn.BatchNorm1d(4)), (3, 5), 1, 1),
    "BN + Conv": ((nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3)), (2, 3, 5, 5), 1, 1),
    "BN + grouped Conv": ((nn.BatchNorm2d(4), nn.Conv2d(4, 6, 3, groups=2)), (2, 4, 5, 5), 1, 1),
    "BN + padded Conv": ((nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3, padding=1)), (2, 3, 5, 5), 2, 1),  # x + t/s stays
    "BN + padded depthwise Conv": ((nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3, padding=1, groups=4)), (2, 4, 5, 5), 2, 1),
    "ConvTranspose + BN": ((Transposed(1, 1), nn.BatchNorm2d(3)), (2, 4, 4, 4), 1, 1),
    "ConvTranspose with stride + BN": ((Transposed(2, 1), nn.BatchNorm2d(3), nn.ReLU()), (2, 4, 4, 4), 1, 1),
    "two Linear": ((nn.Linear(5, 4), nn.Linear(4, 3)), (3, 5), 1, 1),
    "two Linear on sequences": ((nn.Linear(5, 4), nn.Linear(4, 3)), (2, 3, 5), 1, 1),
    "three Linear": ((nn.Linear(5, 4), nn.Linear(4, 4), nn.Linear(4, 3)), (3, 5), 1, 1),
    "a bottleneck of Linear": ((nn.Linear(8, 1), nn.Linear(1, 8)), (3, 8), 1, 2),
    "Conv + pointwise Conv": ((nn.Conv2d(2, 8, 2), nn.Conv2d(8, 3, 1)), (2, 2, 5, 4), 1, 1),
    "Conv1d without biases, twice": ((nn.Conv1d(2, 8, 3, bias=False), nn.Conv1d(8, 3, 1, bias=False)), (2, 2, 7), 0, 1),
    "padded, dilated Conv + pointwise Conv + BN": (
        (nn.Conv2d(2, 8, 3, padding=2, dilation=2), nn.Conv2d(8, 3, 1), nn.BatchNorm2d(3, affine=False)),
        (2, 2, 5, 5),
        1,
        1,
    ),
    "grouped Conv, twice": ((nn.Conv2d(4, 8, 2, groups=2), nn.Conv2d(8, 4, 1, groups=2)), (2, 4, 5, 4), 1, 1),
    "pointwise Conv, twice": ((nn.Conv2d(4, 8, 1), nn.Conv2d(8, 4, 1)), (2, 4, 5, 4), 1, 1),
    "a bottleneck of pointwise Conv": ((nn.Conv2d(8, 1, 1), nn.Conv2d(1, 8, 1)), (2, 8, 5, 4), 1, 2),
    "pointwise Conv with stride": ((nn.Conv2d(2, 8, 2), nn.Conv2d(8, 3, 1, stride=2)), (2, 2, 6, 6), 1, 2),
    "padded pointwise Conv": ((nn.Conv2d(2, 8, 2), nn.Conv2d(8, 3, 1, padding=1)), (2, 2, 5, 4), 2, 2),
    "Conv of channels in other groups": ((nn.Conv2d(4, 8, 1, groups=2), nn.Conv2d(8, 4, 1)), (2, 4, 5, 4), 1, 2),
    "depthwise Conv + pointwise Conv": ((nn.Conv2d(8, 8, 3, groups=8), nn.Conv2d(8, 2, 1)), (2, 8, 5, 4), 1, 2),
    "BN + ReLU": ((nn.BatchNorm2d(3), nn.ReLU()), (2, 3, 4, 4), 2, 0),
    "Linear + ReLU": ((nn.Linear(5, 4), nn.ReLU()), (3, 5), 1, 1),
}


UNCHANGED = ("Linear + ReLU", "padded pointwise Conv")  # a bias of the first is no bias where zeros are padded


@pytest.mark.parametrize("name", CASES)
def test_what_is_folded(name):
    modules, shape, left, dots = CASES[name]
    graph = frozen_graph(randomized(nn.Sequential(*modules)), mt.zeros(*shape))
    result = fold_and_check(graph)
    assert len(elementwise_on_data(result.graph)) == left, result.graph
    assert count(result.graph, "dot") == dots
    assert bool(result.folded) == (result.graph is not graph) == (name not in UNCHANGED)


@pytest.mark.parametrize("name", CASES)
def test_done_once_there_is_nothing_left_to_do(name):
    modules, shape, *_ = CASES[name]
    once = AFFINE_FOLDING(frozen_graph(randomized(nn.Sequential(*modules)), mt.zeros(*shape)))
    assert AFFINE_FOLDING(once) is once


def test_a_graph_without_constants_is_left_alone():
    with mt.no_grad():
        graph = mt.jit(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).eval()).graph(mt.zeros(2, 3))
    result = fold_affine(graph)
    assert result.graph is graph
    assert not result.folded
    assert str(result) == "no product with constant weights is scaled"


@pytest.mark.parametrize("target", TARGETS)
def test_conv_bn_relu_is_one_kernel(target):
    """The folded network has a kernel for each Conv + BN + ReLU, and reads and computes less."""
    layers = [
        layer
        for inputs, outputs in ((3, 8), (8, 8), (8, 16), (16, 16))
        for layer in (nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())
    ]
    graph = frozen_graph(randomized(nn.Sequential(*layers)), mt.zeros(1, 3, 12, 12))
    folded = AFFINE_FOLDING(graph)
    before, after = (ledger_of(lowered(each), TARGETS[target]) for each in (graph, folded))
    assert len(after.kernels) == 4
    assert all(kernel.kind == "K4" for kernel in after.kernels)
    assert flops(after) < flops(before)
    assert moved(after) < moved(before)


def flops(ledger: Ledger) -> int:
    return sum(kernel.flops for kernel in ledger.kernels)


def moved(ledger: Ledger) -> int:
    return sum(kernel.bytes_read + kernel.bytes_written for kernel in ledger.kernels)


def test_the_weight_and_bias_of_a_layer_norm_go_into_the_product():
    graph = frozen_graph(randomized(nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 4))), mt.zeros(3, 5))
    result = fold_affine(graph)
    before, after = elementwise_on_data(graph), elementwise_on_data(result.graph)
    assert (before.count("mul") - after.count("mul"), before.count("add") - after.count("add")) == (1, 1)
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    (expected,), (found,) = evaluate_graph(graph, [x]), evaluate_graph(result.graph, [x])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


# Refused --------------------------------------------------------------------------------------------------------

W = "%0 = constant([[1.0, 2.0], [3.0, -4.0], [0.5, 7.0]]) : f32[3,2] %1 = dot(x, %0, dtype=f32) "
S = "%2 = constant([[2.0, -3.0]]) : f32[1,2] %3 = expand(%2, shape=[2,2]) "
ROW = "%2 = constant([[2.0], [-3.0]]) : f32[2,1] %3 = expand(%2, shape=[2,2]) "
V = "%4 = constant([[1.0, 2.0], [3.0, -4.0]]) : f32[2,2] "

REFUSED = {  # programs of x: f32[2,3], y: f32[2,2] and z: f32[2,1]
    "a second reader": (W + S + "%4 = mul(%1, %3) %5 = exp(%1) %6 = add(%4, %5) return %6", why.SECOND_READER),
    "a result of the program": (W + S + "%4 = mul(%1, %3) return %1, %4", why.RESULT),
    "a scale of data": (
        W + "%2 = reduce_sum(y, dims=[0]) %3 = expand(%2, shape=[2,2]) %4 = mul(%1, %3) return %4",
        why.DATA,
    ),
    "statistics of the batch": (
        W + "%2 = reduce_sum(%1, dims=[0]) %3 = expand(%2, shape=[2,2]) %4 = sub(%1, %3) return %4",
        why.DATA,
    ),
    "a scale along the rows": (W + ROW + "%4 = mul(%1, %3) return %4", why.ROWS),
    "a scale along the sum": (
        V + "%2 = constant([[2.0], [-3.0]]) : f32[2,1] %3 = expand(%2, shape=[2,2]) %5 = mul(y, %3) "
        "%6 = dot(%5, %4, dtype=f32) return %6",
        why.SUMMED,
    ),
    "windows": (
        W + "%2 = unfold(%1, dim=1, size=2, step=1, dilation=1) %3 = constant([[[2.0, 3.0]]]) : f32[1,1,2] "
        "%4 = expand(%3, shape=[2,1,2]) %5 = mul(%2, %4) return %5",
        why.WINDOWS,
    ),
    "an infinite scale": (W + "%2 = mul(%1, inf) return %2", why.NOT_FINITE),
    "a scale that is not a number": (W + "%2 = mul(%1, nan) return %2", why.NOT_FINITE),
    "a division by zero": (W + "%2 = div(%1, 0.0) return %2", why.NOT_FINITE),
    "weights that overflow": (W + "%2 = mul(%1, 3e38) return %2", why.NOT_FINITE),
    "a scale that vanishes": (W + "%2 = mul(%1, 1e-30) %3 = mul(%2, 1e-30) return %3", why.VANISHES),
    "a shift that is not finite": (W + "%2 = mul(%1, 2.0) %3 = add(%2, inf) return %3", why.NOT_FINITE),
    "integers": (
        "%0 = cast(x, dtype=i32) %1 = constant([[1], [2], [3]]) : i32[3,1] %2 = dot(%0, %1, dtype=i32) "
        "%3 = mul(%2, 5) return %3",
        why.INTEGERS,
    ),
    "decoded weights": (
        "%0 = constant([[1], [2], [3]]) : i8[3,1] %1 = cast(%0, dtype=f32) %2 = dot(x, %1, dtype=f32) "
        "%3 = mul(%2, 5.0) return %3",
        why.DECODED,
    ),
    "rounding to whole numbers": (
        W + "%2 = add(%1, 12582912.0) %3 = sub(%2, 12582912.0) %4 = mul(%3, 2.0) return %4",
        why.ROUNDING,
    ),
    "rounding to fractions": (
        W + "%2 = sub(%1, 98304.0) %3 = add(%2, 98304.0) %4 = mul(%3, 2.0) return %4",
        why.ROUNDING,
    ),
    "a conversion": (W + "%2 = cast(%1, dtype=f16) %3 = mul(%2, 5.0) return %3", why.CAST),
    "zeros behind a shift": (
        V + "%0 = add(y, 1.0) %1 = pad(%0, padding=[[1,0,0],[0,0,0]], value=0.0) %2 = dot(%1, %4, dtype=f32) return %2",
        why.PADDING,
    ),
    "more operations": (
        "%0 = add(z, 1.0) %1 = constant([[1.0, 2.0, 3.0]]) : f32[1,3] %2 = dot(%0, %1, dtype=f32) return %2",
        why.MORE,
    ),
    "a scale before, read twice": (
        V + "%0 = mul(y, 2.0) %1 = dot(%0, %4, dtype=f32) %2 = mul(%0, %1) return %2",
        why.SECOND_READER,
    ),
    "a product read twice": (
        W + V + "%2 = dot(%1, %4, dtype=f32) %3 = exp(%1) %5 = add(%2, %3) return %5",
        why.SECOND_READER,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    program, reason = REFUSED[name]
    graph = Graph.parse(f"graph(x: f32[2,3], y: f32[2,2], z: f32[2,1]): {program}")
    result = fold_affine(graph)
    assert reason in {decision.reason for decision in result.refused}, str(result)
    assert result.graph is graph
    assert reason in str(result)


def test_batch_norm_in_training_is_refused():
    """As a program: its statistics are those of the batch."""

    class Training(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

        def forward(self, x: mt.Tensor) -> mt.Tensor:
            return F.batch_norm(self.conv(x), None, None, self.norm.weight, self.norm.bias, training=True)

    result = fold_affine(frozen_graph(randomized(Training()), mt.zeros(2, 3, 5, 5)))
    assert why.DATA in {decision.reason for decision in result.refused}


def test_a_decision_names_the_line_and_what_it_saves():
    graph = frozen_graph(randomized(nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4))), mt.zeros(3, 5))
    (decision,) = fold_affine(graph).folded
    assert decision.is_folded
    assert decision.saved == 4 * 12  # five operations on 3 × 4 elements become one
    assert "affine.py" in decision.where
    assert "folded (48 operations fewer)" in str(decision)


def test_every_reason_is_met():
    """No reason is listed that no program has."""
    reasons = {value for name, value in vars(why).items() if name.isupper() and isinstance(value, str)}
    assert reasons - {reason for _, reason in REFUSED.values()} == {why.FOLDED}


def test_the_scale_is_applied_where_the_type_is_16_bits():
    """The numbers of every float type are held to its own bound."""
    for dtype in ("f16", "bf16", "f64"):
        program = (W + S + "%4 = sub(%1, 0.5) %5 = mul(%4, %3) %6 = div(%5, 3.0) return %6").replace("f32", dtype)
        result = fold_and_check(Graph.parse(f"graph(x: {dtype}[2,3]): {program}"))
        assert len(result.folded) == 1


def test_folded_weights_round_once():
    """1/3 of a weight is the nearest number to that, though a third is none."""
    graph = Graph.parse(f"graph(x: f32[2,3]): {W} %2 = div(%1, 3.0) return %2")
    (weights,) = (node for node in fold_affine(graph).graph.nodes if node.primitive.name == "constant")
    expected = (np.array([[1, 2], [3, -4], [0.5, 7]]) / 3).astype(np.float32)
    assert np.array_equal(weights.params["value"].array, expected)
