"""Autocast as a pass gives the numbers of autocast in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch import primitives as P
from minitorch import quantization as q
from minitorch.errors import DTypeError
from minitorch.passes import DEFAULT, LOWERING
from minitorch_amp import mixed_precision
from minitorch_amp.attention import attentions
from tests.amp.mixed import MODELS, model_and_data, random_network

LOWER = pytest.mark.parametrize("dtype", [mt.bfloat16, mt.float16], ids=str)


def difference(model: mt.nn.Module, x: mt.Tensor, dtype: mt.DType, backend: str = "interpret") -> float:
    """How far the graph in mixed precision, traced without autocast, is from eager mode with it."""
    passes = (mt.passes.autocast(dtype), *DEFAULT, *(LOWERING if backend == "llvm" else ()))
    with mt.no_grad():
        found = mt.jit(model, backend=backend, passes=passes)(x)
        with mt.autocast("cpu", dtype):
            expected = model(x)
    assert found.dtype is mt.float32
    return (found - expected.float()).abs().max().item()


@LOWER
@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_are_those_of_eager_mode(name: str, dtype: mt.DType) -> None:
    model, x, _ = model_and_data(name)
    assert difference(model, x, dtype) == 0


@pytest.mark.parametrize("name", MODELS)
def test_so_are_those_of_kernels(name: str) -> None:
    """But for the order of sums, which can turn a rounding: by a unit in the last place of the lower type."""
    model, x, _ = model_and_data(name)
    assert difference(model, x, mt.bfloat16, "llvm") <= 2.0**-8 * model(x).abs().max().item()


@LOWER
def test_random_networks_agree_to_the_bit(dtype: mt.DType) -> None:
    for seed in range(25):
        model, x = random_network(seed)
        assert difference(model, x, dtype) == 0, seed


class Exponential(mt.nn.Module):
    """Of what a layer gives, times a number that no sum rounds away."""

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        """Of any shape."""
        return (x.float().exp() * 3).float()


class Scaled(mt.nn.Module):
    """A product, a number times that, and a product."""

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        """[batch, 16] to [batch, batch]."""
        return (x @ x.mT * 0.3) @ x


# What is wrong, and a model that it makes a difference for.
PLANTED: dict[str, tuple[str, Any, Callable[[], tuple[mt.nn.Module, mt.Tensor]]]] = {
    "a bias in float32": ("_is_bias", lambda node: False, lambda: model_and_data("cnn")[:2]),
    "a function that rounds taken for a selection": (
        "SELECTIONS",
        mixed_precision.SELECTIONS | {P.exp},
        lambda: (mt.nn.Sequential(mt.nn.Linear(16, 8), Exponential()), model_and_data("mlp")[1]),
    ),
    "a multiple in float32": ("_only_multiplied", lambda graph: set(), lambda: (Scaled(), model_and_data("mlp")[1])),
    "attention as any products": ("attentions", lambda graph: [], lambda: model_and_data("block")[:2]),
    "a mask that is not rounded": (
        "attentions",
        lambda graph: [replace(each, masked=None) for each in attentions(graph)],
        lambda: model_and_data("attentions")[:2],
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_wrong_rules_are_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, wrong, make = PLANTED[name]
    model, x = make()
    assert difference(model, x, mt.bfloat16) == 0
    monkeypatch.setattr(mixed_precision, rule, wrong)
    assert difference(model, x, mt.bfloat16) > 0


def test_attentions_are_found_and_softmaxes_between_layers_are_not() -> None:
    for name, count in {"block": 1, "attentions": 3, "mlp": 0}.items():
        model, x, _ = model_and_data(name)
        assert len(attentions(mt.jit(model, backend="interpret").graph(x))) == count, name
    gate = mt.nn.Sequential(mt.nn.Linear(4, 3), mt.nn.Softmax(-1), mt.nn.Linear(3, 4))
    assert not attentions(mt.jit(gate, backend="interpret").graph(mt.ones(2, 4)))


def test_attention_with_dropout_is_found() -> None:
    def attend(x: mt.Tensor) -> mt.Tensor:
        return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)

    graph = mt.jit(attend, backend="interpret").graph(mt.ones(4, 3))
    (found,) = attentions(graph)
    assert found.product in graph.outputs and found.scores.shape == (4, 4)


@pytest.mark.parametrize("name", MODELS)
def test_only_what_changes_is_cast(name: str) -> None:
    model, x, _ = model_and_data(name)
    with mt.no_grad():
        graph = mt.jit(model, backend="interpret").graph(x)
    found = mt.passes.autocast()(graph)
    products = [node for node in found.nodes if node.primitive is P.dot]
    attended = {node for each in attentions(graph) for node in (each.scores, each.product)}
    assert sum(node.dtype is mt.float32 for node in products) == len(attended)
    assert len(products) == sum(node.primitive is P.dot for node in graph.nodes)
    assert [node.spec for node in found.outputs] == [node.spec for node in graph.outputs]
    assert mt.passes.autocast()(found).key() == found.key()  # nothing is left to do
    sums = [node for node in found.nodes if node.primitive.kind == "reduction" and node.primitive is not P.reduce_max]
    assert {node.dtype for node in sums} <= {mt.float32}


def test_a_product_of_other_types_stays() -> None:
    a, b = mt.ones(2, 3, dtype=mt.float64), mt.ones(2, 3, dtype=mt.int32)
    graph = mt.jit(lambda a, b: (a @ a.mT, b @ b.mT), backend="interpret").graph(a, b)
    assert mt.passes.autocast()(graph).key() == graph.key()


def test_a_bias_written_out_is_rounded_as_in_linear() -> None:
    """The difference that the module names: eager mode adds it in float32."""
    x, w, b = mt.ones(1, 1), mt.ones(1, 1), mt.tensor([2.0**-12])
    found = mt.jit(lambda: F.linear(x, w.mT, b) - 1, passes=(mt.passes.autocast(), *DEFAULT, *LOWERING))
    with mt.autocast("cpu"):
        assert (x @ w + b - 1).item() == 2.0**-12
    assert found().item() == 0


# Quantised layers ------------------------------------------------------------------------------------------------


def convert(model: mt.nn.Module, x: mt.Tensor) -> mt.nn.Module:
    return q.convert(q.calibrate(q.prepare(model), [x]))


QUANTIZED: dict[str, Callable[[mt.nn.Module, mt.Tensor], mt.nn.Module]] = {
    "static": convert,
    "dynamic": lambda model, x: q.quantize_dynamic(model),
    "weights in 8 bits": lambda model, x: q.quantize_weights_(model, bits=8),
    "weights in 4 bits": lambda model, x: q.quantize_weights_(model, bits=4, group_size=4),
}


ALL_QUANTIZED = [(how, name) for how in QUANTIZED for name in ("mlp", "cnn") if (how, name) != ("dynamic", "cnn")]


@pytest.mark.parametrize(("how", "name"), ALL_QUANTIZED)
def test_quantised_layers_stay_as_they_are(how: str, name: str) -> None:
    """In a graph as in eager mode, which switches autocast off inside of them: the numbers are those without it."""
    model, x, _ = model_and_data(name)
    quantized = QUANTIZED[how](model, x)
    assert difference(quantized, x, mt.bfloat16) == 0
    with mt.no_grad():
        found = mt.passes.autocast()(mt.jit(quantized, backend="interpret").graph(x))
        compiled = mt.jit(quantized, passes=(mt.passes.autocast(), *DEFAULT, *LOWERING))
        assert (compiled(x) == mt.jit(quantized)(x)).all()
    assert {node.dtype for node in found.nodes if node.primitive is P.dot} == {mt.float32}


def test_float_layers_before_and_behind_them_are_cast() -> None:
    mt.manual_seed(2)
    x = mt.randn(6, 8)
    layers = [mt.nn.Linear(8, 8), mt.nn.ReLU(), mt.nn.Linear(8, 8), mt.nn.ReLU(), mt.nn.Linear(8, 3)]
    model = mt.nn.Sequential(*layers).eval()
    mixed = q.convert(q.calibrate(q.prepare(model, leave_in_float=["0", "4"]), [x]))
    with mt.no_grad():
        found = mt.passes.autocast()(mt.jit(mixed, backend="interpret").graph(x))
    assert [node.dtype for node in found.nodes if node.primitive is P.dot] == [mt.bfloat16, mt.float32, mt.bfloat16]
    assert difference(mixed, x, mt.bfloat16) == 0


def test_a_picture_in_bytes_is_data() -> None:
    w = mt.randn(4, 5)
    graph = mt.jit(lambda x: x.float() * (1 / 255) @ w, backend="interpret").graph(mt.ones(3, 4, dtype=mt.uint8))
    assert [node.dtype for node in mt.passes.autocast()(graph).nodes if node.primitive is P.dot] == [mt.bfloat16]


def test_casting_dequantised_operands_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x, _ = model_and_data("mlp")
    quantized = convert(model, x)
    monkeypatch.setattr(mixed_precision, "_is_of_integers", lambda node: False)
    assert difference(quantized, x, mt.bfloat16) > 0


def test_the_type_is_one_of_16_bits() -> None:
    with pytest.raises(DTypeError, match="bfloat16 or float16, not float64"):
        mt.passes.autocast(mt.float64)
