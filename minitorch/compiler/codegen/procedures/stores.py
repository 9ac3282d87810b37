"""Statements that write: stores of values, and accumulations."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....dtypes import int32
from ...loop_ir.expressions import Load
from ...loop_ir.index import Index
from ...loop_ir.loops import neutral
from ...loop_ir.tree import Accumulate, Block, Local, Place, Procedure, Read, Store, arrays_read
from ...scheduling.analysis.finding import factors_of
from ...target import MOST_STEP
from ..builder import is_known_mask
from ..instructions import before_store, combine, constant, multiply_add
from ..vector_memory import integer, shuffled, store_interleaved, store_past_caches
from .conditions import lanes_in_use
from .expressions import Expressions
from .memory import Memory
from .registers import Registers
from .scopes import Scopes


class Stores:
    """Emitter of stores.

    Args:
        scopes: the open ones.
        registers: hold elements of local arrays.
        memory: holds all other elements.
        expressions: computes values.
        procedure: that is emitted.
    """

    def __init__(
        self, scopes: Scopes, registers: Registers, memory: Memory, expressions: Expressions, procedure: Procedure
    ) -> None:
        self.scopes, self.registers, self.builder = scopes, registers, scopes.builder
        self.memory, self.expressions = memory, expressions
        self.read = sorted(each for each in arrays_read(procedure.body) if isinstance(each, int))

    def interleaved(self, block: Block) -> int:
        """Return how many stores fill all between one lane's element and the next one's; at least 1."""
        first = block[0]
        if self.scopes.lane is None or not isinstance(first, Store) or isinstance(first.array, Local):
            return 1
        count = self.scopes.step(first.index) or 1
        wanted = [(first.array, first.index + number) for number in range(count)]
        stores = [each for each in block[:count] if isinstance(each, Store)]
        found = [(each.array, each.index) for each in stores if first.array not in self.scopes.facts(each.value)[1]]
        return count if 1 < count <= MOST_STEP and found == wanted and lanes_in_use(self.scopes.mask, 1) else 1

    def store_together(self, stores: list[Store]) -> None:
        """Emit stores that fill the places between the lanes of the first."""
        assert isinstance(stores[0].array, int) and self.scopes.lane is not None
        array, dtype = stores[0].array, self.memory.dtype(stores[0].array)
        values = [
            self.scopes.vector(before_store(self.builder, self.expressions.value(each.value), dtype)) for each in stores
        ]
        self.scopes.versions[array] = self.scopes.versions.get(array, 0) + 1
        first = self.memory.address(array, stores[0].index)
        store_interleaved(self.builder, first, values, lanes_in_use(self.scopes.mask, self.scopes.lane.extent))

    def store(self, each: Store) -> None:
        """Emit ``array[index] = value``."""
        dtype = self.memory.dtype(each.array)
        if isinstance(each.value, (Load, Read)) and each.value.dtype is dtype:
            stored = self.expressions.element(each.value)
        else:
            stored = before_store(self.builder, self.expressions.value(each.value), dtype)
        if each.past_caches and self.scopes.mask is None and self.scopes.step(each.index) == 1:
            assert isinstance(each.array, int)
            self.scopes.versions[each.array] = self.scopes.versions.get(each.array, 0) + 1
            address = self.memory.address(each.array, each.index)
            store_past_caches(self.builder, address, self.scopes.vector(stored), self._offset_to_stream(each.array))
        else:
            self._put(each.array, each.index, stored)

    def _offset_to_stream(self, array: int) -> Any:
        """Return the offset of an address from a multiple of a vector's size at which the vector goes past the caches.

        It is -1 if the kernel reads the array, under any number: the array is in the caches already.
        """

        def offset() -> Any:
            found: Any = integer(0)
            for other in self.read:
                same = self.builder.icmp_unsigned("==", self.memory.starts[array], self.memory.starts[other])
                found = self.builder.select(same, integer(-1), found)
            return found

        return self.scopes.once(("offset", array), 0, offset)

    def _put(self, array: int | Local, index: Index, stored: Any) -> None:
        """Write a value to memory or to a register."""
        if isinstance(array, Local) and array.place is Place.REGISTERS:
            self.registers.write(array, index, stored)
        else:
            self.memory.write(array, index, stored)

    def accumulate(self, each: Accumulate) -> None:
        """Emit ``array[index] = array[index] op value``."""
        dtype = self.memory.dtype(each.array)
        across = self.scopes.lane is not None and not each.index.depends_on(self.scopes.lane)
        current = (
            Read(dtype, each.array, each.index)
            if isinstance(each.array, Local)
            else Load(dtype, each.array, each.index)
        )
        factors = factors_of(each) if dtype.name in ("float32", "float64") else ()
        if across:
            value = self.scopes.vector(self.expressions.value(each.value))
            if self.scopes.mask is not None:
                value = self.builder.select(
                    self.scopes.mask,
                    value,
                    self.scopes.vector(constant(dtype, neutral(each.reduction, dtype), value.type.element)),
                )
            lane, self.scopes.lane = self.scopes.lane, None
            new = combine(
                self.builder,
                each.reduction,
                dtype,
                self.expressions.value(current),
                self._across(each.reduction, dtype, value),
            )
            self._put(each.array, each.index, before_store(self.builder, new, dtype))
            self.scopes.lane = lane
            return
        old = self.expressions.value(current)
        if factors:
            a, b, old = self.scopes.alike(*(self.expressions.value(factor) for factor in factors), old)
            mask = self.scopes.mask
            if mask is not None and not is_known_mask(mask) and isinstance(old, ir.Constant):
                # LLVM 22 may load what a mask excludes for a multiply-add that is zero there; the sum is the same.
                new = self.builder.fadd(self.builder.fmul(a, b), old)
            else:
                new = multiply_add(self.builder, dtype, a, b, old)
        elif dtype is int32 and (summed := self.expressions.groups.added(each, old)) is not None:
            new = summed
        else:
            value, old = self.scopes.alike(self.expressions.value(each.value), old)
            new = combine(self.builder, each.reduction, dtype, old, value)
        if self.scopes.mask is not None:
            new = self.builder.select(self.scopes.mask, new, old)
        self._put(each.array, each.index, before_store(self.builder, new, dtype))

    def _across(self, reduction: str, dtype: Any, total: Any) -> Any:
        """Combine the lanes of a vector into one number: halves onto halves."""
        width = total.type.count
        while width > 1:
            width //= 2
            low = shuffled(self.builder, total, total, list(range(width)))
            high = shuffled(self.builder, total, total, list(range(width, 2 * width)))
            total = combine(self.builder, reduction, dtype, low, high)
        return self.builder.extract_element(total, ir.Constant(ir.IntType(32), 0))
