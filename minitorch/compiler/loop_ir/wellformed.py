"""The verifier of the tiled loop IR: rules that every procedure keeps, whichever rewrites made it.

The printer and the emitter rely on them: names are unique, arrays exist where they are used, and loops are of possible
kinds. That a rewrite keeps the numbers is not checked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from ...dtypes import int64
from ..lengths import Length, within_one
from .expressions import Expression, Load, Position, indices_of
from .index import Index, Looked, Variable, length_of
from .tree import Accumulate, Allocate, Block, For, If, Kind, Local, Place, Prefetch, Procedure, Read, Store, loaded

# Bytes of all local arrays. Threads have stacks of 8 MB on Linux, and of 512 KB to 16 MB elsewhere; the blocks that
# matrix products pack take up to 1.3 MB. Raising it lets schedules stage more, and overflows small stacks.
STACK = 4 << 20
Bound = tuple[int, Index, int]
LANES = 64  # lanes of a vector, at most: the bytes of the widest registers
COPIES = 4096  # of a statement in unrolled loops; raising it allows code that takes seconds to compile


@dataclass
class _Scope:
    """The names in scope at a place in the tree."""

    loops: dict[Variable, Kind] = field(default_factory=dict)
    locals: frozenset[Local] = frozenset()
    copies: int = 1
    is_outermost: bool = True
    is_vector: bool = False


def broken(procedure: Procedure) -> str | None:
    """Return the first rule that a procedure breaks, with the names concerned; None if it keeps all of them."""
    return next(_faults(procedure), None)


def _faults(procedure: Procedure) -> Iterator[str]:
    seen: dict[str, Local] = {}
    arrays, once, body = loaded(procedure)
    yield from _of_block(once, _Scope(is_outermost=False), seen)
    yield from _of_block(body, _Scope(locals=frozenset(arrays)), seen)
    size = sum(local.size * local.dtype.itemsize for local in seen.values() if local.place is Place.STACK)
    if size > STACK:
        yield f"the arrays of a kernel take at most {STACK} bytes of the stack, not {size}"


def _of_block(block: Block, scope: _Scope, seen: dict[str, Local]) -> Iterator[str]:
    own = scope.locals
    for each in block:
        within = _Scope(scope.loops, own, scope.copies, False, scope.is_vector)
        match each:
            case Allocate(local):
                if seen.setdefault(local.name, local) != local:
                    yield f"names of arrays are unique, but there are two of the name {local.name!r}"
                if scope.is_vector:
                    yield f"the lanes of a vector share their arrays, but {local.name!r} is allocated for each"
                own |= {local}
            case For(variable, body, kind):
                is_alone = scope.is_outermost and len(block) == 1
                yield from _of_loop(variable, kind, scope, is_alone)
                within.loops = {**scope.loops, variable: kind}
                within.copies *= variable.extent if kind is Kind.UNROLLED else 1
                within.is_outermost = is_alone and kind is Kind.PARALLEL
                within.is_vector = kind is Kind.VECTOR
                if within.copies > COPIES:
                    yield f"a statement has at most {COPIES} copies, but {variable.name!r} makes it {within.copies}"
                yield from _of_block(body, within, seen)
            case If(inside, body):
                for _, index, _ in inside.bounds:
                    yield from _of_index(index, scope, own)
                yield from _of_block(body, within, seen)
            case Prefetch():
                yield from _of_index(each.index, scope, own)
            case Store() | Accumulate():
                yield from _of_index(each.index, scope, own)
                yield from _of_array(each.array, each.index, scope, own)
                yield from _of_value(each.value, scope, own)


def _of_loop(variable: Variable, kind: Kind, scope: _Scope, is_alone: bool) -> Iterator[str]:
    name = variable.name
    if any(name == other.name for other in scope.loops):
        yield f"a loop has another name than those around it, but {name!r} is in a loop of that name"
    if scope.is_vector:
        yield f"the lanes of a vector run single statements, but the loop {name!r} is in a vector"
    if kind is Kind.PARALLEL and not is_alone:
        yield f"threads share the outermost loops, with nothing beside them, but {name!r} is further inside"
    if kind is Kind.VECTOR and (variable.extent > LANES or variable.extent & (variable.extent - 1)):
        yield f"a vector has 2, 4, 8, ... or {LANES} lanes, but {name!r} has {variable.extent} iterations"


def _of_array(array: int | Local, index: Index, scope: _Scope, own: frozenset[Local]) -> Iterator[str]:
    if not isinstance(array, Local):
        return
    if array not in own:
        yield f"an array is allocated around all of its uses, but {array.name!r} is used outside"
    for variable, kind in scope.loops.items():
        if array.place is Place.REGISTERS and kind not in (Kind.UNROLLED, Kind.VECTOR) and index.depends_on(variable):
            yield (
                "registers are known by constant numbers, so what indexes them is unrolled or a vector, "
                f"but {array.name!r} is indexed by {variable.name!r}"
            )


def _of_value(value: Expression, scope: _Scope, own: frozenset[Local]) -> Iterator[str]:
    for part in value.all_parts:
        for index in indices_of(part):
            yield from _of_index(index, scope, own)
        if isinstance(part, Read):
            yield from _of_array(part.local, part.index, scope, own)


def _of_index(index: Index, scope: _Scope, own: frozenset[Local]) -> Iterator[str]:
    for atom, _ in index.terms:
        if isinstance(atom, Variable):
            if atom not in scope.loops and atom.place is None:
                yield f"a variable is used in its loop, but {atom.name!r} is used outside"
        elif isinstance(atom, Looked):
            yield from _of_value(atom.value, scope, own)
        else:
            yield from _of_index(atom.index, scope, own)


def beyond_lengths(procedure: Procedure) -> dict[int, str]:
    """Return the arguments with elements that no guard keeps within the length of a call, each with such an access.

    The argument's memory ends there. A definition has such accesses where the program knows more than its loops, as of
    ``x[n - 1]``. A schedule may not add others.
    """
    if not procedure.lengths:
        return {}
    sizes = {
        number: length_of(size)
        for number, each in enumerate(procedure.buffers)
        if isinstance(size := prod(each.shape), Length) and within_one(each.shape)
    }
    found: dict[int, str] = {}

    def check(number: int | Local, index: Index, guards: Sequence[Bound]) -> None:
        if isinstance(number, int) and number in sizes and not _is_within(index, sizes[number], guards):
            found.setdefault(number, f"element {index} of {sizes[number]}")

    def read(value: Expression, guards: tuple[Bound, ...]) -> None:
        for part in value.all_parts:
            if isinstance(part, Load):
                check(part.buffer, part.index, (*guards, *part.inside.bounds))

    def within(block: Block, guards: tuple[Bound, ...]) -> None:
        for each in block:
            match each:
                case For():
                    within(each.body, guards)
                case If():
                    for _, index, _ in each.inside.bounds:
                        read(Position(int64, index), guards)
                    within(each.body, (*guards, *each.inside.bounds))
                case Prefetch():
                    read(Position(int64, each.index), guards)
                case Store() | Accumulate():
                    check(each.array, each.index, guards)
                    read(Position(int64, each.index), guards)
                    read(each.value, guards)

    within(procedure.body, ())
    return found


def _is_within(index: Index, size: Index, guards: Sequence[Bound]) -> bool:
    """Return whether an index is below a size that a call gives, by a guard with lengths and those without."""
    plain = [guard for guard in guards if not any(map(_is_given, guard[1].variables))]
    return any(_without(index - size, (guard, *plain)).bounds[1] < 0 for guard in guards if guard not in plain)


def _without(distance: Index, guards: Sequence[Bound]) -> Index:
    """Return a larger expression: without multiples of indices that are not above 0, as guards say."""
    for _, guarded, high in guards:
        for atom, by in guarded.terms:
            times, rest = divmod(distance.coefficient(atom), by)
            larger = distance - (guarded + (1 - high)) * times
            if not rest and times > 0 and larger.bounds[1] < distance.bounds[1]:
                distance = larger
                break
    return distance


def _is_given(variable: Variable) -> bool:
    return variable.place is not None
