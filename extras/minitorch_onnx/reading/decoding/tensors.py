"""`TensorProto` to NumPy: every length is compared with the bytes that are there before an array is made.

The elements are in `raw_data` (little-endian), in a list of the field that belongs to the type, or in a file.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minitorch import dtypes
from minitorch.dtypes import DType

from ...common import TYPES, package
from . import external
from .limits import MOST_DIMS, require

Array = np.ndarray[Any, Any]

EXTERNAL = 1  # of `TensorProto.DataLocation`


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
    text = "the array {!r} has {} dimensions, more than {}"
    require(len(proto.dims) <= MOST_DIMS, text, name, len(proto.dims), MOST_DIMS)
    shape = tuple(proto.dims)
    fits = min(shape, default=0) >= 0 and math.prod(length or 1 for length in shape) < 2**60
    require(fits, "the array {!r} has the shape {}", name, list(shape))
    count = math.prod(shape)
    is_segment = proto.HasField("segment")
    require(not is_segment, "the array {!r} is a segment of another one, which no version of ONNX has defined", name)
    if proto.data_location == EXTERNAL:
        entries = {each.key: each.value for each in proto.external_data}
        found = external.read(files, name, entries, dtype.numpy, count)
    elif proto.HasField("raw_data"):
        data, text = proto.raw_data, "the array {!r} of {}{} has {} bytes"
        require(len(data) == count * dtype.itemsize, text, name, dtype.name, list(shape), len(data))
        found = np.frombuffer(data, dtype.numpy.newbyteorder("<")).astype(dtype.numpy)  # a copy
    else:
        field = package().helper.tensor_dtype_to_field(proto.data_type)
        data, text = getattr(proto, field), "the array {!r} of {}{} has {} elements in {}"
        require(len(data) == count, text, name, dtype.name, list(shape), len(data), field)
        found = _from_list(name, data, dtype)
    is_bool = dtype is not dtypes.bool_ or found.view(np.uint8).max(initial=0) <= 1
    require(is_bool, "the array {!r} has bools that are neither 0 nor 1", name)
    return found.reshape(shape)


def _from_list(name: str, data: Any, dtype: DType) -> Array:
    """The elements of the field that belongs to their type; floats of 16 bits are there as their bits."""
    stored = np.dtype(f"u{dtype.itemsize}") if dtype.category == "float" and dtype.itemsize == 2 else dtype.numpy
    stored = np.dtype(np.uint8) if dtype is dtypes.bool_ else stored
    if stored.kind == "f":
        with np.errstate(all="ignore"):
            return np.fromiter(data, stored, len(data))
    wide = np.fromiter(data, np.uint64 if dtype is dtypes.uint32 else np.int64, len(data))
    found = wide.astype(stored)
    text = "the array {!r} of {} has elements outside of {} to {}"
    bounds: Any = np.iinfo(stored)
    require((found == wide).all(), text, name, dtype.name, bounds.min, bounds.max)
    return found.view(dtype.numpy)
