"""Layout of the numbers of an array as text: the inside of a tensor's `repr`, and its table in a
notebook.

It follows PyTorch's layout, so that outputs can be compared by eye: four decimals, the same width for every
number, scientific notation where the range asks for it, and only the edges of large arrays. It knows arrays and
strings; the other parts of a tensor's `repr` are in
`minitorch.functional.conversion`.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
NumberText = Callable[[Any], str]


@dataclass
class Options:
    """How numbers are shown, as `minitorch.set_printoptions` says.

    Attributes:
        precision: digits after the point.
        linewidth: characters in a line.
        threshold: elements; from there on only the edges are shown,
        edgeitems: of which each end of a dimension has so many.
        sci_mode: whether floats are written with exponents; None if their range decides.
    """

    precision: int = 4
    linewidth: int = 80
    threshold: float = 1000
    edgeitems: int = 3
    sci_mode: bool | None = None


OPTIONS = Options()
TABLE_ROWS, TABLE_COLUMNS = 20, 12  # the largest table in a notebook


def _deciding(numbers: Array) -> Array:
    """Return the numbers that decide notation and width: of floats, as in PyTorch, the finite ones but 0."""
    if numbers.dtype.kind in "biu":
        return numbers.ravel()
    wide = numbers.astype(np.float64)
    deciding: Array = wide[np.isfinite(wide) & (wide != 0)]
    return deciding


def number_text(numbers: Array) -> NumberText:
    """Return the function that writes each of some numbers, all in the same notation and not yet to one width."""
    if numbers.dtype.kind in "biu":
        return str
    sizes = np.abs(_deciding(numbers))
    largest, smallest = (sizes.max(), sizes.min()) if sizes.size else (1.0, 1.0)
    whole = bool(np.all(sizes == np.floor(sizes)))
    by_range = largest / smallest > 1000 or largest > 1e8 or (not whole and smallest < 1e-4)
    if by_range if OPTIONS.sci_mode is None else OPTIONS.sci_mode:
        return lambda number: f"{float(number):.{OPTIONS.precision}e}"
    if whole:
        return lambda number: f"{float(number):.0f}" + ("." if np.isfinite(number) else "")
    return lambda number: f"{float(number):.{OPTIONS.precision}f}"


def edges(array: Array) -> Array:
    """Return the elements that a summary shows."""
    shown = [
        [*range(OPTIONS.edgeitems), *range(length - OPTIONS.edgeitems, length)]
        if length > 2 * OPTIONS.edgeitems
        else range(length)
        for length in array.shape
    ]
    result: Array = array[np.ix_(*shown)]
    return result


def array_text(array: Array, indent: int = 0) -> str:
    """Return the nested brackets of an array; `indent` is the column at which they begin.

    Example:
        >>> print(array_text(np.array([[1.0, 0.5], [10.0, -2.0]])))
        [[ 1.0000,  0.5000],
         [10.0000, -2.0000]]
    """
    if array.size == 0:
        return "[]"
    summary = array.size > OPTIONS.threshold
    shown = edges(array) if summary else array
    write = number_text(shown)
    width = max(map(len, map(write, _deciding(shown))), default=1)
    return _nested(array, indent, summary, lambda number: write(number).rjust(width))


def _nested(array: Array, indent: int, summary: bool, write: NumberText) -> str:
    if array.ndim == 0:
        return write(array[()])
    skip = summary and len(array) > 2 * OPTIONS.edgeitems
    positions = (
        [*range(OPTIONS.edgeitems), *range(len(array) - OPTIONS.edgeitems, len(array))]
        if skip
        else [*range(len(array))]
    )
    parts = [_nested(array[position], indent + 1, summary, write) for position in positions]
    if skip:
        parts.insert(OPTIONS.edgeitems, " ..." if array.ndim == 1 else "...")
    margin = " " * (indent + 1)
    if array.ndim > 1:
        return "[" + ("," + "\n" * (array.ndim - 1) + margin).join(parts) + "]"
    per_line = max(1, (OPTIONS.linewidth - indent) // (len(parts[0]) + 2))
    lines = [", ".join(parts[begin : begin + per_line]) for begin in range(0, len(parts), per_line)]
    return "[" + (",\n" + margin).join(lines) + "]"


def with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """Append facts to a text (on the same line if there is room, else below), and the closing bracket."""
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > OPTIONS.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def html_table(array: Array, caption: str) -> str | None:
    """Return a table of a small 1-D or 2-D array, without colours of its own; None if it is not one."""
    rows = array[None] if array.ndim == 1 else array
    if rows.ndim != 2 or not (0 < len(rows) <= TABLE_ROWS and 0 < rows.shape[1] <= TABLE_COLUMNS):
        return None
    write = number_text(rows)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:right'>{html.escape(write(number))}</td>" for number in row) + "</tr>"
        for row in rows
    )
    return f"<div><code>{html.escape(caption)}</code><table><tbody>{body}</tbody></table></div>"
