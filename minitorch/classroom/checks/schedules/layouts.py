"""Index arithmetic: an element in a matrix of tiles, and the panels of rows that a product reads from front to back."""

from __future__ import annotations

from random import Random
from typing import Any

from ...asks import schedules as asks
from ...asks.plain import described
from ..task import Task, cases_with

Case = tuple[str, tuple[Any, ...]]

# --- address ----------------------------------------------------------------------------------------------------

ADDRESS = {"the first tile": 3, "the first row of tiles": 5, "any tile": 7}


def place(i: int, j: int, columns: int, height: int, width: int) -> int:
    """Where an element lies."""
    tile = i // height * (columns // width) + j // width
    return tile * height * width + i % height * width + j % width


def _elements(seed: int) -> list[Case]:
    random = Random(seed)
    height, width = random.choice((2, 3, 4, 6)), random.choice((4, 5, 8))
    across, down = random.randint(2, 4), random.randint(2, 4)
    found: list[Case] = []
    for j in (0, 1, width - 1):
        i = random.randrange(1, height)
        found.append(("the first tile", (i, j, across * width, height, width)))
        found.append(("the first row of tiles", (i, width + j, across * width, height, width)))
    found.append(("any tile", (0, width, across * width, height, width)))
    found.append(("any tile", (height, 0, across * width, height, width)))
    for _ in range(4):
        where = random.randrange(down * height), random.randrange(across * width)
        found.append(("any tile", (*where, across * width, height, width)))
    return found


def _wrong_address(arguments: tuple[int, ...], answer: Any) -> str | None:
    i, j, columns, height, width = arguments
    right = place(*arguments)
    if type(answer) is not int:
        return f"{_about(arguments)}: a whole number was expected, and it is {described(answer)}"
    if answer == right:
        return None
    down, across = i // height, j // width
    inside = i % height * width + j % width
    hints = (
        (i * columns + j, "that is its place in a matrix without tiles"),
        (inside, "that is its place inside of its tile: the tiles before it come first"),
        (
            (down * (columns // width) + across) * height * width + j % width * height + i % height,
            "inside of a tile the rows follow each other, and not the columns",
        ),
        ((down + across) * height * width + inside, f"a row of tiles has {columns // width} of them"),
        ((down * columns + across) * height * width + inside, f"a row of tiles has {columns // width} of them"),
    )
    why = next((f"; {hint}" for number, hint in hints if number == answer), "")
    tile = right // (height * width)
    return (
        f"{_about(arguments)}: tile {tile} is in row {down} and column {across} of tiles and begins at "
        f"{tile * height * width}; row {i % height} and column {j % width} of it are {inside} further: it is at {right}"
        f", and not at {answer}{why}"
    )


def _about(arguments: tuple[int, ...]) -> str:
    i, j, columns, height, width = arguments
    return f"element ({i}, {j}) with {columns} columns, in tiles of {height} by {width}"


address = Task(asks.address, ADDRESS, _elements, cases_with(ADDRESS, _wrong_address, about=_about))

# --- pack_rows --------------------------------------------------------------------------------------------------

PACK = {"the order": 6, "several panels": 5, "a last panel that is not full": 4}


def panels(matrix: list[list[float]], height: int) -> list[float]:
    """The elements in the order in which they are read."""
    found = []
    for top in range(0, len(matrix), height):
        for column in range(len(matrix[0])):
            for row in range(top, top + height):
                found.append(matrix[row][column] if row < len(matrix) else 0.0)
    return found


def _matrices(seed: int) -> list[Case]:
    random = Random(seed)

    def matrix(rows: int, columns: int) -> list[list[float]]:
        return [[float(10 * (i + 1) + j + random.randrange(3) / 4) for j in range(columns)] for i in range(rows)]

    height = random.choice((2, 3, 4))
    return [
        ("the order", (matrix(height, random.randint(2, 4)), height)),
        ("the order", (matrix(3, 4), 3)),
        ("several panels", (matrix(3 * height, 3), height)),
        ("several panels", (matrix(4, 5), 2)),
        ("a last panel that is not full", (matrix(2 * height + 1, 3), height)),
        ("a last panel that is not full", (matrix(1, 2), 4)),
    ]


def _of(arguments: tuple[list[list[float]], int]) -> str:
    return f"panels of {arguments[1]} rows of {arguments[0]}"


def _wrong_panels(arguments: tuple[list[list[float]], int], answer: Any) -> str | None:
    matrix, height = arguments
    right = panels(matrix, height)
    where = f"; {_of(arguments)}"
    if type(answer) is not list or not all(type(each) in (int, float) for each in answer):
        return f"a list of numbers was expected, and it is {described(answer)}{where}"
    if answer == right:
        return None
    flat = [each for row in matrix for each in row]
    if len(answer) == len(flat) != len(right):
        why = "the last panel is as large as the others: zeros take the place of rows that are not there"
    elif len(answer) != len(right):
        why = f"it has {len(answer)} numbers and should have {len(right)}"
    elif answer[: len(flat)] == flat:
        why = "that is row by row: the loop over the columns is outside, so the rows of a panel lie side by side"
    elif answer == [row[column] for column in range(len(matrix[0])) for row in matrix]:
        why = "that is column by column of the whole matrix: a panel ends after its rows"
    else:
        at = next(i for i, (one, other) in enumerate(zip(answer, right, strict=True)) if one != other)
        why = f"number {at} is {answer[at]} and should be {right[at]}"
    return f"{why}{where}"


pack_rows = Task(asks.pack_rows, PACK, _matrices, cases_with(PACK, _wrong_panels, about=_of))
