"""Groups of k: the products of small integers that a target adds to a 32-bit lane by one instruction.

- `vpdpbusd` (AVX-512 VNNI, AVX-VNNI) adds four products of an unsigned and a signed byte. It takes uint8 with int8, on
  either side.
- `vpmaddwd` (SSE2, AVX2, AVX-512) makes two products of 16-bit integers and adds them, and an addition follows; with
  VNNI both are one instruction, `vpdpwssd`. Operands of 8 bits are widened as they are packed.

Both are exact: sums are modulo 2**32, as eager mode's are.

- `vpmaddubsw` (SSSE3, AVX2, AVX-512) adds two products of an unsigned and a signed byte, in 16 bits. It saturates
  there, so it is used where ranges show that no sum does: of unsigned numbers up to 127 with all signed ones, or of all
  unsigned ones with those from -64 to 63. `vpmaddwd` by ones and an addition follow.

AVX2 takes 4 instructions for 32 products by `vpmaddwd` and `vpaddd`, of operands that are widened, and 3 by
`vpmaddubsw`, of operands that are not. With all 8 bits on both sides it would be 5: a product of the upper 7 bits, one
of the last, and an addition in 16 bits; or 4, with the sign of one operand moved to the other (`vpsignb`), of which 3
are for the two ports that multiply. So nothing is gained there. A multiply-add of floats makes 8 products. On one core
of a Xeon (AVX2 in registers, a multiply-add and an addition each one operation): 118 GFLOP/s of floats, 167 billion
operations a second by `vpmaddwd`, 217 by `vpmaddubsw`; and 222 and 814 of floats and by `vpdpbusd` in 512 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ....dtypes import DType, int8, int16, int32, uint8
from ....passes.intervals import Range, of_type
from ...loop_ir.expressions import ALWAYS, Apply, Expression, Load
from ...loop_ir.index import Variable
from ...loop_ir.loops import Bounds
from ...loop_ir.narrowing import narrowed
from ...target import Target
from ..analysis.ranges import value_range
from .gemm import Contraction, Operand, operand

# The types of both factors, for each size of a group.
KINDS: dict[int, tuple[tuple[DType, DType], ...]] = {4: ((uint8, int8), (int8, uint8)), 2: ((int16, int16),)}
PAIRS = {16: "avx512bw", 8: "avx2", 4: "ssse3"}  # the feature that has `vpmaddubsw`, by 32-bit lanes of a vector
LARGEST = 4  # terms of a group
FEWEST_LANES = 4  # 32-bit ones, of the shortest vectors with instructions


@dataclass(frozen=True)
class Groups:
    """The groups in which the terms of a sum are taken.

    Attributes:
        size: terms of a group.
        left, right: the types that the operands are packed in; a group of them takes four bytes.
        pairs: whether two products at a time are added up in 16 bits first.
    """

    size: int
    left: DType
    right: DType
    pairs: bool = False

    @property
    def registers(self) -> int:
        """Vector registers that are neither operands nor sums: ones, and two sums of pairs on their way."""
        return 3 if self.pairs else 0


def grouped(product: Contraction, target: Target, lanes: int) -> Groups | None:
    """Return how a target groups a product's terms, on vectors of `lanes` sums; None if one at a time."""
    factors = product.left.value, product.right.value
    size = group_size(product.total.value.dtype, *factors, target, lanes)
    if size < 2 or product.depth <= size:
        return None
    if size == 2 and product.depth > LARGEST:
        kinds = paired(*factors, dict(product.bounds), target, lanes)
        if kinds is not None:
            return Groups(LARGEST, *kinds, pairs=True)
    return next(Groups(size, *kinds) for kinds in KINDS[size] if _fit(factors, kinds))


def paired(
    left: Expression, right: Expression, bounds: Mapping[int, Bounds], target: Target, lanes: int
) -> tuple[DType, DType] | None:
    """Return the factor types of which a target adds two products in 16 bits; None if it has none or they may not fit.

    Args:
        left, right: the factors.
        bounds: the least and the largest number of arguments, where they are known.
        target: the machine.
        lanes: 32-bit ones of a vector.
    """
    if PAIRS.get(lanes) not in target.required:
        return None
    kinds = next((each for each in KINDS[LARGEST] if _fit((left, right), each)), None)
    if kinds is None:
        return None
    ends = (value_range(factor, lambda part: of_load(part, bounds)) for factor in (left, right))
    return kinds if two_fit(*ends) else None


def of_load(part: Expression, bounds: Mapping[int, Bounds]) -> Range | None:
    """Return the known range of an element of an argument."""
    known = bounds.get(part.buffer) if isinstance(part, Load) else None
    return None if known is None else Range(*known)


def two_fit(a: Range, b: Range) -> bool:
    """Return whether the sum of two products of numbers in these ranges is one of 16 bits."""
    ends = [2 * one * other for one in (a.low, a.high) for other in (b.low, b.high)]
    return Range(min(ends), max(ends)).fits(of_type(int16))


def group_size(dtype: DType, left: Expression, right: Expression, target: Target, lanes: int) -> int:
    """Return how many products one instruction of a target adds to each of `lanes` lanes; 1 without one."""
    if dtype is not int32 or lanes < FEWEST_LANES or "sse2" not in target.required:
        return 1
    if 4 * lanes == 64 and "avx512bw" not in target.required:
        return 1
    has_vnni = target.avx512_vnni or (target.avx_vnni and 4 * lanes <= 32)
    sizes = (4, 2) if has_vnni else (2,)
    return next((size for size in sizes if any(_fit((left, right), kinds) for kinds in KINDS[size])), 1)


def whole_groups(product: Contraction) -> Contraction:
    """Reorder k so that groups do not straddle, if its own order does not do so and such an order exists.

    A convolution sums over channels, and over places in a filter within them. With the channels innermost, if a
    multiple of a group of them, the numbers of a group are of one place, and so all of them exist or none does.
    """
    if product.total.value.dtype is not int32 or len(product.ks) < 2:
        return product
    *_, last = product.ks
    decides = {each for part in product.right.value.all_parts for each in getattr(part, "inside", ALWAYS).variables}
    whole = [each for each in product.ks if each.extent % LARGEST == 0 and each not in decides]
    if last in whole or not whole:
        return product
    ks = (*(each for each in product.ks if each != whole[0]), whole[0])
    left, right = product.total.value.parts()
    if left.variables & {*product.lanes}:
        left, right = right, left
    operands = (
        replace(operand(left, product.rows, ks), constant=product.left.constant),
        replace(operand(right, product.lanes, ks), constant=product.right.constant),
    )
    return replace(product, ks=ks, left=operands[0], right=operands[1])


def in_place(factor: Operand, dtype: DType, groups: Groups) -> bool:
    """Return whether a factor lies in memory in groups of k, in that type, so that numbers can be read in place."""
    value = narrowed(factor.value, dtype)
    if not isinstance(value, Load) or value.inside != ALWAYS or len(factor.across) > 1 or len(factor.ks) != 1:
        return False
    is_affine = all(isinstance(atom, Variable) for atom, _ in value.index.terms)
    return is_affine and value.index.coefficient(factor.ks[0]) == 1 and factor.ks[0].extent % groups.size == 0


def is_along(factor: Expression, k: Variable) -> bool:
    """Return whether a factor is a number in memory, cast or not, and the next along k its neighbour."""
    element = factor.arguments[0] if isinstance(factor, Apply) and factor.primitive == "cast" else factor
    if not isinstance(element, Load) or element.inside != ALWAYS or not element.index.is_affine:
        return False
    return element.index.coefficient(k) == 1


def _fit(values: tuple[Expression, ...], kinds: tuple[DType, ...]) -> bool:
    return all(narrowed(value, kind) is not None for value, kind in zip(values, kinds, strict=True))
