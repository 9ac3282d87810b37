"""Functions for which some machines have an instruction that does more than a step of the portable formula.

The results are the same to the bit; `FUNCTIONS` of the package still runs everywhere.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from .exponential import exp, exponential_and_exponent
from .values import Value

_SCALEF = (128, 256, 512)  # bits of the vectors that AVX-512 (with VL) has it for


def exp_avx512(x: Value) -> Value:
    """Return e**x by ``scalef``, which multiplies by a power of two and rounds once, whatever the result's size."""
    kind = x.ir.type
    if not isinstance(kind, ir.VectorType) or kind.count * x.format.width not in _SCALEF:
        return exp(x)
    power, _, k = exponential_and_exponent(x)
    bits = kind.count * x.format.width
    lanes = ir.IntType(max(8, kind.count))
    arguments = [power.ir, k.ir, power.ir, ir.Constant(lanes, (1 << lanes.width) - 1)]
    if bits == 512:
        arguments.append(ir.Constant(ir.IntType(32), 4))  # rounding as usual
    name = f"llvm.x86.avx512.mask.scalef.p{x.format.code[0].replace('f', 's')}.{bits}"
    module = x.builder.module
    types = [argument.type for argument in arguments]
    function = module.globals.get(name) or ir.Function(module, ir.FunctionType(kind, types), name)
    return Value(x.builder, x.builder.call(function, arguments))


# A feature of LLVM's list, and the functions in place of the portable formulas where the target has it.
BY_FEATURE: dict[str, dict[str, Callable[..., Value]]] = {"avx512vl": {"exp": exp_avx512}}
