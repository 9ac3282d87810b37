"""Passes on Q/DQ form: integer products and early quantisation, on random programs; wrong rules that are caught."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import minitorch as mt
from minitorch import backends
from minitorch import primitives as P
from minitorch import quantization as q
from minitorch.errors import MinitorchError, MismatchError
from minitorch.graph.build import apply
from minitorch.graph.graph import Graph
from minitorch.passes import DEFAULT, EARLY_QUANTISATION, INTEGER_PRODUCTS, Pass, run_pipeline
from minitorch.passes.dead_code import remove_dead_code
from minitorch.passes.intervals import interval
from minitorch_quantization.passes import dequantized, integer_products
from tests.support.graphs import evaluate_graph

nn, F = mt.nn, mt.nn.functional
INTEGERS = ("u8", "i8")


def random_program(seed: int) -> tuple[Graph, list[np.ndarray]]:
    """A product of two dequantised operands that were moved and padded on the way, as a graph, and its inputs.

    Scales are of the whole tensor or vary along an axis, also along the one that is summed; zero points are constants,
    inputs, or not there.
    """
    choose = random.Random(seed)
    numbers = np.random.default_rng(seed)
    lines: list[str] = []
    inputs: list[str] = []
    arrays: list[np.ndarray] = []

    def emit(text: str) -> str:
        lines.append(f"  %{len(lines)} = {text}")
        return f"%{len(lines) - 1}"

    def given(name: str, kind: str, array: np.ndarray) -> str:
        inputs.append(f"{name}: {kind}[{','.join(map(str, array.shape))}]")
        arrays.append(array)
        return name

    def operand(name: str, shape: list[int], k: int) -> tuple[str, list[int]]:
        kind = choose.choice(INTEGERS)
        low, high = (0, 255) if kind == "u8" else (-128, 127)
        dtype = np.uint8 if kind == "u8" else np.int8
        x = emit(f"cast({given(name, kind, numbers.integers(low, high, shape, dtype, endpoint=True))}, dtype=f32)")
        dims = f"[{','.join(map(str, shape))}]"
        zero = choose.choice(["none", "constant", "input", "input"])
        if zero == "constant":
            x = emit(f"sub({x}, {float(choose.randint(low, high))})")
        elif zero == "input":
            held = choose.choice(["u8", "i8", "clamped", "anything"])
            if held in INTEGERS:
                ends = (0, 255) if held == "u8" else (-128, 127)
                number = np.asarray(choose.randint(*ends), np.uint8 if held == "u8" else np.int8)
                point = emit(f"cast({given(f'{name}z', held, number)}, dtype=i32)")
            else:
                outside = choose.choice([choose.randint(low, high), -129, 256, 70_000, -(2**24), 2**24, 2**31 - 1])
                point = given(f"{name}z", "i32", np.asarray(outside, np.int32))
            if held == "clamped":
                point = emit(f"maximum({point}, {low})")
                point = emit(f"where({emit(f'less({high}, {point})')}, {high}, {point})")
            point = emit(f"cast({point}, dtype=f32)")
            x = emit(f"sub({x}, {emit(f'expand({point}, shape={dims})')})")
        axis = choose.choice([None, None, 0, 1])
        lengths = [] if axis is None else [1] * axis + [shape[axis]] + [1] * (1 - axis)
        scale = given(f"{name}s", "f32", numbers.uniform(0.01, 0.1, lengths).astype(np.float32))
        if axis == 0:
            scale = emit(f"reshape({scale}, shape=[{shape[0]},1])")
        x = emit(f"mul({x}, {emit(f'expand({scale}, shape={dims})')})")
        for _ in range(choose.randint(0, 3)):
            move = choose.choice(["pad", "flip", "permute twice", "reshape", "slice"])
            if move == "pad":
                shape = [shape[0] + 1, shape[1] + 2] if k in (0, 1) else shape
                x = emit(f"pad({x}, padding=[[1,0,0],[1,1,0]], value=0.0)")
            elif move == "flip":
                x = emit(f"flip({x}, dims=[{choose.choice([0, 1])}])")
            elif move == "permute twice":
                x = emit(f"permute({emit(f'permute({x}, dims=[1,0])')}, dims=[1,0])")
            elif move == "reshape":
                x = emit(f"reshape({x}, shape=[{shape[0]},1,{shape[1]}])")
                x = emit(f"reshape({x}, shape=[{shape[0]},{shape[1]}])")
            elif min(shape) > 1:
                x = emit(f"slice({x}, start=[0,1], stop=[{shape[0]},{shape[1]}], step=[1,1])")
                shape = [shape[0], shape[1] - 1]
        return x, shape

    a, (_, k) = operand("a", [choose.randint(1, 4), choose.randint(2, 9)], 1)
    while True:
        start = len(lines), len(inputs)
        b, found = operand("b", [choose.randint(1, 14), choose.randint(1, 4)], 0)
        if found[0] == k:
            break
        del lines[start[0] :], inputs[start[1] :], arrays[start[1] :]
    lines.append(f"  %{len(lines)} = dot({a}, {b}, dtype=f32)")
    text = "\n".join([f"graph({', '.join(inputs)}):", *lines, f"  return %{len(lines) - 1}"])
    return Graph.parse(text), arrays


def exactly(graph: Graph, arrays: list[np.ndarray]) -> np.ndarray:
    """The product in float64, of operands as the graph has them."""
    dot = graph.outputs[0]
    before = graph.subgraph(dot.inputs)
    a, b = evaluate_graph(before, arrays)
    return a.astype(np.float64) @ b.astype(np.float64)


def worst_error(graph: Graph, arrays: list[np.ndarray], found: np.ndarray) -> float:
    """The largest error, in roundings of float32 of the largest sum of absolute values."""
    a, b = evaluate_graph(graph.subgraph(graph.outputs[0].inputs), arrays)
    size = (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)).max(initial=1e-30)
    return float(np.abs(found - exactly(graph, arrays)).max(initial=0) / size * 2**24)


def caught(graph: Graph, arrays: list[np.ndarray]) -> bool:
    """Whether the integer form is refused, or is not the product of the definition."""
    try:
        after = INTEGER_PRODUCTS(graph)
        after.verify()
        return worst_error(graph, arrays, evaluate_graph(after, arrays)[0]) > 4
    except (MinitorchError, AssertionError, ValueError, OverflowError):
        return True


SEEDS = range(450)


def test_integer_products_are_the_products_of_random_programs():
    """And so they are after the other passes. In most of the others, a scale varies along k."""
    changed = 0
    for seed in SEEDS:
        graph, arrays = random_program(seed)
        ready = run_pipeline(graph, DEFAULT).graph
        for each in (graph, ready):
            after = INTEGER_PRODUCTS(each)
            assert worst_error(graph, arrays, evaluate_graph(after, arrays)[0]) <= 4, f"{seed}\n{graph}\n{after}"
            assert INTEGER_PRODUCTS(after) is after
            contracted = [node for node in after.nodes if node.primitive is P.dot]
            changed += contracted[0].dtype is mt.int32
    assert changed > 250


def padded_with_0(node, value):
    return replace(value, integers=apply(P.pad, value.integers, padding=node.params["padding"], value=0))


def turned(value, scale):
    """The scales of another axis, in the wrong order."""
    return replace(value, scale=apply(P.flip, scale, dims=tuple(range(scale.spec.ndim))))


def without_corrections(node, a, b):
    return _product(node, replace(a, zero=None), b)


_product = integer_products._product
PLANTED = {
    "every zero point counts as a byte": (integer_products, "_largest", lambda value: 255),
    "zeros are padded with a zero point that wraps": (dequantized, "interval", lambda node: (0, 0)),
    "the zero point is forgotten in padding": (dequantized, "_padded", padded_with_0),
    "a scale that varies along k is pulled out": (integer_products, "_is_uniform", lambda value, axis: True),
    "the zero point of the left operand is forgotten": (integer_products, "_product", without_corrections),
    "the sum is that of the rows": (
        integer_products,
        "_sum",
        lambda integers, axis, real=integer_products._sum: real(integers, -3 - axis),
    ),
}


@pytest.mark.parametrize("label", PLANTED)
def test_wrong_rules_are_caught(label, monkeypatch):
    module, name, wrong = PLANTED[label]
    monkeypatch.setattr(module, name, wrong)
    assert sum(caught(*random_program(seed)) for seed in SEEDS) >= 10


def test_scales_of_the_wrong_axis_are_caught(monkeypatch):
    monkeypatch.setitem(dequantized._ARITHMETIC, P.mul, turned)
    assert sum(caught(*random_program(seed)) for seed in SEEDS) >= 10


def test_long_sums_stay_in_floats():
    """255 * 255 * 33026 is more than int32 holds."""
    text = """
    graph(a: u8[1,{k}], b: u8[{k},1]):
      %0 = cast(a, dtype=f32)
      %1 = cast(b, dtype=f32)
      %2 = dot(%0, %1, dtype=f32)
      return %2
    """
    assert "i32" in str(INTEGER_PRODUCTS(Graph.parse(text.format(k=33025))))
    longer = Graph.parse(text.format(k=33026))
    assert INTEGER_PRODUCTS(longer) is longer
    assert [reason for _, reason in integer_products.kept_in_floats(longer)] == [integer_products.TOO_LONG]


# Early quantisation ---------------------------------------------------------------------------------------------


def rounded(x, scale=0.05):
    return q.quantize_per_tensor(x, scale, 3, mt.uint8)


EARLY = {
    "max_pool": (lambda x: rounded(F.max_pool2d(x, 2)), True),
    "relu and max_pool": (lambda x: rounded(F.relu(F.max_pool2d(F.relu(x), 2)).flatten(1)), True),
    "transposed": (lambda x: rounded(x.transpose(1, 3)), True),
    "windows": (lambda x: rounded(x[:, :, ::2].flip(1)), True),
    "a falling function": (lambda x: rounded(-F.max_pool2d(x, 2)), False),
    "a scale that may be negative": (
        lambda x: P.cast(F.max_pool2d(x, 2) * x.sum(), dtype=mt.int8),
        False,
    ),
    "another reader": (lambda x: (lambda y: (rounded(y), y))(F.max_pool2d(x, 2)), False),
    "an average": (lambda x: rounded(F.avg_pool2d(x, 2)), False),
    "a sum of two": (lambda x: rounded(F.max_pool2d(x, 2) + x[:, :, ::2, ::2]), False),
}


@pytest.mark.parametrize("label", EARLY)
def test_quantisation_comes_before_movements_and_maxima(label):
    function, moves = EARLY[label]
    mt.manual_seed(0)
    x = mt.randn(2, 3, 8, 8)
    graph = run_pipeline(mt.jit(function).graph(x), DEFAULT).graph
    after = EARLY_QUANTISATION(graph)
    assert (after is not graph) == moves
    for one, other in zip(*[evaluate_graph(each, [x.numpy()]) for each in (graph, after)], strict=True):
        np.testing.assert_array_equal(one, other)
    if moves:
        (cast,) = [node for node in after.nodes if node.primitive is P.cast and node.dtype is mt.uint8]
        assert cast.shape == x.shape
        assert EARLY_QUANTISATION(after) is after


# Whole models ---------------------------------------------------------------------------------------------------


def cnn() -> nn.Module:
    """Conv+BN+ReLU four times, a pool, and a linear layer."""
    mt.manual_seed(6)
    layers: list[nn.Module] = []
    for one, two, stride in ((3, 8, 1), (8, 16, 2), (16, 16, 1), (16, 16, 1)):
        norm = nn.BatchNorm2d(two)
        norm.running_mean.copy_(mt.randn(two) * 0.1)
        norm.running_var.copy_(mt.rand(two) + 0.5)
        layers += [nn.Conv2d(one, two, 3, stride=stride, padding=1), norm, nn.ReLU()]
    return nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 16, 10)).eval()


def quantized(model: nn.Module, x: mt.Tensor) -> nn.Module:
    return q.convert(q.calibrate(q.prepare(model), [x]))


def test_a_quantised_model_is_products_of_integers():
    x = mt.randn(1, 3, 16, 16)
    model = quantized(cnn(), x)
    expected = model(x)
    for compiled in (mt.freeze(model, x), mt.jit(model)):
        graph = compiled.stages(x).graph
        products = [node for node in graph.nodes if node.primitive.kind == "contraction"]
        assert len(products) == 5
        assert all(node.dtype is mt.int32 for node in products)
        assert {each.dtype for node in products for each in node.inputs} == {mt.uint8, mt.int8}
        apart = (compiled(x) - expected).abs().max().item()
        assert apart <= 0.02 * expected.abs().max().item()


def intermediates(compiled, x: mt.Tensor) -> int:
    """Bytes that kernels write, the results apart."""
    return sum(kernel.bytes_written for kernel in compiled.ledger(x).kernels) - compiled(x).nbytes


@pytest.mark.parametrize("batch", [1, 4])
def test_a_quantised_cnn_has_a_kernel_for_conv_bn_relu_and_moves_a_quarter_of_the_bytes(batch):
    """Each writes 8 bits: bias, ReLU and requantisation are its epilogue. Each pixel of the input is quantised once."""
    x = mt.randn(batch, 3, 16, 16)
    floats, integers = mt.freeze(q.fuse(cnn()), x), mt.freeze(quantized(cnn(), x), x)
    quantising, *kernels = integers.ledger(x).kernels
    assert len(kernels) == 4  # the last one does the pool and the linear layer, too
    assert all(kernel.name.split("_", 1)[1].startswith("contract_cast") for kernel in kernels)
    assert quantising.bytes_written == batch * 3 * 18 * 18
    assert (intermediates(integers, x) - quantising.bytes_written) * 4 == intermediates(floats, x)
    assert intermediates(integers, x) <= 0.3 * intermediates(floats, x)


@pytest.mark.parametrize("freeze", [True, False])
def test_the_zero_point_of_a_weight_costs_nothing(freeze):
    """It is 0: no sum over the activations; and the sum over a weight is a constant of a frozen graph."""
    x = mt.randn(4, 20)
    model = quantized(nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 3)), x)
    graph = (mt.freeze(model, x) if freeze else mt.jit(model)).stages(x).graph
    sums = [node for node in graph.subgraph(graph.outputs).nodes if node.primitive is P.reduce_sum]
    assert len(sums) == (0 if freeze else 2)
    assert all(node.shape != (4,) for node in sums)


def test_dynamic_quantisation_multiplies_integers():
    model = q.quantize_dynamic(nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)))
    x = mt.randn(5, 16)
    compiled = mt.jit(model)
    assert compiled(x).numpy() == pytest.approx(model(x).numpy(), abs=1e-2)
    products = [node for node in compiled.stages(x).graph.nodes if node.primitive.kind == "contraction"]
    assert [node.dtype for node in products] == [mt.int32, mt.int32]


def test_shadow_mode_takes_a_quantised_model_and_blames_a_wrong_rule():
    """Whose numbers are those of the definition up to rounding; a wrong zero point is none."""
    x = mt.randn(4, 16)
    layer = quantized(nn.Sequential(nn.Linear(16, 8)), x)
    right = mt.jit(layer, check=True)
    assert np.isfinite(right(x).numpy()).all()

    def wrong(graph: Graph) -> Graph:
        made = dequantized.rewrite_dequantized(
            graph,
            lambda node, found: integer_products._integer_product(
                node, {key: replace(value, zero=None) for key, value in found.items()}
            ),
        )
        return remove_dead_code(made)

    planted = Pass("forgets zero points", wrong, "")
    passes = [planted if each is INTEGER_PRODUCTS else each for each in backends.passes_for("llvm")]
    with pytest.raises(MismatchError, match="forgets zero points"):
        mt.jit(layer, check=True, passes=passes)(x)


def test_a_cast_that_wraps_stays_behind_a_maximum() -> None:
    """-1 becomes 255, which is the largest; only a clamp keeps the order."""
    x = mt.tensor([[-1.0, 5.0], [300.0, 5.0]])
    for function in (lambda x: x.amax(1).to(mt.uint8), lambda x: x.amax(1).clamp(-3, 300).to(mt.uint8)):
        assert mt.jit(function)(x).tolist() == function(x).tolist()


def test_a_zero_point_that_is_no_byte_keeps_the_product_of_floats() -> None:
    p, q = mt.tensor([[255]], dtype=mt.uint8), mt.tensor([[0]], dtype=mt.uint8)

    def function(p: mt.Tensor, q: mt.Tensor) -> mt.Tensor:
        return p.to(mt.float32) @ (q.to(mt.float32) - 16000000.0)

    assert mt.jit(function)(p, q).item() == function(p, q).item()


@pytest.mark.parametrize(("factor", "found"), [("4", (0, 12)), ("-2", (-6, 0)), ("100", (-128, 127))])
def test_the_interval_of_a_product_is_known_where_it_does_not_wrap(factor: str, found: tuple[int, int]) -> None:
    graph = Graph.parse(f"graph(): %0 = iota(size=4, dtype=i8) %1 = mul(%0, {factor}) return %1")
    assert interval(graph.outputs[0]) == found


def test_the_interval_of_positions_is_that_of_the_type_where_it_wraps():
    graph = Graph.parse("graph(): %0 = iota(size=300, dtype=i8) return %0")
    assert interval(graph.outputs[0]) == (-128, 127)
