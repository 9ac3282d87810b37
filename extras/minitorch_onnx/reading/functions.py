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


def _quantised(operands: str, body: str, attributes: str = "") -> str:
    """Return the text of an operator between DequantizeLinear and QuantizeLinear.

    Args:
        operands: their names in capitals. One with a star is quantised; a number behind that is the axis of its scales.
        body: makes y of the operands, whose names are in small letters if they were quantised.
        attributes: of the operator.

    Example:
        >>> print(_quantised("X* Y*", "y = Sigmoid(x)"))
        (X, x_scale, x_zero, y_scale, y_zero) => (Y) {
        x = DequantizeLinear(X, x_scale, x_zero)
        y = Sigmoid(x)
        Y = QuantizeLinear(y, y_scale, y_zero) }
    """
    inputs, nodes = [], [body]
    for operand in operands.split():
        name, star, axis = operand.partition("*")
        small, options = name.lower(), f"<axis = {axis}>" if axis else ""
        scales = [f"{small}_scale", f"{small}_zero"] if star else []
        inputs += scales if name == "Y" else [name, *scales]
        if name == "Y":
            nodes.append(f"Y = QuantizeLinear{options}(y, {', '.join(scales)}) }}")
        elif star:
            nodes.insert(0, f"{small} = DequantizeLinear{options}({', '.join([name, *scales])})")
    return "\n".join([f"{attributes}({', '.join(inputs)}) => (Y) {{", *nodes])


def _of_images(operator: str) -> str:
    """An operator of x, whose channels come last where the attribute says so."""
    return f"x1 = Identity(x) y1 = {operator}(x1) y = Identity(y1)"


_POOLS = '<auto_pad: string = "NOTSET", ceil_mode: int = 0, count_include_pad: int = 0, kernel_shape, pads, strides>'
_POOL = "auto_pad = @auto_pad, ceil_mode = @ceil_mode, kernel_shape = @kernel_shape, pads = @pads, strides = @strides"
_CONVS = '<auto_pad: string = "NOTSET", group: int = 1, dilations, pads, strides>'
_CONV = "Conv<auto_pad = @auto_pad, dilations = @dilations, group = @group, pads = @pads, strides = @strides>"
_BIAS = "b_scale = Mul(x_scale, w_scale) b = DequantizeLinear<axis = 0>(B, b_scale) "
_FUSED_MATMUL = """<alpha: float = 1.0>(A, B) => (Y) { y = Einsum<equation = "EQUATION">(A, B)
    factor = Constant<value_float = @alpha>() Y = Mul(y, factor) }"""
_PRODUCT = "y = MatMul(a, b) Y = Sum(y, bias) }"

TEXTS: dict[str, str] = {
    "QLinearConv": _quantised("X* W*0 Y* B", _BIAS + _of_images(_CONV).replace("(x1)", "(x1, w, b)"), _CONVS),
    "QLinearMatMul": _quantised("A*-2 B*-1 Y*-2", "y = MatMul(a, b)"),
    **{f"{MICROSOFT}.{name}": text for name, text in {
        "BiasGelu": "(X, bias) => (Y) { s = Add(X, bias) Y = Gelu(s) }",
        "DequantizeLinear": "<axis: int = 1>(X, s, z) => (Y) { Y = DequantizeLinear<axis = @axis>(X, s, z) }",
        "DynamicQuantizeMatMul": """(A, B, b_scale, b_zero, bias) => (Y) { q, s, z = DynamicQuantizeLinear(A)
            a = DequantizeLinear(q, s, z) b = DequantizeLinear<axis = -1>(B, b_scale, b_zero) """ + _PRODUCT,
        "FastGelu": '(X, bias) => (Y) { s = Sum(X, bias) Y = Gelu<approximate = "tanh">(s) }',
        "FusedConv": f"{_CONVS}(X, W, B, Z) => (Y) {{ y = {_CONV}(X, W, B) s = Sum(y, Z) ACTIVATION }}",
        "FusedGemm": """<alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0>(A, B, C) => (Y) {
            s = Gemm<alpha = @alpha, beta = @beta, transA = @transA, transB = @transB>(A, B, C) ACTIVATION }""",
        "FusedMatMul": _FUSED_MATMUL,
        "Gelu": "(X) => (Y) { Y = Gelu(X) }",
        "MatMulIntegerToFloat": """(A, B, a_scale, b_scale, a_zero, b_zero, bias) => (Y) {
            a = DequantizeLinear<axis = -2>(A, a_scale, a_zero)
            b = DequantizeLinear<axis = -1>(B, b_scale, b_zero) """ + _PRODUCT,
        "NhwcMaxPool": f"{_POOLS[:-1]}, dilations>(x) => (y) {{ "
        + _of_images(f"MaxPool<{_POOL}, dilations = @dilations>") + "}",
        "QGemm": _quantised(
            "A* B*AXIS C Y*",
            """c_scale = Mul(a_scale, b_scale) c = DequantizeLinear<axis = 0>(C, c_scale)
            sums = Gemm<transA = @transA, transB = @transB>(a, b, c)
            factor = Constant<value_float = @alpha>() y = Mul(sums, factor)""",
            "<alpha: float = 1.0, transA: int = 0, transB: int = 0>",
        ),
        "QLinearAdd": _quantised("A*-2 B*-1 Y*-2", "y = Add(a, b)"),
        "QLinearAveragePool": _quantised(
            "X* Y*", _of_images(f"AveragePool<{_POOL}, count_include_pad = @count_include_pad>"), _POOLS
        ),
        "QLinearGlobalAveragePool": _quantised("X* Y*", _of_images("GlobalAveragePool")),
        "QLinearLeakyRelu": _quantised("X* Y*", "y = LeakyRelu<alpha = @alpha>(x)", "<alpha: float = 0.01>"),
        "QLinearMul": _quantised("A*-2 B*-1 Y*-2", "y = Mul(a, b)"),
        "QLinearSigmoid": _quantised("X* Y*", "y = Sigmoid(x)"),
        "QLinearSoftmax": _quantised("X* Y*", "y = Softmax<axis = @axis>(x)", "<axis: int = -1>"),
        "QLinearWhere": _quantised("C A* B* Y*", "y = Where(C, a, b)"),
        "QuantizeLinear": "<axis: int = 1>(X, s, z) => (Y) { Y = QuantizeLinear<axis = @axis>(X, s, z) }",
        "QuickGelu": """<alpha: float = 1.702>(X) => (Y) { factor = Constant<value_float = @alpha>()
            x = Mul(X, factor) gate = Sigmoid(x) Y = Mul(X, gate) }""",
        "SkipLayerNormalization": """<epsilon: float = 1e-12>(X, skip, gamma, beta, bias) => (Y, mean, inverse, total) {
            total = Sum(X, skip, bias)
            Y, mean, inverse = LayerNormalization<axis = -1, epsilon = @epsilon>(total, gamma, beta) }""",
        "TransposeMatMul": _FUSED_MATMUL,
    }.items()},
}  # fmt: skip
TEXTS[f"{MICROSOFT}.QLinearConv"] = TEXTS["QLinearConv"]


def function_of(node: Any) -> Any:
    """Return the `FunctionProto` of a node's operator; None if it is none of these, or is used as no text says."""
    name = f"{node.domain}.{node.op_type}".removeprefix("ai.onnx").removeprefix(".")
    given = {each.name: each for each in node.attribute}

    def number(attribute: str, default: int = 0) -> int:
        return int(given[attribute].i) if attribute in given else default

    text = TEXTS.get(name)
    if name == f"{MICROSOFT}.QLinearConcat":
        operands = [f"X{at}" for at in range(len(node.input) // 3)]
        body = f"y = Concat<axis = @axis>({', '.join(operands).lower()})"
        text = _quantised(" ".join(["Y*", *(f"{each}*" for each in operands)]), body, "<axis>")
    activation = _activation(given) if text and "ACTIVATION" in text else ""
    if text is None or number("transBatchA") or number("transBatchB") or activation is None:
        return None
    if number("channels_last") or node.op_type == "NhwcMaxPool":  # of images, whose channels come last
        text = text.replace("x1 = Identity", "x1 = Transpose<perm = [0, 3, 1, 2]>")
        text = text.replace("= Identity(y1)", "= Transpose<perm = [0, 2, 3, 1]>(y1)")
    operands = ["ji" if number("transA") else "ij", "kj" if number("transB") else "jk"]
    text = text.replace("ACTIVATION", activation).replace("AXIS", "0" if number("transB") else "1")
    text = text.replace("EQUATION", "...{},...{}->...ik".format(*operands))
    return _parsed(text, min(max(number("opset", OPSET), 10), OPSET))


def _activation(given: dict[str, Any]) -> str | None:
    """What the attributes ``activation`` and ``activation_params``, or ``activation_alpha`` and so on, make of s."""
    name = given["activation"].s.decode(errors="replace") if "activation" in given else "Identity"
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
