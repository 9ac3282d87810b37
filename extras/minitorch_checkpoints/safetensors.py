"""The safetensors format: named arrays, and nothing that could be executed.

A file is 8 bytes, the length of the header as a little-endian number; the header, a JSON object; then the elements of
all tensors, packed in C order, little-endian. For each tensor the header has its type, its shape, and where its bytes
begin and end; under ``__metadata__`` it may have texts. See https://github.com/huggingface/safetensors.

Reading trusts nothing: every number is checked before it is used, and the bytes of the tensors must cover the rest of
the file, without holes and without overlap, so a file can neither hide anything nor need more memory than it has bytes.
The header is read alone (`read_header`), and says where the elements of each tensor are.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

import numpy as np

from minitorch import dtypes
from minitorch.dtypes import BY_NUMPY, DType
from minitorch.errors import CheckpointError
from minitorch.ir import Shape, Spec

from . import opening

Array = np.ndarray[Any, Any]
Path = str | os.PathLike[str]

MOST_HEADER = 100_000_000  # bytes, as in the reference implementation; raising it accepts larger headers
MOST_FIELDS = 4_000_000
"""Commas, brackets and braces in a header, of which a tensor has about ten. Python takes about a hundred bytes for what
each announces, so that a header takes 400 MB at most. Raising it accepts more tensors."""

MOST_DIMS = 32  # dimensions of a tensor: NumPy has no more in some versions
ALIGNMENT = 8  # bytes; the elements begin at a multiple of it

# The format's name of each element type, in the order in which the reference implementation stores tensors, reversed.
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
    dtypes.float64: "F64",
    dtypes.int64: "I64",
}
TYPES = {name: dtype for dtype, name in NAMES.items()}
_PLACES = {name: place for place, name in enumerate(TYPES)}

# Bits of an element, of the types that the format has and tensors have not, too: their places in a file are known.
BITS = {name: 8 * dtype.itemsize for name, dtype in TYPES.items()} | {
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "U16": 16, "U64": 64, "C64": 64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """What a header says of one tensor.

    Attributes:
        kind: the format's name of its type.
        shape: its shape.
        begin, end: its bytes, counted from those of the first tensor.
    """

    kind: str
    shape: Shape
    begin: int
    end: int

    @property
    def spec(self) -> Spec | None:
        """Shape and type; None if tensors do not have the type."""
        return Spec(self.shape, TYPES[self.kind]) if self.kind in TYPES else None


@dataclass(frozen=True)
class Header:
    """A header, checked.

    Attributes:
        entries: of the tensors, by name, in the order of the header.
        metadata: its texts.
        start: where in the file the elements begin.
    """

    entries: Mapping[str, Entry]
    metadata: Mapping[str, str]
    start: int


# Writing ------------------------------------------------------------------------------------------------------------


def save(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays to a file; those with the largest elements lie first, so that all lie aligned.

    Raises:
        CheckpointError: for a name or a type that the format does not have (``MT806``).

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
        CheckpointError: for a name or a type that the format does not have (``MT806``).
    """
    text, names = header_of({name: spec_of(name, array) for name, array in arrays.items()}, metadata)
    return b"".join([text, *(elements(arrays[name]) for name in names)])


def header_of(specs: Mapping[str, Spec], metadata: Mapping[str, str] | None = None) -> tuple[bytes, list[str]]:
    """The beginning of a file, up to the elements, and the order in which those of the tensors follow.

    The header has the tensors in the order in which they are given.

    Raises:
        CheckpointError: for a name that the format does not have, and for too many of them (``MT806``).
    """
    places: dict[str, list[int]] = {}
    names = sorted(specs, key=lambda name: (-_PLACES[NAMES[specs[name].dtype]], name))
    begin = 0
    for name in names:
        places[name] = [begin, begin + specs[name].nbytes]
        begin = places[name][1]
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    for name, spec in specs.items():
        if name == "__metadata__":
            raise CheckpointError("MT806", f"{name!r} cannot be the name of a tensor", fix="give it another name")
        header[name] = {"dtype": NAMES[spec.dtype], "shape": list(spec.shape), "data_offsets": places[name]}
    try:
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise CheckpointError(
            "MT806", f"a name or a text of the metadata is no Unicode: {error.object!r:.60}"
        ) from error
    text += b" " * (-len(text) % ALIGNMENT)
    if len(text) > MOST_HEADER or _fields(text) > MOST_FIELDS:
        raise CheckpointError(
            "MT806",
            f"a header of {len(text)} bytes and {_fields(text)} fields is more than a file may have, {MOST_HEADER} and "
            f"{MOST_FIELDS}",
            fix="save it in parts",
        )
    return len(text).to_bytes(8, "little") + text, names


def spec_of(name: str, array: Array) -> Spec:
    """Shape and type of an array.

    Raises:
        CheckpointError: for a type or a shape that no tensor has (``MT806``).
    """
    dtype = BY_NUMPY.get(array.dtype)
    if dtype is None:
        raise CheckpointError(
            "MT806",
            f"{name!r} has elements of type {array.dtype}, which no tensor has",
            fix=f"convert it to one of {', '.join(map(str, NAMES))}",
        )
    if not _is_shape(array.shape):
        raise CheckpointError(
            "MT806",
            f"{name!r} has the shape {list(array.shape)}, and a file has at most {MOST_DIMS} dimensions, of less than "
            "2^60 elements",
            fix="reshape it",
        )
    return Spec(array.shape, dtype)


def elements(array: Array) -> memoryview:
    """The bytes of an array as a file has them: a view of the array, if that is in C order."""
    return _little_endian(np.ascontiguousarray(array)).reshape(-1).view(np.uint8).data


# Reading ------------------------------------------------------------------------------------------------------------


def load(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Read a file: the arrays by name, in the order of its header, and the texts of its metadata.

    Raises:
        CheckpointError: naming the rule that the file breaks (``MT804``).
    """
    with opening.regular(path) as file:
        return decode(file.read(), path)


def decode(content: bytes, path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays and the texts of a file's contents; the path is for messages.

    Raises:
        CheckpointError: naming the rule that the file breaks (``MT804``).
    """
    header = read_header(io.BytesIO(content), len(content), path)
    memory = memoryview(content)[header.start :]
    arrays = {}
    for name, entry in header.entries.items():
        array = np.empty(entry.shape, of_ours(entry, name, path).dtype.numpy)
        array.reshape(-1).view(np.uint8).data[:] = memory[entry.begin : entry.end]
        arrays[name] = as_read(array, name, path)
    return arrays, dict(header.metadata)


def read_header(file: BinaryIO, size: int, path: Path) -> Header:
    """The header of a file, whose rules are checked: that its tensors lie in the file one after the other, too.

    Args:
        file: at its beginning.
        size: of the whole file, in bytes.
        path: for messages.

    Raises:
        CheckpointError: naming the rule that the file breaks (``MT804``).
    """
    if size < 8:
        refuse(path, f"it has {size} bytes, and the length of the header alone takes 8")
    length = int.from_bytes(file.read(8), "little")
    if length > MOST_HEADER or length > size - 8:
        refuse(path, f"its header is said to have {length} bytes: the file has {size}, a header {MOST_HEADER}")
    found = parsed(file.read(length), path)
    metadata = _metadata(path, found.pop("__metadata__", {}))
    entries = {name: _entry(path, name, row) for name, row in found.items()}
    room = size - 8 - length
    place = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != place:
            refuse(path, f"the bytes of {name!r} begin at {entry.begin}, and not at {place}, where those before end")
        if entry.end > room:
            refuse(path, f"the bytes of {name!r} end at {entry.end}, and the file has {room}")
        place = entry.end
    if place != room:
        refuse(path, f"it has {room - place} bytes at its end that belong to no tensor")
    return Header(entries, metadata, 8 + length)


def of_ours(entry: Entry, name: str, path: Path) -> Spec:
    """Shape and type of a tensor.

    Raises:
        CheckpointError: if it is of a type that the format has, and tensors have not (``MT804``).
    """
    spec = entry.spec
    if spec is None:
        raise CheckpointError(
            "MT804",
            f"{os.fspath(path)} has {name!r} with elements of type {entry.kind}, which minitorch has not",
            why=f"tensors have the types {', '.join(TYPES)}",
            fix="convert it where it was made; mt.export.Checkpoint(path)[name] reads the others",
        )
    return spec


def as_read(array: Array, name: str, path: Path) -> Array:
    """An array into whose memory the bytes of a file were read, in place; checked.

    Raises:
        CheckpointError: for bools that are neither 0 nor 1 (``MT804``).
    """
    if array.dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
        refuse(path, f"{name!r} has bools that are neither 0 nor 1")
    return array if np.little_endian else array.byteswap(inplace=True)


def parsed(text: bytes, path: Path) -> dict[str, Any]:
    """A JSON object of a file from elsewhere, in which no name is given twice.

    Raises:
        CheckpointError: if it is none, or too large (``MT804``).
    """
    if not text.startswith(b"{"):
        refuse(path, "its header does not begin with '{'")
    if _fields(text) > MOST_FIELDS:
        refuse(path, f"its header has {_fields(text)} fields, and {MOST_FIELDS} are the most")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            refuse(path, "a name is there twice in its header")
        return dict(pairs)

    try:
        found = json.loads(text.decode(), object_pairs_hook=unique)
        "".join(found).encode()  # names with halves of surrogate pairs could not even be shown
    except CheckpointError:
        raise
    except (ValueError, RecursionError) as error:
        refuse(path, f"its header is not JSON: {error!s:.200}")
    assert isinstance(found, dict)  # it begins with a brace
    return found


def refuse(path: Path, why: str) -> NoReturn:
    """Raise the error for a file that breaks a rule (``MT804``)."""
    raise CheckpointError(
        "MT804",
        f"{os.fspath(path)} is not a good safetensors file: {why}",
        fix="save it again, or copy it again: it may have been cut off",
    )


def _fields(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _metadata(path: Path, found: Any) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        refuse(path, "its __metadata__ is not an object of strings")
    return found


def _entry(path: Path, name: str, row: Any) -> Entry:
    """Type, shape, begin and end of one tensor, checked."""
    if not isinstance(row, dict) or set(row) != {"dtype", "shape", "data_offsets"}:
        refuse(path, f"{name!r} is not described by dtype, shape and data_offsets")
    kind, shape, offsets = row["dtype"], row["shape"], row["data_offsets"]
    if not isinstance(kind, str) or kind not in BITS:
        refuse(path, f"{name!r} is of type {kind!r:.60}; there are {', '.join(BITS)}")
    if not _are_lengths(shape) or not _are_lengths(offsets) or len(offsets) != 2 or len(shape) > MOST_DIMS:
        refuse(
            path,
            f"{name!r} has shape {shape!r:.60} and data_offsets {offsets!r:.60}: numbers from 0 up are wanted, of "
            f"{MOST_DIMS} dimensions at most",
        )
    begin, end = offsets
    if (end - begin) * 8 != math.prod(shape) * BITS[kind]:
        refuse(path, f"{name!r} of type {kind} and shape {shape} does not take the bytes {begin} to {end}")
    if not _is_shape(shape):
        refuse(path, f"{name!r} has the shape {shape}, which no array has")
    return Entry(kind, tuple(shape), begin, end)


def _is_shape(shape: Sequence[int]) -> bool:
    """Whether an array can have it: NumPy refuses large ones, also where there are no elements."""
    return len(shape) <= MOST_DIMS and math.prod(length or 1 for length in shape) < 2**60


def _are_lengths(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int and 0 <= each < 2**63 for each in value)


def _little_endian(array: Array) -> Array:
    """The array in the file's byte order, whatever the machine's is."""
    return array if np.little_endian else array.byteswap()
