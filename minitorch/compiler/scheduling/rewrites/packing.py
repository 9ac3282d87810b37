"""Rewrites that copy operands into the order in which they are used, and keep arrays in the memory of others.

Staging in a buffer is `cache_read` in TVM and `stage_mem` in Exo.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ....dtypes import as_dtype
from ...loop_ir.expressions import ALWAYS, Expression, Load, converted
from ...loop_ir.index import NOWHERE, Variable, variable
from ...loop_ir.narrowing import narrowed
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
    sole_guard,
    statements,
    substituted,
    with_body,
)
from ..analysis.dependences import all_accesses, may_meet
from ..analysis.finding import (
    any_of,
    array_of,
    arrays_used,
    factors_of,
    has_loop,
    local_named,
    with_inner,
    with_local,
)
from ..rewrite import check_fresh, name_of, refused, step
from .staging import check_copied, uses


@step
def pack(
    procedure: Procedure,
    argument: int | str | None,
    into: str,
    at: str,
    *order: str,
    pad: tuple[str, int] | None = None,
    prefix: bool = True,
    of: str = "",
    dtype: str = "",
) -> Procedure:
    """Copy a factor of a sum, which reads an array, into a new array in the order of its use (packing).

    The whole term of a maximum can be copied, too, and one that reads a local array and is no product.

    Args:
        procedure: the kernel.
        argument: the number of the argument that the factor reads, or the name of a local array; None for any
            factor. Of several, it is one that depends on loops of `order` alone.
        into: the name of the new array. The loops that fill it are called like those of `order`, with this in front.
        at: the loop in whose body it is filled, just before the factor is used; "" for the kernel.
        order: the loops that run through it, the outermost first: those inside of `at` that the factor depends on.
        pad: the name of a loop, and how many elements further apart than needed its iterations lie: at a power of two
            they would compete for the same places of a cache.
        prefix: whether the loops that fill the array have its name in front of theirs.
        of: the array that the sum is in; without, a factor of any sum is copied.
        dtype: the type of the new array's elements, if another than the factor's: a narrower one, of integers.

    Law: nothing that runs between the copy and the use stores to an operand of the factor, and every element that is
    used is copied. A narrower type holds every value of the factor, as it is cast from one that does.
    """
    what = f"pack({argument!r}, {into!r}) at {at!r}" if at else f"pack({argument!r}, {into!r})"
    front = f"{into}_" if prefix else ""
    new_names = (f"{front}{name}" for name in order if prefix and has_loop(procedure.body, name))
    check_fresh(procedure, into, *new_names)
    if pad is not None and pad[1] < 0:
        raise refused(f"{what} with elements {pad[1]} further apart", "elements of an array do not overlap")

    def reads(factor: Expression) -> bool:
        found = {array_of(part) for part in factor.all_parts if isinstance(part, (Read, Load))}
        return argument is None or any(
            argument == (array.name if isinstance(array, Local) else array) for array in found
        )

    def packed(whole: Block) -> Block | None:
        guarded = sole_guard(whole)
        if guarded is not None:
            body = packed(guarded.body)
            return None if body is None else (with_body(guarded, body),)
        sums = (each for each in statements(whole) if isinstance(each, Accumulate) and of in ("", name_of(each.array)))
        factors = list(dict.fromkeys(factor for each in sums for factor in _packable(each, argument) if reads(factor)))
        if not factors:
            return None
        found = {variable: None for each in statements(whole) if isinstance(each, For) for variable in (each.variable,)}
        others = [{loop for loop in found if factor.depends_on(loop)} for factor in factors]
        factor = next(
            (one for one, own in zip(factors, others, strict=True) if {v.name for v in own} <= {*order}), factors[0]
        )
        place = next(place for place, each in enumerate(whole) if uses((each,), factor))
        before, block = whole[:place], whole[place:]
        places = uses(block, factor)
        around = next(
            within for each, _, within in places if isinstance(each, Accumulate) and factor in _packable(each, argument)
        )
        own = [loop for name in order for loop in around if loop.name == name]
        guards = check_copied(what, block, factor, own)
        guard = next(
            guard
            for guard, (each, _, within) in zip(guards, places, strict=True)
            if within == around and isinstance(each, Accumulate)
        )
        if not all({*guard.bounds} <= {*other.bounds} for other in guards):
            raise refused(f"{what}: the factor is used where {guard} does not hold, too", "what is used is copied")
        index, size, by_name = NOWHERE, 1, {each.name: each for each in own}
        for name in reversed(order):
            size += pad[1] if pad is not None and pad[0] == name else 0
            if name in by_name:
                index = index + variable(name, by_name[name].extent) * size
                size *= by_name[name].extent
        held = narrowed(factor, as_dtype(dtype)) if dtype else factor
        if held is None:
            raise refused(f"{what}: the factor may not fit into {dtype}", "a narrower type holds every value")
        local = Local(into, size, held.dtype)
        new = converted(Read(held.dtype, local, index), factor.dtype)
        names = {each: variable(f"{front}{each.name}", each.extent) for each in own}
        store: Statement = Store(local, index, held)
        copy: Block = substituted((store if guard == ALWAYS else If(guard, (store,)),), names)
        copy = in_loops(tuple(Variable(f"{front}{each.name}", each.extent) for each in own), copy)
        rest = _replaced(block, factor, new, [each for each in own if not factor.depends_on(each)])
        return (*before, Allocate(local), *copy, *rest)

    if not at:
        body = packed(procedure.body)
        if body is not None:
            return replace(procedure, body=body)
    elif has_loop(procedure.body, at):

        def change(each: For) -> Iterable[Statement] | None:
            body = packed(each.body)
            return None if body is None else [replace(each, body=body)]

        return any_of(procedure, [at], change)
    raise refused(f"{what}: no sum of products in there has a factor that reads the argument", "a copy is used")


def _replaced(block: Block, factor: Expression, new: Expression, left: Sequence[Variable]) -> Block:
    """Return a block with a copy in place of a factor, inside all its loops: here, but for those left."""
    if not left:
        return mapped(block, lambda part: new if part == factor else part)

    def inside(each: For | If) -> Statement:
        others = [one for one in left if not (isinstance(each, For) and one == each.variable)]
        return with_body(each, _replaced(each.body, factor, new, others))

    return tuple(inside(each) if isinstance(each, (For, If)) else each for each in block)


def _packable(each: Accumulate, argument: int | str | None) -> tuple[Expression, ...]:
    """Return the factors of a term, or a whole one, unless they lie in a local array already."""
    is_whole = each.reduction == "reduce_max" or (isinstance(argument, str) and not factors_of(each))
    found = (each.value,) if is_whole else factors_of(each)
    is_copied = is_whole or isinstance(argument, str)
    return tuple(part for part in found if not (is_copied and isinstance(part, Read)))


@step
def overlay(procedure: Procedure, array: str, over: str) -> Procedure:
    """Keep an array in the memory of another one, whose elements it is computed from (storage reuse).

    Args:
        procedure: the kernel.
        array: its name.
        over: the name of the other one, which is not needed any more.

    Law: the two have the same size and type, and live in the same block. A statement that stores to the array reads no
    element of the other one but that in the place of which it stores, and nothing reads the other one later.
    """
    new, old = local_named(procedure, array), local_named(procedure, over)
    what = f"overlay({array!r}, {over!r})"

    def is_last(block: Block) -> bool:
        """Return whether each element of the other array is used only before the one in its place is stored."""
        place = next(n for n, each in enumerate(block) if new in arrays_written((each,)))
        each = block[place]
        if any(old in arrays_used((one,)) or new in arrays_written((one,)) for one in block[place + 1 :]):
            return False
        if isinstance(each, For):
            found = [one for one in all_accesses(each.body) if one.array == old or (one.array == new and one.writes)]
            stores = [one for one in found if one.array == new]
            if any(may_meet(one, other, frozenset({each.variable})) for one in stores for other in found):
                return False
        if isinstance(each, (For, If)):
            return is_last(each.body)
        if not isinstance(each, Store):
            return False
        return all(
            part.index == each.index for part in each.value.all_parts if isinstance(part, Read) and part.local == old
        )

    def within(block: Block) -> Block:
        if not {Allocate(old), Allocate(new)} <= {*block}:
            return with_inner(block, within, lambda each: old in each.locals)
        if (old.size, old.dtype) != (new.size, new.dtype) or not is_last(block):
            raise refused(f"{what}: elements of {over} are needed later", "nothing reads what is stored over")
        rest = tuple(each for each in block if each != Allocate(new))
        return with_local(rest, new, old)

    body = within(procedure.body)
    if body == procedure.body:
        raise refused(f"{what}: they do not live in one block", "the two are allocated in one block")
    return replace(procedure, body=body)
