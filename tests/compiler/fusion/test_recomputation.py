"""Fusing recomputes little: by the cost model, a kernel takes at most three times the time of its nodes, each once."""

import pytest

import minitorch as mt
from minitorch.compiler.fusion.cost_model import BYTE, work
from tests.compiler.fusion.recomputed import PROGRAMS, random_program

F = mt.nn.functional
MOST = 3
FEW, MANY = 12, 500  # random programs, and with --sweep


def work_ratio(kernel):
    """Its time by the cost model, as a multiple of the time if it computed each node once."""
    traffic = BYTE * (kernel.bytes_read + kernel.bytes_written)
    return (kernel.operations.work + traffic) / max(1, sum(map(work, kernel.nodes)) + traffic)


def too_much(program, shapes):
    """The kernels that compute too often, with their multiples."""
    kernels = mt.jit(program).ledger(*(mt.ones(*shape) for shape in shapes)).kernels
    return {kernel.name: work_ratio(kernel) for kernel in kernels if kernel.loops and work_ratio(kernel) > MOST}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_kernel_computes_far_more_than_its_nodes(name):
    assert not too_much(*PROGRAMS[name])


def test_nor_do_those_of_random_programs(sweep):
    found = {seed: too_much(*random_program(seed)) for seed in range(MANY if sweep else FEW)}
    assert not {seed: kernels for seed, kernels in found.items() if kernels}


@pytest.mark.parametrize("name", ["pieces into a convolution", "depthwise convolution", "encoded positions"])
def test_the_ledger_says_why_a_value_is_stored(name):
    program, shapes = PROGRAMS[name]
    ledger = str(mt.jit(program).ledger(*(mt.ones(*shape) for shape in shapes)))
    assert "stored: expensive recomputation, each element" in ledger or "each element is read repeatedly" in ledger


def test_what_a_convolution_computes_repeatedly_counts_as_often():
    """Each element of an image is packed for nine places of a filter; of an operand of many rows more than once."""
    x, w = mt.ones(1, 4, 18, 18), mt.ones(16, 4, 3, 3)
    plain, doubled = (mt.jit(f).ledger(x, w) for f in (F.conv2d, lambda x, w: F.conv2d(x * 2, w)))
    (before,), (after,) = plain.kernels, doubled.kernels
    assert after.flops - before.flops >= 9 * 4 * 16 * 16
