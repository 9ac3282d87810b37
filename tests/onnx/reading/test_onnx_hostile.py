"""Hostile ONNX models: each law that `python -m fuzz.onnx` has found broken."""

from __future__ import annotations

import tracemalloc
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import minitorch as mt
from minitorch.errors import MinitorchError, OnnxError, ShapeError, TranslationError
from minitorch_onnx.reading import building
from minitorch_onnx.reading.decoding import limits
from minitorch_onnx.reading.loading import module_of, parsed

HEAD = '<ir_version: 10, opset_import: ["": 24]>\n'


def read(text: str) -> Any:
    return module_of(parsed(onnx.parser.parse_model(HEAD + text).SerializeToString()))


# Numbers, axes and shapes that do not fit ---------------------------------------------------------------------

REFUSED: dict[str, tuple[str, list[Any], str]] = {
    "a bound of several numbers": (
        "g (int64[2] a) => (int64[n] y) { y = Range(a, a, a) }", [mt.ones(2, dtype=mt.int64)], "is 2 numbers"),
    "a shape of floats": (
        "g (float[2] x) => (float[n] y) <float[1] s = {nan}> { y = Reshape(x, s) }", [mt.ones(2)], "takes integers"),
    "a depth that is not finite": (
        "g (int64[2] x) => (float[n,m] y) <float d = {inf}, float[2] v = {0, 1}> { y = OneHot(x, d, v) }",
        [mt.ones(2, dtype=mt.int64)], "the depth is inf"),
    "values that are not two": (
        "g (int64[2] x) => (float[n,m] y) <int64 d = {3}, float v = {1}> { y = OneHot(x, d, v) }",
        [mt.ones(2, dtype=mt.int64)], "have to be two"),
    "an axis of a scalar": ("g (float x) => (int64 y) { y = ArgMax(x) }", [mt.ones(())], "no axis 0"),
    "an axis beyond": ("g (float[2] x) => (float[n] y) { y = Unique <axis = 3> (x) }", [mt.ones(2)], "no axis 3"),
    "a thousand dimensions": (
        f"g (float[2] x) => (float[n] y) <int64[40] s = {{{', '.join(['1'] * 40)}}}> {{ y = Reshape(x, s) }}",
        [mt.ones(2)], "40 dimensions"),
    "a matrix of one dimension": ("g (float[2] x) => (float[n] y) { y = Trilu(x) }", [mt.ones(2)], "takes matrices"),
    "a picture of two dimensions": (
        "g (float[2,2] x) => (float[n] y) { y = SpaceToDepth <blocksize = 2> (x) }", [mt.ones(2, 2)], "3 or more"),
    "no power": (
        "g (float[1,1,4] x) => (float[n] y) { y = LpPool <kernel_shape = [2], p = 0> (x) }",
        [mt.ones(1, 1, 4)], "its p is 0"),
    "no such reduction": (
        'g (float[2] x, int64[2] i) => (float[2] y) { y = ScatterElements <reduction = "mean"> (x, i, x) }',
        [mt.ones(2), mt.zeros(2, dtype=mt.int64)], "'mean'"),
    "no such padding": (
        'g (float[2] x) => (float[n] y) <int64[2] p = {1, 1}> { y = Pad <mode = "mirror"> (x, p) }',
        [mt.ones(2)], "'mirror'"),
    "other lengths than axes": (
        "g (float[2,2] x) => (float[n,m] y) <int64[1] s = {1}> { y = CenterCropPad(x, s) }",
        [mt.ones(2, 2)], "1 lengths"),
    "more padding than dimensions": (
        "g (float[1,1,4] x) => (float[n] y) { y = ConvTranspose <output_padding = [1, 1]> (x, x) }",
        [mt.ones(1, 1, 4)], "output_padding"),
    "gates that do not divide": (
        "g (float[3,2,2] x, float[1,7,2] w) => (float[n] y) { y = LSTM <hidden_size = 2> (x, w, w) }",
        [mt.ones(3, 2, 2), mt.ones(1, 7, 2)], "has to be of the shape"),
    "a recurrence over no time": (
        "g (float[0,2,2] x, float[1,2,2] w) => (float[n] y) { y = RNN <hidden_size = 2> (x, w, w) }",
        [mt.ones(0, 2, 2), mt.ones(1, 2, 2)], "over no time"),
    "a scale below 0": (
        "g (float[1,1,2,2] x) => (float[n] y) { y = Attention <scale = -1.0> (x, x, x) }",
        [mt.ones(1, 1, 2, 2)], "scale is -1"),
    "a mask of no dimensions": (
        "g (float[1,1,2,2] x, float m) => (float[n] y) { y = Attention(x, x, x, m) }",
        [mt.ones(1, 1, 2, 2), mt.ones(())], "attn_mask is"),
    "an output mode that does not exist": (
        "g (float[1,1,2,2] x) => (float[n] y) { y = Attention <qk_matmul_output_mode = 9> (x, x, x) }",
        [mt.ones(1, 1, 2, 2)], "mode is 9"),
    "an integer type that is none": (
        "g (float[2] x, float z) => (float[n] y) { y = QuantizeLinear(x, z, z) }",
        [mt.ones(2), mt.ones(())], "no integer type"),
    "too few results of a body": (
        """g (float[2] x, bool c, int64 n) => (float[2] y) {
        y = Loop(n, c, x) <body = b (int64 i, bool on, float[2] s) => (bool o) { o = Not(on) }> }""",
        [mt.ones(2), mt.tensor(True), mt.tensor(2)], "gives 1 results, and 2 are needed"),
    "more scanned than given": (
        """g (float[2] x) => (float[2] y) {
        y = Scan(x) <num_scan_inputs = 4611686018427387904, body = b (float s) => (float t) { t = Neg(s) }> }""",
        [mt.ones(2)], "of 1 inputs"),
    "more axes than results of a scan": (
        """g (float[2] x) => (float[2] y) {
        y = Scan <num_scan_inputs = 1, scan_output_axes = [0, 0], body = b (float s) => (float t) { t = Neg(s) }
        > (x) }""",
        [mt.ones(2)], "collects 1 results"),
    "an axis that comes twice": (
        "g (float[2] x) => (float[1] y) <int64[3] at = {0, -1, 0}> { y = ReduceProd(x, at) }", [mt.ones(2)], "twice"),
    "more starts than dimensions": (
        """g (float[2] x) => (float[2] y) <int64[2] at = {0, 0}, int64[2] to = {1, 1}> { y = Slice(x, at, to) }""",
        [mt.ones(2)], "axis"),
    "a position behind a sequence": (
        "g (float[2] x, int64 i) => (float[2] y) { s = SequenceConstruct(x) y = SequenceAt(s, i) }",
        [mt.ones(2), mt.tensor(1)], "position 1 in a sequence of 1"),
    "a sequence for a tensor": (
        "g (float[2] x) => (float[2] y) { s = SequenceConstruct(x) y = SplitToSequence(s) }",
        [mt.ones(2)], "takes tensors"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_is_refused_with_the_node_and_what_does_not_fit(name: str) -> None:
    text, inputs, message = REFUSED[name]
    with pytest.raises(OnnxError, match=message) as caught:
        read(text)(*inputs)
    assert "the node 'y'" in str(caught.value)


def test_an_error_of_a_function_names_the_operands() -> None:
    model = read("g (float[2,3] x, float[3] b) => (float[n] y) { y = Gemm(x, x, b) }")
    with pytest.raises(MinitorchError, match="f32"):
        model(mt.ones(2, 3), mt.ones(3))
    model = read('g (float[2,3] x) => (float[n] y) { y = Einsum <equation = "i->i"> (x) }')
    with pytest.raises(OnnxError, match=r"its operands are f32\[2,3\]"):
        model(mt.ones(2, 3))


def test_a_type_that_is_none_is_named_before_anything_runs() -> None:
    with pytest.raises(TranslationError, match="elements of type undefined"):
        read("g (float[2] x) => (float[2] y) { y = Cast <to = 0> (x) }")


@pytest.mark.parametrize(("length", "message"), [(-3, "a length is negative"), (2**61, "no array in memory has")])
def test_blocks_of_a_size_that_no_array_has(length: int, message: str) -> None:
    model = read(f"""g (float[3,4] x, float[3,2] s) => (float[3,4] y) {{
        y = QuantizeLinear <axis = 1, block_size = {length}> (x, s) }}""")
    with pytest.raises(ShapeError, match=message):
        model(mt.ones(3, 4), mt.ones(3, 2))


def test_no_elements_in_a_shape_that_no_array_has() -> None:
    model = read("g (float[0] x) => (float[n] y) <int64[2] s = {0, 4611686018427387904}> { y = Reshape(x, s) }")
    with pytest.raises(ShapeError, match="no array in memory has"):
        model(mt.zeros(0))
    with pytest.raises(ShapeError, match="no array in memory has"):
        mt.nn.functional.pad(mt.zeros(0, 2), (2**61, 0))


def test_an_operand_among_several_cannot_be_left_out() -> None:
    with pytest.raises(OnnxError, match="lacks its input Inputs"):
        read('g (float[2] x) => (float[n] y) { y = Einsum <equation = "i,i->i"> ("", x) }')


def test_an_operator_of_others_with_an_empty_list() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in "xy")
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"])
    node.attribute.append(helper.make_attribute("axes", [], attr_type=onnx.AttributeProto.INTS))
    model = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=[helper.make_opsetid("", 20)])
    assert module_of(model)(mt.ones(2, 2)).shape == (2, 2)


def test_names_that_are_no_text_are_refused() -> None:
    content = onnx.parser.parse_model(HEAD + "g (float[2] x) => (float[2] y) { y = Neg(x) }").SerializeToString()
    for name in (b"Neg", b"x", b"g"):
        with pytest.raises(OnnxError, match="UTF-8"):
            parsed(content.replace(name, b"\xff" * len(name)))


# Memory and steps ---------------------------------------------------------------------------------------------

SQUARED = " ".join(
    f"t{at} = Transpose(a{at}) m{at} = MatMul(a{at}, t{at}) a{at + 1} = Reshape(m{at}, r)" for at in range(3)
)
VIEW = "s = Constant <value_ints = [2147483648]> () o = Constant <value_float = 1.0> () e = Expand(o, s)"
GROWING: dict[str, str] = {
    "doubled": f"""x0 = Constant <value_floats = [1.0]> ()
        {" ".join(f"x{at + 1} = Concat <axis = 0> (x{at}, x{at})" for at in range(60))} y = Identity(x60)""",
    "multiplied": f"""s = Constant <value_ints = [300, 1]> () o = Constant <value_float = 1.0> () a0 = Expand(o, s)
        r = Constant <value_ints = [-1, 1]> () {SQUARED} y = Identity(a3)""",
    "expanded": """s = Constant <value_ints = [1099511627776]> () o = Constant <value_float = 1.0> () e = Expand(o, s)
        y = Neg(e)""",
    "padded": """s = Constant <value_ints = [0, 2147483648]> () o = Constant <value_floats = [1.0, 2.0]> ()
        y = Pad <mode = "edge"> (o, s)""",
    "found": f"{VIEW} y = NonZero(e)",
    "looked through": f"{VIEW} y = Unique(e)",
}


@pytest.mark.parametrize("name", GROWING)
def test_values_beyond_the_memory_are_refused_before_they_are_computed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "most_held", lambda: 1 << 41 if name == "expanded" else 4 << 20)
    model = read(f"g () => (float[n] y) {{ {GROWING[name]} }}")
    tracemalloc.start()
    try:
        with pytest.raises(OnnxError, match=r"the memory|all that there is|memory for"):
            model()
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_what_is_no_longer_needed_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred values of which two live, and views, which take nothing."""
    monkeypatch.setattr(limits, "most_held", lambda: 3 << 20)
    chain = " ".join(f"x{at + 1} = Neg(x{at}) v{at} = Transpose(x{at + 1})" for at in range(100))
    model = read(f"g (float[256,1024] x0) => (float[n] y) {{ {chain} y = Shape(x100) }}")
    assert model(mt.ones(256, 1024)).tolist() == [256, 1024]


@pytest.mark.parametrize("body", [
    """s = Constant <value_ints = [2000, 1, 1]> () w = Constant <value = float[1,1,1] {1}> () e = Expand(x, s)
    y = RNN <hidden_size = 1> (e, w, w)""",
    """s = Constant <value_ints = [2000]> () e = Expand(x, s) q = SplitToSequence(e)
    y = ConcatFromSequence <axis = 0> (q)""",
])  # fmt: skip
def test_turns_over_a_view_are_steps(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minitorch_onnx.reading.running.MOST_STEPS", 1000)
    with pytest.raises(OnnxError, match="more than 1000 steps"):
        read(f"g (float x) => (float[n] y) {{ {body} }}")(mt.ones(()))


def test_functions_that_multiply_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "MOST_NODES", 1000)
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)]
    functions = []
    for level in range(12):
        kind, domain = (f"f{level - 1}", "f") if level else ("Neg", "")
        calls = [helper.make_node(kind, [f"t{at}"], [f"t{at + 1}"], domain=domain) for at in range(2)]
        functions.append(helper.make_function("f", f"f{level}", ["t0"], ["t2"], calls, imports))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("f11", ["x"], ["y"], domain="f")], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10)
    with pytest.raises(OnnxError, match="more than 1000 nodes"):
        module_of(model)
