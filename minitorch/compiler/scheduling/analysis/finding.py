"""Finding loops, arrays and guards in a procedure, and putting others in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from ...loop_ir.expressions import ALWAYS, Apply, Expression, Inside, Load, Number, rewritten
from ...loop_ir.index import Index, Variable
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
    allocated,
    arrays_read,
    arrays_written,
    in_loops,
    loop_names,
    sole_guard,
    statements,
    tidied,
    with_body,
)
from ..rewrite import Named, refused

Bounds = tuple[tuple[int, Index, int], ...]
Place = tuple[Store | Accumulate, Bounds, tuple[Variable, ...]]  # a statement, with the conditions and loops around it


def with_loops_replaced(
    block: Block, names: Iterable[str], change: Callable[[For], Iterable[Statement] | None]
) -> Block:
    """Replace every outermost loop of some names (see `Named`) in a block by some statements; None leaves it."""
    wanted = list(map(Named, names))
    called = {is_it.name for is_it in wanted}

    def within(block: Block) -> Block:
        found: list[Statement] = []
        for each in block:
            if not isinstance(each, (For, If)) or called.isdisjoint(each.names):
                found.append(each)
                continue
            new = change(each) if isinstance(each, For) and any(is_it(each) for is_it in wanted) else None
            found += new if new is not None else [with_body(each, within(each.body))]
        return tuple(found)

    return within(block)


def with_statements(block: Block, change: Callable[[Statement], Statement]) -> Block:
    """Return a block with a change made to every statement in it that has no body."""
    return tuple(
        with_body(each, with_statements(each.body, change)) if isinstance(each, (For, If)) else change(each)
        for each in block
    )


def with_inner(block: Block, change: Callable[[Block], Block], where: Callable[[For | If], bool] = bool) -> Block:
    """Apply a change to the bodies of a block's loops and guards, or of those that `where` selects."""
    return tuple(
        with_body(each, change(each.body)) if isinstance(each, (For, If)) and where(each) else each for each in block
    )


def at_loop(
    procedure: Procedure, name: str, change: Callable[[For], Iterable[Statement] | None], tidy: bool = True
) -> Procedure:
    """Replace every loop of a name in a procedure, and move guards as far outside as they can be."""
    changed = False

    def noted(each: For) -> Iterable[Statement] | None:
        nonlocal changed
        found = change(each)
        changed |= found is not None
        return found

    body = with_loops_replaced(procedure.body, (name,), noted)
    if not changed:
        names = ", ".join(dict.fromkeys(each.variable.name for each in statements(body) if isinstance(each, For)))
        raise refused(f"there is no loop {name!r} that this could apply to", f"the loops are {names}")
    return replace(procedure, body=tidied(body) if tidy else body)


def nested_in(loop: For, names: Iterable[str]) -> tuple[list[For], list[Inside], Block]:
    """Return the loops of some names perfectly nested in one, the guards among them, and the innermost body."""
    wanted, body = set(names) - {loop.variable.name}, loop.body
    chain, guards = [loop], list[Inside]()
    while wanted or sole_guard(body) is not None:
        match body:
            case (If() as guard,):
                guards.append(guard.inside)
                body = guard.body
            case (For() as inner,):
                chain.append(inner)
                wanted.discard(inner.variable.name)
                body = inner.body
            case _:
                others = ", ".join(map(repr, sorted(wanted)))
                raise refused(
                    f"the loops {loop.variable.name!r} and {others} are not perfectly nested",
                    "loops can change places only if nothing stands between them",
                    "distribute the outer loop over its statements first",
                )
    return chain, guards, body


def nested(loops: Sequence[For], guards: Iterable[Inside], body: Block) -> Block:
    """Return a body in some guards in perfectly nested loops: what `nested_in` takes apart."""
    for guard in guards:
        body = (If(guard, body),)
    for each in reversed(loops):
        body = (with_body(each, body),)
    return body


def arrays_used(block: Block) -> set[int | Local]:
    """Return the arrays that a block reads or stores to."""
    return arrays_read(block) | arrays_written(block)


def is_zero(array: Local, before: Block) -> bool:
    """Return whether some statements allocate an array and only store zeros to it."""
    stores = [each for each in stores_of(before) if each.array == array]
    return Allocate(array) in before and all(
        isinstance(each, Store) and isinstance(each.value, Number) and not each.value.value for each in stores
    )


def accesses(block: Block, array: int | Local) -> Iterator[Index]:
    """Yield the indices at which a block reads or writes an array."""
    for each in statements(block):
        if isinstance(each, (Store, Accumulate)):
            if each.array == array:
                yield each.index
            for part in each.value.all_parts:
                if isinstance(part, (Read, Load)) and array_of(part) == array:
                    yield part.index


def array_of(part: Read | Load) -> int | Local:
    """Return the array that an element is read from."""
    return part.local if isinstance(part, Read) else part.buffer


def has_loop(block: Block, name: str) -> bool:
    """Return whether a block has a loop of a name."""
    is_it = Named(name)
    if is_it.is_plain or is_it.name not in loop_names(block):
        return is_it.name in loop_names(block)
    return any(isinstance(each, For) and is_it(each) for each in statements(block))


def any_of(
    procedure: Procedure,
    names: Iterable[str],
    change: Callable[[For], Iterable[Statement] | None],
    must_change: bool = True,
) -> Procedure:
    """Apply a change to the outermost of the loops that have one of some names."""
    body = with_loops_replaced(procedure.body, names, change)
    if must_change and body == procedure.body:
        raise refused(f"nothing to do at the loops {', '.join(names)}", "a step of a schedule changes something")
    return replace(procedure, body=tidied(body))


def local_named(procedure: Procedure, name: str) -> Local:
    """Return the local array of a name."""
    found = {local.name: local for local in allocated(procedure.body)}
    if name not in found:
        raise refused(f"there is no array {name!r}", f"the arrays are {', '.join(sorted(found))}")
    return found[name]


def with_local(block: Block, old: Local, new: Local, index: Callable[[Index], Index] = lambda index: index) -> Block:
    """Return a block that uses another array, or other elements of it, in place of one."""

    def change(part: Expression) -> Expression:
        return Read(part.dtype, new, index(part.index)) if isinstance(part, Read) and part.local == old else part

    def move(statement: Statement) -> Statement:
        match statement:
            case Store() | Accumulate():
                value = rewritten(statement.value, change, {}) if old in statement.value.reads else statement.value
                if statement.array == old:
                    return replace(statement, array=new, index=index(statement.index), value=value)
                return statement if value is statement.value else replace(statement, value=value)
            case Allocate():
                return Allocate(new) if statement.local == old else statement
            case Prefetch():
                return statement
            case For() | If():
                is_used = old in statement.read or old in statement.written or old in statement.locals
                return with_body(statement, with_local(statement.body, old, new, index)) if is_used else statement

    return tuple(map(move, block))


def stores_of(block: Block) -> Iterator[Store | Accumulate]:
    """Return the statements that store or accumulate."""
    return (each for each in statements(block) if isinstance(each, (Store, Accumulate)))


def places_in(block: Block, bounds: Bounds = (), around: tuple[Variable, ...] = ()) -> Iterator[Place]:
    """Yield all stores and accumulations of a block, each with the conditions and the loops around it."""
    for each in block:
        match each:
            case Store() | Accumulate():
                yield each, bounds, around
            case For():
                yield from places_in(each.body, bounds, (*around, each.variable))
            case If():
                yield from places_in(each.body, (*bounds, *each.inside.bounds), around)


def for_elements(block: Block, sum_: Accumulate, value: Expression) -> Block:
    """Return a store to all elements that a statement of a block adds to: inside those of its loops and
    conditions that determine the element.
    """
    *_, (_, bounds, inner) = (each for each in places_in(block) if each[0] == sum_)
    own = [one for one in inner if sum_.index.depends_on(one)]
    others = [one for one in inner if one not in own]
    said = [each for each in bounds if not any(each[1].depends_on(one) for one in others)]
    guard = Inside(tuple(each for each in said if any(each[1].depends_on(one) for one in own)))
    store: Statement = Store(sum_.array, sum_.index, value)
    return in_loops(tuple(own), (store if guard == ALWAYS else If(guard, (store,)),))


def names_of(arrays: Iterable[int | Local]) -> str:
    """Return arrays as a message calls them."""
    return ", ".join(each.name if isinstance(each, Local) else f"argument {each}" for each in arrays)


def names_of_loops(loops: Iterable[Variable]) -> str:
    """Return loops as a message calls them."""
    return ", ".join(sorted(repr(each.name) for each in loops))


def factors_of(statement: Accumulate) -> tuple[Expression, ...]:
    """Return the two factors, if a sum takes up a product."""
    value = statement.value
    is_product = isinstance(value, Apply) and value.primitive == "mul"
    return value.parts() if statement.reduction == "reduce_sum" and is_product else ()
