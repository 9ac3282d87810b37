"""The tape: what it records, how it is walked, what it keeps alive, and functions of functions."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd import Function, gradcheck
from minitorch.errors import AutogradError
from minitorch.ir import Node
from minitorch.tensor import TapeEntry


def leaf(*values):
    return mt.tensor(values, dtype=mt.float64, requires_grad=True)


# backward and grad --------------------------------------------------------------------------------


def test_gradients_accumulate_until_they_are_forgotten():
    x = leaf(1.0, 2.0)
    for times in (1, 2, 3):
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0 * times, 4.0 * times]
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3] and not x.grad.requires_grad


def test_a_tape_is_walked_once_unless_it_is_retained():
    x = leaf(3.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [12]
    with pytest.raises(AutogradError, match="MT403"):
        y.backward()
    with pytest.raises(AutogradError, match="MT403"):
        (y * 2).backward()
    assert x.grad.tolist() == [12]


def test_a_cotangent_is_needed_unless_the_result_is_one_number():
    x = leaf(1.0, 2.0)
    with pytest.raises(AutogradError, match="MT404"):
        (x * x).backward()
    (x * x).backward(mt.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2, 40] and x.grad.dtype is mt.float64
    with pytest.raises(AutogradError, match="MT404"):
        (x * x).backward(mt.ones(3))
    (x[:1] * 2).backward()
    assert x.grad.tolist() == [4, 40]


def test_what_depends_on_no_leaf_has_no_gradient():
    with pytest.raises(AutogradError, match="MT405"):
        mt.ones(1).backward()
    x = leaf(1.0)
    with mt.no_grad():
        y = x * 2
    with pytest.raises(AutogradError, match="MT405"):
        y.backward()


def test_grad_is_torchs():
    x, y, unused = leaf(2.0), leaf(3.0), leaf(1.0)
    z = x * x * y
    assert [g.item() for g in mt.autograd.grad(z, [x, y], retain_graph=True)] == [12, 4]
    assert mt.autograd.grad([z, z], x, [mt.ones(1), mt.full((1,), 10.0)], retain_graph=True)[0].item() == 132
    assert mt.autograd.grad(z, [x, unused], allow_unused=True, retain_graph=True)[1] is None
    with pytest.raises(AutogradError, match="MT405"):
        mt.autograd.grad(z, unused)
    assert x.grad is None and y.grad is None
    inner = x * x
    assert mt.autograd.grad(inner * y, [inner, x])[0].item() == 3


@pytest.mark.parametrize(
    ("function", "derivatives"),
    [
        (lambda x: x**5, [5, 20, 60, 120, 120, 0]),
        (lambda x: mt.exp(2 * x), [2 * np.exp(2), 4 * np.exp(2), 8 * np.exp(2)]),
        (lambda x: mt.sin(x), [np.cos(1), -np.sin(1), -np.cos(1), np.sin(1)]),
        (lambda x: 1 / x, [-1, 2, -6, 24]),
    ],
)
def test_higher_orders(function, derivatives):
    x = leaf(1.0)
    y = function(x)
    for expected in derivatives:
        (y,) = mt.autograd.grad(y.sum(), x, create_graph=True, allow_unused=True) if y.requires_grad else (x * 0,)
        assert y.item() == pytest.approx(expected, abs=1e-9)


def test_a_penalty_on_the_gradient_by_backward_twice():
    x = leaf(1.0, 2.0)
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    assert first.requires_grad
    x.grad = None
    (first**2).sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [2 * 3 * 6 * 1, 2 * 12 * 12])


def test_diamonds_and_shared_parts_are_summed():
    x = leaf(3.0)
    y = x * x
    z = y + y * x + y
    z.backward()
    assert x.grad.item() == 2 * 2 * 3 + 3 * 9
    x.grad = None
    (x + x + x).backward()
    assert x.grad.item() == 3


def test_each_entry_is_visited_once_in_a_ladder_of_diamonds():
    x, visits = leaf(1.0), []
    y = x
    for _ in range(60):  # 2**60 paths
        y = y + y
        y.register_hook(lambda g: visits.append(1))
    y.backward()
    assert x.grad.item() == 2.0**60 and len(visits) == 60


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a * b,
        lambda a, b: a / (b + 3),
        lambda a, b: mt.maximum(a, b),
        lambda a, b: mt.where(a > b, a * a, b * a),
        lambda a, b: (a.unsqueeze(0) * b).sum(1),
    ],
)
def test_broadcasting_is_undone(function):
    a = mt.tensor([[0.3], [-1.2], [2.0]], dtype=mt.float64, requires_grad=True)
    b = mt.tensor([[0.7, 1.1, -0.4, 0.2]], dtype=mt.float64, requires_grad=True)
    assert gradcheck(function, [a, b])
    assert gradcheck(lambda b: function(a.detach()[0, 0], b), b)


def test_gradients_flow_through_views():
    x = mt.arange(12.0, dtype=mt.float64).reshape(3, 4).requires_grad_()
    assert gradcheck(lambda x: x[1:, ::2].T.reshape(-1)[1:] ** 2, x)
    assert gradcheck(lambda x: x.expand(2, 3, 4).permute(2, 0, 1)[0] * x[0, 0], x)


# Switches -----------------------------------------------------------------------------------------


def test_switches_nest_as_contexts_and_as_decorators():
    x = leaf(1.0)

    @mt.no_grad()
    def off():
        return x * 2

    @mt.no_grad
    def off_without_parentheses():
        return x * 2

    @mt.enable_grad()
    def on():
        return x * 2

    assert not off().requires_grad and not off_without_parentheses().requires_grad and (x * 2).requires_grad
    with mt.no_grad():
        assert on().requires_grad and not (x * 2).requires_grad
        with mt.enable_grad():
            assert (x * 2).requires_grad and not off().requires_grad
            with mt.set_grad_enabled(False):
                assert not (x * 2).requires_grad
            assert mt.is_grad_enabled()
        assert not mt.is_grad_enabled()
    assert mt.is_grad_enabled()
    with pytest.raises(KeyError), mt.no_grad():
        raise KeyError
    assert mt.is_grad_enabled()


def test_set_grad_enabled_acts_at_once_and_can_be_a_context():
    mt.set_grad_enabled(False)
    assert not mt.is_grad_enabled()
    mt.set_grad_enabled(True)

    @mt.set_grad_enabled(False)
    def off():
        return mt.is_grad_enabled()

    assert mt.is_grad_enabled() and off() is False and mt.is_grad_enabled()


def test_one_switch_may_be_entered_again_and_from_several_threads():
    switch = mt.no_grad()
    with switch, mt.enable_grad(), switch:
        assert not mt.is_grad_enabled()
    assert mt.is_grad_enabled()

    barrier, seen = threading.Barrier(2, timeout=10), []

    @mt.no_grad()
    def meet():
        barrier.wait()

    def other():
        mt.set_grad_enabled(False)
        meet()
        seen.append(mt.is_grad_enabled())

    thread = threading.Thread(target=other)
    thread.start()
    meet()
    thread.join()
    assert mt.is_grad_enabled() and seen == [False]


def test_detach_shares_memory_and_ends_the_tape():
    x = leaf(1.0, 2.0)
    y = x.detach()
    assert y.is_leaf and not y.requires_grad and np.shares_memory(x.detach().numpy(), y.numpy())
    y[0] = 7
    assert x.tolist() == [7, 2]
    (x * x.detach()).sum().backward()
    assert x.grad.tolist() == [7, 2]


def test_leaves_and_results():
    x = leaf(1.0)
    y = x * 2
    assert x.is_leaf and x.grad_fn is None and not y.is_leaf and y.grad_fn is not None
    with pytest.raises(AutogradError, match="MT405"):
        y.requires_grad_(False)
    with pytest.raises(AutogradError, match="MT405"):
        mt.tensor([1]).requires_grad_()
    assert not (x > 0).requires_grad and not x.argmax().requires_grad and not x.long().requires_grad


# Hooks and retain_grad ----------------------------------------------------------------------------


def test_hooks_see_and_change_gradients():
    x = leaf(1.0, 2.0)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    double = x.register_hook(lambda g: g * 2)
    y = x * 3
    inner = y.register_hook(lambda g: g + 1)
    y.sum().backward(retain_graph=True)
    assert seen == [[6, 6]] and x.grad.tolist() == [12, 12]
    x.grad = None
    handle.remove()
    handle.remove()
    inner.remove()
    double.remove()
    y.sum().backward()
    assert seen == [[6, 6]] and x.grad.tolist() == [3, 3]
    with pytest.raises(AutogradError, match="MT405"):
        mt.ones(1).register_hook(print)


def test_a_hook_is_called_once_with_the_whole_gradient_and_by_grad_too():
    x, seen = leaf(2.0), []
    y = x * x
    y.register_hook(lambda g: seen.append(g.item()))
    x.register_hook(lambda g: g * 10)
    z = y * 3 + y * 4
    assert mt.autograd.grad(z, x, retain_graph=True)[0].item() == 280
    assert mt.autograd.grad(z, y)[0].item() == 7
    assert seen == [7, 7]


def test_results_keep_their_gradient_if_asked():
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    assert (y.retains_grad, y.grad, x.retains_grad) == (True, None, False)
    (y * 3).backward(retain_graph=True)
    assert y.grad.item() == 6 and x.grad.item() == 24
    (y * 3).backward()
    assert y.grad.item() == 12
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(AutogradError, match="MT405"):
        mt.ones(1).retain_grad()


def test_retain_grad_makes_no_cycle():
    gc.disable()
    try:
        x = leaf(1.0)
        y = x * 2
        y.retain_grad()
        gone = weakref.ref(y)
        del y
        assert gone() is None
    finally:
        gc.enable()


# Function -----------------------------------------------------------------------------------------


class SinCos(Function):
    """Two outputs, both of which are saved."""

    @staticmethod
    def forward(ctx, x, factor):
        sin, cos = mt.sin(x) * factor, mt.cos(x) * factor
        ctx.save_for_backward(sin, cos, None)
        ctx.factor = factor
        assert not mt.is_grad_enabled()
        return sin, cos

    @staticmethod
    def backward(ctx, g_sin, g_cos):
        sin, cos, nothing = ctx.saved_tensors
        assert nothing is None and ctx.needs_input_grad == (True, False)
        return g_sin * cos - g_cos * sin, None


@pytest.mark.parametrize("wrap", [lambda f: f, mt.jit], ids=["eager", "jit"])
def test_own_functions_with_several_outputs_and_orders(wrap):
    x = leaf(0.3, 1.1)
    function = wrap(lambda x: SinCos.apply(x, 3.0))
    assert gradcheck(function, x)
    assert gradcheck(mt.grad(lambda x: function(x)[0].sum()), x)
    assert gradcheck(lambda x: function(x)[1] * 2, x)
    assert gradcheck(lambda x: function(function(x)[0])[1], x)


def test_an_own_function_that_saves_its_outputs_makes_no_cycle():
    gc.disable()
    try:
        x = leaf(0.5)
        sin, cos = SinCos.apply(x, 1.0)
        gone = weakref.ref(sin), weakref.ref(cos)
        del sin, cos
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


class Clip(Function):
    """A gradient that no composition has: None for the bounds, and straight through for the rest."""

    @staticmethod
    def forward(ctx, x, low, high):
        return x.clamp(low.item(), high.item())

    @staticmethod
    def backward(ctx, g):
        return g, None, None


class Identity(Function):
    """Returns its argument itself."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_gradients_that_are_none_and_results_that_are_arguments():
    x, low, high = leaf(-3.0, 0.5), leaf(0.0), leaf(1.0)
    Clip.apply(x, low, high).sum().backward()
    assert x.grad.tolist() == [1, 1] and low.grad is None
    x.grad = None
    y = Identity.apply(x)
    assert y is not x and x.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert not Identity.apply(x.detach()).requires_grad


class Wrong(Function):
    """Returns gradients that do not fit."""

    number = 2

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return (g,) * Wrong.number if Wrong.number > 1 else g.sum()


def test_wrong_gradients_of_own_functions_are_named():
    x = leaf(1.0, 2.0)
    with pytest.raises(TypeError, match=r"Wrong\.backward returned 2 gradients for 1"):
        Wrong.apply(x).sum().backward()
    Wrong.number = 1
    with pytest.raises(ValueError, match="shape"):
        Wrong.apply(x).sum().backward()


# Long chains --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long(sweep):
    """The length of a chain: ten times what Python's stack holds, with ``--sweep`` a hundred times."""
    return 100_000 if sweep else 10_000


def chain(x, length):
    for _ in range(length):
        x = x + 0.5
    return x


@pytest.mark.parametrize("mode", [lambda f: f, mt.jit])
def test_backward_of_several_results_adds_their_gradients(mode):
    def gradient(x):
        x.grad = None
        mt.autograd.backward([(x * 2).sum(), x**3], [None, mt.tensor([1.0, 10.0])])
        return x.grad * 1

    assert mode(gradient)(mt.ones(2, requires_grad=True)).tolist() == [5.0, 32.0]


def test_a_long_chain_forward_and_backward(long):
    x = leaf(1.0)
    y = chain(x, long)
    assert y.item() == long / 2 + 1
    y.backward()
    assert x.grad.item() == 1
    del y


def test_a_long_chain_through_graphs_and_text(long):
    x = mt.tensor(1.0, dtype=mt.float64)
    with mt.Graph() as g:
        start = mt.placeholder((), mt.float64, name="x")
        end = chain(start, long)
    assert mt.Session(g, backend="interpret").run(end, {start: x}).item() == long / 2 + 1
    graph = mt.jit(lambda x: chain(x, long), passes=(), backend="interpret").graph(x)
    compiled = mt.jit(lambda x: chain(x, long // 4), passes=())  # the Session has run the passes, this one compiles
    assert compiled(x).item() == long / 8 + 1
    assert sum(node.primitive.name == "add" for node in graph.nodes) == long
    again = mt.Graph.parse(str(graph))
    assert sum(node.primitive.name == "add" for node in again.nodes) == long
    assert mt.backends.get("interpret")(again)([x.numpy()])[0] == long / 2 + 1
    with mt.lazy():
        assert chain(x, long // 4).item() == long / 8 + 1


def test_a_long_chain_backward_in_a_graph(long):
    x = leaf(3.0)
    mt.jit(lambda x: chain(x * x, long // 8), passes=())(x).backward()
    assert x.grad.item() == 6
    gradient = mt.jit(mt.grad(lambda x: chain(x * x, long)), passes=(), backend="interpret")
    assert gradient(mt.tensor(3.0)).item() == 6


@pytest.mark.parametrize("length", [100, 1000])
def test_the_recorded_work_is_linear(length):
    def count(length):
        graph = mt.jit(mt.grad(lambda x: chain(x * x, length).sum())).graph(mt.ones(2))
        return len(graph.nodes)

    assert count(2 * length) - count(length) == count(length) - count(0) <= 4 * length


# Functions of functions ---------------------------------------------------------------------------


def test_value_and_grad_of_structures():
    def loss(parameters, x):
        return ((parameters["w"] * x + parameters["b"][0]) ** 2).sum(), {"seen": x}

    parameters: dict[str, Any] = {"w": mt.tensor([2.0]), "b": (mt.tensor([1.0]),)}
    (value, aux), gradient = mt.value_and_grad(loss, has_aux=True)(parameters, mt.tensor([3.0]))
    assert value.item() == 49 and aux["seen"].item() == 3
    assert gradient["w"].item() == 42 and gradient["b"][0].item() == 14
    assert not value.requires_grad and not parameters["w"].requires_grad
    by_both = mt.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(mt.tensor(2.0), mt.tensor(5.0))
    assert [g.item() for g in by_both] == [5, 2]


def test_transforms_nest_and_join_an_outer_tape():
    cube = lambda x: x * x * x  # noqa: E731
    assert mt.grad(mt.grad(mt.grad(cube)))(mt.tensor(2.0)).item() == 6
    x = leaf(2.0).sum()
    y = leaf(2.0)
    (mt.grad(lambda x: cube(x).sum())(y) ** 2).sum().backward()
    assert y.grad.item() == 2 * 12 * 12
    assert mt.grad(lambda x: x * mt.grad(lambda y: x * y * y)(mt.tensor(3.0)))(mt.tensor(5.0)).item() == 60
    assert x.requires_grad


def test_vjp_jacobian_and_hessian_are_the_analytic_ones():
    A = mt.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    x = mt.tensor([0.5, -1.0])
    value, pullback = mt.vjp(lambda x: A @ x, x)
    assert value.tolist() == (A @ x).tolist()
    for row in range(3):
        assert pullback(mt.eye(3)[row])[0].tolist() == A[row].tolist()
    assert mt.jacobian(lambda x: A @ x)(x).tolist() == A.tolist()
    S = mt.tensor([[2.0, 1.0], [1.0, 3.0]])
    assert mt.hessian(lambda x: 0.5 * (x @ S @ x))(x).tolist() == S.tolist()
    outer = mt.jacobian(lambda x: mt.outer(x, x))(x)
    assert outer.shape == (2, 2, 2)
    np.testing.assert_allclose(outer[0, 1].tolist(), [-1.0, 0.5])
    np.testing.assert_allclose(mt.jit(mt.hessian(lambda x: (x**3).sum()))(x).tolist(), np.diag([3.0, -6.0]))


# What the tape keeps ------------------------------------------------------------------------------


def test_the_tape_keeps_no_values_that_no_gradient_reads():
    x = mt.ones(1000, requires_grad=True)
    a = x + 1  # its gradient reads nothing
    b = a * 2
    c = mt.exp(b)  # reads its output
    gone = [weakref.ref(a._value), weakref.ref(b._value)]
    kept = weakref.ref(c._value)
    d = c.sum()
    del a, c
    assert gone[0]() is None or isinstance(gone[0](), np.ndarray)
    del b
    assert gone[1]() is None, "exp reads its output, not its input"
    assert kept() is not None
    d.backward()
    del d
    assert kept() is None


def test_a_tape_is_freed_without_the_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        before = objects()
        model = mt.nn.Sequential(mt.nn.Linear(3, 4), mt.nn.ReLU(), mt.nn.LayerNorm(4), mt.nn.Linear(4, 2))
        loss = mt.nn.functional.cross_entropy(model(mt.randn(5, 3)), mt.tensor([0, 1, 0, 1, 0]))
        loss.backward()
        model.zero_grad()
        parameters = sum(1 for _ in model.parameters())
        del loss
        after = objects()
        assert after - before <= parameters
    finally:
        gc.enable()


def objects():
    return sum(issubclass(type(item), (TapeEntry, mt.Tensor, Node)) for item in gc.get_objects())


def blocks() -> int:
    """How many blocks of memory Python's objects take; without those that only its cache of attributes holds.

    That cache keeps names by their address: of those that C code makes anew at each call, all that happen to lie apart.
    """
    gc.collect()  # which also empties Python's lists of free objects
    getattr(sys, "_clear_internal_caches" if sys.version_info >= (3, 13) else "_clear_type_cache")()
    return sys.getallocatedblocks()


@pytest.mark.parametrize("how", ["eager", "jit", "lazy", "session"])
def test_training_for_1000_steps_does_not_grow(how):
    mt.manual_seed(0)
    model = mt.nn.Sequential(mt.nn.Linear(2, 3), mt.nn.Tanh(), mt.nn.Dropout(0.1), mt.nn.Linear(3, 1))
    optimizer = mt.optim.Adam(model.parameters(), lr=0.01)
    x, y = mt.randn(4, 2), mt.randn(4, 1)

    def step(x, y):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    run: Callable[..., Any] = step
    if how == "jit":
        run = mt.jit(step)
    elif how == "session":
        with mt.Graph() as g:
            a, b = mt.placeholder((4, 2)), mt.placeholder((4, 1))
            loss = ((model(a) - b) ** 2).mean()
            train = optimizer.minimize(loss)
        session = mt.Session(g)
        run = lambda x, y: session.run([loss, train], {a: x, b: y})  # noqa: E731
    elif how == "lazy":

        def pending(x, y):
            with mt.lazy():
                return step(x, y)

        run = pending
    for _ in range(50):
        run(x, y)
    counted, allocated = objects(), blocks()
    for _ in range(950):
        run(x, y)
    assert objects() <= counted
    assert blocks() - allocated < 95, "that is less than one for every tenth step"


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("jitted", [False, True])
def test_what_was_not_chosen_has_a_gradient_of_zero_whatever_the_cotangent_is(bad, jitted):
    """As in PyTorch: a NaN goes back only to the elements that the result depends on."""
    values = [1.5, -2.0, 3.0, 2.5]
    rows = {
        "round floor ceil trunc": [0, 0, 0, 0],
        "max": [0, 0, bad, 0],
        "min": [0, bad, 0, 0],
        "relu": [bad, 0, bad, bad],
    }
    for names, expected in rows.items():
        for name in names.split():
            x = mt.tensor(values, requires_grad=True)
            f = getattr(mt.Tensor, name)
            y = mt.jit(f)(x) if jitted else f(x)
            y.backward(mt.full(y.shape, bad))
            np.testing.assert_array_equal(x.grad.numpy(), np.array(expected, np.float32), err_msg=name)


def test_functions_may_save_in_setup_context_and_say_more_of_their_results():
    class Split(Function):
        @staticmethod
        def forward(x):
            return x * x, x.sign(), x + 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.mark_non_differentiable(output[1])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, square, sign, more):
            (x,) = ctx.saved_tensors
            assert sign is None and more is None
            return 2 * x * square

    x = mt.tensor([1.0, -2.0], requires_grad=True)
    square, sign, more = Split.apply(x)
    assert square.requires_grad and more.requires_grad and not sign.requires_grad
    square.sum().backward()
    assert x.grad.tolist() == [2, -4]


@pytest.mark.parametrize("way", [lambda f: f, mt.jit])
def test_a_function_may_write_its_argument(way):
    class Root(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.sqrt_()
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            (root,) = ctx.saved_tensors
            return g / (2 * root)

    def step(x):
        y = x * 1
        view, z = y[1:], Root.apply(y)
        assert z is y
        (view.sum() + y.sum()).backward()
        return y.detach()

    x = mt.tensor([1.0, 4.0], requires_grad=True)
    assert way(step)(x).tolist() == [1, 2]
    assert x.grad.tolist() == [0.5, 0.5]
    with pytest.raises(AutogradError, match="MT401"):
        Root.apply(x)
