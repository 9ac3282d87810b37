"""Rewrites that keep a part of an argument in a local array, in the order in which it is used.

This is `stage_mem` in Exo; `cache_read` and `cache_write` in TVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...loop_ir.expressions import ALWAYS, Expression, Inside, Load
from ...loop_ir.index import NOWHERE, Index, Variable, extent_of, place_in, variable
from ...loop_ir.tree import (
    Accumulate,
    Allocate,
    Block,
    For,
    If,
    Local,
    Procedure,
    Read,
    Statement,
    Store,
    arrays_written,
    in_loops,
    mapped,
    statements,
    substituted,
    with_body,
)
from ..analysis.dependences import is_one_to_one, variables_of
from ..analysis.finding import Place, array_of, at_loop, has_loop, names_of, names_of_loops, places_in, with_statements
from ..rewrite import check_fresh, refused, step


@step
def stage(procedure: Procedure, argument: int, into: str, at: str, along: str, *order: str) -> Procedure:
    """Copy a part of an argument into an array before it is read, or out of an array after it is written.

    It stages the first access of the argument to neighbours along a loop. The copy comes just before the first use, so
    that requests for memory are spread over the work of the loop.

    Args:
        procedure: the kernel.
        argument: its number.
        into: the name of the array. The loops that copy are called like those of `order`, with this in front.
        at: the loop in whose body the array lives; "" for the kernel.
        along: the loop.
        order: the loops around the access inside of `at`, in the order in which the array has its elements.

    Law: nothing else in there stores to elements read; nothing else reads or stores to the element written, which is
    another element in every iteration. Every element that is used is copied.
    """
    what = f"stage({argument}, {into!r}) at {at!r}"
    check_fresh(procedure, into, *(f"{into}_{name}" for name in order if has_loop(procedure.body, name)))

    if not order:
        raise refused(what, "an array has an element for every iteration of some loops")
    made: set[Local] = set()

    def staged(block: Block) -> Block | None:
        """Return a block with the first access staged; where that is in a guard, within the guard."""
        holders = [each for each in block if _dense((each,), argument, along, order[-1]) is not None]
        if len(holders) == 1 and isinstance(holders[0], If):
            within = staged(holders[0].body)
            held = with_body(holders[0], within or ())
            return tuple(held if each is holders[0] else each for each in block) if within is not None else None
        found = _dense(block, argument, along, order[-1])
        if found is None:
            return None
        access, around = found
        own = [each for name in order for each in around if each.name == name]
        index = place_in(own)
        local = Local(into, extent_of(own), access.value.dtype if isinstance(access, Store) else access.dtype)
        made.add(local)
        if len(made) > 1:
            raise refused(f"{what}: it is of another size elsewhere", "an array has one size")
        renamed = {each: variable(f"{into}_{each.name}", each.extent) for each in own}
        copied = Load(local.dtype, argument, access.index)
        if isinstance(access, Store):
            condition = _checked_store(what, block, access, own)
            copy: Block = (replace(access, value=Read(local.dtype, local, index)),)
        else:
            condition = _checked_reads(what, block, copied, own)
            copy = (Store(local, index, copied),)
        copy = substituted(copy if condition == ALWAYS else (If(condition, copy),), renamed)
        copy = in_loops(tuple(Variable(f"{into}_{each.name}", each.extent) for each in own), copy)
        if isinstance(access, Store):
            store = Store(local, index, access.value)
            return (Allocate(local), *with_statements(block, lambda one: store if one is access else one), *copy)
        element = Read(local.dtype, local, index)
        first = next(number for number, each in enumerate(block) if uses((each,), copied))
        rest = mapped(block[first:], lambda part: element if part == copied else part)
        return (*block[:first], Allocate(local), *copy, *rest)

    def staged_in(loop: For) -> Iterable[Statement] | None:
        body = staged(loop.body)
        return None if body is None else [with_body(loop, body)]

    if at:
        return at_loop(procedure, at, staged_in)
    body = staged(procedure.body)
    if body is None:
        raise refused(what, "something in there reads or writes the argument, one element after another")
    return replace(procedure, body=body)


def uses(block: Block, value: Expression) -> list[Place]:
    """Return the statements that compute with a value, each with the conditions and the loops around it."""
    return [each for each in places_in(block) if value in each[0].value.all_parts]


def check_copied(what: str, block: Block, value: Expression, own: list[Variable]) -> list[Inside]:
    """Refuse to compute a value ahead of a block, once for each iteration of some loops in it.

    Returns:
        The conditions under which each statement of the block uses the value, as far as they are conditions on these
        loops or on those outside of the block.
    """
    found = uses(block, value)
    inner = {loop for _, _, around in found for loop in around}
    if missing := {loop for loop in inner if value.depends_on(loop)} - {*own}:
        raise refused(
            f"{what}: the copied value depends on {names_of_loops(missing)}, too",
            "an array has an element for all values of the loops inside that the value depends on",
        )
    read = {array_of(part) for part in value.all_parts if isinstance(part, (Read, Load))}
    if read & arrays_written(block) or any(
        isinstance(each, Allocate) and each.local in read for each in statements(block)
    ):
        raise refused(
            f"{what}: {names_of(read & arrays_written(block))} is stored to meanwhile",
            "nothing stores to what is copied between the copy and the use",
        )
    return [Inside(tuple(one for one in held if {*variables_of(one[1])} & inner <= {*own})) for _, held, _ in found]


def _dense(block: Block, argument: int, along: str, inner: str) -> tuple[Load | Store, tuple[Variable, ...]] | None:
    """Return a block's first access of an argument to neighbours along `along`, in `inner`, with all loops around."""
    for each, _, around in places_in(block):
        by_name = {one.name: one for one in around}
        if along not in by_name or inner not in by_name:
            continue
        loads = (part for part in each.value.all_parts if isinstance(part, Load) and part.inside == ALWAYS)
        found: list[Load | Store] = [part for part in loads if part.buffer == argument]
        if isinstance(each, Store) and each.array == argument:
            found.append(each)
        for access in found:
            if abs(access.index.coefficient(by_name[along])) == 1:
                return access, around
    return None


def _checked_reads(what: str, block: Block, element: Load, own: list[Variable]) -> Inside:
    """Return the conditions under which an element is read."""
    first, *others = check_copied(what, block, element, own)
    if any(guard != first for guard in others):
        raise refused(f"{what}: the element is used under other conditions, too", "what is used is copied")
    return first


def _checked_store(what: str, block: Block, store: Store, own: list[Variable]) -> Inside:
    """Return the conditions under which an element is stored."""
    ((_, bounds, around),) = [place for place in places_in(block) if place[0] is store]
    others = [
        each
        for each, _, _ in places_in(block)
        if (each.array == store.array and each is not store)
        or any(isinstance(part, Load) and part.buffer == store.array for part in each.value.all_parts)
    ]
    if others or {*around} != {*own} or not is_one_to_one(store.index, own, bounds):
        raise refused(
            f"{what}: an element is stored to or read more than once",
            "every iteration stores another element, and nothing else reads or stores to the argument",
        )
    return Inside(bounds)


@step
def specialise(procedure: Procedure, loop: str) -> Procedure:
    """Give a loop's body a version for the iterations in which all of a guard holds (loop versioning).

    This version has no guard, and no mask on vectors. Halide has `specialize`.

    Law: none; every iteration runs one of the versions.
    """

    def change(each: For) -> Iterable[For] | None:
        inner = {one.variable for one in statements(each.body) if isinstance(one, For)}
        last = {one: NOWHERE + (one.extent - 1) for one in inner}
        ends: dict[tuple[int, Index, int], set[tuple[int, Index, int]]] = {}  # when conditions hold in all inner loops
        for inside in _conditions(each.body):
            for bound in inside.bounds:
                if bound[1].depends_on(each.variable) and _may_fail(bound, inner):
                    ends.setdefault((bound[0], bound[1].substitute(last), bound[2]), set()).add(bound)
        versions: list[If] = []
        held, known = ALWAYS, set[tuple[int, Index, int]]()
        for (low, index, high), bounds in ends.items():
            versions.append(If(held.and_(high, index, index.bounds[1] + 1), _assuming(each.body, known)))
            held = held.and_(low, index, high)
            known |= bounds
        if not versions:
            return None
        if held.never_holds:  # then the one version is the loop itself
            return [each]
        return [replace(each, body=(If(held, _assuming(each.body, known)), *versions))]

    return at_loop(procedure, loop, change)


def _may_fail(bound: tuple[int, Index, int], inner: set[Variable]) -> bool:
    """Return whether a condition on inner loops fails from some iteration of them on."""
    low, index, _ = bound
    own = [term for term in index.terms if any(Index((term,)).depends_on(each) for each in inner)]
    return bool(own) and index.bounds[0] >= low and all(atom in inner and factor > 0 for atom, factor in own)


def _conditions(block: Block) -> Iterator[Inside]:
    """Yield the guards in a block, and the conditions under which it reads arguments."""
    for each in statements(block):
        match each:
            case If():
                yield each.inside
            case Store() | Accumulate():
                yield from (part.inside for part in each.value.all_parts if isinstance(part, Load))


def _assuming(block: Block, known: set[tuple[int, Index, int]]) -> Block:
    """Return a block where some conditions are known to hold."""

    def left(inside: Inside) -> Inside:
        return Inside(tuple(bound for bound in inside.bounds if bound not in known))

    def change(part: Expression) -> Expression:
        return replace(part, inside=left(part.inside)) if isinstance(part, Load) else part

    return mapped(block, change, inside=left)
