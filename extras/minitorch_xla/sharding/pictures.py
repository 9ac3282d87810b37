"""Who holds what: the parts of a sharded value as a table and as a picture."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass

from minitorch.errors import ShardingError
from minitorch.tensor import Remote, Tensor

Part = tuple[tuple[int, int], ...]  # for each dimension: from, to

WIDTH, HEIGHT = 110, 44  # of a cell, in pixels
HEAD = 20
SHADES = ("#dbe7f5", "#f6e3cf", "#ddefd9", "#efdcec", "#f5f0c9", "#d8eef0", "#f3d9d9", "#e4e0f4")


@dataclass(frozen=True)
class Holders:
    """The parts of a value, each with the devices that hold it. Printed, it is a table; in a notebook, a picture.

    Attributes:
        shape: of the value.
        parts: for each part, from where to where in each dimension, and the numbers of its devices.
    """

    shape: tuple[int, ...]
    parts: tuple[tuple[Part, tuple[int, ...]], ...]

    def _grid(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The bounds of the rows and of the columns of the picture: the first dimensions that are divided."""
        columns = [_bounds(part, 1) for part, _ in self.parts]
        rows = [_bounds(part, 0) for part, _ in self.parts]
        return sorted(set(rows)), sorted(set(columns))

    def _cells(self) -> Iterator[tuple[int, int, str]]:
        rows, columns = self._grid()
        texts: dict[tuple[int, int], list[str]] = {}
        for part, devices in self.parts:
            place = rows.index(_bounds(part, 0)), columns.index(_bounds(part, 1))
            deeper = ",".join(f"{low}:{high}" for low, high in part[2:])
            text = ("device " if len(devices) == 1 else "devices ") + _numbers(devices)
            texts.setdefault(place, []).append(f"{deeper} {text}".strip())
        for (row, column), lines in sorted(texts.items()):
            yield row, column, "; ".join(lines)

    def __str__(self) -> str:
        rows, columns = self._grid()
        table = [["", *[_span(bounds) for bounds in columns]]] if len(self.shape) > 1 else []
        table += [[_span(bounds), *[""] * len(columns)] for bounds in rows]
        first = len(table) - len(rows)
        for row, column, text in self._cells():
            table[first + row][1 + column] = text
        widths = [max(len(line[place]) for line in table) for place in range(len(columns) + 1)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table
        )

    __repr__ = __str__

    def svg(self) -> str:
        """The picture, as SVG: rows and columns of the value, each part with its devices."""
        rows, columns = self._grid()
        cells = list(self._cells())
        cell = max([WIDTH, *[8 * len(text) for _, _, text in cells]])
        left = 8 * max([len(_span(bounds)) for bounds in rows]) + 8
        width, height = left + cell * len(columns) + 1, HEAD + HEIGHT * len(rows) + 1
        marks = [
            f'<text x="{left + cell * place + cell / 2}" y="{HEAD - 6}" class="bound">{_span(bounds)}</text>'
            for place, bounds in enumerate(columns)
            if len(self.shape) > 1
        ]
        marks += [
            f'<text x="{left / 2}" y="{HEAD + HEIGHT * place + HEIGHT / 2 + 4}" class="bound">{_span(bounds)}</text>'
            for place, bounds in enumerate(rows)
        ]
        kinds = list(dict.fromkeys(text for _, _, text in cells))
        for row, column, text in cells:
            x, y = left + cell * column, HEAD + HEIGHT * row
            shade = SHADES[kinds.index(text) % len(SHADES)]
            marks.append(f'<rect x="{x}" y="{y}" width="{cell}" height="{HEIGHT}" fill="{shade}" stroke="#445"/>')
            marks.append(f'<text x="{x + cell / 2}" y="{y + HEIGHT / 2 + 4}">{html.escape(text)}</text>')
        style = "text{font:12px sans-serif;text-anchor:middle;fill:#223}.bound{font:11px monospace;fill:#667}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img"><title>{html.escape(str(self))}</title>'
            f"<style>{style}</style>{''.join(marks)}</svg>"
        )

    def _repr_svg_(self) -> str:
        return self.svg()


def visualize(x: Tensor) -> Holders:
    """Which device holds which part of a tensor, as `jax.debug.visualize_array_sharding`.

    Raises:
        ShardingError: for a tensor that is not on a device (``MT204``).

    Example:
        >>> import minitorch as mt
        >>> mesh = mt.sharding.Mesh((1,), ("data",))
        >>> print(mt.sharding.visualize(mt.sharding.shard(mt.ones(4, 2), mesh, ("data", None))))
             0:2
        0:4  device 0
    """
    value = x._value
    if not isinstance(value, Remote):
        raise ShardingError(
            "MT204",
            f"{x.spec} is in the memory of Python, and of no device",
            fix="divide it first: mt.sharding.shard(x, mesh, axes)",
        )
    held: dict[Part, list[int]] = {}
    for device, index in value.home.devices_indices_map(x.shape).items():
        part = tuple([each.indices(length)[:2] for each, length in zip(index, x.shape, strict=True)])
        held.setdefault(part, []).append(device.id)
    assert math.prod(x.shape) == sum(math.prod([high - low for low, high in part]) for part in held)
    return Holders(x.shape, tuple((part, tuple(sorted(devices))) for part, devices in sorted(held.items())))


def _bounds(part: Part, dim: int) -> tuple[int, int]:
    return part[dim] if dim < len(part) else (0, 1)


def _span(bounds: tuple[int, int]) -> str:
    return f"{bounds[0]}:{bounds[1]}"


def _numbers(devices: tuple[int, ...]) -> str:
    """``0-3`` for neighbours, ``0, 2, 4`` for others."""
    if len(devices) > 2 and devices == tuple(range(devices[0], devices[-1] + 1)):
        return f"{devices[0]}-{devices[-1]}"
    return ", ".join(map(str, devices))
