"""Prepacking: an array that is filled from constants alone is filled once, when the program is loaded.

A product with frozen weights packs the same weights in every call, block by block. `prepack` moves the loops that fill
an array, whichever they are and whatever the array's layout, out of the kernel: loop-invariant code motion, where the
loop is the program's life. Every block gets its own memory.

    for jb:                               right = memory of the program
      right = on the stack                for right_jb:
      for ...: right[...] = w[...]   ──►    for ...: right[size * right_jb + ...] = w[...]
      use right[...]                      for jb:
                                            use right[size * jb + ...]

BLAS libraries have calls for it: ``cblas_sgemm_pack`` in MKL, ``pack_b`` in FBGEMM and oneDNN's packed weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...errors import ScheduleError
from ..loop_ir.expressions import ALWAYS, Inside
from ..loop_ir.index import Index, Variable, extent_of, place_in, variable
from ..loop_ir.loops import Buffer
from ..loop_ir.tree import (
    Accumulate,
    Allocate,
    Block,
    For,
    If,
    Local,
    Place,
    Procedure,
    Statement,
    Store,
    allocated,
    arrays_read,
    arrays_written,
    in_loops,
    loaded,
    statements,
    substituted,
)
from ..target import LINE
from .analysis.finding import local_named, names_of, with_inner, with_local
from .rewrite import check_fresh, refused, step

MOST_GROWN = 8  # times the bytes of the constants: 4-bit numbers as float32; more is of operands that repeat elements

Around = tuple[For | If, ...]


@step
def prepack(procedure: Procedure, array: str) -> Procedure:
    """Fill an array once, when the program is loaded, and not in every call.

    Args:
        procedure: the kernel.
        array: its name, as that of `pack`.

    Law: the loops that fill it read constants alone, each of its elements is the same in every call, and nothing else
    stores to it.
    """
    local = local_named(procedure, array)
    what = f"prepack({array!r})"
    if local.place is not Place.STACK:
        raise refused(f"{what}: it does not lie on the stack", "memory on the stack is filled in every call")
    around, block = _home(procedure.body, local, ())
    fills = tuple(each for each in block if each != Allocate(local) and local in arrays_written((each,)))
    _check_alone(what, local, block, fills)
    _check_constant(what, procedure, local, fills)
    used = frozenset[Variable]().union(*map(_variables, fills))
    outer = [each.variable for each in around if isinstance(each, For) and each.variable in used]
    check_fresh(procedure, *(f"{array}_{each.name}" for each in outer))
    renamed = {each: variable(f"{array}_{each.name}", each.extent) for each in outer}
    size = -(-local.size * local.dtype.itemsize // LINE) * LINE // local.dtype.itemsize
    start = place_in(outer) * size
    new = Local(array, size * extent_of(outer), local.dtype, Place.LOADED)

    def moved(index: Index) -> Index:
        return index + start

    bounds = [one for each in around if isinstance(each, If) for one in each.inside.bounds]
    held = Inside(tuple(one for one in bounds if one[1].variables <= {*outer}))
    once = with_local(fills, local, new, moved)
    once = substituted(once if held == ALWAYS else (If(held, once),), renamed)
    once = in_loops(tuple(Variable(f"{array}_{each.name}", each.extent) for each in outer), once)

    def within(block: Block) -> Block:
        if Allocate(local) in block:
            block = tuple(each for each in block if each != Allocate(local) and each not in fills)
            return with_local(block, local, new, moved)
        return with_inner(block, within, lambda each: local in each.locals)

    _, before, body = loaded(procedure)
    return replace(procedure, body=(*before, Allocate(new), *once, *within(body)))


def _home(block: Block, local: Local, around: Around) -> tuple[Around, Block]:
    """Return the block that allocates an array, and the loops and guards around it."""
    while Allocate(local) not in block:
        inner = next(each for each in block if isinstance(each, (For, If)) and local in each.locals)
        around, block = (*around, inner), inner.body
    return around, block


def _variables(fill: Statement) -> frozenset[Variable]:
    """Return the variables of loops around a statement that it depends on."""
    found, own = set[Variable](), set[Variable]()
    for each in statements((fill,)):
        match each:
            case For():
                own.add(each.variable)
            case If():
                found |= each.inside.variables
            case Store() | Accumulate():
                found |= each.index.variables | each.value.variables
            case _:
                pass
    return frozenset(found - own)


def _check_alone(what: str, local: Local, block: Block, fills: Block) -> None:
    """Refuse an array that is filled with others, or stored to while it is in use."""
    places = [number for number, each in enumerate(block) if each in fills]
    uses = [number for number, each in enumerate(block) if local in arrays_read((each,)) and each not in fills]
    others = arrays_written(fills) - allocated(fills) - {local}
    if others or not fills or (uses and min(uses) < max(places)):
        stored = names_of(others) or "it"
        raise refused(f"{what}: {stored} is stored to where it is used", "what fills an array does nothing else")


def _check_constant(what: str, procedure: Procedure, local: Local, fills: Block) -> None:
    """Refuse an array whose elements differ from call to call."""
    read = arrays_read(fills) - allocated(fills) - {local}
    changing = {each for each in read if isinstance(each, Local) or not procedure.buffers[each].constant}
    if changing or any(isinstance(each, (Store, Accumulate)) and each.value.looks_up for each in statements(fills)):
        others = names_of(changing) or "what is looked up"
        raise refused(
            f"{what}: it is filled from {others}, which may be another one in every call",
            "an array is filled once only if it is filled from constants alone",
        )


def prepacked(procedure: Procedure, candidates: Sequence[str]) -> tuple[list[str], Procedure]:
    """Fill once the arrays that can be, if they do not take much more memory than the constants; with their names."""
    found = []
    for name in candidates:
        try:
            after = prepack(name)(procedure)
        except ScheduleError:
            continue
        arrays, once, _ = loaded(after)
        read = {each for each in arrays_read(once) if isinstance(each, int)}
        there = sum(_nbytes(procedure.buffers[each]) for each in read)
        if sum(each.size * each.dtype.itemsize for each in arrays) <= MOST_GROWN * there + LINE * LINE:
            procedure = after
            found.append(name)
    return found, procedure


def _nbytes(buffer: Buffer) -> int:
    return math.prod(buffer.shape) * buffer.dtype.itemsize
