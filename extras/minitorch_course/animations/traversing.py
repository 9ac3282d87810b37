"""`traversal`: the order in which loops visit the elements of a matrix product, as frames, one for each multiply-add.

The loops are those of the engine: the Python of a kernel's step runs, on arrays that note each access. Beside each
order stands a small cache, which holds the lines that were used last, and the number of lines that it had to fetch.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minitorch.compiler.kernels.steps import Step
from minitorch.compiler.loop_ir.source import compiled

from .frames import Frames, rectangle, words

CELL, GAP, TOP, LEFT, KEY = 12, 16, 24, 20, 22  # pixels
EMPTY, HELD, BEGUN, DONE, NOW = "none", "#8cc8ee", "#f5c662", "#7fcfb4", "#D55E00"
EDGE = "#a0a0ac"
LEGEND = (  # of cells: fill, edge, its width, and what it means
    (HELD, EDGE, 1.0, "in the cache"),
    (BEGUN, EDGE, 1.0, "sum begun"),
    (DONE, EDGE, 1.0, "sum complete"),
    (EMPTY, NOW, 2.5, "now"),
)
STILL = (0.05, 0.35, 0.8)  # of all multiply-adds


@dataclass(frozen=True)
class Order:
    """What a program visits.

    Attributes:
        visits: for each multiply-add the elements of the arrays that it reads, and of the result that it is a term of.
        fetched: after each of them, how many lines the cache has fetched so far.
        held: after each of them, the lines in the cache: the number of the array, and of the line.
    """

    visits: tuple[tuple[int, ...], ...]
    fetched: tuple[int, ...]
    held: tuple[frozenset[tuple[int, int]], ...]


class _Array:
    """An argument: an element is a pair of this array's number and its place, and a product notes the places."""

    def __init__(self, number: int, noted: list[Any]) -> None:
        self.number, self.noted = number, noted

    def __getitem__(self, place: int) -> _Terms:
        return _Terms([], {self.number: place}, self.noted)


class _Terms:
    """A number that knows the multiply-adds which it is the sum of."""

    def __init__(self, terms: list[int], places: dict[int, int], noted: list[Any]) -> None:
        self.terms, self.places, self.noted = terms, places, noted

    def __mul__(self, other: _Terms) -> _Terms:
        self.noted.append(self.places | other.places)
        return _Terms([len(self.noted) - 1], {}, self.noted)

    def __add__(self, other: _Terms) -> _Terms:
        return _Terms(self.terms + other.terms, {}, self.noted)

    def __radd__(self, zero: float) -> _Terms:
        return self


class _Numpy:
    """In place of NumPy: arrays of the program itself hold `_Terms`."""

    @staticmethod
    def float32(value: float) -> float:
        return value

    @staticmethod
    def empty(size: int, dtype: Any) -> list[Any]:
        return [None] * size


def order(step: Step, lines: int, line: int) -> Order:
    """Run the loops of a step, and note what they visit.

    Args:
        step: of a kernel that is one matrix product.
        lines: that the cache holds; the one that was not used for the longest time makes room.
        line: elements of a line.
    """
    noted: list[dict[int, int]] = []
    result: dict[int, _Terms] = {}
    kernel = compiled(re.sub("^import .*", "", step.source), np=_Numpy)
    kernel(_Array(0, noted), _Array(1, noted), result)
    element = {term: place for place, total in result.items() for term in total.terms}
    cache: OrderedDict[tuple[int, int], None] = OrderedDict()
    fetched, counts, held = 0, [], []
    for places in noted:
        for number, place in places.items():
            key = number, place // line
            fetched += key not in cache
            cache[key] = None
            cache.move_to_end(key)
            if len(cache) > lines:
                cache.popitem(last=False)
        counts.append(fetched)
        held.append(frozenset(cache))
    visits = tuple((places[0], places[1], element[number]) for number, places in enumerate(noted))
    return Order(visits, tuple(counts), tuple(held))


@dataclass(frozen=True)
class Traversal:
    """The orders of some programs for the same product, beside each other.

    Attributes:
        orders: for each program, by its name.
        shapes: of the two operands and the result.
        lines: that the cache holds.
        line: elements of a line.
    """

    orders: Mapping[str, Order]
    shapes: tuple[tuple[int, ...], ...]
    lines: int
    line: int

    @property
    def fetched(self) -> dict[str, int]:
        """How many lines the cache fetches in each program."""
        return {name: order.fetched[-1] for name, order in self.orders.items()}

    def __str__(self) -> str:
        lines = [f"a cache of {self.lines} lines of {self.line} numbers"]
        for name, order in self.orders.items():
            first = ", ".join(map(self._told, order.visits[:2]))
            lines.append(f"{name}: {len(order.visits)} multiply-adds, {order.fetched[-1]} lines fetched; {first}, ...")
        return "\n".join(lines)

    __repr__ = __str__

    def _told(self, visit: tuple[int, ...]) -> str:
        a, b, c = (
            f"{name}[{place // shape[1]},{place % shape[1]}]"
            for name, place, shape in zip("ABC", visit, self.shapes, strict=True)
        )
        return f"{c} += {a} * {b}"

    @property
    def _size(self) -> tuple[int, int]:
        (_, inner), _, (rows, columns) = self.shapes
        return LEFT + CELL * (inner + columns) + 2 * GAP, TOP + CELL * (inner + rows) + 2 * GAP

    def _corners(self) -> list[tuple[float, float]]:
        """Of A, B and C: a row of A and a column of B meet in the element of C."""
        inner = CELL * self.shapes[0][1]
        x, y = LEFT + inner + GAP, TOP + inner + GAP
        return [(LEFT, y), (x, TOP), (x, y)]

    def _one(self, name: str, number: int) -> str:
        """A program after so many multiply-adds, and the next one."""
        order, corners = self.orders[name], self._corners()
        marks = [words(LEFT, 14, name, "title")]
        for letter, (x, y), (rows, columns) in zip("ABC", corners, self.shapes, strict=True):
            marks.append(rectangle(x, y, CELL * columns, CELL * rows, EMPTY, EDGE))
            marks.append(words(x - 9, y + 10, letter, "small"))
        for array, line in sorted(order.held[number]):
            (x, y), columns = corners[array], self.shapes[array][1]
            row, column = divmod(line * self.line, columns)
            marks.append(rectangle(x + CELL * column, y + CELL * row, CELL * self.line, CELL, HELD, EDGE))
        terms = [visit[2] for visit in order.visits[: number + 1]]
        for element in sorted(set(terms)):
            fill = DONE if terms.count(element) == self.shapes[0][1] else BEGUN
            marks.append(self._cell(2, element, fill, EDGE))
        marks += [self._cell(array, place, "none", NOW, 2.5) for array, place in enumerate(order.visits[number])]
        told = ("multiply-add", f"{number + 1} of {len(order.visits)}", "lines fetched", f"{order.fetched[number]}")
        for at, text in enumerate(told):
            marks.append(words(LEFT, TOP + 14 + 17 * at, text, "left small" if at % 2 == 0 else "left"))
        return "".join(marks)

    def _cell(self, array: int, place: int, fill: str, stroke: str, wide: float = 1) -> str:
        (x, y), columns = self._corners()[array], self.shapes[array][1]
        return rectangle(x + CELL * (place % columns), y + CELL * (place // columns), CELL, CELL, fill, stroke, wide)

    def _marks(self, number: int) -> str:
        width, height = self._size
        marks = [
            f'<g transform="translate({width * at},0)">{self._one(name, number)}</g>'
            for at, name in enumerate(self.orders)
        ]
        for at, (fill, edge, wide, text) in enumerate(LEGEND):
            x = LEFT + 110 * at
            marks.append(rectangle(x, height, CELL, CELL, fill, edge, wide))
            marks.append(words(x + CELL + 5, height + 10, text, "left small"))
        return "".join(marks)

    @property
    def frames(self) -> Frames:
        """One frame for each multiply-add."""
        count = min(len(order.visits) for order in self.orders.values())
        width, height = self._size
        still = [int(share * count) for share in STILL]
        return Frames(count, (width * len(self.orders), height + KEY), self._marks, str(self), still, 1)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return self.frames._repr_mimebundle_()


def traversal(steps: Mapping[str, Step], lines: int = 8, line: int = 4) -> Traversal:
    """Show in which order programs visit the elements of a matrix product, and what a small cache holds meanwhile.

    The cache has the elements of both operands. The sums have a place of their own.

    Args:
        steps: of kernels for one product ``A @ B``, by name; a small one, since each multiply-add is a frame.
        lines: that the cache holds; the one that was not used for the longest time makes room.
        line: elements of a line, which divide a row.

    Raises:
        ValueError: for a kernel that is anything but a product of two matrices, or whose rows have another length.

    Example:
        >>> import minitorch as mt
        >>> from minitorch import course
        >>> a, b = mt.ones(4, 4), mt.ones(4, 4)
        >>> (kernel,) = mt.jit(lambda a, b: a @ b).ledger(a, b).kernels
        >>> course.traversal({"plain": kernel.steps[0]})
        a cache of 8 lines of 4 numbers
        plain: 64 multiply-adds, 8 lines fetched; C[0,0] += A[0,0] * B[0,0], C[0,0] += A[0,1] * B[1,0], ...
    """
    found = {
        tuple(buffer.shape for buffer in step.kernel.loops.buffers) for step in steps.values() if step.kernel.loops
    }
    shapes = next(iter(found), ())
    if len(found) != 1 or [*map(len, shapes)] != [2, 2, 2]:
        raise ValueError(f"the steps {[*steps]} are not of kernels for one product of two matrices")
    if any(columns % line for _, columns in shapes):
        raise ValueError(f"the rows have {[columns for _, columns in shapes]} elements, and a line has {line}")
    return Traversal({name: order(step, lines, line) for name, step in steps.items()}, shapes, lines, line)
