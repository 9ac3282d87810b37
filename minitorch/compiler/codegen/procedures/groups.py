"""Groups: sums of several products, as one dot-product instruction.

The terms of such a sum read neighbours in memory, in both factors: numbers of one lane, or the same ones for all lanes.
As one 32-bit word per lane they are operands of `vpdpbusd`, `vpmaddwd` or `vpmaddubsw`. Whatever has another form is
computed term by term, with the same result, since integers add up exactly in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeGuard

import numpy as np
from llvmlite import ir

from ....dtypes import DType, int8, int16, uint8
from ...loop_ir.expressions import ALWAYS, Apply, Expression, Inside, Load, Number
from ...loop_ir.tree import Accumulate, Place, Read
from ...target import MOST_STEP
from ..builder import is_known_mask
from ..instructions import BIT, cast, dot_product
from ..vector_memory import broadcast, integer, integers, load_words, shuffled
from .memory import Memory
from .scopes import Scopes

Element = Load | Read


class Groups:
    """Emitter of sums of products as dot-product instructions.

    Args:
        scopes: the open ones.
        memory: holds the elements.
    """

    def __init__(self, scopes: Scopes, memory: Memory) -> None:
        self.scopes, self.memory, self.builder = scopes, memory, scopes.builder

    def added(self, each: Accumulate, total: Any) -> Any:
        """Return a total plus a sum of products by one instruction; None if no instruction does this."""
        products, in_pairs = _products(each.value)
        if each.reduction != "reduce_sum" or len(products) < 2 or self.scopes.lane is None:
            return None
        factors = [self._neighbours([product[side] for product in products]) for side in (0, 1)]
        left, right = factors
        if left is None or right is None:
            return None
        size, lanes = len(products), self.scopes.lane.extent
        for kinds in ((left.dtype, right.dtype), (int16, int16)):
            holds = _holds(kinds, (left, right))
            instruction = dot_product(self.builder, size, kinds, lanes, in_pairs) if holds else None
            if instruction is not None:
                words = [
                    self.scopes.shared(("group", size, kind, one), one, self._words(size, kind))
                    for kind, one in zip(kinds, (left, right), strict=True)
                ]
                return instruction(total, *words)
        return None

    def windows(self, value: Expression) -> Callable[[], Any] | None:
        """Return how to compute an unrolled sum of products, of a filter's rows with neighbours in memory.

        Lane l reads the elements from ``step * l`` on, as many as the filter has in a row: a window of what lanes next
        to each other read once. It is shuffled into one word for each lane. None without an instruction, or if some
        term is not in such a row.
        """
        lane, mask = self.scopes.lane, self.scopes.mask
        if lane is None or not (mask is None or is_known_mask(mask)):
            return None
        start, *terms = _terms(value)
        if not isinstance(start, Number) or start.value or len(terms) < 2:
            return None
        products = [self._by_step(term) for term in terms]
        if any(each is None for each in products):
            return None
        for size in (4, 2):
            rows = _rows([each for each in products if each is not None], size)
            (first, *_), *_ = rows
            kinds = (int16, int16) if size == 2 else (first[0].dtype, first[1].dtype)
            instruction = dot_product(self.builder, size, kinds, lane.extent)
            if instruction is not None and len(rows) < len(terms):
                words = [
                    [self._window(one, size, len(row), kind) for kind, one in zip(kinds, row[0], strict=True)]
                    for row in rows
                ]
                zeros = ir.Constant(ir.VectorType(ir.IntType(32), lane.extent), None)
                return lambda: reduce(lambda total, row: instruction(total, *row), words, zeros)
        return None

    def _by_step(self, term: Expression) -> tuple[Element, Element] | None:
        """Return the factors of a product of bytes, one of which is the same in all lanes; None of another term."""
        parts = [part.arguments[0] if _is(part, "cast") else part for part in term.parts() if _is(term, "mul")]
        elements = [part for part in parts if isinstance(part, Load) or (isinstance(part, Read) and _is_stored(part))]
        if len(elements) != 2 or any(one.dtype not in (int8, uint8) or _inside(one).bounds for one in elements):
            return None
        steps = [self.scopes.step(one.index) for one in elements]
        if steps.count(0) != 1 or any(step is None or not 0 <= step <= MOST_STEP for step in steps):
            return None
        return elements[0], elements[1]

    def _window(self, first: Element, size: int, count: int, kind: DType) -> Any:
        """Return how to load a word for each lane, of `size` neighbours from an element on; others count for nothing.

        Where the element is the same in all lanes, it is zero; else it may be anything.
        """

        def prepared(element: Element) -> Callable[[], Any]:
            builder, lane, target = self.builder, self.scopes.lane, self.scopes.target
            assert lane is not None
            own, step = element.dtype, self.scopes.step(element.index)
            mask = self.scopes.mask if step else None
            used = [each for each in range(lane.extent if step else 1) if mask is None or mask.constant[each]]
            length = (step or 0) * (used[-1] - used[0]) + count
            order = [number if number < count else length for number in range(size)]
            if step:
                starts = [step * (each - used[0]) if each in used else 0 for each in range(lane.extent)]
                order = [start + min(number, count - 1) for start in starts for number in range(size)]
            whole, there = 1 << (length - 1).bit_length(), None
            if "avx512bw" in target.required and length < whole <= target.vector_bytes:
                there = integers(BIT, tuple(each < length for each in range(whole)))
            stored = ir.VectorType(ir.IntType(8), length if there is None else whole)
            word = ir.IntType(8 * size * kind.itemsize)
            address = self.memory.address(_array(element), element.index)

            def read() -> Any:
                place = builder.gep(address, [integer((step or 0) * used[0])], source_etype=ir.IntType(8))
                found = cast(builder, load_words(builder, place, stored, there, 1), own, kind)
                found = shuffled(builder, found, ir.Constant(found.type, None), order)
                if step:
                    return builder.bitcast(found, ir.VectorType(word, lane.extent))
                return broadcast(builder, builder.bitcast(found, word), lane.extent)

            return read

        return self.scopes.shared(("window", size, count, kind, first), first, prepared)

    def _neighbours(self, parts: list[Expression]) -> Element | None:
        """Return the first of some elements beside each other, of one lane or the same for all; else None."""
        elements = [part.arguments[0] for part in parts if isinstance(part, Apply) and part.primitive == "cast"]
        first = elements[0] if elements else None
        if len(elements) < len(parts) or not isinstance(first, (Load, Read)):
            return None
        for number, one in enumerate(elements):
            if not isinstance(one, (Load, Read)) or _array(one) != _array(first):
                return None
            if one.index != first.index + number or _inside(one) != _inside(first):
                return None
        if any(self.scopes.varies_by_lane(index) for _, index, _ in _inside(first).bounds):
            return None
        if isinstance(first, Read) and first.local.place is Place.REGISTERS:
            return None
        if self.scopes.mask is not None and not self._loads_masked(first, len(parts)):
            return None
        return first if self.scopes.step(first.index) in (0, len(parts)) else None

    def _loads_masked(self, element: Element, size: int) -> bool:
        """Return whether one masked instruction loads words from an element on; not if all lanes are alike."""
        features, is_word = self.scopes.target.required, size * element.dtype.itemsize == 4
        has_masks = "avx512bw" in features or (is_word and "avx2" in features)
        return has_masks and self.scopes.step(element.index) == size

    def _words(self, size: int, kind: DType) -> Callable[[Element], Callable[[], Any]]:
        """Return how to load the neighbours from an element on, in a type that holds them, as one word per lane."""

        def prepared(element: Element) -> Callable[[], Any]:
            address = self.memory.address(_array(element), element.index, _inside(element))
            own, lanes = element.dtype, self.scopes.lane.extent if self.scopes.lane is not None else 1
            is_same = not self.scopes.step(element.index)
            count, mask = (1, None) if is_same else (lanes, self.scopes.mask)
            stored = ir.VectorType(ir.IntType(8 * size * own.itemsize), count)
            numbers = ir.VectorType(ir.IntType(8 * own.itemsize), size * count)
            words = ir.VectorType(ir.IntType(8 * size * kind.itemsize), count)

            def read() -> Any:
                found = load_words(self.builder, address, stored, mask, own.itemsize)
                found = cast(self.builder, self.builder.bitcast(found, numbers), own, kind)
                found = self.builder.bitcast(found, words.element if is_same else words)
                return broadcast(self.builder, found, lanes) if is_same else found

            return read

        return prepared


def _rows(products: list[tuple[Element, Element]], size: int) -> list[list[tuple[Element, Element]]]:
    """Return rows of up to `size` products whose factors both lie beside those of the product before."""
    rows: list[list[tuple[Element, Element]]] = []
    for product in products:
        last = rows[-1][-1] if rows and len(rows[-1]) < size else None
        if last is not None and all(
            _array(one) == _array(before) and one.index == before.index + 1
            for one, before in zip(product, last, strict=True)
        ):
            rows[-1].append(product)
        else:
            rows.append([product])
    return rows


def _is_stored(element: Read) -> bool:
    return element.local.place is not Place.REGISTERS


def _holds(kinds: tuple[DType, DType], elements: tuple[Element, Element]) -> bool:
    """Return whether types hold all numbers of others."""
    return all(np.can_cast(element.dtype.numpy, kind.numpy) for kind, element in zip(kinds, elements, strict=True))


def _array(element: Element) -> Any:
    return element.local if isinstance(element, Read) else element.buffer


def _inside(element: Element) -> Inside:
    return element.inside if isinstance(element, Load) else ALWAYS


def _products(value: Expression) -> tuple[list[tuple[Expression, Expression]], bool]:
    """Return the factors of all terms of a sum of products, in order, and whether pairs are added up in 16 bits.

    Nothing if it is something else.
    """
    terms = _terms(value)
    pairs = [_terms(term.arguments[0]) for term in terms if _is(term, "cast")]
    in_pairs = len(pairs) == len(terms) and all(len(pair) == 2 and pair[0].dtype is int16 for pair in pairs)
    if in_pairs:
        terms = [product for pair in pairs for product in pair]
    found = [term.arguments for term in terms if _is(term, "mul")]
    return [(a, b) for a, b in found] if len(found) == len(terms) else [], in_pairs


def _is(value: Expression, name: str) -> TypeGuard[Apply]:
    return isinstance(value, Apply) and value.primitive == name


def _terms(value: Expression) -> list[Expression]:
    """Return the terms of a sum, in order."""
    terms: list[Expression] = []
    while _is(value, "add"):
        value, last = value.arguments
        terms.append(last)
    return [value, *reversed(terms)]
