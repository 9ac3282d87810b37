"""Rewrites that bring a loop onto vectors: its last part alone, splitting a reduction, outer-loop vectorisation.

A *partition* runs the last part of a loop that was split, which may not be full, alone, so that the others need no
mask. A *split reduction* (rfactor in Halide and TVM) has a partial result for every lane. *Sinking* a loop into the
loops that it contains is outer-loop vectorisation (Nuzman and Zaks, "Outer-loop vectorization: revisited for short SIMD
architectures", 2008).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...loop_ir.expressions import ALWAYS, Expression, Inside, literal, rewritten
from ...loop_ir.index import Index, Variable, extent_of, place_in, variable
from ...loop_ir.loops import neutral
from ...loop_ir.tree import (
    Accumulate,
    Allocate,
    Block,
    For,
    If,
    Local,
    Prefetch,
    Procedure,
    Read,
    Statement,
    Store,
    in_loops,
    statements,
    substituted,
    with_body,
)
from ..analysis.finding import accesses, at_loop, local_named, with_inner, with_local
from ..rewrite import check_spelling, refused, step
from .loops import check_independent


def _guarded_part(inner: Statement | None) -> tuple[For, If, Index, int] | None:
    """Return a loop's inner loop guarded against an end, the guard, and the index with its bound.

    None if nothing is guarded; guards of another form are refused.
    """
    guard = inner.body[0] if isinstance(inner, For) and len(inner.body) == 1 else None
    if not isinstance(inner, For) or not isinstance(guard, If):
        return None
    ((low, index, end), *others) = guard.inside.bounds
    if others or low > 0 or index.bounds[0] != 0 or index.coefficient(inner.variable) != 1:
        raise refused(
            f"the loop {inner.variable.name!r} as a part of another one",
            "what it contains is guarded by nothing but the end of the loop that was split",
        )
    return inner, guard, index, end


@step
def partition(procedure: Procedure, loop: str, part: str, rest: str) -> Procedure:
    """Give the last iteration of a loop, in which inner loops of a name are not full, its own inner loops.

    Law: where an inner loop is guarded against the end, it is full in all iterations but the last.
    """
    check_spelling(rest)

    def change(each: For) -> Iterable[Statement] | None:
        guarded = {
            number: found
            for number, one in enumerate(each.body)
            if isinstance(one, For) and one.variable.name == part and (found := _guarded_part(one)) is not None
        }
        if not guarded:
            return None
        turn, ends = variable(each.variable.name, each.variable.extent), set[int]()
        what = f"partition({loop!r}, {part!r})"
        full, last = list[Statement](each.body), list[Statement]()
        for number, one in enumerate(each.body):
            if number not in guarded:
                last.append(one)
                continue
            inner, guard, index, end = guarded[number]
            if index != turn * inner.variable.extent + variable(part, inner.variable.extent):
                raise refused(what, "the two loops are the parts of one loop that was split")
            turns, left = divmod(end, inner.variable.extent)
            ends.add(turns)
            full[number] = with_body(inner, guard.body)
            body = substituted(guard.body, {inner.variable: variable(rest, left)})
            last += [For(Variable(rest, left), body)] if left > 1 else body
        if len(ends) > 1:
            raise refused(what, "the inner loops end in the same iteration")
        (turns,) = ends
        others = If(ALWAYS.and_(0, turn, turns), tuple(full))
        return (with_body(each, (others, If(ALWAYS.and_(turns, turn, each.variable.extent), tuple(last)))),)

    return at_loop(procedure, loop, change)


@step
def split_reduction(
    procedure: Procedure, array: str, loop: str, into: str, around: str = "", first: bool = False
) -> Procedure:
    """Give every iteration of a loop its own partial result, and combine these at the end (rfactor).

    Args:
        procedure: the kernel.
        array: the array that accumulates the results.
        loop: the loop whose iterations get partial results.
        into: the name of the array of partial results.
        around: a loop outside of it, after which the partial results are combined; else all that accumulates.
        first: whether iteration 0 goes on with what has been accumulated, and the others are added to it.

    Law: nothing but accumulations in one element of the array may happen to it there; these may be in any order.
    """
    check_spelling(into)
    local = local_named(procedure, array)

    def changed(each: Block) -> Block:
        lanes = {one.variable for one in statements(each) if isinstance(one, For) and one.variable.name == loop}
        sums = [one for one in statements(each) if isinstance(one, Accumulate) and one.array == local]
        indices = set(accesses(each, local))
        if (
            len(indices) != 1
            or len(lanes) != 1
            or any(
                (isinstance(one, Store) and one.array == local)
                or (isinstance(one, (Store, Accumulate)) and reads(one, local))
                for one in statements(each)
            )
        ):
            raise refused(
                f"split_reduction({array!r}, {loop!r})",
                "there is one such loop, and nothing happens to the array but accumulations in one element",
            )
        (index,), (own,) = indices, lanes
        inside = list(
            dict.fromkeys(
                one.variable for one in statements(each) if isinstance(one, For) and index.depends_on(one.variable)
            )
        )
        at, size = place_in(inside), extent_of(inside)
        parts = Local(into, size * own.extent, local.dtype)
        reduction = sums[0].reduction
        nothing = literal(local.dtype, neutral(reduction, local.dtype))
        mine = variable(own.name, own.extent) * size + at

        def over(statement: Statement, turns: int = 1) -> Block:
            outer = (Variable(own.name, turns),) if turns > 1 else ()
            return in_loops((*outer, *inside), (statement,))

        before: Block = (Allocate(parts), *over(Store(parts, mine, nothing), own.extent))
        body = with_local(each, local, parts, lambda _: mine)
        if not first:
            part = Read(local.dtype, parts, mine)
            return (*before, *body, *over(Accumulate(local, index, reduction, part), own.extent))
        other = Read(local.dtype, parts, (variable(own.name, own.extent - 1) + 1) * size + at)
        return (
            *before,
            *over(Store(parts, at, Read(local.dtype, local, index))),
            *body,
            *over(Store(local, index, Read(local.dtype, parts, at))),
            *over(Accumulate(local, index, reduction, other), own.extent - 1),
        )

    def adds(each: Statement) -> bool:
        return any(isinstance(one, Accumulate) and one.array == local for one in statements((each,)))

    def within(block: Block) -> Block:
        if not any(isinstance(each, Allocate) and each.local == local for each in block):
            return with_inner(block, within)
        places = [number for number, each in enumerate(block) if adds(each)]
        start, stop = places[0], places[-1] + 1
        return (*block[:start], *changed(block[start:stop]), *block[stop:])

    if not around:
        return replace(procedure, body=within(procedure.body))
    return at_loop(procedure, around, lambda each: changed((each,)) if adds(each) else None)


def reads(statement: Store | Accumulate, local: Local) -> bool:
    """Return whether a statement reads an array."""
    return any(isinstance(part, Read) and part.local == local for part in statement.value.all_parts)


@step
def sink(procedure: Procedure, *names: str) -> Procedure:
    """Move perfectly nested loops into all loops that they contain, around each run of single statements.

    An array that is allocated inside of them gets an element for every iteration, and a name with that of the innermost
    loop.

    Law: no iteration needs another one's result; the loops inside run equally often for all of them.
    """

    def change(each: For) -> Iterable[Statement]:
        chain, body = [each.variable], each.body
        while len(chain) < len(names) and len(body) == 1 and isinstance(body[0], For):
            if body[0].variable.name not in names:
                break
            chain.append(body[0].variable)
            body = body[0].body
        check_independent(chain, body, f"sink({', '.join(map(repr, names))})", sums=False)
        return _sunk(body, chain)

    return at_loop(procedure, names[0], change)


def _sunk(body: Block, chain: list[Variable]) -> Block:
    offset, width = place_in(chain), extent_of(chain)
    own = [each.local for each in statements(body) if isinstance(each, Allocate)]
    wider = {local: replace(local, name=f"{local.name}_{chain[-1].name}", size=local.size * width) for local in own}

    def change(part: Expression) -> Expression:
        if isinstance(part, Read) and part.local in wider:
            return Read(part.dtype, wider[part.local], part.index * width + offset)
        return part

    known: dict[Expression, Expression] = {}

    def moved(block: Block, guard: Inside) -> Block:
        found: list[Statement] = []
        run: list[Statement] = []

        def close() -> None:
            if run:
                inner: Block = tuple(run) if guard == ALWAYS else (If(guard, tuple(run)),)
                run.clear()
                found.extend(in_loops(tuple(chain), inner))

        for each in block:
            match each:
                case Store() | Accumulate():
                    value = rewritten(each.value, change, known)
                    if isinstance(each.array, Local) and each.array in wider:
                        at = each.index * width + offset
                        run.append(replace(each, array=wider[each.array], index=at, value=value))
                    else:
                        run.append(replace(each, value=value))
                case Prefetch():
                    run.append(each)
                case Allocate():
                    found.append(Allocate(wider[each.local]))
                case For():
                    close()
                    found.append(with_body(each, moved(each.body, guard)))
                case If():
                    close()
                    own = any(each.inside.depends_on(one) for one in chain)
                    if own:
                        inside = guard
                        for bound in each.inside.bounds:
                            inside = inside.and_(*bound)
                        found += moved(each.body, inside)
                    else:
                        found.append(with_body(each, moved(each.body, guard)))
        close()
        return tuple(found)

    return moved(body, ALWAYS)
