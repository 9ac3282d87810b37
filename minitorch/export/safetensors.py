"""The safetensors format: named arrays, and nothing that could be executed.

A file is 8 bytes, the length of the header as a little-endian number; the header, a JSON object; then the elements of
all tensors, packed in C order, little-endian. For each tensor the header has its type, its shape, and where its bytes
begin and end; under ``__metadata__`` it may have texts. See https://github.com/huggingface/safetensors.

Reading trusts nothing: every number is checked before it is used, and the bytes of the tensors must cover the rest of
the file, without holes and without overlap, so a file can neither hide anything nor need more memory than it has bytes.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from .. import dtypes
from ..dtypes import BY_NUMPY, DType

Array = np.ndarray[Any, Any]

MOST_HEADER = 100_000_000  # bytes, as in the reference implementation; raising it accepts larger headers
ALIGNMENT = 8  # bytes; the elements begin at a multiple of it

# The format's name of each element type; the format has more.
NAMES: dict[DType, str] = {
    dtypes.bool_: "BOOL",
    dtypes.uint8: "U8",
    dtypes.int8: "I8",
    dtypes.int16: "I16",
    dtypes.float16: "F16",
    dtypes.bfloat16: "BF16",
    dtypes.int32: "I32",
    dtypes.uint32: "U32",
    dtypes.float32: "F32",
    dtypes.int64: "I64",
    dtypes.float64: "F64",
}
TYPES = {name: dtype for dtype, name in NAMES.items()}


class SafetensorsError(ValueError):
    """A file breaks a rule of the format."""


def save(path: str | os.PathLike[str], arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays to a file; those with the largest elements come first, so that all lie aligned.

    Raises:
        SafetensorsError: for a name or a type that the format does not have.

    Example:
        >>> import os, tempfile, numpy as np
        >>> path = os.path.join(tempfile.mkdtemp(), "x.safetensors")
        >>> save(path, {"x": np.arange(3, dtype=np.float32)}, {"made by": "an example"})
        >>> load(path)
        ({'x': array([0., 1., 2.], dtype=float32)}, {'made by': 'an example'})
    """
    content = encode(arrays, metadata)  # or no file is made
    with open(path, "wb") as file:
        file.write(content)


def encode(arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> bytes:
    """The contents of such a file.

    Raises:
        SafetensorsError: for a name or a type that the format does not have.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    parts: list[bytes] = []
    begin = 0
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        if name == "__metadata__":
            raise SafetensorsError(f"{name!r} cannot be the name of a tensor")
        dtype = BY_NUMPY.get(array.dtype)
        if dtype is None:
            raise SafetensorsError(f"{name!r} has elements of type {array.dtype}, which no tensor has")
        parts.append(_little_endian(np.ascontiguousarray(array)).tobytes())
        end = begin + len(parts[-1])
        header[name] = {"dtype": NAMES[dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    if len(text) > MOST_HEADER:
        raise SafetensorsError(f"a header of {len(text)} bytes is more than the {MOST_HEADER} that a file may have")
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, str]]:
    """Read a file: the arrays by name, in the order in which they lie, and the texts of its metadata.

    Raises:
        SafetensorsError: naming the rule that the file breaks.
    """
    with open(path, "rb") as file:
        return decode(file.read(), path)


def decode(content: bytes, path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays and the texts of a file's contents; the path is for messages.

    Raises:
        SafetensorsError: naming the rule that the file breaks.
    """
    size = len(content)
    if size < 8:
        _refuse(path, f"it has {size} bytes, and the length of the header alone takes 8")
    length = int.from_bytes(content[:8], "little")
    if length > MOST_HEADER or length > size - 8:
        _refuse(path, f"its header is said to have {length} bytes: the file has {size}, a header {MOST_HEADER}")
    header = _header(path, content[8 : 8 + length])
    metadata = _metadata(path, header.pop("__metadata__", {}))
    memory = memoryview(content)[8 + length :]
    arrays = {}
    place = 0
    rows = sorted(((_row(path, name, row), name) for name, row in header.items()), key=lambda item: item[0][2:])
    for (dtype, shape, first, end), name in rows:
        if first != place:
            _refuse(path, f"the bytes of {name!r} begin at {first}, and not at {place}, where those before end")
        if end > len(memory):
            _refuse(path, f"the bytes of {name!r} end at {end}, and the file has {len(memory)}")
        found = np.frombuffer(memory, dtype.numpy, math.prod(shape), first) if end > first else np.empty(0, dtype.numpy)
        if dtype is dtypes.bool_ and found.view(np.uint8).max(initial=0) > 1:
            _refuse(path, f"{name!r} has bools that are neither 0 nor 1")
        arrays[name] = _little_endian(found).reshape(shape).copy()
        place = end
    if place != len(memory):
        _refuse(path, f"it has {len(memory) - place} bytes at its end that belong to no tensor")
    return arrays, metadata


def _header(path: str | os.PathLike[str], text: bytes) -> dict[str, Any]:
    if not text.startswith(b"{"):
        _refuse(path, "its header does not begin with '{'")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            _refuse(path, "a name is there twice in its header")
        return dict(pairs)

    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        _refuse(path, f"its header is not JSON: {error}")
    assert isinstance(found, dict)  # it begins with a brace
    return found


def _metadata(path: str | os.PathLike[str], found: Any) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        _refuse(path, "its __metadata__ is not an object of strings")
    return found


def _row(path: str | os.PathLike[str], name: str, row: Any) -> tuple[DType, tuple[int, ...], int, int]:
    """Type, shape, begin and end of one tensor, checked."""
    if not isinstance(row, dict) or set(row) != {"dtype", "shape", "data_offsets"}:
        _refuse(path, f"{name!r} is not described by dtype, shape and data_offsets")
    dtype = TYPES.get(row["dtype"]) if isinstance(row["dtype"], str) else None
    if dtype is None:
        _refuse(path, f"{name!r} is of type {row['dtype']!r}; there are {', '.join(TYPES)}")
    shape, offsets = row["shape"], row["data_offsets"]
    if not _are_lengths(shape) or not _are_lengths(offsets) or len(offsets) != 2:
        _refuse(path, f"{name!r} has shape {shape!r} and data_offsets {offsets!r}: numbers from 0 up are wanted")
    begin, end = offsets
    if end - begin != math.prod(shape) * dtype.itemsize:
        _refuse(path, f"{name!r} of type {row['dtype']} and shape {shape} does not take the bytes {begin} to {end}")
    return dtype, tuple(shape), begin, end


def _are_lengths(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int and 0 <= each < 2**63 for each in value)


def _little_endian(array: Array) -> Array:
    """The array in the file's byte order, whatever the machine's is; and the inverse."""
    return array if np.little_endian else array.byteswap()


def _refuse(path: str | os.PathLike[str], why: str) -> NoReturn:
    raise SafetensorsError(f"{os.fspath(path)} is not a good safetensors file: {why}")
