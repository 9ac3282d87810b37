"""Good models, small ones, which together use most of what the reading of ONNX files does.

Texts are in ONNX's own syntax. A model is the files of a folder: `model.onnx`, and its external data.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

import minitorch as mt
from minitorch.errors import OnnxError, TranslationError
from minitorch_onnx.reading.loading import module_of

from ..files import Files

MODEL = "model.onnx"
RECORDED = Path(__file__).parents[2] / "tests" / "recorded" / "onnx"
HEAD = '<ir_version: 10, opset_import: ["": {opset}]>\n'

TEXTS: dict[str, str] = {
    "elementwise": """g (float[2,3] x, int32[3] i, bool[3] b) => (float[2,3] y, int32[3] j, bool[3] c) {
        a = Add(x, x) s = Sum(a, x, x) m = Max(s, x) l = LeakyRelu <alpha = 0.3> (m) e = Elu(l) d = Div(e, m)
        f = Pow(d, x) g = Gelu(f) h = HardSigmoid(g) n = Neg(h) t = Tanh(n) w = Where(b, t, x)
        low = Constant <value_float = -1.0> () y = Clip(w, low)
        k = Div(i, i) r = Mod(k, i) q = BitwiseAnd(r, i) v = Cast <to = 1> (q) u = IsInf(v) z = IsNaN(v) o = Or(u, z)
        c = Not(o) j = Cast <to = 6> (v) }""",
    "shapes": """g (float[n,2,3] x) => (float[a] y, float[b] z) <float[6,2] w = {1,0, 0,1, 0,0, 2,0, 0,-1, 0,3}> {
        shape = Shape(x) zero = Constant <value_ints = [0]> () first = Gather(shape, zero)
        rest = Constant <value_ints = [-1]> () wanted = Concat <axis = 0> (first, rest) flat = Reshape(x, wanted)
        p = MatMul(flat, w) two = Constant <value_ints = [2, 1]> () t = Tile(p, two) by = Constant <value_ints =
        [3]> () s = Slice(t, zero, by, zero)
        u = Unsqueeze(s, zero) v = Squeeze(u, zero) k = Constant <value_ints = [2, 3, 2]> () e = Expand(v, k) f =
        Flatten(e) y = Transpose <perm = [1, 0]> (f)
        z = ReduceSum <keepdims = 0> (y, zero) }""",
    "numbers": """g (float[2] x) => (float[n] y, int64[m] o, float[k] p)
        <int64[2] size = {2, 3}, int64 first = {0}, int64 last = {6}, int64 by = {2}, int64[4] pads = {1, 0, 0, 2}> {
        c = ConstantOfShape <value = float[1] {2.0}> (size) r = Range(first, last, by) d = Constant <value_int = 4> ()
        values = Constant <value_ints = [0, 1]> () o = OneHot(r, d, values) q = Pad(c, pads) e = EyeLike(q)
        w = Pad <mode = "reflect"> (q, pads) t = Trilu(e) u = CenterCropPad(t, size) s = Size(w) f = Cast <to = 1> (s)
        y = Add(u, f) p = RandomNormal <shape = [2, 3]> () }""",
    "indexing": """g (float[3,4] x, int64[2] i, float[2,4] u) => (float[a] y, float[b] z, int64[2,k] n)
        <int64[2,2] places = {0, 1, 2, 0}, int64 k = {2}, bool[3] keep = {1, 0, 1}> {
        a = Gather(x, i) b = GatherND(x, places) e = GatherElements <axis = 0> (x, places) y = ScatterND(x, places, b)
        s = ScatterElements <axis = 1, reduction = "add"> (x, places, e) t, at = TopK(s, k) n = NonZero(s)
        c = Compress <axis = 0> (x, keep) v, f, r, d = Unique <axis = 0> (c) p = ArgMax <axis = 1> (x)
        m = ReverseSequence <time_axis = 1, batch_axis = 0> (u, i) z = Concat <axis = 0> (a, m, v) }""",
    "reductions": """g (float[2,3,4] x) => (float[a] y, float[b] z, float[c] w) <int64[2] axes = {0, -1}, int64 one
        = {1}> {
        a = ReduceMean(x, axes) b = ReduceMax <keepdims = 0> (x, axes) c = ReduceLogSumExp(x) d = ReduceProd(a)
        e = CumSum <reverse = 1, exclusive = 1> (x, one) f = Softmax <axis = 1> (e) g = LogSoftmax(f)
        h = Hardmax(g) i = ReduceL2 <noop_with_empty_axes = 1> (h) y = Add(i, a) z = Sub(b, b) w = Mul(c, d) }""",
    "images": """g (float[1,2,6,6] x, float[4,1,3,3] k, float[2,1,2,2] kt, float[2] s) => (float[a] y, float[b] z,
        float[c] t) {
        a = Conv <group = 2, auto_pad = "SAME_UPPER", strides = [2, 2]> (x, k) b, at = MaxPool <kernel_shape = [2, 2],
        ceil_mode = 1> (a) c = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (x)
        d = ConvTranspose <group = 2, strides = [2, 2], output_padding = [1, 1]> (x, kt) e = GlobalAveragePool(b)
        f = GlobalMaxPool(c) g = LRN <size = 3> (x) h = InstanceNormalization(g, s, s) y = Flatten(e) z = Identity(f)
        i = BatchNormalization(h, s, s, s, s) t = DepthToSpace <blocksize = 1> (i) u = LpPool <kernel_shape = [2,
        2]> (x)
        v = SpaceToDepth <blocksize = 2> (x) w, m = Dropout(v) }""",
    "quantized": """g (float[2,4] x) => (float[2,3] y, int32[2,3] z, uint8[2,4] u)
        <float s = {0.1}, uint8 o = {128}, int8[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[3] t = {0.1,0.2,0.3},
        int8[3] p = {0,0,0}, uint8[3,3] q = {1,2,3,4,5,6,7,8,9}> {
        a = QuantizeLinear(x, s, o) b = DequantizeLinear(a, s, o) c = DequantizeLinear <axis = 1> (w, t, p)
        y = MatMul(b, c) z = MatMulInteger(a, w, o) d = QLinearMatMul(a, s, o, w, t, p, s, o)
        u, scale, zero = DynamicQuantizeLinear(x) e = QLinearMatMul(d, s, o, q, s, o, s, o) }""",
    "products": """g (float[2,3] x, float[3,2] w, float[2] c, float[2,2,4] q) => (float[2,2] y, float[2,2] z,
        float[a] t) {
        y = Gemm <alpha = 0.5, transA = 0> (x, w, c) z = Einsum <equation = "ij,jk->ik"> (x, w)
        l, m, d = LayerNormalization(q, q) r = RMSNormalization(l, q) g = GroupNormalization <num_groups = 2> (r,
        c, c)
        a = Attention <q_num_heads = 2, kv_num_heads = 2, is_causal = 1> (q, q, g) s = Swish(a) t = Mish(s) }""",
    "recurrent": """g (float[3,2,2] x, float[1,8,2] w, float[1,8,2] r, float[1,16] b) => (float[3,1,2,2] y,
        float[1,2,2] h)
        <float[1,2,2] v = {1,2,3,4}, int32[2] lengths = {3, 1}, float[1,6,2] gw = {1,2,3,4,5,6,7,8,9,10,11,12}> {
        y, h, c = LSTM <hidden_size = 2> (x, w, r, b, lengths) n, m = RNN <hidden_size = 2, direction = "reverse">
        (x, v, v)
        a, u = GRU <hidden_size = 2, linear_before_reset = 1> (x, gw, gw) }""",
    "control": """g (float[2] x, bool c, int64 n) => (float[2] y, float[k,2] all, float[3,2] s) {
        three = Constant <value_int = 3> () always = Constant <value = bool {1}> ()
        turned, all = Loop (three, always, x) <body = b (int64 i, bool going, float[2] s) => (bool on, float[2] t,
        float[2] u)
            { on = Identity(going) t = Add(s, x) u = Identity(t) }>
        y = If (c) <then_branch = p () => (float[2] a) { a = Neg(turned) },
                    else_branch = q () => (float[2] b) { e = Abs(turned) b = Mul(e, x) }>
        end, s = Scan (x, all) <num_scan_inputs = 1, body = d (float[2] h, float[2] row) => (float[2] out, float[2] r)
            { out = Add(h, row) r = Mul(h, row) }>
        more = Loop (n, c, end) <body = f (int64 j, bool go, float[2] v) => (bool again, float[2] w)
            { again = Identity(go) w = Relu(v) }> }""",
    "sequences": """g (float[2,3] x, seq(float[n]) q) => (float[a] y, float[b] z, int64 l) {
        one = Constant <value_int = 1> () s = SequenceConstruct(x, x) t = SequenceInsert(s, x, one)
        u = SequenceErase(t, one) v = SequenceAt(u, one) y = ConcatFromSequence <axis = 0, new_axis = 1> (u)
        p = SplitToSequence <axis = 1> (v) l = SequenceLength(p) e = SequenceEmpty() o = Optional(v)
        h = OptionalHasElement(o) g = OptionalGetElement(o) z = Add(g, x)
        m = SequenceMap (p) <body = b (float[2] i) => (float[2] j) { j = Relu(i) }> }""",
    "losses": """g (float[2,3] x, int64[2] t, float[3] w) => (float y, float[2,3] log, float n) {
        y, log = SoftmaxCrossEntropyLoss <ignore_index = 1> (x, t, w) n = NegativeLogLikelihoodLoss <reduction =
        "sum"> (log, t)
        m = MeanVarianceNormalization <axes = [0]> (x) e = Celu(m) s = Shrink(e) p = PRelu(s, w) u = Softsign(p)
        b = Bernoulli(u) r = RandomUniformLike(b) }""",
}  # fmt: skip
FUNCTIONS = """<ir_version: 10, opset_import: ["": 20, "local": 1]>
    g (float[2] x) => (float[2] y) { a = local.twice <by = 3.0> (x) y = local.outer (a, x) }
    <opset_import: ["": 20, "local": 1], domain: "local"> twice <by> (a) => (b)
        { c = Constant <value_float : float = @by> () b = Mul(a, c) }
    <opset_import: ["": 20, "local": 1], domain: "local"> outer (a, b) => (d)
        { c = local.twice <by = 2.0> (a) d = Add(c, b) }"""


def good(heavy: bool = True) -> list[Files]:
    """The models, each as the files of a folder.

    Args:
        heavy: whether those of 100 nodes and more are among them.
    """
    texts = {name: HEAD.format(opset=24 if name == "products" else 20) + text for name, text in TEXTS.items()}
    found = [_one(onnx.parser.parse_model(text)) for text in [*texts.values(), FUNCTIONS]] + [_external(), _sparse()]
    found += [_one(mt.export.onnx(model.eval(), x, dynamic_axes={"input": {0: "n"}})) for model, x in _own()]
    files = [path for path in sorted(RECORDED.glob("*.onnx")) if heavy or "encoder" not in path.name]
    return found + [{MODEL: path.read_bytes()} for path in files]


def of_operators() -> list[Files]:
    """The models of ONNX's own tests of operators, as far as they are read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    found = []
    for case in cases:
        with suppress(OnnxError, TranslationError):
            module_of(case.model)
            found.append(_one(case.model))
    return found


def _one(model: Any) -> Files:
    return {MODEL: model.SerializeToString()}


def _own() -> list[tuple[Any, Any]]:
    """Modules of ours, and an argument of each."""
    nn = mt.nn
    mlp = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4), nn.Linear(4, 2))
    cnn = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 2)
    )
    return [(mlp, mt.ones(2, 3)), (cnn, mt.ones(2, 1, 4, 4))]


def _external() -> Files:
    """Two arrays in a file of their own, one of them behind the other."""
    tensors = []
    for name, offset in (("a", 0), ("b", 16)):
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "weights.bin"), ("offset", str(offset)), ("length", "16")):
            tensor.external_data.add(key=key, value=value)
        tensors.append(tensor)
    model = onnx.parser.parse_model(HEAD.format(opset=20) + "g (float[4] x) => (float[4] y) { c = Mul(x, x) }")
    model.graph.initializer.extend(tensors)
    model.graph.node.extend([helper.make_node("Mul", ["c", "a"], ["d"]), helper.make_node("Add", ["d", "b"], ["y"])])
    return {**_one(model), "weights.bin": np.arange(8, dtype="<f4").tobytes()}


def _sparse() -> Files:
    """A sparse initializer, and two dense ones: of strings, and of bfloat16."""
    model = onnx.parser.parse_model(HEAD.format(opset=20) + "g (float[4] x) => (float[4] y) { y = Mul(x, s) }")
    values = numpy_helper.from_array(np.ones(2, np.float32), "s")
    model.graph.sparse_initializer.add(values=values, indices=numpy_helper.from_array(np.array([0, 2]), "i"), dims=[4])
    model.graph.initializer.append(helper.make_tensor("t", TensorProto.STRING, [1], [b"text"]))
    model.graph.initializer.append(helper.make_tensor("h", TensorProto.BFLOAT16, [2], [1.0, 2.0]))
    return _one(model)
