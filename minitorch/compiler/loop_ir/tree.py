"""The tiled loop IR: a kernel as a tree of loops in the order in which it runs.

A `Nest` (see `loops`) says what is computed for every row. A `Procedure` also says how: the order of the loops, which
run on vectors, are unrolled or shared among threads, and the local arrays. The first procedure of a nest is its
definition; rewrites (`minitorch.compiler.scheduling.rewrites`) turn it into the one that runs. The structure is that of
Halide's and TVM's statements and of Exo's procedures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import count
from operator import is_
from typing import Any

from ...dtypes import DType
from ..lengths import Length
from .expressions import (
    ALWAYS,
    Choose,
    Expression,
    Inside,
    Places,
    Scratch,
    Sum,
    Total,
    arrays_of,
    computed_in,
    converted,
    literal,
    moved,
    rewritten,
)
from .index import NOWHERE, Index, Variable
from .loops import Buffer, Keep, Nest, Reduce, Write, neutral


class Kind(Enum):
    """The kind of a loop: how its iterations run."""

    SERIAL = "serial"
    PARALLEL = "parallel"  # shared among threads
    VECTOR = "vector"  # one lane each
    UNROLLED = "unrolled"  # written out
    OUTLINED = "outlined"  # in a function of their own


class Place(Enum):
    """The storage of a local array."""

    STACK = "stack"
    REGISTERS = "registers"
    LOADED = "loaded"  # memory of the program, filled once, when it is loaded


@dataclass(frozen=True)
class Local:
    """A local array of one call of a kernel.

    Attributes:
        name: as it is printed.
        size: elements.
        dtype: of an element.
        place: memory on the stack, vector registers, which only constant indices address, or memory of the program.
    """

    name: str
    size: int
    dtype: DType
    place: Place = Place.STACK

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, eq=False)
class Read(Expression):
    """An element of a local array."""

    local: Local
    index: Index = NOWHERE

    @cached_property
    def reads(self) -> frozenset[Any]:
        """The array, and those that the index is read from."""
        return arrays_of(self, self.local)


@dataclass(frozen=True)
class Store:
    """``array[index] = value``.

    Attributes:
        array: the number of an argument, or local.
        index: of the element.
        value: of the element.
        past_caches: whether whole vectors go to memory past the caches (non-temporal), unless they take the place of
            values that the kernel reads.
    """

    array: int | Local
    index: Index
    value: Expression
    past_caches: bool = False


@dataclass(frozen=True)
class Accumulate:
    """``array[index] = array[index] op value``, where the reduction says which operation."""

    array: int | Local
    index: Index
    reduction: str
    value: Expression


class Nested:
    """A statement with a body. Facts about it are found once, so rewrites that leave it alone do not look inside."""

    body: tuple[Statement, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all loops in it, with its own."""
        own = {self.variable.name} if isinstance(self, For) else set()
        return frozenset(own | loop_names(self.body))

    @cached_property
    def locals(self) -> frozenset[Local]:
        """The arrays that are allocated in it."""
        return frozenset(allocated(self.body))

    @cached_property
    def written(self) -> frozenset[int | Local]:
        """The arrays that it stores to."""
        return frozenset(arrays_written(self.body))

    @cached_property
    def read(self) -> frozenset[int | Local]:
        """The arrays that the values of its statements read."""
        return frozenset(arrays_read(self.body))

    @cached_property
    def tidy(self) -> tuple[Statement, ...] | None:
        """The statements that `tidied` puts in its place; None if it stays."""
        assert isinstance(self, (For, If))
        body = tidied(self.body)
        if not body:
            return ()
        guard = sole_guard(body)
        if isinstance(self, For) and guard is not None and self.kind is not Kind.PARALLEL:
            outside = Inside(tuple(one for one in guard.inside.bounds if not one[1].depends_on(self.variable)))
            within = Inside(tuple(one for one in guard.inside.bounds if one not in outside.bounds))
            if within != guard.inside or within == ALWAYS:
                loop = with_body(self, guard.body if within == ALWAYS else (If(within, guard.body),))
                return (loop,) if outside == ALWAYS else (If(outside, (loop,)),)
        if isinstance(self, If) and guard is not None and not any(one[1].is_data for one in guard.inside.bounds):
            return (If(Inside((*self.inside.bounds, *guard.inside.bounds)), guard.body),)
        found = with_body(self, body)
        return None if found is self else (found,)


@dataclass(frozen=True)
class For(Nested):
    """A loop from 0 up to the variable's extent."""

    variable: Variable
    body: tuple[Statement, ...]
    kind: Kind = Kind.SERIAL


@dataclass(frozen=True)
class If(Nested):
    """A guard: statements that run where some conditions on loop variables hold."""

    inside: Inside
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Allocate:
    """A local array, from here to the end of the block."""

    local: Local


@dataclass(frozen=True)
class Prefetch:
    """A request for the line of memory with an element of an argument, before it is read."""

    array: int
    index: Index


Statement = Store | Accumulate | For | If | Allocate | Prefetch
Block = tuple[Statement, ...]


@dataclass(frozen=True)
class Procedure:
    """A kernel in the order of its execution: arguments and statements."""

    buffers: tuple[Buffer, ...]
    body: Block

    @property
    def lengths(self) -> dict[Variable, int]:
        """The lengths that a call gives, each with the number of the argument that they are in."""
        number = next((number for number, each in enumerate(self.buffers) if each.gives_lengths), None)
        if number is None:
            return {}
        found = frozenset[Variable]()
        for each in statements(self.body):
            if isinstance(each, If):
                found |= each.inside.variables
            elif isinstance(each, (Store, Accumulate)):
                found |= each.index.variables | each.value.variables
        return {each: number for each in sorted(found) if each.place is not None}


def statements(block: Block) -> Iterator[Statement]:
    """Yield all statements of a block, nested ones included, in order."""
    pending = list(reversed(block))
    while pending:
        each = pending.pop()
        yield each
        if isinstance(each, (For, If)):
            pending += reversed(each.body)


def with_body(each: For | If, body: Block) -> For | If:
    """Return a loop or a guard around other statements; the same object around its own."""
    if len(body) == len(each.body) and all(map(is_, body, each.body)):
        return each
    return For(each.variable, body, each.kind) if isinstance(each, For) else If(each.inside, body)


def _all(block: Block, fact: str, own: Callable[[Statement], Iterable[Any]]) -> set[Any]:
    """Return a fact about the statements of a block: of loops and guards as it is known, of others found now."""
    return set().union(*(getattr(each, fact) if isinstance(each, (For, If)) else own(each) for each in block))


def loop_names(block: Block) -> set[str]:
    """Return the names of all loops of a block."""
    return _all(block, "names", lambda each: ())


def allocated(block: Block) -> set[Local]:
    """Return the arrays that are allocated in a block."""
    return _all(block, "locals", lambda each: (each.local,) if isinstance(each, Allocate) else ())


def arrays_written(block: Block) -> set[int | Local]:
    """Return the arrays that a block stores to."""
    return _all(block, "written", lambda each: (each.array,) if isinstance(each, (Store, Accumulate)) else ())


def arrays_read(block: Block) -> set[int | Local]:
    """Return the arrays that the values of a block's statements read."""
    return _all(block, "read", lambda each: each.value.reads if isinstance(each, (Store, Accumulate)) else ())


def sole_guard(block: Block) -> If | None:
    """Return the guard that a block consists of, if it is one."""
    return block[0] if len(block) == 1 and isinstance(block[0], If) else None


def tidied(block: Block) -> Block:
    """Return a block with its guards outside of loops whose variables they do not mention, and no empty loop.

    A guard in a guard is one with both conditions, unless the second is data, which is read where the first holds.
    """
    found: list[Statement] = []
    for each in block:
        new = each.tidy if isinstance(each, (For, If)) else None
        found += (each,) if new is None else new
    return tuple(found)


def loops(block: Block) -> Iterator[For]:
    """Return all loops of a block, the outer ones first."""
    return (each for each in statements(block) if isinstance(each, For))


def loaded(procedure: Procedure) -> tuple[list[Local], Block, Block]:
    """Return the arrays filled once, at loading; the statements that fill them; all others."""
    arrays: list[Local] = []
    for number, each in enumerate(procedure.body):
        if isinstance(each, Allocate) and each.local.place is Place.LOADED:
            arrays.append(each.local)
        elif not arrays or isinstance(each, Allocate) or not arrays_written((each,)) - allocated((each,)) <= {*arrays}:
            return arrays, procedure.body[:number], procedure.body[number:]
    return arrays, procedure.body, ()


def parallel(procedure: Procedure) -> list[Variable]:
    """Return the outermost loops, which threads share."""
    found: list[Variable] = []
    _, _, body = loaded(procedure)
    while len(body) == 1 and isinstance(body[0], For) and body[0].kind is Kind.PARALLEL:
        found.append(body[0].variable)
        body = body[0].body
    return found


def substituted(block: Block, places: Places) -> Block:
    """Return a block with expressions substituted for loop variables."""
    return mapped(
        block,
        moved(places),
        lambda index: index.substitute(places),
        lambda inside: inside.substitute(places),
        lambda value: not value.variables.isdisjoint(places),
    )


def mapped(
    block: Block,
    change: Callable[[Expression], Expression],
    index: Callable[[Index], Index] = lambda index: index,
    inside: Callable[[Inside], Inside] = lambda inside: inside,
    concerns: Callable[[Expression], bool] = lambda value: True,
) -> Block:
    """Apply a change to all expressions of a block that it concerns, and others to indices and conditions."""
    known: dict[Expression, Expression] = {}

    def within(block: Block) -> Block:
        found: list[Statement] = []
        for each in block:
            match each:
                case For():
                    found.append(with_body(each, within(each.body)))
                case If():
                    conditions, body = inside(each.inside), within(each.body)
                    if not conditions.never_holds:
                        is_same = conditions is each.inside
                        one = with_body(each, body) if is_same else If(conditions, body)
                        found += body if conditions == ALWAYS else [one]
                case Store() | Accumulate():
                    place, value = index(each.index), rewritten(each.value, change, known, concerns)
                    is_same = place is each.index and value is each.value
                    found.append(each if is_same else replace(each, index=place, value=value))
                case Prefetch():
                    place = index(each.index)
                    found.append(each if place is each.index else replace(each, index=place))
                case Allocate():
                    found.append(each)
        return tuple(found)

    return within(block)


def procedure(nest: Nest, buffers: tuple[Buffer, ...]) -> Procedure:
    """Return a nest's definition: every loop as written, every accumulator and scratch row a local array."""
    rows = {slot: Local(f"row{slot}", length, dtype) for slot, (length, dtype) in enumerate(nest.scratch)}
    totals: dict[int, Local] = {}
    names = count()

    def change(part: Expression) -> Expression:
        if isinstance(part, Total):  # 16-bit floats are summed in float32, and rounded when the sum is complete
            return converted(Read(totals[part.slot].dtype, totals[part.slot]), part.dtype)
        return Read(part.dtype, rows[part.slot], part.index) if isinstance(part, Scratch) else part

    def reduced(total: Local, reduction: str, loops: tuple[Variable, ...], body: Block) -> Block:
        zero = literal(total.dtype, neutral(reduction, total.dtype))
        return (Allocate(total), Store(total, NOWHERE, zero), *in_loops(loops, body))

    def summed(value: Expression, shared: dict[Expression, Expression]) -> tuple[Block, Expression]:
        """Return statements that compute the sums in a value, each where it is chosen, and the value using them."""
        before: list[Statement] = []
        chosen: dict[Sum, Inside] = {}
        for part, inside in _sums(value):
            common = tuple(bound for bound in chosen.get(part, inside).bounds if bound in inside.bounds)
            chosen[part] = Inside(common)
        known = dict(shared)
        for part, inside in chosen.items():
            if part not in known:
                inner, term = summed(part.value, dict(known))
                total = Local(f"sum{next(names)}", 1, computed_in(part.dtype))
                add = Accumulate(total, NOWHERE, "reduce_sum", converted(term, total.dtype))
                first, *rest = reduced(total, "reduce_sum", (part.variable,), (*inner, add))
                before += [first, *rest] if inside == ALWAYS else [first, If(inside, tuple(rest))]
                known[part] = converted(Read(total.dtype, total), part.dtype)
                if inside == ALWAYS:
                    shared[part] = known[part]
        return tuple(before), rewritten(value, lambda part: known.get(part, part), {}) if known else value

    body: list[Statement] = [Allocate(row) for row in rows.values()]
    for loop in nest.loops:
        inner: list[Statement] = []
        known: dict[Expression, Expression] = {}
        for each in loop.statements:
            before, value = summed(rewritten(each.value, change, {}), known)
            inner += before
            match each:
                case Reduce():
                    total = Local(f"total{each.slot}", 1, computed_in(each.value.dtype))
                    totals[each.slot] = total
                    body += reduced(total, each.reduction, (), ())
                    inner.append(Accumulate(total, NOWHERE, each.reduction, converted(value, total.dtype)))
                case Write():
                    inner.append(Store(each.buffer, each.index, value))
                case Keep():
                    inner.append(Store(rows[each.slot], each.index, value))
        body += in_loops(loop.columns, tuple(inner))
    return Procedure(buffers, in_loops(nest.rows, tuple(body)))


def _sums(value: Expression) -> Iterator[tuple[Sum, Inside]]:
    """Yield the sums in a value, outermost only, each with the conditions under which it is chosen."""
    pending, seen = [(value, ALWAYS)], set()
    while pending:
        at, inside = pending.pop()
        if (at, inside) in seen:
            continue
        seen.add((at, inside))
        if isinstance(at, Sum):
            yield at, inside
        elif isinstance(at, Choose):
            within = inside
            for bound in at.inside.bounds:
                within = within.and_(*bound)
            pending += [(at.here, within), (at.elsewhere, inside)]
        else:
            pending += [(part, inside) for part in (*at.parts(), *at.values)]


def in_loops(variables: tuple[Variable, ...], body: Block) -> Block:
    """Return loops over some variables around a block, the outermost first."""
    for variable in reversed(variables):
        if isinstance(variable.extent, Length):
            own = Variable(variable.name, int(variable.extent))
            body = substituted(body, {variable: Index(((own, 1),))})
            body = (If(ALWAYS.below(Index(((own, 1),)), variable.extent), body),)
            variable = own
        body = (For(variable, body),)
    return body
