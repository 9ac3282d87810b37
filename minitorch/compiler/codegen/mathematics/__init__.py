"""The functions of mathematics as LLVM instructions, for the types float and double and vectors of them.

`FUNCTIONS` maps the name of a primitive to a function that emits it. Those that LLVM has an instruction for call it;
the others are polynomials in branch-free arithmetic, so that they run in every lane of a vector register. They are
within `Primitive.ulp`, at most 3 units in the last place, of the exact result, over all numbers, with the NaN,
infinities, signed zeros and gradual underflow of C and NumPy. For sin and cos of numbers beyond 2**46, whose remainder
by pi takes more than a double (see `trigonometry`), the C library is called.

float16 and bfloat16 are computed in float32 by the emitter of the loop; nothing here knows loops or kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from llvmlite import ir

from ....packages import load
from .values import Value, call_intrinsic, splat

# Beyond this, the remainder by pi takes more than a double.
LIMIT = 2.0**46
Emit = Callable[..., Any]  # (builder, *operands) -> value, all of llvmlite, operands and value of one type


def _formula(place: str) -> Emit:
    """Return the emitter of a formula, a function ``module:name`` of this folder, which is loaded when it is used."""
    module, _, name = place.partition(":")

    def emit(builder: Any, *operands: Any) -> Any:
        function = getattr(load(f"{__name__}.{module}"), name)
        return function(*(Value(builder, operand) for operand in operands)).ir

    return emit


def _with_library(name: str) -> Emit:
    """Complete a formula that does not hold for all numbers: call the C library if a lane has others."""
    formula = _formula(FORMULAS[name])

    def emit(builder: Any, x: Any) -> Any:
        near = formula(builder, x)
        size = call_intrinsic(builder, "fabs", x)
        far = builder.fcmp_ordered(">", size, splat(x.type, LIMIT))
        is_any = far
        if isinstance(x.type, ir.VectorType):
            bits = builder.bitcast(far, ir.IntType(x.type.count))
            is_any = builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))
        before = builder.block
        with builder.if_then(is_any, likely=False):
            chosen = builder.select(far, call_intrinsic(builder, name, x), near)
            inside = builder.block
        result = builder.phi(x.type)
        result.add_incoming(near, before)
        result.add_incoming(chosen, inside)
        return result

    return emit


def _instruction(name: str) -> Emit:
    def emit(builder: Any, *operands: Any) -> Any:
        return call_intrinsic(builder, name, *operands)

    return emit


FORMULAS = {
    "exp": "exponential:exp",
    "expm1": "exponential:expm1",
    "log": "exponential:log",
    "log1p": "exponential:log1p",
    "pow": "exponential:power",
    "tanh": "exponential:tanh",
    "erf": "error_function:erf",
    "sin": "trigonometry:sin",
    "cos": "trigonometry:cos",
    "atan2": "trigonometry:atan2",
}
# A feature of LLVM's list, and formulas in place of the portable ones where the target has it; equal to the bit.
BY_FEATURE = {"avx512vl": {"exp": "exponential:exp_avx512"}}
# The primitive and LLVM's name for it.
INSTRUCTIONS = {"abs": "fabs", "sqrt": "sqrt", "floor": "floor", "trunc": "trunc", "maximum": "maximum"}

FUNCTIONS: dict[str, Emit] = {
    **{name: _formula(place) for name, place in FORMULAS.items()},
    "sin": _with_library("sin"),
    "cos": _with_library("cos"),
    **{name: _instruction(intrinsic) for name, intrinsic in INSTRUCTIONS.items()},
}


@lru_cache(16)
def functions_for(features: str) -> dict[str, Emit]:
    """Return the functions for a machine with these features, in LLVM's form ``"+avx2,-sse4a"``."""
    found = dict(FUNCTIONS)
    for feature, formulas in BY_FEATURE.items():
        if f"+{feature}" in features.split(","):
            found |= {name: _formula(place) for name, place in formulas.items()}
    return found
