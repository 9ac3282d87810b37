"""How PyTorch trains a layer with its normalization for 8 bits: the record that `test_qat.py` reads is true.

``python -m tests.quantization.pytorch.test_torch_qat`` writes the record again, with the installed PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.quantization.pytorch.qat import CASES, MOMENTUM, RATE, STEPS, loss, numbers
from tests.support import records

DIGITS = 9


def outcome(kind: str, has_bias: bool, has_relu: bool, frozen_at: int | None) -> dict[str, Any]:
    """Losses, parameters, statistics and scales after some steps, and the integers that are stored in the end."""
    import torch
    from torch import nn
    from torch.ao.nn.intrinsic import qat as intrinsic
    from torch.ao.quantization import FakeQuantize, QConfig
    from torch.ao.quantization import observer as observers

    given = {name: torch.tensor(array) for name, array in numbers(kind).items()}
    fake = FakeQuantize.with_args(
        observer=observers.MovingAveragePerChannelMinMaxObserver,
        dtype=torch.qint8,
        qscheme=torch.per_channel_symmetric,
        quant_min=-128,
        quant_max=127,
        reduce_range=False,
    )
    of_input = FakeQuantize(observer=observers.MovingAverageMinMaxObserver, quant_min=0, quant_max=255)
    qconfig = QConfig(activation=nn.Identity, weight=fake)
    arguments: Any = (6, 4) if kind == "Linear" else (3, 4, 3)
    name = {"Conv2d": "ConvBnReLU2d" if has_relu else "ConvBn2d", "Conv1d": "ConvBn1d", "Linear": "LinearBn1d"}[kind]
    layer = getattr(intrinsic, name)(*arguments, bias=has_bias, qconfig=qconfig)
    state = {"weight": given["weight"], "bn.weight": given["gamma"], "bn.bias": given["beta"]}
    if has_bias:
        state["bias"] = given["bias"]
    layer.load_state_dict(state, strict=False)
    layer.train()
    optimizer = torch.optim.SGD(layer.parameters(), lr=RATE, momentum=MOMENTUM)
    losses = []
    for step in range(STEPS):
        if step == frozen_at:
            layer.apply(intrinsic.freeze_bn_stats)
        optimizer.zero_grad()
        found = loss(layer(of_input(given["x"][step])), given["target"][step])
        found.backward()
        optimizer.step()
        losses.append(found.item())
    scale, _ = layer.weight_fake_quant.calculate_qparams()
    input_scale, input_zero = of_input.calculate_qparams()
    running = layer.bn.running_var + layer.bn.eps
    shape = (-1, *[1] * (layer.weight.ndim - 1))
    folded = layer.weight.detach() * (layer.bn.weight.detach() / torch.sqrt(running)).reshape(shape)
    stored = torch.quantize_per_channel(folded, scale, torch.zeros(4, dtype=torch.long), 0, torch.qint8).int_repr()
    return {
        "losses": losses,
        "weight": layer.weight.detach().flatten().tolist(),
        "gamma": layer.bn.weight.tolist(),
        "beta": layer.bn.bias.tolist(),
        "mean": layer.bn.running_mean.tolist(),
        "var": layer.bn.running_var.tolist(),
        "batches": int(layer.bn.num_batches_tracked),
        "scale": scale.tolist(),
        "input": [input_scale.item(), int(input_zero)],
        "stored": stored.flatten().tolist(),
    }


def recorded() -> dict[str, Any]:
    """The record, made here."""
    import torch

    rows: dict[str, Any] = {"torch": torch.__version__.partition("+")[0]}
    return rows | {label: _short(outcome(*case)) for label, case in CASES.items()}


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_short(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def test_the_record_is_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    record = records.read("qat")
    if record["torch"] != torch.__version__.partition("+")[0]:
        pytest.skip(f"recorded with torch {record['torch']}")
    made = recorded()
    assert record.keys() == made.keys()
    for label in CASES:
        for key, values in record[label].items():
            np.testing.assert_allclose(made[label][key], values, rtol=1e-5, atol=1 if key == "stored" else 1e-7)


if __name__ == "__main__":
    records.write("qat", recorded())
