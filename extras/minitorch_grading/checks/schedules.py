"""Exercise 08, schedules: places of elements in tiles, packing, and schedules graded by counted accesses."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import numpy as np

from minitorch.compiler.loop_ir.loops import LoopKernel, Nest
from minitorch.compiler.loop_ir.source import compiled, printed
from minitorch.compiler.loop_ir.tree import Kind, Procedure, loops
from minitorch.compiler.scheduling import rewrites
from minitorch.errors import ScheduleError

from ..harness import schedules as harness
from ..harness.schedules import chain, product, source
from .golf import Golf
from .machines.accesses import LANES, REGISTERS, Counts, counts
from .reasons import Wrong, expect, hint, indented, recognised, saying
from .samples import in_parts
from .task import Cases, Task

# --- address: an element in a matrix of tiles ---------------------------------------------------------------------

FIRST_TILE, FIRST_ROW, ANY_TILE = "the first tile", "the first row of tiles", "any tile"
ADDRESS = {FIRST_TILE: 3, FIRST_ROW: 5, ANY_TILE: 7}


def _elements(random: Random) -> Cases:
    height, width = random.choice((2, 3, 4, 6)), random.choice((4, 5, 8))
    across, down = random.randint(3, 5), random.randint(2, 4)  # the example has two tiles in a row
    i = random.randrange(1, height)
    places = [
        *((FIRST_TILE, i, j) for j in (0, 1, width - 1)),
        *((FIRST_ROW, i, width + j) for j in (0, 1, width - 1)),
        (ANY_TILE, 0, width),
        (ANY_TILE, height, 0),
        *((ANY_TILE, random.randrange(down * height), random.randrange(across * width)) for _ in range(4)),
    ]
    return [(part, (i, j, across * width, height, width)) for part, i, j in places]


def _about_element(case: tuple[int, ...]) -> str:
    i, j, columns, height, width = case
    return f"element ({i}, {j}) with {columns} columns, in tiles of {height} by {width}"


def _wrong_address(part: str, case: tuple[int, ...], answer: Any) -> str | None:
    i, j, columns, height, width = case
    tiles, size = columns // width, height * width
    (down, row), (across, column) = divmod(i, height), divmod(j, width)
    inside = row * width + column
    begins = (down * tiles + across) * size
    expect(answer, int, "a whole number")
    if answer == begins + inside:
        return None
    known = (
        ("that is its place in a matrix without tiles", [i * columns + j]),
        ("that is its place inside of its tile: the tiles before it come first", [inside]),
        ("inside of a tile the rows follow each other, and not the columns", [begins + column * height + row]),
        (f"a row of tiles has {tiles} of them", [inside + (down * n + across) * size for n in (1, 2, columns)]),
    )
    return (
        f"tile {begins // size} is in row {down} and column {across} of tiles and begins at {begins}; row {row} and "
        f"column {column} of it are {inside} further: it is at {begins + inside}, and not at {answer}"
    ) + recognised(known, lambda wrong: answer in wrong)


address = Task(harness.address, ADDRESS, _elements, _wrong_address, about=_about_element)

# --- pack_rows: the panels of rows that a product reads from front to back ----------------------------------------

ORDER, SEVERAL, LAST = "the order", "several panels", "a last panel that is not full"
PACK = {ORDER: 6, SEVERAL: 5, LAST: 4}
Panels = tuple[list[list[float]], int]  # a matrix, and the height of a panel


def _matrices(random: Random) -> Cases:
    height = random.choice((2, 3, 4))
    sizes = {
        ORDER: [(height, random.randint(2, 4), height), (3, 4, 3)],
        SEVERAL: [(3 * height, 3, height), (4, 5, 2)],
        LAST: [(2 * height + 1, 3, height), (1, 2, 4)],
    }

    def matrix(size: tuple[int, int, int]) -> Panels:
        rows, columns, panel = size
        return [[10.0 * (i + 1) + j + random.randrange(3) / 4 for j in range(columns)] for i in range(rows)], panel

    return in_parts(sizes, matrix)


def panels(matrix: list[list[float]], height: int) -> list[float]:
    """The elements in the order in which they are read."""
    return [
        matrix[row][column] if row < len(matrix) else 0.0
        for top in range(0, len(matrix), height)
        for column in range(len(matrix[0]))
        for row in range(top, top + height)
    ]


def _about_panels(case: Panels) -> str:
    return f"panels of {case[1]} rows of {case[0]}"


def _wrong_panels(part: str, case: Panels, answer: Any) -> str | None:
    matrix, right = case[0], panels(*case)
    expect(answer, list[int | float], "a list of numbers")
    if answer == right:
        return None
    flat = [each for row in matrix for each in row]
    off = next((at for at, (one, other) in enumerate(zip(answer, right, strict=False)) if one != other), 0)
    return hint(
        len(answer) == len(flat) != len(right),
        "the last panel is as large as the others: zeros take the place of rows that are not there",
        len(answer) != len(right),
        f"it has {len(answer)} numbers and should have {len(right)}",
        answer[: len(flat)] == flat,
        "that is row by row: the loop over the columns is outside, so the rows of a panel lie side by side",
        answer == [row[column] for column in range(len(matrix[0])) for row in matrix],
        "that is column by column of the whole matrix: a panel ends after its rows",
        True,
        f"number {off} is {(answer or [0])[off]} and should be {right[off]}",
    ).removeprefix("; ")


pack_rows = Task(harness.pack_rows, PACK, _matrices, _wrong_panels, about=_about_panels)

# --- schedules: legal if the engine's laws allow every rewrite, and graded by the accesses of what comes out -------

ACCEPTED = "accepted, on vectors"
NAMED = re.compile(r"([A-Za-z]\w{0,30}(@\w{1,30})?(#\d)?)?", re.ASCII)  # a loop may be named by what is stored in it
LONGEST = 4096  # iterations of a part
MOST = 60  # rewrites of a schedule
KNOWN = (
    "distribute", "fuse", "hoist", "in_registers", "jam", "lift", "pack", "parallelise", "place", "reorder",
    "split", "split_reduction", "unroll", "vectorise",
)  # fmt: skip


def read(text: Any) -> rewrites.Rewrite:
    """A rewrite from its text.

    Raises:
        ValueError: for anything else.
    """
    if type(text) is not str:
        raise ValueError("a schedule is a list of rewrites, such as split('i0', 8, 'it', 'r')")
    tree = ast.parse(text, mode="eval").body
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise ValueError("a rewrite is a call")
    if tree.func.id not in KNOWN:
        raise ValueError(f"{tree.func.id} is none of the rewrites of this exercise: {', '.join(KNOWN)}")
    given = [_argument(each) for each in tree.args]
    named = {each.arg or "": _argument(each.value) for each in tree.keywords}
    found: rewrites.Rewrite = getattr(rewrites, tree.func.id)(*given, **named)
    return found


def _argument(tree: ast.expr) -> str | int | bool:
    """An argument of a rewrite: the program that comes out is run, so a name is a name and nothing else."""
    found = ast.literal_eval(tree)
    if isinstance(found, str) and NAMED.fullmatch(found):
        return found
    if isinstance(found, int) and 0 <= found <= LONGEST:
        return found
    raise ValueError(f"an argument is a name, or a whole number up to {LONGEST}, and not {found!r}")


def applied(definition: Procedure, answer: Any) -> Procedure:
    """The program after a schedule."""
    expect(answer, list, "a list of rewrites")
    if len(answer) > MOST:
        raise Wrong(f"{len(answer)} rewrites, and {MOST} are the most")
    program = definition
    for number, text in enumerate(answer, 1):
        try:
            program = read(text)(program)
        except ScheduleError as error:
            said, *more = str(error).splitlines()
            why = next((line.strip() for line in more if line.strip().startswith("why:")), "")
            refused = f"rewrite {number} is refused: {said.removeprefix('MT603: ')}; {why}; the program is then"
            raise _with_source(refused, program) from None
        except (TypeError, ValueError, AttributeError, SyntaxError, KeyError, IndexError) as error:
            raise Wrong(f"rewrite {number}{f', {text}' if type(text) is str else ''}: {error}") from None
        if sum(1 for _ in loops(program.body)) > 200:
            raise Wrong(f"after rewrite {number} the program has more than 200 loops")
    return program


def _with_source(reason: str, program: Procedure) -> Wrong:
    return Wrong(f"{reason}\n{indented(source(program))}")


def differs(program: Procedure) -> bool:
    """Whether a program computes other numbers than its definition. The laws say that it does not."""
    text = printed(LoopKernel("kernel", program.buffers, (Nest((), ()),)), [program])
    random = np.random.default_rng(0)
    arrays = [random.integers(-4, 5, buffer.shape).astype(np.float32) for buffer in program.buffers]
    out = np.full(program.buffers[2].shape, np.nan, np.float32)
    compiled(text)(arrays[0].ravel(), arrays[1].ravel(), flat := out.ravel())
    right = arrays[0] * arrays[0] + arrays[1] if out.ndim == 1 else arrays[0] @ arrays[1]
    return not np.array_equal(flat, right.ravel())


def examined(definition: Procedure, answer: Any) -> tuple[Procedure, Counts]:
    """The program of a schedule, some loop of which runs on vectors, and its accesses."""
    program = applied(definition, answer)
    with saying(TypeError):
        found = counts(program)
    if differs(program):
        raise _with_source("the program computes other numbers than its definition", program)
    if not any(loop.kind is Kind.VECTOR for loop in loops(program.body)):
        raise _with_source("no loop runs on vectors", program)
    return program, found


def _judged(
    definition: Callable[..., Procedure], most: Callable[..., int] | None = None, spills: bool = True
) -> Callable[[str, tuple[int, ...], Any], str | None]:
    """A check of schedules: they are accepted, leave as few accesses as `most` says, and do not spill."""

    def wrong(part: str, sizes: tuple[int, ...], answer: Any) -> None:
        program, found = examined(definition(*sizes), answer)
        if part == ACCEPTED:
            return
        if most is not None:
            _check_accesses(program, found, most(*sizes))
        if spills and found.registers > REGISTERS:
            single = "".join(f"; each number of {name} takes one, as it is taken alone" for name in found.single)
            held = f"the program holds {found.registers} vector registers at once, and the machine has {REGISTERS}"
            raise _with_source(f"{held}: the rest would be on the stack{single}", program)

    return wrong


def _check_accesses(program: Procedure, found: Counts, most: int) -> None:
    """See that a program accesses memory by vectors of neighbours."""
    if found.accesses <= most:
        return
    widths = [loop.variable.extent for loop in loops(program.body) if loop.kind is Kind.VECTOR]
    other = next((f"a vector has {width} lanes, and eight fit" for width in widths if width != LANES), "")
    why = "; ".join(found.apart) or other or "some loops do not run on vectors, or totals are stored too often"
    enough = f"{most} are enough with vectors of eight neighbours"
    raise _with_source(f"{found.accesses} loads and stores, and {enough}: {why}", program)


def _about_loops(sizes: Iterable[int]) -> str:
    (first, *others) = sizes
    return f"a product of {' by '.join(map(str, (first, *others)))}" if others else f"a loop over {first}"


# --- chain_schedule -----------------------------------------------------------------------------------------------

CHAIN = {ACCEPTED: 5, "vectors": 10}


def _lengths(random: Random) -> Cases:
    return [(part, (8 * random.randint(4, 20),)) for part in CHAIN for _ in range(2)]


_wrong_chain = _judged(chain, lambda length: 3 * length // 8, spills=False)
chain_schedule = Task(harness.chain_schedule, CHAIN, _lengths, _wrong_chain, about=_about_loops)

# --- vector_schedule ----------------------------------------------------------------------------------------------

VECTOR = {ACCEPTED: 5, "vectors of neighbours": 20}


def _products(random: Random) -> Cases:
    sizes = [(random.randint(2, 5), 8 * random.randint(2, 4), random.randint(3, 9)) for _ in range(2)]
    return [(part, size) for part in VECTOR for size in sizes]


# Of a vector of the result: two loads, a load and a store of the total in each step; zeros, and copying it out.
_wrong_vectors = _judged(product, lambda rows, columns, inner: rows * columns // 8 * (4 * inner + 3))
vector_schedule = Task(harness.vector_schedule, VECTOR, _products, _wrong_vectors, about=_about_loops)

# --- product_schedule ---------------------------------------------------------------------------------------------

FEW = "few accesses"
PRODUCT = {ACCEPTED: 5, FEW: 25}

# Of the product of 12 by 48 by 16. Best: tiles of 4 rows by 3 vectors whose totals never are in memory: 6 tiles * 16
# steps * 7 loads, and 72 stores. Par: 6 rows by 2 vectors, with a copy of the totals on the stack. Start: the tile that
# the notebook shows, as it is.
ACCESSES = Golf("accesses", start=1944, par=984, best=744)


def _tiles(random: Random) -> Cases:
    return [(ACCEPTED, (12 * random.randint(1, 2), 48, random.randint(4, 12))), (FEW, (12, 48, 16))]


product_schedule = Task(
    harness.product_schedule,
    PRODUCT,
    _tiles,
    _judged(product),
    about=_about_loops,
    golf={FEW: ACCESSES},
    count=lambda part, sizes, answer: counts(applied(product(*sizes), answer)).accesses,
)

TASKS = (address, chain_schedule, pack_rows, vector_schedule, product_schedule)
