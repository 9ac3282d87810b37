"""Convolutions and poolings in generated code: eager mode's numbers, few kernels, no gathers, any number of threads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.backends import get
from minitorch.compiler.codegen.emit import emit
from minitorch.compiler.codegen.host import host
from minitorch.compiler.kernels.ledger import Ledger, ledger_of
from minitorch.compiler.loop_ir.source import run
from minitorch.compiler.scheduling.contractions import gemm
from minitorch.compiler.scheduling.schedules import choice
from minitorch.graph import Graph
from minitorch.passes import lowered
from tests.support.helpers import of_all_widths

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]

GENERATOR = np.random.default_rng(0)
CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def normal(*shape: int) -> mt.Tensor:
    return mt.from_numpy(GENERATOR.standard_normal(shape).astype(np.float32))


def graph_of(function: Function, *tensors: mt.Tensor) -> Graph:
    return lowered(mt.jit(function, backend="interpret").stages(*tensors).graph)


def scheduled(function: Function, *tensors: mt.Tensor) -> Ledger:
    return ledger_of(graph_of(function, *tensors), host())


def kinds(function: Function, *tensors: mt.Tensor) -> list[str]:
    return [kernel.kind for kernel in scheduled(function, *tensors).kernels]


def check(function: Function, *tensors: mt.Tensor) -> None:
    """As eager mode computes it, to a relative error that does not depend on cancellation."""
    expected, found = function(*tensors), mt.jit(function, backend="llvm")(*tensors)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for own, other in pairs:
        assert own.shape == other.shape and own.dtype is other.dtype
        a, b = own.to(mt.float64).numpy(), other.to(mt.float64).numpy()
        size = max(1.0, float(np.abs(b).max(initial=0)))
        exact = {mt.float64: 1e-11, mt.float32: 1e-4, mt.float16: 1e-2, mt.bfloat16: 6e-2}[other.dtype]
        np.testing.assert_allclose(a / size, b / size, atol=exact, rtol=0)


def with_gradients(function: Function) -> Function:
    """The gradients of a function by all its arguments but the last, which is the cotangent."""

    def gradients(*arguments: mt.Tensor) -> Any:
        *primals, cotangent = arguments
        return mt.vjp(function, *primals)[1](cotangent)

    return gradients


def layer(**options: Any) -> Function:
    def convolve(x: mt.Tensor, w: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
        return CONVOLUTIONS[w.ndim - 2](x, w, b, **options).relu()

    return convolve


# --- numbers ----------------------------------------------------------------------------------------------------------

SHAPES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((8, 4, 14, 14), (6, 4, 3, 3), {"padding": 1}),
    ((3, 4, 13, 11), (6, 4, 3, 3), {}),
    ((3, 4, 13, 11), (6, 2, 3, 3), {"groups": 2, "padding": 1}),
    ((3, 4, 13, 37), (8, 1, 3, 5), {"groups": 4, "padding": 2}),
    ((3, 5, 13, 11), (6, 5, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 5, 12, 12), (6, 5, 1, 1), {"stride": 3}),
    ((2, 4, 23, 21), (6, 2, 3, 3), {"stride": 3, "padding": 2, "dilation": 2, "groups": 2}),
    ((2, 5, 23, 21), (6, 5, 3, 3), {"padding": 2, "dilation": (2, 1), "stride": (1, 2)}),
    ((3, 20, 23, 21), (30, 20, 1, 1), {}),
    ((33, 40, 7, 7), (32, 40, 3, 3), {"padding": 1}),
    ((2, 64, 30, 30), (40, 64, 3, 3), {"padding": "same"}),
    ((2, 1, 28, 28), (16, 1, 5, 5), {}),
    ((2, 8, 28, 28), (1, 8, 3, 3), {"padding": 1}),
    ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    ((2, 3, 5, 5), (4, 3, 5, 5), {}),
    ((2, 4, 50), (6, 4, 7), {"padding": 3, "stride": 2}),
    ((2, 3, 6, 7, 8), (4, 3, 3, 2, 3), {"padding": 1, "stride": (1, 2, 1)}),
    ((0, 3, 8, 8), (4, 3, 3, 3), {"padding": 1}),
]


@pytest.mark.parametrize("x,w,options", SHAPES)
def test_layers_and_their_gradients(x: tuple[int, ...], w: tuple[int, ...], options: dict[str, Any]) -> None:
    function = layer(**options)
    arguments = normal(*x), normal(*w), normal(w[0])
    check(function, *arguments)
    check(with_gradients(function), *arguments, normal(*function(*arguments).shape))


@pytest.mark.parametrize("dtype", [mt.float64, mt.float16, mt.bfloat16])
@pytest.mark.parametrize("options", [{"padding": 1}, {"stride": 2}, {"groups": 4, "padding": 1}])
def test_element_types(dtype: mt.DType, options: dict[str, Any]) -> None:
    groups = options.get("groups", 1)
    arguments = [each.to(dtype) for each in (normal(2, 4, 9, 10), normal(8, 4 // groups, 3, 3) / 4, normal(8))]
    function = layer(**options)
    check(function, *arguments)
    check(with_gradients(function), *arguments, normal(*function(*arguments).shape).to(dtype))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_convolution(data: st.DataObject) -> None:
    groups, depth, per_group = (data.draw(st.sampled_from(some)) for some in ((1, 2, 3), (1, 2, 5), (1, 2, 7)))
    ndim = data.draw(st.sampled_from((1, 2)))
    size = tuple(data.draw(st.integers(1, 4)) for _ in range(ndim))
    stride, dilation = (tuple(data.draw(st.integers(1, 3)) for _ in range(ndim)) for _ in range(2))
    padding = tuple(data.draw(st.integers(0, 3)) for _ in range(ndim))
    lengths = tuple(
        data.draw(st.integers(max(1, (each - 1) * apart + 1 - 2 * amount), 20))
        for each, apart, amount in zip(size, dilation, padding, strict=True)
    )
    function = layer(stride=stride, dilation=dilation, padding=padding, groups=groups)
    batch = data.draw(st.sampled_from((1, 2, 5)))
    arguments = normal(batch, groups * depth, *lengths), normal(groups * per_group, depth, *size)
    bias = normal(groups * per_group)
    check(function, *arguments, bias)
    check(with_gradients(function), *arguments, bias, normal(*function(*arguments, bias).shape))


@pytest.mark.parametrize("options", [{"padding": 1}, {"stride": 2}, {"groups": 3}])
def test_the_loops_mean_the_same_in_both_readings(options: dict[str, Any]) -> None:
    x, w, b = normal(2, 3, 6, 5), normal(6, 3 // options.get("groups", 1), 3, 3), normal(6)
    graph = graph_of(layer(**options), x, w, b)
    (kernel,) = ledger_of(graph, host()).kernels
    (expected,) = get("llvm")(graph)([x.numpy(), w.numpy(), b.numpy()])
    inputs = {"x": x.numpy(), "w": w.numpy(), "b": b.numpy()}
    buffers = [
        inputs[node.params["name"]].reshape(-1).copy() if "name" in node.params else np.empty(node.spec.size, "f4")
        for node in kernel.buffers
    ]
    run(kernel.loops, buffers)
    (written,) = (place for place, buffer in enumerate(kernel.loops.buffers) if buffer.written)
    np.testing.assert_allclose(buffers[written].reshape(expected.shape), expected, atol=1e-5)


def test_second_derivatives() -> None:
    """Of the sum of cubes, so that they are no constants, through machine code and without."""
    x, w = normal(2, 2, 6, 7).to(mt.float64), normal(3, 2, 3, 2).to(mt.float64)

    def value(x: mt.Tensor, w: mt.Tensor) -> mt.Tensor:
        return (F.conv2d(x, w, stride=(2, 1), padding=1) ** 3).sum()

    def twice(x: mt.Tensor, w: mt.Tensor) -> mt.Tensor:
        return mt.grad(lambda x: (mt.grad(value, 1)(x, w) ** 2).sum())(x)

    check(twice, x, w)


# --- kernels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x,w,options", [SHAPES[0], SHAPES[2], SHAPES[4], SHAPES[7], SHAPES[8], SHAPES[15], SHAPES[16]])
def test_a_layer_is_one_kernel(x: tuple[int, ...], w: tuple[int, ...], options: dict[str, Any]) -> None:
    assert kinds(layer(**options), normal(*x), normal(*w), normal(w[0])) == ["K4"]


def test_a_residual_block_is_two_kernels() -> None:
    x, w, v = normal(4, 8, 14, 14), normal(8, 8, 3, 3), normal(8, 8, 3, 3)

    def block(x: mt.Tensor, w: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
        return (F.conv2d(F.conv2d(x, w, padding=1).relu(), v, padding=1) + x).relu()

    assert kinds(block, x, w, v) == ["K4", "K4"]
    check(block, x, w, v)


def test_gradients_are_a_product_each() -> None:
    """That of the bias is a sum, in a later phase of the kernel before it or in one of its own."""
    x, w, b, g = normal(4, 8, 14, 14), normal(16, 8, 3, 3), normal(16), normal(4, 16, 14, 14)
    found = kinds(with_gradients(layer(padding=1)), x, w, b, g)
    assert found.count("K4") == 3 and len(found) <= 4


def test_pooling_is_one_kernel_with_the_layer_before_it_recomputed_nowhere() -> None:
    x, w, b = normal(4, 8, 28, 28), normal(16, 8, 3, 3), normal(16)
    pooled = layer(padding=1)
    assert kinds(lambda x: F.max_pool2d(x, 2), x) == ["K2"] or kinds(lambda x: F.max_pool2d(x, 2), x) == ["K3"]
    assert kinds(lambda *a: F.max_pool2d(pooled(*a), 2), x, w, b) in (["K4", "K2"], ["K4", "K3"])
    for function in (lambda x: F.max_pool2d(x, 2), lambda x: F.avg_pool2d(x, 3, 1, 1), lambda x: F.max_pool2d(x, 3, 2)):
        check(function, x)
        check(with_gradients(function), x, normal(*function(x).shape))
        assert not re.search(r"masked\.gather", "".join(kernel.llvm for kernel in scheduled(function, x).kernels))


def test_the_first_of_equal_elements_gets_the_gradient() -> None:
    x = mt.tensor([[[[1.0, 1, 0, 0], [1, 1, 0, 2], [-1, float("nan"), 2, 2], [3, 3, 2, 2]]]])
    expected = [[[[1.0, 0, 0, 0], [0, 0, 0, 1], [0, 1, 1, 0], [0, 0, 0, 0]]]]
    (eager,) = with_gradients(lambda x: F.max_pool2d(x, 2))(x, mt.ones(1, 1, 2, 2))
    (compiled,) = mt.jit(with_gradients(lambda x: F.max_pool2d(x, 2)), backend="llvm")(x, mt.ones(1, 1, 2, 2))
    np.testing.assert_array_equal(eager.numpy(), expected)
    np.testing.assert_array_equal(compiled.numpy(), expected)


# --- code -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"padding": 1}, {}, {"padding": 1, "stride": 2}, {"padding": 2, "dilation": 2}])
def test_packing_reads_whole_vectors(options: dict[str, Any]) -> None:
    x, w, b = normal(2, 4, 28, 28), normal(16, 4, 3, 3), normal(16)
    (kernel,) = scheduled(layer(**options), x, w, b).kernels
    assert kernel.loops is not None
    for target in of_all_widths():
        assert not re.search(r"masked\.(gather|scatter)", emit(choice.scheduled(kernel.loops, target), target))


@pytest.mark.parametrize("name", ["avx2", "avx512"])
@pytest.mark.parametrize("options", [{}, {"stride": 2}])
def test_vectors_that_are_whole_are_stored_without_masks(options: dict[str, Any], name: str) -> None:
    """A tile may end beyond the last image, but no vector does: a branch says which of them there are."""
    x, w = normal(8, 16, 56, 56), normal(32, 16, 1, 1)
    (kernel,) = scheduled(lambda x, w: F.conv2d(x, w, **options), x, w).for_target(name).kernels
    epilogue = kernel.llvm[kernel.llvm.index('define internal void @"nest0.v"') :]
    assert "store <" in epilogue and not re.search(r"call .*masked\.store", epilogue)


@pytest.mark.parametrize("options", [{"padding": 1, "groups": 8}, {"groups": 8}, {"padding": 2, "groups": 8}])
def test_filters_over_one_channel_are_written_out(options: dict[str, Any]) -> None:
    x, w, b = normal(2, 8, 28, 28), normal(8, 1, 3, 3), normal(8)
    (kernel,) = scheduled(layer(**options), x, w, b).kernels
    assert kernel.loops is not None
    assert not any(loop.columns for nest in kernel.loops.nests for loop in nest.loops)
    assert not re.search(r"masked\.(gather|scatter)", kernel.llvm)


def test_an_epilogue_counts_once_where_a_filter_is_written_out() -> None:
    x, w, b = normal(2, 8, 28, 28), normal(8, 1, 5, 5), normal(8)

    def block(x: mt.Tensor, w: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
        return F.silu(F.batch_norm(F.conv2d(x, w, b, padding=2, groups=8), b, b * b + 1))

    *_, kernel = scheduled(block, x, w, b).kernels
    assert kernel.loops is not None and "contract" in kernel.name
    assert not any(loop.columns for nest in kernel.loops.nests for loop in nest.loops)


def test_a_gradient_by_the_weight_is_cut_along_the_images() -> None:
    """There are few rows and lanes, and a long k: parts of it run side by side."""
    x, w, b, g = normal(32, 16, 28, 28), normal(32, 16, 3, 3), normal(32), normal(32, 32, 28, 28)
    *_, kernel = scheduled(lambda x, w, b, g: mt.vjp(lambda w: layer(padding=1)(x, w, b), w)[1](g), x, w, b, g).kernels
    assert kernel.loops is not None and kernel.units >= 4
    products = [found for nest in kernel.loops.nests if (found := gemm.recognise(nest)) is not None]
    assert products and all(product.depth <= 32 * 28 * 28 // 4 for product in products)


@pytest.fixture
def thread_counts() -> Iterator[tuple[int, ...]]:
    before = mt.get_num_threads()
    yield 1, 2
    mt.set_num_threads(before)


@pytest.mark.parametrize("options", [{"padding": 1}, {"stride": 2}, {"groups": 16, "padding": 1}])
def test_threads_do_not_change_a_bit(options: dict[str, Any], thread_counts: tuple[int, ...]) -> None:
    x, w, b = normal(16, 16, 28, 28), normal(32, 16 // options.get("groups", 1), 3, 3), normal(32)
    g = normal(*layer(**options)(x, w, b).shape)
    function = mt.jit(lambda *a: (layer(**options)(*a[:3]), *with_gradients(layer(**options))(*a)), backend="llvm")
    results = []
    for number in thread_counts:
        mt.set_num_threads(number)
        results.append([each.numpy().tobytes() for each in function(x, w, b, g)])
    assert results[0] == results[1]


@pytest.mark.parametrize("times", [2, 3, 4, 8])
@pytest.mark.parametrize("width", [1, 7, 16, 37])
def test_repeated_elements_are_read_once(times: int, width: int) -> None:
    """As by the gradient of a pooling: vectors of elements that appear in several lanes, if that many fit into one."""
    x, y = normal(3, width), normal(3, width * times)

    def function(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        return x.unsqueeze(-1).expand(3, width, times).reshape(3, width * times) * y

    check(function, x, y)
    (kernel,) = scheduled(function, x, y).kernels
    assert host().lanes(4) % times or not re.search(r"masked\.gather", kernel.llvm)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_gradients_of_layers_and_poolings(size: int) -> None:
    x, w, b = normal(2, 3, 12, 24), normal(4, 3, 3, 3), normal(4)

    def function(x: mt.Tensor, w: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
        return F.max_pool2d(layer(padding=1)(x, w, b), size)

    gradients = with_gradients(function)
    g = normal(*function(x, w, b).shape)
    check(gradients, x, w, b, g)


def test_node_by_node_a_convolution_counts_what_its_kernel_counts():
    with mt.no_grad():
        cost = mt.jit(mt.nn.Conv2d(3, 16, 3)).cost(mt.rand(8, 3, 32, 32))
    outputs = 8 * 16 * 30 * 30
    assert cost.flops == cost.unfused.flops == outputs * (2 * 3 * 3 * 3 + 1)


@pytest.mark.parametrize("padding", [0, 1])
def test_bias_and_relu_are_the_epilogue_of_the_convolution_before_the_next(padding):
    """They are computed once for each element, not for each window of the next convolution."""
    model = mt.nn.Sequential(
        mt.nn.Conv2d(3, 4, 3, padding=padding), mt.nn.ReLU(), mt.nn.Conv2d(4, 4, 3, padding=padding), mt.nn.ReLU()
    )
    x = mt.rand(2, 3, 10, 10)
    with mt.no_grad():
        ledger = mt.jit(model).ledger(x)
        assert np.abs(mt.jit(model)(x).numpy() - model(x).numpy()).max() < 1e-5
    outputs = [2 * 4 * side**2 for side in ((8, 6) if padding == 0 else (10, 10))]
    per_output = [2 * channels * 9 + 3 for channels in (3, 4)]  # products and sums, the bias, a comparison, a choice
    assert sum(kernel.flops for kernel in ledger.kernels) == np.dot(outputs, per_output)
