"""The record of what PyTorch's autocast and GradScaler do is that of the installed PyTorch.

``python -m tests.optional.test_torch_autocast`` writes it again.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests import autocasts
from tests.records import read, write


def record_of(torch: Any) -> dict[str, Any]:
    """All that is recorded."""
    return {"types": autocasts.types_of(torch, torch.nn.functional)}


def test_the_record_of_types_is_that_of_the_installed_pytorch() -> None:
    torch = pytest.importorskip("torch")
    assert read("autocast") == record_of(torch)


if __name__ == "__main__":
    import torch

    write("autocast", record_of(torch))
