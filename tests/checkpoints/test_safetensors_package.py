"""Files of the package `safetensors` are read, and it reads ours: every type and shape, tied tensors, and an index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import minitorch as mt
from minitorch import dtypes
from minitorch_checkpoints.safetensors import NAMES
from tests.checkpoints.test_checkpoint_files import Tied

safetensors = pytest.importorskip("safetensors")
numpy_files = pytest.importorskip("safetensors.numpy")


def arrays() -> dict[str, Any]:
    """An array of every type and of several shapes, in no order that a file has."""
    found: dict[str, Any] = {
        "é \n": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "empty": np.zeros((0, 3), np.float16),
    }
    for dtype in NAMES:
        values = np.array([[0, 1, 1], [1, 0, 1]])
        found[f"{dtype.name}.rows"] = values.astype(dtype.numpy)
        found[f"{dtype.name}.empty"] = np.zeros((2, 0), dtype.numpy)
        found[f"{dtype.name}.number"] = np.array(1).astype(dtype.numpy)
    found["special"] = np.array([np.nan, np.inf, -0.0, 6e-8], np.float16)
    found["short"] = np.array([np.nan, -np.inf, 1e-40, 3e38], ml_dtypes.bfloat16)
    return found


def same(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> bool:
    """Whether types, shapes and bits are equal."""
    return found.keys() == wanted.keys() and all(
        (found[name].dtype, found[name].shape, found[name].tobytes()) == (each.dtype, each.shape, each.tobytes())
        for name, each in wanted.items()
    )


def test_the_package_reads_our_files(tmp_path: Path) -> None:
    mt.save({name: mt.tensor(each) for name, each in arrays().items()}, tmp_path / "x.safetensors")
    assert same(numpy_files.load_file(tmp_path / "x.safetensors"), arrays())
    with safetensors.safe_open(tmp_path / "x.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}
        assert (file.get_slice("é \n")[1:3, :1] == arrays()["é \n"][1:3, :1]).all()


def test_its_files_are_read(tmp_path: Path) -> None:
    contiguous = {name: np.ascontiguousarray(each).reshape(each.shape) for name, each in arrays().items()}
    numpy_files.save_file(contiguous, tmp_path / "x.safetensors", {"a": "text"})
    found = {name: each.numpy() for name, each in mt.load(tmp_path / "x.safetensors").items()}
    assert same(found, arrays())
    with mt.export.Checkpoint(tmp_path / "x.safetensors") as checkpoint:
        assert checkpoint.metadata == {"a": "text"} and checkpoint.spec("special").dtype is dtypes.float16


def test_an_index_of_shards_goes_both_ways(tmp_path: Path) -> None:
    """As libraries of Hugging Face read it: each name in the file that the map says."""
    mt.save({name: mt.tensor(each) for name, each in arrays().items()}, tmp_path / "ours", max_shard_size=40)
    files = json.loads((tmp_path / "ours" / "model.safetensors.index.json").read_text())["weight_map"]
    shards = {name: numpy_files.load_file(tmp_path / "ours" / name) for name in set(files.values())}
    assert len(shards) > 3 and same({name: shards[file][name] for name, file in files.items()}, arrays())

    (tmp_path / "theirs").mkdir()
    for name, shard in shards.items():
        numpy_files.save_file(shard, tmp_path / "theirs" / name, {"format": "pt"})
    index = {"metadata": {"total_size": 1}, "weight_map": files}
    (tmp_path / "theirs" / "model.safetensors.index.json").write_text(json.dumps(index))
    assert same({name: each.numpy() for name, each in mt.load(tmp_path / "theirs").items()}, arrays())


def test_the_package_reads_what_is_tied_or_nested(tmp_path: Path) -> None:
    model = Tied()
    mt.save({"model": model, "epoch": 3}, tmp_path / "x.safetensors")
    found = numpy_files.load_file(tmp_path / "x.safetensors")
    assert same(found, {"model.embedding.weight": model.embedding.weight.detach().numpy()})


def test_tied_weights_go_both_ways_with_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch_files = pytest.importorskip("safetensors.torch")

    ours = Tied()
    theirs = torch.nn.ModuleDict({"embedding": torch.nn.Embedding(5, 3), "head": torch.nn.Linear(3, 5, False)})
    theirs["head"].weight = theirs["embedding"].weight
    torch_files.save_model(theirs, str(tmp_path / "x.safetensors"))
    assert mt.load(tmp_path / "x.safetensors", into=ours) == ([], [])
    assert (ours.head.weight.detach().numpy() == theirs["head"].weight.detach().numpy()).all()
    mt.save(Tied(), tmp_path / "y.safetensors")
    assert torch_files.load_model(theirs, str(tmp_path / "y.safetensors")) == (set(), [])
