"""What XLA makes of a graph: its program before and after its own passes, and what it runs, beside our kernels.

XLA keeps with each instruction where it came from (its metadata). Our rules name the user's line there, so that XLA's
kernels and ours can be lined up by line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from minitorch.graph import Graph

from .collectives import Collectives, collectives_of

_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"^(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\(")
_CALLED = re.compile(r"(?:calls|to_apply)=%?([\w.\-]+)")
_ORIGIN = re.compile(r'op_name="([^"]*)"')
_LINE = re.compile(r"([^/(:]+:\d+)/")
_LOCATIONS = re.compile(r"(?ms)^FileNames\n.*?(?=^\S+ \(|^%|^ENTRY)")
_PARTITIONS = re.compile(r"num_partitions=(\d+)")
_FRAME = re.compile(r" stack_frame_id=\d+")
# Instructions that run nothing.
_CHEAP = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "reshape", "after-all"))
_CHEAP |= {"copy-start", "copy-done"}


@dataclass(frozen=True)
class Instruction:
    """One instruction of a program: a kernel of XLA's, if it stands in the program's own computation.

    Attributes:
        name, kind: as in the program's text; the kind of a kernel of several operations is ``"fusion"`` or ``"call"``.
        shape: of the result, as text.
        operations: the kinds of what it computes inside; its own, if it is no fusion.
        lines: the user's lines that these come from.
        text: all of it.
    """

    name: str
    kind: str
    shape: str
    operations: tuple[str, ...]
    lines: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(dict.fromkeys(self.operations))})"


@dataclass(frozen=True)
class Hlo:
    """A graph as XLA's program. Printed, it is a table: for each line of the user's what we compute and what XLA runs.

    Attributes:
        graph: ours, after our passes.
        ours: for each line, the names of our kernels with a part of it.
        before: the program before XLA's passes, in the language HLO.
        after: the program that runs.
        kernels: what is run, in order.
    """

    graph: Graph
    ours: dict[str, tuple[str, ...]]
    before: str
    after: str
    kernels: tuple[Instruction, ...]

    @property
    def devices(self) -> int:
        """How many devices run it."""
        found = _PARTITIONS.search(self.after)
        return int(found[1]) if found else 1

    def ours_in_order(self) -> tuple[str, ...]:
        """The names of our kernels."""
        return tuple(dict.fromkeys(name for names in self.ours.values() for name in names))

    def collectives(self) -> Collectives:
        """What moves between devices."""
        return collectives_of(self.kernels, self.devices)

    def lines(self) -> Iterator[tuple[str, str, str, str]]:
        """For each line: the nodes of our graph, our kernels, XLA's kernels."""
        nodes: dict[str, list[str]] = {}
        for node in self.graph.nodes:
            if node.source is not None and node.primitive.name != "constant":
                nodes.setdefault(str(node.source), []).append(node.primitive.name)
        known = dict.fromkeys([*nodes, *(line for kernel in self.kernels for line in kernel.lines)])
        for line in known:
            theirs = [kernel.name for kernel in self.kernels if line in kernel.lines]
            yield line, ", ".join(nodes.get(line, ())), ", ".join(self.ours.get(line, ())), ", ".join(theirs)

    def __str__(self) -> str:
        rows = [("line", "operations", "our kernels", "XLA runs"), *self.lines()]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        text = "\n".join(
            "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]).rstrip()
            for row in rows
        )
        return f"{text}\n{len(self.ours_in_order())} of our kernels, {len(self.kernels)} of XLA's"

    __repr__ = __str__


def read(text: str) -> tuple[Instruction, ...]:
    """What a compiled program runs: the instructions of its entry, without those that run nothing."""
    computations, entry = _computations(text)
    found = []
    for line in computations[entry]:
        name, shape, kind = _taken_apart(line)
        if kind in _CHEAP:
            continue
        inside = _inside(line, computations)
        operations = tuple([_taken_apart(each)[2] for each in inside if _taken_apart(each)[2] not in _CHEAP])
        lines = dict.fromkeys(source for each in (line, *inside) for source in lines_of(each))
        found.append(Instruction(name, kind, shape, operations or (kind,), tuple(lines), line))
    return tuple(found)


def lines_of(instruction: str) -> list[str]:
    """The user's lines that an instruction comes from; several, if it is made of several of ours."""
    origin = _ORIGIN.search(instruction)
    return _LINE.findall(origin[1]) if origin else []


def plain(text: str) -> str:
    """A program's text without the tables of our own files, which XLA keeps beside the user's line."""
    return _FRAME.sub("", _LOCATIONS.sub("", text))


def _computations(text: str) -> tuple[dict[str, list[str]], str]:
    found: dict[str, list[str]] = {}
    entry, current = "", None
    for raw in text.splitlines():
        line = raw.strip()
        if (start := _COMPUTATION.match(line)) is not None:
            current = found.setdefault(start[1], [])
            entry = start[1] if line.startswith("ENTRY") else entry
        elif line == "}":
            current = None
        elif current is not None and _INSTRUCTION.match(line):
            current.append(line)
    return found, entry


def _taken_apart(line: str) -> tuple[str, str, str]:
    match = _INSTRUCTION.match(line)
    assert match is not None
    return match[1], match[2], match[3]


def _inside(line: str, computations: dict[str, list[str]]) -> Sequence[str]:
    """The instructions of the computations that one calls, and of those that these call."""
    found: list[str] = []
    pending = _CALLED.findall(line)
    if _taken_apart(line)[2] not in ("fusion", "call", "while", "conditional"):
        return found  # a reduction's or a sort's function of two numbers
    while pending:
        name = pending.pop()
        found += computations.get(name, ())
        pending += [
            other
            for each in computations.get(name, ())
            if _taken_apart(each)[2] in ("fusion", "call")
            for other in _CALLED.findall(each)
        ]
    return found
