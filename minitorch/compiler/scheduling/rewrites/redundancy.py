"""Rewrites that compute repeated values once: invariant code, common subexpressions, factors of a whole sum."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from ...loop_ir.expressions import Apply, Expression, Number, converted
from ...loop_ir.index import Index, Variable, variable
from ...loop_ir.tree import (
    Accumulate,
    Allocate,
    Block,
    For,
    If,
    Procedure,
    Read,
    Statement,
    arrays_written,
    loops,
    statements,
    substituted,
    with_body,
)
from ..analysis.dependences import are_elements
from ..analysis.finding import (
    any_of,
    arrays_used,
    for_elements,
    has_loop,
    is_zero,
    local_named,
    names_of,
    nested,
    nested_in,
    stores_of,
    with_inner,
    with_local,
    with_statements,
)
from ..rewrite import refused, step


@step
def hoist(procedure: Procedure, *names: str) -> Procedure:
    """Move the first statements in perfectly nested loops before them, if all iterations run the same ones.

    This is loop-invariant code motion.

    Law: the statements depend on none of the loops and store only to arrays that they allocate. Nothing in the loops
    stores to their operands.
    """
    what = f"hoist({', '.join(map(repr, names))})"
    names = tuple(name for name in names if has_loop(procedure.body, name))

    def change(each: For) -> Block | None:
        if not set(names) <= {inner.variable.name for inner in loops((each,))}:
            return None
        chain, guards, body = nested_in(each, names)
        first = {one.variable: variable(one.variable.name, 1) for one in chain}
        for guard in guards:
            if guard.substitute(first).bounds:
                raise refused(f"{what}: {guard} may hold in no iteration", "the loops run at least once")
        count, own = 0, {inner.local for inner in statements(body) if isinstance(inner, Allocate)}
        while arrays_written(body[count : count + 1]) <= own and not _depends(body[count : count + 1], chain):
            count += 1
        while count and isinstance(body[count - 1], Allocate):
            count -= 1
        fixed, rest = body[:count], body[count:]
        if not fixed or not rest:
            return None
        if arrays_used(fixed) & arrays_written(rest):
            changed = names_of(arrays_used(fixed) & arrays_written(rest))
            raise refused(f"{what}: {changed} change in the loops", "nothing in the loops stores to the operands")
        return (*fixed, *nested(chain, guards, rest))

    if not names:
        raise refused(what, "a step of a schedule changes something")
    return any_of(procedure, names[:1], change)


def _depends(block: Block, chain: Collection[For]) -> bool:
    """Return whether statements change with the loops around them; an empty block counts as changing."""
    variables = [each.variable for each in chain]
    guards = (each.inside for each in statements(block) if isinstance(each, If))
    stores = list(stores_of(block))
    return (
        not block
        or any(guard.depends_on(one) for guard in guards for one in variables)
        or any(each.index.depends_on(one) or each.value.depends_on(one) for each in stores for one in variables)
    )


@step
def reuse(procedure: Procedure, array: str, like: str) -> Procedure:
    """Use an array in place of another one that is computed in the same way (common subexpression elimination).

    Args:
        procedure: the kernel.
        array: is not computed any more.
        like: the one that is used; it is computed before, in the same block.

    Law: the statements that store to the two differ in nothing but the names of loops. Nothing stores to their operands
    between them.
    """
    old, new = local_named(procedure, array), local_named(procedure, like)
    what = f"reuse({array!r}, {like!r})"

    def within(block: Block) -> Block:
        if not {Allocate(old), Allocate(new)} <= {*block}:
            return with_inner(block, within, lambda each: old in each.locals)
        one, other = ([n for n, each in enumerate(block) if local in arrays_written((each,))] for local in (new, old))
        first, second = (tuple(block[number] for number in places) for places in (one, other))
        same = _canonical(with_local(second, old, new)) == _canonical(first)
        if not same or not one or one[-1] > other[0] or arrays_written(first) != {new}:
            raise refused(f"{what}: they are computed in different ways", "the statements differ in names alone")
        written = arrays_written(
            tuple(each for n, each in enumerate(block[: other[-1]]) if n > one[0] and n not in one)
        )
        if (written - {old}) & arrays_used(first):
            raise refused(f"{what}: {names_of(written)} change between them", "the operands are the same for both")
        rest = tuple(each for n, each in enumerate(block) if n not in other and each != Allocate(old))
        return with_local(rest, old, new)

    body = within(procedure.body)
    if body == procedure.body:
        raise refused(f"{what}: they do not live in one block", "the two are allocated in one block")
    return replace(procedure, body=body)


def _canonical(block: Block, names: Mapping[Variable, Index] = MappingProxyType({})) -> Block:
    """Return a block with its loops named by their depth."""
    found: list[Statement] = []
    for each in block:
        if isinstance(each, For):
            own = Variable(f"loop{len(names)}", each.variable.extent)
            body = _canonical(each.body, {**names, each.variable: variable(own.name, own.extent)})
            found.append(For(own, body, each.kind))
        elif isinstance(each, If):
            found.append(If(each.inside.substitute(names), _canonical(each.body, names)))
        else:
            found += substituted((each,), names)
    return tuple(found)


@step
def factor_out(procedure: Procedure, array: str, loop: str) -> Procedure:
    """Apply factors and divisors that all terms of a sum have to the sum, once it is complete.

    Law: ``sum(a * c) = sum(a) * c`` and ``sum(a / c) = sum(a) / c``, but for rounding (distributive law). So c is the
    same in all iterations, nothing stores to its operands meanwhile, and the sum begins with 0.
    """
    local = local_named(procedure, array)
    what = f"factor_out({array!r}, {loop!r})"

    def changed(before: Block, each: For) -> Block | None:
        sums = [one for one in stores_of(each.body) if one.array == local]
        if not sums:
            return None
        inner = [one for one in statements((each,)) if isinstance(one, For)]
        variables = dict.fromkeys(one.variable for one in inner)
        written = arrays_written(each.body)

        def is_fixed(value: Expression) -> bool:
            return not (isinstance(value, Number) or value.reads & written or value.variables & variables.keys())

        (sum_, *more) = sums
        if more or not isinstance(sum_, Accumulate) or sum_.reduction != "reduce_sum" or not is_zero(local, before):
            raise refused(what, "the loop does nothing with the array but to add up terms, beginning with 0")
        term, factors = taken_apart(sum_.value, is_fixed)
        if not factors:
            raise refused(f"{what}: no factor is the same for all terms", "c is the same in all iterations")
        new = replace(sum_, value=term)
        total: Expression = Read(local.dtype, local, sum_.index)
        for name, others in factors:
            total = Apply(local.dtype, name, (total, *(converted(each, local.dtype) for each in others)))
        over = tuple(one for one in variables if sum_.index.depends_on(one))
        if each.variable in over or not are_elements(sum_.index, local, over):
            raise refused(
                f"{what}: {local.name}[{sum_.index}] is no sum of its own", "a sum goes on in every iteration"
            )
        body = with_statements(each.body, lambda one: new if one == sum_ else one)
        return (with_body(each, body), *for_elements(each.body, sum_, total))

    def within(block: Block) -> Block:
        found: list[Statement] = []
        for each in block:
            new = changed(tuple(found), each) if isinstance(each, For) and each.variable.name == loop else None
            if new is None:
                new = (with_body(each, within(each.body)) if isinstance(each, (For, If)) else each,)
            found += new
        return tuple(found)

    body = within(procedure.body)
    if body == procedure.body:
        raise refused(f"{what}: there is no such loop", "a step of a schedule changes something")
    return replace(procedure, body=body)


def taken_apart(
    value: Expression, is_fixed: Callable[[Expression], bool]
) -> tuple[Expression, list[tuple[str, tuple[Expression, ...]]]]:
    """Return a term without its sign, fixed factors and divisors, and these, the innermost first.

    A term that is rounded to 16 bits is so without them.
    """
    if not isinstance(value, Apply) or not value.dtype.is_floating_point:
        return value, []
    first, second = value.arguments[0], value.arguments[-1]
    if value.primitive == "neg" or (value.primitive == "cast" and first.dtype.is_floating_point):
        term, factors = taken_apart(first, is_fixed)
        return (term, [*factors, ("neg", ())]) if value.primitive == "neg" else (converted(term, value.dtype), factors)
    if value.primitive not in ("mul", "div"):
        return value, []
    if is_fixed(second):
        term, factors = taken_apart(first, is_fixed)
        return term, [*factors, (value.primitive, (second,))]
    if value.primitive == "mul" and is_fixed(first):
        term, factors = taken_apart(second, is_fixed)
        return term, [*factors, ("mul", (first,))]
    first, factors = taken_apart(first, is_fixed)
    second, more = taken_apart(second, is_fixed) if value.primitive == "mul" else (second, [])
    return Apply(value.dtype, value.primitive, (first, second)), [*factors, *more]
