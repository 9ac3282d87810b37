"""What moves between devices: the collective operations that XLA's partitioner added to a program.

Bytes are those of Rabenseifner's and the ring algorithms (Thakur et al., 2005), which reach the least: of n devices
that hold S bytes each

- an all-reduce sends 2 (n - 1) S bytes in all,
- an all-gather whose result has S bytes (n - 1) S,
- a reduce-scatter of S bytes (n - 1) S,
- an all-to-all of S bytes (n - 1) S,
- a collective-permute S bytes for each pair of different devices,

and several groups of devices as many times as much.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .hlo import Instruction

_SHAPE = re.compile(r"(pred|[a-z]+\d+\w*)\[([\d,]*)\]")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}")
_LISTED = re.compile(r"replica_groups=\{((?:\{[\d,]*\},?)*)\}")
_IOTA = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=")
_MESH = re.compile(r"replica_groups=mesh\[([^\]]*)\] \{([^}]*)\}")

_BITS = re.compile(r"\d+")

# Bytes that the devices of a group of n send in all, from the bytes of the result on each of them.
SENT: dict[str, Callable[[int, int], int]] = {
    "all-reduce": lambda n, size: 2 * (n - 1) * size,
    "all-gather": lambda n, size: (n - 1) * size,
    "reduce-scatter": lambda n, size: (n - 1) * n * size,
    "all-to-all": lambda n, size: (n - 1) * size,
    "collective-permute": lambda n, size: n * size,
}


@dataclass(frozen=True)
class Collective:
    """One operation between devices.

    Attributes:
        kind: ``"all-reduce"``, ``"all-gather"``, ``"reduce-scatter"``, ``"all-to-all"`` or ``"collective-permute"``.
        shapes: of the results on each device, as XLA writes them.
        groups: how many groups of devices do this, each for itself.
        devices: how many are in a group; of a collective-permute, how many pairs of them send.
        nbytes: of the results on each device.
        moved: bytes that all devices send, by the formulas at the top of this file.
        lines: the user's lines that cause it.
    """

    kind: str
    shapes: tuple[str, ...]
    groups: int
    devices: int
    nbytes: int
    moved: int
    lines: tuple[str, ...]

    def __str__(self) -> str:
        among = f"{self.groups} x {self.devices} devices" if self.groups > 1 else f"{self.devices} devices"
        return f"{self.kind} of {', '.join(self.shapes)} among {among}: {self.moved} bytes  # {', '.join(self.lines)}"


class Collectives(tuple[Collective, ...]):
    """All of a program, in order; printed, a line for each, and the sum."""

    @property
    def moved(self) -> int:
        """Bytes that all devices send in one run."""
        return sum(each.moved for each in self)

    def __repr__(self) -> str:
        return "\n".join([*map(str, self), f"{len(self)} collectives, {self.moved} bytes"])


def collectives_of(kernels: tuple[Instruction, ...], devices: int) -> Collectives:
    """The collectives among the instructions of a compiled program.

    Args:
        kernels: as `backends.xla.hlo.read` gives them.
        devices: that the program runs on.
    """
    found = []
    for each in kernels:
        kind = each.kind.removesuffix("-start")
        if kind not in SENT:
            continue
        shapes = [f"{name}[{lengths}]" for name, lengths in _SHAPE.findall(each.shape)]
        if each.kind != kind and kind != "all-reduce":
            shapes = shapes[len(shapes) // 2 :]  # the beginning of one has its operands among its results
        size = sum(_nbytes(shape) for shape in shapes)
        groups, count = _groups(each.text, devices)
        if groups * SENT[kind](count, size):
            moved = groups * SENT[kind](count, size)
            found.append(Collective(kind, tuple(shapes), groups, count, size, moved, each.lines))
    return Collectives(found)


def _nbytes(shape: str) -> int:
    name, lengths = shape[:-1].split("[")
    bits = 8 if name == "pred" else int(_BITS.findall(name)[0])
    return math.prod([int(length) for length in lengths.split(",") if length]) * bits // 8


def _groups(text: str, devices: int) -> tuple[int, int]:
    """How many groups there are, and how many devices each has; of pairs, one group with as many as send."""
    if pairs := _PAIRS.search(text):
        each = re.findall(r"\{(\d+),(\d+)\}", pairs[1])
        return 1, sum(source != target for source, target in each)
    if iota := _IOTA.search(text):
        return int(iota[1]), int(iota[2])
    if mesh := _MESH.search(text):
        lengths = {name: int(length) for name, length in re.findall(r"'(\w+)'=(\d+)", mesh[1])}
        count = math.prod([lengths[name] for name in re.findall(r"'(\w+)'", mesh[2])])
        return math.prod(lengths.values()) // count, count
    listed = _LISTED.search(text)
    groups = re.findall(r"\{([\d,]+)\}", listed[1]) if listed else []
    return (len(groups), len(groups[0].split(","))) if groups else (1, devices)
