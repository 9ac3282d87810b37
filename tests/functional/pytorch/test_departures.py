"""Where results once departed from PyTorch's, or lost digits: each stays mended."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import minitorch as mt
from minitorch import errors
from minitorch.nn import functional as F

INTEGERS = [mt.uint8, mt.int8, mt.int16, mt.int32, mt.int64]
FLOAT_FUNCTIONS = {
    "div": np.true_divide,
    "copysign": np.copysign,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "logaddexp": np.logaddexp,
}


@pytest.mark.parametrize("name", FLOAT_FUNCTIONS)
def test_a_number_never_wraps_on_its_way_to_a_float_function(name):
    for dtype, number in itertools.product(INTEGERS, [1000, -255, -3, 3, 2**40, True, 0.5]):
        x = mt.tensor([1, 50, 100], dtype=dtype)
        for ours in (number, mt.tensor(number)):
            expected = FLOAT_FUNCTIONS[name](np.array([1.0, 50.0, 100.0]), float(number))
            result = getattr(mt, name)(x, ours)
            assert result.dtype is mt.float32
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)
            turned = getattr(mt, name)(ours, x)
            expected = FLOAT_FUNCTIONS[name](float(number), np.array([1.0, 50.0, 100.0]))
            np.testing.assert_allclose(turned.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, mt.bfloat16])
@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((70_001, 2), (0,)),
        ((3, 5000, 2), (0, 1)),
        ((5000, 3, 4), (0, 2)),
        ((300, 600, 2), (0, 1)),
        ((300, 300, 2), (0, 1)),
    ],
)
def test_sums_along_outer_dimensions_keep_their_digits(shape, dims, dtype):
    full = mt.full(shape, 0.1, dtype=dtype)
    for x, axes in (
        (full, dims),
        (full.flip(0), dims),
        (full.movedim(0, -1), tuple((dim - 1) % len(shape) for dim in dims)),
    ):
        exact = x.ravel()[0].double().item() * math.prod(x.shape[axis] for axis in axes)
        tolerance = {mt.float32: 1e-5, mt.float64: 3e-14, mt.bfloat16: 2**-8}[dtype]
        np.testing.assert_allclose(x.sum(axes).double().numpy(), exact, rtol=tolerance)


@pytest.mark.parametrize("dtype", [mt.float32, mt.bfloat16])
@pytest.mark.parametrize("length", [256, 512, 513, 70_001])
def test_running_sums_keep_their_digits(length, dtype):
    for shape, dim in (((length,), 0), ((length, 2), 0), ((2, length), 1)):
        x = mt.full(shape, 0.1, dtype=dtype)
        exact = (x.double() * mt.ones_like(x, dtype=mt.int64).cumsum(dim)).numpy()
        np.testing.assert_allclose(x.cumsum(dim).double().numpy(), exact, rtol=1e-5 if dtype is mt.float32 else 2**-8)
    ones = mt.ones(length, dtype=mt.int64)
    assert mt.equal(ones.cumsum(0), mt.arange(1, length + 1))


def test_randint_says_which_ranges_are_too_long():
    with pytest.raises(ValueError, match=r"at most 2\*\*63 - 1 are supported"):
        mt.randint(-(2**62), 2**62, (3,))
    with pytest.raises(ValueError, match="there is no integer from 3"):
        mt.randint(3, 3, (1,))
    assert mt.randint(-(2**62), 2**62 - 1, (3,)).dtype is mt.int64


def test_clamp_of_nan_is_nan_and_has_no_gradient():
    for bounds in ({"min": -1.0}, {"max": 1.0}, {"min": -1.0, "max": 1.0}):
        x = mt.tensor([float("nan"), -1.0, 1.0, 0.5], requires_grad=True)
        y = mt.clamp(x, **bounds)
        y.sum().backward()
        assert y.isnan().tolist() == [True, False, False, False]
        assert x.grad.tolist() == [0, 1, 1, 1]
    x = mt.tensor([1.0, -2.0])
    assert mt.clamp(x, min=float("nan")).isnan().all() and mt.clamp(x, max=float("nan")).isnan().all()
    assert mt.clamp(x, min=3, max=2).tolist() == [2, 2]


def test_one_hot_refuses_a_class_that_there_is_not():
    for wrong in (3, -1):
        for mode in (lambda f: f, mt.jit):
            with pytest.raises(ValueError, match=f"one_hot: the input has {wrong}"):
                mode(lambda i: F.one_hot(i, 3))(mt.tensor([0, wrong]))
    with pytest.raises(ValueError, match="one_hot: the input has -1"):
        F.one_hot(mt.tensor([-1]))


def test_bools_have_the_powers_true_and_false_and_no_difference():
    b = mt.tensor([True, False])
    assert (b**True).tolist() == [True, False] and (b**False).tolist() == [True, True]
    assert (b**True).dtype is mt.bool
    for other in (b, True, 1, 0.5, mt.ones(2), mt.ones(2, dtype=mt.int64)):
        for left, right in ((b, other), (other, b)):
            with pytest.raises(errors.DTypeError, match="MT202"):
                left - right
    with pytest.raises(errors.DTypeError, match="subtraction with a bool"):
        mt.ones(2) - True


def test_scatter_can_add():
    index = mt.tensor([0, 2, 0])
    source = mt.tensor([1.0, 2.0, 4.0])
    assert mt.ones(3).scatter(0, index, source, reduce="add").tolist() == [6, 1, 3]
    assert mt.zeros(3).scatter_(0, index, 2.0, reduce="add").tolist() == [4, 0, 2]
    with pytest.raises(ValueError, match="multiply"):
        mt.zeros(3).scatter(0, index, source, reduce="multiply")


def test_data_can_be_exchanged():
    x = mt.ones(2, requires_grad=True)
    before, new = x.detach(), mt.tensor([3.0, 4.0], requires_grad=True)
    x.data = new
    new.data[0] = 7
    assert x.tolist() == [3, 4] and before.tolist() == [1, 1] and x.requires_grad and x.is_leaf
    (x * x).sum().backward()
    assert x.grad.tolist() == [6, 8]
    with pytest.raises(errors.ShapeError, match="MT201"):
        x.data = mt.ones(3)
    with pytest.raises(errors.ShapeError, match="MT201"):
        x.data = mt.ones(2, dtype=mt.int64)
    with pytest.raises(TypeError, match=r"mt\.tensor"):
        x.data = 1.0  # type: ignore[assignment]

    @mt.jit
    def exchange(y):
        x.data = y
        x.data -= 0.5

    exchange(mt.ones(2))
    exchange(2 * mt.ones(2))
    assert x.tolist() == [1.5, 1.5] and x.requires_grad


def stored_and_restored(x, y, other):
    """The weights of an average, for a while."""
    stored = x.data
    x.data = other
    inside = x.detach() * 1
    x.data = stored
    return inside


def swapped(x, y, other):
    x.data, y.data = y.data, x.data
    return x.detach() * other


def written_before_and_after(x, y, other):
    before = x.data[1:]
    x.data = x.data * 3 + other
    before.add_(1)
    after = x.data[1:]
    after.mul_(2)
    return before * 1


@pytest.mark.parametrize("step", [stored_and_restored, swapped, written_before_and_after])
def test_views_keep_the_memory_that_data_had(step):
    def run(wrap):
        x, y = mt.nn.Parameter(mt.tensor([1.0, 2.0])), mt.nn.Parameter(mt.zeros(2))
        called = wrap(lambda other: step(x, y, other))
        return [(called(mt.full((2,), 5.0 + n)).tolist(), x.tolist(), y.tolist()) for n in range(3)]

    def deferred(function):
        def called(other):
            with mt.lazy("interpret"):
                return function(other)

        return called

    expected = run(lambda function: function)
    if step is stored_and_restored:
        assert expected == [([5.0 + n] * 2, [1.0, 2.0], [0.0, 0.0]) for n in range(3)]
    if step is swapped:
        assert [x for _, x, _ in expected] == [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]
    assert run(deferred) == expected
    assert run(lambda function: mt.jit(function, backend="interpret")) == expected


def test_views_from_outside_of_exchanged_data():
    """Eagerly and in lazy blocks they keep their memory; a trace, which has none, refuses to read them."""

    def made():
        w = mt.nn.Parameter(mt.ones(2))
        view = w.data

        def exchange():
            w.data = w.data * 3
            view.add_(1)
            return w.detach() * 1, view * 1

        return exchange

    assert [each.tolist() for each in made()()] == [[3, 3], [2, 2]]
    with mt.lazy("interpret"):
        assert [each.tolist() for each in made()()] == [[3, 3], [2, 2]]
    with pytest.raises(errors.TracingError, match=r"(?s)MT109.*view of `w`.*test_departures.py"):
        mt.jit(made())()


def test_an_exchange_of_data_is_noticed_by_the_tape():
    x = mt.ones(2, requires_grad=True)
    y = x * x
    x.data = mt.zeros(2)
    with pytest.raises(errors.AutogradError):
        y.sum().backward()


def test_names_that_pytorch_has():
    x = mt.empty(1000)
    assert x.nelement() == mt.numel(x) == 1000
    assert x.uniform_(-3, -2) is x and (x >= -3).all() and (x < -2).all()
    assert abs(x.normal_(5.0, 0.1).mean().item() - 5) < 0.05
    assert set(x.bernoulli_(0.5).tolist()) == {0, 1}
    with pytest.raises(TypeError, match="float type"):
        mt.zeros(2, dtype=mt.int64).uniform_()
    with pytest.raises(errors.DTypeError, match="MT202"):
        +mt.tensor([True])
    np.testing.assert_allclose(mt.logspace(-2, 2, 5).numpy(), [0.01, 0.1, 1, 10, 100])
    assert mt.xlogy(mt.tensor([0.0, 0.0]), mt.tensor([float("nan"), float("inf")])).isnan().tolist() == [True, False]
    net = mt.nn.Sequential(mt.nn.Linear(2, 3), mt.nn.ParameterList([mt.zeros(2)]))
    assert net.get_parameter("0.weight") is net[0].weight and net.get_parameter("1.0") is net[1][0]
    for wrong in ("0.nothing", "2.weight", "weight"):
        with pytest.raises(AttributeError):
            net.get_parameter(wrong)
