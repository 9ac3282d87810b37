"""The files of checkpoints: what is saved comes back, whatever its names are, and whoever saves or reads meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import CheckpointError
from minitorch.export import safetensors
from tests.test_checkpoints import bits

SHARED = mt.ones(3)


class Tied(mt.nn.Module):
    """An embedding, and a linear layer with the same weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = mt.nn.Embedding(5, 3)
        self.head = mt.nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight


# Names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [4, "5GB"])
@pytest.mark.parametrize(
    "names",
    ["a minitorch", "format pt", "pt format", "total_size w", "minitorch.tied z", "minitorch.pieces z", "z b a"],
)
def test_tied_tensors_of_any_names_come_back_in_their_order(names: str, limit: Any, tmp_path: Path) -> None:
    first, *others = names.split()
    value = {"y": mt.zeros(2), first: SHARED, "x": mt.arange(2), **dict.fromkeys(others, SHARED), "w.w": mt.zeros(1)}
    mt.save(value, tmp_path, max_shard_size=limit)
    found = mt.load(tmp_path)
    assert list(found) == list(value) and bits(found) == bits(value)
    assert all(found[name] is found[first] for name in others)


def test_a_text_of_the_metadata_is_no_tensor(tmp_path: Path) -> None:
    model = mt.nn.Linear(2, 1)
    arrays = {name: each.numpy() for name, each in model.state_dict().items()}
    texts = {"license": "weight", "minitorch": "{}"} | {"format": "bias"}
    safetensors.save(tmp_path / "x.safetensors", arrays, {key: texts[key] for key in ("license", "format")})
    assert list(mt.load(tmp_path / "x.safetensors")) == ["weight", "bias"]
    assert mt.load(tmp_path / "x.safetensors", into=model) == ([], [])


def test_tied_names_are_read_as_hugging_face_writes_them(tmp_path: Path) -> None:
    untied = Tied()
    untied.head.weight = mt.nn.Parameter(mt.zeros(5, 3))
    weight = np.arange(15, dtype=np.float32).reshape(5, 3)
    texts = {"format": "pt", "head.weight": "embedding.weight"}
    safetensors.save(tmp_path / "x.safetensors", {"embedding.weight": weight}, texts)
    for model in (Tied(), untied):
        assert mt.load(tmp_path / "x.safetensors", into=model) == ([], [])
        assert (model.head.weight.detach().numpy() == weight).all()


@pytest.mark.parametrize("strict", [True, False])
def test_two_tensors_that_differ_are_not_loaded_into_one(strict: bool, tmp_path: Path) -> None:
    same, other = mt.randn(5, 3), mt.randn(5, 3)
    for head in (same, same.clone(), other):
        model = Tied()
        before = bits(model.state_dict())
        mt.save({"embedding.weight": same, "head.weight": head}, tmp_path)
        if head is not other:
            mt.load(tmp_path, into=model, strict=strict)
            assert mt.equal(model.head.weight, same)
            continue
        with pytest.raises(CheckpointError, match=r"embedding\.weight and head\.weight are one tensor") as caught:
            mt.load(tmp_path, into=model, strict=strict)
        assert caught.value.code == "MT805" and bits(model.state_dict()) == before


@pytest.mark.parametrize("text", ["[]", "{", '{"c": "z"}', '{"b": "a"}', '{"c": 1}', "[" * 100_000])
def test_tied_names_that_do_not_fit_are_refused(text: str, tmp_path: Path) -> None:
    arrays = {name: np.zeros(1, np.float32) for name in "ab"}
    safetensors.save(tmp_path / "x.safetensors", arrays, {"minitorch.tied": text})
    with pytest.raises(CheckpointError, match="tied tensors that do not fit"):
        mt.load(tmp_path / "x.safetensors")


def test_numbers_are_saved_if_they_can_be_read(tmp_path: Path) -> None:
    value = {"a": 10**4000, -(10**4000): 1}
    mt.save(value, tmp_path)
    assert mt.load(tmp_path) == value
    for wrong in ({"a": 10**5000}, {10**5000: 1}, {"a": [(10**5000,)]}):
        with pytest.raises(CheckpointError, match="is an int of 16610 bits"):
            mt.save(wrong, tmp_path)


def test_a_type_that_tensors_do_not_have_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    rows = {
        "a": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]},
        "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]},
    }
    text = json.dumps(rows).encode()
    (tmp_path / "x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(CheckpointError, match="'a' with elements of type F8_E4M3") as caught:
        mt.load(tmp_path / "x.safetensors")
    assert caught.value.code == "MT804" and "again" not in str(caught.value)
    with mt.export.Checkpoint(tmp_path / "x.safetensors") as checkpoint:
        assert checkpoint["b"].tolist() == [0.0]
