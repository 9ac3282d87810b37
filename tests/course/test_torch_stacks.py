"""The programs of notebook 15 compute the same in PyTorch, with the operations and kernels that are recorded."""

import numpy as np
import pytest

from minitorch import course
from minitorch_course.libraries.programs import FUNCTIONS, PROGRAMS, installed, ours, with_torch

pytest.importorskip("torch")
EAGER = [each for each in PROGRAMS.values() if "batch 64" not in each.name]


@pytest.mark.parametrize("program", EAGER, ids=lambda each: each.name)
def test_eager_pytorch_computes_the_same_and_as_counted(program):
    prepared = with_torch(program)
    np.testing.assert_allclose(prepared.result(), ours(program).result(), rtol=1e-3, atol=1e-4)
    row = course.stacks()[program.name, "torch, eager"]
    assert prepared.count() == (row.kernels, row.bytes)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own use of what it has deprecated
@pytest.mark.parametrize("program", FUNCTIONS, ids=lambda each: each.name)
def test_inductor_makes_the_kernels_that_are_recorded(program):
    if "torch.compile" not in installed():
        pytest.skip("there is no compiler for C++")
    row = course.stacks()[program.name, "torch.compile"]
    assert with_torch(program, compiled=True).count() == (row.kernels, row.bytes)
