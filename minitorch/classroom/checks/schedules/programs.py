"""Schedules: legal if the engine's laws allow every rewrite, and graded by the accesses to memory of what comes out."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np

from ....compiler.loop_ir.loops import LoopKernel, Nest
from ....compiler.loop_ir.source import compiled, printed
from ....compiler.loop_ir.tree import Kind, Procedure, loops
from ....compiler.scheduling import rewrites
from ....errors import ScheduleError
from ...asks import schedules as asks
from ...asks.plain import described
from ...asks.schedules import chain, product, source
from ..golf import Golf, played
from ..smaller import indented
from ..task import Task, Verdict, cases_with
from .accesses import LANES, REGISTERS, Counts, counts

Case = tuple[str, tuple[int, ...]]

ACCEPTED = "accepted, on vectors"
NAMED = re.compile(r"([A-Za-z]\w{0,30}(@\w{1,30})?(#\d)?)?", re.ASCII)  # a loop may be named by what is stored in it
LONGEST = 4096  # iterations of a part
MOST = 60  # rewrites of a schedule
KNOWN = (
    "distribute", "fuse", "hoist", "in_registers", "jam", "lift", "pack", "parallelise", "peel", "place", "reorder",
    "split", "split_reduction", "unroll", "vectorise",
)  # fmt: skip


def _about(case: Case) -> str:
    return f"a loop over {case[1][0]}" if len(case[1]) == 1 else f"a product of {' by '.join(map(str, case[1]))}"


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


def applied(definition: Procedure, answer: Any) -> Procedure | str:
    """The program after a schedule, or why there is none."""
    if type(answer) is not list or len(answer) > MOST:
        given = answer if type(answer) is str else described(answer)
        return f"a list of rewrites was expected, at most {MOST}, and it is {given}"
    program = definition
    for number, text in enumerate(answer, 1):
        try:
            program = read(text)(program)
        except ScheduleError as error:
            said, *more = str(error).splitlines()
            why = next((line.strip() for line in more if line.strip().startswith("why:")), "")
            return f"rewrite {number} is refused: {said.removeprefix('MT603: ')}; {why}; the program is then\n" + (
                indented(source(program))
            )
        except (TypeError, ValueError, AttributeError, SyntaxError, KeyError, IndexError) as error:
            return f"rewrite {number}{f', {text}' if type(text) is str else ''}: {error}"
        if sum(1 for _ in loops(program.body)) > 200:
            return f"after rewrite {number} the program has more than 200 loops"
    return program


def differs(program: Procedure) -> str | None:
    """Why a program does not compute what its definition does; None if it does. The laws say that it does."""
    text = printed(LoopKernel("kernel", program.buffers, (Nest((), ()),)), [program])
    random = np.random.default_rng(0)
    arrays = [random.integers(-4, 5, buffer.shape).astype(np.float32) for buffer in program.buffers]
    out = np.full(program.buffers[2].shape, np.nan, np.float32)
    compiled(text)(arrays[0].ravel(), arrays[1].ravel(), flat := out.ravel())
    right = arrays[0] * arrays[0] + arrays[1] if out.ndim == 1 else arrays[0] @ arrays[1]
    return None if np.array_equal(flat, right.ravel()) else "the program computes other numbers than its definition"


def examined(definition: Procedure, answer: Any) -> tuple[Procedure, Counts] | str:
    """The program of a schedule and its accesses, or why it does not count."""
    program = applied(definition, answer)
    if isinstance(program, str):
        return program
    try:
        found = counts(program)
    except TypeError as error:
        return str(error)
    if reason := differs(program):
        return f"{reason}\n{indented(source(program))}"
    return program, found


def _on_vectors(program: Procedure) -> str | None:
    """Why a program is not what was asked for at the least; None if some loop runs on vectors."""
    if any(loop.kind is Kind.VECTOR for loop in loops(program.body)):
        return None
    return f"no loop runs on vectors\n{indented(source(program))}"


def _spills(found: Counts, program: Procedure) -> str | None:
    if found.registers <= REGISTERS:
        return None
    single = "".join(f"; each number of {name} takes one, as it is taken alone" for name in found.single)
    return (
        f"the program holds {found.registers} vector registers at once, and the machine has {REGISTERS}: "
        f"the rest would be on the stack{single}\n{indented(source(program))}"
    )


def _too_many(found: Counts, most: int, program: Procedure) -> str | None:
    """Why a program does not access memory by vectors of neighbours; None if it does."""
    if found.accesses <= most:
        return None
    widths = [loop.variable.extent for loop in loops(program.body) if loop.kind is Kind.VECTOR]
    other = next((f"a vector has {width} lanes, and eight fit" for width in widths if width != LANES), "")
    why = "; ".join(found.apart) or other or "some loops do not run on vectors, or totals are stored too often"
    return f"{found.accesses} loads and stores, and {most} are enough with vectors of eight neighbours: {why}\n" + (
        indented(source(program))
    )


# --- chain_schedule ---------------------------------------------------------------------------------------------

CHAIN = {ACCEPTED: 5, "vectors": 10}


def _chains(seed: int) -> list[Case]:
    random = Random(seed)
    return [(part, (8 * random.randint(4, 20),)) for part in CHAIN for _ in range(2)]


def _wrong_chain(case: Case, answer: Any) -> str | None:
    part, (length,) = case
    found = examined(chain(length), answer)
    if isinstance(found, str):
        return found
    if (reason := _on_vectors(found[0])) or part == ACCEPTED:
        return reason
    return _too_many(found[1], 3 * length // 8, found[0])


chain_schedule = Task(
    asks.chain_schedule, CHAIN, _chains, cases_with(CHAIN, _wrong_chain, with_part=True, about=_about)
)

# --- vector_schedule --------------------------------------------------------------------------------------------

VECTOR = {ACCEPTED: 5, "vectors of neighbours": 20}


def _products(seed: int) -> list[Case]:
    random = Random(seed)
    sizes = [(random.randint(2, 5), 8 * random.randint(2, 4), random.randint(3, 9)) for _ in range(2)]
    return [(part, size) for part in VECTOR for size in sizes]


def _wrong_vectors(case: Case, answer: Any) -> str | None:
    part, (rows, columns, inner) = case
    found = examined(product(rows, columns, inner), answer)
    if isinstance(found, str):
        return found
    if (reason := _on_vectors(found[0])) or part == ACCEPTED:
        return reason
    # Of a vector of the result: two loads, a load and a store of the total in each step; zeros, and copying it out.
    most = rows * columns // 8 * (4 * inner + 3)
    return _too_many(found[1], most, found[0]) or _spills(found[1], found[0])


vector_schedule = Task(
    asks.vector_schedule, VECTOR, _products, cases_with(VECTOR, _wrong_vectors, with_part=True, about=_about)
)

# --- product_schedule -------------------------------------------------------------------------------------------

PRODUCT = {ACCEPTED: 5, "few accesses": 25}
HOLE = (12, 48, 16)

# Best: tiles of 4 rows by 3 vectors whose totals never are in memory: 6 tiles * 16 steps * 7 loads, and 72 stores. Par:
# 6 rows by 2 vectors, with a copy of the totals on the stack. Start: the tile that the notebook shows, as it is.
ACCESSES = Golf("accesses", start=1944, par=984, best=744)


def _tiles(seed: int) -> list[Case]:
    random = Random(seed)
    size = (12 * random.randint(1, 2), 48, random.randint(4, 12))
    return [(ACCEPTED, size), ("few accesses", HOLE)]


def _wrong_product(case: Case, answer: Any) -> str | None:
    part, (rows, columns, inner) = case
    found = examined(product(rows, columns, inner), answer)
    if isinstance(found, str):
        return found
    if reason := _on_vectors(found[0]):
        return reason
    return _spills(found[1], found[0]) if part == "few accesses" else None


def _judge_product(cases: list[Case], answers: Any) -> Mapping[str, Verdict]:
    said = cases_with(PRODUCT, _wrong_product, with_part=True, about=_about)(cases, answers)
    found = examined(product(*HOLE), answers[-1])
    accesses = [found[1].accesses] if not isinstance(found, str) else []
    return played(said, "few accesses", ACCESSES, accesses, after=[ACCEPTED])


product_schedule = Task(asks.product_schedule, PRODUCT, _tiles, _judge_product)
