"""A first compiled call loads the modules that it needs, and no others."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import minitorch as mt
from minitorch.packages import PACKAGES

# Looking at programs, checking and measuring them, reading and writing files: loaded when somebody asks for it.
NOT_NEEDED = ("data",)
OTHERS = ("jax", "torch", "scipy", "matplotlib", "IPython", "tqdm", "asyncio", "multiprocessing", "unittest")
FIRST_CALL = """
import sys
import minitorch as mt
mt.jit(mt.value_and_grad(lambda x: mt.softmax(x, -1).sum()))(mt.ones(2, 3))
print(*sys.modules)
"""


def test_a_first_compiled_call_loads_only_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setenv("MINITORCH_CACHE_DIR", str(tmp_path))
    loaded = subprocess.run([sys.executable, "-c", FIRST_CALL], check=True, capture_output=True, text=True).stdout
    modules = loaded.split()
    assert "minitorch.backends.llvm" in modules
    assert all(find_spec(f"minitorch.{name}") for name in NOT_NEEDED)
    assert {f"minitorch.{name}" for name in NOT_NEEDED}.isdisjoint(modules)
    assert {*OTHERS, *PACKAGES[1:]}.isdisjoint(name.partition(".")[0] for name in modules)


def test_names_that_are_loaded_later_are_there_all_the_same():
    assert {"data", "machine", "profile"} <= set(dir(mt))
    assert all(getattr(mt, name) is not None for name in mt.__all__)
    assert mt.profile is mt.profile
