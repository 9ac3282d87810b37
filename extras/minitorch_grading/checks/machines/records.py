"""The machine that runs a recorded kernel: memory, a few registers, and numbers that its writer has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minitorch.ir import PRIMITIVES

from ...harness.plain import Array
from ...harness.reductions import ARITHMETIC, MOST
from ..reasons import expect

Arrays = Mapping[str, Array]


def run(text: Any, memory: Arrays, results: tuple[str, ...]) -> str | None:
    """Run a record; `memory` has the results afterwards. Why it cannot run, or None.

    Args:
        text: the record.
        memory: the elements of each array, flat.
        results: arrays of which nothing is there before it is stored, and that have to be complete.
    """
    expect(text, str, "a kernel that can be recorded")
    try:
        return _run(text, memory, results)
    except (KeyError, ValueError, IndexError):
        return "that is no record of a kernel"


def _run(text: str, memory: Arrays, results: tuple[str, ...]) -> str | None:
    values: list[Any] = []
    stored = {name: np.zeros(len(memory[name]), bool) for name in results}
    lines = text.splitlines()
    if len(lines) > MOST:
        return f"the kernel has more than {MOST} instructions"
    with np.errstate(all="ignore"):
        for line in lines:
            name, *operands = line.split()
            if name == "load":
                array, place = operands[0], _number(operands[1])
                if array in stored and not stored[array][place]:
                    return f"{array}[{place}] is loaded before anything was stored there"
                values.append(memory[array][place])
            elif name == "store":
                array, place = operands[0], _number(operands[1])
                if array not in stored:
                    return f"{array} is an argument that others read: store to {' or '.join(results)}"
                memory[array][place] = _value(operands[2], values)
                stored[array][place] = True
            else:
                if len(operands) != ARITHMETIC[name]:
                    return f"{name} takes {ARITHMETIC[name]} operands"
                values.append(PRIMITIVES[name].evaluate(*[_value(each, values) for each in operands]))
    missing = np.flatnonzero(~stored["out"])
    return f"nothing is stored to out[{missing[0]}]" if len(missing) else None


def _value(operand: str, values: list[Any]) -> Any:
    return values[_number(operand[1:])] if operand.startswith("%") else np.float64(operand)


def _number(text: str) -> int:
    """A place: whoever counts what is held reads it in the same way, so there is one way to write it."""
    if not (text.isascii() and text.isdigit() and text == str(int(text))):
        raise ValueError(text)
    return int(text)
