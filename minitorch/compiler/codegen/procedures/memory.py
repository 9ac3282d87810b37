"""Memory: the addresses of elements, and loads and stores that touch no memory outside arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from llvmlite import ir

from ....dtypes import DType
from ...loop_ir.expressions import ALWAYS, Inside, Load
from ...loop_ir.index import NOWHERE, Atom, Index, Quotient, Variable
from ...loop_ir.loops import Buffer
from ...loop_ir.tree import Local, Read
from ...target import MOST_STEP
from ..builder import is_known_mask
from ..instructions import stored_type
from ..vector_memory import (
    POINTER,
    gather,
    load,
    load_repeated,
    load_strided,
    merged,
    scatter,
    store,
)
from .conditions import Conditions, lanes_in_use
from .indices import Indices
from .runs import Runs
from .scopes import Scopes

PAGE = 1 << 10  # elements of four bytes on the smallest page of memory


class Memory:
    """The arrays in memory: arguments, and local ones on the stack.

    Args:
        scopes: the open ones.
        indices: computes indices.
        runs: of neighbours.
        conditions: computes conditions.
        buffers: the arguments.

    Attributes:
        starts: the address of each array.
    """

    def __init__(
        self, scopes: Scopes, indices: Indices, runs: Runs, conditions: Conditions, buffers: tuple[Buffer, ...]
    ) -> None:
        self.scopes, self.indices, self.runs, self.conditions = scopes, indices, runs, conditions
        self.builder, self.buffers = scopes.builder, buffers
        self.starts: dict[int | Local, Any] = {}

    def dtype(self, array: int | Local) -> DType:
        """Return the type of an array's elements."""
        return array.dtype if isinstance(array, Local) else self.buffers[array].dtype

    def address(self, array: int | Local, index: Index, inside: Inside = ALWAYS) -> Any:
        """Return the address of an element in lane 0: its part that varies with inner loops is added to the rest.

        Where conditions do not hold it is that of another, existing element, at the array's beginning.
        """
        kind, pointer, known = stored_type(self.dtype(array), self.scopes.target), self.starts[array], index.constant
        by_depth: dict[int, list[tuple[Atom, int]]] = {}
        for atom, factor in index.terms:
            if atom in self.scopes.constants:
                known += self.scopes.constants[atom] * factor
            elif atom != self.scopes.lane:
                by_depth.setdefault(self.scopes.depth_of_atom(atom), []).append((atom, factor))
        parts = {depth: Index(tuple(terms)) for depth, terms in by_depth.items()}
        depths = sorted(parts)
        condition, chosen_at = None, -1
        if inside != ALWAYS:
            condition = self.conditions.condition(inside)
            chosen_at, chosen_by = self.scopes.known_from(inside.bounds)
            later = Index(tuple(term for depth in depths if depth > chosen_at for term in parts[depth].terms))
            low, high = later.bounds
            if low < 0 or high >= self.size(array):
                chosen_at = max([chosen_at, *depths])
            depths = sorted({*depths, chosen_at})
        key: tuple[Any, ...] = ("address", array)

        def moved(key: Any, depth: int, pointer: Any, by: Index) -> Any:
            there = self.scopes.find(key, depth)
            if there is not None:
                return there
            offset = self.indices.sum(by)
            return self.scopes.once(key, depth, lambda: self.builder.gep(pointer, [offset()], source_etype=kind))

        for depth in depths:
            part = parts.get(depth)
            if part is not None:
                key = (*key, part) if part.is_affine else (*key, part, self.scopes.key_of(part.variables))
                pointer = moved(key, depth, pointer, part)
            if depth == chosen_at:
                if known:
                    key = (*key, known)
                    pointer, known = moved(key, depth, pointer, NOWHERE + known), 0
                other = self.starts[array]
                key = (*key, inside, chosen_by, other)
                pointer = self.scopes.once(key, depth, partial(self.builder.select, condition, pointer, other))
        if known:
            pointer = moved((*key, known), max([0, *depths]), pointer, NOWHERE + known)
        return pointer

    def size(self, array: int | Local) -> int:
        """Return the elements of an array."""
        return array.size if isinstance(array, Local) else math.prod(self.buffers[array].shape)

    def reading(self, element: Load | Read) -> Callable[[], Any]:
        """Return how to read an element, or one per lane."""
        array = element.local if isinstance(element, Read) else element.buffer
        inside = element.inside if isinstance(element, Load) else ALWAYS
        return self._loading(array, element.index, inside, element.dtype)

    def _loading(self, array: int | Local, index: Index, inside: Inside, dtype: Any) -> Callable[[], Any]:
        """Return how to load one element, or one per lane, without touching memory outside the array."""
        kind, step = stored_type(dtype, self.scopes.target), self.scopes.step(index)
        if step is None and (runs := self.runs.of_access(index)):
            parts = [self._loading(array, at, Inside((*inside.bounds, *lanes.bounds)), dtype) for at, lanes in runs]
            return lambda: reduce(partial(merged, self.builder), (part() for part in parts))
        condition = self.conditions.condition(inside) if inside != ALWAYS else None
        varies = condition is not None and isinstance(condition.type, ir.VectorType)
        if step == 0 and not varies:
            address = self.address(array, index, inside)
            return lambda: self.builder.load(address, typ=kind)
        assert self.scopes.lane is not None
        is_there = isinstance(array, Local) and index.bounds[0] >= 0 and index.bounds[1] < array.size
        lanes, mask = self.scopes.lane.extent, None if is_there else self.scopes.mask
        vector = ir.VectorType(kind, lanes)
        in_use = lanes_in_use(mask, lanes) if condition is None else 0  # 0 if that is not known beforehand
        times = self._repetitions(index) if in_use and step is None else 0
        near = step if step is not None and step not in (0, 1) and abs(step) <= MOST_STEP else 0
        places = address = None
        if times:
            address = self.address(array, index.substitute({self.scopes.lane: NOWHERE}))
        elif step == 1 or near:
            address = self.address(array, index, self._in_any_lane(array, index, inside))
        else:
            places = self.indices.index(index)
        both: Any = mask if condition is None else condition if mask is None else self.conditions.in_lanes(inside)
        if step == 0 and varies and is_known_mask(both) and any(bit.constant for bit in both.constant):
            address = self.address(array, index)  # of the one element that some lanes read

        def read() -> Any:
            wanted = None if both is None else self.scopes.vector(both)
            if step == 0 and address is not None:
                found = self.scopes.vector(self.builder.load(address, typ=kind))
                return self.builder.select(wanted, found, ir.Constant(vector, None))
            if times:
                return load_repeated(self.builder, address, vector, times, in_use)
            if step == 1:
                return load(self.builder, address, vector, wanted)
            if near:
                partly = () if in_use else (wanted,)
                return load_strided(self.builder, address, vector, near, in_use or lanes, *partly)
            pointers = self.builder.gep(self.starts[array], [self.scopes.vector(places)], source_etype=kind)
            pointers.type = ir.VectorType(POINTER, lanes)
            return gather(self.builder, pointers, vector, wanted)

        return read

    def _in_any_lane(self, array: int | Local, index: Index, inside: Inside) -> Inside:
        """Return conditions without which others hold in no lane, if the element may then be far from the array.

        An access to an unmapped page is slow, even if all lanes are left out.
        """
        assert self.scopes.lane is not None
        found, (low, high) = ALWAYS, index.bounds
        if low > -PAGE and high < self.size(array) + PAGE:
            return found
        for low, index, high in inside.bounds:
            step = self.scopes.step(index)
            if step is not None:
                reach = step * (self.scopes.lane.extent - 1)
                found = found.and_(low - max(reach, 0), self.scopes.without_lane(index), high - min(reach, 0))
        return found

    def _repetitions(self, index: Index) -> int:
        """Return in how many lanes an element is read before the next element is; 0 if reads are not so."""
        assert self.scopes.lane is not None
        varying = [(atom, factor) for atom, factor in index.terms if self.scopes.varies_by_lane(Index(((atom, 1),)))]
        if len(varying) != 1 or varying[0][1] != 1 or not isinstance(varying[0][0], Quotient):
            return 0
        atom = varying[0][0]
        first = atom.index - Index(((self.scopes.lane, 1),))
        is_whole = first.constant % atom.divisor == 0 and all(
            isinstance(each, Variable) and factor % atom.divisor == 0 for each, factor in first.terms
        )
        is_next = self.scopes.lane not in first.variables and self.scopes.lane.extent % atom.divisor == 0
        return atom.divisor if is_whole and is_next else 0

    def write(self, array: int | Local, index: Index, value: Any) -> None:
        step = self.scopes.step(index)
        self.scopes.versions[array] = self.scopes.versions.get(array, 0) + 1
        if self.scopes.lane is None or step == 0:
            if isinstance(value.type, ir.VectorType):
                value = self.builder.extract_element(value, ir.Constant(ir.IntType(32), 0))
            self.builder.store(value, self.address(array, index))
        elif step == 1:
            store(self.builder, self.address(array, index), self.scopes.vector(value), self.scopes.mask)
        elif runs := self.runs.of_access(index, most=1):
            for at, lanes in runs:
                mask = self.scopes.vector(self.conditions.condition(lanes))
                mask = mask if self.scopes.mask is None else self.builder.and_(self.scopes.mask, mask)
                store(
                    self.builder,
                    self.address(array, at, self._in_any_lane(array, at, lanes)),
                    self.scopes.vector(value),
                    mask,
                )
        else:
            value = self.scopes.vector(value)
            places = self.builder.gep(self.starts[array], [self.indices.index(index)], source_etype=value.type.element)
            places.type = ir.VectorType(POINTER, self.scopes.lane.extent)
            scatter(self.builder, places, value, self.scopes.mask)
