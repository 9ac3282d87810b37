"""The emitter of procedures: control flow (loops, each in its kind, and guards)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from ...loop_ir.expressions import ALWAYS, Inside
from ...loop_ir.index import NOWHERE, Index, Variable
from ...loop_ir.tree import (
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
    Store,
    statements,
)
from ...target import MOST_STEP, Target
from ..instructions import I64, stored_type
from ..vector_memory import POINTER, integer, prefetch, wait_for_stores
from .conditions import Conditions
from .expressions import Expressions
from .indices import Indices
from .memory import Memory
from .registers import Registers
from .runs import Runs
from .scopes import Scope, Scopes
from .stores import Stores


class Emitter:
    """Emitter of one procedure as a function ``void (ptr buffers, ptr trouble, i64 begin, i64 end)``.

    Args:
        procedure: its statements.
        function: the function that they are emitted into.
        target: the machine that it is made for.
        arrays: local arrays whose addresses are given behind those of the buffers.
    """

    def __init__(self, procedure: Procedure, function: Any, target: Target, arrays: Sequence[Local] = ()) -> None:
        table, trouble, *_ = function.args
        self.procedure = procedure
        self.scopes = scopes = Scopes(procedure, function, target)
        self.builder = scopes.builder
        self.registers = Registers(scopes)
        self.indices = Indices(scopes, trouble, lambda expression: self.expressions.value(expression))
        runs = Runs(scopes, self.indices)
        self.conditions = Conditions(scopes, self.indices, runs)
        self.memory = Memory(scopes, self.indices, runs, self.conditions, procedure.buffers)
        self.expressions = Expressions(scopes, self.registers, self.indices, self.conditions, self.memory)
        self.stores = Stores(scopes, self.registers, self.memory, self.expressions, procedure)
        self.held: set[tuple[Index, int]] = set()  # indices that are known to be below a number
        for number, array in enumerate((*range(len(procedure.buffers)), *arrays)):
            slot = self.builder.gep(table, [integer(number)], source_etype=POINTER)
            self.memory.starts[array] = self.builder.load(slot, typ=POINTER)
        for length, number in procedure.lengths.items():
            place = self.builder.gep(self.memory.starts[number], [integer(length.place)], source_etype=I64)
            self.scopes.places[length], self.scopes.depths[length] = self.builder.load(place, typ=I64), 0
        for each in statements(procedure.body):
            if isinstance(each, Allocate) and each.local.place is Place.STACK:
                kind = ir.ArrayType(stored_type(each.local.dtype, target), max(each.local.size, 1))
                memory = self.builder.alloca(kind)
                memory.align, memory.type = 64, POINTER
                self.memory.starts[each.local] = memory

    def emit(self) -> None:
        """Emit the whole function."""
        body, parallel = self.procedure.body, []
        while len(body) == 1 and isinstance(body[0], For) and body[0].kind is Kind.PARALLEL:
            parallel.append(body[0].variable)
            body = body[0].body

        def unit(number: Any) -> None:
            for count, variable in enumerate(reversed(parallel), 1):
                is_last = count == len(parallel)
                place = number if is_last else self.builder.urem(number, integer(variable.extent))
                number = number if is_last else self.builder.udiv(number, integer(variable.extent))
                self.scopes.places[variable], self.scopes.depths[variable] = place, self.scopes.innermost
            self.block(body)

        _, _, begin, end = self.scopes.function.args
        self.loop(begin, self._larger(begin, end), body, unit)
        if any(isinstance(each, Store) and each.past_caches for each in statements(self.procedure.body)):
            wait_for_stores(self.builder)
        self.builder.ret_void()

    def block(self, block: Block) -> None:
        """Emit statements, one after another."""
        place = 0
        while place < len(block):
            each = block[place]
            count = self.stores.interleaved(block[place : place + MOST_STEP])
            match each:
                case For():
                    self.run_loop(each)
                case If():
                    self.guard(each)
                case Store() if count > 1:
                    self.stores.store_together([one for one in block[place : place + count] if isinstance(one, Store)])
                case Store():
                    self.stores.store(each)
                case Accumulate():
                    self.stores.accumulate(each)
                case Prefetch():
                    prefetch(self.builder, self.memory.address(each.array, each.index))
            place += count

    def run_loop(self, each: For) -> None:
        """Emit a loop in its kind."""
        variable = each.variable
        if each.kind is Kind.UNROLLED:
            for number in range(variable.extent):
                self.scopes.constants[variable] = number
                self.block(each.body)
            del self.scopes.constants[variable]
        elif each.kind is Kind.VECTOR:
            self.scopes.lane = variable
            self.block(each.body)
            self.scopes.lane = None
        elif each.kind is Kind.OUTLINED:
            self._outlined(For(variable, each.body))
        elif variable.extent:
            start, stop, inner, is_guard, held = self._bounded(each)
            before, self.held = self.held, self.held | held

            def body(counter: Any) -> None:
                self.scopes.places[variable], self.scopes.depths[variable] = counter, self.scopes.innermost
                self.block(inner)

            self.loop(start, stop, inner, body, is_guard)
            self.held = before

    def _outlined(self, each: For) -> None:
        """Emit a loop as a separate function, which is given the loop variables and local arrays that it uses."""
        inside = list(statements((each,)))
        own = {one.local for one in inside if isinstance(one, Allocate)}
        used = [array for array in self.memory.starts if isinstance(array, Local) and array not in own]
        mentioned = frozenset[Variable]()
        for one in inside:
            if isinstance(one, If):
                mentioned |= one.inside.variables
            elif isinstance(one, (Store, Accumulate)):
                mentioned |= one.index.variables | self.scopes.facts(one.value)[0]
        mentioned -= {one.variable for one in inside if isinstance(one, For)}
        variables = [variable for variable in self.scopes.places if variable in mentioned]
        kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, *(POINTER for _ in used), *(I64 for _ in variables)])
        module, name = self.scopes.function.module, f"{self.scopes.function.name}.{each.variable.name}"
        function = ir.Function(module, kind, module.get_unique_name(name))
        function.linkage = "internal"
        inner = Emitter(Procedure(self.procedure.buffers, (each,)), function, self.scopes.target)
        _, _, *given = function.args
        inner.memory.starts |= dict(zip(used, given, strict=False))
        inner.scopes.places = dict(zip(variables, given[len(used) :], strict=True))
        inner.scopes.depths, inner.scopes.constants = dict.fromkeys(variables, 0), dict(self.scopes.constants)
        inner.held = set(self.held)
        inner.run_loop(each)
        inner.builder.ret_void()
        arrays = [self.memory.starts[array] for array in used]
        places = [self.scopes.places[variable] for variable in variables]
        self.builder.call(function, [self.scopes.function.args[0], self.indices.trouble, *arrays, *places])
        self.scopes.forget(each.body)

    def _bounded(self, each: For) -> tuple[Any, Any, Block, bool, set[tuple[Index, int]]]:
        """Turn a guard that holds from some iteration on, or up to one, into a bound of the loop.

        An upper bound is one also in loops nested in it.

        Returns:
            Where the loop starts and ends, its body, whether there may be no iteration, and indices that are below a
            number in all iterations.
        """
        start: Any = integer(0)
        stop: Any = integer(each.variable.extent)
        body, inner = each.body, list[Variable]()
        while len(body) == 1 and isinstance(body[0], For):
            inner.append(body[0].variable)
            body = body[0].body
        guard = body[0] if len(body) == 1 else None
        if not isinstance(guard, If):
            return start, stop, each.body, False, set()
        left, held, is_guard, may_be_empty = list(guard.inside.bounds), set[tuple[Index, int]](), False, False
        for bound in guard.inside.bounds:
            low, index, high = bound
            by = index.coefficient(each.variable)
            around = (each.variable, *inner)
            own = [term for term in index.terms if any(Index((term,)).depends_on(one) for one in around)]
            affine = all(atom in around and factor > 0 for atom, factor in own)
            is_below = index.bounds[0] < low
            if by <= 0 or not affine or (is_below and inner):
                continue
            lowest = index.substitute(dict.fromkeys(inner, NOWHERE))
            first = lowest.substitute({each.variable: NOWHERE})
            if is_below:
                start = self._larger(start, self._iterations(first, by, low))
            if index.bounds[1] >= high:
                end = self._iterations(first, by, high)
                stop = self.builder.select(self.builder.icmp_signed("<", end, stop), end, stop)
                held.add((lowest, high))
            has_some = not is_below and first.bounds[1] < high
            may_be_empty |= not has_some
            if not inner:
                left.remove(bound)
                is_guard |= not has_some and (is_below or (first, high) not in self.held)
        if may_be_empty:
            stop = self._larger(start, stop)
        if inner or len(left) == len(guard.inside.bounds):
            return start, stop, each.body, False, held
        return start, stop, (If(Inside(tuple(left)), guard.body),) if left else guard.body, is_guard, held

    def _iterations(self, first: Index, by: int, limit: int) -> Any:
        """Return the iterations before an index that grows in steps reaches a limit; not positive if none."""
        room = self.builder.sub(integer(limit + by - 1), self.indices.index(first))
        return self.builder.sdiv(room, integer(by)) if by > 1 else room

    def loop(self, start: Any, stop: Any, inside: Block, body: Callable[[Any], None], is_guard: bool = False) -> None:
        """Emit ``for i in range(start, stop)``; registers that the body changes are handed from round to round.

        The loop ends where the counter is equal to the stop, which is not below the start. So LLVM can count addresses
        in place of iterations (strength reduction), which spares an addition in every round.

        With `is_guard`, there may be no round at all.
        """
        keys = self.registers.carried(inside)
        self.scopes.forget(inside)
        builder, before = self.builder, self.builder.block
        head, within, after = (self.scopes.function.append_basic_block(name) for name in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        counter = builder.phi(I64)
        counter.add_incoming(start, before)
        phis = []
        for key in keys:
            value = self.registers.values[key]
            phi = builder.phi(value.type)
            phi.add_incoming(value, before)
            self.registers.set(key, phi, len(self.scopes.open))
            phis.append(phi)
        builder.cbranch(builder.icmp_signed("!=", counter, stop), within, after)
        builder.position_at_end(within)
        self.scopes.open.append(Scope(entry=before, is_guard=is_guard))
        body(counter)
        self.scopes.leave()
        counter.add_incoming(builder.add(counter, integer(1)), builder.block)
        for key, phi in zip(keys, phis, strict=True):
            phi.add_incoming(self.registers.values[key], builder.block)
            self.registers.set(key, phi, self.scopes.innermost)
        builder.branch(head)
        builder.position_at_end(after)
        self.scopes.forget(inside)

    def _larger(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed("<", a, b), b, a)

    def guard(self, each: If) -> None:
        """Emit statements that run where conditions hold: under a mask as far as these differ between lanes."""
        lanes = Inside(tuple(bound for bound in each.inside.bounds if self.scopes.varies_by_lane(bound[1])))
        scalar = Inside(tuple(bound for bound in each.inside.bounds if bound not in lanes.bounds))
        condition = self.conditions.condition(scalar) if scalar != ALWAYS else None
        if isinstance(condition, ir.Constant):
            if not condition.constant:
                return
            condition = None
        before = self.scopes.mask, self.scopes.mask_key, self.scopes.masked
        if lanes != ALWAYS:
            self.scopes.mask = self.scopes.vector(self.conditions.in_lanes(lanes))
            self.scopes.masked = Inside((*before[2].bounds, *lanes.bounds))
            key = before[1], lanes, self.scopes.key_of(lanes.variables)
            self.scopes.mask_key = self.scopes.mask_keys.setdefault(key, 1 + len(self.scopes.mask_keys))
        if condition is None:
            self.block(each.body)
        else:
            self._branch(condition, each.body)
        self.scopes.mask, self.scopes.mask_key, self.scopes.masked = before

    def _branch(self, condition: Any, body: Block) -> None:
        """Emit statements in a separate block; registers that they change have one of two values after it."""
        builder, keys = self.builder, self.registers.carried(body)
        old = [self.registers.values[key] for key in keys]
        self.scopes.forget(body)
        before = builder.block
        within, after = (self.scopes.function.append_basic_block(name) for name in ("guarded", "after"))
        builder.cbranch(condition, within, after)
        builder.position_at_end(within)
        self.scopes.open.append(Scope(entry=before, is_guard=True))
        self.block(body)
        before = self.scopes.leave().entry
        last = builder.block
        builder.branch(after)
        builder.position_at_end(after)
        for key, value in zip(keys, old, strict=True):
            phi = builder.phi(value.type)
            phi.add_incoming(value, before)
            phi.add_incoming(self.registers.values[key], last)
            self.registers.set(key, phi, self.scopes.innermost)
        self.scopes.forget(body)
