"""Everything public says what it does, and shows it: a docstring with an example, which the doctests run."""

from __future__ import annotations

import inspect

import pytest

import minitorch as mt
from minitorch import profiler

NAMESPACES = {
    "nn.functional": mt.nn.functional,
    "nn": mt.nn,
    "optim": mt.optim,
    "data": mt.data,
    "autograd": mt.autograd,
    "profiler": profiler,
}

PUBLIC = {f"minitorch.{name}": value for name, value in mt.functional.FUNCTIONS.items()}
PUBLIC |= {
    f"minitorch.{space}.{name}": getattr(module, name)
    for space, module in NAMESPACES.items()
    for name in module.__all__
    if not inspect.ismodule(getattr(module, name)) and name != "Context"  # made by the engine, shown in `Function`
}


@pytest.mark.parametrize("name", PUBLIC)
def test_has_a_docstring_with_an_example(name):
    assert ">>> " in (inspect.getdoc(PUBLIC[name]) or ""), f"{name} has no example in its docstring"


def test_every_method_of_a_tensor_has_a_docstring():
    public = [name for name in dir(mt.Tensor) if not name.startswith("_")]
    assert [name for name in public if not inspect.getdoc(getattr(mt.Tensor, name))] == []
