"""Whole models and training steps: how many kernels they are, and that these compute what eager mode does."""

import numpy as np
import pytest

import minitorch as mt
from benchmarks.cases import rnn_loss
from benchmarks.cases import transformer_block as block_of
from benchmarks.libraries import HEADS, Minitorch
from minitorch.compiler.fusion import fuse
from minitorch.compiler.runtime import program_steps

F = mt.nn.functional
LIBRARY = Minitorch()


def layer(rows, columns):
    return [mt.randn(rows, columns) / rows**0.5, mt.randn(columns) * 0.1]


def mlp():
    parameters = [*layer(20, 33), *layer(33, 10)]

    def loss(x, target):
        w1, b1, w2, b2 = parameters
        return F.cross_entropy(F.gelu(x @ w1 + b1) @ w2 + b2, target)

    return parameters, loss, [mt.randn(17, 20), mt.randint(0, 10, (17,))]


def block():
    width = 8 * HEADS
    norms = [[1 + 0.1 * mt.randn(width), 0.1 * mt.randn(width)] for _ in range(2)]
    parameters = [
        *norms[0], *layer(width, 3 * width), *layer(width, width),
        *norms[1], *layer(width, 4 * width), *layer(4 * width, width),
    ]  # fmt: skip

    def loss(x, target):
        return F.mse_loss(block_of(LIBRARY, parameters, x), target)

    return parameters, loss, [mt.randn(2, 24, width), mt.randn(2, 24, width)]


def rnn():
    parameters = [layer(8, 8)[0], *layer(8, 8)]
    return parameters, lambda x, target: rnn_loss(LIBRARY, parameters, x, target), [mt.randn(60, 5, 8), mt.randn(5, 8)]


def adam(parameters):
    return mt.optim.Adam(parameters, 1e-2, eps=1e-3)


def sgd(parameters):
    return mt.optim.SGD(parameters, 0.1, momentum=0.9)


MODELS = {"MLP": (mlp, adam, 10), "transformer block": (block, sgd, 40), "RNN": (rnn, sgd, 8)}


def trained(name, wrap, count=3):
    """Losses and parameters after some steps, and what ran them."""
    make, optimizing, _ = MODELS[name]
    mt.manual_seed(0)
    parameters, loss, data = make()
    for p in parameters:
        p.requires_grad_()
    optimizer = optimizing(parameters)

    def step(x, target):
        optimizer.zero_grad()
        value = loss(x, target)
        value.backward()
        optimizer.step()
        return value.detach()

    run = wrap(step)
    losses = [run(*data).numpy() for _ in range(count)]
    return [*losses, *(p.detach().numpy() for p in parameters)], run, data


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


@pytest.fixture
def two_thread_counts():
    before = mt.get_num_threads()
    yield 1, 2
    mt.set_num_threads(before)


def test_a_training_step_is_few_kernels_and_equal_to_eager(name):
    expected, _, _ = trained(name, lambda step: step)
    found, step, data = trained(name, mt.jit)
    assert len(step.ledger(*data).kernels) <= MODELS[name][2]
    assert not any(kernel.kind == "call" for kernel in step.ledger(*data).kernels)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-5)


def test_a_training_step_is_fused_twice(name, monkeypatch):
    """Once to decide what is stored, and once for good, unless a kernel then computes too much again."""
    _, step, data = trained(name, mt.jit, 1)
    fused, ordered = [], vars(fuse)["_ordered"]
    monkeypatch.setattr(fuse, "_ordered", lambda roots, home: fused.append(roots) or ordered(roots, home))
    step.ledger(*data).for_target("avx2")
    assert len(fused) == 2


def test_threads_change_no_bit(name, two_thread_counts, monkeypatch):
    monkeypatch.setattr(program_steps, "GRAIN", 1000)  # so that these small kernels are shared
    results = []
    for count in two_thread_counts:
        mt.set_num_threads(count)
        results.append(trained(name, mt.jit)[0])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def kernels_of(function, *args):
    return mt.jit(function).ledger(*args).kernels


def test_a_linear_layer_with_gelu_is_one_kernel():
    x, w, b = mt.randn(17, 20), mt.randn(33, 20), mt.randn(33)
    for how in ("none", "tanh"):
        (kernel,) = kernels_of(lambda x, w, b, how=how: F.gelu(F.linear(x, w, b), how), x, w, b)
        assert kernel.kind == "K4"


def test_a_transformer_block_forward_is_at_most_nine():
    parameters, _, (x, _) = block()
    assert len(kernels_of(lambda x: block_of(LIBRARY, parameters, x), x)) <= 9


def test_a_recurrent_network_of_sixty_steps_is_one():
    parameters, _, (x, target) = rnn()
    (kernel,) = kernels_of(lambda x, target: rnn_loss(LIBRARY, parameters, x, target), x, target)
    assert len(kernel.phases) > 60
    assert 2 < kernel.llvm.count("define internal") < 30  # not sixty times as many


def test_nests_that_begin_elsewhere_share_a_function_and_find_their_own_elements():
    def function(x):
        y = x[1]
        for number in range(2, 6):
            y = (mt.tanh(y) @ w + x[number]).cumsum(0) if number == 4 else mt.tanh(y) @ w + x[number, :, :3].sum()
        return y

    w, x = mt.randn(4, 4), mt.randn(6, 5, 4)
    np.testing.assert_allclose(mt.jit(function)(x).numpy(), function(x).numpy(), rtol=1e-4, atol=1e-5)
