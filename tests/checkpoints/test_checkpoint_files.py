"""The files of checkpoints: what is saved comes back, whatever its names are, and whoever saves or reads meanwhile."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import CheckpointError
from minitorch_checkpoints import publishing, safetensors
from minitorch_checkpoints.checkpoints import index
from tests.checkpoints.test_checkpoints import bits

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


# What is replaced -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="links and permissions")
@pytest.mark.parametrize("limit", [4, "5GB"])
def test_permissions_are_those_of_what_is_replaced(limit: Any, tmp_path: Path) -> None:
    for size in ("5GB", limit, 4, limit):
        mt.save({"a": mt.ones(1), "b": mt.ones(1)}, tmp_path / "folder", max_shard_size=size)
        mt.save({"a": mt.ones(1)}, tmp_path / "x.safetensors")
        files = [*(tmp_path / "folder").iterdir(), tmp_path / "x.safetensors"]
        assert size == "5GB" or {path.stat().st_mode & 0o777 for path in files} == {0o640}
        for path in files:
            path.chmod(0o640)


@pytest.mark.skipif(sys.platform == "win32", reason="links and permissions")
def test_a_path_that_is_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "latest.safetensors"
    link.symlink_to(Path("elsewhere", "blob"))
    for number in (1.0, 2.0):
        mt.save({"a": mt.full((2,), number)}, link)
        assert link.is_symlink() and os.listdir(tmp_path / "elsewhere") == ["blob"]
        assert mt.load(link)["a"].tolist() == [number] * 2


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("will", [1, 4])
@pytest.mark.parametrize("was", [1, 4])
def test_a_checkpoint_that_is_replaced_while_it_is_opened_is_read(
    was: int, will: int, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each look at the folder and each opening of a file; no two saves are mixed."""

    def saved(number: int, files: int) -> None:
        value = {name: mt.full((4,), float(number)) for name in "abcd"}
        mt.save(value, tmp_path, max_shard_size=64 // files)

    monkeypatch.setattr(os, "fsync", lambda _: None)
    for stop in range(100):
        saved(0, was)
        left = stop

        def replacing(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                left -= 1
                if left == -1:
                    for number in range(times):
                        saved(number + 1, will if number % 2 == 0 else was)
                return real(*arguments, **options)

            return call

        with monkeypatch.context() as patch:
            for name in ("found_at", "opened"):
                patch.setattr(index, name, replacing(getattr(index, name)))
            found = mt.load(tmp_path)
        numbers = {number for each in found.values() for number in each.tolist()}
        assert list(found) == list("abcd") and numbers in ({0.0}, {float(times)}), (stop, numbers)
        if left >= 0:
            break
    assert stop > was


class Full:
    """A file on a disk that is full at some time."""

    def __init__(self, file: Any, step: Callable[[], None]) -> None:
        self._file, self._step = file, step

    def write(self, data: Any) -> None:
        self._file.write(bytes(data)[: len(data) // 2])
        self._step()
        self._file.write(bytes(data)[len(data) // 2 :])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Full:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


@pytest.mark.parametrize("was", [1, 4])
@pytest.mark.parametrize("will", [1, 4])
def test_a_disk_that_is_full_at_any_step_leaves_the_old_checkpoint(
    was: int, will: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    old, new = ({name: mt.full((4,), number) for name in "abcd"} for number in (1.0, 2.0))
    for stop in range(1000):
        mt.save(old, tmp_path, max_shard_size=64 // was)
        left = stop

        def step() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def first(real: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *arguments, **options: (step(), real(*arguments, **options))[1]

        with monkeypatch.context() as patch:
            for name in ("replace", "fsync", "mkdir"):
                patch.setattr(os, name, first(getattr(os, name)))
            patch.setattr(publishing, "open", first(lambda *given: Full(open(*given), step)), raising=False)  # noqa: SIM115
            try:
                mt.save(new, tmp_path, max_shard_size=64 // will)
            except OSError as error:
                assert error.errno == errno.ENOSPC
            else:
                break
        assert bits(mt.load(tmp_path)) == bits(old), stop
        assert all(index.OURS.fullmatch(path.name) for path in tmp_path.iterdir())
    assert bits(mt.load(tmp_path)) == bits(new) and stop > 3 * will


def test_a_structure_with_tied_names_among_the_texts_is_read(tmp_path):
    """So it was written before `minitorch.tied`."""
    model = {"in": mt.ones(2), "epoch": 3}
    model["out"] = model["in"]
    mt.save(model, tmp_path / "new.safetensors")
    with mt.export.Checkpoint(tmp_path / "new.safetensors") as found:
        texts = dict(found.metadata)
    texts |= json.loads(texts.pop("minitorch.tied"))
    (tmp_path / "old.safetensors").write_bytes(safetensors.encode({"in": np.ones(2, np.float32)}, texts))
    again = mt.load(tmp_path / "old.safetensors")
    assert again["epoch"] == 3 and again["out"] is again["in"] and again["in"].tolist() == [1, 1]
