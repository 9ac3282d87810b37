"""Rewrites of a kernel's local arrays: one element per iteration, in registers, beyond a guard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...loop_ir.expressions import ALWAYS, Expression, Inside, Load, literal
from ...loop_ir.index import NOWHERE, Index, Variable, extent_of, place_in
from ...loop_ir.loops import neutral
from ...loop_ir.tree import (
    Accumulate,
    Allocate,
    Block,
    For,
    If,
    Kind,
    Local,
    Place,
    Procedure,
    Read,
    Statement,
    Store,
    arrays_written,
    mapped,
    statements,
    tidied,
    with_body,
)
from ..analysis.dependences import Access, all_accesses, is_beyond, is_one_to_one, variables_of
from ..analysis.finding import accesses, any_of, local_named, nested, nested_in, with_inner, with_local, with_statements
from ..rewrite import Named, check_fresh, refused, step


@step
def lift(procedure: Procedure, array: str, *names: str, beside: bool = False) -> Procedure:
    """Give every iteration of some loops, an element of an array, in the order of the names (scalar expansion).

    Args:
        procedure: the kernel.
        array: its name.
        names: the loops.
        beside: whether the elements of different iterations lie beside each other, and not those of one iteration.

    Law: the array is allocated in the innermost of the loops, which are perfectly nested. So nothing in it is needed
    from one iteration to the next.
    """
    old = local_named(procedure, array)
    extents = {each.name: each for each in _around(procedure.body, old)}
    variables = [extents[name] for name in names if name in extents]
    count, offset = extent_of(variables), place_in(variables)
    new = replace(old, size=old.size * count)
    place = (lambda at: at * count + offset) if beside else (lambda at: at + offset * old.size)
    if not variables:
        return procedure

    def change(each: For) -> Iterable[Statement] | None:
        if old not in each.locals:
            return None
        _, _, body = nested_in(each, [one.name for one in variables])
        own = [inner for inner in body if isinstance(inner, Allocate) and inner.local == old]
        if not own:
            return None
        moved = with_local(tuple(inner for inner in body if inner not in own), old, new, place)
        return [Allocate(new), *_rebuilt(each, body, moved)]

    return any_of(procedure, [each.name for each in variables], change)


def _rebuilt(loop: For, old: Block, new: Block) -> Block:
    """Return a nest with another innermost body."""

    def within(block: Block) -> Block:
        return new if block is old else with_inner(block, within)

    return (with_body(loop, within(loop.body)),)


@step
def overcompute(procedure: Procedure, *arrays: str, tiles: tuple[str, ...] | None = None) -> Procedure:
    """Compute elements of local arrays beyond the guard too, from operands that may be anything there.

    Args:
        procedure: the kernel.
        arrays: their names.
        tiles: the loops of a tile, all of which is computed if its first element is not beyond the guard; without,
            everything is computed.

    Law: these elements exist, and are never read: each read of one of the arrays has the guard of the write before it,
    or is of elements that are not beyond the guard. A guard that says which terms a sum has stays.
    """
    own: set[int | Local] = {local_named(procedure, array) for array in arrays}
    around = {local: _around(procedure.body, local) for local in own if isinstance(local, Local)}
    uses = [each for each in all_accesses(procedure.body) if each.array in own]

    def outside(block: Block) -> Block:
        found: list[Statement] = []
        for each in block:
            stored = arrays_written(each.body) & own if isinstance(each, If) else set()
            if isinstance(each, If) and stored == arrays_written(each.body) and stored and not _looks_up(each.body):
                terms = [
                    {v for index in accesses(each.body, local) for v in variables_of(index)} | around[local]
                    for local in around
                    if local in stored
                ]
                summed = [
                    one for one in each.inside.bounds if not set(variables_of(one[1])) <= set.intersection(*terms)
                ]
                dropped = Inside(tuple(one for one in each.inside.bounds if one not in summed))
                for local in around:
                    if local in stored:
                        mine = [use for use in uses if use.array == local]
                        writes, reads = [use for use in mine if use.writes], [use for use in mine if not use.writes]
                        _check_unread(writes, reads, dropped, around[local])
                body = unguarded(outside(each.body), dropped)
                left = Inside(tuple(summed))
                for low, index, high in dropped.bounds if tiles is not None else ():
                    first = {one: NOWHERE for one in variables_of(index) if one.name in (tiles or ())}
                    left = left.and_(low, index.substitute(first), high)
                found += (If(left, body),) if left != ALWAYS else body
            else:
                found.append(with_body(each, outside(each.body)) if isinstance(each, (For, If)) else each)
        return tuple(found)

    return replace(procedure, body=tidied(outside(procedure.body)))


def _looks_up(block: Block) -> bool:
    """Return whether memory is read at an index that is data: it may not be one beyond a guard."""
    return any(each.value.looks_up for each in statements(block) if isinstance(each, (Store, Accumulate)))


def _around(block: Block, local: Local) -> set[Variable]:
    """Return the loops around the allocation of an array."""
    for each in block:
        if isinstance(each, (For, If)) and local in each.locals:
            return ({each.variable} if isinstance(each, For) else set()) | _around(each.body, local)
    return set()


def _check_unread(writes: list[Access], reads: list[Access], guard: Inside, around: set[Variable]) -> None:
    """Refuse if an element that is stored to beyond a guard is read, or does not exist."""
    for bound in guard.bounds:
        for each in writes:
            if bound not in each.bounds:
                continue
            what = f"overcompute({each.name!r})"
            assert isinstance(each.array, Local)
            if each.index.bounds[0] < 0 or each.index.bounds[1] >= each.array.size:
                raise refused(
                    f"{what}: beyond {Inside((bound,))}, {each} is outside", "elements beyond the guard exist"
                )
            for read in reads:
                if not is_beyond(each, bound, read, around):
                    raise refused(
                        f"{what}: {read} may be of an element that is beyond {Inside((bound,))}",
                        "elements beyond the guard are read by nobody",
                    )


def unguarded(block: Block, guard: Inside) -> Block:
    """Return a block in which nothing is read where a guard does not hold, instead of the guard."""

    def change(part: Expression) -> Expression:
        if not isinstance(part, Load):
            return part
        mine, inside = set(variables_of(part.index)), part.inside
        for low, index, high in guard.bounds:
            if mine & set(variables_of(index)):
                inside = inside.and_(low, index, high)
        return replace(part, inside=inside)

    return mapped(block, change)


@step
def in_registers(procedure: Procedure, array: str, around: str, name: str = "", anew: bool = False) -> Procedure:
    """Keep the elements of a local array that a loop adds to in registers while it runs.

    They are loaded before the loop, unless they are stored to just before, and stored after it.

    Args:
        procedure: the kernel.
        array: the local array.
        around: the loop.
        name: of the registers.
        anew: whether a sum starts at zero in the registers, and is added to the array after the loop. So its rounding
            error grows with the terms of a block and the number of blocks, not with all terms (Higham 1993).

    Law: which elements they are does not change with the loop, and the loops inside of it are unrolled or vectors. If a
    sum starts anew, nothing else is done to the array in the loop.
    """
    local = local_named(procedure, array)
    name = name or f"{array}_registers"
    check_fresh(procedure, name)
    is_around = Named(around)

    def within(block: Block) -> Block:
        found: list[Statement] = []
        for each in block:
            if not isinstance(each, (For, If)) or is_around.name not in each.names:
                found.append(each)
            elif isinstance(each, For) and is_around(each) and (used := set(accesses(each.body, local))):
                before = _only_store(found[-1], local) if found else None
                if before is not None and {before.index} == used:
                    found.pop()
                else:
                    before = None
                found += _tile(each, local, name, before, anew)
            else:
                found.append(with_body(each, within(each.body)))
        return tuple(found)

    body = within(procedure.body)
    if body == procedure.body:
        raise refused(f"in_registers({array!r}) around {around!r}", "the loop adds to the array")
    return replace(procedure, body=tidied(body))


def _only_store(statement: Statement, local: Local) -> Store | None:
    """Return a loop nest's only store, if it is to an array, reads no other element, and all loops are in its index."""
    variables = []
    while isinstance(statement, For) and len(statement.body) == 1:
        variables.append(statement.variable)
        (statement,) = statement.body
    if not isinstance(statement, Store) or set(accesses((statement,), local)) != {statement.index}:
        return None
    if statement.array != local:
        return None
    return statement if all(statement.index.depends_on(each) for each in variables) else None


def _tile(loop: For, local: Local, name: str, before: Store | None, anew: bool) -> Block:
    """Return a loop that adds to registers, with loads before and stores after it."""
    indices = list(dict.fromkeys(accesses(loop.body, local)))
    what = f"in_registers({local.name!r}) around {loop.variable.name!r}"
    if len(indices) > 1:
        raise refused(
            f"{what}: it is used at {indices[0]} and at {indices[1]}",
            "all accesses of what stays in registers have the same index",
        )
    (index,) = indices
    if index.depends_on(loop.variable):
        raise refused(
            f"{what}: it is another element in every iteration",
            "what stays in registers is the same from iteration to iteration",
        )
    found = [one for one in statements(loop.body) if isinstance(one, For) and index.depends_on(one.variable)]
    own = list({one.variable: one for one in found}.values())
    variables = [one.variable for one in own]
    if not is_one_to_one(index, variables):
        raise refused(f"{what}: {index} is one element for several iterations", "each register is another element")
    if any(one.kind not in (Kind.UNROLLED, Kind.VECTOR) for one in found):
        raise refused(
            f"{what}: a loop inside is run in rounds",
            "registers are known by constant numbers: what indexes them is unrolled or a vector",
        )
    at = place_in(variables)
    tile = Local(name, extent_of(variables), local.dtype, Place.REGISTERS)
    start = before.value if before is not None else Read(local.dtype, local, index)
    save: Block = (Store(local, index, Read(tile.dtype, tile, at)),)
    if anew and before is None:
        start, save = _anew(loop, local, index, Read(tile.dtype, tile, at), what)
    load: Block = (Store(tile, at, start),)
    load, save = (nested(own, (), each) for each in (load, save))
    return (Allocate(tile), *load, with_body(loop, with_local(loop.body, local, tile, lambda _: at)), *save)


def _anew(loop: For, local: Local, index: Index, part: Read, what: str) -> tuple[Expression, Block]:
    """Return the neutral element a partial sum starts at, and the statement that adds the sum to the total."""
    uses = [one for one in statements(loop.body) if isinstance(one, (Store, Accumulate)) and one.array == local]
    reductions = {one.reduction if isinstance(one, Accumulate) else None for one in uses}
    reads = any(local in one.value.reads for one in statements(loop.body) if isinstance(one, (Store, Accumulate)))
    reduction = reductions.pop() if len(reductions) == 1 else None
    if reduction is None or reads:
        raise refused(f"{what}: it is not only added to", "a sum starts anew if nothing else is done to the array")
    return literal(local.dtype, neutral(reduction, local.dtype)), (Accumulate(local, index, reduction, part),)


@step
def place(procedure: Procedure, where: str, *arrays: str) -> Procedure:
    """Put local arrays on the stack or into registers.

    Law: registers are known by constant numbers: each loop that indexes the arrays is unrolled or a vector.
    """
    moved = {local: replace(local, place=Place(where)) for local in (local_named(procedure, name) for name in arrays)}

    def change(part: Expression) -> Expression:
        found = moved.get(part.local) if isinstance(part, Read) else None
        return Read(part.dtype, found, part.index) if found is not None and isinstance(part, Read) else part

    def put(each: Statement) -> Statement:
        if isinstance(each, Allocate):
            return Allocate(moved.get(each.local, each.local))
        if isinstance(each, (Store, Accumulate)) and isinstance(each.array, Local):
            return replace(each, array=moved.get(each.array, each.array))
        return each

    return replace(procedure, body=with_statements(mapped(procedure.body, change), put))
