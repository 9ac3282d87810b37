"""`with_torch`, `with_onnxruntime`: functions that run where a package is installed; elsewhere their record is shown.

The course compares itself with PyTorch and ONNX Runtime, and needs neither. A record says on which machine and with
which version it was made, from the notebooks as they are: ``python -m tests.optional.test_torch_recorded`` makes
PyTorch's, ``python -m tests.recorded_functions`` ONNX Runtime's.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from .catching import in_cells, wrapped
from .conditions import version_of
from .recording import FOLDER

RAN: dict[str, tuple[str, Any]] = {}
"""What functions have printed and returned in this process, by name: what a record is made of."""
RECORD = FOLDER / "pytorch-graphs.json"
RUNTIME_RECORD = FOLDER / "onnxruntime.json"


def with_torch(function: Callable[[Any], Any]) -> Any:
    """Call a function with the module `torch`, and show what it prints and the warnings that it causes.

    Where PyTorch is not installed, what was recorded for a function of this name is shown instead. PyTorch's log, and
    what it writes to stderr, is left out: it repeats what the errors say.

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
    if version_of(package):
        print(f"── run here, {package} {version_of(package)} ──")
        RAN[function.__name__] = text, value = _run(package, function)
    else:
        record = json.loads(recorded.read_text(encoding="utf-8"))
        if function.__name__ not in record["functions"]:
            raise LookupError(f"{title} is not installed, and there is no record of {function.__name__}")
        print(f"── {title} is not installed; recorded with {record['where']} ──")
        found = record["functions"][function.__name__]
        text, value = "\n".join(found["output"]), found["value"]
    print(text)
    return value


def _run(package: str, function: Callable[[Any], Any]) -> tuple[str, Any]:
    """What a function prints, and returns."""
    printed = io.StringIO()
    logged = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(record=True) as found,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("always")
            value = function(import_module(package))
    finally:
        logging.disable(logged)
    told = dict.fromkeys(f"{each.category.__name__}: {str(each.message).strip()}" for each in found)
    return "\n".join([in_cells(printed.getvalue()).strip("\n"), *(wrapped(in_cells(each)) for each in told)]), value
