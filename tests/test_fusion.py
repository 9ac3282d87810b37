"""What becomes one kernel: counted, never timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.compiler.schedule import Schedule, schedule


def scheduled(function: Callable[..., Any], *args: mt.Tensor) -> Schedule:
    return schedule(mt.jit(function, backend="interpret").stages(*args).graph)


ROWS, COLUMNS = 12, 40
X = mt.rand(ROWS, COLUMNS)
G = mt.rand(ROWS, COLUMNS)
W = mt.rand(COLUMNS)
B = mt.rand(COLUMNS)


def gradient_of(function: Callable[..., Any], *primals: mt.Tensor) -> Any:
    return mt.vjp(function, *primals)[1](G)


def chain(x: mt.Tensor) -> mt.Tensor:
    for number in range(20):
        x = (x * 1.5 + number).tanh() if number % 5 == 0 else x * 0.5 - x.abs()
    return x


def moved(x: mt.Tensor) -> mt.Tensor:
    return (x.T * 2 + 1)[1:9, ::2].flip(0).reshape(-1, 2).T


FORWARD: dict[str, tuple[Callable[..., Any], tuple[mt.Tensor, ...], int]] = {
    "chain": (chain, (X,), 1),
    "movement": (moved, (X,), 1),
    "bias and relu": (lambda x, b: (x + b).relu(), (X, B), 1),
    "softmax over rows": (lambda x: x.softmax(1), (X,), 1),
    "softmax over columns": (lambda x: x.softmax(0), (X,), 1),
    "log_softmax": (lambda x: x.log_softmax(1), (X,), 1),
    "log_softmax over columns": (lambda x: x.log_softmax(0), (X,), 1),
    "logsumexp": (lambda x: x.logsumexp(1), (X,), 1),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (COLUMNS,), w, b), (X, W, B), 1),
    "rms_norm": (lambda x, w: F.rms_norm(x, (COLUMNS,), w), (X, W), 1),
    "variance": (lambda x: x.var(1), (X,), 1),
    "softmax gradient": (lambda x: gradient_of(lambda x: x.softmax(1), x), (X,), 2),
    "log_softmax gradient": (lambda x: gradient_of(lambda x: x.log_softmax(1), x), (X,), 2),
    "layer_norm gradient": (
        lambda x, w, b: gradient_of(lambda x, w, b: F.layer_norm(x, (COLUMNS,), w, b), x, w, b),
        (X, W, B),
        2,
    ),
    "rms_norm gradient": (
        lambda x, w: gradient_of(lambda x, w: F.rms_norm(x, (COLUMNS,), w), x, w),
        (X, W),
        2,
    ),
}


@pytest.mark.parametrize("name", FORWARD)
def test_kernels(name: str) -> None:
    function, args, most = FORWARD[name]
    assert len(scheduled(function, *args).kernels) <= most


def test_an_optimiser_step_over_many_parameters() -> None:
    parameters = [mt.nn.Parameter(mt.rand(3 + number, 5)) for number in range(20)]
    gradients = [mt.rand(3 + number, 5) for number in range(20)]
    optimizer = mt.optim.Adam(parameters, lr=1e-3)

    def update(gradients: list[mt.Tensor]) -> None:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
        optimizer.zero_grad()

    found = mt.jit(update, backend="llvm").ledger(gradients)
    assert len(found.kernels) <= 2
    assert found.kernels[-1].kind == "K5"


def test_a_fused_chain_reads_and_writes_once() -> None:
    (kernel,) = scheduled(chain, X).kernels
    assert (kernel.bytes_read, kernel.bytes_written) == (X.nbytes, X.nbytes)
    assert kernel.kind == "K1"


def test_softmax_is_row_resident() -> None:
    (kernel,) = scheduled(lambda x: x.softmax(1), X).kernels
    assert (kernel.kind, kernel.bytes_read, kernel.bytes_written) == ("K3", X.nbytes, X.nbytes)


def test_the_ledger_names_a_reason_for_every_edge_that_is_not_fused() -> None:
    found = scheduled(lambda x, w: (x @ w.reshape(COLUMNS, 1)).exp().sum(), X, W)
    reasons = {edge.reason for edge in found.edges if not edge.fused}
    assert reasons and all(reasons)
    assert "a library call" in " ".join(reasons)
    assert all(edge.bytes == 2 * edge.producer.spec.nbytes for edge in found.edges)
    assert "kernels" in str(found)


def test_an_expensive_value_that_is_repeated_is_stored() -> None:
    found = scheduled(lambda x: x.exp().unsqueeze(1) * mt.rand(400, COLUMNS), mt.rand(400, COLUMNS))
    assert any("repeatedly" in edge.reason for edge in found.edges if not edge.fused)
