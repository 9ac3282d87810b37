"""safetensors: what is written follows the format, what is read is checked against all of its rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minitorch import dtypes
from minitorch.errors import CheckpointError
from minitorch_checkpoints.safetensors import BITS, NAMES, decode, encode, header_of, load, save, spec_of


def file_of(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def one(**changes: Any) -> dict[str, Any]:
    return {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes}


@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_every_type_comes_back(dtype: dtypes.DType, tmp_path: Path) -> None:
    values = np.array([0, 1, 1], dtype.numpy) if dtype is dtypes.bool_ else np.array([0, 1, 100], dtype.numpy)
    arrays = {
        "a": values,
        "empty": np.zeros((2, 0), dtype.numpy),
        "scalar": values[1],
        "turned": values.reshape(1, 3).T,
    }
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    save(tmp_path / "x", arrays)
    found, metadata = load(tmp_path / "x")
    assert found.keys() == arrays.keys() and metadata == {}
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes() and found[name].flags.writeable


def test_bytes_of_a_file(tmp_path: Path) -> None:
    """As in the README of the format: length, header, elements; NaN and infinities are elements like any other."""
    save(tmp_path / "x", {"ü": np.array([1, np.nan], np.float16), "n": np.array([-2], np.int64)}, {"a": "b"})
    memory = (tmp_path / "x").read_bytes()
    length = int.from_bytes(memory[:8], "little")
    assert length % 8 == 0  # the elements are aligned
    header = json.loads(memory[8 : 8 + length])
    assert header == {
        "__metadata__": {"a": "b"},
        "n": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
        "ü": {"dtype": "F16", "shape": [2], "data_offsets": [8, 12]},
    }
    assert memory[8 + length :] == np.array([-2], "<i8").tobytes() + np.array([1, np.nan], "<f2").tobytes()
    arrays, metadata = load(tmp_path / "x")
    assert metadata == {"a": "b"} and np.isnan(arrays["ü"][1])


def test_a_header_may_end_in_spaces_and_be_in_any_order(tmp_path: Path) -> None:
    rows = {
        "b": {"dtype": "U8", "shape": [2], "data_offsets": [4, 6]},
        "a": {"dtype": "I32", "shape": [], "data_offsets": [0, 4]},
    }
    (tmp_path / "x").write_bytes(file_of(json.dumps(rows).encode() + b"   ", b"\1\0\0\0\2\3"))
    arrays, _ = load(tmp_path / "x")
    assert arrays["a"] == 1 and arrays["b"].tolist() == [2, 3]


EIGHT = bytes(8)
BAD = {
    "too short": (b"1234567", "takes 8"),
    "header longer than the file": (file_of(one(), EIGHT, length=1000), "header is said"),
    "header of 100 MB and more": (file_of(one(), EIGHT, length=2**63), "header is said"),
    "no brace": (file_of(b" {}"), "begin with"),
    "no json": (file_of(b"{x}"), "not JSON"),
    "a number of ten thousand digits": (file_of(b'{"x": ' + b"1" * 10_000 + b"}"), "not JSON"),
    "half a surrogate pair in a name": (file_of(rb'{"\ud800": 1}'), "not JSON"),
    "more fields than memory": (file_of(b'{"x": [' + b"0," * 4_000_000 + b"0]}"), "fields"),
    "too many dimensions": (file_of(one(shape=[1] * 33 + [2]), bytes(8)), "at most"),
    "an empty array of all numbers": (file_of(one(shape=[0, 2**62, 2], data_offsets=[0, 0])), "no array has"),
    "no utf-8": (file_of(b'{"\xff": 1}'), "not JSON"),
    "deep": (file_of(b"{" + b'"a":{' * 100_000), "not JSON"),
    "more than json": (file_of(b"{} {}"), "not JSON"),
    "a name twice": (file_of(b'{"__metadata__": {"a": "b", "a": "c"}}'), "twice"),
    "metadata of numbers": (file_of({"__metadata__": {"a": 1}}), "__metadata__"),
    "metadata of none": (file_of({"__metadata__": None}), "__metadata__"),
    "row is a list": (file_of({"x": [1]}), "not described"),
    "row with more": (file_of(one(extra=1), EIGHT), "not described"),
    "unknown type": (file_of(one(dtype="F7"), EIGHT), "of type 'F7'"),
    "a type of tensors elsewhere": (file_of(one(dtype="F8_E4M3", data_offsets=[0, 2]), b"12"), "F8_E4M3, which mini"),
    "half a byte": (file_of(one(dtype="F4", shape=[3], data_offsets=[0, 1]), b"1"), "does not take"),
    "type is no text": (file_of(one(dtype=[1]), EIGHT), "of type"),
    "negative length": (file_of(one(shape=[-1, -2]), EIGHT), "from 0 up"),
    "length is a bool": (file_of(one(shape=[True, 2]), EIGHT), "from 0 up"),
    "length is a fraction": (file_of(one(shape=[2.0]), EIGHT), "from 0 up"),
    "one offset": (file_of(one(data_offsets=[0]), EIGHT), "from 0 up"),
    "bytes do not fit the shape": (file_of(one(shape=[3]), EIGHT), "does not take"),
    "product is more than 64 bits": (file_of(one(shape=[2**62, 2**62, 2]), EIGHT), "does not take"),
    "end before begin": (file_of(one(data_offsets=[8, 0]), EIGHT), "does not take"),
    "beyond the end": (file_of(one(), bytes(7)), "end at 8"),
    "bytes left over": (file_of(one(), bytes(9)), "belong to no tensor"),
    "a hole": (file_of(one(data_offsets=[4, 12]), bytes(12)), "begin at 4"),
    "overlap": (file_of(one() | {"y": one()["x"]}, EIGHT), "begin at 0"),
    "bool of 2": (file_of(one(dtype="BOOL", data_offsets=[0, 2]), b"\1\2"), "neither 0 nor 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused(name: str, tmp_path: Path) -> None:
    memory, words = BAD[name]
    (tmp_path / "x").write_bytes(memory)
    with pytest.raises(CheckpointError, match=words):
        load(tmp_path / "x")


# From the tests of the reference implementation (huggingface/safetensors, safetensors/src/tensor.rs).
REFERENCE: list[tuple[dict[str, Any], dict[str, str] | None, bytes]] = [
    (
        {"attn.0": np.arange(6, dtype=np.float32).reshape(1, 2, 3)},
        None,
        bytes([64, *[0] * 7])
        + b'{"attn.0":{"dtype":"F32","shape":[1,2,3],"data_offsets":[0,24]}}'
        + np.arange(6, dtype="<f4").tobytes(),
    ),
    ({}, None, bytes([8, *[0] * 7]) + b"{}      "),
    ({}, {"framework": "pt"}, bytes([40, *[0] * 7]) + b'{"__metadata__":{"framework":"pt"}}     '),
    (
        {"attn0": np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)},
        None,
        bytes([72, *[0] * 7])
        + b'{"attn0":{"dtype":"F32","shape":[1,1,2,3],"data_offsets":[0,24]}}       '
        + np.arange(6, dtype="<f4").tobytes(),
    ),
]


@pytest.mark.parametrize(("arrays", "metadata", "content"), REFERENCE)
def test_the_bytes_are_those_of_the_reference_implementation(
    arrays: dict[str, Any], metadata: dict[str, str] | None, content: bytes
) -> None:
    assert encode(arrays, metadata) == content
    found, texts = decode(content, "x")
    assert texts == (metadata or {})
    assert {name: array.tolist() for name, array in found.items()} == {name: arrays[name].tolist() for name in arrays}


def test_tensors_lie_in_the_order_of_the_reference_implementation() -> None:
    """By the types' order there (`Dtype` in tensor.rs), the largest first, then by name."""
    order = ["I64", "F64", "F32", "U32", "I32", "BF16", "F16", "I16", "I8", "U8", "BOOL"]
    arrays = {f"{letter}{kind}": np.zeros(1, dtype.numpy) for dtype, kind in NAMES.items() for letter in "ba"}
    header, places = header_of({name: spec_of(name, array) for name, array in arrays.items()})
    assert places == [f"{letter}{kind}" for kind in order for letter in "ab"]
    assert list(json.loads(header[8:])) == list(arrays) == list(decode(encode(arrays), "x")[0])
    assert set(order) < set(BITS)


def test_what_cannot_be_written() -> None:
    with pytest.raises(CheckpointError, match="name"):
        save("unused", {"__metadata__": np.zeros(1, np.float32)})
    with pytest.raises(CheckpointError, match="complex"):
        save("unused", {"x": np.zeros(1, np.complex64)})
    for shape in [(1,) * 33, (0, 2**60)]:
        with pytest.raises(CheckpointError, match="at most 32 dimensions"):
            save("unused", {"x": np.zeros(shape, np.int8)})
    with pytest.raises(CheckpointError, match="no Unicode"):
        save("unused", {"\ud800": np.zeros(1, np.float32)})
    assert not Path("unused").exists()
