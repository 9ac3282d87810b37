"""Tensors of which each process has a part: it writes its own, and a checkpoint of parts is read as one of wholes.

A part is a tensor of its own, ``weight[0:32, 8:16]``. One of the metadata says for each whole its shape and the boxes
of its parts, which are a grid:

    {"weight": {"shape": [64, 16], "boxes": [[[0, 32], [0, 8]], ...]}}
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from minitorch.ir import Shape
from minitorch.packages import load
from minitorch.tensor import Remote, Tensor

from .index import text_of
from .regions import Box

PIECES = "minitorch.pieces"  # the metadata's name

Pieces = tuple[Shape, Sequence[Box]]


def parts_of(tensor: Any) -> list[Any]:
    """Return the `Part`s of a tensor that is divided among processes (`minitorch_xla.backend.partitions`)."""
    if not is_on_device(tensor):
        return []
    return list(load("minitorch_xla.backend.partitions").parts(tensor._value))


def is_on_device(tensor: Any) -> bool:
    """Whether it is a tensor whose value is on devices, and has no copy on the host that counts."""
    return isinstance(tensor, Tensor) and isinstance(tensor._value, Remote) and not tensor._value.is_fetched


def processes() -> Any:
    """The module that knows the processes; there are some."""
    return load("minitorch_xla.backend.processes")


def name_of(name: str, box: Box) -> str:
    """What a part is called.

    Example:
        >>> name_of("weight", ((0, 32), (8, 16)))
        'weight[0:32, 8:16]'
    """
    return f"{name}[{', '.join(f'{start}:{stop}' for start, stop in box)}]"


def written(divided: Mapping[str, Pieces]) -> str:
    """The text for the metadata."""
    return text_of({name: {"shape": shape, "boxes": boxes} for name, (shape, boxes) in divided.items()})


def read(text: str) -> dict[str, Pieces]:
    """The shapes and boxes of such a text.

    Raises:
        ValueError: saying which rule it breaks.
    """
    try:
        rows = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if not isinstance(rows, dict):
        raise ValueError("it is no object")
    return {name: _checked(name, row) for name, row in rows.items()}


def _checked(name: str, row: Any) -> Pieces:
    shape, boxes = (row.get("shape"), row.get("boxes")) if isinstance(row, dict) else (None, None)
    if not isinstance(shape, list) or not isinstance(boxes, list) or not all(map(_is_length, shape)):
        raise ValueError(f"{name!r:.60} has no shape, or no boxes")
    found: list[Box] = []
    for box in boxes:
        if not isinstance(box, list) or len(box) != len(shape):
            raise ValueError(f"{name!r:.60} has {len(shape)} dimensions, and {box!r:.60} is no box of these")
        for ends in box:
            if not (isinstance(ends, list) and len(ends) == 2 and all(map(_is_length, ends)) and ends[0] < ends[1]):
                raise ValueError(f"{name!r:.60} has {ends!r:.60}, which is not from where to where")
        found.append(tuple([(start, stop) for start, stop in box]))
    # A grid: along each dimension the parts follow each other from 0 to its length, and every crossing is there once.
    for place, length in enumerate(shape):
        reached = 0
        for start, stop in sorted({box[place] for box in found}):
            if start != reached:
                raise ValueError(f"the parts of {name!r:.60} overlap, or leave something out, in dimension {place}")
            reached = stop
        if reached != length:
            raise ValueError(f"the parts of {name!r:.60} end at {reached} in dimension {place}, and it has {length}")
    if len(found) != math.prod(len({box[place] for box in found}) for place in range(len(shape))) or (
        len(set(found)) < len(found)
    ):
        raise ValueError(f"a part of {name!r:.60} is missing, or there twice")
    return tuple(shape), found


def _is_length(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def overlap(a: Box, b: Box) -> Box | None:
    """What two boxes have in common; None if nothing.

    Example:
        >>> overlap(((0, 4),), ((3, 8),))
        ((3, 4),)
    """
    common = tuple([(max(x[0], y[0]), min(x[1], y[1])) for x, y in zip(a, b, strict=True)])
    return common if all(start < stop for start, stop in common) else None


def within(box: Box, outer: Box) -> Box:
    """A box, counted from where another one begins."""
    return tuple([(start - first, stop - first) for (start, stop), (first, _) in zip(box, outer, strict=True)])
