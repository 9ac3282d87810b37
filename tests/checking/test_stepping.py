"""`values` and `debug`: what is inside kernels, by line and by name; and a real debugger at a real terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F

PROGRAM = """import minitorch as mt
import minitorch.nn.functional as F

def attend(q, k, v):
    scores = q @ k.transpose(-1, -2)
    p = scores.softmax(-1)
    out = p @ v
    return out

@mt.jit
def softmax(x):
    top = x.max(1, keepdim=True).values
    e = (x - top).exp()
    total = e.sum(1, keepdim=True)
    return e / total

@mt.jit
def attention(x):
    doubled = x * 2
    return attend(doubled, x, x)

weight = mt.ones(4, 3, requires_grad=True)
optimizer = mt.optim.SGD([weight], lr=0.5)

@mt.jit
def step(x, t):
    optimizer.zero_grad()
    logits = x @ weight
    loss = F.cross_entropy(logits, t)
    loss.backward()
    optimizer.step()
    return loss

def plain(x):
    y = x * 3
    mt.debug.breakpoint()
    z = y + 1
    return z

x = mt.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
"""


def line_of(text: str) -> int:
    return PROGRAM.splitlines().index(text) + 1


# values ---------------------------------------------------------------------------------------------------------


def test_values_of_a_softmax() -> None:
    @mt.jit
    def softmax(x: mt.Tensor) -> mt.Tensor:
        e = (x - x.max(1, keepdim=True).values).exp()
        total = e.sum(1, keepdim=True)
        return e / total

    x = mt.randn(3, 5)
    found = softmax.values(x)
    first = softmax.function.__code__.co_firstlineno + 2
    assert list(found) == [f"test_stepping.py:{first + offset}" for offset in range(3)] and len(found) == 3
    e = np.exp(x.numpy() - x.numpy().max(1, keepdims=True))
    assert np.array_equal(found.named("e").numpy(), e)
    assert np.array_equal(found.named("total").numpy(), e.sum(1, keepdims=True))
    (kernel,) = [kernel for kernel in softmax.ledger(x).kernels if "div" in kernel.name]
    assert all(value.kernels[-1] == kernel.name for value in found.rows[-4:])
    assert found.rows[-1].tensor.tolist() == (found.named("e") / found.named("total")).tolist()
    assert "exp: f32[3,5]" in str(found) and "test_stepping.py" in repr(found)
    with pytest.raises(KeyError):
        found.named("nothing")


def test_values_change_nothing_and_keep_what_was_optimised_away() -> None:
    count, generator = mt.zeros(()), mt.rand(1)

    @mt.jit
    def f(x: mt.Tensor, scale: float = 2.0) -> mt.Tensor:
        unused = x * 5
        for _ in range(2):
            x = x * 1 + mt.rand(2)
        count.add_(1)
        del unused
        return x * scale

    mt.manual_seed(3)
    values = f.values(mt.ones(2))
    assert values.named("unused").tolist() == [5, 5] and count.item() == 0
    mt.manual_seed(3)
    assert f(mt.ones(2)).tolist() == (values.named("x") * 2).tolist() and count.item() == 1
    assert len([row for row in values.rows if row.name == "x"]) == 2 and generator.shape == (1,)
    assert len(f.explain().signatures) == 1 and f.values(mt.ones(2), scale=3.0).rows


def test_values_of_an_attention_and_a_training_step() -> None:
    def attend(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
        p = (q @ k.transpose(-1, -2)).softmax(-1)
        return p @ v

    q, k, v = (mt.randn(2, 6, 4) for _ in range(3))
    p = mt.jit(attend).values(q, k, v).named("p")
    assert np.allclose(p.numpy(), (q @ k.transpose(-1, -2)).softmax(-1).numpy())

    model = mt.nn.Sequential(mt.nn.Linear(4, 8), mt.nn.Tanh(), mt.nn.Linear(8, 3))
    optimizer = mt.optim.Adam(model.parameters())

    @mt.jit
    def step(x: mt.Tensor, t: mt.Tensor) -> mt.Tensor:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, t)
        loss.backward()
        optimizer.step()
        return loss

    x, t = mt.randn(5, 4), mt.randint(0, 3, (5,))
    before = [parameter.tolist() for parameter in model.parameters()]
    found = step.values(x, t)
    assert np.allclose(found.named("logits").numpy(), model(x).detach().numpy())
    assert abs(found.named("loss").item() - F.cross_entropy(model(x), t).item()) < 1e-6
    assert [parameter.tolist() for parameter in model.parameters()] == before
    assert len(found) == 4  # logits, loss, backward and the optimiser


def test_debugging_needs_a_line_where_something_is_computed() -> None:
    f = mt.jit(lambda x: x.exp())
    with pytest.raises(ValueError, match=r"nothing is computed at nowhere.py:3, but at test_stepping.py:\d+"):
        f.debug(mt.ones(2), break_at="nowhere.py:3")


# The debugger ---------------------------------------------------------------------------------------------------


def session(folder: Path, call: str, *commands: str) -> str:
    """What a person sees who runs the program at a terminal, and types these commands at pdb's prompts."""
    pty = pytest.importorskip("pty")
    path = folder / "program.py"
    path.write_text(PROGRAM + call + "\n")
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONBREAKPOINT"} | {"TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, str(path)], stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True, env=environment
    )
    os.close(theirs)
    seen = ""
    waiting = list(commands)
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            try:
                new = os.read(ours, 4096).decode()
            except OSError:  # the other end is closed
                break
            if not new:
                break
            seen += new
            if seen.endswith("(Pdb) "):
                os.write(ours, (waiting.pop(0) if waiting else "q").encode() + b"\n")
    finally:
        os.close(ours)
        process.kill()
        process.wait()
    assert not waiting, seen
    return seen.replace("\r\n", "\n")


def test_break_at_a_line_of_a_softmax(tmp_path: Path) -> None:
    at = line_of("    total = e.sum(1, keepdim=True)")
    call = f"print('result', softmax.debug(x, break_at='program.py:{at}').sum().item())"
    seen = session(
        tmp_path, call, "p e.tolist()", "p x.shape, top.tolist()", "p len(kernels)", "n", "p total.tolist()", "c"
    )
    assert f"program.py({at})softmax()\n-> total = e.sum(1, keepdim=True)" in seen
    assert "[[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]" in seen
    assert "((2, 4), [[0.0], [1.0]])" in seen and "(Pdb) p len(kernels)\n1" in seen
    assert f"program.py({at + 1})softmax()\n-> return e / total" in seen and "[[4.0], [4.0]]" in seen
    assert seen.endswith("result 2.0\n")


def test_break_at_a_line_of_an_attention(tmp_path: Path) -> None:
    """Inside a helper; its own variables hide those of its caller."""
    at = line_of("    p = scores.softmax(-1)")
    seen = session(
        tmp_path,
        f"attention.debug(x, break_at='program.py:{at}')",
        "p scores.tolist()",
        "p q is doubled",
        "n",
        "p p.shape",
        "c",
    )
    assert f"program.py({at})attend()\n-> p = scores.softmax(-1)" in seen
    assert f"program.py({at + 1})attend()" in seen and "(2, 2)" in seen
    assert "[[0.0, 0.0], [0.0, 8.0]]" in seen and "(Pdb) p q is doubled\nTrue" in seen


def test_step_through_a_training_step(tmp_path: Path) -> None:
    at = line_of("    loss = F.cross_entropy(logits, t)")
    call = "print('loss', step.debug(x, mt.tensor([0, 1])).item(), weight.sum().item(), weight.grad.shape)"
    seen = session(tmp_path, call, "n", "p logits.shape", "b program.py:31", "c", "p loss.item() > 1", "c")
    assert f"program.py({at - 1})step()\n-> logits = x @ weight" in seen
    assert f"program.py({at})step()\n-> loss = F.cross_entropy(logits, t)" in seen and "(2, 3)" in seen
    assert "program.py(31)step()\n-> optimizer.step()" in seen and "True" in seen
    assert "loss 1.0986" in seen and "(4, 3)" in seen.splitlines()[-1]


def test_step_through_a_loop_that_comes_back_to_where_it_began(tmp_path: Path) -> None:
    call = """
@mt.jit
def loop(x):
    for _ in range(3):
        y = x + 1
        x = y * 2
    return x
loop.debug(mt.zeros(2))"""
    seen = session(tmp_path, call, *["n"] * 4, "p x.tolist()", "n", "p x.tolist()")
    assert [line for line in seen.splitlines() if line.startswith("-> ")] == ["-> y = x + 1", "-> x = y * 2"] * 3
    assert "(Pdb) p x.tolist()\n[6.0, 6.0]" in seen and "--Call--" not in seen


def test_quitting_the_debugger_changes_nothing(tmp_path: Path) -> None:
    call = (
        "try: step.debug(x, mt.tensor([0, 1]))\nexcept BaseException as e: print(type(e).__name__, weight.sum().item())"
    )
    assert session(tmp_path, call, "q").endswith("BdbQuit 12.0\n")


@pytest.mark.parametrize("run", ["plain(x)", "mt.jit(plain)(x)", "mt.jit(plain, backend='interpret')(x)"])
def test_a_breakpoint_in_the_program(tmp_path: Path, run: str) -> None:
    seen = session(tmp_path, f"print('result', {run}.sum().item())", "p y.tolist()", "p x.sum().item(), mt.pi > 3", "c")
    stops_after = run.startswith("plain") and sys.version_info < (3, 13)  # from then on, pdb stops at the call itself
    at = line_of("    mt.debug.breakpoint()")
    shown = (at + 1, "z = y + 1") if stops_after else (at, "mt.debug.breakpoint()")
    assert f"program.py({shown[0]})plain()\n-> {shown[1]}" in seen
    assert "[[0.0, 0.0, 0.0, 0.0], [3.0, 3.0, 3.0, 3.0]]" in seen and "(4.0, True)" in seen
    assert seen.endswith("result 20.0\n")


def test_a_breakpoint_in_a_session_and_a_lazy_block(tmp_path: Path) -> None:
    call = """
with mt.lazy():
    y = x * 2
    mt.debug.breakpoint()
    print('lazy', y.sum().item())
with mt.Graph() as g:
    a = mt.placeholder((2,), name='a')
    b = a * 3
    mt.debug.breakpoint()
print('session', mt.Session(g).run(b, {'a': [1.0, 2.0]}).tolist())
"""
    seen = session(tmp_path, call, "p y.sum().item()", "c", "p b.tolist()", "c")
    assert "(Pdb) p y.sum().item()\n8.0" in seen and "lazy 8.0" in seen
    assert "(Pdb) p b.tolist()\n[3.0, 6.0]" in seen and seen.endswith("session [3.0, 6.0]\n")


def test_nothing_is_paid_for_what_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary call neither traces for names nor makes a debugger; and none stays behind."""

    def refuse(*args: Any) -> None:
        raise AssertionError("used")

    f = mt.jit(lambda x: x.exp())
    before = sys.gettrace()
    f.values(mt.ones(2))
    assert sys.gettrace() is before
    monkeypatch.setattr("minitorch_checking.stepping.names_of", refuse)
    monkeypatch.setattr("minitorch_checking.naming.Names.collected", refuse)
    monkeypatch.setattr("minitorch_checking.debugger.Debugger.__init__", refuse)
    f(mt.ones(2)), f(mt.ones(3))
