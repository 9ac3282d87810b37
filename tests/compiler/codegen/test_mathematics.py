"""The compiler's mathematics: each function, over its whole range, against a more precise one."""

from __future__ import annotations

import ctypes
import math
import re
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

from minitorch.compiler.codegen import machine
from minitorch.compiler.codegen.host import host
from minitorch.compiler.codegen.mathematics import (
    FORMULAS,
    FUNCTIONS,
    INSTRUCTIONS,
    functions_for,
    half,
)
from minitorch.ir import PRIMITIVES
from minitorch.primitives.erf import erf
from tests.support.graphs import same_bits
from tests.support.units import bits, errors

BINARY = {"pow", "atan2", "maximum"}
HERE = {f"{name} here": function for name, function in functions_for(host().features).items()}
EMITTED = {**FUNCTIONS, **HERE}
TYPES: dict[type, Any] = {np.float32: ir.FloatType(), np.float64: ir.DoubleType()}
LANES = {np.float32: 8, np.float64: 4}
SPECIAL = (0.0, 0.5, 1.0, 2.0, 3.0, math.pi, math.pi / 2, math.inf, math.nan)
# Numbers near a multiple of pi/2: numerators of its continued fraction, and the nearest one of all float32.
NEAR_QUARTERS = (
    *(11, 355, 103993, 104348, 312689, 5419351, 165707065, 411557987, 6167950454, 21053343141),
    *(1783366216531, 5371151992734, 8958937768937, 16367173 * 2.0**72),
)


@pytest.fixture(autouse=True)
def _quiet():
    """NaN and overflow are meant."""
    with np.errstate(all="ignore"):
        yield


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
    builder.store(EMITTED[name](builder, *operands), builder.gep(output, [index]), align=4)
    following = builder.add(index, count(1))
    index.add_incoming(count(0), start)
    index.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_unsigned("<", following, function.args[-1]), loop, done)
    ir.IRBuilder(done).ret_void()
    return module


@cache
def engine(name: str, dtype: type, lanes: int, plain: bool) -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(str(build(name, dtype, lanes)))
    module.verify()
    host = {} if plain else {"cpu": llvm.get_host_cpu_name(), "features": llvm.get_host_cpu_features().flatten()}
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1, jit=True, **host)
    compiled = llvm.create_mcjit_compiler(module, machine)
    compiled.finalize_object()
    return compiled


def compute(name: str, *operands: np.ndarray, lanes: int | None = None, plain: bool = False) -> np.ndarray:
    """The function of each number, `lanes` at once; `plain` is code for the oldest CPU of the host's kind."""
    dtype: Any = operands[0].dtype.type
    lanes = LANES[dtype] if lanes is None else lanes
    size = len(operands[0])
    padded = [np.resize(operand, -(-size // lanes) * lanes) for operand in operands]
    output = np.empty_like(padded[0])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(operands) + 1), ctypes.c_int64)(
        engine(name, dtype, lanes, plain).get_function_address("run")
    )
    run(output.ctypes.data, *(operand.ctypes.data for operand in padded), len(output) // lanes)
    return output[:size]


# What is right. ---------------------------------------------------------------------------------------------

NUMPY = {"pow": np.power, "atan2": np.arctan2, "abs": np.abs}


def exact(name: str, *operands: np.ndarray) -> np.ndarray:
    """The result in a type with more digits; `long double` is one on some machines."""
    wide = np.float64 if operands[0].dtype == np.float32 else np.longdouble
    if name == "erf":
        return erf(operands[0].astype(np.float64)).astype(wide)
    function = NUMPY.get(name) or getattr(np, name)
    return function(*(operand.astype(wide) for operand in operands))


def slack(name: str, dtype: type) -> float:
    """What the reference itself may be wrong, where it has no more digits than the result."""
    short = dtype is np.float64 and (name == "erf" or np.finfo(np.longdouble).nmant == np.finfo(np.float64).nmant)
    return 1.0 if short else 0.0


def special(dtype: type) -> np.ndarray:
    """Numbers where something may break, with their neighbours and both signs."""
    limits = np.finfo(dtype)
    numbers: np.ndarray[Any, Any] = np.array(
        [*SPECIAL, limits.max, limits.tiny, limits.smallest_subnormal, limits.eps], dtype
    )
    numbers = np.concatenate([numbers, np.nextafter(numbers, dtype(0)), np.nextafter(numbers, dtype(math.inf))])
    return np.concatenate([numbers, -numbers])


def sample(name: str, dtype: type, count: int) -> tuple[np.ndarray, ...]:
    """The special numbers (in all pairs), numbers of all sizes, and many where the function changes."""
    generator = np.random.default_rng(0)
    numbers = special(dtype)

    def around(*scales: float) -> list[np.ndarray]:
        return [generator.normal(scale=scale, size=count) for scale in scales]

    if name in BINARY:
        near_one, large = np.abs(1 + generator.normal(scale=1e-3, size=count)), generator.normal(size=count)
        large *= 3e4 if dtype is np.float32 else 2e5
        a = [np.repeat(numbers, len(numbers)), bits(dtype, count, generator), *around(0.1, 2, 30), near_one]
        b = [np.tile(numbers, len(numbers)), bits(dtype, count, generator), *around(0.1, 2, 30), large]
        return np.concatenate(a).astype(dtype), np.concatenate(b).astype(dtype)
    quarters = np.concatenate([np.arange(count), generator.integers(0, 2**45, count)]) * (np.pi / 2)
    parts = [*around(0.1, 0.7, 3, 30, 200, 1000, 1e5), 1 + generator.normal(scale=0.01, size=count)]
    return (np.concatenate([numbers, bits(dtype, count, generator), NEAR_QUARTERS, quarters, *parts]).astype(dtype),)


# The laws. --------------------------------------------------------------------------------------------------


def test_every_function_that_llvm_lacks_is_in_the_table():
    approximated = {primitive.name for primitive in PRIMITIVES.values() if primitive.ulp > 0.5}
    assert FORMULAS.keys() == approximated
    assert FUNCTIONS.keys() == FORMULAS.keys() | INSTRUCTIONS.keys()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_branch_nowhere_and_call_only_instructions(name, dtype):
    text = str(build(name, dtype, LANES[dtype]))
    if name in ("sin", "cos"):
        assert text.count("call ") == len(re.findall(r"call .*@\"?llvm\.", text))
        assert len(re.findall(r"^\s*br ", text, re.MULTILINE)) == 4, "those of the loop, and round the C library"
        return
    assert set(re.findall(r"call .*@\"?([\w.]+?)\.v\d", text)) <= {
        "llvm.fma",
        "llvm.fabs",
        "llvm.copysign",
        "llvm.floor",
    }
    assert text.count("call ") == len(re.findall(r"call .*@\"?llvm\.", text))
    assert len(re.findall(r"^\s*br ", text, re.MULTILINE)) == 2, "only those of the loop"


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_error_is_within_the_stated_units_in_the_last_place(name, dtype):
    operands = sample(name, dtype, 100_000 if dtype is np.float32 else 20_000)
    result, expected = compute(name, *operands), exact(name, *operands)
    error = errors(result, expected)
    worst = error.argmax()
    limit = PRIMITIVES[name].ulp + slack(name, dtype)
    assert error[worst] <= limit, (name, *(operand[worst] for operand in operands), result[worst], expected[worst])
    numbers = ~np.isnan(result)
    np.testing.assert_array_equal(np.signbit(result[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_scalars_vectors_and_old_machines_agree_bit_for_bit(name, dtype):
    operands = sample(name, dtype, 100)
    expected = compute(name, *operands)
    for other in (compute(name, *operands, lanes=1), compute(name, *operands, plain=True)):
        np.testing.assert_array_equal(other, expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(other[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_instructions_are_exact(name, dtype):
    operands = sample(name, dtype, 100)
    expected = (NUMPY.get(name) or getattr(np, name))(*operands)
    np.testing.assert_array_equal(compute(name, *operands), expected)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", sorted(FORMULAS.keys() - BINARY))
def test_what_this_machine_does_by_instructions_is_the_same_to_the_bit(name, dtype):
    operands = sample(name, dtype, 10_000)
    for lanes in (1, *(size // np.dtype(dtype).itemsize for size in (8, 16, 32, 64))):
        found, expected = compute(f"{name} here", *operands, lanes=lanes), compute(name, *operands, lanes=lanes)
        np.testing.assert_array_equal(found, expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


# float16 by integer arithmetic --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_float16_is_converted_without_instructions_as_with_them(lanes):
    """All numbers of float16, those beside them and half-way between them in float32, and any others."""
    short, single = ir.IntType(16), ir.FloatType()
    module, pointer = ir.Module("half"), ir.PointerType()
    for name, kinds, convert in (("widen", (short, single), half.widened), ("narrow", (single, short), half.narrowed)):
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer, pointer]), name)
        builder = ir.IRBuilder(function.append_basic_block())
        kind = ir.VectorType(kinds[0], lanes) if lanes > 1 else kinds[0]
        found = convert(builder, builder.load(function.args[0], typ=kind, align=1))
        builder.store(found, function.args[1], align=1)
        builder.ret_void()
    library = machine.load(machine.compile_ir(str(module), host()), "widen", "narrow")

    def run(name, values, dtype):
        function = library.function(name, ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p))
        values, found = values[: len(values) // 16 * 16], np.empty(len(values) // 16 * 16, dtype)
        for start in range(0, len(values), lanes):
            function(values.ctypes.data + start * values.itemsize, found.ctypes.data + start * found.itemsize)
        return values, found

    all_of_them = np.arange(1 << 16, dtype=np.uint16)
    numbers = all_of_them.view(np.float16).astype(np.float32)
    _, widened = run("widen", all_of_them, np.float32)
    assert same_bits(widened, numbers)
    finite = numbers[np.isfinite(numbers)]
    beside = (np.nextafter(finite, np.float32(side * np.inf)) for side in (1, -1))
    any_others = np.random.default_rng(0).integers(0, 1 << 32, 1 << 16, dtype=np.uint32).view(np.float32)
    values = np.concatenate([numbers, *beside, (finite[:-1] + finite[1:]) / 2, any_others])
    values, narrowed = run("narrow", values, np.float16)
    assert same_bits(narrowed, values.astype(np.float16))
