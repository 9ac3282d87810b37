"""PyTorch's own files, of `torch.save`: a ZIP archive with the tensors' bytes, and a pickle that names them.

A pickle can call anything while it is read. As ``torch.load(weights_only=True)``, `read` lets it name tensors, their
storages and ordered dicts, and nothing else: what it calls are the functions of this file.
"""

from __future__ import annotations

import collections
import io
import math
import os
import pickle
import zipfile
from collections.abc import Callable
from typing import IO, Any, ClassVar

import numpy as np

from minitorch.dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from minitorch.errors import CheckpointError
from minitorch.interpreters import concrete
from minitorch.nn.parameter import Parameter
from minitorch.tensor import Tensor, with_value
from minitorch.tree import flatten

_STORAGES: dict[str, DType] = {
    "BFloat16Storage": bfloat16, "BoolStorage": bool_, "ByteStorage": uint8, "CharStorage": int8,
    "DoubleStorage": float64, "FloatStorage": float32, "HalfStorage": float16, "IntStorage": int32,
    "LongStorage": int64, "ShortStorage": int16,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _STORAGES.items()}
_PLAIN = (bool, int, float, str, type(None), list, tuple, dict, collections.OrderedDict)


class _Named:
    """What a pickle names: a class or function of PyTorch, which need not be there, and is never called."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.module}.{self.name} is a name, and is not called")


_REBUILD = _Named("torch._utils", "_rebuild_tensor_v2")
_PARAMETER = _Named("torch._utils", "_rebuild_parameter")


class _Pickler(pickle._Pickler):  # that of Python: the one in C writes no names of modules that are not there
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, protocol=2)
        self.arrays: list[np.ndarray[Any, Any]] = []

    dispatch: ClassVar[dict[Any, Any]] = dict(pickle._Pickler.dispatch)

    def _save_named(self: Any, named: _Named) -> None:
        self.write(f"c{named.module}\n{named.name}\n".encode())
        self.memoize(named)

    dispatch[_Named] = _save_named

    def persistent_id(self, value: Any) -> Any:
        if not isinstance(value, _Stored):
            return None
        self.arrays.append(value.array)
        return ("storage", _Named("torch", value.kind), str(len(self.arrays) - 1), "cpu", value.array.size)

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            if value.dtype not in _NAMES:
                raise CheckpointError("MT806", f"PyTorch has no storage of {value.dtype.name}", fix="convert it first")
            array = np.ascontiguousarray(concrete(value, "saving a tensor"))
            strides = tuple(math.prod(value.shape[place + 1 :]) for place in range(value.ndim))
            hooks: Any = collections.OrderedDict()
            is_parameter = isinstance(value, Parameter)
            needs = value.requires_grad and value.is_leaf and not is_parameter
            plain = (
                _REBUILD,
                (_Stored(array.reshape(-1), _NAMES[value.dtype]), 0, tuple(value.shape), strides, needs, hooks),
            )
            return (_PARAMETER, (_Rebuilt(plain), value.requires_grad, hooks)) if is_parameter else plain
        if isinstance(value, _Rebuilt):
            return value.parts
        if type(value) in (*_PLAIN, _Named) or value is collections.OrderedDict:
            return NotImplemented
        raise CheckpointError(
            "MT806",
            f"{type(value).__name__} is no tensor, number or text, and not a dict, list or tuple of them",
            why="a file that can hold any object can run any code when it is read",
            fix="save its state: mt.save(model.state_dict(), path)",
        )


class _Rebuilt:
    """The tensor inside of a parameter, written as a tensor."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts


class _Stored:
    """The numbers of a tensor, written to a file of their own."""

    def __init__(self, array: np.ndarray[Any, Any], kind: str) -> None:
        self.array, self.kind = array, kind


def write(value: Any, file: Any) -> None:
    """Write tensors, numbers and texts, in dicts, lists and tuples, as `torch.save` does.

    Args:
        value: what is written.
        file: a path, or a file to write to.

    Raises:
        CheckpointError: for anything else (``MT806``).
    """
    for leaf in flatten(value)[0]:
        if isinstance(leaf, Tensor):
            concrete(leaf, "saving a tensor")  # here, where an error knows the user's line
    text = io.BytesIO()
    pickler = _Pickler(text)
    pickler.dump(value)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", text.getvalue())
        archive.writestr("archive/byteorder", "little")
        for number, array in enumerate(pickler.arrays):
            archive.writestr(
                f"archive/data/{number}", array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
            )
        archive.writestr("archive/version", "3\n")


def is_one(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is that of an archive, as `torch.save` writes them."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PK\3\4"
    except OSError:
        return False


def read(file: Any, name: str = "the file") -> Any:
    """Read what `torch.save` wrote: tensors, numbers and texts, in dicts, lists and tuples.

    Args:
        file: a path, or a file that can be read at any place.
        name: of the file, for errors.

    Raises:
        CheckpointError: for a file that is damaged, of an early form, or holds other objects (``MT804``).
    """
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            data = next((each for each in names if each.endswith("/data.pkl")), None)
            if data is None or any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
                raise _refused(name, "it is another archive, such as np.savez writes")
            if sum(each.file_size for each in archive.infolist()) > _size(archive.fp):
                raise _refused(name, "its parts overlap")
            folder = data.removesuffix("data.pkl")
            if f"{folder}byteorder" in names and archive.read(f"{folder}byteorder") != b"little":
                raise _refused(name, "its bytes are in the other order")
            with archive.open(data) as text:
                return _Unpickler(text, archive, folder, name).load()
    except CheckpointError:
        raise
    except Exception as error:  # whatever a pickle of nonsense does
        raise _refused(name, f"it is damaged ({type(error).__name__}: {error})") from None


def _refused(name: str, what: str) -> CheckpointError:
    return CheckpointError(
        "MT804",
        f"{name} cannot be read: {what}",
        why="of PyTorch's files, those with tensors, numbers and texts are read, and no code is run",
        fix="write the weights alone, in PyTorch: torch.save(model.state_dict(), path)",
    )


def _size(file: Any) -> int:
    here = file.tell()
    size: int = file.seek(0, io.SEEK_END)
    file.seek(here)
    return size


class _Unpickler(pickle._Unpickler):  # that of Python: the one in C makes room for any number of values at once
    dispatch: ClassVar[dict[Any, Any]] = dict(pickle._Unpickler.dispatch)

    def _drop_state(self: Any) -> None:
        """Forget the attributes that an ordered dict had, and refuse to set those of anything else."""
        self.stack.pop()
        if type(self.stack[-1]) is not collections.OrderedDict:
            raise ValueError("attributes of an object that has none")

    dispatch[pickle.BUILD[0]] = _drop_state

    def __init__(self, text: IO[bytes], archive: zipfile.ZipFile, folder: str, name: str) -> None:
        super().__init__(text)
        self.archive, self.folder, self.name = archive, folder, name
        self.storages: dict[str, np.ndarray[Any, Any]] = {}

    def find_class(self, module: str, name: str) -> Any:
        known: dict[tuple[str, str], Callable[..., Any]] = {
            ("collections", "OrderedDict"): collections.OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): _rebuilt,
            ("torch._utils", "_rebuild_parameter"): _parameter,
            ("torch", "Size"): _size_of,
        }
        if module == "torch" and name in _STORAGES:
            return _Named(module, name)
        if (module, name) not in known:
            raise _refused(self.name, f"it has an object {module}.{name}")
        return known[module, name]

    def persistent_load(self, pid: Any) -> Any:
        _, kind, key, _, count = pid
        dtype = _STORAGES[kind.name].numpy
        if key not in self.storages:
            content = bytearray(self.archive.read(f"{self.folder}data/{key}"))
            self.storages[key] = np.frombuffer(content, dtype.newbyteorder("<"), count).astype(dtype, copy=False)
        return self.storages[key]


def _size_of(lengths: Any) -> tuple[int, ...]:
    if type(lengths) not in (tuple, list) or any(type(each) is not int for each in lengths):
        raise ValueError("a size that is not made of ints")
    return tuple(lengths)


def _rebuilt(
    storage: Any, offset: int, size: tuple[int, ...], stride: tuple[int, ...], needs: bool, hooks: Any, *more: Any
) -> Tensor:
    """Return a tensor of a part of a storage, whose memory it shares."""
    if type(storage) is not np.ndarray or any(more):
        raise ValueError("a tensor with more than numbers, such as one whose sign is a mark")
    (offset,), size, stride = _size_of((offset,)), _size_of(size), _size_of(stride)
    if math.prod(size) > storage.size:
        raise ValueError("a tensor with more elements than its storage: save a .clone() of an expanded one")
    last = offset + sum((length - 1) * by for length, by in zip(size, stride, strict=True))
    empty = 0 in size
    if min((offset, *size, *stride)) < 0 or (not empty and last >= storage.size):
        raise ValueError("a tensor that is not inside its storage")
    part = np.lib.stride_tricks.as_strided(storage[offset:], size, [by * storage.itemsize for by in stride])
    return with_value(part, requires_grad=bool(needs))


def _parameter(data: Tensor, requires_grad: bool, *_: Any) -> Parameter:
    return Parameter(data, bool(requires_grad))
