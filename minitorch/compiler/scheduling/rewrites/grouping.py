"""Rewrites that group the terms of a sum of integers, as dot-product instructions take them.

Such an instruction multiplies several small integers in each 32-bit lane and adds all of the products to it
(`vpdpbusd`, `vpmaddwd`): tensorisation, in TVM's word. It needs the terms of a group beside each other in memory. So
the sum's loop is run to a multiple of the group (`pad_sum`), operands are packed in narrow types (`pack`), in an order
that a block of them takes through registers (`regroup`), and the terms of a group become one statement (`group`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce

from ....dtypes import DType, as_dtype
from ....passes.intervals import Range, of_type
from ...loop_ir.expressions import ALWAYS, Apply, Expression, chosen, converted, literal
from ...loop_ir.index import NOWHERE, Index, Variable, extent_of, linear, unravelled, variable
from ...loop_ir.narrowing import narrowed
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
    substituted,
)
from ..analysis.finding import any_of, at_loop, factors_of, nested_in
from ..analysis.ranges import stored_ranges, value_range
from ..rewrite import check_fresh, refused, step
from .arrays import unguarded
from .loops import check_independent

MOST_TERMS = 16  # of a group; no instruction takes more than 4, and more make long lines


def _sole_sum(block: Block) -> Accumulate | None:
    """Return the sum of integers that is all of a block, if so: any order gives the same, modulo a power of two."""
    each = block[0] if len(block) == 1 else None
    is_sum = isinstance(each, Accumulate) and each.reduction == "reduce_sum" and each.value.dtype.category == "int"
    return each if is_sum and isinstance(each, Accumulate) else None


@step
def pad_sum(procedure: Procedure, loop: str, multiple: int) -> Procedure:
    """Run the loop of a sum of integers to the next multiple of a number, with terms that are zero.

    Args:
        procedure: the kernel.
        loop: its name.
        multiple: the number whose multiple the iterations are afterwards.

    Law: ``s + 0 = s``. The loop contains a sum of integers and nothing else; each factor of a product is zero beyond.
    """
    what = f"pad_sum({loop!r}, {multiple})"

    def change(each: For) -> Iterable[Statement] | None:
        length = each.variable.extent
        whole = -(-length // max(multiple, 1)) * multiple
        sum_ = _sole_sum(each.body)
        if sum_ is None:
            raise refused(what, "the loop contains a sum of integers and nothing else")
        if whole <= length:
            raise refused(f"{what}: it has {length} iterations", "there are iterations to be added")
        if sum_.index.depends_on(each.variable):
            raise refused(
                f"{what}: it adds to another element in every iteration", "terms of zero are added to one sum"
            )
        place = variable(each.variable.name, whole)
        guard = ALWAYS.and_(0, place, length)
        (moved,) = unguarded(substituted(each.body, {each.variable: place}), guard)
        assert isinstance(moved, Accumulate)

        def padded(value: Expression) -> Expression:
            return chosen(guard, value, literal(value.dtype, 0))

        factors = tuple(map(padded, factors_of(moved)))
        value = Apply(moved.value.dtype, "mul", factors) if factors else padded(moved.value)
        return (For(Variable(each.variable.name, whole), (replace(moved, value=value),)),)

    return at_loop(procedure, loop, change)


@step
def group(procedure: Procedure, loop: str, pairs: str = "") -> Procedure:
    """Add the terms of all iterations of a loop to a sum of integers at once: one sum of products (tensorisation).

    Where their factors lie beside each other, in types that a dot-product instruction takes, it is that instruction.

    Args:
        procedure: the kernel.
        loop: its name.
        pairs: a narrower type, in which two products at a time are added up first, as `vpmaddubsw` does.

    Law: sums of integers are the same in any order, modulo a power of two. The loop contains one such sum, into an
    element that is the same in all iterations, and nothing else. A narrower type holds the sum of two products, as the
    ranges of stored values show.
    """
    what = f"group({loop!r}, pairs={pairs!r})" if pairs else f"group({loop!r})"

    def change(each: For) -> Iterable[Statement] | None:
        law = "the loop contains a sum of integers into one element, and nothing else"
        sum_ = _sole_sum(each.body)
        if sum_ is None:
            raise refused(what, law)
        if sum_.index.depends_on(each.variable) or sum_.array in sum_.value.reads:
            raise refused(f"{what}: iterations add to different elements, or read the sum", law)
        if each.variable.extent > MOST_TERMS:
            raise refused(f"{what} of {each.variable.extent} terms", f"a group has at most {MOST_TERMS} terms")
        terms = []
        for number in range(each.variable.extent):
            (moved,) = substituted((sum_,), {each.variable: NOWHERE + number})
            assert isinstance(moved, Accumulate)
            terms.append(moved.value)
        if pairs:
            terms = [_pair(what, as_dtype(pairs), terms[at : at + 2], ranges) for at in range(0, len(terms), 2)]
        return (replace(sum_, value=reduce(_added, terms)),)

    ranges = stored_ranges(procedure)
    return at_loop(procedure, loop, change)


def _added(a: Expression, b: Expression) -> Expression:
    return Apply(a.dtype, "add", (a, b))


def _pair(what: str, dtype: DType, terms: list[Expression], ranges: Callable[[Expression], Range | None]) -> Expression:
    """Return the sum of two products in a narrower type."""
    law = f"{dtype.name} holds every sum of two products"
    factors = [part for term in terms for part in term.parts()]
    if len(terms) != 2 or any(not isinstance(term, Apply) or term.primitive != "mul" for term in terms):
        raise refused(f"{what}: its terms are no pairs of products", law)
    small = [one for factor in factors if (one := narrowed(factor, dtype)) is not None]
    if len(small) < len(factors):
        raise refused(f"{what}: a factor may not fit into {dtype.name}", law)
    found = value_range(_added(*terms), ranges)
    if not found.fits(of_type(dtype)):
        raise refused(f"{what}: a sum of two products may be from {found.low} to {found.high}", law)
    a, b, c, d = small
    return converted(_added(Apply(dtype, "mul", (a, b)), Apply(dtype, "mul", (c, d))), terms[0].dtype)


@step
def regroup(procedure: Procedure, name: str, lanes: int, read: tuple[str, ...], write: tuple[str, ...]) -> Procedure:
    """Copy a block of elements through registers: read in one order, written in another.

    A square is transposed. Rows of which single elements are taken in turn are interleaved.

    Args:
        procedure: the kernel.
        name: of the block in registers.
        lanes: elements of a vector.
        read: the loops around the copy, in the order in which memory that is read is dense.
        write: the same loops, in the order in which memory that is written is.

    Law: the loops are perfectly nested around one store, and independent. A block is some whole vectors.
    """
    what = f"regroup({name!r}, {lanes}, {read!r}, {write!r})"
    check_fresh(procedure, name, f"{name}_part", f"{name}_lane")
    if not read or sorted(read) != sorted(write):
        raise refused(what, "what is read and what is written are the elements of the same loops")

    def change(each: For) -> Iterable[Statement] | None:
        if not set(read) <= each.names:
            return None
        chain, guards, body = nested_in(each, read)
        variables = {loop.variable.name: loop.variable for loop in chain}
        if sorted(variables) != sorted(read) or len(body) != 1 or not isinstance(body[0], Store):
            raise refused(what, "the loops are perfectly nested around one store")
        size = extent_of(variables.values())
        if lanes < 1 or lanes & (lanes - 1) or size % lanes:
            raise refused(f"{what}: the block has {size} elements", "a block is some whole vectors")
        check_independent(variables.values(), body, what, sums=False, guards=guards)
        store = body[0]
        tile = Local(name, size, store.value.dtype, Place.REGISTERS)
        part, lane = Variable(f"{name}_part", size // lanes), Variable(f"{name}_lane", lanes)
        at = variable(part.name, part.extent) * lanes + variable(lane.name, lanes)

        def places(order: tuple[str, ...]) -> dict[Variable, Index]:
            digits = unravelled(at, tuple(variables[one].extent for one in order))
            return {variables[one]: digit for one, digit in zip(order, digits, strict=True)}

        fill: Block = (Store(tile, NOWHERE, store.value),)
        within = [variable(one, variables[one].extent) for one in read]
        element = linear(within, tuple(variables[one].extent for one in read))
        empty: Block = (replace(store, value=Read(tile.dtype, tile, element)),)
        for guard in guards:
            fill, empty = unguarded(fill, guard), (If(guard, empty),)
        (first,) = substituted(fill, places(read))
        assert isinstance(first, Store)
        blocks: tuple[Block, ...] = (replace(first, index=at),), substituted(empty, places(write))
        vectors = [For(lane, each_block, Kind.VECTOR) for each_block in blocks]
        if part.extent == 1:
            return (Allocate(tile), *vectors)
        return (Allocate(tile), *(For(part, (vector,), Kind.UNROLLED) for vector in vectors))

    return any_of(procedure, read, change)
