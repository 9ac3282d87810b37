"""The packages beside the engine: their public names, and the engine without them."""

from __future__ import annotations

import importlib
import os
import pickle
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

import minitorch as mt
from minitorch import packages
from tools.clone import ROOT


@pytest.mark.parametrize("name", packages.BESIDE)
def test_a_package_is_one_module_under_both_names(name: str) -> None:
    pytest.importorskip("jax")
    real = packages.BESIDE[name]
    module = importlib.import_module(f"minitorch.{name}")
    assert module is getattr(mt, name) is importlib.import_module(real)
    assert module.__name__ == module.__spec__.name == real
    if not hasattr(module, "__path__"):
        return
    files = Path(str(module.__file__)).parent.glob("[a-z]*.py")
    for inner in sorted(path.stem for path in files)[:1]:
        assert importlib.import_module(f"minitorch.{name}.{inner}") is importlib.import_module(f"{real}.{inner}")


def test_a_class_has_one_identity_whichever_name_it_is_imported_by() -> None:
    pytest.importorskip("jax")
    from minitorch.sharding import Mesh

    assert pickle.loads(pickle.dumps(Mesh)) is Mesh is mt.sharding.Mesh


def test_a_name_is_one_object_in_all_threads_and_after_a_patch(monkeypatch: pytest.MonkeyPatch) -> None:
    home, both = ModuleType("home"), threading.Barrier(2)
    monkeypatch.setitem(sys.modules, "home", home)

    def made(name: str, value: object) -> list[object]:
        both.wait(60)  # both threads have found nothing, and make one each
        return [name, value]

    found, _ = packages.names_from("home", {"pi": "math"}, made)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(found, ["pi", "pi"])
    assert first is second is vars(home)["pi"]
    del vars(home)["pi"]  # as the end of a patch does
    assert found("pi") is first is vars(home)["pi"]


_PATCHED = """
import weakref
import minitorch as mt
F = mt.nn.functional
for name in F.__all__:
    setattr(F, name, lambda *inputs: 1 / 0)
fakes = [weakref.ref(getattr(F, name)) for name in F.__all__]
for name in mt.nn.__all__:
    getattr(mt.nn, name)
for name in F.__all__:
    delattr(F, name)
assert not [each for each in fakes if each()], "something has kept a function that was there for a while"
assert mt.nn.GELU.function is F.gelu and round(mt.nn.GELU()(mt.ones(1)).item(), 4) == 0.8413
"""


def test_modules_first_loaded_under_a_patch_of_functions_do_not_keep_it() -> None:
    subprocess.run([sys.executable, "-c", _PATCHED], check=True, cwd=ROOT)


def test_the_engine_works_without_them(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "minitorch", tmp_path / "minitorch", ignore=shutil.ignore_patterns("__pycache__"))
    program = """
import sys
sys.path = [path for path in sys.path if not path.endswith("extras")]
import minitorch as mt

assert mt.__file__.startswith(sys.argv[1])
f = mt.jit(lambda x: (x * 2 + 1).sum())
assert f(mt.ones(3)) == 9 and "1 kernel" in str(f.explain()) and len(f.stages(mt.ones(3)).texts) > 8
assert mt.jit(lambda x: x + 1)(mt.ones(2, dtype=mt.uint8)).tolist() == [2, 2]  # its passes are not there
model, x = mt.nn.Sequential(mt.nn.Linear(2, 2), mt.nn.LSTM(2, 1)), mt.ones(4, 2)
optimizer = mt.optim.Adam(model.parameters())
with mt.Graph() as graph:
    given = mt.placeholder((4, 2))
    fetched = model(given)[0]
with mt.lazy():
    pending = model(x)[0]
for found in (mt.Session(graph).run(fetched, {given: x}), pending, mt.jit(model)(x)[0]):
    assert (found - model(x)[0]).abs().max() < 1e-6

@mt.jit
def step(x):
    optimizer.zero_grad()
    loss = mt.nn.functional.mse_loss(model(x)[0], mt.zeros(4, 1))
    loss.backward()
    optimizer.step()
    return loss

assert step(x) > step(x) > step(x)
for asked in (lambda: mt.sharding, lambda: mt.jit(lambda x: x, backend="xla")(mt.ones(3))):
    try:
        asked()
    except ModuleNotFoundError as error:
        print(error)
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    says = "needs the package minitorch_xla, which is not installed"
    assert done.stdout.splitlines() == [f"minitorch_xla.sharding {says}", f"minitorch_xla.backend {says}"]
