"""File formats that other programs read and write, too. No format here can run code: no pickle, anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.packages import load

if TYPE_CHECKING:
    from minitorch_onnx.reading.loading import load_onnx
    from minitorch_onnx.tracing.exporting import onnx

    from .checkpoints import Checkpoint

# The public functions, with the module that each is loaded from when it is first used.
_LATER = {
    "Checkpoint": "minitorch_checkpoints.checkpoints",
    "load_onnx": "minitorch_onnx.reading.loading",
    "onnx": "minitorch_onnx.tracing.exporting",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(load(_LATER[name]), name)
    return found


__all__ = ["Checkpoint", "load_onnx", "onnx"]
