"""Printing, breakpoints and the hunt for NaN, in every mode."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.compiler.runtime import isolated
from minitorch.errors import NonFiniteError

Captured = pytest.CaptureFixture[str]
BACKENDS = ["interpret", "llvm", "loops"]


def both(function: Callable[..., Any], *args: Any, capsys: Captured, backend: str) -> tuple[str, str]:
    """What a function prints in eager mode, and what it prints compiled, at its second call."""
    function(*args)
    eager = capsys.readouterr().out
    jitted = mt.jit(function, backend=backend)
    jitted(*args)
    assert capsys.readouterr().out == eager
    jitted(*args)
    return eager, capsys.readouterr().out


# print ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_prints_come_in_program_order(capsys: Captured, backend: str) -> None:
    """What is printed twice, what nobody else uses, and what is written in place in between."""

    def f(x: mt.Tensor, w: mt.Tensor) -> mt.Tensor:
        mt.debug.print("begin")
        y = x * 2
        mt.debug.print("y = {}", y)
        mt.debug.print("y = {}", y)
        mt.debug.print("dead {:.1f} {w}", (y + 1).sum(), w=w)
        w.add_(1)
        mt.debug.print("{0} {1[a]} {0!r:>6} {{}}", 3, {"a": w})
        return y.sum()

    x = mt.tensor([1.0, 2.0])
    f(x, mt.zeros(2))
    expected = "begin\ny = [2. 4.]\ny = [2. 4.]\ndead 8.0 [0. 0.]\n3 [1. 1.]      3 {}\n"
    assert capsys.readouterr().out == expected
    jitted = mt.jit(f, backend=backend)
    for _ in range(2):
        jitted(x, mt.zeros(2))
        assert capsys.readouterr().out == expected


def softmax(show: Callable[..., None]) -> Callable[..., mt.Tensor]:
    def f(x: mt.Tensor) -> mt.Tensor:
        e = (x - x.max(1, keepdim=True).values).exp()
        show("e {}", e)
        s = e.sum(1, keepdim=True)
        show("s {s}", s=s)
        return e / s

    return f


def attention(show: Callable[..., None]) -> Callable[..., mt.Tensor]:
    def f(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
        scores = q @ k.transpose(-1, -2) * 0.25
        show("scores {}", scores.mean())
        p = scores.softmax(-1)
        show("p {}", p.sum(-1))
        return p @ v

    return f


def training_step(show: Callable[..., None], **options: Any) -> tuple[mt.nn.Sequential, Any]:
    mt.manual_seed(0)
    model = mt.nn.Sequential(mt.nn.Linear(8, 16), mt.nn.ReLU(), mt.nn.Linear(16, 4))
    optimizer = mt.optim.Adam(model.parameters(), lr=1e-2)

    def step(x: mt.Tensor, t: mt.Tensor) -> mt.Tensor:
        optimizer.zero_grad()
        logits = model(x)
        show("logits {}", logits.sum())
        loss = F.cross_entropy(logits, t)
        show("loss {:.3f}", loss)
        loss.backward()
        show("grad {}", model[0].weight.grad.abs().sum() > 0)
        optimizer.step()
        show("bias {:.6f}", model[2].bias[0])
        return loss

    return model, mt.jit(step, **options)


def silent(*args: Any, **kwargs: Any) -> None:
    return None


@pytest.mark.parametrize("make", [softmax, attention])
def test_printing_changes_no_bit_and_no_kernel(make: Any, capsys: Captured) -> None:
    args = [mt.randn(5, 9)] if make is softmax else [mt.randn(2, 6, 4) for _ in range(3)]
    printing, plain = mt.jit(make(mt.debug.print)), mt.jit(make(silent))
    assert printing(*args).numpy().tobytes() == plain(*args).numpy().tobytes()
    assert len(printing.ledger(*args).kernels) == len(plain.ledger(*args).kernels)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[0].isalpha()] == (
        ["e", "s"] if make is softmax else ["scores", "p"]
    )


@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_a_training_step_prints_and_learns_the_same(backend: str, capsys: Captured) -> None:
    (one, printing), (two, plain) = (training_step(show, backend=backend) for show in (mt.debug.print, silent))
    x, t = mt.randn(32, 8), mt.randint(0, 4, (32,))
    for _ in range(3):
        before = two[2].bias[0].item()
        assert printing(x, t).item() == plain(x, t).item()
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert [line[0] for line in lines] == ["logits", "loss", "grad", "bias"]
        assert lines[2][1] == "True" and abs(float(lines[3][1]) - two[2].bias[0].item()) < 1e-5 < abs(
            float(lines[3][1]) - before
        )
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert a.tolist() == b.tolist()


def test_hooks_print_where_backward_runs(capsys: Captured) -> None:
    weight = mt.ones(2, requires_grad=True)

    def f(x: mt.Tensor) -> mt.Tensor:
        y = weight * x
        mt.debug.print("forward {}", y)
        y.register_hook(lambda grad: mt.debug.print("backward {} at {}", grad, y))
        return (y * y).sum()

    for function in (f, mt.jit(f), mt.jit(f, backend="interpret")):
        loss = function(mt.full((2,), 3.0))
        assert capsys.readouterr().out == "forward [3. 3.]\n"
        (grad,) = mt.autograd.grad(loss, [weight], create_graph=True)
        assert capsys.readouterr().out == "backward [6. 6.] at [3. 3.]\n"
        assert grad.tolist() == [18, 18]


@pytest.mark.parametrize("backend", BACKENDS)
def test_lazy(backend: str, capsys: Captured) -> None:
    with mt.lazy(backend=backend):
        x = mt.ones(2) * 3
        mt.debug.print("first {}", x)
        x.add_(1)
        mt.debug.print("second {}", x)
        assert capsys.readouterr().out == ""
        x.tolist()
        assert capsys.readouterr().out == "first [3. 3.]\nsecond [4. 4.]\n"
        mt.debug.print("third")
    assert capsys.readouterr().out == "third\n"


@pytest.mark.parametrize("backend", BACKENDS)
def test_session_prints_what_its_feeds_allow(backend: str, capsys: Captured) -> None:
    weight = mt.ones(2)
    with mt.Graph() as g:
        x, y = (mt.placeholder((2,), name=name) for name in "xy")
        mt.debug.print("x {}", x * weight)
        z = x + 1
        mt.debug.print("y {}", y)
        update = weight.mul_(2)
        mt.debug.print("weight {}", weight)
    session = mt.Session(g, backend=backend)
    session.run(z, {"x": [1.0, 2.0]})
    assert capsys.readouterr().out == "x [1. 2.]\nweight [2. 2.]\n"
    session.run(update, {"x": [1.0, 2.0], y: [0.0, 0.0]})
    assert capsys.readouterr().out == "x [1. 2.]\ny [0. 0.]\nweight [2. 2.]\n"
    session.run(z, {"x": [1.0, 2.0]})
    assert capsys.readouterr().out == "x [2. 4.]\nweight [4. 4.]\n"


def test_a_jitted_function_prints_inside_another(capsys: Captured) -> None:
    inner = mt.jit(lambda x: (mt.debug.print("inner {}", x), x * 2)[1])

    @mt.jit
    def outer(x: mt.Tensor) -> mt.Tensor:
        y = inner(x)
        mt.debug.print("outer {}", y)
        return y

    outer(mt.ones(1))
    assert capsys.readouterr().out == "inner [1.]\nouter [2.]\n"


def test_random_numbers_are_those_of_the_call(capsys: Captured) -> None:
    @mt.jit
    def draw() -> mt.Tensor:
        x = mt.rand(3)
        mt.debug.print("{}", x)
        return x

    for _ in range(2):
        x = draw()
        assert capsys.readouterr().out == f"{x.numpy()}\n"


def test_wrong_texts_are_refused_when_they_are_traced() -> None:
    x = mt.ones(2)
    for text in ("x", f"x = {x}", "{}{}"):
        for mode in (lambda f: f, mt.jit):
            with pytest.raises((ValueError, IndexError)):
                mode(lambda x, text=text: mt.debug.print(text, x))(x)
    with pytest.raises(ValueError, match=r"0.*not print\(f"):
        mt.debug.print("nothing", x)
    with pytest.raises(ValueError, match="'w'"):
        mt.debug.print("{}", x, w=x)
    with pytest.raises(KeyError):
        mt.debug.print("{w}")


# breakpoint -----------------------------------------------------------------------------------------------------


def test_breakpoints_call_the_debugger_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def hook() -> None:
        frame = __import__("sys")._getframe(1)
        seen.append({"line": frame.f_lineno, "name": frame.f_code.co_name, **frame.f_globals, **frame.f_locals})

    def f(x: mt.Tensor) -> mt.Tensor:
        rows: list[Any] = [x * 2, 5]
        y: mt.Tensor = rows[0] + 1
        mt.debug.breakpoint()
        y = y * 0
        return y

    monkeypatch.setattr("sys.breakpointhook", hook)
    for function in (f, mt.jit(f), mt.jit(f, backend="interpret")):
        function(mt.ones(2))
        found = seen.pop()
        assert found["y"].tolist() == [3, 3] and found["rows"][0].tolist() == [2, 2] and found["rows"][1] == 5
        assert found["x"].tolist() == [1, 1] and found["np"] is np
        assert found["name"] == "f" and found["line"] == f.__code__.co_firstlineno + 3
    assert not seen


def test_a_breakpoint_in_a_graph_passes_over_the_tensors_of_other_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a notebook all graphs of earlier cells are among the names that can be seen."""
    with mt.Graph():
        other = mt.placeholder(3, name="other").exp()
    seen = []
    monkeypatch.setattr("sys.breakpointhook", lambda: seen.append(__import__("sys")._getframe(1).f_locals))
    with mt.Graph() as g:
        x = mt.placeholder(2, name="x")
        y = x * 2
        mt.debug.breakpoint()
    assert mt.Session(g).run(y, {x: [1, 2]}).tolist() == [2, 4]
    assert seen[0]["y"].tolist() == [2, 4] and seen[0]["other"] is other


# check_nan ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_first_nan_inside_a_kernel_is_named(backend: str) -> None:
    def f(x: mt.Tensor) -> mt.Tensor:
        y = x.exp() * 2
        z = (y - 4).log()
        return (z + 1).sum(1)

    with pytest.raises(NonFiniteError) as caught, mt.debug.check_nan():
        mt.jit(f, backend=backend)(mt.zeros(3, 4))
    assert "log made 12 NaN" in str(caught.value)
    assert f"test_debug.py:{f.__code__.co_firstlineno + 2}" in str(caught.value)


def test_a_nan_in_a_sum_that_is_computed_in_parts_is_named() -> None:
    f = mt.jit(lambda x: x.log().sum())
    x = mt.ones(1000, 300)
    assert "when all of that is done" in f.ledger(x).kernels[0].source
    with pytest.raises(NonFiniteError, match="log made 300000 NaN"), mt.debug.check_nan():
        f(-x)


def test_only_the_kernel_concerned_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    replays: list[int] = []
    replayed = isolated.replayed
    monkeypatch.setattr(isolated, "replayed", lambda *args: [replays.append(1), *replayed(*args)][1:])

    @mt.jit
    def f(x: mt.Tensor) -> mt.Tensor:
        y = (x @ x) @ x
        return y.log().sum() + (x @ y).sum()

    with mt.debug.check_nan():
        f(mt.ones(4, 4))
    assert not replays
    with pytest.raises(NonFiniteError, match="log"), mt.debug.check_nan():
        f(-mt.ones(4, 4))
    assert len(replays) == 1


def test_what_is_only_passed_on_is_not_blamed() -> None:
    @mt.jit
    def f(x: mt.Tensor, mask: mt.Tensor) -> mt.Tensor:
        return (x + mask).softmax(1)

    mask = mt.tensor([[0.0, -np.inf, 0.0]])
    with mt.debug.check_nan():
        f(mt.randn(2, 3), mask)
        f(mt.full((2, 3), np.nan), mask)
    overflow = mt.jit(lambda x: (x * 1e30) * 1e30)
    with mt.debug.check_nan(infinities=False):
        overflow(mt.ones(3))
    with pytest.raises(NonFiniteError, match="infinite"), mt.debug.check_nan():
        overflow(mt.ones(3))


# In a kernel of Jupyter -----------------------------------------------------------------------------------------

IN_A_KERNEL = """
import pdb, sys, types
from unittest import mock
import IPython.core.debugger

pdb.Pdb = IPython.core.debugger.Pdb  # as a kernel does


def debugpy_breakpointhook():
    print("passed over")


sys.breakpointhook = debugpy_breakpointhook  # as a kernel does, which has loaded debugpy
sys.modules["debugpy"] = types.SimpleNamespace(is_client_connected=lambda: False)

import minitorch as mt


@mt.jit
def f(x):
    y = x * 2
    mt.debug.breakpoint()
    return y + 1


with mock.patch("builtins.input", side_effect=["p y.tolist()", "c"]):
    f(mt.ones(2))
with mock.patch("builtins.input", side_effect=["n", "c"]):
    mt.jit(lambda x: mt.exp(x), backend="interpret").debug(mt.zeros(2))
"""


def test_in_a_kernel_of_jupyter(tmp_path: Path) -> None:
    """The debugger is IPython's there, and JupyterLab's own passes over breakpoints unless it is switched on."""
    pytest.importorskip("IPython")
    (tmp_path / "train.py").write_text(IN_A_KERNEL)
    environment = {**os.environ, "PYTHONPATH": str(Path(mt.__file__).parent.parent), "IPYTHONDIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert "[2.0, 2.0]" in run.stdout, run.stderr
    assert "passed over" not in run.stdout and "skipped" not in run.stdout
