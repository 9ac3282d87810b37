"""Rewrites of loops: split, fuse, reorder, distribute, jam; run on vectors, written out, or shared among threads.

Distribution (loop fission) and jamming (loop fusion) are as in Allen and Kennedy, "Optimizing Compilers for Modern
Architectures" (2001).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from itertools import groupby
from math import gcd

from ...loop_ir.expressions import ALWAYS, Inside, Number
from ...loop_ir.index import Index, Variable, extent_of, unravelled, variable
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
    Statement,
    Store,
    arrays_written,
    mapped,
    sole_guard,
    statements,
    substituted,
    tidied,
    with_body,
)
from ..analysis.dependences import Access, accesses_of, conflicts
from ..analysis.finding import (
    any_of,
    at_loop,
    has_loop,
    names_of,
    nested,
    nested_in,
    with_loops_replaced,
)
from ..rewrite import check_fresh, check_spelling, refused, step


@step
def split(procedure: Procedure, loop: str, factor: int, outer: str, inner: str, cut: str = "") -> Procedure:
    """Split ``for i in n`` into ``for outer in ceil(n / factor): for inner in factor``, ``i = outer * factor + inner``.

    Args:
        procedure: the kernel.
        loop: the name of the loop.
        factor: iterations of a part.
        outer, inner: the names of the new loops.
        cut: whether a last part that is not full runs alone after the others, which then need no guard: in a loop
            of this name, which is guarded if the name is that of the inner loop, and else shorter.

    Law: the iterations keep their order, so any loop can be split. A part that is not full is guarded.
    """
    if factor < 1:
        raise refused(f"split({loop!r}) by {factor}", "a part has at least one iteration")
    check_fresh(procedure, outer, inner, near=loop)
    check_spelling(*([cut] if cut else []))

    def parts(each: For, length: int) -> Block:
        own = Variable(outer, -(-length // factor)), Variable(inner, factor)
        place = variable(outer, own[0].extent) * factor + variable(inner, factor)
        guard = ALWAYS.and_(0, place, length)
        body = substituted(each.body, {each.variable: place})
        body = body if guard == ALWAYS else (If(guard, body),)
        for part in reversed(own):
            body = (For(part, body),) if part.extent != 1 else body
        return body

    def change(each: For) -> Iterable[Statement]:
        length = each.variable.extent
        left = length % factor
        if not cut or not left or length < factor:
            return parts(each, length)
        rest = Variable(cut, factor if cut == inner else left)
        place = variable(cut, rest.extent)
        body = substituted(each.body, {each.variable: place + (length - left)})
        body = (If(ALWAYS.and_(0, place, left), body),) if cut == inner else body
        return (*parts(each, length - left), *((For(rest, body),) if rest.extent != 1 else body))

    return at_loop(procedure, loop, change)


@step
def fuse(procedure: Procedure, name: str, *names: str) -> Procedure:
    """Join perfectly nested loops, the outermost first, into one through all of their iterations (loop coalescing).

    Law: nothing is between the loops. The iterations keep their order.
    """
    check_fresh(procedure, name, near=names[0])

    def change(each: For) -> Iterable[Statement]:
        own_names = (each.variable.name, *names[1:])
        chain, guards, body = nested_in(each, own_names)
        variables = [inner.variable for inner in chain]
        if [one.name for one in variables] != [*own_names] or any(one.kind is not Kind.SERIAL for one in chain):
            raise refused(f"fuse({', '.join(map(repr, names))})", "loops that are fused have nothing between them")
        own = Variable(name, extent_of(variables))
        places = unravelled(variable(name, own.extent), tuple(one.extent for one in variables))
        body = substituted(nested((), guards, body), dict(zip(variables, places, strict=True)))
        return (For(own, body),)

    return at_loop(procedure, names[0], change)


@step
def reorder(procedure: Procedure, *names: str) -> Procedure:
    """Put perfectly nested loops in another order, the first name outermost.

    Law: iterations that need each other's results keep their order, but for a sum, which may take its terms in any
    order. So no such iterations exist, or they differ only in loops that keep their order.
    """
    names = tuple(name for name in names if has_loop(procedure.body, name))
    if len(names) < 2:
        return procedure

    def change(each: For) -> Iterable[Statement] | None:
        if not set(names) <= each.names:
            return None
        chain, guards, body = nested_in(each, names)
        variables = [inner.variable for inner in chain]
        by_name = {inner.variable.name: inner for inner in chain}
        order = [*(inner for inner in chain if inner.variable.name not in names), *(by_name[name] for name in names)]
        bound = _bound_by_order(variables, body, guards)
        if [inner.variable for inner in order if inner.variable in bound] != bound:
            check_independent(bound, body, f"reorder({', '.join(map(repr, names))})", sums=True, guards=guards)
        return nested(order, guards, body)

    return any_of(procedure, names, change, must_change=False)


def _bound_by_order(variables: list[Variable], body: Block, guards: Iterable[Inside]) -> list[Variable]:
    """Return the loops in which iterations may differ that need each other's results."""
    found = accesses_of(body, tuple(bound for guard in guards for bound in guard.bounds))
    if next(conflicts(found, variables, sums=True), None) is None:
        return []

    def is_bound(own: Variable) -> bool:
        others = frozenset(variables) - {own}
        free = [replace(access, inner=access.inner | others) for access in found]
        return next(conflicts(free, [own], sums=True), None) is not None

    return [own for own in variables if is_bound(own)]


def refuse(what: str, pairs: Iterable[tuple[Access, Access]], law: str) -> None:
    """Refuse a step if two accesses may meet."""
    for a, b in pairs:
        local = isinstance(a.array, Local)
        raise refused(
            f"{what}: {a} and {b} may be of one element, in two iterations"
            if a != b
            else f"{what}: {a} may be of one element in two iterations",
            law,
            f"give each iteration an element of its own: lift({a.name!r}, ...)" if local else None,
        )


def check_independent(
    variables: Iterable[Variable], body: Block, what: str, sums: bool, guards: Iterable[Inside] = ()
) -> None:
    """Refuse a change of order if an iteration of some loops may need another one's result."""
    found = accesses_of(body, tuple(bound for guard in guards for bound in guard.bounds))
    law = "iterations that are run in another order do not need each other's results"
    refuse(what, conflicts(found, tuple(variables), sums), law + (", sums apart" if sums else ""))


@step
def unswitch(procedure: Procedure, loop: str) -> Procedure:
    """Put guards that hold in all iterations of a loop, or in none, around the loop (loop unswitching).

    Law: with ``j < a``, ``a * i + j < a * n`` is the same as ``i < n``.
    """

    found = at_loop(procedure, loop, lambda each: (_unswitched(each),), tidy=False)
    if found == procedure:
        raise refused(f"unswitch({loop!r})", "a guard in the loop holds in all of its iterations, or in none")
    return replace(found, body=tidied(found.body))


def _unswitched(loop: For) -> For:
    """Move guards that hold in all iterations of a loop, or in none, out of it."""

    def outside(inside: Inside) -> Inside:
        found = ALWAYS
        for low, index, high in inside.bounds:
            steps = {gcd(factor, low, high) for _, factor in index.terms} if index.depends_on(loop.variable) else ()
            step = min((step for step in steps if not (index // step).depends_on(loop.variable)), default=1)
            found = found.and_(low // step, index // step, high // step)
        return found

    body = mapped(loop.body, lambda part: part, inside=outside)
    return loop if body == loop.body else For(loop.variable, body, loop.kind)


@step
def distribute(procedure: Procedure, *names: str) -> Procedure:
    """Distribute perfectly nested loops over each inner loop in them and the statements between (fission).

    Stores that follow one another stay together: one of them may write to memory that another reads.
    A constant for a local array after them does not.

    Law: no statement needs what a later one did in an earlier iteration: they share only arrays with an element
    for every iteration.
    """
    names = tuple(name for name in names if has_loop(procedure.body, name))

    def change(each: For) -> Iterable[Statement] | None:
        if not set(names) <= each.names:
            return None
        chain, guards, body = nested_in(each, names)
        if any(isinstance(inner, Allocate) for inner in body):
            local = next(inner.local.name for inner in body if isinstance(inner, Allocate))
            raise refused(
                f"distribute {', '.join(names)}: {local} lives for one iteration",
                "an array that two of the new loops share must outlive the first",
                f"lift({local!r}, {', '.join(map(repr, names))}) first",
            )
        found = accesses_of(body, tuple(bound for guard in guards for bound in guard.bounds))
        across = ((a, b) for a, b in conflicts(found, [inner.variable for inner in chain]) if a.number != b.number)
        law = "no statement needs what a later one did in an earlier iteration"
        refuse(f"distribute({', '.join(map(repr, names))})", across, law)
        result: list[Statement] = []
        for is_plain, part in groupby(body, lambda inner: isinstance(inner, (Store, Accumulate))):
            run = tuple(part)
            pieces = _stored_together(run) if is_plain else [(inner,) for inner in run]
            for piece in pieces:
                result += nested(chain, guards, piece)
        return result

    return any_of(procedure, names, change)


def _stored_together(run: Block) -> list[Block]:
    """Return runs of stores, cut where a constant for a local array comes after a store to an argument."""
    found: list[list[Statement]] = [[]]
    for each in run:
        is_constant = isinstance(each, Store) and isinstance(each.array, Local) and isinstance(each.value, Number)
        if is_constant and any(isinstance(one, Store) and isinstance(one.array, int) for one in found[-1]):
            found.append([])
        found[-1].append(each)
    return list(map(tuple, found))


def _marked(
    name: str, kind: Kind, procedure: Procedure, check: Callable[[For], None], inside: str | None = None
) -> Procedure:
    """Mark the loops of a name to run in another way: all of them, or those inside of another loop."""

    def change(each: For) -> Iterable[Statement]:
        check(each)
        inner = _unswitched(each) if kind is Kind.VECTOR else each
        return [For(each.variable, with_loops_replaced(inner.body, (name,), change), kind)]

    tidy = kind is Kind.VECTOR
    if not has_loop(procedure.body, name):
        return procedure
    if inside is None or not has_loop(procedure.body, inside):
        return at_loop(procedure, name, change, tidy)
    within = lambda each: [with_body(each, with_loops_replaced(each.body, (name,), change))]  # noqa: E731
    return at_loop(procedure, inside, within, tidy)


@step
def unroll(procedure: Procedure, loop: str, inside: str | None = None) -> Procedure:
    """Write out the iterations of a loop. Law: none; they keep their order."""
    return _marked(loop, Kind.UNROLLED, procedure, lambda each: None, inside)


def _stores_to(block: Block) -> set[int | str]:
    """Return the arguments and the local arrays in memory that a block stores to."""
    written = arrays_written(block)
    return {
        array.name if isinstance(array, Local) else array
        for array in written
        if not isinstance(array, Local) or array.place is not Place.REGISTERS
    }


@step
def outline(procedure: Procedure, *arrays: int | str) -> Procedure:
    """Run the outermost loops that store to some arrays, and to no others, in functions of their own (outlining).

    Registers are given out function by function: these loops take none from others.

    Args:
        procedure: the kernel.
        arrays: numbers of arguments, and names of local arrays.

    Law: the loops use no registers but their own.
    """

    given = ", ".join(map(repr, arrays))

    def within(block: Block) -> Block:
        found: list[Statement] = []
        for each in block:
            stored = _stores_to((each,))
            if isinstance(each, For) and each.kind is Kind.SERIAL and stored and stored <= {*arrays}:
                used = {one.array for one in accesses_of((each,)) if isinstance(one.array, Local)}
                if any(one.place is Place.REGISTERS for one in used):
                    raise refused(
                        f"outline({given}): the loop {each.variable.name!r} uses {names_of(used)}",
                        "a function has registers of its own",
                    )
                found.append(For(each.variable, each.body, Kind.OUTLINED))
            else:
                found.append(with_body(each, within(each.body)) if isinstance(each, (For, If)) else each)
        return tuple(found)

    return replace(procedure, body=within(procedure.body))


@step
def vectorise(procedure: Procedure, loop: str) -> Procedure:
    """Run the iterations of a loop in the lanes of a vector.

    A guard that holds in all lanes or in none is not a mask: it is put around the loop, as `unswitch` does.

    Law: no iteration needs another one's result, but for a sum, which the lanes are added up for.
    """

    def check(each: For) -> None:
        if any(isinstance(inner, For) for inner in statements(each.body)):
            raise refused(
                f"vectorise({loop!r}): it has loops in it", "the lanes of a vector run one statement at a time"
            )
        check_independent([each.variable], each.body, f"vectorise({loop!r})", sums=True)

    return _marked(loop, Kind.VECTOR, procedure, check)


@step
def parallelise(procedure: Procedure, *names: str) -> Procedure:
    """Share the iterations of the outermost loops among threads. A guard between them goes inside.

    Law: no iteration needs another one's result, and all arrays that it has for itself are its own.
    """

    def check(each: For) -> None:
        check_independent([each.variable], each.body, f"parallelise({each.variable.name!r})", sums=False)

    procedure = replace(procedure, body=_guarded_inside(procedure.body, names))
    for name in names:
        procedure = _marked(name, Kind.PARALLEL, procedure, check)
    return procedure


def _guarded_inside(block: Block, names: Collection[str]) -> Block:
    """Return a block with the guards between its outermost loops of some names in the innermost one."""
    match block:
        case (For(variable) as each,) if variable.name in names:
            body, bounds = each.body, list[tuple[int, Index, int]]()
            while (guard := sole_guard(body)) is not None:
                body, bounds = guard.body, [*bounds, *guard.inside.bounds]
            match body:
                case (For(inner) as loop,) if bounds and inner.name in names:
                    within = sole_guard(loop.body) or If(ALWAYS, loop.body)
                    inside = If(Inside((*bounds, *within.inside.bounds)), within.body)
                    return (with_body(each, _guarded_inside((with_body(loop, (inside,)),), names)),)
            return (with_body(each, _guarded_inside(each.body, names)),)
    return block


@step
def jam(procedure: Procedure, *names: str) -> Procedure:
    """Join loops of the same names that follow one another into one around all of their statements (loop fusion).

    Law: no iteration of the second needs what a later iteration of the first did.
    """
    for name in names:
        body = _jammed(procedure.body, name)
        procedure = replace(procedure, body=tidied(body))
    return procedure


def _jammed(block: Block, name: str) -> Block:
    found: list[Statement] = []
    for each in block:
        if isinstance(each, (For, If)) and name in each.names:
            each = with_body(each, _jammed(each.body, name))
        before = found[-1] if found else None
        if (
            isinstance(each, For)
            and isinstance(before, For)
            and each.variable == before.variable
            and each.variable.name == name
            and each.kind == before.kind
        ):
            body = (*before.body, *each.body)
            across = (
                (a, b)
                for a, b in conflicts(accesses_of(body), [each.variable])
                if min(a.number, b.number) < len(before.body) <= max(a.number, b.number)
            )
            refuse(f"jam({name!r})", across, "no iteration of the first needs to wait for one of the second")
            found[-1] = with_body(before, body)
        elif isinstance(each, If) and isinstance(before, If) and each.inside == before.inside:
            found[-1] = replace(before, body=_jammed((*before.body, *each.body), name))
        else:
            found.append(each)
    return tuple(found)
