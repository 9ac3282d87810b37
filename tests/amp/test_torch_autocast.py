"""The records of PyTorch's mixed precision are those of the installed PyTorch.

``python -m tests.amp.test_torch_autocast`` writes them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.amp import autocasts, custom_functions, scaler_scripts, scalings
from tests.nn import roundings
from tests.support.records import read, write

RECORDS: dict[str, Callable[[Any, Any], dict[str, Any]]] = {
    "autocast": autocasts.types_of,
    "grad_scaler": scalings.all_of,
    "roundings": roundings.values,
    "custom_functions": custom_functions.all_of,
    "scaler_scripts": scaler_scripts.all_of,
}


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight:UserWarning")  # of rms_norm, on speed
@pytest.mark.parametrize("name", RECORDS)
def test_the_record_is_that_of_the_installed_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    answers = RECORDS[name](torch, torch.nn.functional)
    assert str(read(name)) == str(json.loads(json.dumps(answers)))  # as text, since NaN is not equal to itself


if __name__ == "__main__":
    import torch

    for name, record in RECORDS.items():
        write(name, record(torch, torch.nn.functional))
