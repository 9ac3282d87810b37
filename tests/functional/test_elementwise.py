"""Elementwise functions: against NumPy, eager against recorded, gradients against differences, and the hard cases."""

import inspect
import math
import operator

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd import gradcheck
from tests.support.helpers import check

INF, NAN = math.inf, math.nan
_erf = np.vectorize(math.erf)
_erfc = np.vectorize(math.erfc)

# name, NumPy's function, where the gradient is checked
UNARY = {
    "abs": (np.abs, [-1.5, 2.0]),
    "neg": (np.negative, [-1.5, 2.0]),
    "square": (np.square, [-1.5, 0.0]),
    "sign": (np.sign, None),
    "signbit": (np.signbit, None),
    "sqrt": (np.sqrt, [0.1, 3.0]),
    "rsqrt": (lambda x: 1 / np.sqrt(x), [0.1, 3.0]),
    "reciprocal": (lambda x: 1 / x, [-0.5, 3.0]),
    "exp": (np.exp, [-1.0, 2.0]),
    "exp2": (np.exp2, [-1.0, 2.0]),
    "expm1": (np.expm1, [-1.0, 0.0, 2.0]),
    "log": (np.log, [0.1, 3.0]),
    "log2": (np.log2, [0.1, 3.0]),
    "log10": (np.log10, [0.1, 3.0]),
    "log1p": (np.log1p, [-0.5, 0.0, 3.0]),
    "sin": (np.sin, [-2.0, 0.0, 1.0]),
    "cos": (np.cos, [-2.0, 0.0, 1.0]),
    "tan": (np.tan, [-1.0, 0.0, 1.0]),
    "asin": (np.arcsin, [-0.9, 0.0, 0.5]),
    "acos": (np.arccos, [-0.9, 0.0, 0.5]),
    "atan": (np.arctan, [-9.0, 0.0, 0.5]),
    "sinh": (np.sinh, [-2.0, 0.0, 1.0]),
    "cosh": (np.cosh, [-2.0, 0.0, 1.0]),
    "tanh": (np.tanh, [-2.0, 0.0, 1.0]),
    "asinh": (np.arcsinh, [-30.0, -0.1, 0.0, 1e-9, 2.0]),
    "acosh": (np.arccosh, [1.01, 3.0, 50.0]),
    "atanh": (np.arctanh, [-0.9, 0.0, 0.5]),
    "erf": (_erf, [-2.0, 0.0, 1.0]),
    "erfc": (_erfc, [-2.0, 0.0, 1.0]),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), [-20.0, -1.0, 0.0, 3.0, 20.0]),
    "logit": (lambda x: np.log(x / (1 - x)), [0.1, 0.5, 0.9]),
    "deg2rad": (np.deg2rad, [-30.0, 2.0]),
    "rad2deg": (np.rad2deg, [-3.0, 2.0]),
    "floor": (np.floor, [-1.5, 2.4]),
    "ceil": (np.ceil, [-1.5, 2.4]),
    "trunc": (np.trunc, [-1.5, 2.4]),
    "round": (np.round, [-1.4, 2.4]),
    "frac": (lambda x: x - np.trunc(x), [-1.4, 2.4]),
    "isnan": (np.isnan, None),
    "isinf": (np.isinf, None),
    "isfinite": (np.isfinite, None),
    "logical_not": (np.logical_not, None),
    "nan_to_num": (np.nan_to_num, [-1.4, 2.4]),
}
POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 0.3, -0.7, 3.0, -3.0, 1e-5, -1e-5, 11.0, -11.0, INF, -INF, NAN]
POINTS += [1e-30, 1e4, -1e4]


def quietly(function, *arrays):
    with np.errstate(all="ignore"):
        return function(*arrays)


@pytest.mark.parametrize("name", UNARY)
def test_values_are_numpys(name):
    expected = UNARY[name][0]
    for dtype, rtol in ((np.float32, 5e-7), (np.float64, 2e-15)):
        x = np.array(POINTS, dtype)
        (y,) = check(getattr(mt, name), x)
        wanted = np.asarray(quietly(expected, x.astype(np.float64)))
        if wanted.dtype != bool:
            wanted = quietly(wanted.astype, dtype)
        if name == "sign":
            wanted = np.nan_to_num(wanted)  # PyTorch's choice
        if name == "nan_to_num":
            wanted = quietly(np.nan_to_num, x)
        np.testing.assert_allclose(y, wanted, rtol=rtol, atol=rtol if name == "logit" else 1e-45, strict=True)


@pytest.mark.parametrize("name", [name for name in UNARY if UNARY[name][1]])
def test_gradients_are_differences(name):
    x = mt.tensor(UNARY[name][1], dtype=mt.float64, requires_grad=True)
    assert gradcheck(getattr(mt, name), x)
    if name not in ("floor", "ceil", "trunc", "round"):
        assert gradcheck(lambda x: derivative(getattr(mt, name), x), x)


def derivative(function, x):
    """The derivative of a function, as a function that can itself be differentiated."""
    with mt.enable_grad():
        x = x if x.requires_grad else x.detach().requires_grad_()
        return mt.autograd.grad(function(x).sum(), x, create_graph=True)[0] * x


@pytest.mark.parametrize("name", UNARY)
def test_other_types(name):
    function = getattr(mt, name)
    integers = mt.tensor([1, 2, 3], dtype=mt.int16)
    if name != "frac":
        result = function(integers)
        assert result.dtype in (mt.int16, mt.float32, mt.bool)
    half = mt.tensor([1.5, 2.0], dtype=mt.float16)
    assert function(half).dtype in (mt.float16, mt.bool)


@pytest.mark.parametrize(
    "name", ["asinh", "sinh", "asin", "tan", "atanh", "expm1", "log1p", "tanh", "erf", "round", "trunc"]
)
def test_odd_functions_keep_the_sign_of_zero(name):
    y = getattr(mt, name)(mt.tensor([0.0, -0.0])).numpy()
    np.testing.assert_array_equal(np.signbit(y), [False, True])


def test_precise_where_obvious_formulas_are_not():
    tiny, huge = np.float32(1e-6), np.float32(1e30)
    for name, x, expected in (
        ("sinh", tiny, tiny),
        ("asinh", tiny, tiny),
        ("atanh", tiny, tiny),
        ("asinh", huge, math.asinh(1e30)),
        ("asinh", -huge, -math.asinh(1e30)),
        ("acosh", huge, math.acosh(1e30)),
        ("sigmoid", np.float32(-80), math.exp(-80)),
        ("log10", np.float32(1000), 3),
        ("log2", np.float32(2.0**-100), -100),
        ("acos", np.float32(1 - 2**-20), math.acos(1 - 2**-20)),
    ):
        np.testing.assert_allclose(getattr(mt, name)(mt.tensor(x)).numpy(), expected, rtol=3e-7, err_msg=name)
    np.testing.assert_allclose(
        mt.asinh(mt.tensor([300.0], dtype=mt.float16)).float().numpy(), math.asinh(300), rtol=1e-3
    )
    np.testing.assert_allclose(mt.hypot(mt.tensor([3e30, 0.0]), mt.tensor([4e30, 0.0])).numpy(), [5e30, 0], rtol=3e-7)
    np.testing.assert_allclose(
        mt.logaddexp(mt.tensor([0.0, -INF, 1e3]), mt.tensor([-20.0, -INF, 1e3])).numpy(),
        [2.0611537e-9, -INF, 1000.6931],
        rtol=3e-7,
    )


def test_sigmoid_has_a_gradient_everywhere():
    x = mt.tensor([-1000.0, -30.0, 0.0, 30.0, 1000.0], requires_grad=True)
    mt.sigmoid(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0, math.exp(-30), 0.25, math.exp(-30), 0], rtol=1e-6, atol=1e-38)


def test_rounding_goes_to_even():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 8388609.0, 1e30, 4503599627370497.5])
    check(mt.round, x, expected=np.round(x))
    check(mt.round, x.astype(np.float32)[:-1], expected=np.round(x.astype(np.float32)[:-1]))
    check(lambda x: mt.round(x, decimals=2), np.array([1.234, -5.678]), expected=np.array([1.23, -5.68]))
    check(lambda x: mt.round(x, decimals=-2), np.array([149.0, 151.0]), expected=np.array([100.0, 200.0]))


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "pow": np.power,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "hypot": np.hypot,
    "logaddexp": np.logaddexp,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
INTEGER = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "lt": np.less,
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_values_are_numpys(name):
    points = np.array([p for p in POINTS if p == p or name != "hypot"])
    a, b = (side.copy() for side in np.broadcast_arrays(points[:, None], points))
    expected = quietly(BINARY[name], a, b)
    (y,) = check(getattr(mt, name), a, b)
    np.testing.assert_allclose(y, expected, rtol=4e-15, atol=1e-300, strict=True)
    check(getattr(mt, name), points[:, None], points)  # broadcasting


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint32])
@pytest.mark.parametrize("name", INTEGER)
def test_binary_values_of_integers(name, dtype):
    info = np.iinfo(dtype)
    points = np.array([0, 1, 2, 3, 7, 100, info.min, info.max, info.min // 2], dtype)
    a, b = points[:, None], points[(points != 0)]
    with np.errstate(all="ignore"):
        expected = INTEGER[name](a, b)
    check(getattr(mt, name), a, b, expected=expected)


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "sub",
        "mul",
        "div",
        "pow",
        "remainder",
        "fmod",
        "maximum",
        "minimum",
        "fmax",
        "atan2",
        "copysign",
        "hypot",
        "logaddexp",
    ],
)
def test_binary_gradients_are_differences(name):
    a = mt.tensor([[0.6], [1.7], [2.3]], dtype=mt.float64, requires_grad=True)
    b = mt.tensor([0.4, 1.1], dtype=mt.float64, requires_grad=name != "copysign")
    assert gradcheck(getattr(mt, name), [a, b])


def test_equal_operands_share_the_gradient():
    for function in (mt.maximum, mt.minimum, mt.logaddexp):
        a, b = mt.ones(1, requires_grad=True), mt.ones(1, requires_grad=True)
        function(a, b).backward()
        assert a.grad.item() == b.grad.item() == 0.5


OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne"]


@pytest.mark.parametrize("name", [*OPERATORS, "and_", "or_", "xor", "lshift", "rshift"])
def test_python_operators(name):
    function = getattr(operator, name)
    a, b = np.array([7, 1, 12]), np.array([2, 3, 1])
    for left, right in ((mt.tensor(a), mt.tensor(b)), (mt.tensor(a), b), (mt.tensor(a), 3), (9, mt.tensor(b))):
        result = function(left, right)
        expected = function(*(side.numpy() if isinstance(side, mt.Tensor) else side for side in (left, right)))
        assert isinstance(result, mt.Tensor)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)
    x = mt.tensor([1, -2])
    assert (
        (-x).tolist() == [-1, 2] and (+x).tolist() == [1, -2] and abs(x).tolist() == [1, 2] and (~x).tolist() == [-2, 1]
    )


def test_short_powers_are_powers():
    x = np.array([0.7, 1.3, 4.0])
    for exponent in (0, 1, 2, 3, -1, 0.5, -0.5, 2.5, -2):
        check(lambda x, exponent=exponent: x**exponent, x, expected=x**exponent)
        assert gradcheck(lambda x, exponent=exponent: x**exponent, mt.tensor(x, requires_grad=True))
    assert (mt.tensor([True, False]) ** 2).tolist() == [1, 0]
    assert (mt.tensor([4]) ** 0.5).tolist() == [2.0] and (mt.tensor([3]) ** 2).dtype is mt.int64
    with pytest.raises(ValueError, match="fractions"):
        mt.tensor([2]) ** -1


def test_rounded_quotients():
    a, b = np.array([7, -7, 7, -7, 6]), np.array([2, 2, -2, -2, 3])
    check(lambda a, b: mt.div(a, b, rounding_mode="trunc"), a, b, expected=np.array([3, -3, -3, 3, 2]))
    check(lambda a, b: mt.div(a, b, rounding_mode="floor"), a, b, expected=np.array([3, -4, -4, 3, 2]))
    check(lambda a: mt.div(a, 2.0, rounding_mode="trunc"), np.array([-7.0]), expected=np.array([-3.0]))
    assert (mt.tensor([5]) // 0).tolist() == (mt.tensor([5]) % 0).tolist() == [0]
    with pytest.raises(ValueError, match="rounding_mode"):
        mt.div(mt.ones(1), 2, rounding_mode="up")


def test_clamp():
    x = np.array([-2.0, -1.0, 0.5, 3.0, NAN])
    check(lambda x: mt.clamp(x, -1, 1), x, expected=np.array([-1.0, -1.0, 0.5, 1.0, NAN]))
    check(lambda x: x.clamp(min=0), x, expected=np.array([0.0, 0.0, 0.5, 3.0, NAN]))
    check(lambda x: x.clip(max=0), x, expected=np.array([-2.0, -1.0, 0.0, 0.0, NAN]))
    check(lambda x: mt.clamp(x, 2, -2), x, expected=np.array([-2.0, -2.0, -2.0, -2.0, NAN]))
    assert mt.clamp(mt.tensor([5, -5]), min=0.5).tolist() == [5.0, 0.5]
    leaf = mt.tensor([-2.0, -1.0, 0.5, 1.0, 2.0], requires_grad=True)
    leaf.clamp(-1, 1).sum().backward()
    assert leaf.grad.tolist() == [0, 1, 1, 1, 0]  # the edges belong to the inside
    with pytest.raises(ValueError, match="min, max"):
        mt.clamp(leaf)


def test_where_and_lerp():
    x = mt.tensor([-1.0, 2.0], requires_grad=True)
    mt.where(x > 0, x * 3, 0.0).sum().backward()
    assert x.grad.tolist() == [0, 3]
    assert mt.where(mt.tensor([True, False]), 1, 0).dtype is mt.int64
    assert x.detach().where(mt.tensor([True, False]), 5.0).tolist() == [-1, 5]
    a, b = np.array([0.1, 1e8]), np.array([0.7, -0.3])
    for weight in (0.0, 0.25, 1.0):
        check(lambda a, b, weight=weight: mt.lerp(a, b, weight), a, b, expected=a + weight * (b - a))
    assert mt.lerp(mt.tensor(a), mt.tensor(b), 1).tolist() == b.tolist()
    check(
        lambda a, b: mt.addcmul(a, b, b, value=2) + mt.addcdiv(a, b, a, value=3),
        a,
        b,
        expected=2 * a + 2 * b * b + 3 * b / a,
    )
    check(lambda a: mt.add(a, 1, alpha=2) + mt.sub(a, a, alpha=3), a, expected=2 - a)
    with pytest.raises(TypeError, match="alpha"):
        mt.add(mt.tensor([1]), 1, alpha=0.5)


def test_tensors_become_python_bools():
    a = mt.tensor([1.0, NAN, INF])
    assert not mt.equal(a, a) and mt.equal(a[::2], a[::2])
    assert mt.isclose(a, a + 1e-7).tolist() == [True, False, True]
    assert mt.allclose(a, a, equal_nan=True) and not mt.allclose(a, a)
    assert not mt.isclose(mt.tensor([INF]), mt.tensor([-INF])).any()
    assert mt.isclose(mt.tensor([100000]), mt.tensor([100001])).tolist() == [True]


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"MT201.*\n?.*broadcast"):
        mt.ones(2) + mt.ones(3)


def test_aliases_are_the_same_functions_by_other_names():
    for alias, name in (
        ("multiply", "mul"),
        ("absolute", "abs"),
        ("arcsin", "asin"),
        ("clip", "clamp"),
        ("greater", "gt"),
    ):
        assert inspect.unwrap(getattr(mt, alias)) is inspect.unwrap(getattr(mt, name))
        assert getattr(mt, alias).__name__ == getattr(mt.Tensor, alias).__name__ == alias


@pytest.mark.parametrize("wrap", [lambda function: function, mt.jit], ids=["eager", "jit"])
def test_functions_that_are_flat_keep_requires_grad(wrap):
    """Their gradient is zero, and not missing: a loss may consist of nothing else."""
    flat = [mt.sign, mt.sgn, mt.floor, mt.ceil, mt.round, mt.trunc, mt.fix, lambda x: mt.copysign(mt.ones(3), x)]
    x = mt.tensor([-1.5, 0.0, 2.5])
    for function in flat:

        def gradient(x, function=function):
            x = x.detach().requires_grad_()
            y = function(x)
            assert y.requires_grad
            return mt.autograd.grad(y.sum(), x)[0]

        assert wrap(gradient)(x).tolist() == [0, 0, 0]
