"""Autocast: PyTorch's lists of functions, and one program in every mode."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.errors import DeviceError
from minitorch.interpreters import HANDLED, observing
from minitorch_amp.attention import attentions
from minitorch_amp.autocast_mode import FULL, LOWER
from tests.amp import autocasts
from tests.amp.mixed import MODELS, model_and_data, random_network
from tests.support.records import read

# Where PyTorch gives another type, or none: mixtures of float64 and float32, or of both types of 16 bits.
DEPARTURES = {
    ("huber_loss", "f32 f64"): "float64",
    ("binary_cross_entropy", "f32 f64"): "float64",
    ("cat", "bf16 bf16 to f16"): "bfloat16",
    ("stack", "bf16 bf16 to f16"): "bfloat16",
    ("hstack", "bf16 bf16 to f16"): "bfloat16",
}


@pytest.mark.parametrize("name", autocasts.CALLS)
def test_results_have_the_types_of_pytorch(name: str) -> None:
    recorded = read("autocast")[name]
    for (case, types), theirs in zip(autocasts.TYPES.items(), recorded, strict=True):
        ours = autocasts.type_of(mt, F, autocasts.CALLS[name], types)
        assert ours == DEPARTURES.get((name, case), theirs), case


def test_every_function_of_the_lists_is_compared() -> None:
    names = {name.partition(" ")[0] for name in autocasts.CALLS}
    assert all(hasattr(F, name) for name in F.__all__)  # a function is marked when its file is loaded
    assert {name for name in HANDLED if not name.startswith("_")} <= names
    assert set(HANDLED) == LOWER | FULL and not LOWER & FULL


# One program in every mode ----------------------------------------------------------------------------------


Step = Callable[[mt.Tensor, mt.Tensor], mt.Tensor]


def loss_of(model: mt.nn.Module, dtype: mt.DType) -> Step:
    def loss(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        with mt.autocast("cpu", dtype):
            return F.mse_loss(model(x), y)

    return loss


def gradients(model: mt.nn.Module) -> list[np.ndarray]:
    found = [parameter.grad.numpy() for parameter in model.parameters() if parameter.grad is not None]
    assert len(found) == len(list(model.parameters()))
    model.zero_grad()
    return found


def trained(step: Step, x: mt.Tensor, y: mt.Tensor, model: mt.nn.Module) -> list[np.ndarray]:
    loss = step(x, y)
    assert loss.dtype is mt.float32
    loss.backward()
    return [loss.detach().numpy(), *gradients(model)]


@pytest.mark.parametrize(
    ("name", "dtype"), [("mlp", mt.bfloat16), ("mlp", mt.float16), ("cnn", mt.bfloat16), ("block", mt.bfloat16)]
)
def test_loss_and_gradients_are_the_same_in_every_mode(name: str, dtype: mt.DType) -> None:
    """To the rounding of the lower type: sums within a product may be in another order before they are rounded."""
    model, x, y = model_and_data(name)
    step = loss_of(model, dtype)
    expected = trained(step, x, y, model)
    results = {backend: trained(mt.jit(step, backend=backend), x, y, model) for backend in ("interpret", "llvm")}
    if name == "mlp":
        with mt.lazy():
            results["lazy"] = trained(step, x, y, model)
    for mode, found in results.items():
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == np.float32
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=0.03 * np.abs(theirs).max(), err_msg=mode)
    for ours, theirs in zip(results["interpret"], expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)  # the same operations in the same order


def test_random_networks_train_alike_to_the_bit() -> None:
    for seed in range(12):
        model, x = random_network(seed)
        y = mt.zeros(*model(x).shape)
        step = loss_of(model, (mt.bfloat16, mt.float16)[seed % 2])
        expected = trained(step, x, y, model)
        for ours, theirs in zip(trained(mt.jit(step, backend="interpret"), x, y, model), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=str(seed))


def test_a_session_records_the_casts() -> None:
    model, x, _ = model_and_data("mlp")
    with mt.Graph() as graph:
        given = mt.placeholder(x.shape)
        with mt.autocast("cpu"):
            result = model(given)
    with mt.autocast("cpu"):
        expected = model(x)
    found = mt.Session(graph, backend="interpret").run(result, {given: x})
    assert result.dtype is mt.bfloat16
    np.testing.assert_array_equal(found, expected.detach().numpy())


@pytest.mark.parametrize("name", MODELS)
def test_products_are_in_the_lower_type_and_results_near(name: str) -> None:
    model, x, _ = model_and_data(name)
    with mt.autocast("cpu"):
        found = mt.jit(model, backend="interpret").graph(x)
        result = model(x)
    products = [node for node in found.nodes if node.primitive.name == "dot"]
    attended = {node for each in attentions(found) for node in (each.scores, each.product)}  # rounded at its ends
    assert {node.dtype for node in products if node not in attended} == {mt.bfloat16}
    expected = model(x)
    assert (result.float() - expected).abs().max().item() < 0.03 * expected.abs().max().item()


@pytest.mark.parametrize("name", ["mlp", "cnn", "block"])
def test_casts_are_fused_and_halve_what_is_moved_but_not_the_arithmetic(name: str) -> None:
    """They are part of the packing of operands, and of the stores of results."""
    model, x, _ = model_and_data(name)
    compiled = mt.jit(model, backend="interpret")
    with mt.no_grad():
        plain, ledger = compiled.cost(x), compiled.ledger(x)
        with mt.autocast("cpu"):
            mixed, mixed_ledger = compiled.cost(x), compiled.ledger(x)
    assert mixed.kernels == plain.kernels
    assert mixed.intermediate_bytes <= 0.51 * plain.intermediate_bytes  # statistics of norms stay in float32
    # Attention scales queries in float32, where they are read, and not where they are stored in 16 bits.
    flops = [sum(kernel.flops for kernel in each.for_target("avx2").kernels) for each in (ledger, mixed_ledger)]
    assert flops[1] == flops[0] + (768 if name == "block" else 0)


# The block ---------------------------------------------------------------------------------------------------


def test_blocks_nest() -> None:
    a = mt.ones(2, 2)
    with mt.autocast("cpu"):
        with mt.autocast("cpu", enabled=False):
            assert (a @ a).dtype is mt.float32 and not mt.is_autocast_enabled()
        assert (a @ a).dtype is mt.bfloat16 and mt.is_autocast_enabled("cpu")
        with mt.autocast("cpu", mt.float16):
            assert (a @ a).dtype is mt.float16 is mt.get_autocast_dtype("cpu")
        assert (a @ a).dtype is mt.bfloat16
    assert (a @ a).dtype is mt.float32 and mt.get_autocast_dtype() is mt.bfloat16


def test_one_object_may_be_entered_again_and_is_left_by_exceptions() -> None:
    block = mt.autocast("cpu")
    with pytest.raises(ZeroDivisionError), block, block:
        raise ZeroDivisionError
    assert not mt.is_autocast_enabled()


def test_it_is_a_decorator() -> None:
    @mt.amp.autocast(device_type="cpu", dtype=mt.float16)
    def product(a: mt.Tensor) -> mt.Tensor:
        return a @ a

    assert product(mt.ones(2, 2)).dtype is mt.float16
    assert not mt.is_autocast_enabled()


def test_a_decorated_module_compiles_and_freezes() -> None:
    """Frozen weights are folded into the lower type: half of the bytes."""
    model, x, _ = model_and_data("mlp")
    mixed = mt.autocast("cpu")(model)
    expected = mixed(x).detach()
    compiled, frozen = mt.jit(mixed, backend="interpret"), mt.freeze(mixed, x, backend="interpret")
    for run in (compiled, frozen):
        assert run(x).dtype is mt.bfloat16
        np.testing.assert_array_equal(run(x).detach().numpy(), expected.numpy())
    assert [each.reason for each in compiled.explain().signatures] == ["the first call"]
    assert {node.source.file for node in compiled.graph(x).nodes if node.source} == {__file__}
    constants = [node for node in frozen.stages(x).graph.nodes if node.primitive.name == "constant" and node.shape]
    assert constants and {node.dtype for node in constants} == {mt.bfloat16}


def test_it_belongs_to_the_thread() -> None:
    found = []
    with mt.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append((mt.ones(2, 2) @ mt.ones(2, 2)).dtype))
        thread.start()
        thread.join()
    assert found == [mt.float32]


def test_listed_functions_within_listed_ones_keep_their_type() -> None:
    """A loss is computed in float32, also where its formula has a product."""
    x = mt.full((2, 3), 1.0 + 2.0**-12)
    with mt.autocast("cpu"):
        assert F.mse_loss(x, mt.zeros(2, 3)).item() == F.mse_loss(mt.zeros(2, 3), x).item() > 1.0


def test_a_backward_pass_inside_the_block_gives_the_same_gradients() -> None:
    model, x, y = model_and_data("block")
    expected = trained(loss_of(model, mt.bfloat16), x, y, model)
    with mt.autocast("cpu"):
        loss = F.mse_loss(model(x), y)
        loss.backward()
    for ours, theirs in zip([loss.detach().numpy(), *gradients(model)], expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_nodes_of_gradients_name_the_line_that_asked_for_them() -> None:
    w = mt.ones(2, 2, requires_grad=True)

    def step(x: mt.Tensor) -> mt.Tensor:
        with mt.autocast("cpu"):
            y = (x @ w).sum()
        y.backward()
        return w.grad

    sources = {node.source.file for node in mt.jit(step, backend="interpret").graph(mt.ones(2, 2)).nodes if node.source}
    assert sources == {__file__}


def test_a_checkpoint_runs_again_in_the_autocast_it_ran_in() -> None:
    model, x, y = model_and_data("mlp")
    expected = trained(loss_of(model, mt.bfloat16), x, y, model)
    with mt.autocast("cpu"):
        model(x)  # casts every weight
        loss = F.mse_loss(mt.checkpoint(model, x), y)
    loss.backward()
    for ours, theirs in zip([loss.detach().numpy(), *gradients(model)], expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, mt.int32], ids=str)
def test_another_type_switches_it_off_with_a_warning(dtype: mt.DType) -> None:
    with pytest.warns(UserWarning, match=f"bfloat16 or float16, not {dtype.name}"):
        block = mt.autocast("cpu", dtype)
    with block:
        assert (mt.ones(2, 2) @ mt.ones(2, 2)).dtype is mt.float32


def test_other_devices_are_refused() -> None:
    with pytest.raises(DeviceError, match="MT203: there is no device 'cuda'"):
        mt.autocast("cuda")
    with pytest.raises(ValueError, match="device_type is a string such as 'cpu', not DType"):
        mt.autocast(mt.bfloat16)  # type: ignore[arg-type]


# Casts of weights --------------------------------------------------------------------------------------------


@contextmanager
def counted(shape: tuple[int, ...]) -> Iterator[list[int]]:
    """The number of casts of this shape that are computed."""
    count = [0]

    def observer(primitive, operands, value, source) -> None:
        count[0] += primitive.name == "cast" and value.shape == shape

    with observing(observer):
        yield count


@pytest.mark.parametrize(("cache_enabled", "casts"), [(True, 1), (False, 3), (None, 1)])
def test_a_weight_is_cast_once_in_a_block(cache_enabled: bool | None, casts: int) -> None:
    weight, x = mt.ones(2, 3, requires_grad=True), mt.ones(5, 3)
    with counted((2, 3)) as count, mt.autocast("cpu", cache_enabled=cache_enabled):
        for _ in range(3):
            F.linear(x, weight)
    assert count == [casts]


def test_the_outermost_block_forgets_the_casts() -> None:
    weight, x = mt.ones(2, 3, requires_grad=True), mt.ones(5, 3)
    with counted((2, 3)) as count:
        for _ in range(2):
            with mt.autocast("cpu"):
                with mt.autocast("cpu"):
                    F.linear(x, weight)
                F.linear(x, weight)
    assert count == [2]


def test_a_weight_that_was_written_is_cast_again() -> None:
    weight, x = mt.ones(2, 3, requires_grad=True), mt.ones(1, 3)

    def twice(x: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        with mt.autocast("cpu"):
            before = F.linear(x, weight)
            with mt.no_grad():
                weight.mul_(2)
            return before, F.linear(x, weight)

    assert [y.tolist() for y in twice(x)] == [[[3.0, 3.0]], [[6.0, 6.0]]]
    assert [y.tolist() for y in mt.jit(twice)(x)] == [[[6.0, 6.0]], [[12.0, 12.0]]]


def test_a_cast_made_without_a_tape_is_not_used_with_one() -> None:
    weight, x = mt.ones(2, 3, requires_grad=True), mt.ones(1, 3)
    with mt.autocast("cpu"):
        with mt.no_grad():
            F.linear(x, weight)
        F.linear(x, weight).sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [[1.0] * 3] * 2


def test_in_a_graph_a_weight_is_one_cast() -> None:
    weight, x = mt.ones(2, 3, requires_grad=True), mt.ones(5, 3)

    def products(x: mt.Tensor) -> mt.Tensor:
        with mt.autocast("cpu", cache_enabled=False):
            return F.linear(x, weight) + F.linear(2 * x, weight)

    graph = mt.jit(products).stages(x).graph
    assert sum(node.primitive.name == "cast" and node.inputs[0].shape == (2, 3) for node in graph.nodes) == 1


# Guards --------------------------------------------------------------------------------------------------------


def test_a_call_inside_and_one_outside_are_two_traces() -> None:
    product = mt.jit(lambda a: a @ a)
    a = mt.ones(2, 2)

    def types() -> list[mt.DType]:
        found = [product(a).dtype]
        with mt.autocast("cpu"):
            found.append(product(a).dtype)
            with mt.autocast("cpu", enabled=False):
                found.append(product(a).dtype)
        with mt.autocast("cpu", mt.float16):
            found.append(product(a).dtype)
        return found

    assert types() == types() == [mt.float32, mt.bfloat16, mt.float32, mt.float16]
    reasons = [each.reason for each in product.explain().signatures]
    assert reasons == ["the first call", "autocast to bfloat16 is on now", "autocast to float16 is on now"]


def test_a_trace_leaves_no_cast_to_eager_mode() -> None:
    weight, x = mt.ones(2, 3, requires_grad=True), mt.ones(1, 3)
    jitted = mt.jit(lambda x: F.linear(x, weight))
    with mt.autocast("cpu"):
        first, second = jitted(x), F.linear(x, weight)
    (first + second).sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [[2.0] * 3] * 2


def test_shadow_mode_rehearses_in_the_autocast_of_the_call() -> None:
    model, x, _ = model_and_data("mlp")
    with mt.autocast("cpu"), mt.no_grad():
        assert mt.jit(model, check=True)(x).dtype is mt.bfloat16
