"""A processor that shows less than it has: CPUID faulting, for libraries that take whatever the processor says.

Libraries ask the instruction ``cpuid`` which instructions there are, each in its own way, and some (MLAS of
onnxruntime, FBGEMM, YNNPACK) know no variable that says less. Linux can let ``cpuid`` fault in a thread
(``arch_prctl(2)``, ``ARCH_SET_CPUID``; on processors of Intel since Ivy Bridge, and in machines of KVM). The fault is
SIGSEGV, whose handler answers in place of the processor:

    library          processor                handler (machine code, no Python)
    cpuid     ──►    #GP, SIGSEGV      ──►    allows cpuid, executes it, clears the bits of hidden features,
    go on     ◄──────────────────────────     forbids it again, and sets the registers behind the instruction

Threads inherit the fault, other programs that the process starts do not. Libraries that were loaded before keep what
they know. So this comes first, before NumPy, as a command of its own:

    python -m benchmarks.processor avx2 benchmarks.worker "onnxruntime int8" 1
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import runpy
import signal
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

# Where the manuals (Intel SDM 2A, CPUID; AMD APM 3, appendix E) put a feature: leaf, subleaf, register, bit.
REGISTERS = ("eax", "ebx", "ecx", "edx")
FEATURES: dict[str, tuple[int, int, str, int]] = {
    "fma": (1, 0, "ecx", 12),
    "avx": (1, 0, "ecx", 28),
    "avx2": (7, 0, "ebx", 5),
    "avx512f": (7, 0, "ebx", 16),
    "avx512dq": (7, 0, "ebx", 17),
    "avx512ifma": (7, 0, "ebx", 21),
    "avx512cd": (7, 0, "ebx", 28),
    "avx512bw": (7, 0, "ebx", 30),
    "avx512vl": (7, 0, "ebx", 31),
    "avx512vbmi": (7, 0, "ecx", 1),
    "avx512vbmi2": (7, 0, "ecx", 6),
    "avx512vnni": (7, 0, "ecx", 11),
    "avx512bitalg": (7, 0, "ecx", 12),
    "avx512vpopcntdq": (7, 0, "ecx", 14),
    "avx512vp2intersect": (7, 0, "edx", 8),
    "amx_bf16": (7, 0, "edx", 22),
    "avx512fp16": (7, 0, "edx", 23),
    "amx_tile": (7, 0, "edx", 24),
    "amx_int8": (7, 0, "edx", 25),
    "avx_vnni": (7, 1, "eax", 4),
    "avx512_bf16": (7, 1, "eax", 5),
    "amx_fp16": (7, 1, "eax", 21),
    "avx_ifma": (7, 1, "eax", 23),
    "avx_vnni_int8": (7, 1, "edx", 4),
    "avx_ne_convert": (7, 1, "edx", 5),
    "amx_complex": (7, 1, "edx", 8),
    "avx_vnni_int16": (7, 1, "edx", 10),
    "avx10": (7, 1, "edx", 19),
}
# What each target hides, by the beginning of the names.
HIDDEN = {
    "avx2": ("avx512", "avx10", "avx_", "amx_"),
    "vnni": ("amx_",),
}

ARCH_PRCTL, ARCH_SET_CPUID = 158, 0x1012  # of x86-64
SI_KERNEL = 0x80  # siginfo's code of a fault that has no address, as this one
SA_SIGINFO, SA_ONSTACK = 0x4, 0x0800_0000
# Bytes in siginfo_t and ucontext_t (<bits/types/siginfo_t.h>, <sys/ucontext.h>) of x86-64.
CODE, RBX, RDX, RAX, RCX, RIP = 8, *(40 + 8 * number for number in (11, 12, 13, 14, 16))


def hidden(target: str) -> frozenset[str]:
    """The features that a target hides; none of a target that is not in `HIDDEN`."""
    return frozenset(name for name in FEATURES if name.startswith(HIDDEN.get(target, ())))


def masks(features: Collection[str]) -> dict[tuple[int, int, str], int]:
    """The bits to clear, by leaf, subleaf and register."""
    found: dict[tuple[int, int, str], int] = {}
    for leaf, subleaf, register, bit in map(FEATURES.__getitem__, features):
        found[leaf, subleaf, register] = found.get((leaf, subleaf, register), 0) | 1 << bit
    return found


# --- machine code -----------------------------------------------------------------------------------------------------

CPUID = """
define void @cpuid(i32 %leaf, i32 %subleaf, ptr %out) {
  %all = call {i32, i32, i32, i32} asm sideeffect "cpuid",
         "={eax},={ebx},={ecx},={edx},{eax},{ecx}"(i32 %leaf, i32 %subleaf)
  store {i32, i32, i32, i32} %all, ptr %out
  ret void
}
"""

# The handler's arguments are (signal, siginfo_t *, ucontext_t *). Whatever is no fault of cpuid gets the handler that
# was there before: the instruction is tried again, and faults again.
HANDLER = """
declare i32 @sigaction(i32, ptr, ptr)

define internal void @allow(i64 %yes) {{
  call i64 asm sideeffect "syscall",
       "={{rax}},{{rax}},{{rdi}},{{rsi}},~{{rcx}},~{{r11}},~{{memory}}"(i64 {call}, i64 {set}, i64 %yes)
  ret void
}}

define void @handler(i32 %number, ptr %info, ptr %context) {{
  %out = alloca {{i32, i32, i32, i32}}
  %code.at = getelementptr i8, ptr %info, i64 {CODE}
  %code = load i32, ptr %code.at
  %general = icmp eq i32 %code, {kernel}
  br i1 %general, label %look, label %other
look:
  %rip.at = getelementptr i8, ptr %context, i64 {RIP}
  %rip = load ptr, ptr %rip.at
  %bytes = load i16, ptr %rip, align 1
  %is = icmp eq i16 %bytes, {opcode}
  br i1 %is, label %answer, label %other
other:
  call i32 @sigaction(i32 %number, ptr inttoptr (i64 {before} to ptr), ptr null)
  ret void
answer:
  %rax.at = getelementptr i8, ptr %context, i64 {RAX}
  %rbx.at = getelementptr i8, ptr %context, i64 {RBX}
  %rcx.at = getelementptr i8, ptr %context, i64 {RCX}
  %rdx.at = getelementptr i8, ptr %context, i64 {RDX}
  %leaf = load i32, ptr %rax.at
  %subleaf = load i32, ptr %rcx.at
  call void @allow(i64 1)
  call void @cpuid(i32 %leaf, i32 %subleaf, ptr %out)
  call void @allow(i64 0)
  %all = load {{i32, i32, i32, i32}}, ptr %out
{results}
  %next = getelementptr i8, ptr %rip, i64 2
  store ptr %next, ptr %rip.at
  ret void
}}
"""


def handler_text(features: Collection[str], before: int) -> str:
    """The handler as LLVM IR.

    Args:
        features: that it hides.
        before: the address of the earlier `struct sigaction`.
    """
    lines = []
    for place, register in enumerate(REGISTERS):
        lines.append(f"  %{register}.0 = extractvalue {{i32, i32, i32, i32}} %all, {place}")
        rows = [(leaf, subleaf, bits) for (leaf, subleaf, which), bits in masks(features).items() if which == register]
        for number, (leaf, subleaf, bits) in enumerate(rows):
            name = f"{register}.{number}"
            lines += [
                f"  %{name}.leaf = icmp eq i32 %leaf, {leaf}",
                f"  %{name}.sub = icmp eq i32 %subleaf, {subleaf}",
                f"  %{name}.both = and i1 %{name}.leaf, %{name}.sub",
                f"  %{name}.less = and i32 %{name}, {0xFFFF_FFFF ^ bits}",
                f"  %{register}.{number + 1} = select i1 %{name}.both, i32 %{name}.less, i32 %{name}",
            ]
        lines.append(f"  %{register}.wide = zext i32 %{register}.{len(rows)} to i64")
        lines.append(f"  store i64 %{register}.wide, ptr %r{register[1:]}.at")
    numbers = {"call": ARCH_PRCTL, "set": ARCH_SET_CPUID, "kernel": SI_KERNEL, "opcode": 0xA20F, "before": before}
    places = {"CODE": CODE, "RBX": RBX, "RDX": RDX, "RAX": RAX, "RCX": RCX, "RIP": RIP}
    return CPUID + HANDLER.format(results="\n".join(lines), **numbers, **places)


_kept: list[Any] = []  # machine code, and what it points to, as long as the process lives


def _compiled(text: str, name: str) -> int:
    """The address of a function of an LLVM module."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _kept.append(engine)
    return int(engine.get_function_address(name))


@functools.cache
def _cpuid() -> Any:
    return ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(_compiled(CPUID, "cpuid"))


def shown() -> frozenset[str]:
    """The names of `FEATURES` that ``cpuid`` shows to this process now; none on a processor without the instruction."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    out = (ctypes.c_uint32 * 4)()
    found = set()
    for name, (leaf, subleaf, register, bit) in FEATURES.items():
        _cpuid()(leaf, subleaf, out)
        if out[REGISTERS.index(register)] >> bit & 1:
            found.add(name)
    return frozenset(found)


# --- the process ------------------------------------------------------------------------------------------------------


class _Action(ctypes.Structure):
    """``struct sigaction`` of the C libraries of x86-64."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


@functools.cache
def can_hide() -> bool:
    """Whether ``cpuid`` can be made to fault here."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return any(line.startswith("flags") and "cpuid_fault" in line.split() for line in lines)


def hide(features: Collection[str]) -> None:
    """Let ``cpuid`` show less to this thread, and to those that it makes from now on.

    Raises:
        OSError: if the system refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    before, action = _Action(), _Action()
    libc.sigaction(signal.SIGSEGV, None, ctypes.byref(before))
    action.handler = _compiled(handler_text(features, ctypes.addressof(before)), "handler")
    action.flags = SA_SIGINFO | SA_ONSTACK
    _kept.append(before)
    _cpuid()  # compiled now: LLVM asks cpuid, too
    if libc.sigaction(signal.SIGSEGV, ctypes.byref(action), None) or libc.syscall(ARCH_PRCTL, ARCH_SET_CPUID, 0):
        raise OSError(ctypes.get_errno(), f"arch_prctl: {os.strerror(ctypes.get_errno())}")


def command(target: str, module: str, *arguments: str) -> list[str]:
    """The command that runs a module of Python; where features can be hidden, it is shown those of the target."""
    hides = [__spec__.name, target] if hidden(target) and can_hide() else []
    return [sys.executable, "-m", *hides, module, *arguments]


def main(target: str, module: str, *arguments: str) -> None:
    """Run a module as a program that sees the features of a target."""
    hide(hidden(target))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
