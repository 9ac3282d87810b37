"""Indices as integers: one number, or one per lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ....dtypes import int64
from ...loop_ir.expressions import Expression
from ...loop_ir.index import Atom, Index, Looked, Quotient, Remainder, Variable
from ..instructions import I64, PRIMITIVES, cast
from ..mathematics.values import splat
from ..vector_memory import integer, integers
from .scopes import Scopes


class Indices:
    """Indices of elements.

    Args:
        scopes: the open ones.
        trouble: the address of the word in which an index out of range is noted.
        value: computes an expression; an index that is looked up is the value of one.
    """

    def __init__(self, scopes: Scopes, trouble: Any, value: Callable[[Expression], Any]) -> None:
        self.scopes, self.builder = scopes, scopes.builder
        self.trouble, self.value = trouble, value

    def index(self, index: Index) -> Any:
        """Return an index: a number, or one per lane."""
        variables = index.variables
        step = self.scopes.step(index)
        if step:  # the number of lane 0, and the distances of the others
            assert self.scopes.lane is not None
            first = self.index(self.scopes.without_lane(index))
            steps = integers(I64, tuple(step * n for n in range(self.scopes.lane.extent)))
            if isinstance(first, ir.Constant):
                return integers(I64, tuple(first.constant + step * n for n in range(self.scopes.lane.extent)))
            key = (index, "index", self.scopes.key_of(variables), self.scopes.mask_key if index.is_data else None)
            return self.scopes.once(
                key, self.scopes.depth_of(index), lambda: self.builder.add(self.scopes.vector(first), steps)
            )
        if not index.terms:
            return integer(index.constant)
        return self.scopes.once(
            (index, "index", self.scopes.key_of(variables), self.scopes.mask_key if index.is_data else None),
            self.scopes.depth_of(index),
            self.sum(index),
        )

    def sum(self, index: Index) -> Callable[[], Any]:
        terms = [(self._atom(atom), factor) for atom, factor in index.terms]

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
                    total, term = self.scopes.alike(total, term)
                total = term if total is None else builder.add(total, term)
            if total is None:
                return integer(known)
            return builder.add(total, splat(total.type, known)) if known else total

        return compute

    def _atom(self, atom: Atom) -> Any:
        """Return the value of an atom: a Python number if it is known."""
        if isinstance(atom, Variable):
            if atom in self.scopes.constants:
                return self.scopes.constants[atom]
            if atom == self.scopes.lane:
                return integers(I64, tuple(range(atom.extent)))
            return self.scopes.places[atom]
        if isinstance(atom, Looked):
            return self._looked(atom)
        below = self.index(atom.index)
        if isinstance(below, ir.Constant) and not isinstance(below.type, ir.VectorType):
            return atom.of(below.constant)
        variables = atom.index.variables
        return self.scopes.once(
            (atom, self.scopes.key_of(variables)), self.scopes.depth_of(atom.index), lambda: self._divided(atom, below)
        )

    def _divided(self, atom: Quotient | Remainder, below: Any) -> Any:
        divisor = splat(below.type, atom.divisor)
        if atom.index.bounds[0] >= 0:
            return (self.builder.udiv if isinstance(atom, Quotient) else self.builder.urem)(below, divisor)
        name = "floor_divide" if isinstance(atom, Quotient) else "remainder"
        return PRIMITIVES[name](self.builder, int64, below, divisor)

    def _looked(self, atom: Looked) -> Any:
        """Return an index from data: negative ones count from the end, and none leads outside."""
        value = self.value(atom.value)
        variables, arrays = self.scopes.facts(atom.value)
        masked = self.scopes.mask_key if self.scopes.lane in variables else None
        depth = self.scopes.innermost if masked is not None else self.scopes.depth(variables, arrays)
        key = (atom, self.scopes.key_of(variables, arrays), masked)
        return self.scopes.once(key, self.scopes.within_guards(depth), lambda: self._within_bounds(atom, value))

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
        """Record that an index was out of range, in the word after the last buffer."""
        if isinstance(outside.type, ir.VectorType):
            if self.scopes.mask is not None:
                outside = self.builder.and_(outside, self.scopes.mask)
            bits = self.builder.bitcast(outside, ir.IntType(outside.type.count))
            outside = self.builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))
        known = self.builder.load(self.trouble, typ=I64)
        self.builder.store(self.builder.or_(known, self.builder.zext(outside, I64)), self.trouble)
