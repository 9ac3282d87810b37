"""The same machine restricted to fewer instructions, for every contender alike.

Where it can, ``cpuid`` shows less to the process of each contender (`processor`), and every library goes by that. Where
it cannot, libraries are told by environment variables; those that know none use all that the processor has, and a run
says so. Whether a contender is restricted is measured, too: no product of matrices and no convolution may run faster,
per second of processor time, than the target's instructions can multiply and add in registers (`peaks`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from minitorch.compiler.codegen.host import executable_targets, host

from . import processor

NATIVE = "native"
VNNI = "vnni"  # AVX-512 and VNNI: for others, who multiply matrices by AMX where there is that
TOLERANCE = 1.1  # times the peak rate of the target's instructions: more is not the target's code

# Of each target, what every process of a package is told. torch.compile's compiler, a program of its own, gets an
# architecture; minitorch has a variable for all targets.
ALWAYS: dict[str, dict[str, dict[str, str]]] = {"avx2": {"torch": {"TORCHINDUCTOR_CPP_MARCH": "x86-64-v3"}}}

# The same where ``cpuid`` cannot show less.
#
# - XLA generates code for no more than `xla_cpu_max_isa`, but YNNPACK, which it has for products of matrices, asks the
#   processor itself and cannot be told otherwise; without it the products are Eigen's, which are AVX2 and FMA.
# - PyTorch dispatches by ATEN_CPU_CAPABILITY (its own kernels, and the vectors of torch.compile), ONEDNN_MAX_CPU_ISA
#   (convolutions) and MKL_ENABLE_INSTRUCTIONS (products of matrices). FBGEMM, for bytes, cannot be told.
# - OPENBLAS_CORETYPE and NPY_DISABLE_CPU_FEATURES are NumPy's.
# - MLAS, the kernels of onnxruntime, cannot be told.
WITHOUT_FAULTS: dict[str, dict[str, dict[str, str]]] = {
    "avx2": {
        "jax": {"XLA_FLAGS": "--xla_cpu_max_isa=AVX2 --xla_cpu_experimental_ynn_fusion_type="},
        "torch": {
            "ATEN_CPU_CAPABILITY": "avx2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "MKL_ENABLE_INSTRUCTIONS": "AVX2",
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
        target: to which it is held.
        variables: what it was told.
        says: what it says of itself; empty if it says nothing.
        shown: the features beyond the target that ``cpuid`` shows it.
        rates: operations in a second of processor time by number format, the most of a few programs.
        peaks: the same of the target's instructions in registers.
    """

    contender: str
    target: str
    variables: Mapping[str, str]
    says: str
    shown: tuple[str, ...]
    rates: Mapping[str, float]
    peaks: Mapping[str, float]

    @property
    def obeyed(self) -> bool:
        """Whether it is no faster than the target allows."""
        return all(rate <= TOLERANCE * self.peaks[kind] for kind, rate in self.rates.items() if kind in self.peaks)

    def __str__(self) -> str:
        told = [f"{name}={text}" for name, text in self.variables.items()]
        shown = f"cpuid shows it {', '.join(self.shown)}, too" if self.shown else "cpuid shows it no more than that"
        rates = [
            f"{kind} {rate / 1e9:.0f} of {self.peaks[kind] / 1e9:.0f}"
            for kind, rate in self.rates.items()
            if kind in self.peaks
        ]
        lines = [
            f"{self.contender:<17}{'; '.join([shown, *told])}",
            f"{'':<17}{f'says {self.says}; ' if self.says else ''}"
            f"{', '.join([*rates]) or 'no products'}, in 10^9 operations in a processor second"
            f"{'' if self.obeyed else ': NOT RESTRICTED'}",
        ]
        return "\n".join(lines)


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
    return target in (NATIVE, "avx512") or target in processor.HIDDEN


def variables(target: str, package: str) -> dict[str, str]:
    """What the contender of a package is told."""
    told = dict(ALWAYS.get(target, {}).get(package, {}))
    if package == "minitorch" and target not in (NATIVE, VNNI):
        told["MINITORCH_TARGET"] = target
    if processor.can_hide():
        return told
    without = WITHOUT_FAULTS.get(target, {}).get(package, {})
    if package == "numpy" and without:
        told["NPY_DISABLE_CPU_FEATURES"] = " ".join(_numpy_features())
    return {name: text for name, text in (told | without).items() if text}


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
