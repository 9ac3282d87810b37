"""`aligned`: listings of one function in several languages, side by side, by the lines of the function.

Each compiler keeps with an operation the line of Python that it comes from, in a form of its own: our graph in the
node, a jaxpr in a comment, StableHLO in a table of locations, optimised HLO in two tables, FX in a stack trace.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minitorch.graph import Graph
from minitorch.tables import Table

Operations = Sequence[tuple[int, str]]  # line numbers, as in the file, and names of operations

_JAXPR = re.compile(r"= ([\w.-]+)[\[ ].*?# .*:(\d+):\d+ \(")
_STABLEHLO = re.compile(r"= (?:stablehlo\.|call @)([\w.-]+).* loc\(#(loc\d*)\)")
_LOCATION = re.compile(r"^#(loc\d*) = loc\((.*)\)$", re.MULTILINE)
_HLO = re.compile(r"= (?:\(.*?\)|\S+) ([\w-]+)\(.*stack_frame_id=(\d+)")
_FRAME = re.compile(r"^(\d+) \{file_location_id=(\d+)", re.MULTILINE)
_PLACE = re.compile(r"^(\d+) \{file_name_id=.* line=(\d+)", re.MULTILINE)
_STACK = re.compile(r"line (\d+), in ")


def operations(listing: Any) -> Operations:
    """The operations of a program, with the line of the user's file that each comes from.

    Args:
        listing: a graph of ours or of PyTorch's FX; the text of a jaxpr (``jaxpr.pretty_print(source_info=True)``), of
            StableHLO (``lowered.as_text(debug_info=True)``) or of optimised HLO (``compiled.as_text()``).

    Example:
        >>> operations("{ lambda ; a:f32[8]. let b:f32[8] = tanh a # model.py:3:11 (f) in (b,) }")
        [(3, 'tanh')]
    """
    if isinstance(listing, Graph):
        nodes = [node for node in listing.nodes if node.source is not None and node.primitive.name != "constant"]
        return [(node.source.line, node.primitive.name) for node in nodes if node.source is not None]
    if not isinstance(listing, str):
        traced = [
            (_STACK.findall(node.stack_trace or ""), node) for node in listing.nodes if node.op.startswith("call")
        ]
        return [(int(lines[-1]), getattr(node.target, "__name__", str(node.target))) for lines, node in traced if lines]
    if listing.startswith("HloModule"):
        places = {int(number): int(line) for number, line in _PLACE.findall(listing)}
        frames = {number: places[int(place)] for number, place in _FRAME.findall(listing)}
        return [(frames[frame], name) for name, frame in _HLO.findall(listing) if frame in frames]
    if "stablehlo." in listing:
        locations = dict(_LOCATION.findall(listing))
        found = [(name, location) for name, location in _STABLEHLO.findall(listing) if name != "constant"]
        return [(_resolved(location, locations), name) for name, location in found]
    return [(int(line), name) for name, line in _JAXPR.findall(listing)]


def _resolved(name: str, locations: Mapping[str, str]) -> int:
    """The line of a location of MLIR; 0 if it has none."""
    for _ in range(len(locations) + 1):
        text = locations.get(name, "")
        if found := re.search(r'":(\d+):', text):
            return int(found[1])
        if (inner := re.search(r"#(loc\d*)", text)) is None:
            return 0
        name = inner[1]
    return 0


class Aligned:
    """A table: for each line of a function, the operations of each listing.

    Attributes:
        lines: the function's source, by line number.
        columns: for each listing, the operations by line number.
    """

    def __init__(self, lines: Mapping[int, str], columns: Mapping[str, Mapping[int, list[str]]]) -> None:
        self.lines, self.columns = lines, columns

    def __getitem__(self, column: str) -> list[str]:
        """The operations of a listing that come from the function, in the order of its lines."""
        return [name for line in self.lines for name in self.columns[column].get(line, ())]

    def rows(self) -> list[tuple[str, ...]]:
        """The text of a line, then its operations in each listing."""
        texts = [(text, *(", ".join(column.get(line, ())) for column in self.columns.values())) for line, text in
                 self.lines.items()]  # fmt: skip
        return [row for row in texts if any(row[1:])]

    def __repr__(self) -> str:
        blocks = []
        for text, *cells in self.rows():
            named = zip(self.columns, cells, strict=True)
            blocks.append("\n".join([text.strip(), *(f"    {name:16} {cell}" for name, cell in named)]))
        return "\n".join(blocks)

    def _repr_html_(self) -> str:
        return Table("{}" * (1 + len(self.columns)), self.rows(), ("line", *self.columns)).html


def aligned(function: Callable[..., Any], **listings: Any) -> Aligned:
    """Line up listings of a function by its source.

    Args:
        function: as it is written.
        listings: by the heading of the column, what `operations` reads, or what it returns.

    Example:
        >>> import minitorch as mt
        >>> def f(x):
        ...     y = x.exp()
        ...     return y / y.sum()
        >>> aligned(f, ours=mt.jit(f).graph(mt.ones(4)))
        y = x.exp()
            ours             exp
        return y / y.sum()
            ours             reduce_sum, expand, div
    """
    source, first = inspect.getsourcelines(function)
    lines = {first + number: text.rstrip("\n") for number, text in enumerate(source)}
    columns: dict[str, dict[int, list[str]]] = {}
    for name, listing in listings.items():
        column = columns[name.replace("_", " ")] = {}
        for line, operation in listing if isinstance(listing, (list, tuple)) else operations(listing):
            if line in lines:
                column.setdefault(line, []).append(operation)
    return Aligned(lines, columns)
