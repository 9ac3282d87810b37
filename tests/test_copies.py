"""Copies and pickles of tensors and modules, and models stored with NumPy."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt


@pytest.mark.parametrize("x", [mt.arange(6).reshape(2, 3), mt.rand(3, 2).T[1:], mt.ones(2).bfloat16(), mt.tensor(1.5)])
def test_pickles_and_copies_have_the_values(x: mt.Tensor) -> None:
    for twin in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert twin.spec == x.spec and twin.tolist() == x.tolist()
        twin.zero_()
    assert x.abs().sum().item() > 0


def test_a_module_and_its_state_survive() -> None:
    model = mt.nn.Sequential(mt.nn.Linear(3, 2), mt.nn.BatchNorm1d(2))
    model(mt.rand(4, 3)).sum().backward()
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert isinstance(twin[0].weight, mt.nn.Parameter) and twin[0].weight.requires_grad
        assert twin[0].weight.grad.tolist() == model[0].weight.grad.tolist()
        for name, tensor in twin.state_dict().items():
            assert tensor.tolist() == model.state_dict()[name].tolist()
    assert pickle.loads(pickle.dumps(model.state_dict())).keys() == model.state_dict().keys()


def test_a_model_is_stored_with_numpy_as_the_readme_says(tmp_path: Path) -> None:
    model, other = mt.nn.Linear(3, 2), mt.nn.Linear(3, 2)
    arrays: dict[str, Any] = {name: t.numpy() for name, t in model.state_dict().items()}
    np.savez(tmp_path / "model.npz", **arrays)
    with np.load(tmp_path / "model.npz") as stored:
        other.load_state_dict({name: mt.tensor(array) for name, array in stored.items()})
    assert other.weight.tolist() == model.weight.tolist()


def test_a_traced_value_cannot_be_copied() -> None:
    with pytest.raises(TypeError, match="no value that could be copied"):
        mt.jit(lambda x: copy.deepcopy(x * 2))(mt.ones(2))


def test_a_jitted_module_is_still_a_module() -> None:
    jitted = mt.jit(mt.nn.Sequential(mt.nn.Linear(2, 2), mt.nn.Dropout(0.5)))
    assert len(list(jitted.parameters())) == 2
    jitted.eval()
    assert jitted(mt.ones(1, 2)).tolist() == jitted(mt.ones(1, 2)).tolist()
    with pytest.raises(AttributeError):
        mt.jit(lambda x: x).parameters()  # type: ignore[attr-defined]


def test_a_linear_layer_says_what_it_takes() -> None:
    with pytest.raises(mt.errors.ShapeError, match=r"with 4 features; the weight .* takes 3"):
        mt.nn.Linear(3, 2)(mt.ones(5, 4))
