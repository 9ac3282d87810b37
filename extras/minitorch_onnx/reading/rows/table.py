"""Making rows: of functions of tensors alone, and of functions that look at the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..program import Row

Function = Callable[..., Any]


def plain(functions: Mapping[str, Function]) -> dict[str, Row]:
    """Rows of operators that are functions of their inputs, without attributes."""
    return {name: Row(_without_call(function)) for name, function in functions.items()}


def _without_call(function: Function) -> Function:
    return lambda call, *inputs: function(*inputs)
