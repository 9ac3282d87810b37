"""The bfloat16 products of this processor, `vdpbf16ps`: what they do with denormal numbers, and how fast they are.

``python -m tools.bf16_products`` prints the figures by which the compiler does without them (docs/architecture.md).
The instruction adds two products of bfloat16 to each of 16 float32 sums. It is compared with the multiply-add of
float32, one product to each of 16 sums; both run over as many sums as hide their latency.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from llvmlite import binding as llvm

VECTORS = 24  # sums that do not wait for each other; more than latency times throughput of either instruction
ROUNDS, REPETITIONS = 9, 1_000_000

Array = np.ndarray[Any, Any]
Kernel = Callable[[Array, Array, int], Array]

# Type of an operand, and the call that adds its products to the sums %a.
BFLOAT16 = ("<32 x bfloat>", "@llvm.x86.avx512bf16.dpbf16ps.512(<16 x float> {a}, {kind} %p, {kind} %q)")
FLOAT32 = ("<16 x float>", "@llvm.fma.v16f32({kind} %p, {kind} %q, <16 x float> {a})")


def is_there() -> bool:
    """Whether this processor has the instruction, and 512-bit vectors for it."""
    features = llvm.get_host_cpu_features()
    return bool(features.get("avx512bf16")) and bool(features.get("avx512f"))


def _text(kind: str, call: str) -> str:
    """LLVM IR: sums of p * q, added n times, are stored."""
    name = call.partition("(")[0]
    operands = f"<16 x float>, {kind}, {kind}" if "dpbf16" in name else f"{kind}, {kind}, <16 x float>"
    sums = range(VECTORS)
    phis = [f"%a{v} = phi <16 x float> [ zeroinitializer, %entry ], [ %s{v}, %loop ]" for v in sums]
    calls = [f"%s{v} = call <16 x float> {call.format(a=f'%a{v}', kind=kind)}" for v in sums]
    stores = [
        f"%o{v} = getelementptr float, ptr %out, i64 {16 * v}\nstore <16 x float> %s{v}, ptr %o{v}, align 4"
        for v in sums
    ]
    lines = [
        f"declare <16 x float> {name}({operands})",
        "define void @kernel(ptr %left, ptr %right, ptr %out, i64 %n) {",
        "entry:",
        f"%p = load {kind}, ptr %left, align 2",
        f"%q = load {kind}, ptr %right, align 2",
        "br label %loop",
        "loop:",
        "%i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *phis,
        *calls,
        "%next = add i64 %i, 1",
        "%more = icmp slt i64 %next, %n",
        "br i1 %more, label %loop, label %done",
        "done:",
        *stores,
        "ret void",
        "}",
    ]
    return "\n".join(lines)


def kernel(kind: str, call: str) -> Kernel:
    """A function of two vectors and a count: the sums of so many times their products."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(_text(kind, call))
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    pointers = [ctypes.c_void_p] * 3
    native = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)(engine.get_function_address("kernel"))

    def run(left: Array, right: Array, count: int) -> Array:
        sums = np.zeros(16 * VECTORS, np.float32)
        assert engine is not None  # it owns the code, and lives as long as this function
        native(left.ctypes.data, right.ctypes.data, sums.ctypes.data, count)
        return sums

    return run


def product(a: float, b: float) -> float:
    """One product of bfloat16 by the instruction."""
    left, right = np.zeros(32, ml_dtypes.bfloat16), np.zeros(32, ml_dtypes.bfloat16)
    left[0], right[0] = a, b
    return float(kernel(*BFLOAT16)(left, right, 1)[0])


def ratio() -> float:
    """Products per second of the instruction, for each of a float32 multiply-add: the median of interleaved rounds."""
    pairs = [
        (kernel(*BFLOAT16), np.ones(32, ml_dtypes.bfloat16), 32),
        (kernel(*FLOAT32), np.ones(16, np.float32), 16),
    ]
    rates: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for (run, ones, products), found in zip(pairs, rates, strict=True):
            start = time.perf_counter()
            run(ones, ones, REPETITIONS)
            found.append(products / (time.perf_counter() - start))
    return float(statistics.median(bf16 / float32 for bf16, float32 in zip(*rates, strict=True)))


def main() -> None:
    """Print the figures."""
    if not is_there():
        print("this processor has no vdpbf16ps")
        return
    print(f"1e-39 * 1e30: {product(1e-39, 1e30)} by vdpbf16ps, {np.float32(1e-39) * np.float32(1e30):.3g} in float32")
    print(
        f"1e-20 * 1e-20: {product(1e-20, 1e-20)} by vdpbf16ps, {np.float32(1e-20) * np.float32(1e-20):.3g} in float32"
    )
    print(f"products per second: {ratio():.2f} of those of float32 multiply-adds")


if __name__ == "__main__":
    main()
