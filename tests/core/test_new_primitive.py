"""A new pointwise primitive works everywhere from its declaration: the example of CONTRIBUTING.md, tried."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import minitorch as mt
from minitorch.compiler.codegen.instructions import PRIMITIVES as INSTRUCTIONS
from minitorch.errors import PARTS, TranslationError
from minitorch.ir import PRIMITIVES, Primitive

(EXAMPLE,) = re.findall(
    r"```python\n(from minitorch\.primitives.*?)```", Path("CONTRIBUTING.md").read_text(), re.DOTALL
)


@pytest.fixture
def squared() -> Iterator[Primitive]:
    space = {"np": np}
    exec(EXAMPLE, space)
    yield space["squared"]  # type: ignore[misc]
    del PRIMITIVES["squared"]
    PARTS.discard("squared")


@pytest.mark.parametrize("backend", ["interpret", "loops", "llvm"])
def test_one_declaration_serves_every_mode(squared: Primitive, backend: str) -> None:
    def loss(x: mt.Tensor) -> mt.Tensor:
        return (squared(x * 3) + 1).sum()

    x = mt.tensor([1.0, -2.0, 3.0], requires_grad=True)
    loss(x).backward()
    compiled = mt.jit(mt.value_and_grad(loss), backend=backend)
    value, grad = compiled(x.detach())
    assert value == loss(x.detach()) == 129
    assert x.grad is not None and grad.tolist() == x.grad.tolist() == [18, -36, 54]
    assert mt.jit(loss, check=True)(x.detach()) == 129
    with mt.lazy():
        assert loss(x.detach()).item() == 129


def test_its_cost_is_counted_and_its_graph_is_a_text(squared: Primitive) -> None:
    graph = mt.jit(lambda x: squared(x)).graph(mt.ones(8))
    assert graph.cost().flops == 8
    assert str(mt.Graph.parse(str(graph))).count("squared") == 1


@pytest.mark.parametrize("system", ["onnx", "jax"])
def test_other_systems_refuse_it_with_the_line(squared: Primitive, system: str) -> None:
    pytest.importorskip(system)
    with pytest.raises(TranslationError, match=r"MT802: squared(.|\n)*where: test_new_primitive.py:\d+"):
        if system == "onnx":
            mt.export.onnx(lambda x: squared(x), mt.ones(3))
        else:
            mt.jit(lambda x: squared(x), backend="xla")(mt.ones(3))


def test_an_element_that_is_part_of_loops_has_an_instruction() -> None:
    assert {name for name, each in PRIMITIVES.items() if each.element} <= INSTRUCTIONS.keys()
