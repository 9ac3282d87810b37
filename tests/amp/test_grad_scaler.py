"""`GradScaler`: PyTorch's trajectories, one graph for all scales, and training in mixed precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.errors import DeviceError
from tests.amp import scalings
from tests.support.records import read

MODES: dict[str, scalings.Compile] = {
    "eager": lambda step: step,
    "interpret": lambda step: mt.jit(step, backend="interpret"),
    "llvm": mt.jit,
}


def lazily(step: scalings.Step) -> scalings.Step:
    def run(x: mt.Tensor) -> mt.Tensor:
        with mt.lazy():
            return step(x)

    return run


# Beside PyTorch ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", scalings.OPTIMIZERS)
@pytest.mark.parametrize("name", scalings.SETTINGS)
@pytest.mark.parametrize("mode", ["eager", "interpret"])
def test_scales_and_skipped_steps_are_those_of_pytorch(mode: str, name: str, optimizer: str) -> None:
    expected = np.array(read("grad_scaler")[f"{name}, {optimizer}"])
    found = np.array(scalings.trajectory(mt, name, optimizer, MODES[mode]))
    np.testing.assert_array_equal(found[:, :2], expected[:, :2])  # scale and count, to the bit
    np.testing.assert_allclose(found[:, 2], expected[:, 2], rtol=1e-6)


def test_so_they_are_compiled_and_deferred() -> None:
    for compiled in (mt.jit, lazily):
        found = np.array(scalings.trajectory(mt, "backs off", "Adam", compiled))
        expected = np.array(read("grad_scaler")["backs off, Adam"])
        np.testing.assert_array_equal(found[:, :2], expected[:, :2])
        np.testing.assert_allclose(found[:, 2], expected[:, 2], rtol=1e-6)


@pytest.mark.parametrize("mode", ["eager", "llvm"])
@pytest.mark.parametrize("name", scalings.TRAININGS)
def test_training_in_mixed_precision_is_that_of_pytorch(name: str, mode: str) -> None:
    """Losses and weights to half a unit in the last place of the lower type at 1; the scales to the bit."""
    lower, init_scale = scalings.TRAININGS[name]
    expected = read("grad_scaler")[f"training, {name}"]
    found = scalings.training(mt, F, lower, init_scale, MODES[mode])
    assert found["scales"] == expected["scales"]
    near = {"bfloat16": 2.0**-9, "float16": 2.0**-12}[lower]
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=0, atol=near)  # NaN where PyTorch has it
    for ours, theirs in zip(found["weights"], expected["weights"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=near)


# One graph ---------------------------------------------------------------------------------------------------------


def digits() -> tuple[mt.Tensor, mt.Tensor]:
    (images, labels), _ = mt.data.load_digits()
    return images[:256].reshape(256, 1, 8, 8), labels[:256].clone()


def mlp() -> mt.nn.Module:
    return mt.nn.Sequential(mt.nn.Flatten(), mt.nn.Linear(64, 32), mt.nn.ReLU(), mt.nn.Linear(32, 10))


def cnn() -> mt.nn.Module:
    return mt.nn.Sequential(
        mt.nn.Conv2d(1, 6, 3, padding=1), mt.nn.ReLU(), mt.nn.MaxPool2d(2), mt.nn.Flatten(), mt.nn.Linear(96, 10)
    )


Train = Callable[[mt.Tensor, mt.Tensor], mt.Tensor]


def training(make: Callable[[], mt.nn.Module], lower: mt.DType | None, scaler: mt.amp.GradScaler) -> Train:
    mt.manual_seed(0)
    model = make()
    optimizer = mt.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)

    def step(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        optimizer.zero_grad()
        with mt.autocast("cpu", lower, enabled=lower is not None):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    return step


@pytest.mark.parametrize("make", [mlp, cnn])
def test_a_step_in_mixed_precision_is_one_graph_that_learns_as_float32_does(make: Callable[[], mt.nn.Module]) -> None:
    x, y = digits()
    losses, steps = {}, {}
    for lower in (None, mt.bfloat16, mt.float16):
        scaler = mt.amp.GradScaler(init_scale=2.0**10, growth_interval=5, enabled=lower is mt.float16)
        step = mt.jit(training(make, lower, scaler))
        losses[lower] = [step(x, y).item() for _ in range(16)]
        assert len(step.explain().signatures) == 1
        steps[lower] = step
    assert scaler.get_scale() == 2.0**13  # it grew three times
    assert losses[None][-1] < 0.7 * losses[None][0]
    np.testing.assert_allclose(losses[mt.float16], losses[None], rtol=2e-3)
    np.testing.assert_allclose(losses[mt.bfloat16], losses[None], rtol=2e-2)
    kernels = {lower: len(step.ledger(x, y).kernels) for lower, step in steps.items()}
    # Whether a step is skipped is known when all gradients are, so that what uses them is in a kernel of its own.
    assert kernels[mt.bfloat16] == kernels[None] and kernels[mt.float16] <= kernels[None] + 1


def test_an_overflow_halves_the_scale_and_retraces_nothing() -> None:
    x, y = digits()
    scaler = mt.amp.GradScaler(init_scale=2.0**24)
    train = training(mlp, mt.float16, scaler)
    step, scales = mt.jit(train), []
    for _ in range(12):
        step(x, y)
        scales.append(scaler.get_scale())
    assert scales[0] == 2.0**23 and scales[-1] == scales[-2] >= 2.0**10  # it halves until nothing overflows
    scaler.set_growth_interval(scaler.state_dict()["_growth_tracker"] + 1)
    scaler.set_growth_factor(1.5)
    scaler.update(64.0)
    step(x, y)
    assert scaler.get_scale() == 96.0
    assert [each.reason for each in step.explain().signatures] == ["the first call"]
    names = {node.primitive.name for node in step.graph(x, y).nodes}
    assert "where" in names
    assert {"scaler.scale", "scaler.good_steps", "scaler.growth_factor"} <= set(step.explain().signatures[0].captured)


@pytest.mark.parametrize("mode", MODES)
def test_a_skipped_step_leaves_weights_and_state_to_the_bit(mode: str) -> None:
    w = mt.tensor([1.0, -2.0], requires_grad=True)
    optimizer, scaler = mt.optim.Adam([w], lr=0.1), mt.amp.GradScaler(init_scale=8.0)

    def step(x: mt.Tensor) -> None:
        optimizer.zero_grad()
        scaler.scale((w * x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    def state() -> list[Any]:
        return [w.tolist(), *(each.tolist() for each in optimizer.state[w].values())]

    run = MODES[mode](step)
    run(mt.tensor([1.0, 2.0]))
    before = state()
    for bad in (math.inf, -math.inf, math.nan):
        run(mt.tensor([1.0, bad]))
    assert state() == before
    assert scaler.get_scale() == 1.0
    run(mt.tensor([1.0, 2.0]))
    assert state()[0] != before[0]


# The interface -----------------------------------------------------------------------------------------------------


def ready(*losses: float, **settings: Any) -> tuple[mt.amp.GradScaler, mt.optim.Optimizer, mt.Tensor]:
    """A scaler, an optimiser, and its weight, whose gradient is there."""
    w = mt.tensor([1.0, 2.0], requires_grad=True)
    scaler = mt.amp.GradScaler(**{"init_scale": 4.0, **settings})
    scaler.scale((w * mt.tensor(losses or (1.0, 3.0))).sum()).backward()
    return scaler, mt.optim.SGD([w], lr=1.0), w


def test_unscaled_gradients_can_be_clipped() -> None:
    scaler, optimizer, w = ready(3.0, 4.0)
    assert w.grad is not None and w.grad.tolist() == [12.0, 16.0]
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [3.0, 4.0]
    mt.nn.utils.clip_grad_norm_([w], 1.0)
    scaler.step(optimizer)
    scaler.update()
    np.testing.assert_allclose(w.tolist(), [0.4, 1.2], rtol=1e-5)


def test_every_optimiser_skips_for_itself_and_one_overflow_lowers_the_scale() -> None:
    good, bad = mt.ones(2, requires_grad=True), mt.ones(2, requires_grad=True)
    optimizers = [mt.optim.SGD([good], lr=1.0), mt.optim.SGD([bad], lr=1.0)]
    scaler = mt.amp.GradScaler(init_scale=4.0)
    first, second = scaler.scale([good.sum(), (bad * math.inf).sum()])
    first.backward()
    second.backward()
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert good.tolist() == [0.0, 0.0] and bad.tolist() == [1.0, 1.0]
    assert scaler.get_scale() == 2.0


def test_scale_keeps_tuples_lists_and_types() -> None:
    scaler = mt.amp.GradScaler(init_scale=4.0)
    one, (two, three) = scaler.scale((mt.tensor(1.0), [mt.tensor(2.0), mt.ones(2, dtype=mt.float16)]))
    assert (one.item(), two.item(), three.tolist(), three.dtype) == (4.0, 8.0, [4.0, 4.0], mt.float16)
    assert [each.item() for each in scaler.scale(mt.tensor(float(n)) for n in range(3))] == [0.0, 4.0, 8.0]
    with pytest.raises(ValueError, match="a tensor or an iterable of them, not float"):
        scaler.scale(1.0)


def test_a_scale_beyond_float16_multiplies_as_in_pytorch() -> None:
    """65536 is no float16, and 1e-5 times 65536 is."""
    product = mt.amp.GradScaler().scale(mt.tensor([1e-5, 0.5], dtype=mt.float16))
    assert product.tolist() == [0.65625, 32768.0]


def test_a_disabled_scaler_does_nothing() -> None:
    w = mt.tensor([1.0], requires_grad=True)
    scaler, optimizer = mt.amp.GradScaler(enabled=False), mt.optim.SGD([w], lr=0.5)
    loss = (w * w).sum()
    assert scaler.scale(loss) is loss and not scaler.is_enabled()
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    scaler.load_state_dict({})
    assert (w.item(), scaler.get_scale(), scaler.state_dict()) == (0.0, 1.0, {})


def test_state_is_saved_and_loaded_in_place() -> None:
    scaler, optimizer, _ = ready(growth_factor=3.0, backoff_factor=0.25, growth_interval=7)
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 4.0, "growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 7, "_growth_tracker": 1
    }  # fmt: skip
    other = mt.amp.GradScaler()
    other.load_state_dict(state)
    assert other.state_dict() == state
    with pytest.raises(ValueError, match="a scale is positive and finite, not 0"):
        other.load_state_dict({**mt.amp.GradScaler().state_dict(), "scale": 0.0})
    with pytest.raises(KeyError, match="growth_factor"):
        other.load_state_dict({"scale": 1.0})
    assert other.state_dict() == state
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})


def test_a_new_scale_can_be_set() -> None:
    scaler = mt.amp.GradScaler()
    scaler.update(3.0)
    assert scaler.get_scale() == 3.0
    scaler.update(mt.tensor([5.0]))
    assert scaler.get_scale() == 5.0
    with pytest.raises(ValueError, match=r"f32\[2\]"):
        scaler.update(mt.ones(2))
    with pytest.raises(ValueError, match="not inf"):
        scaler.update(math.inf)


# Wrong use ---------------------------------------------------------------------------------------------------------


def test_calls_in_the_wrong_order_are_refused() -> None:
    scaler, optimizer, w = ready()
    with pytest.raises(RuntimeError, match="No inf checks were recorded prior to update"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="has already been called on this optimizer since the last update"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="being called after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="has already been called since the last update"):
        scaler.step(optimizer)
    scaler.update()
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        scaler.step(optimizer, closure=lambda: None)
    w.grad = None
    with pytest.raises(RuntimeError, match="none of its parameters has a gradient"):
        scaler.step(optimizer)


def test_gradients_in_float16_are_refused() -> None:
    w = mt.ones(2, dtype=mt.float16, requires_grad=True)
    scaler, optimizer = mt.amp.GradScaler(init_scale=2.0), mt.optim.SGD([w], lr=0.5)
    scaler.scale(w.sum()).backward()
    with pytest.raises(ValueError, match=r"Attempting to unscale FP16 gradients: one is f16\[2\]"):
        scaler.step(optimizer)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"init_scale": 0.0}, "a scale is positive and finite, not 0"),
        ({"init_scale": math.nan}, "a scale is positive and finite, not nan"),
        ({"init_scale": math.inf}, "a scale is positive and finite, not inf"),
        ({"growth_factor": 1.0}, "the growth factor is more than 1, not 1.0"),
        ({"backoff_factor": 1.0}, "the backoff factor is between 0 and 1, not 1.0"),
        ({"growth_interval": 0}, "at least 1, not 0"),
        ({"growth_interval": 1.5}, "whole number of steps, at least 1, not 1.5"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mt.amp.GradScaler(**settings)


def test_there_is_no_other_device() -> None:
    with pytest.raises(DeviceError, match="MT203"):
        mt.amp.GradScaler("cuda")


def test_a_loss_that_overflows_float16_is_named() -> None:
    scaler = mt.amp.GradScaler()
    text = "float16 overflow in a loss scale: 3 times the scale 65536 is more than 65504"
    with pytest.warns(UserWarning, match=text) as seen:
        scaler.scale(mt.tensor([1e-5, 3.0], dtype=mt.float16))
    assert seen[0].filename == __file__
