"""Freezing: a frozen function gives the numbers of the function, does less in every call, and says what it keeps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minitorch as mt
from minitorch import nn
from minitorch.errors import TracingError, TracingWarning
from minitorch.graph import Graph
from minitorch.graph.build import literal
from minitorch.passes import FREEZING, run_pipeline
from minitorch.tree import flatten
from minitorch_inference.beforehand import constant_bytes
from minitorch_inference.folding import fold_all, folded
from tests.support.graphs import arrays_for, evaluate_graph, graphs, same_bits

F = nn.functional


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 5)).eval()


def cnn() -> nn.Module:
    mt.manual_seed(0)
    norm = nn.BatchNorm2d(6)
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), norm, nn.ReLU(), nn.Dropout(), nn.Flatten(), nn.Linear(6 * 64, 4)
    )
    with mt.no_grad():
        norm.weight.copy_(mt.rand(6) + 0.5)
        norm.bias.copy_(mt.randn(6))
        model(mt.randn(8, 3, 8, 8))  # running statistics that are neither 0 nor 1
    return model.eval()


class Reader(nn.Module):
    """Positions, embeddings, normalisation, attention under a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, 8), nn.Embedding(16, 8)
        self.norm, self.project = nn.LayerNorm(8), nn.Linear(8, 24)

    def forward(self, tokens: mt.Tensor) -> mt.Tensor:
        x = self.norm(self.words(tokens) + self.places(mt.arange(tokens.shape[1])))
        q, k, v = (each for each in self.project(x).chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def tokens() -> mt.Tensor:
    return mt.tensor(np.random.default_rng(0).integers(0, 20, (2, 7)))


CASES: dict[str, tuple[Callable[[], Any], Callable[[], mt.Tensor]]] = {
    "mlp": (mlp, lambda: mt.randn(3, 12)),
    "mlp, one row": (mlp, lambda: mt.randn(1, 12)),
    "cnn": (cnn, lambda: mt.randn(2, 3, 8, 8)),
    "depthwise": (lambda: nn.Conv2d(4, 4, 3, groups=4).eval(), lambda: mt.randn(1, 4, 6, 6)),
    "reader": (lambda: Reader().eval(), tokens),
}


def leaves(value: Any) -> list[np.ndarray[Any, Any]]:
    return [leaf.numpy() for leaf in flatten(value)[0]]


@pytest.mark.parametrize("backend", ["interpret", "llvm"])
@pytest.mark.parametrize("name", CASES)
def test_a_frozen_model_gives_the_numbers_of_the_model(name: str, backend: str) -> None:
    make, example = CASES[name]
    model, x = make(), example()
    frozen = mt.freeze(model, x, backend=backend)
    with mt.no_grad():
        expected = model(x)
    for found, wanted in zip(leaves(frozen(x)), leaves(expected), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert [node.spec for node in frozen.graph(x).inputs] == [x.spec]
    assert not any(isinstance(leaf, mt.Tensor) and leaf.requires_grad for leaf in flatten(frozen(x))[0])


def test_nothing_hangs_on_constants_alone_but_what_is_free() -> None:
    """Of a CNN in evaluation, the normalisation's square root is gone, and biases are still expanded in the loops."""
    frozen, x = mt.freeze(cnn(), mt.ones(2, 3, 8, 8)), mt.ones(2, 3, 8, 8)
    assert {node.primitive.name for node in folded(frozen.graph(x))} >= {"add", "sqrt"}
    after = frozen.stages(x).graph
    assert "sqrt" not in after.count()
    assert after.count()["expand"] > 0 and not folded(after)
    (signature,) = frozen.explain().signatures
    assert signature.operations == sum(len(line.operations) for line in signature.lines) >= 2
    assert signature.flops == 12  # the addition and the root of a batch norm of six channels
    assert "test_freezing.py:" in str(frozen.explain()) and "sqrt" in str(frozen.explain())


def test_weights_in_8_bits_stay_in_8_bits() -> None:
    """Dequantisation makes four bytes of one: it is left to where the weights are used."""
    quantised = mt.tensor(np.arange(-60, 60, dtype=np.int8).reshape(10, 12))
    scale = mt.rand(10, 1)
    frozen = mt.freeze(lambda x: x @ ((quantised.float() - 3) * scale).T, mt.ones(2, 12))
    assert constant_bytes(frozen.stages(mt.ones(2, 12)).graph) == 120 + 40
    folded_scale = mt.freeze(lambda x: x @ (quantised.float() * scale).sum(1), mt.ones(2, 10))
    assert folded_scale.stages(mt.ones(2, 10)).graph.count()["reduce_sum"] == 0


def test_masks_and_counters_are_made_where_they_are_used() -> None:
    frozen = mt.freeze(lambda x: x.masked_fill(mt.ones(64, 64, dtype=mt.bool).triu(1), -mt.inf), mt.ones(64, 64))
    assert frozen.stages(mt.ones(64, 64)).graph.count()["constant"] == 0


def frozen_inputs(graph: Graph, arrays: list[Any], which: int) -> tuple[Graph, list[Any]]:
    """A graph with some of its inputs as constants, and the arrays of the others."""
    chosen = [number for number in range(len(graph.inputs)) if which >> number & 1]
    literals = {graph.inputs[number]: literal(arrays[number]) for number in chosen}
    return graph.substitute(literals), [each for number, each in enumerate(arrays) if number not in chosen]


@given(graph=graphs(max_nodes=14), seed=st.integers(0, 99), which=st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_folding_keeps_every_bit(graph: Graph, seed: int, which: int) -> None:
    frozen, rest = frozen_inputs(graph, arrays_for(graph, seed), which)
    try:
        expected = evaluate_graph(frozen, rest)
    except IndexError:
        return
    again = fold_all(frozen)
    assert all(map(same_bits, evaluate_graph(again, rest), expected)), (str(frozen), str(again))
    assert fold_all(again) is again or fold_all(again).count() == again.count()


# What is refused ------------------------------------------------------------------------------------------------

outside = mt.zeros(3)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "dropout": (lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout()), "it calls `1`, a Dropout in training mode"),
    "batch norm": (lambda: nn.BatchNorm1d(3), "it calls a BatchNorm1d in training mode"),
    "random": (lambda: lambda x: x + mt.randn(3), "it draws random numbers, at test_freezing.py:"),
    "functional dropout": (lambda: lambda x: F.dropout(x), "it draws random numbers"),
    "outside": (lambda: lambda x: outside.add_(x.sum(0)), "it writes to `outside` in place"),
    "argument": (lambda: lambda x: x.add_(1), "it writes to `x` in place"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    make, what = REFUSED[name]
    with pytest.raises(TracingError, match="MT112") as error:
        mt.freeze(make(), mt.ones(4, 3))
    assert what in str(error.value) and "instead: " in str(error.value)


def test_a_backward_pass_is_refused() -> None:
    weight = mt.ones(3, requires_grad=True)

    def step(x: mt.Tensor) -> mt.Tensor:
        with mt.enable_grad():
            (weight * x).sum().backward()
        return x

    with pytest.raises(TracingError, match="it works on gradients"):
        mt.freeze(step, mt.ones(3))


def test_training_mode_is_no_matter_where_nothing_depends_on_it() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    assert model.training and mt.freeze(model, mt.ones(1, 3))(mt.ones(1, 3)).shape == (1, 3)


def test_other_things_cannot_be_frozen() -> None:
    with pytest.raises(TypeError, match="freeze takes a model or a function, not Tensor"):
        mt.freeze(mt.ones(3))  # type: ignore[arg-type]


# Signatures and changes -----------------------------------------------------------------------------------------


def test_freezing_twice_is_free() -> None:
    model, x = mlp(), mt.ones(3, 12)
    frozen = mt.freeze(model, x)
    assert mt.freeze(frozen) is frozen and mt.freeze(frozen, x) is frozen
    with mt.no_grad():
        frozen(x)
    frozen(mt.ones(3, 12, requires_grad=True))
    assert len(frozen.explain().signatures) == 1 and frozen.explain().signatures[0].report.calls == 2
    mt.freeze(frozen, mt.ones(5, 12))
    assert len(frozen.explain().signatures) == 2


def test_what_jit_made_can_be_frozen() -> None:
    model, x = mlp(), mt.randn(3, 12)
    frozen = mt.freeze(mt.jit(model), x)
    assert frozen.graph(x).count() == mt.freeze(model, x).graph(x).count()


def test_signatures_share_their_constants() -> None:
    model = mlp()
    frozen = mt.freeze(model, mt.ones(1, 12))
    frozen(mt.ones(7, 12))
    graphs_ = [frozen.graph(mt.ones(rows, 12)) for rows in (1, 7)]
    own = [{node for node in graph.nodes if node.spec.shape == (16, 12)} for graph in graphs_]
    assert own[0] == own[1] != set()
    assert frozen.explain().frozen_bytes == sum(each.nbytes for each in model.parameters())


def zero(model: nn.Module) -> None:
    with mt.no_grad():
        model[0].weight.zero_()  # type: ignore[index]


def load(model: nn.Module) -> None:
    model.load_state_dict({name: mt.zeros_like(each) for name, each in model.state_dict().items()})


def replace(model: nn.Module) -> None:
    model[0].weight = nn.Parameter(mt.zeros(16, 12))  # type: ignore[index]


def step(model: nn.Module) -> None:
    optimizer = mt.optim.SGD(model.parameters(), lr=0.1)

    @mt.jit
    def train(x: mt.Tensor) -> None:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    train(mt.ones(1, 12))


@pytest.mark.parametrize("change", [zero, load, replace, step])
def test_a_change_of_the_weights_is_noticed_once(change: Callable[[nn.Module], None]) -> None:
    model, x = mlp(), mt.randn(3, 12)
    frozen = mt.freeze(model, x)
    before = frozen(x).numpy().copy()
    change(model)
    with pytest.warns(TracingWarning, match=r"MT113: `(0\.)?.*` .* since Sequential was frozen"):
        after = frozen(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(frozen(x).numpy(), before) and np.array_equal(after.numpy(), before)
    with pytest.raises(TracingError, match=r"MT113: Sequential is called with \(input: f32\[4,12\]\), a signature"):
        frozen(mt.ones(4, 12))
    again = mt.freeze(model, x)
    assert np.allclose(again(x).numpy(), model(x).detach().numpy(), atol=1e-6)


def test_other_modules_may_change() -> None:
    frozen = mt.freeze(mlp(), mt.ones(3, 12))
    other = mlp()
    other.train()
    zero(other)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frozen(mt.ones(3, 12))
        frozen(mt.ones(4, 12))


def test_inside_another_recording_it_keeps_its_constants() -> None:
    model, x = mlp(), mt.randn(3, 12)
    frozen = mt.freeze(model, x)
    expected = frozen(x).numpy()
    zero(model)
    doubled = mt.jit(lambda x: frozen(x) * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(doubled(x).numpy(), 2 * expected, rtol=1e-6)
    assert [node.spec for node in doubled.graph(x).inputs] == [x.spec]


def test_it_can_be_looked_into() -> None:
    frozen, x = mt.freeze(mlp(), mt.ones(3, 12)), mt.ones(3, 12)
    assert len(frozen.ledger(x).kernels) == frozen.cost(x).kernels > 0
    assert frozen.show(x) is not None
    assert frozen.values(x).rows and str(frozen.stages(x).texts["freezing"])
    assert repr(frozen) == "<frozen Sequential on backend 'llvm', 1 signature>"


def test_structures_and_plain_values() -> None:
    weight = mt.randn(3, 3)

    def f(batch: dict[str, mt.Tensor], scale: float = 2.0) -> dict[str, Any]:
        return {"y": (batch["x"] @ weight) * scale, "n": 3, "x": batch["x"]}

    x = mt.randn(2, 3)
    frozen = mt.freeze(f, {"x": x})
    found = frozen({"x": x})
    assert found["n"] == 3 and found["x"] is x
    assert np.allclose(found["y"].numpy(), (x @ weight).numpy() * 2, rtol=1e-5)
    assert np.allclose(frozen({"x": x}, scale=3.0)["y"].numpy(), (x @ weight).numpy() * 3, rtol=1e-5)


def test_batch_normalization_is_part_of_the_weights() -> None:
    """And `explain()` says so, and where that was refused."""
    model = mt.nn.Sequential(mt.nn.Conv2d(2, 3, 3), mt.nn.BatchNorm2d(3), mt.nn.ReLU()).eval()
    x = mt.randn(2, 2, 6, 6)
    frozen = mt.freeze(model, x)
    assert np.allclose(frozen(x).numpy(), model(x).detach().numpy(), atol=1e-5)
    (kernel,) = frozen.ledger(x).kernels
    assert kernel.flops == 2 * 3 * 16 * (2 * 18 + 3)  # products and sums, the shift, a comparison, a choice
    assert "dot(x, w)*s + t -> dot(x, w*s) + t: folded" in str(frozen.explain())
    weight = mt.randn(6, 6)

    def read_twice(x: mt.Tensor) -> mt.Tensor:
        y = x @ weight
        return mt.exp(y) + y * 2

    assert "read by somebody else" in str(mt.freeze(read_twice, x).explain())


def test_the_pipeline_has_one_pass_in_place_of_another() -> None:
    names = [each.name for each in FREEZING]
    assert "freezing" in names and "constant folding" not in names
    graph = Graph.parse("graph(x: f32[2]): %0 = constant([1.0, 2.0]) : f32[2] %1 = add(%0, %0) return %1")
    assert run_pipeline(graph, FREEZING).graph.count() == {"constant": 1}
