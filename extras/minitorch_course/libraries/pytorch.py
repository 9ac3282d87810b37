"""`with_torch`, `with_onnxruntime`: functions that run where a package is installed; elsewhere their record is shown.

The course compares itself with PyTorch and ONNX Runtime, and needs neither. A record says on which machine and with
which version it was made, from the notebooks as they are: ``python -m tests.course.test_torch_recorded`` makes
PyTorch's, ``python -m tests.recorded_functions`` ONNX Runtime's.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ..conditions import version_of
from .records import FOLDER, ran, recalled

RECORD = FOLDER / "pytorch-graphs.json"
RUNTIME_RECORD = FOLDER / "onnxruntime.json"


class NoCompilerError(RuntimeError):
    """A function needs a compiler for C++, as Inductor does on CPUs, and there is none."""


def with_torch(function: Callable[[Any], Any]) -> Any:
    """Call a function with the module `torch`, and show what it prints and the warnings that it causes.

    Where PyTorch is not installed, what was recorded for a function of this name is shown instead. PyTorch's log, and
    what it writes to stderr, is left out: it repeats what the errors say. The record is also shown where the function
    asks for `inductor`, and there is no compiler for C++.

    Args:
        function: takes the module. It prints, and returns a plain value or nothing.

    Returns:
        What the function returned, here or when it was recorded.

    Raises:
        LookupError: if PyTorch is not installed, and there is no record of this function.
    """
    return _with("torch", "PyTorch", RECORD, function)


def with_onnxruntime(function: Callable[[Any], Any]) -> Any:
    """Call a function with the module `onnxruntime`, as `with_torch` does with PyTorch.

    Args:
        function: takes the module. It prints, and returns a plain value or nothing.

    Returns:
        What the function returned, here or when it was recorded.

    Raises:
        LookupError: if ONNX Runtime is not installed, and there is no record of this function.
    """
    return _with("onnxruntime", "ONNX Runtime", RUNTIME_RECORD, function)


def _with(package: str, title: str, recorded: Path, function: Callable[[Any], Any]) -> Any:
    """Call a function with the module of a package, or show its record."""
    if not version_of(package):
        return recalled(function, title, recorded)
    print(f"── run here, {package} {version_of(package)} ──")
    try:
        return ran(function, import_module(package))
    except NoCompilerError:
        return recalled(function, "A compiler for C++", recorded)
