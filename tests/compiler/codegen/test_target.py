"""Code for any target is made, printed and counted on any machine, and is the same there as on every other one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.compiler.codegen.host import executable_targets, host
from minitorch.compiler.fusion import ROWS
from minitorch.compiler.kernels.ledger import Ledger, ledger_of
from minitorch.compiler.target import TARGETS, target_named

ROOT = Path(__file__).parents[3]

# Of each predefined target: how the assembly names its vector registers, and those that it does not have.
REGISTERS = {
    "sse2": (r"%xmm\d", r"%[yz]mm\d"),
    "avx2": (r"%ymm\d", r"%zmm\d"),
    "avx512": (r"%zmm\d", r"\bv\d+\.4s"),
    "neon": (r"\bv\d+\.4s", r"%[xyz]mm\d"),
    "apple-m1": (r"\.4s\s+v\d", r"%[xyz]mm\d"),
}

PROGRAMS: dict[str, tuple[Callable[..., mt.Tensor], tuple[tuple[int, ...], ...]]] = {
    "matrix product": (lambda a, b: a @ b, ((70, 90), (90, 130))),
    "softmax": (lambda x: x.softmax(-1), ((33, 1000),)),
    "attention": (F.scaled_dot_product_attention, ((2, 70, 32),) * 3),
    "transpose": (lambda x: x.mT * 2, ((130, 70),)),
}


def ledger(name: str) -> Ledger:
    program, shapes = PROGRAMS[name]
    return mt.jit(program).ledger(*(mt.zeros(shape) for shape in shapes))


@cache
def texts() -> str:
    """All programs' code for every predefined target."""
    kernels = [kernel for name in PROGRAMS for target in TARGETS for kernel in ledger(name).for_target(target).kernels]
    return "\n".join(kernel.llvm for kernel in kernels)


def test_every_predefined_target_is_tested() -> None:
    assert REGISTERS.keys() == TARGETS.keys()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_code_for_any_target_is_made_on_any_machine(name: str, target: str) -> None:
    """In its own vector registers; what is computed and moved is the same for all."""
    here = ledger(name)
    found = here.for_target(target)
    has, lacks = REGISTERS[target]
    for kernel, own in zip(found.kernels, here.kernels, strict=True):
        assert re.search(has, kernel.assembly) and not re.search(lacks, kernel.assembly)
        assert kernel.target == found.target == TARGETS[target]
        assert (kernel.flops, kernel.transcendentals) == (own.flops, own.transcendentals)
        assert (kernel.bytes_read, kernel.bytes_written) == (own.bytes_read, own.bytes_written)


@pytest.mark.parametrize("name", PROGRAMS)
def test_targets_have_code_of_their_own(name: str) -> None:
    kernels = [ledger(name).for_target(target).kernels[0] for target in ("sse2", "avx2", "avx512")]
    assert len({kernel.llvm for kernel in kernels}) == 3
    assert len({kernel.assembly for kernel in kernels}) == 3


def test_instructions_are_the_targets() -> None:
    (kernel,) = ledger("matrix product").kernels
    is_fused = {name: "llvm.fma" in ledger("matrix product").for_target(name).kernels[0].llvm for name in TARGETS}
    assert is_fused == {name: name != "sse2" for name in TARGETS}
    halves = mt.jit(lambda x: x * 2).ledger(mt.zeros(100, dtype=mt.float16))
    converted = {name: "half" in halves.for_target(name).kernels[0].llvm for name in TARGETS}
    assert converted == {name: name != "sse2" for name in TARGETS}
    without = replace(kernel.target, fma=False, float16=False)
    assert "llvm.fma" not in ledger("matrix product").for_target(without).kernels[0].llvm
    assert "half" not in halves.for_target(without).kernels[0].llvm


def test_tiles_follow_from_registers_and_blocks_from_caches() -> None:
    """And the number of units from the number of cores."""
    large = mt.jit(lambda a, b: a @ b).ledger(mt.zeros(400, 500), mt.zeros(500, 600))
    one = replace(TARGETS["avx2"], cores=1)
    others = (replace(one, vector_registers=32), replace(one, caches=(1 << 14, 1 << 16, 1 << 20)))
    texts = {large.for_target(target).kernels[0].llvm for target in (one, *others)}
    assert len(texts) == 3
    units = [large.for_target(replace(one, cores=cores)).kernels[0].units for cores in (1, 4, 16)]
    assert units == sorted(units) and units[0] < units[-1]


@pytest.mark.parametrize("here", executable_targets()[1:])
def test_code_is_the_same_wherever_it_is_made(here: str) -> None:
    """Also where this machine is restricted to less than the target can do."""
    environment = {**os.environ, "MINITORCH_TARGET": here, "PYTHONPATH": str(ROOT)}
    code = "from tests.compiler.codegen.test_target import texts; print(texts(), end='')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == texts()


def test_what_is_switched_off_stays_off() -> None:
    graph = mt.jit(lambda x: x.softmax(-1)).stages(mt.zeros(64, 5000)).graph
    assert len(ledger_of(graph, host()).for_target("avx2").kernels) == 1
    assert len(ledger_of(graph, host(), without={ROWS}).for_target("avx2").kernels) > 1


def test_a_target_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="there is no target 'avx3'; there is 'sse2', 'avx2'"):
        ledger("softmax").for_target("avx3")
    assert target_named("avx2") is TARGETS["avx2"]


def test_features_make_the_instructions() -> None:
    assert [each.vector_bytes for each in TARGETS.values()] == [16, 32, 64, 16, 16]
    assert [each.vector_registers for each in TARGETS.values()] == [16, 16, 32, 32, 32]
    assert not any(each.avx512_vnni or each.avx_vnni for each in TARGETS.values())
    here = host()
    assert here.avx512_vnni == ("avx512vnni" in here.required)
    assert here.avx_vnni == ("avxvnni" in here.required)
