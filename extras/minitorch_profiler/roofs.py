"""The two roofs of a machine: the bandwidth of a copy, and the rate of multiply-adds.

Both are measured with code from the code generator that compiles programs, on as many threads as these run on, so they
are the rates of a perfect kernel of this engine.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from llvmlite import ir

from minitorch.compiler.codegen.builder import Builder
from minitorch.compiler.codegen.emit import emit
from minitorch.compiler.codegen.host import host
from minitorch.compiler.codegen.instructions import I64, PRIMITIVES, computed_type, constant, multiply_add
from minitorch.compiler.codegen.vector_memory import POINTER, integer
from minitorch.compiler.loop_ir.expressions import Load, computed_in
from minitorch.compiler.loop_ir.index import Variable, variable
from minitorch.compiler.loop_ir.loops import Buffer, Loop, LoopKernel, Nest, Write
from minitorch.compiler.runtime import cache, threads
from minitorch.compiler.runtime.memory_pool import address, pool
from minitorch.compiler.runtime.program_steps import GRAIN
from minitorch.compiler.scheduling.schedules.choice import scheduled, units
from minitorch.dtypes import DType, float32

ROUNDS = 2000  # of a loop of multiply-adds, in each of `UNITS`
UNITS = 64
COPIED = 4  # times the last cache level; raising it keeps more of the copy out of caches
MOST_COPIED = 128 << 20  # bytes, read and written together


def shortest(call: Callable[[], Any], seconds: float) -> float:
    """The time of the fastest call within so many seconds, two calls at least."""
    end = perf_counter() + seconds
    times: list[float] = []
    while len(times) < 2 or perf_counter() < end:
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return min(times)


def copy_kernel(size: int) -> LoopKernel:
    """A kernel that copies so many float32 numbers."""
    place = variable("i0", size)
    nest = Nest((Variable("i0", size),), (Loop((), (Write(1, place, Load(float32, 0, place)),)),))
    buffers = Buffer((size,), float32, False), Buffer((size,), float32, True)
    return LoopKernel("kernel", buffers, (nest,), (0,), (0,))


def bandwidth(seconds: float) -> float:
    """Bytes per second, read and written, of a copy that is too large for the caches."""
    here = host()
    size = min(COPIED * here.caches[2], MOST_COPIED) // 2 // 4
    parts = scheduled(copy_kernel(size), here)
    source, target = pool.array((size,), np.float32), pool.array((size,), np.float32)
    source[:] = 1
    target[:] = 0  # touches the pages
    (library,) = cache.libraries([emit(parts, here)], "kernel")
    function, table = library.function("kernel"), _table(source, target)
    extent = units(parts)

    def copy() -> None:
        table[-1] = 0  # the counter of finished units
        threads.run(function, address(table), extent, cost=2.0 * size * 4, grain=GRAIN)

    copy()
    if not np.array_equal(source[:: 1 << 12], target[:: 1 << 12]):
        raise RuntimeError("the kernel that copies does not copy")
    return 2 * size * 4 / shortest(copy, seconds)


def flop_rate(dtype: DType, seconds: float) -> float:
    """Additions and multiplications per second, of one type, in vectors, on all threads."""
    text, operations = flops_text(dtype)
    (library,) = cache.libraries([text], "kernel")
    function = library.function("kernel")
    numbers = np.array([[0.5], [1]] if dtype.is_floating_point else [[3], [1]], computed_in(dtype).numpy)
    operands = np.repeat(numbers, lanes(dtype), axis=1)
    out = np.empty((UNITS, *operands[0].shape), operands.dtype)
    table = _table(operands, out)

    def run() -> None:
        threads.run(function, address(table), UNITS, cost=float(UNITS * operations), grain=GRAIN)

    return UNITS * operations / shortest(run, seconds)


def lanes(dtype: DType) -> int:
    """The numbers in a vector register, in the type that is computed in."""
    return host().lanes(computed_in(dtype).itemsize)


def flops_text(dtype: DType) -> tuple[str, int]:
    """A kernel of multiply-adds as LLVM IR, and the operations of a unit of its range.

    Three quarters of the vector registers are accumulators of independent multiply-adds, which hide the latency. Floats
    are rounded as in kernels.
    """
    kind = ir.VectorType(computed_type(dtype), lanes(dtype))
    chains = host().vector_registers * 3 // 4
    module = ir.Module(name="roof")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, I64, I64]), "kernel")
    buffers, begin, end = function.args
    entry = builder = Builder(function.append_basic_block("entry"), host())
    operands, out = (
        builder.load(builder.gep(buffers, [integer(number)], source_etype=POINTER), typ=POINTER) for number in (0, 1)
    )
    head, body, done = (function.append_basic_block(name) for name in ("head", "body", "done"))
    rounds = builder.mul(builder.sub(end, begin), integer(ROUNDS))
    factor, summand = (
        builder.load(builder.gep(operands, [integer(number)], source_etype=kind), typ=kind, align=1)
        for number in (0, 1)
    )
    builder.branch(head)
    builder = Builder(head, host())
    number = builder.phi(I64)
    number.add_incoming(integer(0), entry.block)
    values = [builder.phi(kind) for _ in range(chains)]
    builder.cbranch(builder.icmp_unsigned("<", number, rounds), body, done)
    builder = Builder(body, host())
    for place, value in enumerate(values):
        total = multiply_add(builder, dtype, value, factor, summand)
        value.add_incoming(constant(dtype, place + 1, kind), entry.block)
        value.add_incoming(total, body)
    number.add_incoming(builder.add(number, integer(1)), body)
    builder.branch(head)
    builder = Builder(done, host())
    whole = values[0]
    for value in values[1:]:
        whole = PRIMITIVES["add"](builder, dtype, whole, value)
    builder.store(whole, builder.gep(out, [begin], source_etype=kind), align=1)
    builder.ret_void()
    return str(module), 2 * ROUNDS * chains * lanes(dtype)


def _table(*arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The addresses of buffers, followed by the words that kernels write notes to."""
    return np.array([*map(address, arrays), 0, 0], np.int64)
