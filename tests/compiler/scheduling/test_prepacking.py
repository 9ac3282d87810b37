"""Prepacking: what is packed of constants is packed once, when the program is loaded, with the same bits."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.backends.llvm import Compiled
from minitorch.compiler.codegen.host import executable_targets
from minitorch.compiler.kernels.kernel import Kernel
from minitorch.compiler.loop_ir.tree import Place, allocated, loaded
from minitorch.compiler.runtime import filling
from minitorch.compiler.target import target_named
from minitorch.passes import lowered
from tests.quantization.passes.test_channels_last import converted

TARGETS = ("sse2", "avx2", "avx512")


def frozen_layers(*widths: int) -> Any:
    layers = [nn.Linear(*pair) for pair in itertools.pairwise(widths)]
    return nn.Sequential(*[each for layer in layers for each in (layer, nn.ReLU())]).eval()


def kernels(model: Any, x: mt.Tensor, target: str) -> tuple[Kernel, ...]:
    return mt.freeze(model, x, backend="loops").ledger(x).for_target(target).kernels


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [1, 5, 64])
def test_frozen_linear_layers_pack_nothing_per_call(rows: int, target: str) -> None:
    model, x = frozen_layers(96, 128, 100, 10), mt.randn(rows, 96)
    assert sum(each.per_call for kernel in kernels(model, x, target) for each in kernel.packed) == 0
    if rows == 64:
        with mt.no_grad():
            unfrozen = mt.jit(model).ledger(x).for_target(target).kernels
        assert sum(each.per_call for kernel in unfrozen for each in kernel.packed) > 0
        assert any(each.size for kernel in kernels(model, x, target) for each in kernel.packed)


@pytest.mark.parametrize("target", TARGETS)
def test_an_operand_that_is_an_argument_is_packed_in_every_call(target: str) -> None:
    x, y = mt.randn(64, 96), mt.randn(128, 96)
    (kernel,) = mt.freeze(lambda x, y: x @ y.T, x, y).ledger(x, y).for_target(target).kernels
    assert kernel.packed and all(each.per_call > 0 for each in kernel.packed)


@pytest.mark.parametrize("target", TARGETS)
def test_the_array_is_filled_before_the_loops_that_threads_share(target: str) -> None:
    x = mt.randn(64, 96)
    (kernel,) = kernels(nn.Linear(96, 128).eval(), x, target)
    assert kernel.schedule[-1].name == "prepack"
    (procedure,) = kernel.steps[-1].procedures
    (array,), once, body = loaded(procedure)
    assert array.place is Place.LOADED and array.name == "right" and once
    assert not any(local.name == "right" and local.place is Place.STACK for local in allocated(body))
    assert kernel.units > 0 and "filled when the program is loaded" in kernel.steps[-1].source


def test_it_keeps_every_bit() -> None:
    """The last step beside the one before it, which packs in every call, for products of all layouts."""
    random = np.random.default_rng(0)
    for rows, depth, width, turned in [
        (64, 96, 128, False),
        (64, 300, 70, True),
        (17, 33, 65, True),
        (40, 7, 9, False),
    ]:
        weight = mt.tensor(random.standard_normal((width, depth) if turned else (depth, width)).astype(np.float32))
        x = mt.tensor(random.standard_normal((rows, depth)).astype(np.float32))
        frozen = mt.freeze(lambda x, w=weight, t=turned: (x @ (w.T if t else w)).exp(), x)
        (kernel,) = frozen.ledger(x).kernels
        if kernel.schedule[-1].name == "prepack":
            assert np.array_equal(kernel.steps[-1](x).numpy(), kernel.steps[-2](x).numpy())
        expected = np.exp(x.numpy().astype(np.float64) @ (weight.numpy().T if turned else weight.numpy()))
        np.testing.assert_allclose(frozen(x).numpy(), expected, rtol=1e-3)


@pytest.mark.parametrize("target", [name for name in TARGETS if name in executable_targets()])
def test_programs_for_all_targets(target: str) -> None:
    """Convolutions, batches, blocks of k and several layers, on every target that this machine can run."""
    mt.manual_seed(1)
    convolution = nn.Sequential(nn.Conv2d(3, 20, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(20 * 100, 33)).eval()
    batched = mt.randn(3, 50, 70)
    cases: list[tuple[Any, mt.Tensor]] = [
        (convolution, mt.randn(5, 3, 10, 10)),
        (frozen_layers(40, 200, 30), mt.randn(65, 40)),
        (nn.Linear(3000, 24).eval(), mt.randn(33, 3000)),
        (lambda x: x @ batched, mt.randn(3, 40, 50)),
        (lambda x: batched.transpose(1, 2) @ x, mt.randn(3, 50, 64)),
        (lambda x: x @ batched[0].half().float(), mt.randn(40, 50)),
    ]
    for model, x in cases:
        frozen = mt.freeze(model, x, backend="interpret")
        graph = frozen.stages(x).graph
        compiled = Compiled(lowered(graph), target=target_named(target))
        with mt.no_grad():
            expected = model(x).numpy()
        for _ in range(2):
            (found,) = compiled([x.numpy()])
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_programs_share_code_and_have_their_own_weights() -> None:
    """Two layers of one shape are one piece of machine code, and each has its own packed weights."""
    one, other, x = nn.Linear(96, 96).eval(), nn.Linear(96, 96).eval(), mt.randn(64, 96)
    frozen = mt.freeze(lambda x: (one(x), other(x)), x)
    with mt.no_grad():
        for found, layer in zip(frozen(x), (one, other), strict=True):
            np.testing.assert_allclose(found.numpy(), layer(x).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_weight_of_several_layers_is_packed_once(dtype: str) -> None:
    """By kernels with other epilogues, by other signatures and by other programs, as long as one of them lives."""
    layer, x = nn.Linear(96, 128).eval(), mt.randn(64, 96)
    model: Any = layer if dtype == "float32" else converted(layer, x)
    gc.collect()
    known = set(filling.HELD)
    frozen = mt.freeze(lambda x: [model(x), model(x + 1).relu(), model(x * 2).exp()], x)
    expected = [model(x), model(x + 1).relu(), model(x * 2).exp()]
    for found, wanted in zip(frozen(x), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-3, atol=1e-4)
    made = [held for key, held in filling.HELD.items() if key not in known]
    (signature,) = frozen.explain().signatures
    assert len(frozen.ledger(x).kernels) > 1 and len(made) == 1
    assert signature.packed_bytes == made[0].filling.nbytes
    del made
    frozen(mt.randn(64, 96)), frozen(mt.randn(128, 96))
    alike = {held.filling.arrays for key, held in filling.HELD.items() if key not in known}
    assert len([key for key in filling.HELD if key not in known]) == len(alike)
    del frozen, found, signature
    gc.collect()
    assert set(filling.HELD) <= known


def test_explain_counts_what_is_packed() -> None:
    model, x = nn.Linear(96, 128).eval(), mt.randn(64, 96)
    (signature,) = mt.freeze(model, x).explain().signatures
    packs = [each for kernel in mt.freeze(model, x).ledger(x).kernels for each in kernel.packed]
    assert signature.packed_per_call == 0 and signature.packed_bytes == sum(each.size for each in packs)
    assert "packed once" in str(signature) or not packs


def test_zeros_that_the_kernel_itself_stores_are_not_packed_before_it_runs() -> None:
    """A constant is filled when the program is loaded only if its elements are in the program."""

    def program(x: mt.Tensor, w: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        zeros = mt.zeros(2, 3)
        return mt.tanh(x + zeros @ w.T), zeros

    x, w = mt.randn(2, 3), mt.randn(3, 3)
    (kernel,) = mt.jit(program).ledger(x, w).kernels
    assert [buffer.constant for buffer in kernel.loops.buffers if buffer.written] == [False, False]
    result, zeros = mt.jit(program)(x, w)
    np.testing.assert_allclose(result.numpy(), x.tanh().numpy(), rtol=1e-5, atol=1e-6)
    assert not zeros.any()
