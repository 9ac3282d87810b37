"""What PyTorch's dynamic quantisation gives: the record that `test_recurrent_dynamic.py` reads is true.

``python -m tests.quantization.pytorch.test_torch_recurrent_dynamic`` writes the record again.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tests.quantization.pytorch.recurrent_dynamic import CASES, arguments, made
from tests.support import records
from tests.support.recurrent import flat


def recorded() -> dict[str, Any]:
    """The record, made here: of each layer the weights as integers, their scales, and the results."""
    import torch

    rows: dict[str, Any] = {"torch": torch.__version__.partition("+")[0]}
    for label in CASES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the modules' coming removal
            wrapped = torch.nn.Sequential(made(torch, label)).eval()
            layer = torch.ao.quantization.quantize_dynamic(wrapped)[0]
        weights = {"weight": layer.weight()} if label == "Linear" else layer.get_weight()
        with torch.no_grad():
            results = flat(layer(*arguments(torch, label)))
        rows[label] = {
            "weights": {key: each.int_repr().flatten().tolist() for key, each in weights.items()},
            "scales": {key: each.q_scale() for key, each in weights.items()},
            "results": [each.flatten().tolist() for each in results],
        }
    return rows


def test_the_record_is_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    record = records.read("recurrent_dynamic")
    if record["torch"] != torch.__version__.partition("+")[0]:
        pytest.skip(f"recorded with torch {record['torch']}")
    new = recorded()
    for label in CASES:
        assert (record[label]["weights"], record[label]["scales"]) == (new[label]["weights"], new[label]["scales"])
        for a, b in zip(record[label]["results"], new[label]["results"], strict=True):
            np.testing.assert_allclose(a, b, atol=0.02)  # another engine or processor may round a state otherwise


if __name__ == "__main__":
    records.write("recurrent_dynamic", recorded())
