"""Frozen functions and the modes around them: types are decided when a function is frozen, and results are its own."""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.errors import ShapeError, TracingError
from minitorch.passes import FREEZING
from minitorch.tree import flatten

F = nn.functional
LOWER: list[mt.DType | None] = [None, mt.bfloat16, mt.float16]


def autocast(lower: mt.DType | None) -> mt.autocast:
    return mt.autocast("cpu", lower, enabled=lower is not None)


def network(x: mt.Tensor) -> dict[str, Any]:
    hidden = F.relu(LAYER(x))
    return {"hidden": hidden, "sum": hidden.sum(), "attention": [F.scaled_dot_product_attention(x, x, x)]}


mt.manual_seed(0)
LAYER = nn.Linear(8, 6).eval()


def same(found: Any, wanted: Any) -> bool:
    """Whether all tensors are equal, types included."""
    pairs = list(zip(flatten(found)[0], flatten(wanted)[0], strict=True))
    return all(a.dtype is b.dtype and np.array_equal(a.numpy(), b.detach().numpy()) for a, b in pairs)


# Autocast ---------------------------------------------------------------------------------------------------------


MODES = [(frozen_in, called, "interpret") for frozen_in in LOWER for called in LOWER]


@pytest.mark.parametrize(("frozen_in", "called", "backend"), [*MODES, (mt.bfloat16, None, "llvm")], ids=str)
def test_types_are_those_of_the_freezing(
    frozen_in: mt.DType | None, called: mt.DType | None, backend: str, tmp_path: Path
) -> None:
    """As the function jitted in the autocast of then, whatever is on at a call: frozen, saved, loaded, saved again."""
    x, y = mt.randn(3, 8), mt.randn(5, 8)
    jitted = mt.jit(network, backend=backend)
    with autocast(frozen_in):
        expected, more = jitted(x), jitted(y)
        frozen = mt.freeze(network, x, backend=backend)
    with autocast(called):
        assert same(frozen(x), expected) and same(frozen(y), more)
        assert same(mt.jit(lambda x: frozen(x), backend=backend)(x), expected)
        frozen.save(tmp_path / "once")
        loaded = mt.load_frozen(tmp_path / "once", backend)
        assert same(loaded(x), expected) and same(loaded(y), more)
        assert loaded.graph(x).count() == frozen.stages(x).stages[len(FREEZING) - 1].after.count()
        assert loaded.values(x).rows
        loaded.save(tmp_path / "twice")
        with autocast(frozen_in):
            assert same(mt.load_frozen(tmp_path / "twice", backend)(x), expected)
        assert mt.is_autocast_enabled() is (called is not None)
    assert same(loaded(x), expected)
    assert len(frozen.explain().signatures) == len(loaded.explain().signatures) == 2  # of two shapes, and no more
    wanted = None if frozen_in is None else frozen_in.name
    for each in (frozen, loaded):
        mode = each.explain().autocast
        assert (None if mode is None else mode.dtype.name) == wanted
        assert (f"frozen with autocast to {wanted}" in str(each.explain())) is (wanted is not None)


def test_neither_mode_is_a_part_of_the_signature() -> None:
    x = mt.randn(3, 8, requires_grad=True)
    frozen = mt.freeze(LAYER, x)
    for lower in LOWER:
        with autocast(lower):
            assert not frozen(x).requires_grad
            with mt.no_grad():
                frozen(x)
    assert len(frozen.explain().signatures) == 1 and mt.is_grad_enabled()
    with pytest.raises(ShapeError):
        mt.freeze(lambda x: x @ mt.ones(8, 8), mt.ones(2, 3))
    assert mt.is_grad_enabled() and not mt.is_autocast_enabled()  # also after a failure


def test_a_session_s_graph_has_its_types() -> None:
    x = mt.randn(3, 8)
    with mt.Graph() as g, mt.autocast("cpu"):
        y = LAYER(mt.placeholder((3, 8), name="x"))
    frozen = mt.Session(g).freeze(y)
    assert frozen(x).dtype is mt.bfloat16
    with mt.autocast("cpu", mt.float16):
        assert frozen(x).dtype is mt.bfloat16
    assert frozen.explain().frozen_bytes == sum(each.nbytes for each in LAYER.parameters())


# Results ----------------------------------------------------------------------------------------------------------

WEIGHT = nn.Parameter(mt.arange(6.0).reshape(2, 3))
NUMBER = mt.tensor(2.0)
RESULTS: dict[str, Callable[[mt.Tensor], Any]] = {
    "a tensor": lambda x: WEIGHT,
    "twice": lambda x: (WEIGHT, WEIGHT, x + WEIGHT),
    "views": lambda x: [WEIGHT[0], WEIGHT.T, WEIGHT.detach(), WEIGHT.reshape(-1)],
    "nested": lambda x: {"w": (WEIGHT, {"n": NUMBER}), "none": None, "n": 3, "x": x},
    "of no dimension": lambda x: NUMBER,
    "empty": lambda x: (WEIGHT[:0], mt.ones(0), x[:0]),
    "computed": lambda x: (WEIGHT * 2, mt.tensor([1.0]), mt.arange(3)),
    "nothing": lambda x: ((), [], {}, None),
}


@pytest.mark.parametrize("backend", ["interpret", "llvm"])
@pytest.mark.parametrize("name", RESULTS)
def test_results_are_neither_what_is_outside_nor_what_is_kept(name: str, backend: str, tmp_path: Path) -> None:
    """Writes to what is outside, and writes to a result, show in no later result; before saving and after loading."""
    function, x = RESULTS[name], mt.ones(2, 3)
    with mt.no_grad():
        WEIGHT.copy_(mt.arange(6.0).reshape(2, 3))
        NUMBER.fill_(2.0)
    expected = [leaf.tolist() if isinstance(leaf, mt.Tensor) else leaf for leaf in flatten(function(x))[0]]
    frozen = mt.freeze(function, x, backend=backend)
    frozen.save(tmp_path)
    loaded = mt.load_frozen(tmp_path, backend)
    for program in (frozen, loaded, frozen, loaded):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            leaves = flatten(program(x))[0]
        assert [leaf.tolist() if isinstance(leaf, mt.Tensor) else leaf for leaf in leaves] == expected
        for leaf in leaves:
            if isinstance(leaf, mt.Tensor) and leaf is not x:
                assert not leaf.requires_grad
                leaf.zero_()
        with mt.no_grad():
            WEIGHT.zero_()
            NUMBER.zero_()


def stateful(change: Callable[[nn.Module, mt.Tensor], None]) -> Callable[[], nn.Module]:
    class Stateful(nn.Module):
        mean: mt.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", mt.zeros(3))
            self.calls = 0
            self.seen: list[mt.Tensor] = []

        def forward(self, x: mt.Tensor) -> mt.Tensor:
            change(self, x)
            return x + self.mean + self.calls

    return lambda: Stateful().eval()


def counts(module: Any, x: mt.Tensor) -> None:
    module.calls += 1


def assigns(module: Any, x: mt.Tensor) -> None:
    module.mean = module.mean * 0.9 + x


def writes(module: Any, x: mt.Tensor) -> None:
    module.mean.mul_(0.9).add_(x)


def caches(module: Any, x: mt.Tensor) -> None:
    module.last = x * 2


def appends(module: Any, x: mt.Tensor) -> None:
    module.seen.append(x * 2)


ARRAY = np.ones(3, np.float32)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "an array": (lambda: lambda x: (x, ARRAY), "it returns a ndarray"),
    "a module": (lambda: lambda x: LAYER, "it returns a Linear"),
    "a counter": (stateful(counts), "it changes `self.calls`"),
    "a buffer that is assigned": (stateful(assigns), "in the attribute `mean` of a Stateful"),
    "a buffer that is written to": (stateful(writes), "it writes to `mean` in place"),
    "an attribute that is made": (stateful(caches), "in the attribute `last` of a Stateful"),
    "a list": (stateful(appends), "outside of itself, in a list"),
    "own random numbers": (lambda: lambda x: x + mt.rand(3, generator=mt.Generator()), "it draws random numbers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_effects_are_refused_and_undone(name: str) -> None:
    make, said = REFUSED[name]
    function, x = make(), mt.ones(3)
    before = dict(vars(function)) if isinstance(function, nn.Module) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TracingError, match="MT112") as raised:
            mt.freeze(function, x)
    assert said in str(raised.value)
    for attribute, value in before.items():
        if isinstance(value, mt.Tensor):
            assert vars(function)[attribute] is value
    if isinstance(function, nn.Module):
        assert "last" not in vars(function)
        function(x)  # in eager mode it goes on


# Where it is called from ------------------------------------------------------------------------------------------


def test_frozen_inside_a_recording() -> None:
    x = mt.randn(2, 8)
    with mt.no_grad():
        expected = LAYER(x).numpy()
    np.testing.assert_allclose(mt.jit(lambda x: mt.freeze(LAYER, x)(x))(x).numpy(), expected, rtol=1e-6)
    with mt.lazy():
        y = mt.freeze(LAYER, x * 1)(x * 1)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)

    def inner(x: mt.Tensor) -> Any:
        doubled = x * 2
        return mt.freeze(lambda z: LAYER(z) + doubled.sum(), x)(x)

    with pytest.raises(TracingError, match=r"MT104: f32\[2,8\], a value of inner, was used in a trace of its own"):
        mt.jit(inner)(x)


def test_shared_and_tied_weights_are_kept_once(tmp_path: Path) -> None:
    first, tied = nn.Linear(4, 4), nn.Linear(4, 4)
    tied.weight = first.weight
    model, x = nn.Sequential(first, nn.ReLU(), first, tied).eval(), mt.randn(3, 4)
    frozen = mt.freeze(model, x)
    np.testing.assert_allclose(frozen(x).numpy(), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert frozen.explain().frozen_bytes == sum(each.nbytes for each in (first.weight, first.bias, tied.bias))
    frozen.save(tmp_path)
    assert mt.load_frozen(tmp_path).explain().frozen_bytes == frozen.explain().frozen_bytes


def test_a_copy_is_itself() -> None:
    model = nn.Sequential(nn.Linear(4, 4)).eval()
    frozen = mt.freeze(model, mt.ones(1, 4))
    assert copy.deepcopy(frozen) is frozen


def test_threads_meet_new_signatures() -> None:
    frozen = mt.freeze(LAYER, mt.ones(1, 8))
    inputs, found = [mt.randn(1 + number % 3, 8) for number in range(12)], {}

    def run(number: int) -> None:
        with autocast(LOWER[number % 3]):
            found[number] = frozen(inputs[number])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(frozen.explain().signatures) == 3
    for number, x in enumerate(inputs):
        np.testing.assert_allclose(found[number].numpy(), LAYER(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_loaded_program_is_ablated_as_others_are(tmp_path: Path) -> None:
    mt.freeze(LAYER, mt.ones(2, 8)).save(tmp_path)
    loaded = mt.load_frozen(tmp_path)
    assert loaded.ablate(mt.ones(2, 8), seconds=0).variants
    with pytest.raises(ShapeError, match="MT201"):
        loaded.ablate(mt.ones(3, 8), seconds=0)
