"""Files of `torch.save`: written for PyTorch, read without running code, refused where they hold other objects."""

import collections
import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import CheckpointError

RECORDED = Path(__file__).parents[1] / "recorded" / "saved.pt"  # written by PyTorch: see `test_torch_files.py`


def same(one: Any, other: Any) -> bool:
    if isinstance(one, mt.Tensor):
        return type(one) is type(other) and one.spec == other.spec and bool(mt.equal(one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and all(map(same, one, other))
    return bool(one == other)


def training() -> Any:
    model = mt.nn.Sequential(mt.nn.Linear(3, 2), mt.nn.BatchNorm1d(2))
    optimizer = mt.optim.Adam(model.parameters())
    model(mt.randn(4, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_what_is_written_is_read() -> None:
    model, optimizer = training()
    kinds = [mt.ones(2, 3).to(kind) for kind in (mt.bool, mt.uint8, mt.int8, mt.int16, mt.int32, mt.int64)]
    kinds += [mt.rand(2, 3).to(kind) for kind in (mt.float16, mt.bfloat16, mt.float32, mt.float64)]
    value = {
        "model": model.state_dict(), "optimizer": optimizer.state_dict(), "kinds": kinds, "epoch": 3, "loss": 0.5,
        "none": None, "texts": ("a", "b"), "weight": model[0].weight, "empty": mt.zeros(0, 3), "number": mt.tensor(3),
        "part": mt.arange(12).reshape(3, 4).t()[1:],
    }  # fmt: skip
    file = io.BytesIO()
    mt.save(value, file)
    file.seek(0)
    assert same(mt.load(file), value)


@pytest.mark.parametrize("file", [io.BytesIO, lambda: "model.pt", lambda: "model.safetensors"])
def test_values_are_computed_before_they_are_written(
    file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pending ones are; values of a recording that runs later are refused, with the line."""
    monkeypatch.chdir(tmp_path)
    with mt.lazy():
        value = {"zeros": mt.zeros(4), "sum": mt.ones(2, 3) + 1, "part": (mt.arange(6) * 2).reshape(2, 3).t()[1:]}
        place = file()
        mt.save(value, place)
        if isinstance(place, io.BytesIO):
            place.seek(0)
        assert same(dict(mt.load(place)), value)
    with pytest.raises(mt.errors.TracedValueError, match=r"MT102.*\n.*test_pytorch_files.py"):
        mt.jit(lambda x: mt.save({"x": x + 1}, file()))(mt.ones(2))


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    model, _ = training()
    mt.save(model.state_dict(), path)
    other, _ = training()
    assert mt.load(path, other, map_location="cpu").missing_keys == []
    assert same(dict(other.state_dict()), dict(model.state_dict()))
    with pytest.raises(CheckpointError, match=r"(?s)MT806.*state_dict"):
        mt.save({"model": model}, path)
    assert list(mt.load(path, "cpu", weights_only=True)) == list(model.state_dict())
    assert os.listdir(tmp_path) == ["model.pt"]


def test_pytorchs_own_file_is_read() -> None:
    found = mt.load(RECORDED)
    assert found["part"].tolist() == [[1, 5, 9], [2, 6, 10], [3, 7, 11]] and found["half"].dtype is mt.float16
    assert isinstance(found["parameter"], mt.nn.Parameter) and found["leaf"].requires_grad and found["size"] == (2, 3)
    assert type(found["state"]) is collections.OrderedDict and found["plain"] == [1, 2.5, None, "x", True]
    found["tied"][0][0] = 7.0
    assert found["tied"][1].tolist() == [7.0, 1.0]  # one storage, as in PyTorch


class Call:
    """An object whose pickle calls a function."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.parts = function, args

    def __reduce__(self) -> Any:
        return self.parts


def archive(pickled: bytes, files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as found:
        for name, content in {"data.pkl": pickled, **files}.items():
            found.writestr(f"archive/{name}", content)
    file.seek(0)
    return file


def test_no_code_runs_while_a_file_is_read(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for call in (Call(os.mkdir, str(mark)), Call(eval, f"open({str(mark)!r}, 'w')"), Call(pickle.loads, b"N.")):
        with pytest.raises(CheckpointError, match="MT804"):
            mt.load(archive(pickle.dumps({"a": call}, protocol=2), {}))
    assert not mark.exists()


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    whole = RECORDED.read_bytes()
    for name, content in {
        "cut": whole[: len(whole) // 2],
        "numbers": b"PK\3\4" + bytes(100),
        "empty": archive(b"", {}).getvalue(),
        "packed": archive(pickle.dumps(1), {}, zipfile.ZIP_DEFLATED).getvalue(),
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CheckpointError, match="MT804"):
            mt.load(tmp_path / name)
    np.savez(tmp_path / "arrays.npz", a=np.ones(2))
    with pytest.raises(CheckpointError, match=r"MT804.*another archive"):
        mt.load(tmp_path / "arrays.npz")


@pytest.mark.parametrize(
    "part", [(0, (9,), (1,)), (-1, (2,), (1,)), (0, (2,), (-1,)), (0, (2, 2), (3, 3)), (0, (99,), (0,))]
)
def test_tensors_outside_of_their_storage_are_refused(part: Any) -> None:
    offset, size, stride = part
    file = io.BytesIO()
    mt.save({"x": mt.ones(4)}, file)
    with zipfile.ZipFile(file) as found:
        content = {name.removeprefix("archive/"): found.read(name) for name in found.namelist()}
    data = content.pop("data.pkl")
    whole = b"K\x00K\x04\x85q\x08K\x01\x85"  # offset 0, size (4,), stride (1,)
    assert data.count(whole) == 1
    changed = data.replace(whole, _number(offset) + _tuple(size) + _tuple(stride))
    with pytest.raises(CheckpointError, match=r"MT804.*storage"):
        mt.load(archive(changed, content))


def _number(value: int) -> bytes:
    return b"J" + value.to_bytes(4, "little", signed=True)


def _tuple(values: tuple[int, ...]) -> bytes:
    return b"(" + b"".join(map(_number, values)) + b"t"


def test_no_memory_is_taken_for_what_is_not_there() -> None:
    with pytest.raises(CheckpointError, match="MT804"):
        mt.load(archive(b"\x80\x02}r\xff\xff\xff\x7fX\x01\0\0\0asNb.", {}))  # memo number 2**31 - 1, attributes of None
    lengths = b"ctorch\nSize\n(X\x01\0\0\0atR"
    with pytest.raises(CheckpointError, match=r"MT804.*not made of ints"):
        mt.load(archive(b"\x80\x02" + lengths + b".", {}))
