"""Groups: sums of several products, as one dot-product instruction.

The terms of such a sum read neighbours in memory, in both factors: numbers of one lane, or the same ones for all lanes.
As one 32-bit word per lane they are operands of `vpdpbusd`, `vpmaddwd` or `vpmaddubsw`. Whatever has another form is
computed term by term, with the same result, since integers add up exactly in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np
from llvmlite import ir

from ....dtypes import DType, int16
from ...loop_ir.expressions import ALWAYS, Apply, Expression, Inside, Load
from ...loop_ir.tree import Accumulate, Place, Read
from ..instructions import cast, dot_product
from ..vector_memory import broadcast, load_words
from .memory import Memory
from .scopes import Scopes

Element = Load | Read


class Groups:
    """Emits sums of products as instructions.

    Args:
        scopes: those that are open.
        memory: holds the elements.
    """

    def __init__(self, scopes: Scopes, memory: Memory) -> None:
        self.scopes, self.memory, self.builder = scopes, memory, scopes.builder

    def added(self, each: Accumulate, total: Any) -> Any:
        """A total with a sum of products added to it by one instruction; None if there is none for it."""
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

    def _neighbours(self, parts: list[Expression]) -> Element | None:
        """The first of some elements that lie beside each other, of one lane or the same for all; else None."""
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
        """Whether words from an element on are loaded under a mask by one instruction; none for all lanes alike."""
        features, is_word = self.scopes.target.required, size * element.dtype.itemsize == 4
        has_masks = "avx512bw" in features or (is_word and "avx2" in features)
        return has_masks and self.scopes.step(element.index) == size

    def _words(self, size: int, kind: DType) -> Callable[[Element], Callable[[], Any]]:
        """How to load the neighbours from an element on, in a type that holds them, as one word for each lane."""

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


def _holds(kinds: tuple[DType, DType], elements: tuple[Element, Element]) -> bool:
    """Whether types hold all numbers of others."""
    return all(np.can_cast(element.dtype.numpy, kind.numpy) for kind, element in zip(kinds, elements, strict=True))


def _array(element: Element) -> Any:
    return element.local if isinstance(element, Read) else element.buffer


def _inside(element: Element) -> Inside:
    return element.inside if isinstance(element, Load) else ALWAYS


def _products(value: Expression) -> tuple[list[tuple[Expression, Expression]], bool]:
    """The factors of all terms of a sum of products, in order, and whether pairs of them are added up in 16 bits.

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
    """The terms of a sum, in order."""
    terms: list[Expression] = []
    while _is(value, "add"):
        value, last = value.arguments
        terms.append(last)
    return [value, *reversed(terms)]
