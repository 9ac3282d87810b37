"""The instruction builder: llvmlite's, but for forms that LLVM's code generator fails on.

LLVM's assertions end the process, and the interpreter with it. So a form that is known to fail one is never emitted;
`tests/compiler/codegen/test_targets.py` looks for more of them, in separate processes.
"""

from __future__ import annotations

import struct
from typing import Any

from llvmlite import ir

from ..target import Target
from .mathematics.values import call_intrinsic

# The type of a float: an integer type of its size, and its code for `struct`.
_BITS = {ir.FloatType(): (ir.IntType(32), "<f"), ir.DoubleType(): (ir.IntType(64), "<d")}


def is_known_mask(value: Any) -> bool:
    """Return whether a value is a constant with a bit for each lane."""
    return type(value) is ir.Constant and isinstance(value.type, ir.VectorType) and value.type.element == ir.IntType(1)


class Builder(ir.IRBuilder):  # type: ignore[misc]  # llvmlite has no types
    """A builder of instructions for a target.

    Args:
        block: the basic block that they are added to.
        target: decides which instructions exist.
    """

    def __init__(self, block: Any, target: Target) -> None:
        super().__init__(block)
        self.target = target

    def select(self, cond: Any, lhs: Any, rhs: Any, name: str = "", flags: Any = ()) -> Any:
        """Select one of two values.

        LLVM 22 for x86 loads one of two float constants from a table of both. If the condition turns out never to hold
        and the number is broadcast, it takes the table for the number (`getTargetConstantBitsFromNode`). Integers of
        the same bits are selected in registers.
        """
        constants = type(lhs) is ir.Constant and type(rhs) is ir.Constant
        if not constants or lhs.type not in _BITS:
            return super().select(cond, lhs, rhs, name, flags)
        kind, code = _BITS[lhs.type]
        bits = [ir.Constant(kind, int.from_bytes(struct.pack(code, each.constant), "little")) for each in (lhs, rhs)]
        return self.bitcast(super().select(cond, *bits, name, flags), lhs.type)

    def and_(self, lhs: Any, rhs: Any, name: str = "", flags: Any = ()) -> Any:
        """Return the bits that both have; of two known masks, a known mask."""
        if is_known_mask(lhs) and is_known_mask(rhs):
            both = zip(lhs.constant, rhs.constant, strict=True)
            return ir.Constant(lhs.type, [a.constant & b.constant for a, b in both])
        return super().and_(lhs, rhs, name, flags)

    def fdiv(self, lhs: Any, rhs: Any, name: str = "", flags: Any = ()) -> Any:
        """Divide. LLVM 22 takes 0 / 0 for 0; see `_hidden`."""
        return super().fdiv(*self._hidden(lhs, rhs), name, flags)

    def frem(self, lhs: Any, rhs: Any, name: str = "", flags: Any = ()) -> Any:
        """Return the remainder of a quotient. LLVM 22 takes that of 0 / 0 for 0; see `_hidden`."""
        return super().frem(*self._hidden(lhs, rhs), name, flags)

    def _hidden(self, lhs: Any, rhs: Any) -> tuple[Any, Any]:
        """Hide from LLVM in which lanes two vectors are both zero.

        `SimplifyDemandedVectorElts` takes a quotient for zero in the lanes in which both operands are, and leaves out
        the selection that makes such lanes zero: NaN takes its place. Behind `llvm.arithmetic.fence`, which is no
        instruction of the machine, it knows of no zeros.
        """
        if not isinstance(lhs.type, ir.VectorType):
            return lhs, rhs
        if isinstance(lhs, ir.Constant):
            return lhs, call_intrinsic(self, "arithmetic.fence", rhs)
        return call_intrinsic(self, "arithmetic.fence", lhs), rhs
