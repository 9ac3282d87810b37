"""The host: the machine that this process runs on, as a target of code generation.

Code is made for all that the processor can do, unless the environment variable ``MINITORCH_TARGET`` names less (as
PyTorch's ``ATEN_CPU_CAPABILITY`` does), so that one machine can run and test the code of others. It is read once.

============ =================================================================================================
``native``   whatever the processor can do (the default)
``avx512``   x86-64-v4 of the psABI: AVX-512 F, BW, CD, DQ and VL; vectors of 64 bytes
``avx2``     x86-64-v3: AVX2, FMA, F16C; vectors of 32 bytes
``sse2``     x86-64: what every such processor has; vectors of 16 bytes, no fused multiply-add
``neon``     AArch64: what every such processor has; vectors of 16 bytes
``apple-m1`` Apple's first processor for the Macintosh; vectors of 16 bytes
============ =================================================================================================
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import cache
from math import ceil
from pathlib import Path

import llvmlite.binding as llvm

from ..target import TARGETS, Target, architecture, with_features

CACHE_DEFAULTS = {1: 32 << 10, 2: 512 << 10, 3: 8 << 20}  # bytes, where the system does not say
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def executable_targets() -> tuple[str, ...]:
    """Return the values of ``MINITORCH_TARGET`` whose code this machine can run: ``native``, then widest first.

    Example:
        >>> executable_targets()[0]
        'native'
    """
    own = {feature for feature, present in llvm.get_host_cpu_features().items() if present}
    here = architecture(llvm.get_default_triple())
    possible = (each.name for each in TARGETS.values() if each.architecture == here and each.required <= own)
    return ("native", *reversed([*possible]))


def target_of(environment: str) -> str:
    """Return the target that ``MINITORCH_TARGET`` names.

    Raises:
        ValueError: if no target has that name, or this machine cannot run its code.

    Example:
        >>> target_of("")
        'native'
    """
    name = environment.strip() or "native"
    if name not in executable_targets():
        what = "is not a target" if name not in TARGETS else "needs instructions that this machine does not have"
        possible = ", ".join(executable_targets())
        raise ValueError(f"MINITORCH_TARGET={environment!r} {what}: unset it, or set it to one of {possible}")
    return name


@cache
def host() -> Target:
    """Return this process's machine, or as much of it as ``MINITORCH_TARGET`` leaves.

    Raises:
        ValueError: if ``MINITORCH_TARGET`` is not in `executable_targets`.

    Example:
        >>> host().lanes(itemsize=4) in (4, 8, 16)
        True
    """
    name = target_of(os.environ.get("MINITORCH_TARGET", ""))
    triple = llvm.get_default_triple()
    caches = cache_sizes(Path("/sys/devices/system/cpu/cpu0/cache"))
    cores = usable_cores(Path("/sys/fs/cgroup/cpu.max"))
    if name != "native":
        return replace(TARGETS[name], triple=triple, caches=caches, cores=cores)
    return with_features(name, triple, llvm.get_host_cpu_name(), llvm.get_host_cpu_features(), caches, cores)


def cache_sizes(folder: Path) -> tuple[int, int, int]:
    """Return the bytes of the level 1, 2 and 3 data caches, as Linux lists them in `folder`; else defaults."""
    sizes = dict(CACHE_DEFAULTS)
    for index in folder.glob("index*"):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if kind != "Instruction" and match and level in "123" and int(match[1]):
            sizes[int(level)] = int(match[1]) * UNITS[match[2]]
    return sizes[1], sizes[2], sizes[3]


def usable_cores(quota: Path) -> int:
    """Return how many cores this process may use: its affinity, limited by a container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        budget, period = quota.read_text().split()
        return max(1, min(cores, ceil(int(budget) / int(period))))
    except (OSError, ValueError):  # no such file, or "max"
        return cores
