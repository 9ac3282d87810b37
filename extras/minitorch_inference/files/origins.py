"""What is known of how a program was frozen, as JSON, and back: for `explain()`, since its graph does not show it.

of the program        "autocast": "bfloat16" or null, "frozen_bytes": 4000
of each signature     "beforehand": {"lines": [[file, line, [operation, ...], bytes, FLOPs], ...],
                                     "decisions": [[rule, where, reason, saved], ...]}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minitorch.dtypes import bfloat16, float16
from minitorch.ir import Source
from minitorch_amp.autocast_mode import Autocast

from ..affine.decisions import Decision
from ..beforehand import Beforehand, Line
from .layouts import LayoutError

LOWER = {dtype.name: dtype for dtype in (bfloat16, float16)}


def head(autocast: Autocast | None, frozen_bytes: int) -> dict[str, Any]:
    """What is known of a program as JSON."""
    return {"autocast": None if autocast is None else autocast.dtype.name, "frozen_bytes": frozen_bytes}


def head_of(about: Mapping[str, Any]) -> tuple[Autocast | None, int]:
    """The inverse of `head`.

    Raises:
        LayoutError: if it is nothing that `head` gives.
    """
    name, frozen_bytes = about.get("autocast"), about.get("frozen_bytes")
    is_type = name is None or (isinstance(name, str) and name in LOWER)
    if "autocast" not in about or not is_type or not _is_count(frozen_bytes):
        raise LayoutError("it does not say the autocast and the bytes of the tensors that were frozen")
    return None if name is None else Autocast(LOWER[str(name)]), int(about["frozen_bytes"])


def encode(work: Beforehand) -> dict[str, Any]:
    """The work that was done beforehand, as JSON; of files, the names alone.

    Example:
        >>> line = Line(Source("/home/ann/train.py", 3), ("exp", "mul"), 800, 200)
        >>> encode(Beforehand((line,), ()))["lines"]
        [['train.py', 3, ['exp', 'mul'], 800, 200]]
        >>> decode(encode(Beforehand((line,), ()))).lines[0].bytes
        800
    """
    lines: list[Any] = []
    for line in work.lines:
        file, _, number = str(line.source).rpartition(":") if line.source else ("", "", "0")
        lines.append([file, int(number), list(line.operations), line.bytes, line.flops])
    return {"lines": lines, "decisions": [[each.rule, each.where, each.reason, each.saved] for each in work.decisions]}


def decode(found: Any) -> Beforehand:
    """The inverse of `encode`.

    Raises:
        LayoutError: if it is nothing that `encode` gives.
    """
    rows = found if isinstance(found, dict) else {}
    return Beforehand(
        tuple(map(_line, _rows(rows.get("lines"), 5))),
        tuple(map(_decision, _rows(rows.get("decisions"), 4))),
    )


def _line(row: list[Any]) -> Line:
    file, number, operations, size, flops = row
    named = isinstance(operations, list) and all(isinstance(each, str) for each in operations)
    if not isinstance(file, str) or not named or not all(map(_is_count, (number, size, flops))):
        raise _unknown(row)
    return Line(Source(file, number) if file else None, tuple(operations), size, flops)


def _decision(row: list[Any]) -> Decision:
    rule, where, reason, saved = row
    if not all(isinstance(text, str) for text in (rule, where, reason)) or type(saved) is not int:
        raise _unknown(row)
    return Decision(rule, where, reason, saved)


def _rows(found: Any, length: int) -> list[list[Any]]:
    if not isinstance(found, list) or not all(isinstance(row, list) and len(row) == length for row in found):
        raise _unknown(found)
    return found


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _unknown(found: Any) -> LayoutError:
    return LayoutError(f"{found!r:.60} says nothing of what was done beforehand")
