"""Python numbers beside tensors: which are refused, which wrap around, and how a graph holds them."""

import math
from collections.abc import Callable
from typing import Any

import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch import dtypes
from minitorch.backends import BACKENDS
from minitorch.errors import DTypeError, GraphError
from minitorch.graph import Graph, input_node
from minitorch.graph.values import value_key
from minitorch.ir import Node, Spec
from minitorch.primitives import Literal, pad

ZERO = [0]

# What writes, chooses or is bounded by a number: function of a tensor of three elements and the number. PyTorch 2.13
# refuses what does not fit. In the second table a 16-bit float becomes an infinity.
EXACT = {
    "clamp, min": lambda x, v: mt.clamp(x, min=v),
    "clamp, max": lambda x, v: mt.clamp(x, 0, v),
    "clip": lambda x, v: mt.clip(x, max=v),
    "clamp_min": mt.clamp_min,
    "clamp_max": mt.clamp_max,
    "masked_fill": lambda x, v: mt.masked_fill(x, x == 1, v),
    "index_fill": lambda x, v: mt.index_fill(x, 0, mt.tensor(ZERO), v),
    "scatter": lambda x, v: mt.scatter(x, 0, mt.tensor(ZERO), v),
    "fill_": lambda x, v: x.clone().fill_(v),
    "full": lambda x, v: mt.full((3,), v, dtype=x.dtype),
    "full_like": mt.full_like,
    "new_full": lambda x, v: x.new_full((3,), v),
    "pad": lambda x, v: F.pad(x, (1, 1), value=v),
    "add, alpha": lambda x, v: mt.add(x, x, alpha=v),
}
ROUNDED = {
    "where": lambda x, v: mt.where(x == 1, x, v),
    "where, first": lambda x, v: mt.where(x == 1, v, x),
    "assignment": lambda x, v: assigned(x, 0, v),
    "assignment to a slice": lambda x, v: assigned(x, slice(1), v),
    "assignment under a mask": lambda x, v: assigned(x, x == 1, v),
    "addcmul": lambda x, v: mt.addcmul(x, x, x, value=v),
}
# Operators: an integer wraps around, a float becomes an infinity.
WRAPPED = {
    "add": lambda x, v: x + v,
    "sub": lambda x, v: x - v,
    "rsub": lambda x, v: v - x,
    "mul": lambda x, v: x * v,
    "eq": lambda x, v: x == v,
    "lt": lambda x, v: x < v,
    "bitwise_xor": lambda x, v: x ^ v,
}
MODES: dict[str, Callable[..., Any]] = {
    "eager": lambda function: function,
    **{name: lambda f, name=name: mt.jit(f, backend=name) for name in BACKENDS},
}


def assigned(x, index, value):
    x = x.clone()
    x[index] = value
    return x


def sample(dtype):
    return mt.tensor([1, 0, 1]).to(dtype)


def limits(dtype):
    """The lowest and the highest number of a type."""
    if dtype.is_floating_point:
        return -float(mt.finfo(dtype).max), float(mt.finfo(dtype).max)
    return mt.iinfo(dtype).min, mt.iinfo(dtype).max


NUMBERS = [dtype for dtype in dtypes.ALL if dtype.category != "bool"]


@pytest.mark.parametrize("mode", ["eager", "llvm"])
@pytest.mark.parametrize("name", [*EXACT, *ROUNDED])
def test_a_number_that_the_type_cannot_hold_is_refused(name, mode):
    function = {**EXACT, **ROUNDED}[name]
    for dtype in NUMBERS:
        low, high = limits(dtype)
        beyond = [low * 2 - 1, high * 2 + 1] if dtype.category == "int" else [low * 1.5, high * 1.5]
        if name in ROUNDED and dtype in (mt.float16, mt.bfloat16):
            beyond = [] if dtype is mt.float16 else [1e39]
        if name.startswith(("where", "assignment")) and dtype in (mt.float16, mt.bfloat16):
            beyond = beyond[:0]  # infinite, as where PyTorch chooses or assigns a number
        if dtype is mt.float64 or (name == "addcmul" and dtype is mt.int64):
            beyond = beyond[:0]  # what is beyond is an infinity, which every float type holds
        if low == 0:
            beyond[0] = -high - 1  # -1 stands for the largest, as in PyTorch
        for value in beyond:
            with pytest.raises(DTypeError, match="does not fit"):
                MODES[mode](lambda x, v=value: function(x, v))(sample(dtype))
    for value in (math.nan, math.inf):
        with pytest.raises(DTypeError, match="does not fit"):
            MODES[mode](lambda x, v=value: x.clone().fill_(v))(sample(mt.int8))


@pytest.mark.parametrize("name", [*EXACT, *ROUNDED])
def test_a_number_at_the_end_of_the_range_is_taken_in_every_mode(name, sweep):
    """Each type in one of the modes, in turn."""
    functions, modes = {**EXACT, **ROUNDED}, [*BACKENDS]
    function = functions[name]
    for place, dtype in enumerate(NUMBERS, [*functions].index(name)):
        values = (*limits(dtype), *([math.inf, -math.inf] if dtype.is_floating_point else []))
        expected = [function(sample(dtype), value) for value in values]
        for mode in modes if sweep else [modes[place % len(modes)]]:
            results = MODES[mode](lambda x, vs=values: [function(x, v) for v in vs])(sample(dtype))
            for one, other in zip(results, expected, strict=True):
                assert (one.dtype, repr(one.tolist())) == (other.dtype, repr(other.tolist())), (dtype, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WRAPPED)
def test_in_arithmetic_an_integer_wraps_around(name, mode):
    function = WRAPPED[name]
    for dtype in (dtype for dtype in NUMBERS if dtype.category == "int"):
        x, bits = sample(dtype), 8 * dtype.itemsize
        values: tuple[int, ...] = (2 ** (bits - 1) + 3, -(2 ** (bits - 1)) - 5, 300, 2**63 - 1)
        values = tuple(value for value in values if -(2**63) <= value < 2**64)
        same = [mt.tensor(value - 2**64 if value >= 2**63 else value).to(dtype) for value in values]
        results = MODES[mode](lambda x, vs=values: [function(x, v) for v in vs])(x)
        for result, expected in zip(results, [function(x, each) for each in same], strict=True):
            assert (result.dtype, result.tolist()) == (expected.dtype, expected.tolist())
    with pytest.raises(DTypeError, match="64 bits"):
        MODES[mode](lambda x: function(x, 2**64))(sample(mt.int64))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("value", [2, -1, 0.5, math.nan, True, 1, 0, 0.0, False], ids=repr)
def test_every_number_but_zero_is_true(value, mode):
    """Written into bools; a literal 2 in a graph once was False."""
    x = mt.tensor([False, True, False])
    functions = [function for name, function in {**EXACT, **ROUNDED}.items() if name in BOOLS]
    for result in MODES[mode](lambda x: [function(x, value) for function in functions])(x):
        assert result.dtype is mt.bool and bool(value) in result.tolist()
        exact = bool(value)
    padded, filled = MODES[mode](lambda x: (F.pad(x, (1, 1), value=value), x.clone().fill_(value)))(x)
    assert padded.tolist() == [exact, False, True, False, exact] and filled.tolist() == [exact] * 3


BOOLS = ("masked_fill", "index_fill", "scatter", "fill_", "full", "full_like", "new_full", "pad")


@pytest.mark.parametrize("mode", MODES)
def test_a_fraction_is_cut_off_where_it_is_written_into_integers(mode):
    x = mt.tensor([1, 0, 3], dtype=mt.int8)
    names = ("masked_fill", "index_fill", "scatter", "fill_", "full_like", "pad", "assignment", "addcmul")
    functions = [{**EXACT, **ROUNDED}[name] for name in names]
    results = MODES[mode](lambda x: [function(x, -2.7) for function in functions])(x)
    by_hand = [[-2, 0, 3], [-2, 0, 3], [-2, 0, 3], [-2] * 3, [-2] * 3, [-2, 1, 0, 3, -2], [-2, 0, 3], [-1, 0, -15]]
    assert [result.tolist() for result in results] == by_hand and {result.dtype for result in results} == {mt.int8}


# What a graph holds ---------------------------------------------------------------------------------------


def values_in(graph):
    """The numbers among the parameters, with the types that they are for."""
    for node in graph.nodes:
        value = node.params.get("value")
        if value is not None and not isinstance(value, Literal):
            yield value, node.dtype


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=repr)
def test_a_recorded_number_is_as_its_type_stores_it(dtype):
    def function(x):
        written = [F.pad(x, (1, 1), value=value) for value in (2, 0.1, 100, True, -1)]
        return (
            written,
            x.clone().fill_(0.1),
            mt.full_like(x, 3.7),
            mt.where(x == 1, x, True),
            x * True,
            mt.zeros_like(x),
        )

    values = list(values_in(mt.jit(function, passes=()).graph(sample(dtype))))
    assert len(values) > 6
    for value, kind in values:
        assert value_key(kind.numpy.type(value).item()) == value_key(value), (value, kind)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(2, mt.bool), (1, mt.bool), (1, mt.float32), (0.1, mt.float32), (300, mt.uint8), (1.0, mt.int8)],
)
def test_a_graph_with_a_number_that_is_not_is_no_graph(value, dtype):
    x = input_node("x", Spec((2,), dtype))
    node = Node(pad, (x,), {"padding": ((0, 1, 0),), "value": value}, Spec((3,), dtype))
    with pytest.raises(GraphError, match="value"):
        Graph([x], [node], [node])


def test_a_listing_is_read_as_the_type_stores_it():
    graph = Graph.parse("graph(x: bool[2]):\n  %0 = pad(x, padding=[[0, 1, 0]], value=1) : bool[3]\n  return %0\n")
    assert graph.nodes[0].params["value"] is True
    with pytest.raises(GraphError, match="out of range"):
        Graph.parse("graph(x: u8[2]):\n  %0 = pad(x, padding=[[0, 1, 0]], value=300) : u8[3]\n  return %0\n")


# Types of results ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_truth_of_all_and_any_is_uint8_for_uint8(mode):
    for dtype in dtypes.ALL:
        x = mt.tensor([[1, 0], [2, 1]]).to(dtype)
        kind = dtype if dtype is mt.uint8 else mt.bool
        results = MODES[mode](lambda x: [mt.all(x), mt.any(x), x.all(dim=1), x.any(dim=0, keepdim=True)])(x)
        assert [result.dtype for result in results] == [kind] * 4
        assert [result.tolist() for result in results] == [0, 1, [0, 1], [[1, 1]]]


@pytest.mark.parametrize("mode", MODES)
def test_value_of_addcmul_takes_the_type_of_the_tensors(mode):
    i, f, h = mt.tensor([1, 2, 3]), mt.tensor([1.0, 2.0, 3.0]), mt.tensor([1.0, 0.0, 3.0], dtype=mt.float16)
    rows = [
        (i, i, i, 0.5, [1, 2, 3]),
        (i, i, i, 2.0, [3, 10, 21]),
        (i, f, i, 0.5, [1.5, 4, 7.5]),
        (i, i, i, True, [2, 6, 12]),
        (h, h, h, 7e4, [math.inf, 0, math.inf]),  # in float32, as everything between the roundings
    ]
    for a, b, c, value, expected in rows:
        result = MODES[mode](lambda a, b, c, v=value: mt.addcmul(a, b, c, value=v))(a, b, c)
        assert (result.dtype, result.tolist()) == (mt.result_type(a, b, c), expected)
    with pytest.raises(TypeError, match="MT202"):
        mt.addcmul(*[mt.tensor([True])] * 3)
    with pytest.raises(TypeError, match="MT202"):
        mt.addcdiv(f, i, i)
