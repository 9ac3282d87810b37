"""Sorting: as NumPy with a stable sort, NaN last, ties in their order; eagerly and recorded."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import minitorch as mt
from minitorch import dtypes
from minitorch.errors import ShapeError, TracedValueError
from minitorch.interpreters import Staging, interpreting
from minitorch.tensor import with_value
from tests.support.helpers import check

SMALL = arrays.arrays(
    st.sampled_from([np.float32, np.float64, np.int8, np.int64]),
    arrays.array_shapes(max_dims=3, max_side=5),
    elements=st.integers(-3, 3),
)


@given(SMALL, st.booleans(), st.data())
def test_sort_is_stable(array, descending, data):
    dim = data.draw(st.integers(-array.ndim, array.ndim - 1))
    order = np.argsort(-array if descending else array, axis=dim, kind="stable")
    wanted = (np.take_along_axis(array, order, dim), order)
    check(lambda x: mt.sort(x, dim, descending), array, expected=wanted)
    check(lambda x: x.argsort(dim, descending), array, expected=order)


@given(SMALL, st.booleans(), st.data())
def test_topk_is_the_beginning_of_sort(array, largest, data):
    dim = data.draw(st.integers(0, array.ndim - 1))
    k = data.draw(st.integers(0, array.shape[dim]))

    def begin(x):
        return [part.narrow(dim, 0, k) for part in x.sort(dim, largest)]

    x = mt.tensor(array)
    check(lambda x: x.topk(k, dim, largest), array, expected=[part._value for part in begin(x)])


@given(SMALL, st.data())
def test_median_is_the_lower_middle(array, data):
    dim = data.draw(st.integers(0, array.ndim - 1))
    wanted = np.sort(array, dim).take((array.shape[dim] - 1) // 2, dim)
    value, index = check(lambda x: x.median(dim, keepdim=True), array)
    np.testing.assert_array_equal(np.squeeze(value, dim), wanted)
    np.testing.assert_array_equal(np.take_along_axis(array, index, dim), value)


FLOATS = [pytest.param(dtype, id=dtype.name) for dtype in dtypes.ALL if dtype.is_floating_point]


@pytest.mark.parametrize("dtype", FLOATS)
@given(numbers=st.lists(st.sampled_from([math.nan, -math.nan, -math.inf, -1.0, 0.0, 2.0, math.inf]), min_size=1))
def test_nan_is_the_largest_in_every_type(dtype, numbers):
    x = mt.tensor(numbers, dtype=dtype)
    ordered = sorted(number for number in numbers if number == number)
    ordered += [math.nan] * (len(numbers) - len(ordered))
    np.testing.assert_array_equal(x.sort().values.tolist(), ordered)
    np.testing.assert_array_equal(x.sort(descending=True).values.tolist(), ordered[::-1])
    np.testing.assert_array_equal(x.topk(1).values.tolist(), ordered[-1:])
    unique = x.unique()
    assert unique.dtype is dtype
    np.testing.assert_array_equal(unique.tolist(), without_repetitions(ordered))


def without_repetitions(ordered):
    return [number for place, number in enumerate(ordered) if not place or number != ordered[place - 1]]


@pytest.mark.parametrize("dtype", [pytest.param(dtype, id=dtype.name) for dtype in dtypes.ALL])
def test_every_type_can_be_sorted(dtype):
    x = mt.tensor([1, 0, 1, 0], dtype=dtype)
    values, indices = x.sort(descending=True)
    assert values.dtype is dtype and indices.dtype is mt.int64
    assert values.tolist() == [1, 1, 0, 0] and indices.tolist() == [0, 2, 1, 3]


def test_nan_is_the_largest():
    nan = float("nan")
    array = np.array([[1.0, nan, 0.0], [2.0, 1.0, 0.0]])
    check(lambda x: x.sort().values, array, expected=np.sort(array))
    assert mt.tensor(array).sort(descending=True).indices.tolist() == [[1, 0, 2], [0, 1, 2]]
    check(lambda x: x.median(1), array, expected=[np.array([nan, 1.0]), np.array([1, 1])])
    check(lambda x: x.median(), array, expected=np.array(nan))


def test_no_dimensions():
    x = mt.tensor(3.0)
    for found in (x.sort(), x.topk(1), x.median(0)):
        assert found.values.item() == 3 and found.indices.item() == 0 and found.values.shape == ()
    assert x.median().item() == 3


def test_the_gradient_follows_the_values():
    x = mt.tensor([3.0, 1.0, 2.0], requires_grad=True)
    weights = mt.tensor([10.0, 20.0, 30.0])
    ((x.sort().values * weights).sum() + x.topk(1).values.sum() + x.median()).backward()
    assert x.grad.tolist() == [31, 10, 21]


@given(SMALL, st.booleans())
def test_searchsorted_as_numpy(array, right):
    sequence = np.sort(array.ravel())
    values = np.arange(-4, 5, dtype=array.dtype).reshape(3, 3)
    wanted = np.searchsorted(sequence, values, "right" if right else "left")
    check(lambda s, v: mt.searchsorted(s, v, right=right), sequence, values, expected=wanted)
    check(lambda s, v: mt.bucketize(v, s, right=right), sequence, values, expected=wanted)


def test_searchsorted_in_batches():
    sequence = mt.tensor([[1, 3], [2, 4]])
    assert mt.searchsorted(sequence, mt.tensor([[3], [3]]), side="right").tolist() == [[2], [1]]


def test_unique():
    x = mt.tensor([[3, 1], [3, 2]])
    assert x.unique().tolist() == [1, 2, 3]
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert values[inverse].tolist() == x.tolist() and counts.tolist() == [1, 1, 2]
    rows, inverse = mt.tensor([[1, 2], [0, 0], [1, 2]]).unique(dim=0, return_inverse=True)
    assert rows.tolist() == [[0, 0], [1, 2]] and inverse.tolist() == [1, 0, 1]
    staging = Staging("step")
    with interpreting(staging), pytest.raises(TracedValueError, match="MT103"):
        with_value(staging.input(x.spec, "x")).unique()


def test_errors_say_what_is_wrong():
    with pytest.raises(ShapeError, match="5 elements of f32"):
        mt.zeros(4).topk(5)
    with pytest.raises(ShapeError, match="median of nothing"):
        mt.zeros(0).median(0)
    with pytest.raises(IndexError, match="out of range"):
        mt.zeros(4).sort(1)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("wrap", [lambda function: function, mt.jit], ids=["eager", "jit"])
def test_nan_is_inserted_after_every_number(wrap, right):
    edges, values = mt.tensor([-math.inf, 1.0, 3.0, math.inf]), mt.tensor([math.nan, -math.inf, 1.0, 2.0, math.inf])
    expected = [4, 1, 2, 2, 4] if right else [4, 0, 1, 2, 3]  # PyTorch's
    assert wrap(lambda e, v: mt.searchsorted(e, v, right=right))(edges, values).tolist() == expected
    assert wrap(lambda e, v: mt.bucketize(v, e, right=right))(edges, values).tolist() == expected


@pytest.mark.parametrize("wrap", [lambda function: function, mt.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_nan_boundaries_come_after_every_number(wrap, count, right):
    edges, values = mt.tensor([1.0, 2.0, *[math.nan] * count]), mt.tensor([0.0, 1.0, 1.5, 2.0, math.inf, math.nan])
    expected = [0, 1, 1, 2, 2, 2 + count] if right else [0, 0, 1, 1, 2, 2 + count]
    assert wrap(lambda e, v: mt.searchsorted(e, v, right=right))(edges, values).tolist() == expected
    assert wrap(lambda e, v: mt.bucketize(v, e, right=right))(edges, values).tolist() == expected


def test_unique_of_a_number():
    with pytest.raises(IndexError, match="0-dimensional"):
        mt.tensor(3).unique(dim=0)
    values, inverse, counts = mt.tensor(3).unique(return_inverse=True, return_counts=True)
    assert values.tolist() == [3] and counts.tolist() == [1] and inverse.shape == ()
