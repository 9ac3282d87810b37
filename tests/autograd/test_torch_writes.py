"""The record of PyTorch's gradients through in-place writes is that of the installed PyTorch.

``python -m tests.autograd.test_torch_writes`` writes it again.
"""

import pytest

from tests.autograd.writes import ROWS, answers
from tests.support.records import read, write


def of_all(torch):
    return {name: answers(torch, torch.nn.functional, program) for name, program in ROWS.items()}


def test_the_record_is_pytorchs():
    torch = pytest.importorskip("torch")
    recorded = read("writes")
    for name, found in of_all(torch).items():
        assert (found is None) == (recorded[name] is None), name
        for ours, theirs in zip(found or (), recorded[name] or (), strict=True):
            assert ours == (theirs and pytest.approx(theirs)), name


if __name__ == "__main__":
    import torch

    write("writes", of_all(torch))
