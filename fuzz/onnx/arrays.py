"""Mutations of arrays: lying shapes and types, other numbers, and data that lies in files that it must not lie in."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from .parts import FLOATS, INTS, edit, names, one, tensors

PATHS = [
    "../secret", "a/../../secret", "/etc/passwd", "link", "up/secret", "./weights.bin", "", ".", "weights.bin/x", "~",
    "weights.bin", "model.onnx", "pipe", "/dev/zero", "C:\\secret", "x" * 5000, "\0", "a\nb", "//etc/passwd", "sub",
]  # fmt: skip
BYTES = [
    "0",
    "1",
    "4",
    "16",
    "-1",
    "32",
    "33",
    str(2**31),
    str(2**62),
    str(2**64),
    "9" * 30,
    "1e3",
    "0x10",
    " 1",
    "",
    "٣",
]


def _dims(model: Any, chance: random.Random) -> None:
    if tensor := one(chance, tensors(model)):
        edit(chance, tensor.dims, chance.choice(INTS))


def _data_type(model: Any, chance: random.Random) -> None:
    if tensor := one(chance, tensors(model)):
        tensor.data_type = chance.choice([*range(28), -1, 2**31 - 1])


def _raw(model: Any, chance: random.Random) -> None:
    if (tensor := one(chance, tensors(model))) is not None:
        data = tensor.raw_data
        tensor.raw_data = chance.choice(
            [b"", data[:-1], data + b"\0", data * 2, chance.randbytes(len(data)), b"\2" * 8]
        )


def _elements(model: Any, chance: random.Random) -> None:
    """Other numbers, in an array that is in order: those that other operators take for shapes, axes, scales."""
    known = [each for each in tensors(model) if each.data_type in (1, 3, 6, 7, 9, 11) and len(each.dims) < 4]
    if (tensor := one(chance, known)) is None or tensor.data_location:
        return
    try:
        array = numpy_helper.to_array(tensor).copy()
    except (ValueError, TypeError, OverflowError, MemoryError):
        return  # it is no longer in order
    if not array.size:
        return
    if array.dtype.kind == "f":
        array.reshape(-1)[chance.randrange(array.size)] = chance.choice(FLOATS)
    else:
        bounds = (0, 1) if array.dtype.kind == "b" else (np.iinfo(array.dtype).min, np.iinfo(array.dtype).max)
        array.reshape(-1)[chance.randrange(array.size)] = min(max(chance.choice(INTS), bounds[0]), bounds[1])
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _field(model: Any, chance: random.Random) -> None:
    """Elements in a list, of the field of the type or of another one."""
    if (tensor := one(chance, tensors(model))) is not None:
        if chance.random() < 0.7:
            tensor.ClearField("raw_data")
        count = math.prod(tensor.dims) if 0 <= math.prod(tensor.dims) < 100 else 3
        name = chance.choice(["float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data"])
        value: Any = chance.choice([0, 1, 2, 300])
        getattr(tensor, name).extend([b"x" if name == "string_data" else value] * max(count, 0))


def _external(model: Any, chance: random.Random) -> None:
    """An array in a file: one that is there, one that is not, and one that is none of the model's business."""
    known = [each for each in tensors(model) if each.data_location == TensorProto.EXTERNAL]
    tensor = one(chance, known if known and chance.random() < 0.8 else tensors(model))
    if tensor is None:
        return
    if tensor.data_location != TensorProto.EXTERNAL or chance.random() < 0.3:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=chance.choice(PATHS))
    entry = chance.choice(tensor.external_data)
    if chance.random() < 0.2:
        entry.key = chance.choice(["location", "offset", "length", "checksum", ""])
    entry.value = chance.choice(PATHS if entry.key == "location" else BYTES)
    if chance.random() < 0.3:
        tensor.external_data.add(key=chance.choice(["offset", "length"]), value=chance.choice(BYTES))


def _odd(model: Any, chance: random.Random) -> None:
    """Parts of the format that are seldom used."""
    tensor = one(chance, tensors(model))
    kind = chance.randrange(4)
    if kind == 0 and tensor is not None:
        tensor.segment.begin, tensor.segment.end = 0, chance.choice(INTS)
    elif kind == 1:
        values_ = numpy_helper.from_array(np.ones(2, np.float32), chance.choice(names(model)))
        indices = numpy_helper.from_array(np.array([0, chance.choice(INTS)]), "i")
        model.graph.sparse_initializer.add(values=values_, indices=indices, dims=[chance.choice(INTS)])
    elif kind == 2:
        name = chance.choice(["minitorch.parameters", "minitorch.buffers", ""])
        model.metadata_props.add(key=name, value="\n".join(chance.sample(names(model), 2)))
    else:
        model.graph.initializer.add(name=chance.choice(names(model)), data_type=8, dims=[1], string_data=[b"text"])


CHANGES = [_dims, _data_type, _raw, _elements, _elements, _elements, _field, _external, _external, _odd]
