"""Kernels that differ only in the offsets of their buffers share machine code, and each reads its own part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.compiler.codegen import machine
from minitorch.compiler.codegen.host import host
from minitorch.compiler.kernels.ledger import ledger_of
from minitorch.compiler.runtime.isolated import by_machine, by_python, given, run_alone

PROGRAMS = {
    "slices": lambda x: mt.cat([(x[n] @ x[n + 1]).exp() for n in range(3)]),
    "backwards": lambda x: (x[1:].flip(2) * x[:-1].flip(0)).sum(2),
    "windows with a border": lambda x: mt.nn.functional.pad(x, (1, 2, 0, 1))[2, 1:].cumsum(0) + x[0, 0, 0],
    "a border": lambda x: mt.nn.functional.pad(x, (2, 1)).exp(),
    "rows that data choose": lambda x: x[1:][mt.tensor([2, 0, 1])] + x[1],
    "two phases": lambda x: x[2:].softmax(2).sum() * x[3, 1, 2],
    "in place": lambda x: x.clone()[1:3].mul_(2).sum(1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code_that_counts_from_the_first_element_reads_and_writes_what_the_loops_say(name: str) -> None:
    x = mt.tensor(np.linspace(-1, 1, 4 * 9 * 9, dtype=np.float32).reshape(4, 9, 9))
    graph = mt.jit(PROGRAMS[name]).stages(x).graph
    fused = ledger_of(graph, host())
    arrays = [x.numpy(), *(np.zeros(node.shape, node.dtype.numpy) for node in graph.inputs[1:])]
    assert given(graph, arrays)
    results = [run_alone(fused, arrays, run) for run in (by_machine, by_python)]
    for compiled, expected in zip(*results, strict=True):
        np.testing.assert_allclose(compiled, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mt.jit(PROGRAMS[name])(x).numpy(), PROGRAMS[name](x).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_element_that_machine_code_counts_from_is_in_the_buffer(name: str) -> None:
    fused = ledger_of(mt.jit(PROGRAMS[name]).stages(mt.rand(4, 9, 9)).graph, host())
    for kernel in fused.kernels:
        if kernel.loops is not None:
            for node, moved in zip(kernel.buffers, kernel.compiled[1], strict=True):
                assert 0 <= moved < node.spec.nbytes


def gated(weights: list[mt.Tensor], x: mt.Tensor) -> mt.Tensor:
    """A GRU over all steps of its input (Cho and others, arXiv:1406.1078), unrolled."""
    w, u, b, c = weights
    width = u.shape[1]
    state = mt.zeros(x.shape[1], width)
    for now in x:
        i, h = now @ w.T + b, state @ u.T + c
        reset = mt.sigmoid(i[:, :width] + h[:, :width])
        update = mt.sigmoid(i[:, width : 2 * width] + h[:, width : 2 * width])
        new = mt.tanh(i[:, 2 * width :] + reset * h[:, 2 * width :])
        state = (1 - update) * new + update * state
    return state


@pytest.mark.parametrize("width", [16, 64])
def test_more_steps_of_an_unrolled_loop_compile_no_more_functions(
    width: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("MINITORCH_CACHE_DIR", str(tmp_path))
    compiled: list[str] = []
    once = machine.compile_ir
    monkeypatch.setattr(machine, "compile_ir", lambda text, *rest: compiled.append(text) or once(text, *rest))
    for steps in (6, 12):
        compiled.clear()
        weights = [mt.rand(3 * width, width) / 8, mt.rand(3 * width, width) / 8, mt.rand(3 * width), mt.rand(3 * width)]
        x = mt.rand(steps, 32, width)
        result = mt.jit(gated)(weights, x)
        np.testing.assert_allclose(result.numpy(), gated(weights, x).numpy(), rtol=1e-4, atol=1e-5)
        assert bool(compiled) == (steps == 6)  # the same functions serve the longer loop
