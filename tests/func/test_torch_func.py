"""What `torch.func` gives: this library gives the same, and the record is that of the installed PyTorch.

``python -m tests.func.test_torch_func`` writes the record again.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import minitorch as mt
from tests.func.calls import calls, near, outcome
from tests.support import records

CALLS = calls(mt)


def recorded() -> dict[str, Any]:
    """The record, made here."""
    import torch

    version = {"torch": torch.__version__.partition("+")[0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        return version | {name: outcome(call()) for name, call in calls(torch).items()}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_pytorchs(name: str) -> None:
    wanted = records.read("func")[name]
    assert near(outcome(CALLS[name]()), wanted)
    if name not in ("autograd.grad", "gradient of a leaf", "vmap of a leaf"):
        assert near(outcome(mt.jit(CALLS[name])()), wanted)
        with mt.lazy():
            found = CALLS[name]()
        assert near(outcome(found), wanted)


def test_the_record_is_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    record = records.read("func")
    if record["torch"] != torch.__version__.partition("+")[0]:
        pytest.skip(f"recorded with torch {record['torch']}")
    made = recorded()
    assert record.keys() == made.keys()
    assert [name for name in CALLS if not near(made[name], record[name])] == []


if __name__ == "__main__":
    records.write("func", recorded())
