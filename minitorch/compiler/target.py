"""The target of code generation: a processor's vector registers, instructions, caches and cores, as plain data.

A decision that depends on a processor is taken from the `Target` that is passed along with the graph, and from nothing
else. So code for any target is generated, printed and counted on any machine; `codegen.host` finds out which of them a
machine can execute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# A feature, the bytes of the vector registers that come with it, and their number; the first row that a processor has
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

LINE = 64  # bytes of a line of the caches
MOST_STEP = 4  # elements from lane to lane that a few vector loads and shuffles cover, on every target

ALIASES = {"amd64": "x86_64", "arm64": "aarch64"}  # other names of an architecture in triples


def architecture(triple: str) -> str:
    """Return the first part of a triple, under one name for each architecture.

    Example:
        >>> architecture("arm64-apple-macosx")
        'aarch64'
    """
    name = triple.split("-")[0].lower()
    return ALIASES.get(name, name)


@dataclass(frozen=True)
class Target:
    """A machine that code is generated for.

    Attributes:
        name: a key of `TARGETS`; ``"native"`` for all that the machine can do that this process runs on.
        triple: LLVM's name of the architecture and the system.
        cpu: LLVM's name of the processor.
        features: LLVM's list of its features and missing features, ``"+avx2,-sse4a,..."``.
        vector_bytes: bytes of one vector register.
        vector_registers: how many there are.
        fma: whether a fused multiply-add is an instruction (where it is not, `llvm.fma` is a slow call).
        float16: whether instructions convert float16 to float32 and back.
        avx512_vnni: whether ``vpdpbusd`` adds the products of four 8-bit integers to each 32-bit lane (EVEX encoding).
        avx_vnni: whether it does so in the VEX encoding, for vectors of up to 32 bytes.
        caches: bytes of the data caches of level 1, 2 and 3 that one core can use.
        cores: how many cores a program may use.
    """

    name: str
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    vector_registers: int
    fma: bool
    float16: bool
    avx512_vnni: bool
    avx_vnni: bool
    caches: tuple[int, int, int]
    cores: int

    @property
    def architecture(self) -> str:
        """``"x86_64"``, ``"aarch64"``, ..."""
        return architecture(self.triple)

    @property
    def required(self) -> frozenset[str]:
        """The features that code for this target may use."""
        return frozenset(each[1:] for each in self.features.split(",") if each.startswith("+"))

    def lanes(self, itemsize: int) -> int:
        """Return how many elements of that many bytes fit in one vector register.

        Example:
            >>> TARGETS["avx2"].lanes(itemsize=4)
            8
        """
        return max(1, self.vector_bytes // itemsize)


def with_features(
    name: str, triple: str, cpu: str, features: Mapping[str, bool], caches: tuple[int, int, int], cores: int
) -> Target:
    """Return the target with these features: they and the architecture decide its registers and instructions."""
    kind = architecture(triple)
    _, size, count = next(row for row in VECTORS if not row[0] or features.get(row[0]))
    return Target(
        name=name,
        triple=triple,
        cpu=cpu,
        features=",".join(f"{'+' if present else '-'}{feature}" for feature, present in sorted(features.items())),
        vector_bytes=size,
        vector_registers=count,
        fma=features.get("fma", kind not in ("x86_64", "i386", "i686")),
        float16=features.get("f16c", kind == "aarch64"),
        avx512_vnni=features.get("avx512vnni", False),
        avx_vnni=features.get("avxvnni", False),
        caches=caches,
        cores=cores,
    )


# The micro-architecture levels of the psABI (System V for AMD64, 3.1.1), each with its additions to the one before.
SSE2 = "cmov cx8 fxsr mmx sse sse2"
AVX2 = f"{SSE2} cx16 popcnt sahf sse3 ssse3 sse4.1 sse4.2 avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
AVX512 = f"{AVX2} avx512bw avx512cd avx512dq avx512f avx512vl"
NEON = "fp-armv8 neon"
KB, MB, CORES = 1 << 10, 1 << 20, 8
LINUX, MACOS = "unknown-linux-gnu", "apple-macosx"

# Name, triple, LLVM's processor, features, and the caches of a typical machine: Nehalem, Zen 3, Ice Lake (server),
# Neoverse N1, and a fast core of the M1, whose second cache of 12 MB is its last and serves four of them.
_ROWS: tuple[tuple[str, str, str, str, tuple[int, int, int]], ...] = (
    ("sse2", f"x86_64-{LINUX}", "x86-64", SSE2, (32 * KB, 256 * KB, 8 * MB)),
    ("avx2", f"x86_64-{LINUX}", "x86-64-v3", AVX2, (32 * KB, 512 * KB, 32 * MB)),
    ("avx512", f"x86_64-{LINUX}", "x86-64-v4", AVX512, (48 * KB, 1280 * KB, 48 * MB)),
    ("neon", f"aarch64-{LINUX}", "generic", NEON, (64 * KB, 1 * MB, 32 * MB)),
    ("apple-m1", f"arm64-{MACOS}", "apple-m1", f"{NEON} dotprod fullfp16 lse", (128 * KB, 3 * MB, 12 * MB)),
)

TARGETS: dict[str, Target] = {
    name: with_features(name, triple, cpu, dict.fromkeys(features.split(), True), caches, CORES)
    for name, triple, cpu, features, caches in _ROWS
}


def target_named(name: str) -> Target:
    """Return the predefined target of that name.

    Raises:
        ValueError: if there is none; the message lists the names.

    Example:
        >>> target_named("avx2").vector_bytes, target_named("neon").vector_registers
        (32, 32)
    """
    if name not in TARGETS:
        raise ValueError(f"there is no target {name!r}; there is {', '.join(map(repr, TARGETS))}")
    return TARGETS[name]
