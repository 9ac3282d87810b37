"""Products of a vector with weights in few bits: one kernel, which reads them once and applies scales to groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch import primitives as P
from minitorch import quantization as q
from minitorch.compiler.codegen.host import executable_targets, host
from minitorch.compiler.codegen.listing import inner_loops
from minitorch.compiler.kernels.kernel import Kernel
from minitorch.compiler.target import TARGETS, Target

Array = np.ndarray[Any, Any]
ALL: dict[str, Target] = TARGETS | {"native": host()}


def layer(rows: int, k: int, bits: int, group: int | None) -> Any:
    mt.manual_seed(rows + k)
    return q.quantize_weights_(nn.Linear(k, rows), bits, group)


def kernel_of(model: Any, x: mt.Tensor, target: str) -> Kernel:
    (kernel,) = mt.jit(model).ledger(x).for_target(ALL[target]).kernels
    return kernel


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize(("bits", "group"), [(4, 64), (8, 64)])
def test_one_kernel_reads_the_bytes_once(target: str, bits: int, group: int | None) -> None:
    model = layer(24, 256, bits, group)
    kernel = kernel_of(model, mt.randn(1, 256), target)
    assert [each.name for each in kernel.schedule].count("factor_out") == 1, "a scale for each group, not for each term"
    stored = sum(each.nbytes for each in (model.weight, model.scale, model.bias))
    assert (kernel.bytes_read, kernel.bytes_written) == (stored + 4 * 256, 4 * 24)


@pytest.mark.parametrize("target", executable_targets())
def test_random_shapes_are_the_product_of_the_dequantised_weight(target: str) -> None:
    random = np.random.default_rng(16)
    for _ in range(6):
        bits, group = int(random.choice([4, 8])), int(random.choice([8, 16, 32, 40, 64, 96, 128]))
        rows, k = int(random.integers(2, 40)), group * int(random.integers(1, 6))
        model = layer(rows, k, bits, group)
        weight = model.dequantized().numpy().astype(np.float64)
        for shape in ((1, k), (3, k)):
            x = random.standard_normal(shape).astype(np.float32)
            kernel = kernel_of(model, mt.tensor(x), target)
            arrays = [x, *(each.numpy() for each in (model.weight, model.scale, model.bias))]
            given = [
                next(one for one in arrays if one.shape == node.shape) for node in kernel.reads if node.inputs == ()
            ]
            found = kernel.steps[-1](*given).numpy().reshape(shape[0], rows)
            np.testing.assert_allclose(found, x @ weight.T + model.bias.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", [name for name in executable_targets() if name.startswith("avx")])
def test_a_shift_by_a_known_number_is_one_instruction(target: str) -> None:
    """Of two halves of a byte, the one is masked, the other shifted; nothing asks whether the shift is too far."""
    kernel = kernel_of(layer(16, 256, 4, 64), mt.randn(1, 256), target)
    text = "\n".join(str(each) for each in inner_loops(kernel.assembly))
    assert "vpsrld" in text
    assert not any(name in text for name in ("vpblend", "vpcmp", "vpsrlv", "vpmin"))


@pytest.mark.parametrize("length", [2, 8])
def test_integers_known_in_written_out_loops_are_computed_as_in_eager_mode(length: int) -> None:
    y = mt.randn(5, length)

    def places() -> mt.Tensor:
        return mt.arange(length, dtype=mt.int32)

    functions = (
        lambda y: (P.bitcast(places(), dtype=mt.uint32).to(mt.float32) + y).sum(-1),
        lambda y: ((places() // mt.tensor(0, dtype=mt.int32)).to(mt.float32) * y).sum(-1),
        lambda y: (((places() << 31) >> 3).to(mt.float32) * y).sum(-1),
        lambda y: ((mt.arange(length, dtype=mt.uint8) * 200).to(mt.float32) * y).sum(-1),
    )
    for function in functions:
        np.testing.assert_allclose(mt.jit(function)(y).numpy(), function(y).numpy(), rtol=1e-5)
