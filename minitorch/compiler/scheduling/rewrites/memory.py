"""Rewrites of memory accesses: software prefetch, non-temporal stores, and vectors that begin where lines do.

The processor foresees rows that lie one after another, but not those whose place is data (Callahan, Kennedy and
Porterfield, "Software prefetching", 1991). An ordinary store reads a line of memory before it writes to it; a
non-temporal one does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...loop_ir.expressions import ALWAYS, Expression, Load
from ...loop_ir.index import NOWHERE, Index, Variable, variable
from ...loop_ir.tree import (
    Block,
    For,
    If,
    Kind,
    Prefetch,
    Procedure,
    Read,
    Statement,
    Store,
    sole_guard,
    statements,
    substituted,
    with_body,
)
from ...target import LINE
from ..analysis.dependences import accesses_of, conflicts
from ..analysis.finding import at_loop, stores_of, with_statements
from ..rewrite import check_fresh, refused, step

MOST_LINES = 32  # prefetched of a row; by then the hardware prefetches


@step
def prefetch(procedure: Procedure, argument: int, loop: str, ahead: int, name: str) -> Procedure:
    """Prefetch, in each iteration of a loop, the elements of an argument that a later one reads: neighbours in memory.

    Args:
        procedure: the kernel.
        argument: its number.
        loop: the loop, each iteration of which reads from another place.
        ahead: after how many iterations the neighbours are read.
        name: of the loop over the lines of memory that they take.

    Law: none for what is computed. Each iteration reads from another place, which is known before it begins. A guard of
    the later iteration is one of the request.
    """
    check_fresh(procedure, name, near=loop)
    itemsize = procedure.buffers[argument].dtype.itemsize if argument < len(procedure.buffers) else 1

    def change(each: For) -> Iterable[Statement] | None:
        inner = [one.variable for one in statements(each.body) if isinstance(one, For)]
        parts = (part for one in stores_of(each.body) for part in one.value.all_parts)
        reads = [part for part in parts if isinstance(part, Load) and part.buffer == argument]
        for read in reads:
            is_dense = read.index.depends_on(each.variable) and any(read.index.coefficient(one) == 1 for one in inner)
            if is_dense and read.inside == ALWAYS and _is_known(read.values, inner):
                first = read.index.substitute(dict.fromkeys(inner, NOWHERE))
                per_line, span = LINE // itemsize, (read.index - first).bounds[1]
                later = variable(each.variable.name, each.variable.extent) + ahead
                first = first.substitute({each.variable: later})
                line = Variable(name, min(span // per_line + 1, MOST_LINES))
                asked = Prefetch(argument, first + variable(name, line.extent) * per_line)
                there, rest = ALWAYS.and_(0, later, each.variable.extent), each.body
                while (guard := sole_guard(rest)) is not None:
                    for bound in guard.inside.substitute({each.variable: later}).bounds:
                        there = there.and_(*bound)
                    rest = guard.body
                return [with_body(each, (If(there, (For(line, (asked,), Kind.UNROLLED),)), *each.body))]
        return None

    return at_loop(procedure, loop, change)


def _is_known(values: tuple[Expression, ...], inner: list[Variable]) -> bool:
    """Return whether indices that are data are known before the loops inside begin."""
    parts = [part for value in values for part in value.all_parts]
    return not any(isinstance(part, Read) or any(part.depends_on(one) for one in inner) for part in parts)


@step
def stream(procedure: Procedure, argument: int) -> Procedure:
    """Store to an argument past the caches.

    Law: the kernel does not read the argument, and stores each of its elements once.
    """
    loops = {each.variable for each in statements(procedure.body) if isinstance(each, For)}
    found = [each for each in accesses_of(procedure.body) if each.array == argument]
    if not all(each.writes and each.reduction is None for each in found) or any(
        True for each in found for _ in conflicts([each], loops & each.inner)
    ):
        raise refused(f"stream({argument})", "the kernel stores each element once, and does not read it again")
    if not found:
        raise refused(f"stream({argument})", "the kernel stores to the argument")

    def streamed(each: Statement) -> Statement:
        return replace(each, past_caches=True) if isinstance(each, Store) and each.array == argument else each

    return replace(procedure, body=with_statements(procedure.body, streamed))


@step
def align(procedure: Procedure, loop: str, argument: int, factor: int, outer: str, inner: str) -> Procedure:
    """Split a loop so that the parts begin at multiples of a number in an argument that it fills (loop alignment).

    The first part begins before the loop does, and the last ends after it: both are guarded.

    Args:
        procedure: the kernel.
        loop: the name of the loop.
        argument: the number of the argument that it stores to.
        factor: the number, of elements, and of iterations of a part.
        outer, inner: the names of the new loops.

    Law: the iterations keep their order. The loop stores to neighbours in the argument.
    """
    check_fresh(procedure, outer, inner, near=loop)

    def change(each: For) -> Iterable[Statement]:
        stores = [one for one in statements(each.body) if isinstance(one, Store) and one.array == argument]
        start = stores[0].index.substitute({each.variable: NOWHERE}) if stores else NOWHERE
        if not stores or any(one.index != start + variable(each.variable.name, each.variable.extent) for one in stores):
            raise refused(f"align({loop!r}, {argument})", "the loop stores to neighbours in the argument")
        shift = start % factor
        count = (each.variable.extent + shift.bounds[1] - 1) // factor + 1
        first, own = Variable(inner, factor), variable(inner, factor)

        def part(number: Index) -> Block:
            place = number * factor + own - shift
            inside = ALWAYS.and_(0, place, each.variable.extent)
            return (For(first, (If(inside, substituted(each.body, {each.variable: place})),)),)

        rest = (For(Variable(outer, count - 1), part(variable(outer, count - 1) + 1)),) if count > 1 else ()
        return (*part(NOWHERE), *rest)

    return at_loop(procedure, loop, change)
