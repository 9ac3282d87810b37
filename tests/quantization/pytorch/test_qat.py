"""Training for 8 bits with batch normalization: PyTorch's losses, parameters, statistics, scales and integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch import quantization as q
from tests.quantization.pytorch.qat import CASES, MOMENTUM, RATE, STEPS, loss, numbers
from tests.support import records

RECORD = records.read("qat")
MODES = ("eager", "interpret", "llvm", "session")


def prepared_model(kind: str, has_bias: bool, has_relu: bool) -> Any:
    """The layer, its normalization, and perhaps a ReLU."""
    given = numbers(kind)
    layer: Any = {"Conv2d": nn.Conv2d, "Conv1d": nn.Conv1d, "Linear": nn.Linear}[kind](
        *((6, 4) if kind == "Linear" else (3, 4, 3)), bias=has_bias
    )
    norm = nn.BatchNorm2d(4) if kind == "Conv2d" else nn.BatchNorm1d(4)
    layer.weight = nn.Parameter(mt.tensor(given["weight"]))
    if has_bias:
        layer.bias = nn.Parameter(mt.tensor(given["bias"]))
    norm.weight, norm.bias = nn.Parameter(mt.tensor(given["gamma"])), nn.Parameter(mt.tensor(given["beta"]))
    return q.prepare_qat(nn.Sequential(layer, norm, *([nn.ReLU()] if has_relu else [])))


def trained(label: str, mode: str) -> tuple[Any, list[float]]:
    """The model after some steps, and the losses."""
    kind, has_bias, has_relu, frozen_at = CASES[label]
    model, given = prepared_model(kind, has_bias, has_relu), numbers(kind)
    optimizer = mt.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)

    def step(x: mt.Tensor, target: mt.Tensor) -> mt.Tensor:
        optimizer.zero_grad()
        found: mt.Tensor = loss(model(x), target)
        found.backward()
        optimizer.step()
        return found

    run: Any = step if mode in ("eager", "session") else mt.jit(step, backend=mode)
    if mode == "session":
        with mt.Graph() as graph:
            x = mt.placeholder(given["x"].shape[1:], name="x")
            target = mt.placeholder(given["target"].shape[1:], name="target")
            cost = loss(model(x), target)
            update = optimizer.minimize(cost)
        session = mt.Session(graph)
        run = lambda x, target: session.run([cost, update], {"x": x, "target": target})[0]  # noqa: E731
    losses = []
    for number in range(STEPS):
        if number == frozen_at:
            model.apply(q.freeze_bn_stats)
        losses.append(run(mt.tensor(given["x"][number]), mt.tensor(given["target"][number])).item())
    return model, losses


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("label", CASES)
def test_a_layer_and_its_normalization_are_trained_as_in_pytorch(label: str, mode: str) -> None:
    if mode == "session" and CASES[label][3] is not None:
        pytest.skip("a finished graph has its modules as they were")
    record = RECORD[label]
    model, losses = trained(label, mode)
    layer = model[0]
    found = {
        "losses": losses,
        "weight": layer.layer.weight,
        "gamma": layer.norm.weight,
        "beta": layer.norm.bias,
        "mean": layer.norm.running_mean,
        "var": layer.norm.running_var,
        "scale": layer.weight_observer.qparams().scale,
        "input": [each.item() for each in layer.activation.calculate_qparams()],
    }
    for name, values in found.items():
        values = values.detach().numpy().ravel() if isinstance(values, mt.Tensor) else values
        np.testing.assert_allclose(values, record[name], rtol=2e-5, atol=1e-6, err_msg=name)
    assert layer.norm.num_batches_tracked.item() == record["batches"]
    converted: Any = q.convert(model)
    stored = converted[0]
    apart = np.abs(stored.weight.numpy().ravel().astype(int) - np.array(record["stored"]))
    assert apart.max() <= 1 and (apart > 0).sum() <= 1  # at a tie


@pytest.mark.parametrize("label", CASES)
def test_what_is_converted_gives_what_was_trained(label: str) -> None:
    model, _ = trained(label, "llvm")
    model.apply(q.disable_observer).eval()
    x = mt.tensor(numbers(CASES[label][0])["x"][0])
    with mt.no_grad():
        expected = model(x)
        converted: Any = q.convert(model)
        found = converted(x)
    assert isinstance(converted[1], nn.Identity)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-5, rtol=1e-5)


def test_a_normalization_whose_scale_is_zero_trains_on() -> None:
    """As the last of a residual block begins; PyTorch divides by it and gets NaN."""
    layer, norm = nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)
    norm.weight.data = mt.zeros(3)
    model: Any = q.prepare_qat(nn.Sequential(layer, norm))
    y = model(mt.randn(4, 2, 5, 5))
    assert y.abs().max().item() == 0
    y.sum().backward()
    assert norm.weight.grad is None and model[0].norm.weight.grad.isfinite().all()


def test_statistics_that_are_frozen_stay_frozen_until_they_are_not() -> None:
    model: Any = q.prepare_qat(nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)))
    x = mt.randn(4, 2, 5, 5)
    model(x)
    model.apply(q.freeze_bn_stats).eval().train()
    before = model[0].norm.running_mean.tolist()
    model(x)
    assert model[0].norm.running_mean.tolist() == before
    model.apply(q.update_bn_stats)(x)
    assert model[0].norm.running_mean.tolist() != before


def test_a_layer_left_in_float_keeps_its_normalization() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Conv2d(2, 2, 3), nn.BatchNorm2d(2))
    model: Any = q.prepare_qat(net, leave_in_float="0")
    kinds = [type(each).__name__ for each in model]
    assert kinds == ["Conv2d", "BatchNorm2d", "PreparedWithNorm", "Identity"]
    assert model[1].training


def test_pairs_are_found_outside_of_a_sequential_by_an_example() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm, self.head = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2, 3)

        def forward(self, x: mt.Tensor) -> mt.Tensor:
            result: mt.Tensor = self.head(self.norm(self.conv(x)).relu().mean((2, 3)))
            return result

    x = mt.randn(4, 1, 6, 6)
    model: Any = q.prepare_qat(Net(), example=x)
    assert isinstance(model.conv, q.PreparedWithNorm) and isinstance(model.norm, nn.Identity)
    model(x).sum().backward()
    assert q.convert(model)(x).shape == (4, 3)
