"""The same machine restricted to fewer instructions, for every contender by its own means.

Environment variables say so to each library, before it is loaded. Whether they are obeyed is measured: no product of
matrices and no convolution may run faster, per second of processor time, than the multiply-adds of the target can.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from minitorch.compiler.codegen.host import executable_targets, host

NATIVE = "native"
VNNI = "vnni"  # AVX-512 and VNNI: for others, who multiply matrices by AMX where there is that
TOLERANCE = 1.1  # times the peak rate of the target's multiply-adds: more is not the target's code

# Of each target that contenders can be held to: the variables, and what they are told.
#
# - XLA generates code for no more than `xla_cpu_max_isa`, but YNNPACK, which it has for products of matrices, asks the
#   processor itself and cannot be told otherwise; without it the products are Eigen's, which are AVX2 and FMA.
# - PyTorch dispatches by ATEN_CPU_CAPABILITY (its own kernels, and the vectors of torch.compile), ONEDNN_MAX_CPU_ISA
#   (convolutions) and MKL_ENABLE_INSTRUCTIONS (products of matrices); torch.compile's compiler gets an architecture.
# - OPENBLAS_CORETYPE and NPY_DISABLE_CPU_FEATURES are NumPy's.
VARIABLES: dict[str, dict[str, dict[str, str]]] = {
    "avx2": {
        "jax": {"XLA_FLAGS": "--xla_cpu_max_isa=AVX2 --xla_cpu_experimental_ynn_fusion_type="},
        "torch": {
            "ATEN_CPU_CAPABILITY": "avx2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "MKL_ENABLE_INSTRUCTIONS": "AVX2",
            "TORCHINDUCTOR_CPP_MARCH": "x86-64-v3",
        },
        "numpy": {"OPENBLAS_CORETYPE": "Haswell"},
    },
    VNNI: {
        "jax": {"XLA_FLAGS": "--xla_cpu_max_isa=AVX512_VNNI"},
        "torch": {"ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"},
    },
}
WIDER = ("AVX512", "AVX10", "X86_V4")  # how the names of NumPy's features beyond AVX2 begin


@dataclass(frozen=True)
class Probe:
    """How a contender was restricted, and what it did.

    Attributes:
        contender: its name.
        variables: what it was told.
        says: what it says of itself; empty if it says nothing.
        rate: floating point operations in a second of processor time, the most of a few programs.
        peak: the same of multiply-adds in the target's registers.
    """

    contender: str
    variables: Mapping[str, str]
    says: str
    rate: float
    peak: float

    @property
    def obeyed(self) -> bool:
        """Whether it is no faster than the target allows."""
        return self.rate <= TOLERANCE * self.peak

    def __str__(self) -> str:
        told = " ".join(f"{name}={text}" for name, text in self.variables.items()) or "nothing to restrict"
        says = f"says {self.says}; " if self.says else ""
        verdict = "" if self.obeyed else ": NOT RESTRICTED"
        return (
            f"{self.contender:<14} {told}\n{'':<15}{says}"
            f"{self.rate / 1e9:.0f} GFLOP in a processor second, multiply-adds {self.peak / 1e9:.0f}{verdict}"
        )


def chosen(text: str) -> list[str]:
    """The targets that are asked for, as ``"native,avx2"``.

    Raises:
        SystemExit: for one that this machine cannot run.
    """
    names = text.split(",")
    for name in names:
        if name not in executable_targets() and not (name == VNNI and host().avx512_vnni):
            raise SystemExit(f"no target {name!r} here: there are {', '.join(executable_targets())}")
    return names


def for_models(names: Sequence[str]) -> list[str]:
    """Those of the targets to which libraries of quantised models can be held; the widest if to none."""
    return [name for name in names if is_comparable(name)] or [NATIVE]


def is_comparable(target: str) -> bool:
    """Whether the contenders can be held to a target; if not, minitorch runs alone, and is compared with float64."""
    return target in (NATIVE, "avx512") or target in VARIABLES


def variables(target: str, package: str) -> dict[str, str]:
    """What the contender of a package is told."""
    told = dict(VARIABLES.get(target, {}).get(package, {}))
    if package == "minitorch" and target not in (NATIVE, VNNI):
        told["MINITORCH_TARGET"] = target
    if package == "numpy" and told:
        told["NPY_DISABLE_CPU_FEATURES"] = " ".join(_numpy_features())
    return {name: text for name, text in told.items() if text}


def environment(target: str, packages: Sequence[str]) -> dict[str, str]:
    """The environment of every process of a run: what each of the packages is told; flags are added to those there."""
    told = {name: text for package in packages for name, text in variables(target, package).items()}
    if "XLA_FLAGS" in told:
        told["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {told['XLA_FLAGS']}".strip()
    return told


def _numpy_features() -> list[str]:
    """What NumPy would use here beyond AVX2, by its own names."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return [name for name in found if name.startswith(WIDER)]
