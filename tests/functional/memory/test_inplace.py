"""In-place writes: PyTorch's aliasing in eager mode, and the same program with the same results in every other mode."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import minitorch as mt
from minitorch.errors import AutogradError, DTypeError, MinitorchError, ShapeError, TracingError
from minitorch.ir import PRIMITIVES
from minitorch.nn import functional as F

# Aliasing, as PyTorch -----------------------------------------------------------------------------


def fresh(*shape):
    """A tensor of 0, 1, 2, ..."""
    return mt.arange(float(np.prod(shape, dtype=int))).reshape(*shape).clone()


VIEWS = {
    "select": lambda x: x[1],
    "slice": lambda x: x[:, 1:3],
    "step": lambda x: x[::2],
    "transpose": lambda x: x.T,
    "permute": lambda x: x.permute(1, 0),
    "reshape": lambda x: x.reshape(4, 3),
    "flatten": lambda x: x.flatten(),
    "view": lambda x: x.view(2, 6),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "chunk": lambda x: x.chunk(2, dim=1)[1],
    "unbind": lambda x: x.unbind(0)[2],
    "diagonal of a view": lambda x: x[1:][:, :2].T[0],
    "detach": lambda x: x.detach(),
    "ellipsis": lambda x: x[..., 0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_write_to_a_view_is_a_write_to_its_base_and_the_other_way_round(name):
    x = fresh(3, 4)
    view, expected = VIEWS[name](x), np.arange(12.0, dtype="f").reshape(3, 4)
    view.mul_(10)
    assert (x.numpy() != expected).sum() == np.count_nonzero(view.numpy()), "exactly the view's elements have changed"
    x.zero_()
    assert not view.numpy().any()


COPIES = {
    "clone": lambda x: x.clone(),
    "arithmetic": lambda x: x * 1,
    "integer array": lambda x: x[mt.tensor([0, 2])],
    "mask": lambda x: x[x > 2],
    "flip": lambda x: x.flip(0),
    "reshape that cannot be a view": lambda x: x.T.reshape(12),
    "cat": lambda x: mt.cat([x]),
    "to another type and back": lambda x: x.double().float(),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_write_to_a_copy_leaves_the_original_alone(name):
    x = fresh(3, 4)
    COPIES[name](x).add_(100)
    np.testing.assert_array_equal(x.numpy(), np.arange(12.0).reshape(3, 4))


def test_item_assignment_writes_everywhere_an_index_reaches():
    x = mt.zeros(3, 4)
    x[0] = 1
    x[:, 1] = mt.tensor([2.0, 3.0, 4.0])
    x[1:, 2:][0, 1] = 5
    x[mt.tensor([2, 2]), mt.tensor([0, 2])] = 7
    x[x == 1] = 9
    np.testing.assert_array_equal(x.numpy(), [[9, 2, 9, 9], [0, 3, 0, 5], [7, 4, 7, 0]])


def test_in_place_operators_and_methods_return_the_tensor_itself():
    x = alias = mt.tensor([6.0, 4.0])
    x += 2
    x *= mt.tensor([2.0, 3.0])
    x -= 1
    x /= 2
    assert x is alias and x.tolist() == [7.5, 8.5]
    assert x.add_(1) is x and x.clamp_(0, 9).tolist() == [8.5, 9.0]


def test_overlapping_source_and_target():
    x = fresh(6)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]


def test_a_write_keeps_shape_and_type():
    x = mt.zeros(2, 3)
    x.copy_(mt.tensor([1, 2, 3]))
    assert x.dtype is mt.float32 and x.tolist() == [[1, 2, 3], [1, 2, 3]]
    with pytest.raises(ShapeError, match="MT201"):
        x.add_(mt.ones(2, 2, 3))
    with pytest.raises(ShapeError, match="MT201"):
        x.copy_(mt.ones(4))
    with pytest.raises(DTypeError, match="MT202"):
        mt.tensor([1, 2]).add_(0.5)


def test_an_expanded_tensor_cannot_be_written_to():
    with pytest.raises(TracingError, match="MT109"):
        mt.zeros(3, 1).expand(3, 2).add_(1)


# Autograd -----------------------------------------------------------------------------------------


def test_writes_to_leaves_are_refused():
    leaf = mt.ones(2, requires_grad=True)
    with pytest.raises(AutogradError, match="MT401"):
        leaf.add_(1)
    with pytest.raises(AutogradError, match="MT401"):
        leaf[0:1].add_(1)
    assert leaf.tolist() == [1, 1]


def test_what_needs_no_gradient_is_written_freely():
    leaf = mt.ones(2, requires_grad=True)
    with mt.no_grad():
        leaf.add_(1)
        leaf[0] = 5
    leaf.detach().mul_(2)
    assert leaf.tolist() == [10, 4] and leaf.requires_grad
    mt.zeros(2).add_(leaf.detach())


def overwrite_input():
    x = mt.ones(2, requires_grad=True)
    y = (x * x).sum()
    with mt.no_grad():
        x.add_(1)
    return y


def overwrite_through_a_view():
    x = mt.ones(2, requires_grad=True)
    y = (x * x).sum()
    x.detach()[1:].zero_()
    return y


def overwrite_output():
    x = mt.ones(2, requires_grad=True)
    y = mt.exp(x)
    with mt.no_grad():
        y.add_(1)
    return y.sum()


def overwrite_output_that_is_gone():
    x = mt.ones(2, requires_grad=True)
    y = mt.exp(x)
    total = y.sum()
    y.detach().add_(1)
    del y
    return total


@pytest.mark.parametrize(
    "case", [overwrite_input, overwrite_through_a_view, overwrite_output, overwrite_output_that_is_gone]
)
@pytest.mark.parametrize("how", ["eager", "jit", "lazy"])
def test_a_value_that_the_gradient_needs_must_not_be_overwritten(case, how):
    with pytest.raises(AutogradError, match="MT402"):
        if how == "eager":
            case().backward()
        elif how == "jit":
            mt.jit(lambda: case().backward())()
        else:
            with mt.lazy():
                case().backward()


def test_what_the_gradient_does_not_need_may_be_overwritten():
    x = mt.ones(2, requires_grad=True)
    y = x + 3
    z = (y * 2).sum()
    with mt.no_grad():
        x.add_(1)
    z.backward()
    assert x.grad.tolist() == [2, 2]


def test_an_output_that_a_function_has_saved_must_not_be_overwritten():
    class Both(mt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = mt.exp(x)
            ctx.save_for_backward(y)
            return x * 1, y

        @staticmethod
        def backward(ctx, g, _):
            return g * ctx.saved_tensors[0]

    for place in (0, 1):
        w = mt.zeros(2, requires_grad=True)
        outputs = Both.apply(w)
        with mt.no_grad():
            outputs[place].mul_(5)
        if place == 0:  # which is not saved
            outputs[0].sum().backward()
            assert w.grad.tolist() == [1, 1]
        else:  # although the gradient comes from the other one
            with pytest.raises(AutogradError, match="MT402: output 1 of the recorded Both"):
                outputs[0].sum().backward()


@pytest.mark.parametrize("how", [lambda function: function, mt.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("saved", ["its input", "a view of its output", "something else"])
def test_what_a_function_has_saved_must_not_be_overwritten(how, saved):
    other = mt.full((2,), 3.0)

    class Saving(mt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(*{"its input": (x,), "a view of its output": (y[:1],)}.get(saved, (other,)), None)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    def loss(w):
        x = w * 1
        y = Saving.apply(x)
        with mt.no_grad():
            {"its input": x, "a view of its output": y}.get(saved, other).mul_(2)
        return y.sum()

    value = how(loss)(mt.ones(2, requires_grad=True))
    with pytest.raises(AutogradError, match="MT402: something that was saved of the recorded Saving"):
        value.backward()


def zero_a_result(w):
    h = w * 2
    with mt.no_grad():
        h[0] = 0
    return (h * h * h).sum()


def zero_through_a_view(w):
    h = w * 2
    part = h[1:]
    with mt.no_grad():
        part[0] = 0
    return (h * part.sum()).sum()


def scale_what_a_view_shows(w):
    h = w * 2
    part = h[1:]
    with mt.no_grad():
        h.mul_(5)
    return part.sum()


@pytest.mark.parametrize("how", ["eager", "jit", "jit inside", "lazy"])
@pytest.mark.parametrize(
    ("case", "value", "gradient"),
    [(zero_a_result, 16, [0, 24, 24]), (zero_through_a_view, 8, [4, 12, 12]), (scale_what_a_view_shows, 20, [0, 2, 2])],
)  # the numbers are PyTorch's: the tape goes on as if nobody had written, and reads what is there
def test_a_recorded_result_may_be_overwritten_under_no_grad(case, value, gradient, how):
    def step(w):
        loss = case(w)
        loss.backward()
        return loss.detach()

    w = mt.ones(3, requires_grad=True)
    with mt.lazy() if how == "lazy" else nullcontext():
        loss = {"jit": mt.jit(case), "jit inside": mt.jit(step)}.get(how, case)(w)
        if how != "jit inside":
            loss.backward()
        assert (loss.item(), w.grad.tolist()) == (value, gradient)


def test_second_derivatives_past_an_overwritten_result_are_those_of_eager_mode_or_refused():
    w = mt.ones(3, requires_grad=True)
    (first,) = mt.autograd.grad(zero_a_result(w), [w], create_graph=True)
    assert mt.autograd.grad(first.sum(), [w])[0].tolist() == [0, 48, 48]
    with pytest.raises(AutogradError, match=r"MT402: zero_a_result is compiled, and has overwritten f32\[3\]"):
        mt.autograd.grad(mt.jit(zero_a_result)(w), [w], create_graph=True)


@pytest.mark.parametrize("how", [lambda function: function, mt.jit], ids=["eager", "jit"])
def test_a_value_without_a_way_back_is_a_value(how):
    def f(w):
        y = mt.exp(w)
        with mt.no_grad():
            y[0] = 0
        return y.sum()

    f = how(f)
    w = mt.zeros(2, requires_grad=True)
    for _ in range(2):
        y = f(w)
        assert y.item() == 1 and y.requires_grad
        with pytest.raises(AutogradError, match="MT402: the output of the recorded exp"):
            y.backward()


@pytest.mark.parametrize("look", [True, False])
def test_a_pending_write_is_counted_once(look):
    w = mt.ones(2, requires_grad=True)
    with mt.lazy():
        with mt.no_grad():
            w.add_(1)
        loss = (w * w).sum()
        if look:
            assert loss.item() == 8
        loss.backward()
    assert w.grad.tolist() == [4, 4]


# Random programs, in all modes --------------------------------------------------------------------

SHAPES = [(2, 3), (4,), (1, 2, 2), ()]

Step = tuple[int, int, int, int, int]


def make_roots():
    return [mt.tensor(np.arange(np.prod(shape, dtype=int), dtype="f").reshape(shape) + 1) for shape in SHAPES]


def make_view(x, a, b):
    """A view of a tensor, chosen by two numbers."""
    ndim = x.ndim
    choices = [lambda: x.unsqueeze(b % (ndim + 1)), lambda: x.reshape(-1)]
    if ndim:
        dim = b % ndim
        length = x.shape[dim]
        choices += [
            lambda: x.narrow(dim, min(1, length - 1), 1),
            lambda: x.select(dim, b % length),
            lambda: x[::2],
            lambda: x.transpose(0, ndim - 1),
            lambda: x.flatten(),
            lambda: x.reshape(*x.shape[::-1]),
            lambda: x[..., 1:] if x.shape[-1] > 1 else x.squeeze(-1),
            lambda: x.expand(2, *x.shape),
        ]
    return choices[a % len(choices)]()


def fitting(pool, target, b):
    """A tensor of the pool that broadcasts to the target; a number if there is none."""
    found = [
        t
        for t in pool
        if t.ndim <= target.ndim and all(n in (1, m) for n, m in zip(t.shape[::-1], target.shape[::-1], strict=False))
    ]
    return found[b % len(found)] if found else float(b)


WRITES = [
    lambda x, y: x.add_(y),
    lambda x, y: x.copy_(y if isinstance(y, mt.Tensor) else mt.tensor(y)),
    lambda x, y: x.sub_(y),
    lambda x, y: x.fill_(3),
    lambda x, y: x.maximum_(y) if hasattr(x, "maximum_") else x.clamp_(min=2),
    lambda x, y: x.neg_(),
    lambda x, y: x.zero_(),
]


def execute(program, roots):
    """Run a program; the tensors that it has at the end, and what its writes returned."""
    pool, handles = list(roots), []
    for kind, at, a, b, c in program:
        x = pool[at % len(pool)]
        if kind == 0:
            pool.append(make_view(x, a, b))
        elif kind == 1:
            handles.append(WRITES[a % len(WRITES)](x, fitting(pool, x, b)))
        elif kind == 2 and x.ndim:
            handles.append(x[b % x.shape[0]].fill_(c))
        elif kind == 3:
            pool.append(x * 2 + fitting(pool, x, b))
        elif kind == 4 and x.ndim:
            index = mt.tensor([b % x.shape[0], c % x.shape[0]])
            pool.append(x[index])
    return pool, handles


def outcome(program, roots):
    """All values at the end; copies, because the modes differ in what memory results share."""
    pool, _ = execute(program, roots)
    return [tensor.clone() for tensor in pool[len(SHAPES) :]]


def run_eager(program, roots):
    return outcome(program, roots)


def run_jit(program, roots):
    compiled = mt.jit(lambda: outcome(program, roots))
    before = [root.numpy().copy() for root in roots]
    compiled()  # traces, and runs once
    for root, array in zip(roots, before, strict=True):
        root.copy_(mt.from_numpy(array))
    return compiled()  # runs what was traced


def run_jit_with_arguments(program, roots):
    return mt.jit(lambda *args: outcome(program, args))(*roots)


def run_lazy(program, roots):
    with mt.lazy():
        return outcome(program, roots)


def run_lazy_looking(program, roots):
    """Lazily, with a look at some value after every step."""
    with mt.lazy():
        pool = list(roots)
        for number, step in enumerate(program):
            pool, _ = execute([step], pool)
            pool[number % len(pool)].tolist()
        return [tensor.clone() for tensor in pool[len(SHAPES) :]]


def run_session(program, roots):
    with mt.Graph() as g:
        pool, handles = execute(program, roots)
        results = [tensor.clone() for tensor in pool[len(SHAPES) :]]
    return mt.Session(g).run([results, [handle for handle in handles if not any(handle is t for t in pool)]])[0]


MODES = {
    "jit": run_jit,
    "jit with arguments": run_jit_with_arguments,
    "lazy": run_lazy,
    "lazy, looking": run_lazy_looking,
    "session": run_session,
}

number = st.integers(0, 9)
programs = st.lists(st.tuples(st.integers(0, 4), number, number, number, number), min_size=1, max_size=9)


@pytest.mark.parametrize("mode", MODES)
@given(program=programs)
@settings(max_examples=100, deadline=None)
def test_views_and_writes_mean_the_same_in_every_mode(mode, program):
    expected_roots, roots = make_roots(), make_roots()
    try:
        expected = run_eager(program, expected_roots)
    except MinitorchError:
        assume(False)
    try:
        results = MODES[mode](program, roots)
    except TracingError as error:
        assert error.code == "MT109"  # a view that a graph cannot tell from a copy: refused, not guessed
        assume(False)
    for position, (mine, theirs) in enumerate(zip([*results, *roots], [*expected, *expected_roots], strict=True)):
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy(), err_msg=f"tensor {position}", strict=True)


# Effects of a jitted function ---------------------------------------------------------------------


def test_arguments_and_captured_tensors_are_written_back():
    captured = mt.zeros(2)
    view = captured[1:]

    @mt.jit
    def f(x):
        x.add_(1)
        captured.add_(x)
        view.mul_(10)
        return captured * 1

    x = mt.ones(2)
    memory = x.numpy()
    assert f(x).tolist() == [2, 20] and f(x).tolist() == [5, 230]
    assert memory.tolist() == [3, 3] and captured.tolist() == [5, 230] and view.tolist() == [230]


def test_a_view_as_argument_writes_into_its_base():
    x = mt.zeros(2, 2)
    mt.jit(lambda row: row.add_(1))(x[1])
    assert x.tolist() == [[0, 0], [1, 1]]


def test_one_tensor_given_twice_is_one_tensor():
    f = mt.jit(lambda a, b: (a.add_(1), b * 10)[1])
    x, y = mt.zeros(1), mt.zeros(1)
    assert f(x, x).item() == 10 and f(x, y).item() == 0 and x.item() == 2


@pytest.mark.parametrize("case", ["two views", "captured", "view of captured"])
def test_arguments_that_share_memory_are_refused_if_one_is_written(case):
    x = mt.zeros(2)
    f = mt.jit(lambda a, b=None: (a.add_(1), (x if b is None else b) * 1)[1])
    with pytest.raises(TracingError, match="MT109"):
        {"two views": lambda: f(x[:1], x[1:]), "captured": lambda: f(x), "view of captured": lambda: f(x[1:])}[case]()
    assert x.tolist() == [0, 0]
    assert mt.jit(lambda a, b: a + b)(x[:1], x).tolist() == [0, 0]


def test_an_error_while_tracing_leaves_everything_as_it_was():
    w = mt.ones(2, requires_grad=True)
    loss = (w * w).sum()
    state = mt.default_generator.get_state().tolist()

    @mt.jit
    def f(x):
        with mt.no_grad():
            w.add_(1)
        x.add_(1)
        mt.rand(2)
        (w * x).sum().backward()
        raise KeyError("the user's")

    x = mt.zeros(2)
    with pytest.raises(KeyError, match="the user's"):
        f(x)
    assert (w.tolist(), w.grad, x.tolist()) == ([1, 1], None, [0, 0])
    assert mt.default_generator.get_state().tolist() == state
    assert mt.is_grad_enabled() and mt.tensor(1.0).item() == 1
    loss.backward()
    assert w.grad.tolist() == [2, 2]


def test_gradients_stored_by_a_jitted_function_accumulate_as_in_eager():
    def step(x, w):
        (x * w).sum().backward()
        if w.grad is not None:
            w.grad.mul_(2)

    expected = mt.tensor([1.0, 2.0], requires_grad=True)
    mine = mt.tensor([1.0, 2.0], requires_grad=True)
    x, compiled = mt.tensor([3.0, 4.0]), mt.jit(step)
    for _ in range(4):
        step(x, expected)
        compiled(x, mine)
        assert mine.grad.tolist() == expected.grad.tolist()
    mt.optim.SGD([expected, mine]).zero_grad()
    step(x, expected)
    compiled(x, mine)
    assert mine.grad.tolist() == expected.grad.tolist()


def test_gradients_of_captured_tensors_likewise():
    expected, mine = mt.ones(3, requires_grad=True), mt.ones(3, requires_grad=True)

    def step(w, x):
        (x * w * w).sum().backward()
        return w.grad * 1

    compiled = mt.jit(lambda x: step(mine, x))
    for number in range(4):
        x = mt.full((3,), float(number))
        assert step(expected, x).tolist() == compiled(x).tolist()
        assert mine.grad.tolist() == expected.grad.tolist()


def test_backward_inside_reaches_the_tape_of_an_argument():
    w, compiled = mt.tensor([1.0, 2.0], requires_grad=True), mt.jit(lambda h: (h * h).sum().backward())
    for _ in range(2):
        compiled(w * 3)
    assert w.grad.tolist() == [2 * 2 * 9.0, 2 * 2 * 18.0]


def test_stored_gradients_are_separate_tensors():
    a, b = mt.ones(2, requires_grad=True), mt.ones(2, requires_grad=True)
    for run in (lambda f: f(), lambda f: mt.jit(f)()):
        mt.optim.SGD([a, b]).zero_grad()
        run(lambda: (a + b).sum().backward())
        a.grad.mul_(5)
        assert a.grad.tolist() == [5, 5] and b.grad.tolist() == [1, 1]


# Long chains of views ---------------------------------------------------------------------------------------------


def movements(x, length):
    for _ in range(length):
        x = x.reshape(4).reshape(2, 2).T.T
    return x


def evaluations(monkeypatch, function, x):
    """How often movements are evaluated, and how many nodes there are, when a function is traced."""
    count = 0

    def counted(evaluate):
        def call(*args, **params):
            nonlocal count
            count += 1
            return evaluate(*args, **params)

        return call

    with monkeypatch.context() as patch:
        for name in ("reshape", "permute"):
            primitive = PRIMITIVES[name]
            patch.setitem(primitive.__dict__, "evaluate", counted(primitive.evaluate))
        return len(mt.jit(function, passes=(), backend="interpret").graph(x).nodes), count


@pytest.mark.filterwarnings("ignore:MT105")  # of `count`
@pytest.mark.parametrize("write", [False, True])
def test_the_work_for_a_chain_of_views_is_linear(monkeypatch, write):
    def function(x, length):
        views = [x]
        for _ in range(length):
            views.append(movements(views[-1], 1))
        if write:
            views[-1].add_(1)
        return [view * 1 for view in views]

    short, long, longer = (
        evaluations(monkeypatch, lambda x, n=length: function(x, n), mt.ones(2, 2)) for length in (50, 150, 250)
    )
    for few, more, most in zip(short, long, longer, strict=True):
        assert most - more == more - few <= 100 * 16


def test_a_chain_of_10000_views_is_written_through():
    def function(x):
        y = movements(x, 2500)
        y.add_(mt.tensor([[1.0, 2.0], [3.0, 4.0]]))
        return y * 1

    for run in (function, mt.jit(function, passes=(), backend="interpret")):
        x = mt.zeros(2, 2)
        assert run(x).tolist() == [[1, 2], [3, 4]]
        assert x.tolist() == [[1, 2], [3, 4]]
    z = mt.zeros(2, 2)
    with mt.lazy("interpret"):
        y = movements(z, 1000)
        y.add_(1)
        assert y.tolist() == [[1, 1], [1, 1]]
    assert z.tolist() == [[1, 1], [1, 1]]


def test_a_detached_view_sees_later_writes_too():
    def function(x):
        view = x.T
        other = view.detach()
        x.add_(1)
        return view * 1, other * 1

    for result in mt.jit(function)(mt.zeros(2, 2)):
        assert result.tolist() == [[1, 1], [1, 1]]


def test_a_view_from_outside_is_made_again_once():
    x = mt.zeros(2, 2)
    view = x.T
    graph = mt.jit(lambda: (x.add_(1), [view * number for number in range(5)])[1]).graph()
    assert graph.count()["permute"] == 1


# Two tensors over one memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lend", [lambda a: a, lambda a: a[1:], lambda a: a[::-1], np.frombuffer], ids=range(4))
def test_tensors_over_one_array_are_refused_if_one_is_written(lend):
    array = np.zeros(4, np.float32)
    x, y = mt.from_numpy(array), mt.from_numpy(lend(array) if lend is not np.frombuffer else np.frombuffer(array, "f4"))
    write = mt.jit(lambda a, b: (a.add_(1), b * 1)[1])

    def captured():
        x.add_(1)
        return y * 1

    def captured_later():
        result = y * 1
        x.add_(1)
        return result

    def lazily():
        with mt.lazy():
            captured()

    def in_a_graph():
        with mt.Graph():
            captured()

    for use in (
        lambda: write(x, y),
        lambda: write(y, x) if y._value.flags.writeable else write(x, y),
        lambda: mt.jit(lambda a: (x.add_(1), a * 1)[1])(y),
        lambda: mt.jit(lambda a: (a.add_(1), y * 1)[1])(x),
        mt.jit(captured),
        mt.jit(captured_later),
        in_a_graph,
    ):
        with pytest.raises(TracingError, match="MT109"):
            use()
    assert not array.any()
    assert mt.jit(lambda a, b: a + b)(x[:1], y[:1]).tolist() == [0]  # nothing is written
    with pytest.raises(TracingError, match="MT109"):
        lazily()


def test_parts_of_an_array_that_do_not_overlap_are_two_memories():
    array = np.zeros(4, np.float32)
    x, y = mt.from_numpy(array[:2]), mt.from_numpy(array[2:])
    assert mt.jit(lambda a, b: (a.add_(1), b * 1)[1])(x, y).tolist() == [0, 0]
    assert array.tolist() == [1, 1, 0, 0]


def test_an_operation_that_reads_a_captured_tensor_twice_sees_its_writes():
    w = mt.ones(3)
    assert mt.jit(lambda: (w.add_(1), w.clamp(max=1.5), w.softmax(0))[1])().tolist() == [1.5] * 3


def test_what_does_not_lie_in_order_is_copied_before_it_is_viewed():
    def merged(x: mt.Tensor) -> mt.Tensor:  # as after attention
        return x.transpose(1, 2).contiguous().view(2, 3, 20)

    x = mt.arange(2 * 4 * 3 * 5).view(2, 4, 3, 5)
    expected = x.numpy().swapaxes(1, 2).reshape(2, 3, 20)
    for function in (merged, mt.jit(merged), mt.jit(merged, backend="interpret")):
        np.testing.assert_array_equal(function(x).numpy(), expected)


def test_whether_a_tensor_is_contiguous_in_every_mode():
    def lies(x: mt.Tensor) -> list[bool]:
        views = (x, x.T, x[:, 1:], x[1:], x.T.contiguous(), x + 1, x.reshape(-1), x[:, :1].T, x.T + 1)
        return [each.is_contiguous() for each in views]

    expected = [True, False, False, True, True, True, True, False, True]
    assert lies(mt.zeros(3, 4)) == expected
    assert mt.jit(lies)(mt.zeros(3, 4)) == expected


def test_a_copy_that_is_contiguous_does_not_see_writes():
    def function(x: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        x = x + 0
        same, copy = x.contiguous(), x.T.contiguous()
        x[0] = 9
        return same, copy

    for way in (function, mt.jit(function)):
        same, copy = way(mt.zeros(2, 2))
        assert (same.tolist(), copy.tolist()) == ([[9, 9], [0, 0]], [[0, 0], [0, 0]])


@pytest.mark.parametrize("way", [lambda f: f, mt.jit, lambda f: mt.jit(f, backend="interpret")])
def test_a_view_that_cannot_be_one_is_refused_in_every_mode(way):
    with pytest.raises(RuntimeError, match="contiguous"):
        way(lambda x: x.T.view(6))(mt.zeros(2, 3))


CHANGES = {
    "x[0]": lambda x, value: x.__setitem__(0, value),
    "x[:1]": lambda x, value: x.__setitem__(slice(1), value),
    "x[mask]": lambda x, value: x.__setitem__(mt.tensor([True, False]), value),
    "x[index]": lambda x, value: x.__setitem__(mt.tensor([0]), value),
    "where": lambda x, value: x.copy_(mt.where(mt.tensor([True, False]), value, x)),
}


@pytest.mark.parametrize("write", CHANGES)
@pytest.mark.parametrize("value", [1e39, -1e39, 7e4, 1e400])
@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16, mt.float32])
def test_a_number_beyond_a_16_bit_float_is_infinite_and_beyond_float32_refused(write, value, dtype):
    def f(x):
        CHANGES[write](x, value)
        return x + 0

    mode: Any
    for mode in (lambda f: f, mt.jit, lambda f: mt.jit(f, backend="interpret")):
        if dtype is mt.float32 and abs(value) == 1e39:
            with pytest.raises(DTypeError, match=r"1e\+39 does not fit float32"):
                mode(f)(mt.ones(2, dtype=dtype))
        else:
            with np.errstate(all="ignore"):
                assert mode(f)(mt.ones(2, dtype=dtype)).tolist() == mt.tensor([value, 1.0], dtype=dtype).tolist()


CHECKED = {
    "gather": lambda x, i: mt.gather(x, 0, i),
    "index_add": lambda x, i: mt.index_add(x, 0, i, x),
    "index_select": lambda x, i: mt.index_select(x, 0, i),
    "scatter_add": lambda x, i: mt.scatter_add(x, 0, i, x),
    "square brackets": lambda x, i: x[i],
    "take": lambda x, i: mt.take(x, i),
    "embedding": lambda x, i: F.embedding(i, x.reshape(3, 1)),
}


@pytest.mark.parametrize("way", [lambda f: f, mt.jit, lambda f: mt.jit(f, backend="interpret", passes=())])
@pytest.mark.parametrize("name", CHECKED)
def test_an_index_that_is_overwritten_before_backward_is_noticed_in_every_mode(name, way):
    """An index is checked first, which makes a value of its own in a graph: writes to the index itself count."""

    def program(x, i):
        y = CHECKED[name](x, i)
        i.mul_(0)
        return y

    x, i = mt.tensor([1.0, 2.0, 3.0], requires_grad=True), mt.tensor([2, 1, 2])
    y = way(program)(x, i)
    with pytest.raises(AutogradError, match="MT402"):
        y.sum().backward()
