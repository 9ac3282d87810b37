"""`GradScaler` with two optimisers: after every call of a sequence all is as in PyTorch, also where it refuses one."""

from __future__ import annotations

import pytest

import minitorch as mt
from tests.amp import scaler_scripts
from tests.support.records import read


@pytest.mark.parametrize("name", scaler_scripts.SCRIPTS)
def test_every_call_leaves_what_it_leaves_in_pytorch(name: str) -> None:
    found = scaler_scripts.rows(mt, name)
    for call, ours, theirs in zip(scaler_scripts.SCRIPTS[name], found, read("scaler_scripts")[name], strict=True):
        assert ours == theirs, call
