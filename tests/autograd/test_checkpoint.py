"""`mt.checkpoint`: the same results and gradients, with less kept between forward and backward."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import AutogradError

F = mt.nn.functional
WIDTH, LAYERS = 16, 4


def block(x, w, p=0.0):
    y = F.gelu(x @ w)
    return mt.exp(mt.sin(F.dropout(y, p) if p else y)) * 0.1 + mt.tanh(x)


def within(x, w, p=0.0):
    """A checkpoint within whatever calls it, and something before and after."""
    return mt.checkpoint(block, mt.sin(x), w, p) * 2


def training(call, p=0.0, layer=block):
    """A step of some layers, each called through `call`; its parameters, and its input."""
    mt.manual_seed(3)
    weights = [mt.randn(WIDTH, WIDTH).requires_grad_() for _ in range(LAYERS)]
    x = mt.randn(8, WIDTH)

    def step(x):
        for w in weights:
            w.grad = None
        y = x
        for w in weights:
            y = call(layer, y, w, p)
        loss = (y * y).mean()
        loss.backward()
        return loss.detach()

    return step, weights, x


def directly(function, *args):
    return function(*args)


def results(call, p=0.0, layer=block, wrap=lambda step: step):
    step, weights, x = training(call, p, layer)
    step = wrap(step)
    values = [step(x).numpy() for _ in range(2)]
    return [*values, *(w.grad.numpy() for w in weights), mt.rand(3).numpy()]


def saved_bytes(tensor):
    """What the tape behind a tensor holds, but for the leaves."""
    found, seen, pending = {}, set(), [tensor._entry]
    while pending:
        entry = pending.pop()
        if entry is None or entry.serial in seen:
            continue
        seen.add(entry.serial)
        pending += [each._entry for each in entry.inputs]
        kept = [each for each in entry.inputs if each._entry is not None or not each._requires_grad]
        for each in (*kept, entry.output):  # a saved output has no entry, and is no leaf
            if isinstance(each._value, np.ndarray):
                base = each._value if each._value.base is None else each._value.base
                found[id(base)] = base.nbytes
    return sum(found.values())


@pytest.mark.parametrize("layer", [block, within])
@pytest.mark.parametrize("p", [0.0, 0.5])
def test_gradients_are_equal_to_the_bit_and_random_numbers_go_on(p, layer):
    for a, b in zip(results(directly, p, layer), results(mt.checkpoint, p, layer), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("layer", [block, within])
def test_traced_and_deferred_steps_are_equal_too(layer):
    def lazily(step):
        def run(x):
            with mt.lazy():
                return step(x)

        return run

    expected = results(directly, 0.5, layer)
    wrap: Any
    for wrap in (mt.jit, lazily, lambda step: mt.jit(step, backend="interpret")):
        for a, b in zip(results(mt.checkpoint, 0.5, layer, wrap), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_a_session_has_it_too():
    with mt.Graph() as g:
        x = mt.placeholder((3,), name="x")
        w = mt.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = mt.checkpoint(lambda x, w: mt.exp(mt.sin(x * w)), x, w)
        (gradient,) = mt.autograd.grad(y.sum(), [w])
    value = np.array([0.1, 0.2, 0.3], np.float32)
    found = mt.Session(g).run(gradient, {x: value})
    product = value * np.array([1, 2, 3], np.float32)
    np.testing.assert_allclose(np.asarray(found), value * np.cos(product) * np.exp(np.sin(product)), rtol=1e-6)


def test_the_tape_keeps_the_arguments_alone():
    def forward(call):
        w = mt.ones(64, 64, requires_grad=True)
        y = mt.ones(64, 64)
        for _ in range(4):
            y = call(lambda y: mt.exp(mt.sin(mt.exp(mt.sin(y * w) * 0.1))), y)
        return y

    size = 64 * 64 * 4
    with_all, with_few = saved_bytes(forward(directly)), saved_bytes(forward(mt.checkpoint))
    assert with_all >= 16 * size and with_few == 0  # the arguments are held by the checkpoint itself


@pytest.mark.parametrize("operation", [mt.tanh, mt.exp, mt.sqrt, lambda x: x / 2.0])
def test_values_that_gradients_read_from_results_are_freed(operation):
    """Measured: after the forward pass, only the input of each checkpoint and its result are in memory."""

    def layers(x):
        for _ in range(8):
            x = operation(x * 0.5)
        return x

    x = mt.rand(100, 100).requires_grad_()
    with mt.profile() as directly_measured:
        y = layers(x)
    with mt.profile() as measured:
        z = mt.checkpoint(layers, x)
    size = 100 * 100 * 4
    assert measured.live[-1][1] < 2 * size and directly_measured.live[-1][1] >= 8 * size
    y.sum().backward()
    expected, x.grad = x.grad.tolist(), None
    z.sum().backward()
    assert mt.equal(x.grad, mt.tensor(expected))


def test_compiled_the_peak_is_lower_and_the_work_is_done_twice():
    def loss(call):
        weights = [mt.full((256, 256), 0.01 * (n + 1)).requires_grad_() for n in range(6)]

        def two_layers(x, a, b):
            return F.gelu(F.gelu(F.gelu(x @ a) @ b) @ a)

        def step(x):
            for w in weights:
                w.grad = None
            y = x
            for a, b in zip(weights[::2], weights[1::2], strict=True):
                y = call(two_layers, y, a, b)
            (y * y).mean().backward()
            return [w.grad for w in weights]

        return mt.jit(step)

    x = mt.full((4096, 256), 0.1)
    usual, twice = loss(directly).cost(x), loss(mt.checkpoint).cost(x)
    assert twice.peak_bytes < 0.8 * usual.peak_bytes
    assert twice.flops > 1.2 * usual.flops


def test_second_derivatives_and_a_second_backward():
    def cube(x):
        return mt.exp(mt.log(x) * 3)

    x = mt.tensor([1.0, 2.0], requires_grad=True)
    (first,) = mt.autograd.grad(mt.checkpoint(cube, x).sum(), [x], create_graph=True)
    (second,) = mt.autograd.grad(first.sum(), [x])
    np.testing.assert_allclose(second.numpy(), [6, 12], rtol=1e-5)
    y = mt.checkpoint(cube, x).sum()
    y.backward(retain_graph=True)
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), [6, 24], rtol=1e-5)


def test_structures_keywords_and_what_is_no_tensor():
    x = mt.tensor([1.0, 2.0], requires_grad=True)

    def function(pair, power, *, scale):
        a, b = pair["both"]
        return {"sum": a**power + b, "times": (a * scale, power)}

    result = mt.checkpoint(function, {"both": [x, mt.exp(x)]}, 3, scale=2.0)
    assert result["times"][1] == 3
    (result["sum"].sum() + result["times"][0].sum()).backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * x.detach().numpy() ** 2 + np.exp(x.detach().numpy()) + 2, rtol=1e-6)


def test_without_gradients_it_is_a_call():
    with mt.no_grad():
        assert not mt.checkpoint(mt.exp, mt.ones(2, requires_grad=True)).requires_grad
    assert not mt.checkpoint(mt.exp, mt.ones(2)).requires_grad


def test_what_it_reads_may_not_be_overwritten():
    x = mt.ones(2, requires_grad=True)
    factor = mt.full((2,), 3.0)
    y = mt.checkpoint(lambda x, factor: mt.exp(x) + factor, x, factor)
    factor.mul_(2)
    with pytest.raises(AutogradError, match="MT402"):
        y.sum().backward()


@pytest.mark.parametrize("how", [lambda function: function, mt.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("reads", [lambda x, y: x * y, lambda x, y: mt.exp(x + y)], ids=["saved", "not saved"])
@pytest.mark.parametrize("is_recorded", [True, False])
def test_what_it_reads_from_elsewhere_may_not_be_overwritten_either(how, reads, is_recorded):
    """Without the checkpoint the second one would be right: but the sum that `exp` saw is computed anew."""

    def loss(x, w):
        y = w * 2 if is_recorded else mt.full((2,), 3.0)
        z = mt.checkpoint(lambda x: reads(x, y), x)
        with mt.no_grad():
            y.zero_()
        return z.sum()

    x, w = mt.ones(2, requires_grad=True), mt.ones(2, requires_grad=True)
    value = how(loss)(x, w)
    with pytest.raises(AutogradError, match="MT402: something that it reads of the recorded <lambda>"):
        value.backward()


@mt.jit
def compiled(c):
    return c * 2


factor = mt.full((2,), 3.0)
READS: dict[str, Callable[..., Any]] = {
    "an operation": lambda: factor + 1,
    "a view": lambda: factor[1] + 1,
    "a comparison": lambda: mt.where(factor > 4, 1.0, 2.0),
    "its number": lambda: factor[0].item() + 1,
    "its array": lambda: mt.tensor(factor.numpy() + 1),
    "a condition": lambda: 1.0 if (factor > 4).all() else 2.0,
    "a compiled function": lambda: compiled(factor),
    "what a compiled function captures": mt.jit(lambda: factor * 2),
    "a copy": lambda: mt.zeros(2).copy_(factor),
    "a checkpoint within": lambda: mt.checkpoint(lambda: factor + 1),
}
HOW: dict[str, Callable[..., Any]] = {
    "eager": lambda loss: loss,
    "jit": mt.jit,
    "lazy": lambda loss: lambda x: in_lazy(loss, x),
}


def in_lazy(loss, x):
    with mt.lazy():
        return loss(x)


NO_VALUE_YET = {("jit", "its number"), ("jit", "its array"), ("jit", "a condition")}  # refused while tracing


@pytest.mark.parametrize(("how", "reads"), sorted({(how, reads) for how in HOW for reads in READS} - NO_VALUE_YET))
def test_nor_what_is_read_by_operations_that_are_not_recorded(how, reads):
    """What is computed from it is computed again. If nobody has written to it, or only before, all is well."""

    def loss(x, after):
        factor.fill_(3)
        z = mt.checkpoint(lambda x: mt.exp(x * READS[reads]()), x)
        if after:
            factor.fill_(5)
        return z.sum()

    def gradient(after):
        x = mt.tensor([0.5, 0.25], requires_grad=True)
        HOW[how](lambda x: loss(x, after))(x).backward()
        return x.grad

    x = mt.tensor([0.5, 0.25], requires_grad=True)
    factor.fill_(3)
    mt.exp(x * READS[reads]()).sum().backward()
    np.testing.assert_allclose(gradient(False).numpy(), x.grad.numpy(), rtol=1e-6)
    with pytest.raises(AutogradError, match=r"MT402: something that it reads .*\n.*it was read at test_checkpoint.py"):
        gradient(True)


def test_what_it_writes_itself_it_may_write_again():
    """Running means, which others may go on with; and the random state."""
    norm, x = mt.nn.BatchNorm1d(3), mt.randn(4, 3, requires_grad=True)
    y = mt.checkpoint(lambda x: F.dropout(norm(x), 0.5), x)
    mt.rand(3)
    norm(x)
    y.sum().backward()
    assert norm.num_batches_tracked.item() == 3 and x.grad is not None


def test_functions_with_gradients_of_their_own_are_run_again():
    kept = []

    class Double(mt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            kept.append(ctx)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert ctx is kept[-1] and len(kept) == 2
            return g * 2 * ctx.saved_tensors[0] / ctx.saved_tensors[0]

    x = mt.tensor([1.0, 2.0], requires_grad=True)
    mt.checkpoint(lambda x: Double.apply(mt.exp(x)), x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp([1, 2]), rtol=1e-6)
