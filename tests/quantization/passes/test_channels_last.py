"""Images in 8 bits between integer convolutions: channels last in memory, quantised once, the same integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import dtypes
from minitorch import primitives as P
from minitorch import quantization as q
from minitorch.compiler.codegen.host import executable_targets, host
from minitorch.compiler.target import TARGETS, Target
from minitorch.graph import Graph
from minitorch.graph.build import apply, literal, topological_order
from minitorch.passes import CHANNELS_LAST
from minitorch.passes.lowering.contract import contract
from minitorch_quantization.passes import channels_last
from tests.support.graphs import evaluate_graph

nn = mt.nn
Array = np.ndarray[Any, Any]
HERE = {name: host() if name == "native" else TARGETS[name] for name in executable_targets()}


def converted(model: nn.Module, x: mt.Tensor) -> nn.Module:
    return q.convert(q.calibrate(q.prepare(model.eval()), [x, mt.randn(*x.shape)]))


def drawn(random: np.random.Generator) -> tuple[nn.Module, mt.Tensor]:
    """A chain of convolutions with ReLU here and there, of odd sizes, strides and paddings."""
    channels = [int(random.integers(1, 6)), *(4 * int(random.integers(1, 9)) for _ in range(3)), 5]
    layers: list[nn.Module] = []
    for number in range(int(random.integers(2, 5))):
        size = int(random.choice([1, 2, 3]))
        stride, padding = int(random.integers(1, 3)), int(random.integers(0, size))
        layers.append(nn.Conv2d(channels[number], channels[number + 1], size, stride, padding=padding))
        layers += [nn.ReLU()] * int(random.integers(2))
    side = 12 + int(random.integers(8))
    return nn.Sequential(*layers), mt.randn(int(random.integers(1, 4)), channels[0], side, 16 + int(random.integers(5)))


def carried_out(frozen: Any, x: mt.Tensor, target: Target) -> Array:
    """The result by kernels for a target, one after another."""
    known: dict[Any, Any] = {}
    results: tuple[Any, ...] = ()
    for kernel in frozen.ledger(x).for_target(target).kernels:
        given = [known.get(node, x) for node in kernel.reads if node.primitive.name != "constant"]
        made = kernel.steps[-1](*given)
        results = made if isinstance(made, tuple) else (made,)
        known |= dict(zip(kernel.made, results, strict=True))
    return np.asarray(results[-1].numpy())


@pytest.mark.sweep(3)
@pytest.mark.parametrize("seed", range(6))
def test_random_chains_give_the_integers_of_the_definition(seed: int) -> None:
    """The graph before the pass, carried out by NumPy, is the definition; for every target that runs here."""
    mt.manual_seed(seed)
    model, x = drawn(np.random.default_rng(seed))
    frozen = mt.freeze(converted(model, x), x)
    (stage,) = (each for each in frozen.stages(x) if each.name == CHANNELS_LAST.name)
    (wanted,), (moved,) = (evaluate_graph(graph, [x.numpy()]) for graph in (stage.before, stage.after))
    assert wanted.tobytes() == moved.tobytes()
    for name, target in HERE.items():
        found = carried_out(frozen, x, target)
        assert np.array_equal(found.reshape(wanted.shape), wanted), name


def cnn() -> tuple[Any, mt.Tensor]:
    x = mt.randn(2, 3, 16, 16)
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()]
    return mt.freeze(converted(nn.Sequential(*layers, nn.Conv2d(32, 8, 3)), x), x), x


def test_images_between_convolutions_end_with_their_channels() -> None:
    """Each pixel of the input is quantised once, into an image with its padding; no other kernel rounds an operand."""
    frozen, x = cnn()
    first, *convolutions = frozen.ledger(x).kernels
    assert [(node.dtype, node.shape) for node in first.made] == [(mt.uint8, (2, 3, 18, 18))]
    assert first.flops == 7 * first.made[0].spec.size
    shapes = [kernel.made[0].shape for kernel in convolutions]
    assert shapes == [(2, 16, 16, 16), (2, 8, 8, 32), (2, 8, 6, 6)]
    assert sum("np.rint" in kernel.source for kernel in convolutions) == len(convolutions) - 1  # the results alone


def test_packing_copies_runs_of_channels() -> None:
    """Loops over the places of a filter decide whether there is a run; inside, addresses go on evenly."""
    frozen, x = cnn()
    for target in (TARGETS["avx2"], TARGETS["avx512"]):
        _, _, second, _ = frozen.ledger(x).for_target(target).kernels
        packing = [line for line in second.steps[-1].source.splitlines() if line.strip().startswith("left[")]
        assert packing and all("left_l // " not in line and "left_l % " not in line for line in packing)


def layer(x: Any, channels: int) -> Any:
    weight = literal(np.ones((8, channels), np.int8))
    sizes: Any = {"lengths": (8, *x.shape[1:], channels), "left": ((0,), (3,)), "right": ((3,), (1,), (2,))}
    return apply(contract, weight, x, dtype=dtypes.int32, kept=3, **sizes)


@pytest.mark.parametrize("reason", ["read by a sum", "an output", "odd channels", "weights that are no constants"])
def test_what_others_read_stays_as_it_is(reason: str) -> None:
    graph = Graph.parse("graph(x: u8[8,3,3], w: i8[8,8]):\n  %0 = cast(x, dtype=f32)\n  return %0")
    x, w = graph.inputs
    y = apply(P.cast, layer(x, 8), dtype=dtypes.uint8)
    sizes: Any = {"lengths": (8, 3, 3, 8), "left": ((0,), (3,)), "right": ((3,), (1,), (2,))}
    outputs = [layer(y, 8)]
    if reason == "read by a sum":
        outputs.append(apply(P.cast, y, dtype=dtypes.float32))
    elif reason == "an output":
        outputs.append(y)
    elif reason == "odd channels":
        y = apply(P.cast, layer(apply(P.slice_, x, start=(0, 0, 0), stop=(6, 3, 3), step=(1, 1, 1)), 6), dtype=mt.uint8)
        y = apply(P.slice_, y, start=(0, 0, 0), stop=(7, 3, 3), step=(1, 1, 1))
        outputs = [layer(y, 7)]
    else:
        outputs = [apply(contract, w, y, dtype=dtypes.int32, kept=3, **sizes)]
    made = Graph(graph.inputs, outputs, [node for node in topological_order(outputs) if node not in graph.inputs])
    assert channels_last.channels_last(made) is made


# --- quantisation in fewer instructions -------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38, -3e38, 0.5, -0.5, 2.0**22, -(2.0**23) - 1, 127.5]


def numbers() -> Array:
    """Ties, numbers next to them, ends of ranges, and what is no number."""
    halves = np.arange(-600, 600).astype(np.float32) / 2
    near = [np.nextafter(halves, np.float32(end)) for end in (-np.inf, np.inf)]
    return np.concatenate([halves, *near, np.array(SPECIAL, np.float32)])


def quantise(x: Any, scale: float, zero: int, kind: Any, relu: bool) -> Any:
    ends = np.iinfo(kind.numpy)
    x = x.relu() if relu else x
    qparams = q.QParams(mt.tensor(scale), mt.tensor(zero, dtype=mt.int32), kind, int(ends.min), int(ends.max), None)
    return q.quantize(x, qparams)


@pytest.mark.parametrize("kind", [mt.uint8, mt.int8])
@pytest.mark.parametrize("relu", [False, True])
def test_quantisation_has_the_bits_of_its_definition(kind: Any, relu: bool) -> None:
    """For every target, with zero points in the middle and at the ends; a conversion, and no rounding by a sum."""
    x = mt.tensor(numbers())
    ends = np.iinfo(kind.numpy)
    for zero in (int(ends.min), int(ends.max), 0, 3):
        for scale in (1.0, 0.25, 7.3):
            wanted = quantise(x, scale, zero, kind, relu).numpy()

            def function(x: mt.Tensor, scale: float = scale, zero: int = zero) -> Any:
                return quantise(x, scale, zero, kind, relu)

            ledger = mt.freeze(function, x).ledger(x)
            assert "np.rint" in ledger.kernels[0].source and "12582912" not in ledger.kernels[0].source
            assert " <= " not in ledger.kernels[0].source  # a ReLU is a bound
            for name, target in HERE.items():
                (kernel,) = ledger.for_target(target).kernels
                assert np.array_equal(kernel.steps[-1](x).numpy(), wanted), (zero, scale, name)


def test_a_relu_before_an_infinite_scale_stays() -> None:
    """0 * inf is no number, and so the largest one; -1 * inf would be the smallest."""
    x = mt.tensor([-1.0, 0.0, 1.0, np.nan])

    def function(x: mt.Tensor) -> Any:
        return quantise(x, 1e-39, 3, mt.uint8, True)

    assert mt.freeze(function, x)(x).tolist() == function(x).tolist() == [255] * 4
