"""What `aliasing.json` says of PyTorch is true, and every public function shares memory where PyTorch's does."""

from __future__ import annotations

import types
import warnings

import numpy as np
import pytest

import minitorch as mt
from tests.functional.memory.aliasing import ARGUMENTS, NOT_TAKEN, NOTHING, recorded, tensors, with_torch
from tests.functional.memory.test_aliasing import variants
from tests.support.cases import CASES, METHODS

torch = pytest.importorskip("torch")


def test_the_record_is_what_pytorch_does():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for expression, words in recorded():
            for name in ARGUMENTS:
                found = with_torch(expression, name)
                assert words.get(name, found) == found and (name in words or found in (NOTHING, NOT_TAKEN)), expression


def of_torch(case):
    """The function of a case, of their library."""
    ours, theirs = (mt.nn.functional, torch.nn.functional) if case.name.startswith("F.") else (mt, torch)
    name = case.name.removeprefix("F.")
    if case.function is getattr(ours, name, None):
        return getattr(theirs, name)
    names = {**case.function.__globals__, "mt": torch, "F": torch.nn.functional}
    return types.FunctionType(
        case.function.__code__, names, None, case.function.__defaults__, case.function.__closure__
    )


def sharing(function, arguments, kind, shares):
    results = tensors(function(*arguments), kind)
    return [[shares(result, argument) for argument in arguments] for result in results]


def test_every_public_function_shares_memory_where_pytorch_does():
    compared = set()
    for case in [*CASES, *METHODS]:
        for arrays in variants(case):
            try:
                theirs = sharing(
                    of_torch(case),
                    [torch.tensor(array) for array in arrays],
                    torch.Tensor,
                    lambda x, y: x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr() and x.numel() > 0,
                )
                ours = sharing(
                    case.function,
                    [mt.tensor(array) for array in arrays],
                    mt.Tensor,
                    lambda x, y: np.shares_memory(x._value, y._value),
                )
            except Exception:  # one of the two does not take this
                continue
            assert ours == theirs, (case.name, [array.shape for array in arrays])
            compared.add(case.name)
    assert len(compared) > 0.9 * len({case.name for case in [*CASES, *METHODS]})
