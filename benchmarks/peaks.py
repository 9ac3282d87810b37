"""The most that a target's instructions multiply in a second of processor time, in registers, by number format.

Whoever is faster has other instructions. In float32 that is the loop of multiply-adds of `minitorch.profiler.roofs`. Of
bytes it is the instruction for sums of products that libraries use, whether it saturates or not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from minitorch.compiler.codegen.host import host
from minitorch.compiler.runtime import cache
from minitorch.dtypes import float32

FLOAT32, INT8 = "float32", "int8"

# The instructions that add products of bytes to 32-bit lanes, four to each, by the feature they need, the best first:
# one that does all; or three, for products of pairs (which saturate), their sums, and the totals. $0 is the totals, $1
# a register for what lies between, $2 and $3 are operands, and $4 has ones of 16 bits.
BY_THREE = "vpmaddubsw $2, $3, $1; vpmaddwd $4, $1, $1; vpaddd $1, $0, $0"
OF_BYTES = {"avx512vnni": (64, "vpdpbusd $2, $3, $0"), "avx512bw": (64, BY_THREE), "avx2": (32, BY_THREE)}


def processor_rate(call: Callable[[], Any], operations: float, seconds: float = 0.2) -> float:
    """The most operations in a second of processor time, of all threads together: other programs do not lower it."""
    call()
    rates: list[float] = []
    end = time.perf_counter() + seconds
    while len(rates) < 3 or time.perf_counter() < end:
        begin = time.process_time()
        call()
        rates.append(operations / max(time.process_time() - begin, 1e-9))
    return max(rates)


def peaks() -> dict[str, float]:
    """Operations in a second of processor time by number format; a product and its addition are two."""
    from minitorch_profiler.roofs import flops_text, lanes  # of this checkout; `compare` runs workers of others

    text, operations = flops_text(float32)
    numbers = np.repeat(np.array([0.5, 1], np.float32), lanes(float32))
    found = {FLOAT32: _rate(text, operations, numbers)}
    for feature, (size, instructions) in OF_BYTES.items():
        if feature in host().required:
            text, operations = _bytes_text(size, instructions)
            found[INT8] = _rate(text, operations, np.ones(2 * size, np.int8))
            break
    return found


def _rate(text: str, operations: int, operands: np.ndarray[Any, Any]) -> float:
    """The rate of a kernel that reads two vectors and writes one, in each of `UNITS`."""
    from minitorch_profiler.roofs import UNITS

    (library,) = cache.libraries([text], "kernel")
    function, out = library.function("kernel"), np.empty((UNITS, *operands.shape), operands.dtype)
    table = np.array([operands.ctypes.data, out.ctypes.data], np.int64)
    return processor_rate(lambda: function(table.ctypes.data, 0, UNITS), UNITS * operations)


def _bytes_text(size: int, instructions: str) -> tuple[str, int]:
    """A kernel of sums of products of bytes as LLVM IR, and the operations of a unit of its range.

    Assembly keeps LLVM from computing equal products once. Three quarters of the registers are totals, which hide the
    latency.
    """
    from minitorch_profiler.roofs import ROUNDS

    llvm.initialize_native_asmparser()
    chains, kind = host().vector_registers * 3 // 4, f"<{size // 4} x i32>"
    heads = [f"  %now{each} = phi {kind} [ zeroinitializer, %entry ], [ %new{each}, %body ]" for each in range(chains)]
    lines = [
        line
        for each in range(chains)
        for line in (
            f'  %all{each} = call {{{kind}, {kind}}} asm sideeffect "{instructions}", "=v,=&v,v,v,v,0"'
            f"({kind} %a, {kind} %b, {kind} splat (i32 65537), {kind} %now{each})",
            f"  %new{each} = extractvalue {{{kind}, {kind}}} %all{each}, 0",
        )
    ]
    sums = [f"  %sum{each} = add {kind} %sum{each - 1}, %now{each}" for each in range(1, chains)]
    text = "\n".join(
        [
            "define void @kernel(ptr %buffers, i64 %begin, i64 %end) {",
            "entry:",
            "  %operands = load ptr, ptr %buffers",
            "  %out.at = getelementptr ptr, ptr %buffers, i64 1",
            "  %out = load ptr, ptr %out.at",
            f"  %b.at = getelementptr {kind}, ptr %operands, i64 1",
            f"  %a = load {kind}, ptr %operands, align 1",
            f"  %b = load {kind}, ptr %b.at, align 1",
            "  %units = sub i64 %end, %begin",
            f"  %rounds = mul i64 %units, {ROUNDS}",
            "  br label %head",
            "head:",
            "  %number = phi i64 [ 0, %entry ], [ %next, %body ]",
            *heads,
            "  %more = icmp ult i64 %number, %rounds",
            "  br i1 %more, label %body, label %done",
            "body:",
            *lines,
            "  %next = add i64 %number, 1",
            "  br label %head",
            "done:",
            f"  %sum0 = add {kind} %now0, zeroinitializer",
            *sums,
            f"  store {kind} %sum{chains - 1}, ptr %out, align 1",
            "  ret void",
            "}",
        ]
    )
    return text, 2 * size * ROUNDS * chains
