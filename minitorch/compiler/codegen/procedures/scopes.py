"""Scopes: common subexpression elimination and loop-invariant code motion, for every procedure alike.

- *Common subexpressions are computed once.* Equal expressions have equal values as long as what they read is not
  stored to, and the code is straight from one use to the other.
- *Loop-invariant code is moved out.* A value is computed in the outermost scope in which all that it depends on is
  known. A load stays inside of its guards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

from ...loop_ir.expressions import ALWAYS, Expression
from ...loop_ir.index import Atom, Index, Looked, Variable
from ...loop_ir.tree import Block, Local, Place, Procedure, arrays_written
from ...target import Target
from ..builder import Builder
from ..vector_memory import broadcast

Bound = tuple[int, Index, int]
TROUBLE = -1  # in the place of an array: the word in which an index out of range is noted, which masks and guards keep


@dataclass
class Scope:
    """A region of code: a loop's body, a guard's, or the whole function.

    Attributes:
        entry: the block that the region is entered from, which ends in a branch; None if it has no blocks.
        is_guard: whether it may not be entered.
        known: the values that were computed for it, by their keys.
    """

    entry: Any = None
    is_guard: bool = False
    known: list[Any] = field(default_factory=list)


class Scopes:
    """The scopes that are open during emission, and the values that are known in them.

    Attributes:
        function: the function that is emitted.
        target: the processor that it is for.
        builder: where instructions go.
        open: the scopes, from the function inwards; a scope's place among them is its depth.
        known: values, each with the depth of its scope.
        depths: of the scope in which a loop variable has a value.
        places: that value.
        constants: the iteration of each loop that is written out.
        lane: the variable of the vector loop, if the code is in one.
        mask: the lanes in which statements run, if not in all.
        mask_key: the number of the mask.
        mask_keys: the numbers of all masks, by their conditions and the masks that they are within.
        masked: the conditions of the mask.
        register_depths: of the scope in which each register of an array has its value.
        versions: how often an array was stored to.
        written: the arrays that the procedure stores to.
    """

    def __init__(self, procedure: Procedure, function: Any, target: Target) -> None:
        self.function, self.target = function, target
        self.builder = Builder(function.append_basic_block("entry"), target)
        self.open = [Scope()]
        self.known: dict[Any, tuple[int, Any]] = {}
        self.depths: dict[Variable, int] = {}
        self.places: dict[Variable, Any] = {}
        self.constants: dict[Variable, int] = {}
        self.lane: Variable | None = None
        self.mask: Any = None
        self.mask_key: int | None = None
        self.mask_keys: dict[Any, int] = {}
        self.masked = ALWAYS
        self.register_depths: dict[Local, dict[int, int]] = {}
        self.versions: dict[int | Local, int] = {}
        self.written = arrays_written(procedure.body)
        self._vectors: dict[tuple[int, int, int], tuple[Any, Any]] = {}  # of scalars, by the block that computes them

    @property
    def innermost(self) -> int:
        """The depth of the scope that code is in."""
        return len(self.open) - 1

    def forget(self, block: Block) -> None:
        """Forget the elements that were read of the arrays that a block stores to."""
        for array in arrays_written(block):
            self.versions[array] = self.versions.get(array, 0) + 1

    def facts(self, expression: Expression) -> tuple[frozenset[Variable], frozenset[int | Local]]:
        """Return the loop variables that a value depends on, and the arrays it reads, with `TROUBLE` if indices are."""
        arrays = expression.reads
        return expression.variables, arrays | {TROUBLE} if expression.looks_up else arrays

    def depth(self, variables: frozenset[Variable], arrays: frozenset[int | Local] = frozenset()) -> int:
        """Return the outermost scope in which a value that depends on these is known."""
        depth = 0
        for each in variables:
            if each not in self.constants:
                depth = max(depth, self.depths.get(each, 0))
        if not arrays:
            return depth
        written = arrays & self.written
        if any(isinstance(each, int) or each.place is not Place.REGISTERS for each in written):
            return self.innermost
        for local in written:
            assert isinstance(local, Local)
            depth = max((depth, *self.register_depths.get(local, {}).values()))
        return self.within_guards(depth)

    def key_of(self, variables: frozenset[Variable], arrays: frozenset[int | Local] = frozenset()) -> Any:
        """Return the numbers of unrolled loops, and how often the arrays were stored to."""
        constants = self.constants
        unrolled = frozenset([(each, constants[each]) for each in variables if each in constants])
        if not arrays:
            return unrolled
        return unrolled, frozenset([(array, self.versions.get(array, 0)) for array in arrays & self.written])

    def _computed_at(self, depth: int, compute: Callable[[], Any]) -> Any:
        """Emit a value into an outer scope: before the branch into the first region within it."""
        entry = next((scope.entry for scope in self.open[depth + 1 :] if scope.entry is not None), None)
        if entry is None:
            return compute()
        here = self.builder.block
        branch = entry.instructions.pop()
        entry.terminator = None
        self.builder.position_at_end(entry)
        value = compute()
        last = self.builder.block
        branch.parent = last
        last.instructions.append(branch)
        last.terminator = branch
        if last is not entry:  # the emitted code has its own blocks
            self._entered_from(last, entry, branch)
        self.builder.position_at_end(here)
        return value

    def _entered_from(self, new: Any, old: Any, branch: Any) -> None:
        """Move a branch to another block."""
        for scope in self.open:
            scope.entry = new if scope.entry is old else scope.entry
        for target in branch.operands:
            for each in getattr(target, "instructions", ()):
                if isinstance(each, ir.PhiInstr):
                    each.incomings = [(value, new if block is old else block) for value, block in each.incomings]

    def find(self, key: Any, depth: int) -> Any:
        """Return a value that is known in the scope of some depth; None if it is not."""
        found = self.known.get(key)
        return found[1] if found is not None and found[0] <= depth else None

    def once(self, key: Any, depth: int, compute: Callable[[], Any]) -> Any:
        """Return a value computed in the scope of some depth, or known there."""
        found = self.find(key, depth)
        if found is not None:
            return found
        value = self._computed_at(depth, compute)
        self.known[key] = depth, value
        self.open[depth].known.append(key)  # as long as that is open, the value is known
        return value

    def leave(self) -> Scope:
        """Close the innermost scope; values known only in it are forgotten."""
        scope = self.open.pop()
        for key in scope.known:
            if self.known.get(key, (0,))[0] == len(self.open):
                del self.known[key]
        return scope

    def shared(self, form: Any, expression: Any, prepared: Callable[[Any], Callable[[], Any]]) -> Any:
        """Return a form of an expression: computed in the outermost scope possible, or known there."""
        variables, arrays = self.facts(expression)
        depth = self.depth(variables, arrays)
        masked = self.mask_key if arrays and self.lane in variables else None
        if masked is not None:
            depth = max(depth, self.innermost)
        key = (form, self.key_of(variables, arrays), masked)
        found = self.find(key, depth)
        return self.once(key, depth, prepared(expression)) if found is None else found

    def alike(self, *values: Any) -> list[Any]:
        """Return all values in every lane, if one of them differs between lanes."""
        vectors = any(isinstance(value.type, ir.VectorType) for value in values)
        return [self.vector(value) for value in values] if vectors else list(values)

    def vector(self, value: Any) -> Any:
        """Return a value in every lane."""
        if isinstance(value.type, ir.VectorType):
            return value
        assert self.lane is not None
        key = id(self.builder.block), id(value), self.lane.extent
        known = self._vectors.get(key)
        if known is None or known[0] is not value:
            known = self._vectors[key] = value, broadcast(self.builder, value, self.lane.extent)
        return known[1]

    def varies_by_lane(self, index: Index) -> bool:
        """Return whether an index differs between lanes."""
        return self.lane is not None and index.depends_on(self.lane)

    def step(self, index: Index) -> int | None:
        """Return by how much an index grows from lane to lane; None if by different amounts."""
        if self.lane is None:
            return 0
        for atom, _ in index.terms:
            if not isinstance(atom, Variable) and self.varies_by_lane(Index(((atom, 1),))):
                return None
        return index.coefficient(self.lane)

    def depth_of_atom(self, atom: Atom) -> int:
        """Return the outermost scope in which an atom is known."""
        if isinstance(atom, Variable):
            return 0 if atom in self.constants else self.depths.get(atom, 0)
        return self.depth_of(Index(((atom, 1),)))

    def depth_of(self, index: Index) -> int:
        """Return the outermost scope in which an index is known; one that is data is not looked up before a guard."""
        if not index.is_data:
            return self.depth(index.variables)
        if self.mask_key is not None and self.lane in index.variables:
            return self.innermost
        return self.within_guards(self.depth(index.variables, self.arrays(index)))

    def within_guards(self, depth: int) -> int:
        """Return the outermost scope from one on that no guard is inside of."""
        return max(depth, next((at for at in range(self.innermost, depth, -1) if self.open[at].is_guard), 0))

    def arrays(self, index: Index) -> frozenset[int | Local]:
        """Return the arrays that an index is read from."""
        found: frozenset[int | Local] = frozenset()
        for atom, _ in index.terms:
            if not isinstance(atom, Variable):
                found |= self.facts(atom.value)[1] if isinstance(atom, Looked) else self.arrays(atom.index)
        return found

    def without_lane(self, index: Index) -> Index:
        """Return an index without its growth from lane to lane."""
        return Index(tuple(term for term in index.terms if term[0] != self.lane), index.constant)

    def known_from(self, bounds: Sequence[Bound]) -> tuple[int, Any]:
        """Return the outermost scope in which conditions are known, and a key that sets them apart elsewhere."""
        indices = [index for _, index, _ in bounds]
        variables = frozenset[Variable]().union(*(index.variables for index in indices))
        arrays = frozenset[int | Local]().union(*map(self.arrays, indices))
        masked = self.mask_key if any(index.is_data for index in indices) else None
        return max(map(self.depth_of, indices), default=0), (self.key_of(variables, arrays), masked)
