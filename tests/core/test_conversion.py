"""Tensors to Python, NumPy, DLPack and text; and what happens to each while a graph is recorded."""

import operator
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import dtypes
from minitorch.errors import DTypeError, TracedValueError, TracingError, TracingWarning
from minitorch.interpreters import Staging, interpreting
from minitorch.ir import Spec
from minitorch.tensor import Tensor, with_value

ALL = [pytest.param(dtype, id=dtype.name) for dtype in dtypes.ALL]


# Python ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL)
def test_numbers_come_out_as_python_has_them(dtype):
    x = mt.tensor([[0, 1], [1, 0]], dtype=dtype)
    kind = {"bool": bool, "int": int, "float": float}[dtype.category]
    assert x.tolist() == [[0, 1], [1, 0]]
    assert {type(number) for row in x.tolist() for number in row} == {kind}
    one = x[0, 1:]
    assert one.item() == 1 and type(one.item()) is kind
    assert (float(one), int(one), complex(one), bool(one)) == (1.0, 1, 1 + 0j, True)
    if kind is not float:
        assert operator.index(one) == 1 and [7, 8][one] == 8
    else:
        with pytest.raises(TypeError, match="integer tensor"):
            operator.index(one)


def test_one_number_is_asked_for():
    for function in (Tensor.item, float, int, bool):
        for x in (mt.zeros(2), mt.zeros(0)):
            with pytest.raises(RuntimeError, match=re.escape(str(list(x.shape)))):
                function(x)
    with pytest.raises(TypeError, match="0-dimensional"):
        iter(mt.tensor(1))


def test_iteration_and_membership():
    x = mt.tensor([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 3 in x and 5 not in x and mt.tensor([1, 2]) in x
    for row in x:
        row[0] = 0
    assert x.tolist() == [[0, 2], [0, 4]]


# NumPy and DLPack -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL)
def test_numpy_shares_memory(dtype):
    x = mt.zeros(3, dtype=dtype)
    array = x.numpy()
    assert array.dtype == dtype.numpy
    array[1] = 1
    assert x.tolist() == [0, 1, 0]
    assert np.shares_memory(np.asarray(x), array)
    array.shape = (3, 1)
    assert x.shape == (3,)  # the memory is shared, not the array


def test_array_protocol():
    x = mt.tensor([1, 2])
    assert np.asarray(x, np.float32).dtype == np.float32
    assert not np.shares_memory(np.array(x), x.numpy())
    with pytest.raises(ValueError, match="copy"):
        np.array(x, np.float32, copy=False)
    assert np.add(np.ones(2), x.numpy()).tolist() == [2, 3]
    assert not mt.zeros(1).expand(3).numpy().flags.writeable


def test_a_history_is_not_lost_silently():
    x = mt.ones(2, requires_grad=True)
    for convert in (Tensor.numpy, np.asarray):
        with pytest.raises(RuntimeError, match=r"x\.detach\(\)"):
            convert(x)
    with pytest.raises(BufferError, match=r"x\.detach\(\)"):
        np.from_dlpack(x)
    assert x.tolist() == [1, 1]
    with mt.no_grad():
        assert x.numpy().tolist() == [1, 1]


@pytest.mark.parametrize("dtype", ALL)
def test_dlpack_both_ways_without_a_copy(dtype):
    x = mt.ones(3, dtype=dtype)
    assert x.__dlpack_device__() == (1, 0)
    if dtype is dtypes.bfloat16:
        with pytest.raises(BufferError, match=r"bfloat16 .* x\.float\(\)"):
            np.from_dlpack(x)
        return
    out = np.from_dlpack(x)
    back = mt.from_dlpack(out)
    x[0] = 0
    assert out.tolist() == back.tolist() == [0, 1, 1]


def test_from_dlpack_says_what_it_cannot_take():
    with pytest.raises(TypeError, match="__dlpack__, not list"):
        mt.from_dlpack([1])
    with pytest.raises(DTypeError, match="MT202"):
        mt.from_dlpack(np.zeros(2, complex))


# Text -----------------------------------------------------------------------------------------------------

TEXTS = {
    "a number": (lambda: mt.tensor(1.5), "tensor(1.5000)"),
    "whole floats": (lambda: mt.tensor([1.0, -20.0]), "tensor([  1., -20.])"),
    "fractions": (lambda: mt.tensor([1.0, 0.25]), "tensor([1.0000, 0.2500])"),
    "wide range": (lambda: mt.tensor([1.0, 1e5]), "tensor([1.0000e+00, 1.0000e+05])"),
    "small": (lambda: mt.tensor([0.00001]), "tensor([1.0000e-05])"),
    "not finite": (
        lambda: mt.tensor([1.0, float("nan"), float("-inf")]),
        "tensor([1., nan, -inf])",
    ),
    "bools": (lambda: mt.tensor([True, False]), "tensor([ True, False])"),
    "other type": (lambda: mt.tensor([1, 22], dtype=mt.int8), "tensor([ 1, 22], dtype=minitorch.int8)"),
    "nothing": (lambda: mt.zeros(0), "tensor([])"),
    "nothing of integers": (lambda: mt.zeros(0, dtype=mt.int64), "tensor([], dtype=minitorch.int64)"),
    "nothing of two": (lambda: mt.zeros(0, 3), "tensor([], size=(0, 3))"),
    "leaf": (lambda: mt.ones(1, requires_grad=True), "tensor([1.], requires_grad=True)"),
    "result": (lambda: mt.ones(1, requires_grad=True) * 2, "tensor([2.], grad_fn=<mul>)"),
    "three dimensions": (
        lambda: mt.arange(8).reshape(2, 2, 2),
        "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])",
    ),
    "a summary": (lambda: mt.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    "a summary of rows": (
        lambda: mt.zeros(600, 2),
        "tensor([[0., 0.],\n        [0., 0.],\n        [0., 0.],\n        ...,\n        [0., 0.],\n"
        "        [0., 0.],\n        [0., 0.]])",
    ),
    "several lines": (
        lambda: mt.arange(30) * 100,
        "tensor([   0,  100,  200,  300,  400,  500,  600,  700,  800,  900, 1000, 1100,\n"
        "        1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900, 2000, 2100, 2200, 2300,\n"
        "        2400, 2500, 2600, 2700, 2800, 2900])",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_repr(name):
    make, text = TEXTS[name]
    assert repr(make()) == str(make()) == text


def test_format():
    assert f"{mt.tensor(1.5):.2f} {mt.tensor(3)} {mt.tensor([1])}" == "1.50 3 tensor([1])"
    with pytest.raises(TypeError, match=r"shape \[1\]"):
        format(mt.tensor([1.0]), ".2f")


class Balanced(HTMLParser):
    """Raises at a tag that is not closed, and collects the text."""

    def __init__(self, text):
        super().__init__()
        self.open: list[str] = []
        self.cells, self.text = 0, ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.cells += tag == "td"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_html():
    page = Balanced(mt.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)._repr_html_())
    assert page.cells == 4 and "shape [2, 2], float32, requires_grad=True" in page.text
    assert Balanced(mt.arange(3)._repr_html_()).cells == 3
    for large in (mt.zeros(2, 2, 2), mt.zeros(100), mt.tensor(1.0), mt.zeros(0)):
        page = Balanced(large._repr_html_())
        assert page.cells == 0 and repr(large) in page.text
    result = mt.ones(1, requires_grad=True) * 2
    assert "<mul>" in Balanced(result._repr_html_()).text
    assert "color" not in result._repr_html_()


# While a graph is recorded --------------------------------------------------------------------------------


@pytest.fixture
def traced():
    staging = Staging("step")
    with interpreting(staging):
        yield with_value(staging.input(Spec((), mt.float32), "x")) * 2


VALUES: dict[str, tuple[Callable[..., Any], str]] = {
    "bool": (bool, "MT101"),
    "if": (lambda x: 1 if x > 0 else 2, "MT101"),
    "in": (lambda x: 3 in x, "MT101"),
    "float": (float, "MT102"),
    "int": (int, "MT102"),
    "complex": (complex, "MT102"),
    "item": (Tensor.item, "MT102"),
    "tolist": (Tensor.tolist, "MT102"),
    "numpy": (Tensor.numpy, "MT102"),
    "array": (np.asarray, "MT102"),
    "dlpack": (np.from_dlpack, "MT102"),
    "range": (lambda x: range(x.long()), "MT102"),
    "format": (lambda x: f"{x:.2f}", "MT102"),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_not_there_while_recording(name, traced):
    function, code = VALUES[name]
    with pytest.raises(TracedValueError, match=code) as error:
        function(traced)
    assert "`x`" in str(error.value) and "instead:" in str(error.value)
    assert ("mt.where" in str(error.value)) == (code == "MT101")


def test_repr_of_a_traced_tensor_never_fails(traced):
    assert repr(traced) == "Tensor(traced f32[], depends on `x`)"
    assert "traced f32[]" in Balanced(traced._repr_html_()).text


def test_printing_a_traced_tensor_warns(traced):
    for show in (str, print, "{}".format):
        with pytest.warns(TracingWarning, match="MT105") as caught:
            show(traced)
        assert caught[0].filename == __file__


def test_captured_tensors_show_their_values(traced):
    captured = mt.ones(2)
    with interpreting(None):
        captured = mt.ones(2)
    assert str(captured) == "tensor([1., 1.])"
    view = captured[:1]
    captured.mul_(traced)
    assert repr(captured) == "Tensor(traced f32[2], `captured0` after an in-place write)"
    assert "traced f32[1]" in repr(view)


def test_a_value_of_an_ended_trace():
    staging = Staging("step")
    with interpreting(staging):
        leaked = with_value(staging.input(Spec((2,), mt.float32), "x"))
    assert repr(leaked) == str(leaked) == "Tensor(traced f32[2], depends on `x`, its trace has ended)"
    with pytest.raises(TracingError, match="MT104"):
        leaked.tolist()


def test_a_deferring_recording_computes():
    with mt.lazy():
        x = mt.arange(3) * 2
        assert repr(x) == str(x) == "tensor([0, 2, 4])"
        assert f"{x.sum()}" == "6" and bool(x[1] > 0) and x.numpy().tolist() == [0, 2, 4]
        assert "<table" in (x + 1)._repr_html_()
