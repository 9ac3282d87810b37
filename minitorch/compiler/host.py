"""The host: processor, vector registers, caches and cores, as code is made for them.

Code is made for all that the processor can do, unless the environment variable ``MINITORCH_TARGET`` names less (as
PyTorch's ``ATEN_CPU_CAPABILITY`` does), so that one machine can run and test the code of others. It is read once.

=========== ==================================================================================================
``native``  whatever the processor can do (the default)
``avx512``  x86-64-v4 of the psABI: AVX-512 F, BW, CD, DQ and VL; vectors of 64 bytes
``avx2``    x86-64-v3: AVX2, FMA, F16C; vectors of 32 bytes
``sse2``    x86-64: what every such processor has; vectors of 16 bytes, no fused multiply-add
=========== ==================================================================================================
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path

import llvmlite.binding as llvm

# A feature, the bytes of the vector registers that come with it, and their number; the first row that the host has
# counts. Where registers are of no fixed size (SVE) or LLVM reports no features, 16 bytes are always there.
VECTORS: tuple[tuple[str, int, int], ...] = (
    ("avx512f", 64, 32),  # x86
    ("zvl512b", 64, 32),  # RISC-V
    ("avx2", 32, 16),
    ("lasx", 32, 32),  # LoongArch
    ("zvl256b", 32, 32),
    ("sse2", 16, 16),
    ("", 16, 32),  # NEON, VSX, and whatever else
)

MOST_STEP = 4  # elements from lane to lane that a few vector loads and shuffles cover, on every target

CACHE_DEFAULTS = {1: 32 << 10, 2: 512 << 10, 3: 8 << 20}  # bytes, where the system does not say
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


# A target other than "native": LLVM's name of such a processor, and the features that it has beyond those of the row
# before (System V psABI for AMD64, 3.1.1, micro-architecture levels).
TARGETS: dict[str, tuple[str, str]] = {
    "sse2": ("x86-64", "cmov cx8 fxsr mmx sse sse2"),
    "avx2": (
        "x86-64-v3",
        "cx16 popcnt sahf sse3 ssse3 sse4.1 sse4.2 avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    ),
    "avx512": ("x86-64-v4", "avx512bw avx512cd avx512dq avx512f avx512vl"),
}
X86_64, ARM_64 = ("x86_64", "amd64"), ("aarch64", "arm64")


@dataclass(frozen=True)
class Host:
    """What code is made for.

    Attributes:
        target: the value of ``MINITORCH_TARGET``: ``"native"``, or how the machine is restricted.
        triple: LLVM's name of the architecture and the system.
        cpu: LLVM's name of the processor.
        features: LLVM's list of what it can do and cannot do, ``"+avx2,-sse4a,..."``.
        vector_bytes: bytes of one vector register.
        vector_registers: how many there are.
        fma: whether a fused multiply-add is an instruction (where it is not, `llvm.fma` is a slow call).
        float16: whether instructions convert float16 to float32 and back.
        caches: bytes of the data caches of level 1, 2 and 3.
        cores: how many cores this process may use.
    """

    target: str
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    vector_registers: int
    fma: bool
    float16: bool
    caches: tuple[int, int, int]
    cores: int

    def lanes(self, itemsize: int) -> int:
        """Elements of that many bytes in one vector register."""
        return max(1, self.vector_bytes // itemsize)


def _features_of(target: str) -> dict[str, bool]:
    """The features that code for a target other than ``native`` may use."""
    names = list(TARGETS)
    return {feature: True for name in names[: names.index(target) + 1] for feature in TARGETS[name][1].split()}


@cache
def executable_targets() -> tuple[str, ...]:
    """The values of ``MINITORCH_TARGET`` whose code this machine can run: ``native``, then the others, widest first.

    Example:
        >>> executable_targets()[0]
        'native'
    """
    if llvm.get_default_triple().split("-")[0] not in X86_64:
        return ("native",)
    own = llvm.get_host_cpu_features()
    return ("native", *(name for name in reversed(TARGETS) if all(own.get(feature) for feature in _features_of(name))))


def target_of(environment: str) -> str:
    """The target that ``MINITORCH_TARGET`` names.

    Raises:
        ValueError: if there is no such target, or this machine cannot run its code.

    Example:
        >>> target_of("")
        'native'
    """
    target = environment.strip() or "native"
    if target not in executable_targets():
        what = "is not a target" if target not in TARGETS else "needs instructions that this machine does not have"
        possible = ", ".join(executable_targets())
        raise ValueError(f"MINITORCH_TARGET={environment!r} {what}: unset it, or set it to one of {possible}")
    return target


@cache
def host() -> Host:
    """The machine that this process runs on, or as much of it as ``MINITORCH_TARGET`` leaves.

    Raises:
        ValueError: if ``MINITORCH_TARGET`` is none of `executable_targets`.

    Example:
        >>> host().lanes(itemsize=4) in (4, 8, 16)
        True
    """
    target = target_of(os.environ.get("MINITORCH_TARGET", ""))
    triple = llvm.get_default_triple()
    if target == "native":
        own = llvm.get_host_cpu_features()
        cpu, features, listed = llvm.get_host_cpu_name(), own, own.flatten()
    else:
        cpu, features = TARGETS[target][0], _features_of(target)
        listed = ",".join(f"+{feature}" for feature in features)
    architecture = triple.split("-")[0]
    x86 = architecture in ("i386", "i686", *X86_64)
    _, size, count = next(row for row in VECTORS if not row[0] or features.get(row[0]))
    return Host(
        target=target,
        triple=triple,
        cpu=cpu,
        features=listed,
        vector_bytes=size,
        vector_registers=count,
        fma=bool(features.get("fma", not x86)),
        float16=bool(features.get("f16c", architecture in ARM_64)),
        caches=cache_sizes(Path("/sys/devices/system/cpu/cpu0/cache")),
        cores=usable_cores(Path("/sys/fs/cgroup/cpu.max")),
    )


def cache_sizes(folder: Path) -> tuple[int, int, int]:
    """Bytes of the data caches of level 1, 2 and 3, as Linux lists them in `folder`; defaults for those it does not."""
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
    """How many cores this process may use: those it may run on, no more than a container's quota pays for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        budget, period = quota.read_text().split()
        return max(1, min(cores, ceil(int(budget) / int(period))))
    except (OSError, ValueError):  # no such file, or "max"
        return cores
