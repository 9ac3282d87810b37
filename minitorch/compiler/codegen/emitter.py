"""Procedures of the tiled loop IR as LLVM IR.

The emitter decides nothing about order: loops, vectors and unrolling are written in the procedure. Two things it does
by itself, for every procedure alike:

- *Common subexpressions are computed once.* Equal expressions have equal values as long as what they read is not
  stored to, and the code is straight from one use to the other.
- *Loop-invariant code is moved out.* A value is computed in the outermost scope in which all that it depends on is
  known: addresses are taken apart so that the innermost loop adds to a pointer. A load stays inside of its guards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import floordiv, mod
from typing import Any

from llvmlite import ir

from ...dtypes import DType, int64
from ..loop_ir.expressions import (
    ALWAYS,
    Apply,
    Choose,
    Expression,
    Inside,
    Load,
    Number,
    Position,
    index_values,
    walk,
)
from ..loop_ir.index import NOWHERE, Atom, Index, Looked, Quotient, Remainder, Variable
from ..loop_ir.loops import neutral
from ..loop_ir.tree import (
    Accumulate,
    Allocate,
    Block,
    For,
    If,
    Kind,
    Local,
    Place,
    Prefetch,
    Procedure,
    Read,
    Store,
    statements,
)
from ..scheduling.rewrites import arrays_written, factors_of
from ..target import MOST_STEP, Target
from .builder import Builder, is_known_mask
from .instructions import (
    BIT,
    I64,
    PRIMITIVES,
    after_load,
    before_store,
    cast,
    combine,
    computed_type,
    constant,
    multiply_add,
    rounded,
    stored_type,
)
from .mathematics.values import splat
from .tiles import BLOCK, transposed
from .vector_memory import (
    I32,
    POINTER,
    SHORTEST,
    broadcast,
    byte_size,
    gather,
    integer,
    load,
    load_repeated,
    load_strided,
    merged,
    prefetch,
    scatter,
    store,
    store_interleaved,
    store_past_caches,
    wait_for_stores,
)

Bound = tuple[int, Index, int]
PAGE = 1 << 10  # elements of four bytes on the smallest page of memory
MOST_SHORT = 1 << 30  # numbers whose sums and differences fit into 32 bits
TROUBLE = -1  # in the place of an array: the word in which an index out of range is noted, which masks and guards keep
MOST_RUNS = 4  # in which neighbours are loaded one after another, rather than an element at a time


@dataclass
class _Scope:
    """A region of code: a loop's body, a guard's, or the whole function.

    Attributes:
        entry: the block that the region is entered from, which ends in a branch; None if it has no blocks of its own.
        is_guard: whether it may not be entered.
        known: the values that were computed for it, by what they are of.
    """

    entry: Any = None
    is_guard: bool = False
    known: list[Any] = field(default_factory=list)


class Emitter:
    """Emits one procedure into a function ``void (ptr buffers, ptr trouble, i64 begin, i64 end)``."""

    def __init__(self, procedure: Procedure, function: Any, target: Target) -> None:
        self.procedure, self.function = procedure, function
        self.target = target
        self.builder = Builder(function.append_basic_block("entry"), target)
        self.scopes = [_Scope()]
        self.known: dict[Any, tuple[int, Any]] = {}  # values, each with the depth of its scope
        self.depths: dict[Variable, int] = {}  # of the scope in which a loop variable has a value
        self.places: dict[Variable, Any] = {}  # that value
        self.constants: dict[Variable, int] = {}  # of loops that are written out
        self.held: set[tuple[Index, int]] = set()  # indices that are known to be below a number
        self.lane: Variable | None = None
        self.mask: Any = None
        self.mask_key: Any = None
        self.memory: dict[int | Local, Any] = {}
        self.registers: dict[tuple[Local, int], Any] = {}
        self.register_depths: dict[tuple[Local, int], int] = {}
        self.versions: dict[int | Local, int] = {}  # how often an array was stored to
        self.written = arrays_written(procedure.body)
        self.read = {
            part.buffer
            for each in statements(procedure.body)
            if isinstance(each, (Store, Accumulate))
            for part in walk(each.value)
            if isinstance(part, Load)
        }
        self._variables: dict[Index, frozenset[Variable]] = {}
        self._facts: dict[Expression, tuple[frozenset[Variable], frozenset[int | Local]]] = {}
        table, self.trouble, *_ = function.args
        for number in range(len(procedure.buffers)):
            slot = self.builder.gep(table, [integer(number)], source_etype=POINTER)
            self.memory[number] = self.builder.load(slot, typ=POINTER)
        for each in statements(procedure.body):
            if isinstance(each, Allocate) and each.local.place is Place.STACK:
                memory = self.builder.alloca(
                    ir.ArrayType(stored_type(each.local.dtype, self.target), max(each.local.size, 1))
                )
                memory.align, memory.type = 64, POINTER
                self.memory[each.local] = memory

    # --- statements ---------------------------------------------------------------------------------------------------

    def emit(self) -> None:
        """The whole function."""
        body, parallel = self.procedure.body, []
        while len(body) == 1 and isinstance(body[0], For) and body[0].kind is Kind.PARALLEL:
            parallel.append(body[0].variable)
            body = body[0].body

        def unit(number: Any) -> None:
            for count, variable in enumerate(reversed(parallel), 1):
                is_last = count == len(parallel)
                self.places[variable] = number if is_last else self.builder.urem(number, integer(variable.extent))
                number = number if is_last else self.builder.udiv(number, integer(variable.extent))
                self.depths[variable] = len(self.scopes) - 1
            self.block(body)

        _, _, begin, end = self.function.args
        self.loop(begin, end, body, unit)
        if any(isinstance(each, Store) and each.past_caches for each in statements(self.procedure.body)):
            wait_for_stores(self.builder)
        self.builder.ret_void()

    def block(self, block: Block) -> None:
        """Statements, one after another."""
        place = 0
        while place < len(block):
            each = block[place]
            count = self._interleaved(block[place : place + MOST_STEP])
            match each:
                case For():
                    self.run_loop(each)
                case If():
                    self.guard(each)
                case Store() if count > 1:
                    self._store_together([one for one in block[place : place + count] if isinstance(one, Store)])
                case Store():
                    self.store(each)
                case Accumulate():
                    self.accumulate(each)
                case Prefetch():
                    prefetch(self.builder, self.address(each.array, each.index))
            place += count

    def _interleaved(self, block: Block) -> int:
        """How many stores from the first on write all between one lane's element and the next one's; at least 1."""
        first = block[0]
        if self.lane is None or not isinstance(first, Store) or isinstance(first.array, Local):
            return 1
        count = self.step(first.index) or 1
        wanted = [(first.array, first.index + number) for number in range(count)]
        stores = [each for each in block[:count] if isinstance(each, Store)]
        found = [(each.array, each.index) for each in stores if first.array not in self.facts(each.value)[1]]
        return count if 1 < count <= MOST_STEP and found == wanted and _lanes_in_use(self.mask, 1) else 1

    def _store_together(self, stores: list[Store]) -> None:
        """Stores that fill what is between the lanes of the first."""
        assert isinstance(stores[0].array, int) and self.lane is not None
        array, dtype = stores[0].array, self.procedure.buffers[stores[0].array].dtype
        values = [self.vector(before_store(self.builder, self.value(each.value), dtype)) for each in stores]
        self.versions[array] = self.versions.get(array, 0) + 1
        first = self.address(array, stores[0].index)
        store_interleaved(self.builder, first, values, _lanes_in_use(self.mask, self.lane.extent))

    def run_loop(self, each: For) -> None:
        """A loop, in the way that it says."""
        variable = each.variable
        if each.kind is Kind.UNROLLED:
            for number in range(variable.extent):
                self.constants[variable] = number
                self.block(each.body)
            del self.constants[variable]
        elif each.kind is Kind.VECTOR:
            self.lane = variable
            self.block(each.body)
            self.lane = None
        elif each.kind is Kind.OUTLINED:
            self._outlined(For(variable, each.body))
        elif variable.extent:
            stop, inner, is_guard, held = self._bounded(each)
            before, self.held = self.held, self.held | held

            def body(counter: Any) -> None:
                self.places[variable], self.depths[variable] = counter, len(self.scopes) - 1
                self.block(inner)

            self.loop(integer(0), stop, inner, body, is_guard)
            self.held = before

    def _outlined(self, each: For) -> None:
        """A loop in a function of its own, which is given the loop variables and the local arrays that it uses."""
        inside = list(statements((each,)))
        own = {one.local for one in inside if isinstance(one, Allocate)}
        used = [array for array in self.memory if isinstance(array, Local) and array not in own]
        mentioned = frozenset[Variable]()
        for one in inside:
            if isinstance(one, If):
                mentioned |= self._variables_of(one.inside)
            elif isinstance(one, (Store, Accumulate)):
                mentioned |= self.variables(one.index) | self.facts(one.value)[0]
        mentioned -= {one.variable for one in inside if isinstance(one, For)}
        variables = [variable for variable in self.places if variable in mentioned]
        kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, *(POINTER for _ in used), *(I64 for _ in variables)])
        module, name = self.function.module, f"{self.function.name}.{each.variable.name}"
        function = ir.Function(module, kind, module.get_unique_name(name))
        function.linkage = "internal"
        inner = Emitter(Procedure(self.procedure.buffers, (each,)), function, self.target)
        _, _, *given = function.args
        inner.memory |= dict(zip(used, given, strict=False))
        inner.places = dict(zip(variables, given[len(used) :], strict=True))
        inner.depths, inner.constants = dict.fromkeys(variables, 0), dict(self.constants)
        inner.held = set(self.held)
        inner.run_loop(each)
        inner.builder.ret_void()
        arrays, places = [self.memory[array] for array in used], [self.places[variable] for variable in variables]
        self.builder.call(function, [self.function.args[0], self.trouble, *arrays, *places])
        self._forget(each.body)

    def _bounded(self, each: For) -> tuple[Any, Block, bool, set[tuple[Index, int]]]:
        """A guard that holds up to some iteration is a bound of the loop, also where it stands in loops nested in it.

        Returns:
            Where the loop ends, its body, whether there may be no iteration, and indices that are below a number in all
            iterations.
        """
        stop: Any = integer(each.variable.extent)
        body, inner = each.body, list[Variable]()
        while len(body) == 1 and isinstance(body[0], For):
            inner.append(body[0].variable)
            body = body[0].body
        guard = body[0] if len(body) == 1 else None
        if not isinstance(guard, If):
            return stop, each.body, False, set()
        left, held, is_guard = list(guard.inside.bounds), set[tuple[Index, int]](), False
        for bound in guard.inside.bounds:
            low, index, high = bound
            by = index.coefficient(each.variable)
            around = (each.variable, *inner)
            own = [term for term in index.terms if any(Index((term,)).depends_on(one) for one in around)]
            affine = all(atom in around and factor > 0 for atom, factor in own)
            if index.bounds[0] < low or by <= 0 or not affine:
                continue
            lowest = index.substitute(dict.fromkeys(inner, NOWHERE))
            first = lowest.substitute({each.variable: NOWHERE})
            room = self.builder.sub(integer(high + by - 1), self.index(first))
            end = self.builder.sdiv(room, integer(by)) if by > 1 else room
            stop = self.builder.select(self.builder.icmp_signed("<", end, stop), end, stop)
            held.add((lowest, high))
            if not inner:
                left.remove(bound)
                is_guard |= first.bounds[1] >= high and (first, high) not in self.held
        if inner or len(left) == len(guard.inside.bounds):
            return stop, each.body, False, held
        return stop, (If(Inside(tuple(left)), guard.body),) if left else guard.body, is_guard, held

    def loop(self, start: Any, stop: Any, inside: Block, body: Callable[[Any], None], is_guard: bool = False) -> None:
        """``for i in range(start, stop)``; registers that the body changes are handed from round to round.

        With `is_guard`, there may be no round at all.
        """
        keys = self._carried(inside)
        self._forget(inside)
        builder, before = self.builder, self.builder.block
        head, within, after = (self.function.append_basic_block(name) for name in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        counter = builder.phi(I64)
        counter.add_incoming(start, before)
        phis = []
        for key in keys:
            value = self.registers[key]
            phi = builder.phi(value.type)
            phi.add_incoming(value, before)
            self.registers[key], self.register_depths[key] = phi, len(self.scopes)
            phis.append(phi)
        builder.cbranch(builder.icmp_signed("<", counter, stop), within, after)
        builder.position_at_end(within)
        self.scopes.append(_Scope(entry=before, is_guard=is_guard))
        body(counter)
        self._leave_scope()
        counter.add_incoming(builder.add(counter, integer(1)), builder.block)
        for key, phi in zip(keys, phis, strict=True):
            phi.add_incoming(self.registers[key], builder.block)
            self.registers[key], self.register_depths[key] = phi, len(self.scopes) - 1
        builder.branch(head)
        builder.position_at_end(after)
        self._forget(inside)

    def _forget(self, block: Block) -> None:
        """What was read of the arrays that a block stores to is not what it will be."""
        for array in arrays_written(block):
            self.versions[array] = self.versions.get(array, 0) + 1

    def _carried(self, block: Block) -> list[tuple[Local, int]]:
        """The registers that a block changes, but for those that it has for itself."""
        if not any(isinstance(each, Local) and each.place is Place.REGISTERS for each in arrays_written(block)):
            return []
        own = {each.local for each in statements(block) if isinstance(each, Allocate)}
        return [key for key in dict.fromkeys(self.assigned(block, own)) if key in self.registers]

    def assigned(self, block: Block, own: set[Local]) -> Iterator[tuple[Local, int]]:
        """The registers that a block stores to, but for some of its own."""
        for each in block:
            match each:
                case For() if each.kind is Kind.UNROLLED:
                    if arrays_written(each.body) <= own:
                        continue
                    for number in range(each.variable.extent):
                        self.constants[each.variable] = number
                        yield from self.assigned(each.body, own)
                    del self.constants[each.variable]
                case For() | If():
                    yield from self.assigned(each.body, own)
                case Store() | Accumulate() if isinstance(each.array, Local) and each.array.place is Place.REGISTERS:
                    if each.array not in own:
                        yield each.array, self.number(each.index)

    def number(self, index: Index) -> int:
        """An index of a register in lane 0, which is known."""
        total = index.constant
        for atom, factor in index.terms:
            if isinstance(atom, Variable):
                total += factor * self.constants.get(atom, 0)
            else:
                assert isinstance(atom, (Quotient, Remainder))
                below = self.number(atom.index)
                total += factor * (below // atom.divisor if isinstance(atom, Quotient) else below % atom.divisor)
        return total

    def guard(self, each: If) -> None:
        """Statements that run where conditions hold: under a mask as far as these differ between lanes."""
        lanes = Inside(tuple(bound for bound in each.inside.bounds if self._varies_by_lane(bound[1])))
        scalar = Inside(tuple(bound for bound in each.inside.bounds if bound not in lanes.bounds))
        condition = self.condition(scalar) if scalar != ALWAYS else None
        if isinstance(condition, ir.Constant):
            if not condition.constant:
                return
            condition = None
        before = self.mask, self.mask_key
        if lanes != ALWAYS:
            mask = self.condition(lanes)
            self.mask = mask if self.mask is None else self.builder.and_(self.mask, mask)
            self.mask_key = (before[1], lanes, self._key_of(self._variables_of(lanes)))
        if condition is None:
            self.block(each.body)
        else:
            self._branch(condition, each.body)
        self.mask, self.mask_key = before

    def _branch(self, condition: Any, body: Block) -> None:
        builder = self.builder
        keys = self._carried(body)
        old = [self.registers[key] for key in keys]
        self._forget(body)
        before = builder.block
        within, after = self.function.append_basic_block("guarded"), self.function.append_basic_block("after")
        builder.cbranch(condition, within, after)
        builder.position_at_end(within)
        self.scopes.append(_Scope(entry=before, is_guard=True))
        self.block(body)
        before = self._leave_scope().entry
        last = builder.block
        builder.branch(after)
        builder.position_at_end(after)
        for key, value in zip(keys, old, strict=True):
            phi = builder.phi(value.type)
            phi.add_incoming(value, before)
            phi.add_incoming(self.registers[key], last)
            self.registers[key], self.register_depths[key] = phi, len(self.scopes) - 1
        self._forget(body)

    def store(self, each: Store) -> None:
        """``array[index] = value``."""
        dtype = self.dtype(each.array)
        if isinstance(each.value, (Load, Read)) and each.value.dtype is dtype:
            stored = self.element(each.value)
        else:
            stored = before_store(self.builder, self.value(each.value), dtype)
        if each.past_caches and self.mask is None and self.step(each.index) == 1:
            assert isinstance(each.array, int)
            self.versions[each.array] = self.versions.get(each.array, 0) + 1
            address = self.address(each.array, each.index)
            store_past_caches(self.builder, address, self.vector(stored), self._offset_to_stream(each.array))
        else:
            self._put(each.array, each.index, stored)

    def _offset_to_stream(self, array: int) -> Any:
        """At which offset from a multiple of its size a vector goes past the caches: at none in place of what is read.

        What is read is in the caches already.
        """

        def offset() -> Any:
            found: Any = integer(0)
            for other in sorted(self.read):
                same = self.builder.icmp_unsigned("==", self.memory[array], self.memory[other])
                found = self.builder.select(same, integer(-1), found)
            return found

        return self.once(("offset", array), 0, offset)

    def dtype(self, array: int | Local) -> DType:
        """The type of an array's elements."""
        return array.dtype if isinstance(array, Local) else self.procedure.buffers[array].dtype

    def _put(self, array: int | Local, index: Index, stored: Any) -> None:
        """Write what memory is to hold, or a register."""
        if isinstance(array, Local) and array.place is Place.REGISTERS:
            self._put_register(array, index, stored)
        else:
            self._write(array, index, stored)

    def _put_register(self, local: Local, index: Index, value: Any) -> None:
        if self.lane is not None and index.depends_on(self.lane):
            value = self.vector(value)
        key = local, self.number(index)
        self.registers[key], self.register_depths[key] = value, len(self.scopes) - 1
        self.versions[local] = self.versions.get(local, 0) + 1

    def accumulate(self, each: Accumulate) -> None:
        """``array[index] = array[index] op value``."""
        dtype = self.dtype(each.array)
        across = self.lane is not None and not each.index.depends_on(self.lane)
        current = (
            Read(dtype, each.array, each.index)
            if isinstance(each.array, Local)
            else Load(dtype, each.array, each.index)
        )
        factors = factors_of(each) if dtype.name in ("float32", "float64") else ()
        if across:
            value = self.vector(self.value(each.value))
            if self.mask is not None:
                value = self.builder.select(
                    self.mask, value, self.vector(constant(dtype, neutral(each.reduction, dtype), value.type.element))
                )
            lane, self.lane = self.lane, None
            new = combine(
                self.builder, each.reduction, dtype, self.value(current), self.across(each.reduction, dtype, value)
            )
            self._put(each.array, each.index, before_store(self.builder, new, dtype))
            self.lane = lane
            return
        old = self.value(current)
        if factors:
            a, b, old = self.alike(*(self.value(factor) for factor in factors), old)
            new = multiply_add(self.builder, dtype, a, b, old)
        else:
            value, old = self.alike(self.value(each.value), old)
            new = combine(self.builder, each.reduction, dtype, old, value)
        if self.mask is not None:
            new = self.builder.select(self.mask, new, old)
        self._put(each.array, each.index, before_store(self.builder, new, dtype))

    def across(self, reduction: str, dtype: Any, total: Any) -> Any:
        """The lanes of a vector combined into one number: halves onto halves."""
        width = total.type.count
        while width > 1:
            width //= 2
            order = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(width)))
            upper = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(width, 2 * width)))
            low = self.builder.shuffle_vector(total, total, order)
            high = self.builder.shuffle_vector(total, total, upper)
            total = combine(self.builder, reduction, dtype, low, high)
        return self.builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

    # --- values -------------------------------------------------------------------------------------------------------

    def facts(self, expression: Expression) -> tuple[frozenset[Variable], frozenset[int | Local]]:
        """The loop variables that a value depends on, and the arrays that it reads, with `TROUBLE` if indices are."""
        found = self._facts.get(expression)
        if found is None:
            variables: set[Variable] = set()
            arrays: set[int | Local] = set()
            if isinstance(expression, (Load, Position, Read)):
                variables |= self.variables(expression.index)
            if isinstance(expression, Load):
                arrays.add(expression.buffer)
            if isinstance(expression, Read):
                arrays.add(expression.local)
            for _, index, _ in getattr(expression, "inside", ALWAYS).bounds:
                variables |= self.variables(index)
            looked_up = index_values(expression)
            if looked_up:
                arrays.add(TROUBLE)
            for part in (*expression.parts(), *looked_up):
                own, read = self.facts(part)
                variables |= own
                arrays |= read
            found = self._facts[expression] = frozenset(variables), frozenset(arrays)
        return found

    def variables(self, index: Index) -> frozenset[Variable]:
        """The loop variables in an index."""
        known = self._variables.get(index)
        if known is None:
            found: set[Variable] = set()
            for atom, _ in index.terms:
                if isinstance(atom, Variable):
                    found.add(atom)
                else:
                    found |= self.facts(atom.value)[0] if isinstance(atom, Looked) else self.variables(atom.index)
            known = self._variables[index] = frozenset(found)
        return known

    def _variables_of(self, inside: Inside) -> frozenset[Variable]:
        return frozenset().union(*(self.variables(index) for _, index, _ in inside.bounds))

    def _depth(self, variables: frozenset[Variable], arrays: frozenset[int | Local] = frozenset()) -> int:
        """The outermost scope in which a value that depends on these is known."""
        depth = 0
        for each in variables:
            if each not in self.constants:
                depth = max(depth, self.depths.get(each, 0))
        if not arrays:
            return depth
        written = arrays & self.written
        if any(isinstance(each, int) or each.place is not Place.REGISTERS for each in written):
            return len(self.scopes) - 1
        if written:
            depth = max(depth, *(at for (local, _), at in self.register_depths.items() if local in written))
        return self._within_guards(depth)

    def _key_of(self, variables: frozenset[Variable], arrays: frozenset[int | Local] = frozenset()) -> Any:
        """The numbers of loops that are written out, and how often the arrays were stored to."""
        unrolled = tuple(sorted((v.name, self.constants[v]) for v in variables if v in self.constants))
        if not arrays:
            return unrolled
        written = arrays & self.written
        return unrolled, tuple(
            sorted((str(array), self.versions.get(array, 0)) for array in written)
        ) if written else ()

    @contextmanager
    def _at(self, depth: int) -> Iterator[None]:
        """Emit into an outer scope: before the branch into the first region within it."""
        entry = next((scope.entry for scope in self.scopes[depth + 1 :] if scope.entry is not None), None)
        if entry is None:
            yield
            return
        here = self.builder.block
        branch = entry.instructions.pop()
        entry.terminator = None
        self.builder.position_at_end(entry)
        yield
        last = self.builder.block
        branch.parent = last
        last.instructions.append(branch)
        last.terminator = branch
        if last is not entry:  # what was emitted has blocks of its own
            self._entered_from(last, entry, branch)
        self.builder.position_at_end(here)

    def _entered_from(self, new: Any, old: Any, branch: Any) -> None:
        """Have a branch stand in another block than before."""
        for scope in self.scopes:
            scope.entry = new if scope.entry is old else scope.entry
        for target in branch.operands:
            for each in getattr(target, "instructions", ()):
                if isinstance(each, ir.PhiInstr):
                    each.incomings = [(value, new if block is old else block) for value, block in each.incomings]

    def once(self, key: Any, depth: int, compute: Callable[[], Any]) -> Any:
        """A value that is computed in the scope of some depth, or was there."""
        found = self.known.get(key)
        if found is not None and found[0] <= depth:
            return found[1]
        with self._at(depth):
            value = compute()
        self._note(key, depth, value)
        return value

    def _note(self, key: Any, depth: int, value: Any) -> None:
        """Know a value as long as its scope is open."""
        self.known[key] = depth, value
        self.scopes[depth].known.append(key)

    def _leave_scope(self) -> _Scope:
        scope = self.scopes.pop()
        for key in scope.known:
            if self.known.get(key, (0,))[0] == len(self.scopes):
                del self.known[key]
        return scope

    def value(self, expression: Expression) -> Any:
        """The value of an expression: a number, or one per lane if it differs between them."""
        if isinstance(expression, Number):
            return constant(expression.dtype, expression.value, computed_type(expression.dtype))
        return self._shared(expression, expression, self._prepared)

    def element(self, expression: Load | Read) -> Any:
        """An element in the form in which memory and registers hold it."""
        if isinstance(expression, Read) and expression.local.place is Place.REGISTERS:
            return self._register(expression.local, expression.index)
        return self._shared(("element", expression), expression, self._reading)

    def _shared(self, form: Any, expression: Any, prepared: Callable[[Any], Callable[[], Any]]) -> Any:
        """A form of an expression: computed in the outermost scope in which that can be done, or known there."""
        variables, arrays = self.facts(expression)
        depth = self._depth(variables, arrays)
        masked = self.mask_key if arrays and self.lane in variables else None
        if masked is not None:
            depth = max(depth, len(self.scopes) - 1)
        key = (form, self._key_of(variables, arrays), masked)
        found = self.known.get(key)
        if found is not None and found[0] <= depth:
            return found[1]
        compute = prepared(expression)
        with self._at(depth):
            value = compute()
        self._note(key, depth, value)
        return value

    def _register(self, local: Local, index: Index) -> Any:
        """An element, or a vector of neighbours; of a square that was stored row by row, a column."""
        number, step = self.number(index), self.step(index)
        if self.lane is None or not step or step == 1:
            return self.registers[local, number]
        places = range(0, local.size, step)

        def columns() -> list[Any]:
            rows = [self.registers[local, place] for place in places]
            return transposed(self.builder, rows, BLOCK // max(1, byte_size(rows[0].type.element)))

        depth = max(self.register_depths[local, place] for place in places)
        return self.once(("columns", local, self.versions.get(local, 0)), depth, columns)[number]

    def _prepared(self, expression: Expression) -> Callable[[], Any]:
        """How to compute an expression from its parts, which are computed now, each where it belongs."""
        builder, dtype = self.builder, expression.dtype
        match expression:
            case Position():
                place = self.index(expression.index)
                return lambda: cast(builder, place, int64, dtype)
            case Load() | Read():
                element = self.element(expression)
                return lambda: after_load(builder, element, dtype)
            case Choose() if _is_zero_outside(expression) and self._differs(expression.here):
                value = self.value(expression.here)  # zero in the lanes that its mask leaves out
                return lambda: value
            case Choose():
                condition = self.condition(expression.inside)
                here, elsewhere = self.value(expression.here), self.value(expression.elsewhere)
                return lambda: builder.select(*self.alike(condition, here, elsewhere))
            case Apply():
                operands = [self.value(part) for part in expression.arguments]
                old = expression.arguments[0].dtype
                return lambda: self._applied(expression.primitive, old, dtype, operands)
        raise TypeError(f"{type(expression).__name__} is not an expression of a procedure")

    def _applied(self, name: str, old: Any, dtype: Any, operands: list[Any]) -> Any:
        builder = self.builder
        if name == "cast":
            return cast(builder, operands[0], old, dtype)
        if name == "bitcast":
            kind = computed_type(dtype)
            (x,) = operands
            return builder.bitcast(x, ir.VectorType(kind, x.type.count) if isinstance(x.type, ir.VectorType) else kind)
        operands = self.alike(*operands)
        if name == "where":
            return builder.select(*operands)
        return rounded(builder, PRIMITIVES[name](builder, old, *operands), dtype)

    def _differs(self, expression: Expression) -> bool:
        return self.lane is not None and self.lane in self.facts(expression)[0]

    def alike(self, *values: Any) -> list[Any]:
        """All values in every lane, if one of them differs between lanes."""
        vectors = any(isinstance(value.type, ir.VectorType) for value in values)
        return [self.vector(value) for value in values] if vectors else list(values)

    def vector(self, value: Any) -> Any:
        """A value in every lane."""
        if isinstance(value.type, ir.VectorType):
            return value
        assert self.lane is not None
        return broadcast(self.builder, value, self.lane.extent)

    # --- indices ------------------------------------------------------------------------------------------------------

    def _varies_by_lane(self, index: Index) -> bool:
        return self.lane is not None and self.lane in self.variables(index)

    def step(self, index: Index) -> int | None:
        """By how much an index grows from lane to lane; None if by different amounts."""
        if self.lane is None:
            return 0
        for atom, _ in index.terms:
            if not isinstance(atom, Variable) and self._varies_by_lane(Index(((atom, 1),))):
                return None
        return index.coefficient(self.lane)

    def index(self, index: Index) -> Any:
        """An index: a number, or one per lane."""
        variables = self.variables(index)
        step = self.step(index)
        if step:  # the number of lane 0, and what the others are further
            assert self.lane is not None
            first = self.index(self._without_lane(index))
            steps = ir.Constant(ir.VectorType(I64, self.lane.extent), [step * n for n in range(self.lane.extent)])
            if isinstance(first, ir.Constant):
                return ir.Constant(steps.type, [first.constant + step * n for n in range(self.lane.extent)])
            key = (index, "index", self._key_of(variables), self.mask_key if index.is_data else None)
            return self.once(key, self._depth_of(index), lambda: self.builder.add(self.vector(first), steps))
        return self.once(
            (index, "index", self._key_of(variables), self.mask_key if index.is_data else None),
            self._depth_of(index),
            self._index(index),
        )

    def _depth_of(self, index: Index) -> int:
        """The outermost scope in which an index is known; one that is data is not looked up before a guard."""
        variables = self.variables(index)
        if not index.is_data:
            return self._depth(variables)
        if self.mask_key is not None and self.lane in variables:
            return len(self.scopes) - 1
        return self._within_guards(self._depth(variables, self._arrays(index)))

    def _within_guards(self, depth: int) -> int:
        """The outermost scope from one on that no guard is inside of."""
        return max(depth, next((at for at in range(len(self.scopes) - 1, depth, -1) if self.scopes[at].is_guard), 0))

    def _arrays(self, index: Index) -> frozenset[int | Local]:
        """The arrays that an index is read from."""
        found: frozenset[int | Local] = frozenset()
        for atom, _ in index.terms:
            if not isinstance(atom, Variable):
                found |= self.facts(atom.value)[1] if isinstance(atom, Looked) else self._arrays(atom.index)
        return found

    def _without_lane(self, index: Index) -> Index:
        return Index(tuple(term for term in index.terms if term[0] != self.lane), index.constant)

    def _index(self, index: Index) -> Callable[[], Any]:
        terms = [(self.atom(atom), factor) for atom, factor in index.terms]

        def compute() -> Any:
            builder, total, known = self.builder, None, index.constant
            for value, factor in terms:
                if isinstance(value, int):
                    known += value * factor
                    continue
                term = value
                if factor != 1:
                    term = builder.mul(term, splat(term.type, factor))
                if total is not None:
                    total, term = self.alike(total, term)
                total = term if total is None else builder.add(total, term)
            if total is None:
                return integer(known)
            return builder.add(total, splat(total.type, known)) if known else total

        return compute

    def atom(self, atom: Atom) -> Any:
        """The value of an atom: a Python number if it is known."""
        if isinstance(atom, Variable):
            if atom in self.constants:
                return self.constants[atom]
            if atom == self.lane:
                return ir.Constant(ir.VectorType(I64, atom.extent), list(range(atom.extent)))
            return self.places[atom]
        if isinstance(atom, Looked):
            return self._looked(atom)
        below = self.index(atom.index)
        if isinstance(below, ir.Constant) and not isinstance(below.type, ir.VectorType):
            number = below.constant
            return number // atom.divisor if isinstance(atom, Quotient) else number % atom.divisor
        variables = self.variables(atom.index)
        return self.once(
            (atom, self._key_of(variables)), self._depth_of(atom.index), lambda: self._divided(atom, below)
        )

    def _divided(self, atom: Quotient | Remainder, below: Any) -> Any:
        divisor = splat(below.type, atom.divisor)
        if atom.index.bounds[0] >= 0:
            return (self.builder.udiv if isinstance(atom, Quotient) else self.builder.urem)(below, divisor)
        name = "floor_divide" if isinstance(atom, Quotient) else "remainder"
        return PRIMITIVES[name](self.builder, int64, below, divisor)

    def _looked(self, atom: Looked) -> Any:
        """An index from data: negative ones count from the end, and none leads outside."""
        value = self.value(atom.value)
        variables, arrays = self.facts(atom.value)
        masked = self.mask_key if self.lane in variables else None
        depth = len(self.scopes) - 1 if masked is not None else self._depth(variables, arrays)
        key = (atom, self._key_of(variables, arrays), masked)
        return self.once(key, self._within_guards(depth), lambda: self._within_bounds(atom, value))

    def _within_bounds(self, atom: Looked, value: Any) -> Any:
        builder = self.builder
        place = cast(builder, value, atom.value.dtype, int64)
        zero, length = splat(place.type, 0), splat(place.type, atom.extent)
        negative = builder.icmp_signed("<", place, zero)
        place = builder.select(negative, builder.add(place, length), place)
        self._note_trouble(builder.icmp_unsigned(">=", place, length))
        last = splat(place.type, max(atom.extent - 1, 0))
        place = builder.select(builder.icmp_signed(">", place, last), last, place)
        return builder.select(builder.icmp_signed("<", place, zero), zero, place)

    def _note_trouble(self, outside: Any) -> None:
        """Remember that an index was out of range, in the word after the last buffer."""
        if isinstance(outside.type, ir.VectorType):
            if self.mask is not None:
                outside = self.builder.and_(outside, self.mask)
            bits = self.builder.bitcast(outside, ir.IntType(outside.type.count))
            outside = self.builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))
        known = self.builder.load(self.trouble, typ=I64)
        self.builder.store(self.builder.or_(known, self.builder.zext(outside, I64)), self.trouble)

    def condition(self, inside: Inside) -> Any:
        """Whether conditions hold: one bit, or one per lane."""
        steps = [self.step(index) for _, index, _ in inside.bounds]
        alike, even, uneven = (
            [bound for bound, step in zip(inside.bounds, steps, strict=True) if is_one(step)]
            for is_one in (lambda step: step == 0, bool, lambda step: step is None)
        )
        scalars = [self._bound(*bound) for bound in alike]
        if any(_is_known(each, 0) for each in scalars):
            return ir.Constant(BIT, 0)
        scalars = [each for each in scalars if not _is_known(each, 1)]
        known = {bound: self._known_lanes(*bound) for bound in even}
        found = [each for each in known.values() if each is not None]
        if even := [bound for bound in even if known[bound] is None]:
            found.append(self._range(even, alike, scalars))
        else:
            found += scalars
        if uneven:
            runs = self._in_runs([index for _, index, _ in uneven])
            parts = []
            for moved, within in runs:
                for (low, _, high), index in zip(uneven, moved, strict=True):
                    within = within.and_(low, index, high)
                parts.append(self.condition(within))
            found += [self._combined("or_", parts, uneven)] if parts else [self._bound(*bound) for bound in uneven]
        return self._combined("and_", found, inside.bounds) if found else ir.Constant(BIT, 1)

    def _combined(self, how: str, found: list[Any], bounds: Sequence[Bound]) -> Any:
        """All conditions of some, or any."""
        if len(found) < 2:
            return found[0]
        depth, key = self._known_from(bounds)
        combine = partial(reduce, getattr(self.builder, how))
        return self.once((how, tuple(bounds), key), depth, lambda: combine(self.alike(*found)))

    def _known_from(self, bounds: Sequence[Bound]) -> tuple[int, Any]:
        """The outermost scope in which conditions are known, and what tells them from the same ones elsewhere."""
        indices = [index for _, index, _ in bounds]
        variables = frozenset[Variable]().union(*map(self.variables, indices))
        arrays = frozenset[int | Local]().union(*map(self._arrays, indices))
        masked = self.mask_key if any(index.is_data for index in indices) else None
        return max(map(self._depth_of, indices), default=0), (self._key_of(variables, arrays), masked)

    def _bound(self, low: int, index: Index, high: int) -> Any:
        """Whether an index is within bounds."""
        place, variables = self.index(index), self.variables(index)
        lowest, highest = index.bounds
        if self.lane in variables and (places := self._known_places(index)):
            return ir.Constant(ir.VectorType(BIT, len(places)), [int(low <= each < high) for each in places])
        if isinstance(place, ir.Constant) and not isinstance(place.type, ir.VectorType):
            return ir.Constant(BIT, int(low <= place.constant < high))

        def within() -> Any:
            parts = []
            if lowest < low:
                parts.append(self.builder.icmp_signed(">=", place, splat(place.type, low)))
            if highest >= high:
                parts.append(self.builder.icmp_signed("<", place, splat(place.type, high)))
            return parts[0] if len(parts) == 1 else self.builder.and_(*parts)

        depth, key = self._known_from([(low, index, high)])
        return self.once(((low, index, high), key), depth, within)

    def _known_lanes(self, low: int, index: Index, high: int) -> Any:
        """The lanes in which an index is within bounds, if that is known beforehand."""
        assert self.lane is not None
        first, step = self.index(self._without_lane(index)), self.step(index)
        if not isinstance(first, ir.Constant) or step is None:
            return None
        known = [int(low <= first.constant + step * lane < high) for lane in range(self.lane.extent)]
        return ir.Constant(ir.VectorType(BIT, self.lane.extent), known)

    def _range(self, bounds: Sequence[Bound], others: Sequence[Bound], conditions: list[Any]) -> Any:
        """The lanes in which indices that count up or down are within bounds: from one up to another.

        There are none where some other bounds do not hold, for which the conditions are given.
        """
        assert self.lane is not None
        firsts = [self.index(self._without_lane(index)) for _, index, _ in bounds]
        builder, lanes = self.builder, self.lane.extent

        def limit(limits: list[Any], order: str) -> Any:
            found, *rest = limits
            for each in rest:
                found = builder.select(builder.icmp_signed(order, each, found), each, found)
            return found

        ends = (abs(end) for low, index, high in bounds for end in (low, high, *index.bounds))
        is_short = (
            max(ends) < MOST_SHORT and lanes * byte_size(I32) >= SHORTEST
        )  # LLVM 22 has no mask of half a register
        kind = I32 if is_short else I64

        def compared(order: str, number: Any) -> Any:
            numbers = ir.Constant(ir.VectorType(kind, lanes), list(range(lanes)))
            return builder.icmp_signed(order, numbers, self.vector(builder.trunc(number, kind) if is_short else number))

        def of_lanes() -> Any:
            starts, ends = [], []
            for (low, index, high), first in zip(bounds, firsts, strict=True):
                step, (lowest, highest) = self.step(index), index.bounds
                assert step is not None
                size = abs(step)

                def rounds(distance: Any, size: int = size) -> Any:
                    """How many steps a distance takes; none if it is not ahead."""
                    above = builder.add(distance, integer(size - 1)) if size > 1 else distance
                    return builder.sdiv(above, integer(size)) if size > 1 else above

                if step > 0:
                    least, most = (builder.sub(integer(end), first) for end in (low, high))
                else:
                    most, least = (builder.sub(first, integer(end - 1)) for end in (low, high))
                    lowest, highest, low, high = -highest, -lowest, 1 - high, 1 - low
                starts += [rounds(least)] if lowest < low else []
                ends += [rounds(most)] if highest >= high else []
            if conditions:
                end = limit(ends or [integer(lanes)], "<")
                for condition in conditions:
                    end = builder.select(condition, end, integer(0))
                ends = [end]
            parts = [compared("<", limit(ends, "<"))] if ends else []
            parts += [compared(">=", limit(starts, ">"))] if starts else []
            return reduce(builder.and_, parts)

        depth, key = self._known_from([*bounds, *others])
        return self.once(("lanes", tuple(bounds), tuple(others), key), depth, of_lanes)

    def _known_places(self, index: Index) -> list[int]:
        """An index in each lane, if it depends on nothing but lanes and loops that are written out; else nothing."""
        assert self.lane is not None
        if index.is_data or not all(each in self.constants or each == self.lane for each in self.variables(index)):
            return []
        fixed = index.substitute({each: NOWHERE + number for each, number in self.constants.items()})
        return [fixed.substitute({self.lane: NOWHERE + lane}).constant for lane in range(self.lane.extent)]

    # --- memory -------------------------------------------------------------------------------------------------------

    def address(self, array: int | Local, index: Index, inside: Inside = ALWAYS) -> Any:
        """The address of an element, in lane 0: what changes with inner loops is added to what does not.

        Where conditions do not hold it is that of another element, one that is there: of the array's beginning.
        """
        kind, pointer, known = stored_type(self.dtype(array), self.target), self.memory[array], index.constant
        by_depth: dict[int, list[tuple[Atom, int]]] = {}
        for atom, factor in index.terms:
            if atom in self.constants:
                known += self.constants[atom] * factor
            elif atom != self.lane:
                by_depth.setdefault(self._depth_of(Index(((atom, 1),))), []).append((atom, factor))
        depths = sorted(by_depth)
        condition, chosen_at = None, -1
        if inside != ALWAYS:
            condition = self.condition(inside)
            chosen_at, chosen_by = self._known_from(inside.bounds)
            later = Index(tuple(term for depth in depths if depth > chosen_at for term in by_depth[depth]))
            low, high = later.bounds
            if low < 0 or high >= self.size(array):
                chosen_at = max([chosen_at, *depths])
            depths = sorted({*depths, chosen_at})
        key: tuple[Any, ...] = ("address", array)

        def moved(key: Any, depth: int, pointer: Any, offset: Callable[[], Any]) -> Any:
            return self.once(key, depth, lambda: self.builder.gep(pointer, [offset()], source_etype=kind))

        for depth in depths:
            terms = by_depth.get(depth, ())
            if terms:
                key = (*key, *((term, self._key_of(self.variables(Index((term,))))) for term in terms))
                pointer = moved(key, depth, pointer, self._index(Index(tuple(terms))))
            if depth == chosen_at:
                if known:
                    key = (*key, known)
                    pointer, known = moved(key, depth, pointer, partial(integer, known)), 0
                key = (*key, inside, chosen_by)
                pointer = self.once(key, depth, partial(self.builder.select, condition, pointer, self.memory[array]))
        if known:
            pointer = moved((*key, known), max([0, *depths]), pointer, partial(integer, known))
        return pointer

    def size(self, array: int | Local) -> int:
        """The elements of an array."""
        return array.size if isinstance(array, Local) else math.prod(self.procedure.buffers[array].shape)

    def _reading(self, element: Load | Read) -> Callable[[], Any]:
        """How to read an element, or one per lane."""
        array = element.local if isinstance(element, Read) else element.buffer
        inside = element.inside if isinstance(element, Load) else ALWAYS
        return self._loading(array, element.index, inside, element.dtype)

    def _loading(self, array: int | Local, index: Index, inside: Inside, dtype: Any) -> Callable[[], Any]:
        """How to load one element, or one per lane, without touching memory that is not there."""
        kind, step = stored_type(dtype, self.target), self.step(index)
        if step is None and (runs := self._runs(index)):
            parts = [self._loading(array, at, Inside((*inside.bounds, *lanes.bounds)), dtype) for at, lanes in runs]
            return lambda: reduce(partial(merged, self.builder), (part() for part in parts))
        condition = self.condition(inside) if inside != ALWAYS else None
        varies = condition is not None and isinstance(condition.type, ir.VectorType)
        if step == 0 and not varies:
            address = self.address(array, index, inside)
            return lambda: self.builder.load(address, typ=kind)
        assert self.lane is not None
        is_there = isinstance(array, Local) and index.bounds[0] >= 0 and index.bounds[1] < array.size
        lanes, mask = self.lane.extent, None if is_there else self.mask
        vector = ir.VectorType(kind, lanes)
        in_use = _lanes_in_use(mask, lanes) if condition is None else 0  # 0 if that is not known beforehand
        times = self._repetitions(index) if in_use and step is None else 0
        near = step if step is not None and step not in (0, 1) and abs(step) <= MOST_STEP else 0
        places = address = None
        if times:
            address = self.address(array, index.substitute({self.lane: NOWHERE}))
        elif step == 1 or near:
            address = self.address(array, index, self._in_any_lane(array, index, inside))
        else:
            places = self.index(index)
        if step == 0 and condition is not None and is_known_mask(condition) and (mask is None or is_known_mask(mask)):
            both = condition if mask is None else self.builder.and_(mask, condition)
            if any(bit.constant for bit in both.constant):
                address = self.address(array, index)  # of the one element that some lanes read

        def read() -> Any:
            wanted = mask
            if condition is not None:
                wanted = self.vector(condition) if mask is None else self.builder.and_(mask, self.vector(condition))
            if step == 0 and address is not None:
                found = self.vector(self.builder.load(address, typ=kind))
                return self.builder.select(wanted, found, ir.Constant(vector, None))
            if times:
                return load_repeated(self.builder, address, vector, times, in_use)
            if step == 1:
                return load(self.builder, address, vector, wanted)
            if near:
                partly = () if in_use else (wanted,)
                return load_strided(self.builder, address, vector, near, in_use or lanes, *partly)
            pointers = self.builder.gep(self.memory[array], [self.vector(places)], source_etype=kind)
            pointers.type = ir.VectorType(POINTER, lanes)
            return gather(self.builder, pointers, vector, wanted)

        return read

    def _in_any_lane(self, array: int | Local, index: Index, inside: Inside) -> Inside:
        """Conditions without which others hold in no lane, if the element may then be far from the array.

        To look for memory that is on no page takes a processor long, even if all lanes are left out.
        """
        assert self.lane is not None
        found, (low, high) = ALWAYS, index.bounds
        if low > -PAGE and high < self.size(array) + PAGE:
            return found
        for low, index, high in inside.bounds:
            step = self.step(index)
            if step is not None:
                reach = step * (self.lane.extent - 1)
                found = found.and_(low - max(reach, 0), self._without_lane(index), high - min(reach, 0))
        return found

    def _runs(self, index: Index, most: int = MOST_STEP) -> list[tuple[Index, Inside]]:
        """An access to neighbours in several runs, as one for each run that lanes may be in, and which lanes are.

        Args:
            index: of the element.
            most: how far apart neighbours in memory may be.

        Returns:
            Nothing if there are no such runs, or too many of them.
        """
        found = self._in_runs([index])
        is_near = all(0 < abs(self.step(at) or 0) <= most for (at,), _ in found)
        return [(at, lanes) for (at,), lanes in found] if is_near else []

    def _in_runs(self, indices: list[Index]) -> list[tuple[list[Index], Inside]]:
        """Indices in each run that lanes may be in, and the condition that says which lanes are; nothing if too many.

        If lanes are elements of rows of so many elements, as those of an image are, row and column are a quotient and a
        remainder of the number of the element. Within a row, which is the same for some lanes, the column counts on.
        """
        assert self.lane is not None
        divided = [atom for each in indices for atom in self._divisions(each)]
        if not divided:
            return []
        least = min(divided, key=lambda atom: atom.divisor)
        whole, length = least.index, least.divisor
        start = self._without_lane(whole)
        together = math.gcd(length, start.constant, *(factor for _, factor in start.terms))  # columns are multiples
        count = (length - together + self.lane.extent - 1) // length + 1
        if (
            count > MOST_RUNS
            or self.step(whole) != 1
            or whole.is_data
            or whole.bounds[0] < 0
            or any(atom.divisor % length or (atom.index - whole) % length != NOWHERE for atom in divided)
        ):
            return []
        first, depth = self.index(start), self._depth_of(whole)

        def place(divide: Callable[[Any, Any], Any], known: Callable[[int, int], int], extent: int) -> Index:
            found = Variable(f"{whole} {len(self.places)}", extent)
            is_known = isinstance(first, ir.Constant)
            value = integer(known(first.constant, length)) if is_known else divide(first, integer(length))
            self.places[found], self.depths[found] = value, depth
            return Index(((found, 1),))

        row, column = self.once(
            ("runs", whole, length, self._key_of(self.variables(whole))),
            depth,
            lambda: (
                place(self.builder.udiv, floordiv, whole.bounds[1] // length + 1),
                place(self.builder.urem, mod, length),
            ),
        )
        found = []
        for number in range(count):
            own = row + number, column + Index(((self.lane, 1),), -number * length)
            moved = [self._within_run(index, whole, length, *own) for index in indices]
            found.append((moved, ALWAYS.and_(0, own[1], length)))
        return found

    def _divisions(self, index: Index) -> Iterator[Quotient | Remainder]:
        """The innermost quotients and remainders in an index that differ between lanes."""
        for atom, _ in index.terms:
            if isinstance(atom, (Quotient, Remainder)) and self._varies_by_lane(atom.index):
                inner = list(self._divisions(atom.index))
                yield from inner or [atom]

    def _within_run(self, index: Index, whole: Index, length: int, row: Index, column: Index) -> Index:
        """An index where a number is an element of a known row."""
        found = Index((), index.constant)
        for atom, factor in index.terms:
            place = Index(((atom, 1),))
            if isinstance(atom, (Quotient, Remainder)) and self._varies_by_lane(atom.index):
                rows, ahead = atom.divisor // length, (atom.index - whole) // length
                if any(True for _ in self._divisions(atom.index)):
                    below = self._within_run(atom.index, whole, length, row, column)
                    place = below // atom.divisor if isinstance(atom, Quotient) else below % atom.divisor
                elif isinstance(atom, Quotient):
                    place = (row + ahead) // rows
                else:
                    place = (row + ahead) % rows * length + column
            found = found + place * factor
        return found

    def _repetitions(self, index: Index) -> int:
        """In how many lanes the same element is read, if it is the next element after that; 0 if it is not so."""
        assert self.lane is not None
        varying = [(atom, factor) for atom, factor in index.terms if self._varies_by_lane(Index(((atom, 1),)))]
        if len(varying) != 1 or varying[0][1] != 1 or not isinstance(varying[0][0], Quotient):
            return 0
        atom = varying[0][0]
        first = atom.index - Index(((self.lane, 1),))
        is_whole = first.constant % atom.divisor == 0 and all(
            isinstance(each, Variable) and factor % atom.divisor == 0 for each, factor in first.terms
        )
        is_next = self.lane not in self.variables(first) and self.lane.extent % atom.divisor == 0
        return atom.divisor if is_whole and is_next else 0

    def _write(self, array: int | Local, index: Index, value: Any) -> None:
        step = self.step(index)
        self.versions[array] = self.versions.get(array, 0) + 1
        if self.lane is None or step == 0:
            if isinstance(value.type, ir.VectorType):
                value = self.builder.extract_element(value, ir.Constant(ir.IntType(32), 0))
            self.builder.store(value, self.address(array, index))
        elif step == 1:
            store(self.builder, self.address(array, index), self.vector(value), self.mask)
        elif runs := self._runs(index, most=1):
            for at, lanes in runs:
                mask = self.vector(self.condition(lanes))
                mask = mask if self.mask is None else self.builder.and_(self.mask, mask)
                store(
                    self.builder, self.address(array, at, self._in_any_lane(array, at, lanes)), self.vector(value), mask
                )
        else:
            value = self.vector(value)
            places = self.builder.gep(self.memory[array], [self.index(index)], source_etype=value.type.element)
            places.type = ir.VectorType(POINTER, self.lane.extent)
            scatter(self.builder, places, value, self.mask)


def _is_known(condition: Any, value: int) -> bool:
    """Whether a condition is a constant, the same for all lanes."""
    return isinstance(condition, ir.Constant) and condition.type == BIT and condition.constant == value


def _is_zero_outside(choice: Choose) -> bool:
    """Whether a choice is an element that is read under its conditions, and else the number whose bits are 0."""
    here, elsewhere = choice.here, choice.elsewhere
    if not isinstance(here, Load) or not set(choice.inside.bounds) <= set(here.inside.bounds):
        return False
    return isinstance(elsewhere, Number) and not elsewhere.value and math.copysign(1, elsewhere.value) > 0


def _lanes_in_use(mask: Any, lanes: int) -> int:
    """How many lanes a mask leaves, which are the first; 0 if that is not known."""
    if mask is None:
        return lanes
    return sum(bit.constant for bit in mask.constant) if is_known_mask(mask) else 0
