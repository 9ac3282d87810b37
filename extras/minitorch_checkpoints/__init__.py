"""File formats that other programs read and write, too. No file can run code while it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minitorch.packages import names_from

if TYPE_CHECKING:
    from minitorch_onnx.reading.loading import load_onnx
    from minitorch_onnx.tracing.exporting import onnx

    from .checkpoints import Checkpoint

# The public functions, with the module that each is loaded from when it is first used.
_LATER = {
    "Checkpoint": "minitorch_checkpoints.checkpoints",
    "load_onnx": "minitorch_onnx.reading.loading",
    "onnx": "minitorch_onnx.tracing.exporting",
    "onnx_backend": "minitorch.export.onnx_backend",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = names_from(__name__, _LATER)

__all__ = ["Checkpoint", "load_onnx", "onnx"]
