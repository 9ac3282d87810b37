"""PyTorch reads our files of its form, and its own file is recorded.

``python -m tests.checkpoints.test_torch_files`` writes the record again.
"""

from typing import Any

import pytest

import minitorch as mt
from tests.checkpoints.test_pytorch_files import RECORDED, training


def test_pytorch_reads_what_is_written(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch")
    model, optimizer = training()
    mt.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "w": model[0].weight}, tmp_path / "x.pt")
    found = torch.load(tmp_path / "x.pt", weights_only=True)
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    theirs.load_state_dict(found["model"])
    torch.optim.Adam(theirs.parameters()).load_state_dict(found["optimizer"])
    assert found["w"].tolist() == theirs[0].weight.tolist() == model[0].weight.tolist()
    assert isinstance(found["w"], torch.nn.Parameter)


def write() -> None:
    """Write the record."""
    import torch

    tied = torch.ones(2)
    state = torch.nn.Linear(2, 1).state_dict()
    torch.save(
        {
            "state": state,
            "part": torch.arange(12).reshape(3, 4).t()[1:],
            "half": torch.ones(2, dtype=torch.float16),
            "leaf": torch.ones(2, requires_grad=True),
            "parameter": torch.nn.Parameter(torch.zeros(2)),
            "size": torch.Size([2, 3]),
            "tied": [tied.view(2, 1), tied],
            "plain": [1, 2.5, None, "x", True],
        },
        RECORDED,
    )


if __name__ == "__main__":
    write()
