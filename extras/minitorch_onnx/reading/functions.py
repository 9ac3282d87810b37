"""Operators as functions of others, in ONNX's own text: quantised ones, and ONNX Runtime's (``com.microsoft``).

A quantised operator is the one of floats between DequantizeLinear and QuantizeLinear, of which passes make products of
integers. ONNX Runtime's tools for quantising and optimising models write them; its page ContribOperators.md says what
they compute. An operand that a node leaves out is left out of Sum and of what reads it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ..common import package

MICROSOFT = "com.microsoft"
OPSET = 21  # of the operators in the texts

_ONE = """(X, x_scale, x_zero, y_scale, y_zero) => (Y) {
    x = DequantizeLinear(X, x_scale, x_zero)
    x1 = Identity(x)
    y1 = NODE(x1)
    y = Identity(y1)
    Y = QuantizeLinear(y, y_scale, y_zero) }"""
_TWO = """(A, a_scale, a_zero, B, b_scale, b_zero, y_scale, y_zero) => (Y) {
    a = DequantizeLinear<axis = -2>(A, a_scale, a_zero)
    b = DequantizeLinear<axis = -1>(B, b_scale, b_zero)
    y = NODE(a, b)
    Y = QuantizeLinear<axis = -2>(y, y_scale, y_zero) }"""
_CONV = """<auto_pad: string = "NOTSET", group: int = 1, dilations, pads, strides>
    (X, x_scale, x_zero, W, w_scale, w_zero, y_scale, y_zero, B) => (Y) {
    x = DequantizeLinear(X, x_scale, x_zero)
    x1 = Identity(x)
    w = DequantizeLinear<axis = 0>(W, w_scale, w_zero)
    b_scale = Mul(x_scale, w_scale)
    b = DequantizeLinear<axis = 0>(B, b_scale)
    y1 = Conv<auto_pad = @auto_pad, dilations = @dilations, group = @group, pads = @pads, strides = @strides>(x1, w, b)
    y = Identity(y1)
    Y = QuantizeLinear(y, y_scale, y_zero) }"""
_GEMM = """<alpha: float = 1.0, transA: int = 0, transB: int = 0>
    (A, a_scale, a_zero, B, b_scale, b_zero, C, y_scale, y_zero) => (Y) {
    a = DequantizeLinear(A, a_scale, a_zero)
    b = DequantizeLinear<axis = AXIS>(B, b_scale, b_zero)
    c_scale = Mul(a_scale, b_scale)
    c = DequantizeLinear<axis = 0>(C, c_scale)
    sums = Gemm<transA = @transA, transB = @transB>(a, b, c)
    factor = Constant<value_float = @alpha>()
    y = Mul(sums, factor)
    Y = QuantizeLinear(y, y_scale, y_zero) }"""
_POOL = '<auto_pad: string = "NOTSET", ceil_mode: int = 0, count_include_pad: int = 0, kernel_shape, pads, strides>'
_POOLED = "auto_pad = @auto_pad, ceil_mode = @ceil_mode, kernel_shape = @kernel_shape, pads = @pads, strides = @strides"
_FUSED_CONV = """<auto_pad: string = "NOTSET", group: int = 1, dilations, pads, strides>(X, W, B, Z) => (Y) {
    y = Conv<auto_pad = @auto_pad, dilations = @dilations, group = @group, pads = @pads, strides = @strides>(X, W, B)
    s = Sum(y, Z)
    ACTIVATION }"""
_FUSED_GEMM = """<alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0>(A, B, C) => (Y) {
    y = Gemm<alpha = @alpha, beta = @beta, transA = @transA, transB = @transB>(A, B, C)
    s = Identity(y)
    ACTIVATION }"""
_FUSED_MATMUL = """<alpha: float = 1.0>(A, B) => (Y) {
    y = Einsum<equation = "EQUATION">(A, B)
    factor = Constant<value_float = @alpha>()
    Y = Mul(y, factor) }"""
_SKIP = """<epsilon: float = 1e-12>(X, skip, gamma, beta, bias) => (Y, mean, inverse, total) {
    total = Sum(X, skip, bias)
    Y, mean, inverse = LayerNormalization<axis = -1, epsilon = @epsilon>(total, gamma, beta) }"""

TEXTS: dict[str, str] = {
    "QLinearConv": _CONV,
    "QLinearMatMul": _TWO.replace("NODE", "MatMul"),
}
for _name, _text in {
    "BiasGelu": "(X, bias) => (Y) { s = Add(X, bias) Y = Gelu(s) }",
    "DequantizeLinear": "<axis: int = 1>(X, s, z) => (Y) { Y = DequantizeLinear<axis = @axis>(X, s, z) }",
    "DynamicQuantizeMatMul": """(A, B, b_scale, b_zero, bias) => (Y) {
        q, s, z = DynamicQuantizeLinear(A)
        a = DequantizeLinear(q, s, z)
        b = DequantizeLinear<axis = -1>(B, b_scale, b_zero)
        y = MatMul(a, b)
        Y = Sum(y, bias) }""",
    "FastGelu": '(X, bias) => (Y) { s = Sum(X, bias) Y = Gelu<approximate = "tanh">(s) }',
    "FusedConv": _FUSED_CONV,
    "FusedGemm": _FUSED_GEMM,
    "FusedMatMul": _FUSED_MATMUL,
    "Gelu": "(X) => (Y) { Y = Gelu(X) }",
    "MatMulIntegerToFloat": """(A, B, a_scale, b_scale, a_zero, b_zero, bias) => (Y) {
        a = DequantizeLinear<axis = -2>(A, a_scale, a_zero)
        b = DequantizeLinear<axis = -1>(B, b_scale, b_zero)
        y = MatMul(a, b)
        Y = Sum(y, bias) }""",
    "NhwcMaxPool": f"{_POOL.replace('>', ', dilations>')}(X) => (Y) {{ x1 = Identity(X)"
    f" y1 = MaxPool<{_POOLED}, dilations = @dilations>(x1) Y = Identity(y1) }}",
    "QGemm": _GEMM,
    "QLinearAdd": _TWO.replace("NODE", "Add"),
    "QLinearAveragePool": _POOL
    + _ONE.replace("NODE", f"AveragePool<{_POOLED}, count_include_pad = @count_include_pad>"),
    "QLinearConv": _CONV,
    "QLinearGlobalAveragePool": _ONE.replace("NODE", "GlobalAveragePool"),
    "QLinearLeakyRelu": "<alpha: float = 0.01>" + _ONE.replace("NODE", "LeakyRelu<alpha = @alpha>"),
    "QLinearMul": _TWO.replace("NODE", "Mul"),
    "QLinearSigmoid": _ONE.replace("NODE", "Sigmoid"),
    "QLinearSoftmax": "<axis: int = -1>" + _ONE.replace("NODE", "Softmax<axis = @axis>"),
    "QLinearWhere": """(C, A, a_scale, a_zero, B, b_scale, b_zero, y_scale, y_zero) => (Y) {
        a = DequantizeLinear(A, a_scale, a_zero)
        b = DequantizeLinear(B, b_scale, b_zero)
        y = Where(C, a, b)
        Y = QuantizeLinear(y, y_scale, y_zero) }""",
    "QuantizeLinear": "<axis: int = 1>(X, s, z) => (Y) { Y = QuantizeLinear<axis = @axis>(X, s, z) }",
    "QuickGelu": """<alpha: float = 1.702>(X) => (Y) {
        factor = Constant<value_float = @alpha>()
        x = Mul(X, factor)
        gate = Sigmoid(x)
        Y = Mul(X, gate) }""",
    "SkipLayerNormalization": _SKIP,
    "TransposeMatMul": _FUSED_MATMUL,
}.items():  # fmt: skip
    TEXTS[f"{MICROSOFT}.{_name}"] = _text


def function_of(node: Any) -> Any:
    """The `FunctionProto` of a node's operator; None if it is none of these, or is used as no text says."""
    name = f"{node.domain}.{node.op_type}".removeprefix("ai.onnx").removeprefix(".")
    given = {each.name: each for each in node.attribute}

    def number(attribute: str, default: int = 0) -> int:
        return int(given[attribute].i) if attribute in given else default

    if name == f"{MICROSOFT}.QLinearConcat":
        return _parsed(_concatenated(len(node.input) // 3), OPSET)
    text = TEXTS.get(name)
    if text is None or number("transBatchA") or number("transBatchB"):
        return None
    if number("channels_last") or node.op_type == "NhwcMaxPool":  # of images, whose channels come last
        text = text.replace("x1 = Identity", "x1 = Transpose<perm = [0, 3, 1, 2]>")
        text = text.replace("= Identity(y1)", "= Transpose<perm = [0, 2, 3, 1]>(y1)")
    if "ACTIVATION" in text:
        activation = _activation(given)
        if activation is None:
            return None
        text = text.replace("ACTIVATION", activation)
    operands = ("ji" if number("transA") else "ij", "kj" if number("transB") else "jk")
    text = text.replace("EQUATION", "...{},...{}->...ik".format(*operands))
    text = text.replace("AXIS", "0" if number("transB") else "1")
    return _parsed(text, min(max(number("opset", OPSET), 10), OPSET))


def _activation(given: dict[str, Any]) -> str | None:
    """What the attributes ``activation`` and ``activation_params``, or ``activation_alpha`` and so on, make of s."""
    name = given["activation"].s.decode() if "activation" in given else "Identity"
    names = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Elu": ("alpha",)}.get(name, ())
    values = list(given["activation_params"].floats) if "activation_params" in given else []
    values = values or [given[f"activation_{each}"].f for each in names if f"activation_{each}" in given]
    if not name.isidentifier() or len(values) < len(names):
        return None
    if name == "Clip" and len(values) == 2:
        low, high = (f"Constant<value_float = {float(each)!r}>()" for each in values)
        return f"low = {low} high = {high} Y = Clip(s, low, high)"
    params = ", ".join(f"{each} = {float(value)!r}" for each, value in zip(names, values, strict=False))
    return f"Y = {name}<{params}>(s)" if params else f"Y = {name}(s)"


def _concatenated(count: int) -> str:
    """QLinearConcat of some operands."""
    operands = "".join(f", X{at}, s{at}, z{at}" for at in range(count))
    nodes = " ".join(f"x{at} = DequantizeLinear(X{at}, s{at}, z{at})" for at in range(count))
    names = ", ".join(f"x{at}" for at in range(count))
    return f"""<axis>(y_scale, y_zero{operands}) => (Y) {{
        {nodes} y = Concat<axis = @axis>({names}) Y = QuantizeLinear(y, y_scale, y_zero) }}"""


@cache
def _parsed(text: str, opset: int) -> Any:
    return package().parser.parse_function(f'<domain: "local", opset_import: ["": {opset}]> f {text}')


def present(function: Any, absent: set[str]) -> list[Any]:
    """The nodes of a function, without the inputs that a caller leaves out."""
    if not absent:
        return list(function.node)
    absent, nodes = set(absent), []
    for node in function.node:
        found = type(node)()
        found.CopyFrom(node)
        names = ["" if name in absent else name for name in node.input]
        if node.op_type == "DequantizeLinear" and not names[0]:
            absent.update(node.output)
            continue
        if node.op_type == "QuantizeLinear" and not names[1]:  # the result stays float
            found.op_type, names = "Identity", names[:1]
            del found.attribute[:]
        if node.op_type == "Sum":
            names = [name for name in names if name]
        del found.input[:]
        found.input.extend(names)
        nodes.append(found)
    return nodes
