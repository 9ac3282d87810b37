"""`TensorProto` to NumPy: every length is compared with the bytes that are there before an array is made.

The elements are in `raw_data` (little-endian), in a list of the field that belongs to the type, or in a file.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minitorch import dtypes
from minitorch.dtypes import DType

from ...common import TYPES
from . import external
from .limits import MOST_DIMS, refuse

Array = np.ndarray[Any, Any]

EXTERNAL = 1  # of `TensorProto.DataLocation`

# The field that has the elements of a type, unless they are in `raw_data`; 16-bit floats are there as their bits.
_FIELDS: dict[DType, str] = {
    dtypes.float32: "float_data",
    dtypes.float64: "double_data",
    dtypes.int64: "int64_data",
    dtypes.uint32: "uint64_data",
    **dict.fromkeys(
        (
            dtypes.int32,
            dtypes.int16,
            dtypes.int8,
            dtypes.uint8,
            dtypes.bool_,
            dtypes.float16,
            dtypes.bfloat16,
        ),
        "int32_data",
    ),
}


def array_of(proto: Any, files: external.Files) -> Array:
    """The array of a `TensorProto`, whose type is one of ours.

    Args:
        proto: the message.
        files: where external data lies.

    Raises:
        OnnxError: if shape and data do not fit (``MT801``).

    Example:
        >>> import onnx
        >>> array_of(onnx.helper.make_tensor("x", onnx.TensorProto.INT8, (2,), [1, -2]), None)
        array([ 1, -2], dtype=int8)
    """
    name, dtype = proto.name, TYPES[proto.data_type]
    shape = _shape(name, proto.dims)
    count = math.prod(shape)
    if proto.HasField("segment"):
        refuse(f"the array {name!r} is a segment of another one, which no version of ONNX has defined")
    if proto.data_location == EXTERNAL:
        entries = {each.key: each.value for each in proto.external_data}
        found = external.read(files, name, entries, dtype.numpy, count)
    elif proto.HasField("raw_data"):
        data = proto.raw_data
        if len(data) != count * dtype.itemsize:
            refuse(f"the array {name!r} of {dtype.name}{list(shape)} has {len(data)} bytes")
        found = np.frombuffer(data, dtype.numpy.newbyteorder("<")).astype(dtype.numpy)  # a copy
    else:
        data = getattr(proto, _FIELDS[dtype])
        if len(data) != count:
            refuse(f"the array {name!r} of {dtype.name}{list(shape)} has {len(data)} elements in {_FIELDS[dtype]}")
        found = _from_list(name, data, dtype)
    if dtype is dtypes.bool_ and found.view(np.uint8).max(initial=0) > 1:
        refuse(f"the array {name!r} has bools that are neither 0 nor 1")
    return found.reshape(shape)


def _shape(name: str, dims: Any) -> tuple[int, ...]:
    if len(dims) > MOST_DIMS:
        refuse(f"the array {name!r} has {len(dims)} dimensions, more than {MOST_DIMS}")
    shape = tuple(dims)
    if min(shape, default=0) < 0 or math.prod(length or 1 for length in shape) >= 2**60:
        refuse(f"the array {name!r} has the shape {list(shape)}")
    return shape


def _from_list(name: str, data: Any, dtype: DType) -> Array:
    bits = np.dtype(np.uint16) if dtype in (dtypes.float16, dtypes.bfloat16) else None
    stored = bits or (np.dtype(np.uint8) if dtype is dtypes.bool_ else dtype.numpy)
    if stored.kind == "f":
        with np.errstate(all="ignore"):
            return np.fromiter(data, stored, len(data))
    wide = np.fromiter(data, np.uint64 if dtype is dtypes.uint32 else np.int64, len(data))
    bounds: Any = np.iinfo(stored)
    if wide.size and not (bounds.min <= int(wide.min()) and int(wide.max()) <= bounds.max):
        refuse(f"the array {name!r} of {dtype.name} has the elements {wide.min()} to {wide.max()}")
    return wide.astype(stored).view(dtype.numpy)
