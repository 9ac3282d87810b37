"""Tensors of data, of one number, and of sequences."""

import numpy as np
import pytest

import minitorch as mt
from minitorch.interpreters import Staging, interpreting
from tests.support.helpers import check


@pytest.mark.parametrize(
    ("data", "dtype", "values"),
    [
        (3, "int64", 3),
        (2.5, "float32", 2.5),
        (True, "bool", True),
        ([], "float32", []),
        ([[1, 2], [3, 4]], "int64", [[1, 2], [3, 4]]),
        ((1, 2.5, True), "float32", [1, 2.5, 1]),
        ([True, 2], "int64", [1, 2]),
        (range(3), "int64", [0, 1, 2]),
        (np.float64(1), "float64", 1),
        ([np.int8(1), np.int8(2)], "int8", [1, 2]),
        (np.array([1, 2], ">i4"), "int32", [1, 2]),
        ([np.ones(2, np.float16)], "float16", [[1, 1]]),
    ],
)
def test_tensor_takes_its_type_from_the_data(data, dtype, values):
    x = mt.tensor(data)
    assert (x.dtype.name, x.tolist()) == (dtype, values)


def test_tensor_copies():
    array = np.zeros(2, np.float32)
    x, shared = mt.tensor(array), mt.from_numpy(array)
    y = mt.tensor(x)
    array[0] = 1
    assert (x.tolist(), y.tolist(), shared.tolist()) == ([0, 0], [0, 0], [1, 0])
    assert mt.as_tensor(x) is x and mt.as_tensor(x, dtype=mt.int8).dtype is mt.int8
    mt.as_tensor(array)[1] = 5
    assert array[1] == 5


def test_tensors_of_tensors_are_stacked_without_history():
    a = mt.tensor([1.0, 2.0], requires_grad=True)
    x = mt.tensor([[a, a * 2], [a, [5, 6]]])
    assert x.tolist() == [[[1, 2], [2, 4]], [[1, 2], [5, 6]]] and not x.requires_grad
    assert mt.tensor([mt.tensor(1), 2.5]).dtype is mt.float32
    check(lambda a: mt.tensor([a, a + 1]), np.ones(3, np.float32))
    with pytest.raises(ValueError, match="different shapes"):
        mt.tensor([a, 1.0])


@pytest.mark.parametrize(
    ("data", "options", "error", "words"),
    [
        ([[1], [2, 3]], {}, ValueError, "ragged"),
        ("a", {}, TypeError, "str"),
        ([None], {}, TypeError, "NoneType"),
        (1j, {}, TypeError, "complex128"),
        (2**63, {}, ValueError, "int64"),
        ([300], {"dtype": "uint8"}, ValueError, "uint8"),
        ([1], {"requires_grad": True}, RuntimeError, "MT405"),
        ([1], {"dtype": "float8"}, TypeError, "float8"),
    ],
)
def test_what_is_no_tensor(data, options, error, words):
    with pytest.raises(error, match=words):
        mt.tensor(data, **options)


def test_filled_tensors_are_fresh_and_writable():
    for create, value in ((mt.zeros, 0), (mt.ones, 1), (mt.empty, 0)):
        for x in (create(2, 3), create((2, 3)), create([2, 3])):
            assert x.shape == (2, 3) and x.dtype is mt.float32 and (x == value).all()
            x[0, 0] = 7
            assert x.sum().item() == 7 + 5 * value
        assert create(()).shape == create().shape == ()
        assert create(2, dtype=mt.int8, requires_grad=False).dtype is mt.int8
    leaf = mt.ones(2, requires_grad=True)
    assert leaf.requires_grad and leaf.is_leaf
    x = mt.full((2,), mt.tensor(3.0))
    x[0] = 1
    assert x.tolist() == [1, 3]
    with pytest.raises(TypeError):
        mt.zeros(2.0)
    with pytest.raises(ValueError):
        mt.zeros(-1)
    with pytest.raises(TypeError, match="does not fit"):
        mt.full((2,), 300, dtype=mt.uint8)
    with pytest.raises(TypeError, match="does not fit"):
        mt.full((2,), float("nan"), dtype=mt.int32)


@pytest.mark.parametrize("name", sorted(each for each in dir(mt) if each.endswith("_like")))
def test_a_like_takes_a_tensor(name):
    more = {"full_like": {"fill_value": 3}, "randint_like": {"low": 3}}.get(name, {})
    like = getattr(mt, name)
    for wrong in (np.zeros(2, "float32"), [1.0], 3, None):
        for call in (lambda: like(wrong, **more), lambda: like(input=wrong, **more)):  # noqa: B023
            with pytest.raises(TypeError, match=rf"^{name}: input is a tensor, not {type(wrong).__name__}"):
                call()


def test_likes_and_news():
    x = mt.tensor([[1, 2]], dtype=mt.int16)
    for y in (
        mt.zeros_like(x),
        mt.ones_like(x),
        mt.empty_like(x),
        mt.full_like(x, 3),
        x.new_zeros(1, 2),
        x.new_ones((1, 2)),
    ):
        assert y.spec == x.spec
    assert x.new_tensor([1.7]).tolist() == [1] and x.new_full((2,), 4).dtype is mt.int16


@pytest.mark.parametrize(
    "arguments", [(5,), (5.0,), (2, 7), (0, 1, 0.1), (10, 0, -3), (0,), (3, 3), (-2.5, 2.5, 0.5), (1, 2, 1 / 3)]
)
def test_arange_is_numpys(arguments):
    x = mt.arange(*arguments)
    expected = np.arange(*arguments)
    assert x.dtype is (mt.int64 if expected.dtype.kind == "i" else mt.float32)
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6, atol=1e-7)


def test_arange_refuses_to_walk_away():
    for arguments in ((0, 5, 0), (0, 5, -1), (5, 0)):
        with pytest.raises(ValueError, match="does not lead"):
            mt.arange(*arguments)


@pytest.mark.parametrize("arguments", [(0, 1, 7), (3, -1, 1), (-5, 5, 10), (0, 1, 0), (1e-3, 1e3, 101)])
def test_linspace_hits_both_ends(arguments):
    x = mt.linspace(*arguments, dtype=mt.float64).numpy()
    np.testing.assert_allclose(x, np.linspace(*arguments), rtol=1e-14, atol=1e-15)
    if len(x) > 1:
        assert (x[0], x[-1]) == arguments[:2]


def test_eye():
    for n, m in ((3, None), (2, 4), (4, 2), (0, None)):
        np.testing.assert_array_equal(mt.eye(n, m).numpy(), np.eye(n, m, dtype=np.float32), strict=True)


def test_creation_is_recorded_not_stored():
    staging = Staging("the test")
    with interpreting(staging):
        mt.zeros(1000), mt.arange(1000), mt.eye(30)
        names = {node.primitive.name for node in staging.nodes}
        mt.tensor([1.0, 2.0], requires_grad=True)
    assert names == {"constant", "iota", "reshape", "equal", "cast", "expand"} and not staging.captured
    assert staging.nodes[-1].primitive.name == "constant"


def test_conversions():
    x = mt.tensor([1.7, -1.7, 0.0])
    assert x.to(mt.float32) is x and x.float() is x and x.to("cpu") is x and x.contiguous() is x
    assert x.to(mt.float32, copy=True) is not x
    assert x.long().tolist() == [1, -1, 0] and x.bool().tolist() == [True, True, False]
    assert x.to(mt.tensor(1, dtype=mt.int8)).dtype is x.type_as(mt.ones(1, dtype=mt.int8)).dtype is mt.int8
    for name in ("bool", "byte", "char", "short", "int", "long", "half", "bfloat16", "float", "double"):
        converted = getattr(x, name)()
        assert converted.type() == repr(converted.dtype)
    with pytest.raises(TypeError):
        x.to("float31")


@pytest.mark.parametrize(
    "data", [[10000.0, 1], [float("nan")], [float("inf")], 300, [255.9], [-300], [-1.5], -0.5, [-2, -1.5]]
)
def test_python_numbers_that_do_not_fit_an_integer_type_are_refused(data):
    for make in (mt.tensor, mt.as_tensor):
        with pytest.raises(ValueError, match="does not fit"):
            make(data, dtype=mt.uint8)
        assert make([[3.5, -2], [-255, 0]], dtype=mt.uint8).tolist() == [[3, 254], [1, 0]]  # whole numbers wrap
