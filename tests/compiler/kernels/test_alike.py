"""Groups of equal structure are lowered to loops once, and have the loops that each would have by itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.compiler.codegen.host import host
from minitorch.compiler.fusion import fusion_groups
from minitorch.compiler.kernels import ledger as ledgers
from minitorch.compiler.kernels.ledger import Ledger, ledger_of
from minitorch.compiler.scheduling.nests import PARTIAL

X, IMAGE, LONG = mt.rand(64, 64), mt.rand(2, 8, 12, 12), mt.rand(1 << 18)


def layers(x: mt.Tensor, *layer: Callable[[mt.Tensor], mt.Tensor]) -> mt.Tensor:
    for each in layer:
        x = each(x)
    return x


def attention(x: mt.Tensor) -> mt.Tensor:
    return F.scaled_dot_product_attention(x, x, x)


def gradient(x: mt.Tensor) -> mt.Tensor:
    return mt.grad(lambda x: layers(x, *[lambda x: F.softmax(x @ X, 1)] * 3).square().mean())(x)


def residual(x: mt.Tensor) -> mt.Tensor:
    for weight in mt.ones(4, 8, 8, 3, 3).unbind(0):
        x = F.relu(F.batch_norm(F.conv2d(x, weight, padding=1), x[0, :, 0, 0], weight[0, :, 0, 0]) + x)
    return x


PROGRAMS: dict[str, tuple[Callable[[mt.Tensor], Any], mt.Tensor, bool]] = {  # whether some groups are alike
    "equal layers": (lambda x: layers(x, *[lambda x: mt.tanh(x @ X)] * 3), X, True),
    "other numbers": (lambda x: layers(x, *[lambda x, by=by: mt.tanh(x @ X * by) for by in (1.5, 2.5)]), X, False),
    "zeros of both signs": (lambda x: [((x + by) @ X).sum(0) for by in (0.0, -0.0)], X, False),
    "other types": (lambda x: [(x.to(kind) * 2).sum(0) for kind in (mt.float16, mt.int8, mt.uint8)], X, False),
    "clamped bytes": (lambda x: [x.clamp(0, by).to(mt.int8).clamp(0, 99).cumsum(0) for by in (9, 50)], X, False),
    "stored and not": (lambda x: [F.softmax(x, 1).sum(1), (y := F.softmax(x + 1, 1)), y.sum(1)], X, False),
    "operands in another order": (lambda x: [(x - X.T).exp() @ X, (X.T - x).exp() @ X], X, False),
    "twice the same operand": (lambda x: [(x.exp() @ X), (x.sin() @ x)], X, False),
    "long sums": (lambda x: layers(x[0, 0], *[lambda y: (LONG + y).sum()] * 3), X, True),
    "attention": (lambda x: layers(x, *[attention] * 4), mt.rand(2, 64, 16), True),
    "a gradient": (gradient, X, True),
    "a residual network": (residual, IMAGE, True),
}  # fmt: skip


def described(ledger: Ledger) -> list[object]:
    """Return the kernels; a partial result is told by its shape and type."""
    nodes = [[n.spec if n.primitive is PARTIAL else n for n in kernel.buffers] for kernel in ledger.kernels]
    return [
        (each.name, each.nodes, each.reads, each.writes, each.loops, own)
        for each, own in zip(ledger.kernels, nodes, strict=True)
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_groups_of_equal_structure_have_the_loops_that_each_would_have(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, x, are_alike = PROGRAMS[name]
    graph = mt.jit(function).stages(x).graph
    found = ledger_of(graph, host())
    structure, number, keys = fusion_groups.structure, itertools.count(), list[object]()

    def alone(*given: Any) -> Any:
        key, numbers = structure(*given)
        keys.append(key)
        return next(number), numbers

    monkeypatch.setattr(ledgers, "structure", alone)
    assert described(found) == described(ledger_of(graph, host()))
    assert (len(set(keys)) < len(keys)) == are_alike
