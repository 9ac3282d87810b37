"""The record of PyTorch's gradients at singular points is that of the installed PyTorch.

``python -m tests.autograd.test_torch_singular`` writes it again.
"""

import numpy as np
import pytest

from tests.autograd.singular import ROWS, gradients
from tests.support.records import read, write


def answers(torch):
    return {name: gradients(torch, torch.nn.functional, function, numbers) for name, function, numbers in ROWS}


@pytest.mark.filterwarnings("ignore")  # of reductions and lerp, about what is asked for on purpose
def test_the_record_is_pytorchs():
    torch = pytest.importorskip("torch")
    recorded = read("gradients")
    for name, found in answers(torch).items():
        for ours, theirs in zip(found, recorded[name], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-15, err_msg=name)


if __name__ == "__main__":
    import torch

    write("gradients", answers(torch))
