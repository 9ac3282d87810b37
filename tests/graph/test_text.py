"""The text of a graph: what is printed reads back as the same graph; what is damaged is an error with a line."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitorch import primitives as P
from minitorch.dtypes import ALL, bfloat16, bool_, float16, float32, float64, int64, stored, uint8
from minitorch.errors import GraphError, ParseError
from minitorch.graph import Graph, apply, input_node, literal
from minitorch.graph.values import number_text
from minitorch.ir import LOWERED, PRIMITIVES, Source, Spec
from tests.support.graphs import graphs, random_array, specs

LISTING = """\
graph train.step(x: f32[32,64], w: f32[64,10], b: f32[10]):
  %0 = dot(x, w, dtype=f32)                   : f32[32,10]  # train.py:12
  %1 = expand(b, shape=[32,10])               : f32[32,10]
  %2 = add(%0, %1)                            : f32[32,10]  # train.py:12
  %3 = mul(%2, 0.5)                           : f32[32,10]  # In[5]:3
  %4 = less(0.0, %3)                          : bool[32,10]
  %5 = where(%4, %3, -inf)                    : f32[32,10]
  %6 = constant([[1, -2], [3, 4]])            : i64[2,2]
  %7 = gather(%5, 7:i64[])                    : f32[10]
  %8 = pad(%7, padding=[[1,0,2]], value=-0.0) : f32[29]
  return %5, %5, x, %6, %8, true:bool[3]"""


def test_a_listing_reads_back_and_prints_the_same():
    assert str(Graph.parse(LISTING)) == LISTING


@given(graphs())
def test_every_graph_reads_back(graph):
    text = str(graph)
    again = Graph.parse(text)
    again.verify()
    assert again.structurally_equal(graph)
    assert str(again) == text


@given(graphs())
def test_types_comments_and_line_breaks_may_be_left_out(graph):
    lines = [line.split("#")[0] for line in str(graph).splitlines()]
    bare = [line if "constant(" in line else line.rsplit(" : ", 1)[0] for line in lines[:-1]]
    for text in ("\n\n".join([*bare, lines[-1]]), " ".join(lines), "# a comment\n" + "\r\n".join(lines) + "\n# done"):
        assert Graph.parse(text).structurally_equal(graph)


def test_types_and_sources_are_aligned():
    lines = str(
        Graph.parse("""
        graph(x: f32[2]):
          %0 = neg(x) # a.py:1
          %1 = concatenate(%0, %0, dim=0)
          %2 = reduce_sum(%1, dims=[0]) # a.py:10
          return %2""")
    ).splitlines()
    assert lines[1:-1] == [
        "  %0 = neg(x)                     : f32[2]  # a.py:1",
        "  %1 = concatenate(%0, %0, dim=0) : f32[4]",
        "  %2 = reduce_sum(%1, dims=[0])   : f32[]   # a.py:10",
    ]


def test_many_inputs_are_written_one_to_a_line():
    inputs = [input_node(f"parameter.{index}", Spec((3,), float32)) for index in range(20)]
    graph = Graph(inputs, inputs[:1])
    assert str(graph).splitlines()[1] == "    parameter.0: f32[3],"
    assert Graph.parse(str(graph)).structurally_equal(graph)


def test_sources_come_back():
    graph = Graph.parse("graph(x: f32[2]):\n  %0 = neg(x)  # my file.py:12\n  %1 = neg(%0)\n  return %1 # 5")
    assert [node.source for node in graph.nodes] == [Source("my file.py", 12), None]


# Literals -------------------------------------------------------------------------------------------------------


def shown(operation: str) -> str:
    graph = Graph.parse(f"graph(x: f16[2], i: u8[2], c: bool[2]): %0 = {operation} return %0")
    return str(graph).splitlines()[1].split(" = ")[1].split(" : ")[0].strip()


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("add(x, 1)", "add(x, 1.0)"),
        ("add(2.50, x)", "add(2.5, x)"),
        ("add(x, 2.5:f16[2])", "add(x, 2.5)"),
        ("add(1:f16[2], 2)", "add(1.0:f16[2], 2.0:f16[2])"),
        ("add(x, 1e9)", "add(x, inf)"),
        ("add(x, -nan)", "add(x, nan)"),
        ("add(x, -0)", "add(x, 0.0)"),
        ("add(x, -0.0)", "add(x, -0.0)"),
        ("add(i, 255)", "add(i, 255)"),
        ("add(i, 2.0)", "add(i, 2)"),
        ("bitwise_and(c, true)", "bitwise_and(c, true)"),
        ("where(c, x, -1)", "where(c, x, -1.0)"),
        ("where(c, 1:f16[2], 0)", "where(c, 1.0:f16[2], 0.0:f16[2])"),
        ("where(true:bool[2], x, 0.1)", "where(true:bool[2], x, 0.1)"),
        ("neg(1:f32[])", "neg(1.0:f32[])"),
        ("iota(size=3, dtype=i8)", "iota(size=3, dtype=i8)"),
        ("constant([]) : f32[0]", 'constant(base64="")'),
        ("constant(2.5) : bf16[]", "constant(2.5)"),
        ('constant(base64="AQI=") : u8[2]', "constant([1, 2])"),
    ],
)
def test_how_literals_are_read_and_printed(written, printed):
    assert shown(written) == printed


@given(st.sampled_from([each for each in ALL if each.is_floating_point]), st.floats())
def test_numbers_survive_exactly(dtype, value):
    text = number_text(value, dtype)
    again = literal(float(text), Spec((), dtype)).params["value"]
    assert repr(again) == repr(stored(value, dtype))


@given(st.data())
@settings(max_examples=200)
def test_arrays_survive_bit_for_bit(data):
    spec = specs(data.draw)
    array = random_array(spec, np.random.default_rng(data.draw(st.integers(0, 1000))))
    if data.draw(st.booleans()) and spec.dtype is not bool_:  # any bits, strange NaNs too
        raw = np.random.default_rng(data.draw(st.integers(0, 1000))).bytes(spec.nbytes)
        array = np.frombuffer(raw, spec.dtype.numpy).reshape(spec.shape)
    again = Graph.parse(str(Graph([], [literal(array)]))).outputs[0].params["value"].array
    assert again.dtype == array.dtype and again.shape == array.shape
    assert again.tobytes() == array.tobytes()


def test_a_nan_with_a_payload_is_written_as_memory():
    odd = np.array([0x7FC01234, 0], np.uint32).view(np.float32)
    assert "base64" in str(Graph([], [literal(odd)]))
    assert "constant([nan, 1.0])" in str(Graph([], [literal(np.array([np.nan, 1], np.float32))]))


def test_splats_with_one_value_are_one():
    assert number_text(0.1, float32) == number_text(0.1, float64) == "0.1"
    assert number_text(1e-40, bfloat16) != "0.0"
    assert number_text(math.pi, float16) == "3.14"
    assert number_text(True, int64) == "1" and number_text(3, bool_) == "true"


# Damage ---------------------------------------------------------------------------------------------------------

PIECES = [
    *'()[]:,=%#"\\\n -.0129eE_',
    *("0", "-1", "999999999999999999999", "1e999", "nan", "true", "%0", "%99", "x0", "f32", "f32[2]", "bool", "[[]]"),
    *("return", "graph", "constant(", "base64=", "dims=", "shape=", "value=", "dtype=", '"AAAA"', "\t", "é", "²"),
    *PRIMITIVES,
    *LOWERED,
    *("lengths=", "kept=", "left=", "right=", "[[0],[1,2]]"),
]


@st.composite
def damaged(draw):
    text = str(draw(graphs(max_nodes=5)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        until = min(len(text), at + draw(st.sampled_from((0, 0, 1, 2, 5, 20, 80))))
        text = text[:at] + draw(st.sampled_from(("", *PIECES, text[at:until] * 2))) + text[until:]
    return text


@st.composite
def mistyped(draw):
    """A listing with numbers where words belong, and words where numbers do."""
    words = re.split(r"(-?\b[\w.]+\b)", str(draw(graphs(max_nodes=5))))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(words) // 2 - 1)) * 2 + 1
        if words[place].lstrip("-")[:1].isdigit():
            words[place] = draw(st.sampled_from(("f32", "i64", "bool", "true", "nan", "x0", '"AAAA"', "[1,2]", "dims")))
        else:
            words[place] = draw(st.sampled_from(("464", "0", "-1", "1.5", "true", "[1,2]", '"f32"', "f32")))
    return "".join(words)


def read_or_refuse(text: str) -> None:
    try:
        graph = Graph.parse(text)
    except ParseError as error:
        assert 1 <= error.line <= text.count("\n") + 1
        assert f"line {error.line}:" in str(error)
    else:
        graph.verify()
        assert Graph.parse(str(graph)).structurally_equal(graph)


@given(damaged() | mistyped())
@settings(max_examples=1500)
def test_damaged_text_is_an_error_with_a_line_and_never_another_exception(text):
    read_or_refuse(text)


@pytest.mark.parametrize(
    "operation",
    ["iota(size=2, dtype=464) : i64[2]", "cast(x, dtype=1)", "iota(size=f32, dtype=f32)", "expand(x, shape=2)"],
)
def test_a_parameter_of_another_type_is_an_error_with_a_line(operation):
    with pytest.raises(ParseError, match=r"line 2: .* is not a value of this parameter"):
        Graph.parse(f"graph(x: f32[2]):\n  %0 = {operation}\n  return %0")


@given(st.text(max_size=60) | st.lists(st.sampled_from(PIECES)).map(" ".join))
def test_nonsense_is_refused_as_well(text):
    read_or_refuse("graph(x0: f32[2]):\n" + text)
    read_or_refuse(text)


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        ("%0 = neg(y)\nreturn %0", "y is not defined", 2),
        ("%0 = neg(x)\n%1 = negate(%0)\nreturn %1", "no primitive 'negate'", 3),
        ("%0 = neg(x) : f32[3]\nreturn %0", r"neg gives f32\[2\], not f32\[3\]", 2),
        ("%0 = neg(x)\n%0 = neg(x)\nreturn %0", "%0 is there already", 3),
        ("%0 = neg(x, x)\nreturn %0", "neg", 2),
        ("%0 = add(x)\nreturn x", "add", 2),
        ("%0 = neg(x)", "'return' was expected, not 'the end'", 2),
        ("return x y", "',' was expected", 2),
        ("return 1.0", "nothing says what shape and type", 2),
        ("%0 = reshape(x, shape=[-1,-2])\nreturn %0", "-1 in .* is not a length", 2),
        ("%0 = flip(x, dims=[0.0])\nreturn %0", r"dims=\(0.0,\) is not a value", 2),
        ("%0 = cast(x, dtype=3)\nreturn %0", "dtype=3 is not a value", 2),
        ("%0 = add(x, 0.5:i32[2])\nreturn %0", "0.5 is not a number of type i32", 2),
        ("%0 = constant([1, 2]) : f32[3]\nreturn %0", "not nested as", 2),
        ("%0 = constant([1, 2])\nreturn %0", "needs its type", 2),
        ('%0 = constant(base64="AAAA") : u8[4]\nreturn %0', "has 4 bytes, not 3", 2),
        ('%0 = constant(base64="AgIC") : bool[3]\nreturn %0', "a bool is 0 or 1", 2),
        ('%0 = constant(base64="A") : bool[3]\nreturn %0', "constant: ", 2),
        ("return 300:u8[2]", "out of range", 2),
        ("%0 = neg(x) $", "'\\$' has no meaning", 2),
    ],
)
def test_what_is_wrong_is_said(body, message, line):
    with pytest.raises(ParseError, match=message) as error:
        Graph.parse("graph(x: f32[2]):\n" + body)
    assert error.value.line == line
    assert isinstance(error.value, GraphError)


def test_one_constant_as_the_condition_and_as_data_reads_back():
    graph = Graph.parse("graph(x: bool[]):\n  %0 = where(false:bool[], false, x)\n  return %0")
    condition, data, _ = graph.outputs[0].inputs
    assert condition is data and "where(false:bool[], false, x)" in str(graph)
    assert str(Graph.parse(str(graph))) == str(graph)


def test_a_shape_that_does_not_fit_is_one_message():
    with pytest.raises(ParseError) as error:
        Graph.parse("graph(x: f32[2]):\n  %0 = reduce_sum(x, dims=[1])\n  return %0")
    first, *advice = str(error.value).splitlines()
    assert first == "MT602: line 2: reduce_sum: dims=[1] do not fit f32[2]"
    assert [line.split(":")[0].strip() for line in advice] == ["why", "instead", "more"]


@pytest.mark.parametrize(
    "body",
    [
        "return 0.5:f32[999999999,999999999,999999999]",
        "return 0.5:f32[" + "9" * 5000 + "]",
        "return 0.5:f32[" + "1," * 70 + "1]",
        "%0 = iota(size=99999999999999999999, dtype=f32) return %0",
        "%0 = expand(x, shape=[9999999999999,9999999999999]) return %0",
        "%0 = pad(x, padding=[[99999999999999999,99999999999999999,99999999999999999]], value=0) return %0",
        "%0 = slice(x, start=[0], stop=[99999999999999999999], step=[1]) return %0",
        "%0 = constant(" + "[" * 100_000 + "]) : f32[2] return %0",
        "%0 = flip(x, dims=" + "[" * 100_000 + " return %0",
        "%0 = constant([]) : f32[0,9999999999] return %0",
        "%0 = constant([[],[]]) : f32[2,0] return %0",
        '%0 = neg("' + "a" * 100_000,
        "%0 = " + "neg(" * 100_000,
        "%0 = neg(" + "1" * 100_000 + "x) return %0",
    ],
    ids=lambda body: body[:40],
)
def test_absurd_texts_take_neither_time_nor_memory(body):
    read_or_refuse(f"graph(x: f32[2]): {body}")


def test_types_in_parameters_go_by_their_short_names():
    numbers = input_node("i", Spec((2,), uint8))
    assert "cast(i, dtype=bool)" in str(Graph([numbers], [apply(P.cast, numbers, dtype=bool_)]))
