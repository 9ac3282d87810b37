"""What the fuzzer makes of differences from PyTorch: of two roundings, which is the worse one; and where views lie."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch as mt
from fuzz.judge import Reference, judge
from fuzz.outcome import run
from fuzz.program import Program, Ref, Statement
from fuzz.values import Input
from minitorch.nn import functional as F

pytest.importorskip("torch")


def test_pytorch_in_float64_says_which_of_two_roundings_is_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of a batch of two rows cancels, and bfloat16 leaves PyTorch no digit of it."""
    x = Input("x", (2, 8), "bfloat16", "normal", 4, requires_grad=True)
    program = Program(
        (x,), (Statement(("y",), "F.batch_norm", (Ref("x"), None, None), {"training": True}),), ("y",), backward=True
    )
    found = run(program, "torch")
    assert judge(Reference(program, run(program, "eager")), "torch", found) == []
    right = F.batch_norm
    monkeypatch.setattr(F, "batch_norm", lambda *args, **kwargs: right(*args, **kwargs) * 1.5)
    (finding,) = judge(Reference(program, run(program, "eager")), "torch", found)
    assert finding.kind == "value"


def test_what_has_no_memory_shares_none() -> None:
    """PyTorch's gradient of a sign is a tensor that is only said to be zero."""
    x = Input("x", (3,), "float32", requires_grad=True)
    signs, total = Statement(("y",), "mt.sgn", (Ref("x"),)), Statement(("z",), "mt.sum", (Ref("y"),))
    gradient = Statement(("g",), "mt.autograd.grad({}, {})[0]", (Ref("z"), Ref("x")))
    program = Program((x,), (signs, total, gradient), ("g",))
    found = run(program, "torch")
    assert found.sharing == frozenset() and np.all(found.values["call 0, g"] == 0)
    assert judge(Reference(program, run(program, "eager")), "torch", found) == []


@pytest.mark.parametrize("name", ("F.rms_norm", "mt.sign"))
def test_only_rounding_excuses_another_shape(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ones that were rounded may have many distinct values; signs have two."""
    x = Input("x", (2, 2, 3, 1), "float32", "normal", 4)
    arguments = (Ref("x"), (1,)) if name == "F.rms_norm" else (Ref("x"),)
    body = (Statement(("y",), name, arguments), Statement(("z",), "mt.unique", (Ref("y"),)))
    program = Program((x,), body, ("z",))
    found = run(program, "torch")
    assert judge(Reference(program, run(program, "eager")), "torch", found) == []
    right = mt.unique
    monkeypatch.setattr(mt, "unique", lambda x: mt.cat((right(x), mt.ones(1))))
    kinds = [finding.kind for finding in judge(Reference(program, run(program, "eager")), "torch", found)]
    assert kinds == ([] if name == "F.rms_norm" else ["shape"])
