"""What PyTorch's recurrent layers give: the record that `test_recurrent.py` reads is true.

``python -m tests.nn.test_torch_recurrent`` writes the record again, with the installed PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from tests.support import records
from tests.support.recurrent import CASES, outcome

DIGITS = 13  # of each number in the record, in float64


def recorded() -> dict[str, Any]:
    """The record, made here."""
    import torch

    rows: dict[str, Any] = {"torch": torch.__version__.partition("+")[0]}
    for label, case in CASES.items():
        rows[label] = _short(outcome(torch, case))
    return rows


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_short(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def test_the_record_is_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    record = records.read("recurrent")
    if record["torch"] != torch.__version__.partition("+")[0]:
        pytest.skip(f"recorded with torch {record['torch']}")
    made = recorded()
    assert record.keys() == made.keys()
    for label in CASES:
        old, new = record[label], made[label]
        assert (old["repr"], old["shapes"]) == (new["repr"], new["shapes"])
        for key in ("results", "inputs"):
            for a, b in zip(old[key], new[key], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"])
def test_a_state_dict_goes_both_ways(name: str) -> None:
    torch = pytest.importorskip("torch")
    options: dict[str, Any] = {} if name.endswith("Cell") else {"num_layers": 2, "bidirectional": True}
    mine, yours = getattr(mt.nn, name)(3, 4, **options), getattr(torch.nn, name)(3, 4, **options)
    assert list(mine.state_dict()) == list(yours.state_dict()) == [key for key, _ in yours.named_parameters()]
    mine.load_state_dict({key: value.numpy() for key, value in yours.state_dict().items()})
    x = np.random.RandomState(0).standard_normal((5, 3) if name.endswith("Cell") else (5, 2, 3)).astype(np.float32)
    a, b = mine(mt.tensor(x)), yours(torch.tensor(x))
    a, b = (a[0], b[0]) if isinstance(a, tuple) else (a, b)
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)
    yours.load_state_dict({key: torch.tensor(value.numpy()) for key, value in mine.state_dict().items()})


if __name__ == "__main__":
    records.write("recurrent", recorded())
