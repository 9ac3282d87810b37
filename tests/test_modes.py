"""For all public functions: eager = interpret = jit = Session = lazy, bit by bit; gradients = finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd import gradcheck
from minitorch.ir import PRIMITIVES
from minitorch.tree import flatten, unflatten
from tests.cases import CASES, EAGER_BY_NATURE, METHODS

ALL = CASES + METHODS


def takes_floats(case):
    return any(array.dtype == np.float32 for array in case.arrays)


differentiable = pytest.mark.parametrize("case", [case for case in ALL if case.smooth and takes_floats(case)], ids=str)


def tensors_in(result):
    return [leaf for leaf in flatten(result)[0] if isinstance(leaf, mt.Tensor)]


def eager(function, tensors):
    return function(*tensors)


def interpreted(function, tensors):
    """As traced: no pass has touched the graph."""
    return mt.jit(function, passes=())(*tensors)


def jitted(function, tensors):
    return mt.jit(function)(*tensors)


def session(function, tensors):
    with mt.Graph() as g:
        inputs = [mt.placeholder(x.shape, x.dtype, name=f"x{number}") for number, x in enumerate(tensors)]
        leaves, structure = flatten(function(*inputs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, mt.Tensor)]
    for place, value in zip(
        places, mt.Session(g).run([leaves[p] for p in places], dict(zip(inputs, tensors, strict=True))), strict=True
    ):
        leaves[place] = value
    return unflatten(structure, leaves)


def lazily(function, tensors):
    with mt.lazy():
        return function(*tensors)


MODES = {"interpret": interpreted, "jit": jitted, "session": session, "lazy": lazily}


def run(mode, function, tensors):
    mt.manual_seed(7)
    return mode(function, tensors)


def assert_same_bits(mine, theirs):
    assert flatten(mine)[1] == flatten(theirs)[1]
    for a, b in zip(tensors_in(mine), tensors_in(theirs), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(
            *(x.detach().double().numpy() if x.dtype is not mt.int64 else x.numpy() for x in (a, b))
        )


def test_every_public_function_has_a_case():
    public = set(mt.FUNCTIONS) | {f"F.{name}" for name in mt.nn.functional.__all__}
    assert public - {case.name for case in CASES} == EAGER_BY_NATURE
    assert len(EAGER_BY_NATURE) < len(public) / 10


TYPED = [
    (case, dtype)
    for case in ALL
    for dtype in (mt.float32, mt.float64, mt.bfloat16, mt.float16)
    if dtype is mt.float32 or takes_floats(case)
]


@pytest.mark.parametrize(("case", "dtype"), TYPED, ids=[f"{case}-{dtype.short}" for case, dtype in TYPED])
def test_all_modes_give_the_same_bits(case, dtype):
    tensors = case.tensors(dtype)
    expected = run(eager, case.function, tensors)
    for mode in MODES.values():
        assert_same_bits(run(mode, case.function, tensors), expected)


@differentiable
def test_gradients_are_finite_differences(case):
    tensors = case.tensors(mt.float64, requires_grad=True)

    def function(*args):
        mt.manual_seed(7)
        return tuple(x for x in tensors_in(case.function(*args)) if x.is_floating_point())

    assert gradcheck(function, tensors)


@differentiable
def test_gradients_are_the_same_through_and_inside_every_mode(case):
    tensors = case.tensors(mt.float64, requires_grad=True)

    def loss(*args):
        floats = [x for x in tensors_in(case.function(*args)) if x.is_floating_point()]
        return sum((x * x).sum() * (number + 1) for number, x in enumerate(floats))

    def gradients(*args):
        """Inside of the mode."""
        wanted = [x for x in args if x.requires_grad]
        value = loss(*args)
        if not isinstance(value, mt.Tensor) or not value.requires_grad:
            return []
        return [g for g in mt.autograd.grad(value, wanted, allow_unused=True) if g is not None]

    def with_placeholders(function, tensors):
        return session(
            lambda *args: function(*[x.requires_grad_(y.requires_grad) for x, y in zip(args, tensors, strict=True)]),
            tensors,
        )

    expected = run(eager, gradients, tensors)
    compiled = mt.jit(loss)
    through = run(eager, lambda *args: _gradients_of(compiled, args), tensors)
    for found in (
        through,
        run(interpreted, gradients, tensors),
        run(jitted, gradients, tensors),
        run(with_placeholders, gradients, tensors),
        run(lazily, gradients, tensors),
    ):
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-14, strict=True)


def _gradients_of(function, args):
    """Through a call of a jitted function."""
    value = function(*args)
    if not isinstance(value, mt.Tensor) or not value.requires_grad:
        return []
    found = mt.autograd.grad(value, [x for x in args if x.requires_grad], allow_unused=True)
    return [g for g in found if g is not None]


def test_the_cases_reach_every_primitive():
    used = set()
    for case in ALL:
        tensors = case.tensors(mt.float32, requires_grad=True)
        used |= {node.primitive.name for node in mt.jit(case.function).graph(*tensors).nodes}
    assert set(PRIMITIVES) - used <= {"bitcast"}  # it has no public function
