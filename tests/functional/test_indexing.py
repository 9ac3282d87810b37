"""Square brackets and the functions with indices: as NumPy, where NumPy and PyTorch agree, eagerly and recorded."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minitorch as mt
from minitorch.errors import AutogradError, DTypeError, ShapeError, TracedValueError
from minitorch.interpreters import Staging, interpreting
from minitorch.nn import functional as F
from minitorch.tensor import with_value
from tests.support.helpers import check

# Random indices -------------------------------------------------------------------------------------------


def int_like(item):
    return isinstance(item, int) or (isinstance(item, np.ndarray) and item.ndim == 0)


def width(item):
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, np.ndarray) and item.dtype == bool else 1


def reference(array, index):
    """What PyTorch selects, by NumPy: ints (and 0-dimensional tensors) take their dimensions away before all else."""
    first: list[Any] = []
    second = []
    for item in index:
        if int_like(item):
            first.append(int(item))
            continue
        second.append(item)
        first += [item] if item is Ellipsis else [slice(None)] * width(item)
    first += [] if any(item is Ellipsis for item in first) else [Ellipsis]  # with ..., the result is an array
    return array[tuple(first)], tuple(second)


def selected(array, index):
    part, rest = reference(array, index)
    return part[rest]


@st.composite
def shapes_and_indices(draw):
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=4)))
    family = draw(st.sampled_from([(), (3,), (2, 1), (2, 3), (0,)]))
    kinds = ["int", "slice", "slice", *draw(st.sampled_from([["array", "array"], ["mask"], []]))]
    dots = draw(st.integers(-1, len(shape)))
    named = draw(st.integers(0, len(shape)))
    index: list[Any] = []
    dim = 0
    while dim < named:
        if dim == dots:
            skipped = draw(st.integers(0, len(shape) - dim))
            # Between index arrays, NumPy lets even a ... for no dimensions count; PyTorch does not.
            index += [Ellipsis] if skipped or not index else []
            named, dim, dots = len(shape), dim + skipped, -1
            continue
        kind = draw(st.sampled_from(kinds))
        length = shape[dim]
        if kind == "int":
            index.append(draw(st.integers(-length, length - 1)))
        elif kind == "slice":
            bound = st.one_of(st.none(), st.integers(-length - 1, length + 1))
            index.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3]))))
        elif kind == "array":
            own = draw(st.sampled_from([family, family[1:], ()]))
            numbers = st.lists(st.integers(-length, length - 1), min_size=int(np.prod(own)), max_size=int(np.prod(own)))
            index.append(np.array(draw(numbers), np.int64).reshape(own))
        else:
            covers = shape[dim : dim + draw(st.integers(1, 2))]
            size = int(np.prod(covers))
            bits = draw(st.lists(st.booleans(), min_size=size, max_size=size))
            index.append(np.array(bits, bool).reshape(covers))
            kinds.remove("mask")
        dim += width(index[-1])
        if draw(st.integers(0, 5)) == 0:
            index.insert(draw(st.integers(0, len(index))), None)
    return shape, tuple(index)


def with_tensors(index):
    return tuple(mt.tensor(item) if isinstance(item, np.ndarray) else item for item in index)


def has_mask(index):
    return any(isinstance(item, np.ndarray) and item.dtype == bool for item in index)


@given(shapes_and_indices())
def test_reading_as_numpy(case):
    shape, index = case
    array = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    wanted = np.asarray(selected(array, index))
    np.testing.assert_array_equal(mt.tensor(array)[with_tensors(index)]._value, wanted, strict=True)
    # Arrays in the index are known values, so that a recording takes masks, too.
    check(lambda x: x[index], array, expected=wanted)
    if not has_mask(index):
        check(lambda x: x[with_tensors(index)], array, expected=wanted)


@given(shapes_and_indices())
def test_writing_as_numpy(case):
    shape, index = case
    old = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    for new in (-old - 1, np.full(shape, 0.5)):  # what is written depends on the place alone, however often it is hit
        wanted = old.copy()
        part, rest = reference(wanted, index)
        values = np.asarray(selected(new, index))
        part[rest] = values
        value = 0.5 if new.flat[0] == 0.5 else mt.tensor(values)

        def write(x, index=index, value=value):
            x = x + 0
            x[index] = value
            return x

        check(write, old, expected=wanted)
        eager = mt.tensor(old)
        eager[with_tensors(index)] = value
        np.testing.assert_array_equal(eager._value, wanted)


@given(shapes_and_indices())
def test_the_gradient_goes_where_it_was_read(case):
    shape, index = case
    places = np.asarray(selected(np.arange(np.prod(shape), dtype=np.int64).reshape(shape), index))
    x = mt.zeros(shape, dtype=mt.float64, requires_grad=True)
    weights = np.arange(places.size, dtype=np.float64).reshape(places.shape) + 1
    (x[with_tensors(index)] * mt.tensor(weights)).sum().backward()
    wanted = np.bincount(places.ravel(), weights.ravel(), minlength=x.numel())
    np.testing.assert_array_equal(x.grad._value, wanted.reshape(shape))


# Single laws ----------------------------------------------------------------------------------------------


def test_placement_of_indexed_dimensions():
    x, i = mt.zeros(2, 3, 4, 5), mt.tensor([[0, 1, 0]])
    assert x[:, i, i].shape == (2, 1, 3, 5)  # neighbours stay in place
    assert x[i, :, i].shape == (1, 3, 3, 5)  # others go in front
    assert x[0, :, i].shape == (3, 1, 3, 5)  # an int is no index tensor: as PyTorch, not as NumPy
    assert x[:, i, None, i].shape == (1, 3, 2, 1, 5)
    assert x[mt.tensor(1), :, i].shape == (3, 1, 3, 5)


def test_what_counts_as_an_index():
    x = mt.arange(6).reshape(2, 3)
    assert x[[1, 0]].tolist() == [[3, 4, 5], [0, 1, 2]]
    assert x[1, np.int64(2)].item() == x[1, mt.tensor(2)].item() == 5
    assert x[:, range(0, 3, 2)].tolist() == [[0, 2], [3, 5]]
    assert x[[True, False]].tolist() == [[0, 1, 2]]
    assert x[True].shape == (1, 2, 3) and x[False].shape == (0, 2, 3) and x[mt.tensor(True)].shape == (1, 2, 3)
    assert x[[]].shape == (0, 3)
    assert x[mt.tensor([1], dtype=mt.int32)].tolist() == [[3, 4, 5]]


def test_values_are_converted_and_broadcast():
    x = mt.zeros(2, 3, dtype=mt.int64)
    x[0] = 1.9
    x[1, 1:] = mt.tensor([[2.5, -2.5]])  # a dimension of length 1 in front does not count
    assert x.tolist() == [[1, 1, 1], [0, 2, -2]]
    y = mt.zeros(2, dtype=mt.float64)
    y[0] = 0.1
    assert y[0].item() == 0.1
    y[...] = 3
    y[()] += 1
    assert y.tolist() == [4, 4]
    flags = mt.zeros(2, dtype=mt.bool)
    flags[1] = 5
    assert flags.tolist() == [False, True]


MASKED = {
    "number": (lambda x, m: (m, 7), [[0, 7], [7, 3]]),
    "row": (lambda x, m: (m[:, 0], mt.tensor([8, 9])), [[0, 1], [8, 9]]),
    "one row": (lambda x, m: (m[:, 0], mt.tensor([[8, 9]])), [[0, 1], [8, 9]]),
    "column": (lambda x, m: ((slice(None), m[0]), mt.tensor([[8], [9]])), [[0, 8], [2, 9]]),
    "part": (lambda x, m: ((1, m[1]), 7), [[0, 1], [7, 3]]),
}


@pytest.mark.parametrize("name", MASKED)
def test_masks_can_be_written_in_a_recording(name):
    make, wanted = MASKED[name]

    def write(x, mask):
        x = x + 0
        index, value = make(x, mask)
        x[index] = value
        return x

    mask = np.array([[False, True], [True, False]])
    check(write, np.arange(4).reshape(2, 2), mask, expected=np.array(wanted))


def test_masks_with_a_value_for_each():
    x = mt.arange(4)
    x[x % 2 == 0] = mt.tensor([7, 8])
    assert x.tolist() == [7, 1, 8, 3]
    x[x > 3] += 10
    assert x.tolist() == [17, 1, 18, 3]


DATA_DEPENDENT = {
    "read a mask": lambda x, m: x[m],
    "write one value for each": lambda x, m: x.__setitem__(m, mt.ones(2)),
    "masked_select": lambda x, m: x.masked_select(m),
    "nonzero": lambda x, m: x.nonzero(),
}


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_shapes_that_depend_on_data(name):
    staging = Staging("step")
    x, mask = mt.ones(3), mt.tensor([True, True, False])
    with interpreting(staging):
        inputs = [with_value(staging.input(each.spec, name)) for each, name in ((x, "x"), (mask, "mask"))]
        with pytest.raises(TracedValueError, match="MT103") as error:
            DATA_DEPENDENT[name](*inputs)
    assert "masked_fill" in str(error.value)


ERRORS = {
    "int outside": (lambda x: x[2], IndexError, "index 2 is out of range for dimension 0 with length 2"),
    "int before": (lambda x: x[:, -4], IndexError, "index -4 is out of range for dimension 1"),
    "list outside": (lambda x: x[[0, 2]], IndexError, "index 2 is out of range"),
    "tensor outside": (lambda x: x[mt.tensor([0, 2])], IndexError, "out of bounds"),
    "too many": (lambda x: x[0, 0, 0], IndexError, "too many indices, 3, for .*, which has 2 dimensions"),
    "two ellipses": (lambda x: x[..., ...], IndexError, r"more than one \.\.\."),
    "backwards": (lambda x: x[::-1], ValueError, "use flip"),
    "float": (lambda x: x[1.5], IndexError, "not 1.5"),
    "string": (lambda x: x["a"], IndexError, "not 'a'"),
    "float tensor": (lambda x: x[mt.zeros(1)], IndexError, "float32 cannot be an index"),
    "uint8 tensor": (lambda x: x[mt.zeros(1, dtype=mt.uint8)], IndexError, "masks bool"),
    "mask of another shape": (lambda x: x[mt.tensor([True])], IndexError, r"mask of shape \[1\]"),
    "indices that do not broadcast": (lambda x: x[[0, 1], [0, 1, 2]], ShapeError, "broadcast"),
    "value that does not fit": (lambda x: x.__setitem__(0, mt.zeros(2)), ShapeError, r"selects the shape \[3\]"),
    "value of no tensor": (lambda x: x.__setitem__(0, [1, 2, 3]), TypeError, "tensor or a number"),
    "gather": (lambda x: x.gather(0, mt.tensor([0])), ShapeError, "as many dimensions"),
    "gather wider": (lambda x: x.gather(0, mt.zeros(1, 4, dtype=mt.int64)), ShapeError, "only in dimension 0"),
    "scatter of another type": (
        lambda x: x.scatter(0, mt.zeros(1, 3, dtype=mt.int64), mt.zeros(1, 3)),
        DTypeError,
        "convert it",
    ),
    "too large a value": (lambda x: x.masked_fill(x > 0, 2**63), DTypeError, "does not fit int64"),
    "index of two dimensions": (lambda x: x.index_select(0, x), IndexError, "one dimension"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_is_wrong(name):
    function, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        function(mt.arange(6).reshape(2, 3))


def test_writing_and_gradients():
    x = mt.zeros(2, requires_grad=True)
    with pytest.raises(AutogradError, match="MT401"):
        x[0] = 1.0
    with mt.no_grad():
        x[0] = 1.0
    assert x.tolist() == [1, 0]
    y = mt.zeros(2)
    y[0] = x[0] * 3
    y.sum().backward()
    assert x.grad.tolist() == [3, 0]


# Functions ------------------------------------------------------------------------------------------------

X = np.arange(12.0).reshape(3, 4)
PLACES = np.array([[2, 0, 1, 1], [0, 0, 2, 1]])
LINE = np.array([2, 0, 2])


def put(array, places, values, add=False):
    array = array.copy()
    if add:
        np.add.at(array, places, values)
    else:
        array[places] = values
    return array


COLUMNS = (PLACES, np.arange(4))
FUNCTIONS = {
    "gather": (lambda x: x.gather(0, mt.tensor(PLACES)), X[COLUMNS]),
    "gather fewer": (lambda x: x.gather(-1, mt.tensor(LINE[:, None])), np.take_along_axis(X, LINE[:, None], 1)),
    "scatter": (
        lambda x: x.scatter(0, mt.tensor(PLACES[:1]), x[2:] * 2),
        put(X, (PLACES[:1], np.arange(4)), X[2:] * 2),
    ),
    "scatter a number": (lambda x: x.scatter(0, mt.tensor(PLACES), 5), put(X, COLUMNS, 5)),
    "scatter of more": (
        lambda x: x.scatter(0, mt.tensor(PLACES[:1, :2]), x),
        put(X, (PLACES[0, :2], [0, 1]), X[0, :2]),
    ),
    "scatter_add": (lambda x: x.scatter_add(0, mt.tensor(PLACES), x[:2]), put(X, COLUMNS, X[:2], add=True)),
    "take_along_dim": (lambda x: mt.take_along_dim(x, x.argsort(1, True), 1), X[:, ::-1]),
    "take_along_dim broadcast": (lambda x: x.take_along_dim(mt.tensor(PLACES[:, :1]), 0), X[PLACES[:, 0]]),
    "take_along_dim of all": (lambda x: x.take_along_dim(mt.tensor(PLACES)), X.ravel()[PLACES.ravel()]),
    "take": (lambda x: x.take(mt.tensor(PLACES)), X.ravel()[PLACES]),
    "index_select": (lambda x: x.index_select(1, mt.tensor(LINE)), X[:, LINE]),
    "index_select one": (lambda x: x.index_select(0, mt.tensor(LINE[0])), X[2:]),
    "index_add": (lambda x: x.index_add(1, mt.tensor(LINE), x[:, 1:]), put(X.T, LINE, X[:, 1:].T, add=True).T),
    "index_add times": (
        lambda x: x.index_add(0, mt.tensor(LINE), x, alpha=-2),
        put(X, LINE, -2 * X, add=True),
    ),
    "index_copy": (lambda x: x.index_copy(1, mt.tensor(LINE[1:]), x[:, 2:]), put(X.T, LINE[1:], X[:, 2:].T).T),
    "index_fill": (lambda x: x.index_fill(0, mt.tensor(LINE), -1), put(X, LINE, -1)),
    "masked_fill": (lambda x: x.masked_fill(x > 5, float("-inf")), np.where(X > 5, -np.inf, X)),
    "masked_fill with a tensor": (lambda x: x.masked_fill(x > 5, mt.tensor(2)), np.where(X > 5, 2, X)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_as_numpy(name):
    function, wanted = FUNCTIONS[name]
    check(function, X, expected=wanted)


def test_functions_with_shapes_from_data():
    x = mt.tensor([[0, 2], [3, 0]])
    assert x.nonzero().tolist() == mt.argwhere(x).tolist() == [[0, 1], [1, 0]]
    assert [index.tolist() for index in x.nonzero(as_tuple=True)] == [[0, 1], [1, 0]]
    assert x.masked_select(x > 1).tolist() == [2, 3]
    assert x.masked_select(mt.tensor([True, False])).tolist() == [0, 3]
    assert mt.tensor(5).nonzero().shape == (1, 0)


@pytest.mark.parametrize("wrap", [lambda function: function, mt.jit], ids=["eager", "jit"])
def test_a_tensor_without_dimensions_is_written_as_a_row_of_one(wrap):
    x, place, y = mt.tensor(3.0), mt.tensor(0), mt.tensor(5.0)
    functions = {
        8.0: [lambda x, i, y: x.scatter_add(0, i, y), lambda x, i, y: x.index_add(-1, i, y)],
        5.0: [
            lambda x, i, y: x.scatter(0, i, y),
            lambda x, i, y: x.scatter(0, i, src=y),
            lambda x, i, y: x.index_copy(0, i, y),
        ],
        7.0: [
            lambda x, i, y: x.scatter(0, i, 7),
            lambda x, i, y: x.index_fill(0, i, 7),
            lambda x, i, y: x.scatter(0, i, value=7),
        ],
        3.0: [lambda x, i, y: x.gather(0, i), lambda x, i, y: x.index_select(0, i), lambda x, i, y: x.flip(0)],
    }
    for expected, row in functions.items():
        for function in row:
            result = wrap(function)(x, place, y)
            assert (result.shape, result.item()) == ((), expected)


def test_an_index_out_of_bounds_is_named():
    x, there = mt.ones(3, 2), mt.tensor([[7]])
    outside = r"index 7 is out of bounds for dim 0 of f32\[3,2\].* -3 to 2"
    for text, use in (
        (outside, lambda index: x[index]),
        (outside, lambda index: x.clone().index_put_((index,), 1.0)),
        ("scatter: the index has 7, and .* from 0 to 2", lambda index: x.scatter(0, index, 1.0)),
        ("scatter_add: the index has 7, and .* from 0 to 2", lambda index: x.scatter_add(0, index, mt.ones(1, 1))),
    ):
        mode: Any
        for mode in (lambda f: f, lambda f: mt.jit(f, backend="interpret"), mt.jit):
            with pytest.raises(IndexError, match=text):
                mode(use)(there)
    with pytest.raises(IndexError, match="nowhere"):
        mt.ones(0)[mt.tensor([0])]


@pytest.mark.parametrize("length", [1, 3, 17])
@pytest.mark.parametrize("index", [lambda n: mt.arange(n), lambda n: -1 - mt.arange(n), lambda n: mt.arange(n) * 1])
@pytest.mark.parametrize(
    "around",
    [
        lambda v: mt.cat([v, mt.ones(5, 2)]),
        lambda v: mt.cat([mt.ones(v.shape[0], 1), v], 1),
        lambda v: F.pad(v, (2, 1, 1, 2)),
    ],
)
def test_an_index_that_is_computed_may_be_out_of_bounds_where_nothing_is_looked_up(length, index, around):
    """Beside parts put together and in padding, where vectors run on, no index is asked for."""
    x = mt.arange(2.0 * length).reshape(length, 2)

    def slope(x):
        x = x.detach().requires_grad_()
        (around(x[index(length)]) ** 2).sum().backward()
        return x.grad

    for function in (lambda x: around(x[index(length)] * 2), slope):
        assert mt.jit(function)(x).tolist() == function(x).tolist()
