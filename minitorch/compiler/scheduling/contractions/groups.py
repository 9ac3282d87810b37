"""Groups of k: the products of small integers that a target adds to a 32-bit lane by one instruction.

- `vpdpbusd` (AVX-512 VNNI, AVX-VNNI) adds four products of an unsigned and a signed byte. It takes uint8 with int8, on
  either side.
- `vpmaddwd` (SSE2, AVX2, AVX-512) makes two products of 16-bit integers and adds them, and an addition follows; with
  VNNI both are one instruction, `vpdpwssd`. Operands of 8 bits are widened as they are packed.

Both are exact: sums are modulo 2**32, as eager mode's are. `vpmaddubsw` is no alternative, since its sums of two
products of bytes saturate at 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....dtypes import DType, int8, int16, int32, uint8
from ...loop_ir.expressions import ALWAYS, Expression, Load
from ...loop_ir.index import Variable
from ...loop_ir.narrowing import narrowed
from ...target import Target
from .gemm import Contraction, Operand

FEWEST_LANES = 4  # 32-bit ones, of the shortest vectors that there are instructions for


@dataclass(frozen=True)
class Groups:
    """How the terms of a sum are taken together.

    Attributes:
        size: terms of a group.
        left, right: the types that the operands are packed in; a group of them takes four bytes.
    """

    size: int
    left: DType
    right: DType


def grouped(product: Contraction, target: Target, lanes: int) -> Groups | None:
    """How a target takes the terms of a product together, on vectors of so many sums; None if one at a time."""
    if product.total.value.dtype is not int32 or lanes < FEWEST_LANES or "sse2" not in target.required:
        return None
    if 4 * lanes == 64 and "avx512bw" not in target.required:
        return None
    left, right = product.left.value, product.right.value
    if target.avx512_vnni or (target.avx_vnni and 4 * lanes <= 32):
        for kinds in ((uint8, int8), (int8, uint8)):
            if product.depth > 4 and _fit((left, right), kinds):
                return Groups(4, *kinds)
    return Groups(2, int16, int16) if product.depth > 2 and _fit((left, right), (int16, int16)) else None


def in_place(operand: Operand, dtype: DType, groups: Groups) -> bool:
    """Whether an operand lies in memory in groups of k, in that type, so that numbers can be read where they are."""
    value = narrowed(operand.value, dtype)
    if not isinstance(value, Load) or value.inside != ALWAYS or len(operand.across) > 1 or len(operand.ks) != 1:
        return False
    is_affine = all(isinstance(atom, Variable) for atom, _ in value.index.terms)
    return is_affine and value.index.coefficient(operand.ks[0]) == 1 and operand.ks[0].extent % groups.size == 0


def _fit(values: tuple[Expression, ...], kinds: tuple[DType, ...]) -> bool:
    return all(narrowed(value, kind) is not None for value, kind in zip(values, kinds, strict=True))
