"""Every processor whose code this machine can run: its code is compiled and run in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minitorch.compiler.codegen.host import executable_targets

ROOT = Path(__file__).parents[3]
COMPILING = "tests.compiler.codegen.compiling"


def child(target: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MINITORCH_TARGET": target, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


# Random graphs beside the plainest way to run them, and the laws about bits for some of the expressions.
SAME_BITS = "beyond or maximum or (products and float32) or (casts and float16) or (gelu and float64)"
LAWS = {
    "tests/compiler/codegen/test_bits.py": SAME_BITS,
    "tests/backends/test_llvm.py": "random",
    "tests/compiler/codegen/test_masks.py": "test",
    "tests/nn/test_pooling.py": "every_window and float64",
}


@pytest.mark.parametrize("target", executable_targets()[-2:])  # the suite itself runs those of this machine
def test_the_laws_hold_for_every_target(target: str, sweep: bool) -> None:
    chosen = " or ".join(f"({Path(file).name} and ({names}))" for file, names in LAWS.items())
    done = child(
        target, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *LAWS, "-k", chosen, *["--sweep"] * sweep
    )
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", executable_targets())
def test_llvm_digests_every_form(target: str) -> None:
    """Numbers, rows and constants of all types; an assertion of LLVM's would end the process."""
    done = child(target, "-W", "ignore", "-m", COMPILING)
    last = done.stdout.splitlines()[-1]
    assert done.returncode == 0, f"MINITORCH_TARGET={target} python -m {COMPILING} {last!r}: {done.stderr[-1000:]}"
