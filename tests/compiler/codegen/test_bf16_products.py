"""Products of 16-bit floats keep denormal numbers, which the processor's own bfloat16 products do not."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch as mt
from tools import bf16_products

# Operands and their product; the first is a denormal bfloat16, the second pair has a denormal float32 product.
DENORMAL = [(1e-39, 1e30), (1e-20, 1e-20)]


@pytest.mark.skipif(not bf16_products.is_there(), reason="the processor has no vdpbf16ps")
@pytest.mark.parametrize(("a", "b"), DENORMAL)
def test_the_instruction_takes_denormal_numbers_for_zero(a: float, b: float) -> None:
    assert bf16_products.product(1.5, -2.0) == -3.0
    assert bf16_products.product(a, b) == 0.0


@pytest.mark.parametrize(("a", "b"), DENORMAL)
def test_a_compiled_product_does_not(a: float, b: float) -> None:
    """The law that all modes have one meaning; so no kernel has the instruction."""
    left = mt.full((32, 64), a, dtype=mt.bfloat16)
    right = mt.full((64, 32), b, dtype=mt.bfloat16)
    compiled = mt.jit(lambda x, y: x @ y)
    expected, found = left @ right, compiled(left, right)
    assert expected.float().min().item() > 0
    np.testing.assert_allclose(found.float().numpy(), expected.float().numpy(), rtol=2.0**-8)
    (kernel,) = compiled.ledger(left, right).kernels
    assert "vdpbf16ps" not in kernel.assembly


def test_a_kernel_of_bfloat16_reads_half_and_computes_as_much() -> None:
    costs = {}
    for dtype in (mt.float32, mt.bfloat16):
        a, b = mt.ones(64, 128, dtype=dtype), mt.ones(128, 32, dtype=dtype)
        costs[dtype] = mt.jit(lambda a, b: a @ b, backend="interpret").cost(a, b)
    assert costs[mt.bfloat16].bytes * 2 == costs[mt.float32].bytes
    assert costs[mt.bfloat16].flops == costs[mt.float32].flops
