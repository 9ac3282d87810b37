"""What the installed PyTorch and skl2onnx export is read as they compute it; the records are such files."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch as mt
from benchmarks import exports
from minitorch_onnx.reading.loading import module_of, parsed
from tests import foreign_models

pytest.importorskip("torch")
pytest.importorskip("onnxscript")
pytest.importorskip("skl2onnx")


@pytest.mark.parametrize("name", foreign_models.makers())
def test_a_fresh_export_is_read(name: str) -> None:
    content, inputs, wanted = foreign_models.makers()[name]()
    model = module_of(parsed(content)).eval()
    found = model(*[mt.tensor(inputs[each]) for each in model.input_names])
    results = found if isinstance(found, tuple) else (found,)
    for one, other in zip(results, wanted, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other, rtol=1e-5, atol=2e-6)


def test_exported_models_are_compared_with_pytorchs() -> None:
    make, arrays = exports.models()["GRU, 2 layers, 32 steps of 8×64"]
    times, nodes = exports.compared(make, [each[:3] for each in arrays], cores=1, seconds=0.0)
    assert list(times) == list(nodes) == ["ours", "torch, TorchScript", "torch, dynamo"]
    assert min(times.values()) > 0 and min(nodes.values()) > 0
