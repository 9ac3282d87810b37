"""The compiler's mathematics: each function, over its whole range, against a more precise one."""

from __future__ import annotations

import ctypes
import math
import re
from functools import cache

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

from minitorch.compiler.mathematics import FORMULAS, FUNCTIONS, INSTRUCTIONS
from minitorch.primitives.erf import erf

# The largest error in units in the last place, for float32 and float64. 0.5 is what rounding alone makes.
ULPS = {
    "exp": (1.1, 1.1),
    "expm1": (2.0, 2.0),
    "log": (1.0, 1.0),
    "log1p": (1.5, 1.5),
    "sin": (1.5, 1.5),
    "cos": (1.5, 1.5),
    "tanh": (2.5, 2.5),
    "erf": (2.0, 2.0),
    "pow": (1.1, 1.1),
    "atan2": (2.0, 2.0),
}
BINARY = {"pow", "atan2", "maximum"}
TYPES = {np.float32: ir.FloatType(), np.float64: ir.DoubleType()}
LANES = {np.float32: 8, np.float64: 4}
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e300, math.inf, -math.inf, math.nan)


# A loop over arrays, compiled for the host. -----------------------------------------------------------------


def build(name: str, dtype: type, lanes: int) -> ir.Module:
    """A function `run(output, a[, b], vectors)`, which calls `name` on each vector of `lanes`, or each scalar."""
    kind = ir.VectorType(TYPES[dtype], lanes) if lanes > 1 else TYPES[dtype]
    count = ir.IntType(64)
    pointers = [kind.as_pointer()] * (3 if name in BINARY else 2)
    module = ir.Module(name)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [*pointers, count]), "run")
    start, loop, done = (function.append_basic_block(label) for label in ("start", "loop", "done"))
    ir.IRBuilder(start).branch(loop)
    builder = ir.IRBuilder(loop)
    index = builder.phi(count)
    output, *inputs = function.args[:-1]
    operands = [builder.load(builder.gep(pointer, [index]), align=4) for pointer in inputs]
    builder.store(FUNCTIONS[name](builder, *operands), builder.gep(output, [index]), align=4)
    following = builder.add(index, count(1))
    index.add_incoming(count(0), start)
    index.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("<", following, function.args[-1]), loop, done)
    ir.IRBuilder(done).ret_void()
    return module


@cache
def engine(name: str, dtype: type, lanes: int) -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(str(build(name, dtype, lanes)))
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1, jit=True
    )
    compiled = llvm.create_mcjit_compiler(module, machine)
    compiled.finalize_object()
    return compiled


def compute(name: str, *operands: np.ndarray, lanes: int | None = None) -> np.ndarray:
    dtype = operands[0].dtype.type
    lanes = LANES[dtype] if lanes is None else lanes
    size = len(operands[0])
    padded = [np.resize(operand, -(-size // lanes) * lanes) for operand in operands]
    output = np.empty_like(padded[0])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(operands) + 1), ctypes.c_int64)(
        engine(name, dtype, lanes).get_function_address("run")
    )
    run(output.ctypes.data, *(operand.ctypes.data for operand in padded), len(output) // lanes)
    return output[:size]


# What is right. ---------------------------------------------------------------------------------------------

NUMPY = {"pow": np.power, "atan2": np.arctan2, "abs": np.abs}


def exact(name: str, *operands: np.ndarray) -> np.ndarray:
    """The result in a type with more digits; `long double` is one on some machines."""
    wide = np.float64 if operands[0].dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        if name == "erf":
            return erf(operands[0].astype(np.float64)).astype(wide)
        function = NUMPY.get(name) or getattr(np, name)
        return function(*(operand.astype(wide) for operand in operands))


def errors(result: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The distance in units in the last place; 0 for equal infinities and NaNs, inf for a wrong one."""
    dtype = result.dtype.type
    with np.errstate(all="ignore"):
        rounded = expected.astype(dtype)
        unit = np.spacing(np.minimum(np.abs(rounded), np.finfo(dtype).max))
        distance = np.abs(result.astype(expected.dtype) - expected) / unit
    distance = np.where(np.isfinite(rounded) & np.isfinite(result), distance, np.inf)
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    return np.where(same & ~np.isfinite(rounded), 0, distance)


def slack(name: str, dtype: type) -> float:
    """What the reference itself may be wrong, where it has no more digits than the result."""
    short = dtype is np.float64 and (name == "erf" or np.finfo(np.longdouble).nmant == np.finfo(np.float64).nmant)
    return 1.0 if short else 0.0


def bits(dtype: type, count: int, generator: np.random.Generator) -> np.ndarray:
    """Random patterns of bits: all exponents alike, both signs, a few infinities and NaNs."""
    return generator.integers(0, 256, count * np.dtype(dtype).itemsize, dtype=np.uint8).view(dtype)


def sample(name: str, dtype: type, count: int) -> tuple[np.ndarray, ...]:
    """Numbers of all sizes, many where the function changes, and the neighbours of some special ones."""
    generator = np.random.default_rng(0)
    special = np.array(SPECIAL).astype(dtype) if dtype is np.float64 else np.float32(np.clip(SPECIAL, -1e30, 1e30))
    limits = np.finfo(dtype)
    special = np.concatenate([special, [limits.max, limits.tiny, limits.smallest_subnormal, np.pi, np.pi / 2]])
    special = np.concatenate([special, np.nextafter(special, dtype(0)), np.nextafter(special, dtype(9))]).astype(dtype)
    special = np.concatenate([special, -special])
    if name in BINARY:
        pairs = [np.repeat(special, len(special)), np.tile(special, len(special))]
        ranges = (0.1, 2.0, 30.0)
        for row, other in enumerate((bits, bits)):
            parts = [pairs[row], other(dtype, count, generator)]
            for scale in ranges:
                parts.append((generator.normal(size=count) * scale).astype(dtype))
            pairs[row] = np.concatenate(parts)
        near_one = np.abs(1 + generator.normal(size=count) * 1e-3)
        exponent = generator.normal(size=count) * (3e4 if dtype is np.float32 else 2e5)
        return np.append(pairs[0], near_one.astype(dtype)), np.append(pairs[1], exponent.astype(dtype))
    ranges = (0.1, 0.7, 3.0, 30.0, 200.0, 1000.0, 1e5)
    around = [(generator.normal(size=count) * scale).astype(dtype) for scale in ranges]
    around += [np.abs(1 + generator.normal(size=count) * 1e-2).astype(dtype)]
    around += [(np.arange(-count // 2, count // 2) * (np.pi / 2)).astype(dtype)]
    return (np.concatenate([special, bits(dtype, count, generator), *around]),)
