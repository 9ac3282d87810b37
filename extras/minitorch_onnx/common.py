"""Facts of the ONNX format that writing and reading share: element types, versions, and the package `onnx` itself."""

from __future__ import annotations

from typing import Any

from minitorch import dtypes
from minitorch.dtypes import DType

FIRST_OPSET = 13
"""The oldest version of the operators that is written: from it on, ReduceSum and Squeeze take axes as data."""

DEFAULT_OPSET = 20
"""The version that is written by default: the oldest with Gelu. ONNX Runtime reads it since 1.17 (January 2024)."""

PARAMETERS, BUFFERS = "minitorch.parameters", "minitorch.buffers"
"""Metadata of a model: which initializers are trained, and which are not, a name a line."""

# The numbers of `TensorProto.DataType`; the format has more types.
NUMBERS: dict[DType, int] = {
    dtypes.float32: 1,
    dtypes.uint8: 2,
    dtypes.int8: 3,
    dtypes.int16: 5,
    dtypes.int32: 6,
    dtypes.int64: 7,
    dtypes.bool_: 9,
    dtypes.float16: 10,
    dtypes.float64: 11,
    dtypes.uint32: 12,
    dtypes.bfloat16: 16,
}
TYPES = {number: dtype for dtype, number in NUMBERS.items()}


def package() -> Any:
    """The package `onnx`.

    Raises:
        ModuleNotFoundError: in one sentence, if it is not installed.
    """
    try:
        import onnx
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "ONNX files need the package onnx, which is not installed: pip install onnx"
        ) from None
    return onnx


def newest_opset() -> int:
    """The newest version of the operators that the installed package `onnx` knows."""
    found: int = package().defs.onnx_opset_version()
    return found
