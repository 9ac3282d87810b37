"""Promotion, elementwise functions and reductions against PyTorch: values, types and gradients."""

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import minitorch as mt

torch = pytest.importorskip("torch")

NAMES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint32", "float16", "bfloat16", "float32", "float64"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 1e-4, -1e-4, 20.0, -20.0, 100.0, -100.0, 1e30, -1e30]
SPECIAL += [float("inf"), -float("inf"), float("nan")]
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-6, "float64": 1e-13}


def both(values, dtype="float32", requires_grad=False):
    """The same values as a tensor of ours, and one of theirs."""
    theirs = torch.tensor(np.asarray(values)).to(getattr(torch, dtype)).requires_grad_(requires_grad)
    wide = theirs.detach().double() if theirs.is_floating_point() else theirs.detach()
    ours = mt.tensor(wide.numpy(), dtype=getattr(mt, dtype), requires_grad=requires_grad)
    return ours, theirs


def agree(ours, theirs, zeros=True, rtol=None):
    """Type, shape and values are equal, values up to rounding; NaN equals NaN, and 0.0 does not equal -0.0."""
    assert f"torch.{ours.dtype.name}" == str(theirs.dtype)
    assert ours.shape == tuple(theirs.shape)
    theirs = theirs.detach()
    a = np.asarray(ours.detach().to(mt.float64 if ours.is_floating_point() else ours.dtype).numpy())
    b = (theirs.double() if theirs.is_floating_point() else theirs).numpy()
    rtol = rtol or TOLERANCE.get(ours.dtype.name, 0)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
    if zeros and ours.is_floating_point():
        both_zero = (a == 0) & (b == 0)
        np.testing.assert_array_equal(np.signbit(a)[both_zero], np.signbit(b)[both_zero])


UNARY = [
    "abs",
    "neg",
    "square",
    "sign",
    "signbit",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "sigmoid",
    "deg2rad",
    "rad2deg",
    "floor",
    "ceil",
    "trunc",
    "round",
    "frac",
    "isnan",
    "isinf",
    "isfinite",
    "logical_not",
    "nan_to_num",
    "logit",
]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "uint8", "bool"])
def test_unary(name, dtype):
    values = SPECIAL if "float" in dtype else [0, 1, 2, 5] if dtype in ("uint8", "bool") else [0, 1, -1, 2, -3, 5]
    ours, theirs = both(values, dtype)
    try:
        expected = getattr(torch, name)(theirs)
    except (RuntimeError, NotImplementedError):
        if name in ("abs", "neg", "frac"):
            with pytest.raises(TypeError):
                getattr(mt, name)(ours)
        return
    agree(getattr(mt, name)(ours), expected)


@pytest.mark.parametrize("name", UNARY)
def test_unary_gradient(name):
    if name == "sign":
        return  # not recorded here, a gradient of zeros there
    values = {"acosh": [1.0, 1.2, 50.0, 1e8, 1e300], "logit": [0.1, 0.5, 0.9]}.get(
        name, [0.0, 0.3, -0.4, 0.9, -0.9, 1.7, -2.2, 40.0, -40.0, 800.0, -800.0]
    )
    ours, theirs = both(values, "float64", True)
    expected = getattr(torch, name)(theirs)
    if not expected.requires_grad:
        return
    expected.sum().backward()
    getattr(mt, name)(ours).sum().backward()
    agree(ours.grad, theirs.grad, zeros=False, rtol=1e-12)


BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "floor_divide",
    "remainder",
    "fmod",
    "pow",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "atan2",
    "copysign",
    "hypot",
    "logaddexp",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int8"])
def test_binary_on_all_pairs_of_values(name, dtype):
    floats = "float" in dtype
    values = SPECIAL if floats else [0, 1, -1, 2, 3, -3, 7, -7, 100, -128]
    divides = name in ("floor_divide", "remainder", "fmod")
    pairs = [(a, b) for a, b in itertools.product(values, values) if floats or not divides or b != 0]
    if name == "hypot":
        pairs = [(a, b) for a, b in pairs if a == a and b == b]
    if divides and not floats:
        pairs = [(a, b) for a, b in pairs if (a, b) != (-128, -1)]
    (a, a_theirs), (b, b_theirs) = both([a for a, _ in pairs], dtype), both([b for _, b in pairs], dtype)
    try:
        expected = getattr(torch, name)(a_theirs, b_theirs)
    except (RuntimeError, NotImplementedError):
        return
    # Which zero is the larger one is open in C; PyTorch's own kernels differ, also in remainders that are zero.
    agree(getattr(mt, name)(a, b), expected, zeros=not divides and "m" not in name)


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "sub",
        "mul",
        "div",
        "pow",
        "maximum",
        "minimum",
        "atan2",
        "copysign",
        "hypot",
        "logaddexp",
        "remainder",
        "fmod",
    ],
)
def test_binary_gradient(name):
    values = [0.5, 1.3, -0.7, 2.0, -2.5]
    pairs = list(itertools.product(values, values))
    (a, a_theirs), (b, b_theirs) = (both(list(side), "float64", True) for side in zip(*pairs, strict=True))
    getattr(torch, name)(a_theirs, b_theirs).sum().backward()
    getattr(mt, name)(a, b).sum().backward()
    agree(a.grad, a_theirs.grad, zeros=False)
    if name != "copysign":  # not recorded here, a gradient of zeros there
        agree(b.grad, b_theirs.grad, zeros=False)


def operands(dtype):
    """A tensor with dimensions, one without, and a number of each category."""
    return [both([1, 0, 2], dtype), both(1, dtype)]


NUMBERS = [(value, value) for value in (True, 2, 2.5)]


@pytest.mark.parametrize("left", NAMES)
def test_result_types_of_all_pairs(left):
    for right in NAMES:
        if "uint32" in (left, right) and left != right:
            continue  # PyTorch has no promotion for it
        for (a, a_theirs), (b, b_theirs) in itertools.product(operands(left), [*operands(right), *NUMBERS]):
            assert f"torch.{mt.result_type(a, b).name}" == str(torch.result_type(a_theirs, b_theirs))
            for name in ("add", "mul", "div", "pow", "lt", "eq"):
                if name == "pow" and mt.result_type(a, b) is mt.bool:
                    continue  # refused here; there it depends on the value
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        expected = getattr(torch, name)(a_theirs, b_theirs)
                except (RuntimeError, NotImplementedError):
                    continue
                agree(getattr(mt, name)(a, b), expected, zeros=False)


def test_numbers_that_do_not_fit_wrap_around():
    ours, theirs = both([1, 200], "uint8")
    for number in (300, -1, -300, 2**40):
        agree(ours + number, theirs + number)
        agree(number - ours, number - theirs)
    ours, theirs = both([1.0], "float16")
    agree(ours + 1e6, theirs + 1e6)


OTHERS = {
    "clamp": lambda t, x: t.clamp(x, min=-0.5, max=1.0),
    "clamp by tensors": lambda t, x: t.clamp(x, x * 0 - 1, x * 0 + 2),
    "clamp upside down": lambda t, x: t.clamp(x, min=2, max=-2),
    "round to decimals": lambda t, x: t.round(x, decimals=2),
    "round to tens": lambda t, x: t.round(x * 100, decimals=-1),
    "truncated quotient": lambda t, x: t.div(x, 0.3, rounding_mode="trunc"),
    "floored quotient": lambda t, x: t.div(x, 0.3, rounding_mode="floor"),
    "lerp": lambda t, x: t.lerp(x, x * x, 0.25) + t.lerp(x, x * x, 0.75),
    "lerp by tensor": lambda t, x: t.lerp(x, x * x, x),
    "addcmul": lambda t, x: t.addcmul(x, x, x, value=3),
    "addcdiv": lambda t, x: t.addcdiv(x, x, x * x + 1, value=3),
    "scaled": lambda t, x: t.add(x, x, alpha=2) + t.sub(x, 1, alpha=3),
    "powers": lambda t, x: x**2 + x**3 + x**0 + x**1 + (x * x) ** 0.5 + (x * x + 1) ** -0.5 + (x * x + 1) ** -1,
    "power of a number": lambda t, x: 2**x + 0.5**x + x.float() ** 2,
    "reflected": lambda t, x: 1 - x + 2 / (x * x + 1) + 7.5 - x,
    "where": lambda t, x: t.where(x > 0, x * 2, -1.0),
    "logit": lambda t, x: t.logit(x, eps=0.1),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions(name):
    ours, theirs = both([0.31, -0.42, 0.9, 1.7, -2.2, 5.0], "float64", True)
    a, b = OTHERS[name](mt, ours), OTHERS[name](torch, theirs)
    agree(a, b)
    a.sum().backward()
    b.sum().backward()
    agree(ours.grad, theirs.grad, zeros=False)


REDUCTIONS = {
    "sum": lambda x, **d: x.sum(**d),
    "mean": lambda x, **d: x.mean(**d),
    "var": lambda x, **d: x.var(**d),
    "population variance": lambda x, **d: x.var(correction=0, **d),
    "std": lambda x, **d: x.std(**d),
    "amax": lambda x, **d: x.amax(**d),
    "amin": lambda x, **d: x.amin(**d),
    "logsumexp": lambda x, **d: x.logsumexp(**({"dim": (0, 1, 2)} | d)),
    "norm": lambda x, **d: x.norm(**d),
    "norm 1": lambda x, **d: x.norm(1, **d),
    "norm 3": lambda x, **d: x.norm(3, **d),
    "norm inf": lambda x, **d: x.norm(float("inf"), **d),
    "norm -inf": lambda x, **d: x.norm(-float("inf"), **d),
    "norm 0": lambda x, **d: x.norm(0, **d),
    "nansum": lambda x, **d: x.nansum(**d),
    "nanmean": lambda x, **d: x.nanmean(**d),
    "all": lambda x, **d: x.all(**d),
    "any": lambda x, **d: x.any(**d),
}
ONE_DIM = {
    "prod": lambda x, **d: x.prod(**d),
    "max": lambda x, **d: x.max(**d),
    "min": lambda x, **d: x.min(**d),
    "argmax": lambda x, **d: x.argmax(**d),
    "argmin": lambda x, **d: x.argmin(**d),
    "cumsum": lambda x, dim=0, keepdim=False: x.cumsum(dim),
    "cumprod": lambda x, dim=0, keepdim=False: x.cumprod(dim),
}


@pytest.mark.parametrize("name", [*REDUCTIONS, *ONE_DIM])
@pytest.mark.parametrize("dim", [None, 0, -1, (0, 2), (-1, 1), ()])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(name, dim, keepdim):
    if dim is None and keepdim:
        return
    if isinstance(dim, tuple) and name in ONE_DIM:
        return
    if dim == () and name in ("var", "population variance", "std", "logsumexp", "all", "any"):
        return  # PyTorch returns infinities, or reduces nothing
    options = {} if dim is None else {"dim": dim, "keepdim": keepdim}
    values = np.random.default_rng(0).normal(size=(2, 3, 4))
    values[0, 0, 0] = values[1, 2, 3] = 0
    ours, theirs = both(values, "float64", True)
    function = REDUCTIONS.get(name) or ONE_DIM[name]
    a, b = function(ours, **options), function(theirs, **options)
    if name in ("max", "min") and options:
        agree(a.indices, b.indices)
        a, b = a.values, b.values
    agree(a, b)
    if b.requires_grad and name != "norm 0":
        (a * a).sum().backward()
        (b * b).sum().backward()
        agree(ours.grad, theirs.grad, zeros=False)


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize(
    "name", ["sum", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "cumsum", "cumprod", "count_nonzero"]
)
def test_reductions_of_all_types(name, dtype):
    ours, theirs = both([3, 1, 2, 0, 1], dtype)
    options = {"dim": 0} if "cum" in name else {}
    try:
        expected = getattr(torch, name)(theirs, **options)
    except (RuntimeError, NotImplementedError):
        return
    agree(getattr(mt, name)(ours, **options), expected)


@pytest.mark.parametrize(
    "values", [[float("nan"), 1.0], [2.0, 2.0], [-float("inf")] * 2, [float("inf"), 1.0], [True, False]]
)
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "amax", "amin", "logsumexp", "sum", "prod"])
def test_special_values_in_reductions(name, values):
    ours, theirs = both(values, "bool" if values[0] is True else "float32")
    if values[0] is True and "arg" in name:
        return  # PyTorch has none
    options = {"dim": 0} if name == "logsumexp" else {}
    agree(getattr(mt, name)(ours, **options), getattr(torch, name)(theirs, **options))


def test_reductions_of_numbers_and_of_nothing():
    ours, theirs = both(3.0)
    for name in ("sum", "mean", "max", "argmax", "prod", "cumsum", "std"):
        for options in ({}, {"dim": 0}, {"dim": -1}):
            if name == "cumsum" and not options:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                a, b = getattr(ours, name)(**options), getattr(theirs, name)(**options)
            agree(*(each[0] if isinstance(each, tuple) else each for each in (a, b)))
    ours, theirs = mt.zeros(0, 3), torch.zeros(0, 3)
    for name in ("sum", "mean", "prod", "all", "any", "nansum"):
        for options in ({}, {"dim": 0}, {"dim": 1}):
            agree(getattr(ours, name)(**options), getattr(theirs, name)(**options))
    agree(ours.amax(1), theirs.amax(1))
    agree(ours.logsumexp(0), theirs.logsumexp(0))


CREATED = {
    "arange": lambda t: [t.arange(5), t.arange(5.0), t.arange(1, 10, 3), t.arange(0, 1, 0.1), t.arange(5, 0, -2)],
    "linspace": lambda t: [t.linspace(0, 1, 7), t.linspace(3, -1, 1), t.linspace(-5, 5, 10, dtype=t.float64)],
    "eye": lambda t: [t.eye(3), t.eye(2, 4), t.eye(4, 2, dtype=t.int32)],
    "full": lambda t: [t.full((2,), 3), t.full((2,), 2.5), t.full((2,), True), t.full((), -1, dtype=t.int8)],
    "tensor": lambda t: [t.tensor([[1, 2]]), t.tensor([1, 2.5]), t.tensor([]), t.tensor(True), t.tensor([True, 2])],
    "numpy numbers": lambda t: [t.tensor([np.float64(1)]), t.tensor(np.int8(3)), t.tensor([np.float32(1)])],
    "like": lambda t: [t.zeros_like(t.eye(2)), t.ones_like(t.arange(3)), t.full_like(t.arange(3), 7)],
}


@pytest.mark.parametrize("name", CREATED)
def test_creation(name):
    for ours, theirs in zip(CREATED[name](mt), CREATED[name](torch), strict=True):
        agree(ours, theirs)


@pytest.mark.parametrize("name", ["div", "copysign", "atan2", "hypot", "logaddexp", "xlogy"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
def test_float_functions_of_integers_and_numbers(name, dtype):
    ours, theirs = both([0, 1, 100], dtype)
    mine: Any
    for value, kind in itertools.product([1000, -255, -3, 3, 0, 2**40, True, 0.5], ["number", "scalar", "vector"]):
        if kind == "number":
            mine = its = value
        else:
            its = torch.tensor(value if kind == "scalar" else [value])
            mine = mt.tensor(its.tolist(), dtype=getattr(mt, str(its.dtype).removeprefix("torch.")))
        try:
            expected = getattr(torch, name)(theirs, its)
        except (TypeError, RuntimeError):  # not every function of theirs takes numbers, or integers
            continue
        agree(getattr(mt, name)(ours, mine), expected, zeros=False)
