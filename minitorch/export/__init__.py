"""File formats that other programs read and write, too. No format here can run code: no pickle, anywhere."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..modes.ways_in.exporting import onnx
    from .checkpoints import Checkpoint
    from .onnx_format.reading.loading import load_onnx

# The public functions, with the module that each is loaded from when it is first used.
_LATER = {
    "Checkpoint": "export.checkpoints",
    "load_onnx": "export.onnx_format.reading.loading",
    "onnx": "modes.ways_in.exporting",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    package = __name__.rpartition(".")[0]
    found = globals()[name] = getattr(import_module(f"{package}.{_LATER[name]}"), name)
    return found


__all__ = ["Checkpoint", "load_onnx", "onnx"]
