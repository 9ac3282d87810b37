"""Rewrite that runs several loops as one, with the statements between them before or after it (loop fusion)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ...loop_ir.expressions import ALWAYS, Inside
from ...loop_ir.tree import (
    Block,
    For,
    If,
    Local,
    Procedure,
    Statement,
    arrays_written,
    sole_guard,
    tidied,
    with_body,
)
from ..analysis.dependences import accesses_of, conflicts
from ..analysis.finding import arrays_used, with_inner
from ..rewrite import Named, refused, step
from .loops import refuse


@step
def gather(procedure: Procedure, loop: str, *arrays: str) -> Procedure:
    """Join the loops of a name that store to some arrays into one loop around all of their statements.

    Statements between them that the loops do not need come after it, others before.

    Args:
        procedure: the kernel.
        loop: the name of the loops, which are in one block.
        arrays: the names of the arrays.

    Law: no iteration of a loop needs what a later iteration of one before it did. Stores to arguments are not moved
    ahead: their memory may be read before.
    """
    what = f"gather({', '.join(map(repr, (loop, *arrays)))})"
    is_it = Named(f"{loop}@{','.join(arrays)}")

    def within(block: Block) -> Block:
        place = next((n for n, each in enumerate(block) if isinstance(each, For) and is_it(each)), None)
        if place is None:
            return with_inner(block, within, lambda each: is_it.name in each.names)
        first = block[place]
        assert isinstance(first, For)
        ahead, taken, behind = between(first, block[place + 1 :], lambda each, _: is_it(each))
        if any(isinstance(each, For) and is_it(each) for each in behind):
            raise refused(f"{what}: one needs what is computed between the others", "all loops can run together")
        guard, bodies = without_guard(taken)
        owners = [number for number, body in enumerate(bodies) for _ in body]
        across = (
            (a, b)
            for a, b in conflicts(accesses_of(tuple(each for body in bodies for each in body)), [first.variable])
            if owners[a.number] != owners[b.number]
        )
        refuse(what, across, "no iteration of the first needs to wait for one of the second")
        return (*block[:place], *ahead, with_body(first, guarded(guard, bodies)), *behind)

    body = within(procedure.body)
    if body == procedure.body:
        raise refused(f"{what}: there is only one such loop", "a step of a schedule changes something")
    return replace(procedure, body=tidied(body))


def between(
    first: For, rest: Block, joins: Callable[[For, set[int | Local]], bool]
) -> tuple[list[Statement], list[For], list[Statement]]:
    """Find loops that can join a first one: the statements before them, the loops, and the statements after.

    Args:
        first: the loop.
        rest: the statements after it.
        joins: whether a loop of the same iterations is one of them, given the arrays that those before it store to.
    """
    ahead, taken, behind = list[Statement](), [first], list[Statement]()
    for each in rest:
        is_loop = isinstance(each, For) and each.variable == first.variable and each.kind == first.kind
        if isinstance(each, For) and is_loop and not _meet(each, behind) and joins(each, arrays_written(tuple(taken))):
            taken.append(each)
        elif _meet(each, [*taken, *behind]) or any(isinstance(array, int) for array in arrays_written((each,))):
            behind.append(each)
        else:
            ahead.append(each)
    return ahead, taken, behind


def _meet(statement: Statement, others: Iterable[Statement]) -> bool:
    """Return whether a statement needs another one's results, or the other way round."""
    block, rest = (statement,), tuple(others)
    return bool(arrays_written(block) & arrays_used(rest) or arrays_used(block) & arrays_written(rest))


def without_guard(loops: Iterable[For]) -> tuple[Inside, list[Block]]:
    """Return the guard that the bodies of some loops share, if they are nothing else, and the bodies in it."""
    bodies = [each.body for each in loops]
    guards = {guard.inside if (guard := sole_guard(body)) is not None else ALWAYS for body in bodies}
    if len(guards) > 1 or guards == {ALWAYS}:
        return ALWAYS, bodies
    return guards.pop(), [guard.body for body in bodies if (guard := sole_guard(body)) is not None]


def guarded(guard: Inside, bodies: Iterable[Block]) -> Block:
    """Put a guard around statements one after another."""
    body = tuple(each for block in bodies for each in block)
    return body if guard == ALWAYS else (If(guard, body),)
