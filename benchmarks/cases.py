"""What is computed: one row per case. A program is written once, for any library of `libraries`.

A program takes the library and its arrays. Inputs are made with NumPy from a seed, float32 (indices int64). A case
knows the least number of bytes that it must move: every input read once, every output written once.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .libraries import HEADS, Array, Library

Shape = tuple[int, ...]

LARGE = 16_000_000  # bytes: from here on a case is compared with a copy


@dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes:
        name: what it is called, with its size.
        group: the heading it stands under.
        program: ``program(lib, *arrays)``, an array or a tuple of arrays; of a stateful case, the step to call.
        inputs: ``inputs(rng, *shape)``, the arrays.
        shape: the sizes it is measured with.
        tiny: sizes small enough for a test.
        streaming: bound by memory, if it is large: it should take no longer than its traffic.
        stateful: the program is called once, and gives a step that updates its state in place.
        moved: ``moved(*shape)``, the bytes read and written, where inputs and outputs do not tell.
        tolerance: how far a float32 result may be from the float64 reference.
    """

    name: str
    group: str
    program: Callable[..., Any]
    inputs: Callable[..., list[Array]]
    shape: Shape
    tiny: Shape
    streaming: bool = True
    stateful: bool = False
    moved: Callable[..., tuple[int, int]] | None = None
    tolerance: float = 1e-4

    def make_inputs(self, shape: Shape | None = None) -> list[Array]:
        """The inputs, the same at every call."""
        return self.inputs(np.random.default_rng(zlib.crc32(self.name.encode())), *(shape or self.shape))

    def prepare(self, library: Library, inputs: list[Array]) -> Callable[[], Any]:
        """What is measured: a call without arguments. Nothing has been traced or compiled yet."""
        arrays = [library.array(x) for x in inputs]
        if self.stateful:
            step: Callable[[], Any] = self.program(library, *arrays)
            return step
        function = library.compile(partial(self.program, library))
        return lambda: function(*arrays)

    def traffic(self, inputs: list[Array], outputs: list[Array], shape: Shape | None = None) -> tuple[int, int]:
        """The bytes that must be read and written, at least; outputs may be in float64, but count as float32."""
        if self.moved is not None:
            return self.moved(*(shape or self.shape))
        return sum(x.nbytes for x in inputs), 4 * sum(x.size for x in outputs)


def flat(result: Any) -> list[Any]:
    """The arrays of a result."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def distance(result: Array, reference: Array) -> float:
    """The largest difference, relative to the reference and its root mean square; infinite if it cannot be told."""
    if result.shape != reference.shape or not np.isfinite(result).all():
        return math.inf
    if not reference.size:
        return 0.0
    difference = np.abs(result - reference)
    scale = np.abs(reference) + np.sqrt(np.mean(np.square(reference, dtype=np.float64)))
    return float(np.max(difference / np.maximum(scale, 1e-30)))


def deviation(result: Array, reference: Array) -> float:
    """The root mean square of the difference, relative to that of the reference; infinite if it cannot be told."""
    if result.shape != reference.shape or not np.isfinite(result).all():
        return math.inf
    squares = (float(np.mean(np.square(each, dtype=np.float64))) for each in (result - reference, reference))
    difference, size = squares
    return math.sqrt(difference / max(size, 1e-60))


def in_float64(inputs: list[Array]) -> list[Array]:
    """The inputs of the reference."""
    return [x.astype(np.float64) if x.dtype == np.float32 else x for x in inputs]


# --- inputs -----------------------------------------------------------------------------------------------------------


def normal(rng: np.random.Generator, *shape: int) -> Array:
    """Standard normal float32."""
    return rng.standard_normal(shape, np.float32)


def one(rng: np.random.Generator, *shape: int) -> list[Array]:
    return [normal(rng, *shape)]


def shifted(rng: np.random.Generator, *shape: int) -> list[Array]:
    """With a mean that sums do not cancel to."""
    return [normal(rng, *shape) + np.float32(0.5)]


def with_affine(rng: np.random.Generator, rows: int, columns: int, *, bias: bool, cotangent: bool) -> list[Array]:
    """A matrix, a weight and perhaps a bias per column, and perhaps the cotangent of a result like the matrix."""
    affine = [1 + 0.1 * normal(rng, columns)] + ([normal(rng, columns)] if bias else [])
    return [normal(rng, rows, columns), *affine] + ([normal(rng, rows, columns)] if cotangent else [])


def with_cotangent(rng: np.random.Generator, *shape: int) -> list[Array]:
    return [normal(rng, *shape), normal(rng, *shape)]


def small_numbers(rng: np.random.Generator, size: int) -> list[Array]:
    """Factors around a half, so that sixty operations stay in range."""
    return [normal(rng, size), rng.uniform(0.4, 0.6, size).astype(np.float32), normal(rng, size)]


def matrices_and_row(rng: np.random.Generator, rows: int, columns: int) -> list[Array]:
    return [normal(rng, rows, columns), normal(rng, columns, rows), normal(rng, rows)]


def classes(rng: np.random.Generator, rows: int, columns: int) -> list[Array]:
    return [normal(rng, rows, columns), rng.integers(0, columns, rows)]


def heads(rng: np.random.Generator, *shape: int, count: int) -> list[Array]:
    """Queries, keys, values, and perhaps the cotangent of the result."""
    return [normal(rng, *shape) for _ in range(count)]


def tokens(rng: np.random.Generator, batch: int, length: int, vocabulary: int, features: int) -> list[Array]:
    table = normal(rng, vocabulary, features)
    return [rng.integers(0, vocabulary, (batch, length)), table, 1 + 0.1 * normal(rng, features), normal(rng, features)]


def layers(rng: np.random.Generator, count: int, rows: int, columns: int, bias: int) -> list[Array]:
    """`count` pairs of a matrix and a vector, and as many gradients."""
    shapes = [(rows, columns), (bias,)] * count
    return [normal(rng, *shape) for shape in (*shapes, *shapes)]


def dense(rng: np.random.Generator, rows: int, columns: int) -> list[Array]:
    """The weight and the bias of a layer."""
    return [normal(rng, rows, columns) / np.float32(math.sqrt(rows)), 0.1 * normal(rng, columns)]


def mlp(rng: np.random.Generator, batch: int, features: int, hidden: int, count: int) -> list[Array]:
    """The parameters of two layers, inputs and classes."""
    parameters = [*dense(rng, features, hidden), *dense(rng, hidden, count)]
    return [*parameters, normal(rng, batch, features), rng.integers(0, count, batch)]


def block(rng: np.random.Generator, batch: int, length: int, width: int) -> list[Array]:
    """The parameters of a transformer block, and its input."""
    parameters: list[Array] = []
    for layers in (((width, 3 * width), (width, width)), ((width, 4 * width), (4 * width, width))):
        parameters += [1 + 0.1 * normal(rng, width), 0.1 * normal(rng, width)]
        for rows, columns in layers:
            parameters += dense(rng, rows, columns)
    return [*parameters, normal(rng, batch, length, width)]


def block_and_target(rng: np.random.Generator, batch: int, length: int, width: int) -> list[Array]:
    return [*block(rng, batch, length, width), normal(rng, batch, length, width)]


def rnn(rng: np.random.Generator, steps: int, batch: int, width: int) -> list[Array]:
    """The parameters of a recurrent network, and an input for every step."""
    recurrent, bias = dense(rng, width, width)
    return [normal(rng, width, width) / np.float32(math.sqrt(width)), recurrent, bias, normal(rng, steps, batch, width)]


def rnn_and_target(rng: np.random.Generator, steps: int, batch: int, width: int) -> list[Array]:
    return [*rnn(rng, steps, batch, width), normal(rng, batch, width)]


def filters(rng: np.random.Generator, count: int, depth: int, size: int) -> list[Array]:
    """The weight and the bias of a convolution."""
    weight = normal(rng, count, depth, size, size) / np.float32(math.sqrt(depth * size * size))
    return [weight, 0.1 * normal(rng, count)]


def images(
    rng: np.random.Generator, batch: int, channels: int, side: int, count: int, depth: int, size: int
) -> list[Array]:
    """Images and the parameters of a convolution; each filter looks at `depth` channels."""
    return [normal(rng, batch, channels, side, side), *filters(rng, count, depth, size)]


def images_and_cotangent(rng: np.random.Generator, *shape: int) -> list[Array]:
    batch, _, side, count, *_ = shape
    return [*images(rng, *shape), normal(rng, batch, count, side, side)]


def cnn(rng: np.random.Generator, batch: int, side: int, first: int, second: int, count: int) -> list[Array]:
    """The parameters of two convolutions and a layer, grey images and classes."""
    features = second * (side // 4) ** 2
    parameters = [*filters(rng, first, 1, 3), *filters(rng, second, first, 3), *dense(rng, features, count)]
    return [*parameters, normal(rng, batch, 1, side, side), rng.integers(0, count, batch)]


def factors(rng: np.random.Generator, batch: int, m: int, k: int, n: int) -> list[Array]:
    """Two matrices that can be multiplied, or as many pairs as `batch` says; 0 for no batch."""
    lead = (batch,) if batch else ()
    return [normal(rng, *lead, m, k), normal(rng, *lead, k, n)]


def factors_and_bias(rng: np.random.Generator, m: int, k: int, n: int) -> list[Array]:
    """With elements of a size that keeps the product's around 1."""
    return [normal(rng, m, k), normal(rng, k, n) / np.float32(math.sqrt(k)), normal(rng, n)]


# --- programs ---------------------------------------------------------------------------------------------------------


def gelu(lib: Any, x: Any) -> Any:
    """Nine operations (Hendrycks and Gimpel, arXiv:1606.08415, with tanh)."""
    return 0.5 * x * (1 + lib.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def sixty_operations(lib: Any, x: Any, y: Any, z: Any) -> Any:
    """Each waits for the one before."""
    for _ in range(30):
        x = x * y
        x = x + z
    return x


def rearranged(lib: Any, x: Any, y: Any, row: Any) -> Any:
    """Transposes, broadcasts and slices between the arithmetic."""
    half = x.shape[0] // 2
    t = x.T * row + y
    t = lib.maximum(t[:, :half], t[:, half:])
    return lib.tanh(t[1:-1]) * row[::2] - x[:half, 1:-1].T


def softmax(lib: Any, x: Any) -> Any:
    return lib.softmax(x, -1)


def log_softmax(lib: Any, x: Any) -> Any:
    return lib.log_softmax(x, -1)


def softmax_of_columns(lib: Any, x: Any) -> Any:
    return lib.softmax(x, 0)


def layer_norm(lib: Any, x: Any, weight: Any, bias: Any) -> Any:
    return lib.layer_norm(x, weight, bias)


def rms_norm(lib: Any, x: Any, weight: Any) -> Any:
    return lib.rms_norm(x, weight)


def softmax_gradient(lib: Any, x: Any, cotangent: Any) -> Any:
    return lib.vjp(softmax, (x,), cotangent)


def log_softmax_gradient(lib: Any, x: Any, cotangent: Any) -> Any:
    return lib.vjp(log_softmax, (x,), cotangent)


def layer_norm_gradient(lib: Any, x: Any, weight: Any, bias: Any, cotangent: Any) -> Any:
    return lib.vjp(layer_norm, (x, weight, bias), cotangent)


def rms_norm_gradient(lib: Any, x: Any, weight: Any, cotangent: Any) -> Any:
    return lib.vjp(rms_norm, (x, weight), cotangent)


def cross_entropy(lib: Any, logits: Any, target: Any) -> Any:
    return lib.cross_entropy(logits, target)


def cross_entropy_and_gradient(lib: Any, logits: Any, target: Any) -> Any:
    return lib.value_and_grad(cross_entropy, logits, target)


def embedding_and_layer_norm(lib: Any, indices: Any, table: Any, weight: Any, bias: Any) -> Any:
    return lib.layer_norm(lib.embedding(indices, table), weight, bias)


def attention(lib: Any, q: Any, k: Any, v: Any) -> Any:
    return lib.attention(q, k, v, causal=False)


def causal_attention(lib: Any, q: Any, k: Any, v: Any) -> Any:
    return lib.attention(q, k, v, causal=True)


def attention_gradient(lib: Any, q: Any, k: Any, v: Any, cotangent: Any) -> Any:
    return lib.vjp(attention, (q, k, v), cotangent)


def causal_attention_gradient(lib: Any, q: Any, k: Any, v: Any, cotangent: Any) -> Any:
    return lib.vjp(causal_attention, (q, k, v), cotangent)


def adam_traffic(size: int) -> tuple[int, int]:
    """Parameters, gradients, means and squares are read; all but the gradients are written."""
    return 16 * size, 12 * size


def adam(lib: Any, *parameters_and_gradients: Any) -> Any:
    half = len(parameters_and_gradients) // 2
    return lib.adam(list(parameters_and_gradients[:half]), list(parameters_and_gradients[half:]))


def matmul(lib: Any, a: Any, b: Any) -> Any:
    return a @ b


def linear_and_gelu(lib: Any, x: Any, weight: Any, bias: Any) -> Any:
    return gelu(lib, x @ weight + bias)


def convolution(lib: Any, x: Any, weight: Any, bias: Any) -> Any:
    """To images of the same size, with bias and relu."""
    return lib.convolution(x, weight, bias)


def convolution_gradient(lib: Any, x: Any, weight: Any, bias: Any, cotangent: Any) -> Any:
    return lib.vjp(convolution, (x, weight, bias), cotangent)


def cnn_loss(lib: Any, parameters: Any, x: Any, target: Any) -> Any:
    w1, b1, w2, b2, w3, b3 = parameters
    x = lib.max_pool(lib.convolution(x, w1, b1))
    x = lib.max_pool(lib.convolution(x, w2, b2))
    return lib.cross_entropy(x.reshape(x.shape[0], -1) @ w3 + b3, target)


def mlp_loss(lib: Any, parameters: Any, x: Any, target: Any) -> Any:
    w1, b1, w2, b2 = parameters
    return lib.cross_entropy(gelu(lib, x @ w1 + b1) @ w2 + b2, target)


def transformer_block(lib: Any, parameters: Any, x: Any) -> Any:
    """With the norms before the layers, as in GPT-2."""
    n1, c1, w_qkv, b_qkv, w_out, b_out, n2, c2, w1, b1, w2, b2 = parameters
    batch, length, width = x.shape
    qkv = (lib.layer_norm(x, n1, c1) @ w_qkv + b_qkv).reshape(batch, length, 3, HEADS, width // HEADS)
    q, k, v = (qkv[:, :, number].swapaxes(1, 2) for number in range(3))
    weights = lib.softmax(q @ k.swapaxes(-1, -2) * (HEADS / width) ** 0.5, -1)
    x = x + (weights @ v).swapaxes(1, 2).reshape(batch, length, width) @ w_out + b_out
    return x + gelu(lib, lib.layer_norm(x, n2, c2) @ w1 + b1) @ w2 + b2


def block_loss(lib: Any, parameters: Any, x: Any, target: Any) -> Any:
    return mean_square(transformer_block(lib, parameters, x), target)


def recurrent_network(lib: Any, parameters: Any, x: Any) -> Any:
    """The last state."""
    w_in, w, b = parameters
    state = lib.tanh(x[0] @ w_in + b)
    for number in range(1, x.shape[0]):
        state = lib.tanh(x[number] @ w_in + state @ w + b)
    return state


def rnn_loss(lib: Any, parameters: Any, x: Any, target: Any) -> Any:
    return mean_square(recurrent_network(lib, parameters, x), target)


def mean_square(y: Any, target: Any) -> Any:
    difference = y - target
    return (difference * difference).mean()


def forward(model: Callable[..., Any]) -> Callable[..., Any]:
    """The program of a model: parameters, then one input."""
    return lambda lib, *arrays: model(lib, arrays[:-1], arrays[-1])


def training(loss: Callable[..., Any], optimizer: str) -> Callable[..., Any]:
    """The program of a training step: parameters, then inputs and targets."""
    return lambda lib, *arrays: lib.training_step(loss, optimizer, list(arrays[:-2]), *arrays[-2:])


def reduction(name: str, axis: int | None) -> Callable[..., Any]:
    """`lib.sum`, `lib.mean` or `lib.var` over an axis."""
    return lambda lib, x: getattr(lib, name)(x, axis)


# --- the table --------------------------------------------------------------------------------------------------------

ROWS = ((4096, 1024), (64, 50257), (200_000, 16))  # as in attention, at the end of a language model, of many small rows

ROW_WISE = (  # name, program, its gradient, inputs of both
    ("softmax", softmax, softmax_gradient, one, with_cotangent),
    ("log_softmax", log_softmax, log_softmax_gradient, one, with_cotangent),
    (
        "layer_norm", layer_norm, layer_norm_gradient,
        partial(with_affine, bias=True, cotangent=False), partial(with_affine, bias=True, cotangent=True),
    ),
    (
        "rms_norm", rms_norm, rms_norm_gradient,
        partial(with_affine, bias=False, cotangent=False), partial(with_affine, bias=False, cotangent=True),
    ),
)  # fmt: skip


def _elementwise() -> list[Case]:
    sizes = {"1e2": 100, "1e4": 10_000, "1e6": 1_000_000, "1.6e7": 16_000_000}
    return [
        *[Case(f"gelu {name}", "elementwise", gelu, one, (size,), (7,)) for name, size in sizes.items()],
        Case("transposes, slices 2048²", "elementwise", rearranged, matrices_and_row, (2048, 2048), (8, 6)),
        Case("60 operations on 16", "elementwise", sixty_operations, small_numbers, (16,), (3,), streaming=False),
    ]


def _row_wise() -> list[Case]:
    cases = []
    for name, program, gradient, inputs, gradient_inputs in ROW_WISE:
        for suffix, function, make in (("", program, inputs), (" gradient", gradient, gradient_inputs)):
            cases += [Case(f"{name}{suffix} {m}×{n}", name, function, make, (m, n), (3, 5)) for m, n in ROWS]
    return cases


def _reductions() -> list[Case]:
    axes = {"rows": -1, "columns": 0, "all": None}
    return [
        Case(f"{name} over {over}", "reductions", reduction(name, axis), shifted, (4096, 1024), (3, 5))
        for name in ("sum", "mean", "var")
        for over, axis in axes.items()
    ]


def _attention() -> list[Case]:
    kinds = (
        ("attention", attention, 3),
        ("causal attention", causal_attention, 3),
        ("attention gradient", attention_gradient, 4),
        ("causal attention gradient", causal_attention_gradient, 4),
    )
    return [
        Case(
            f"{name} 8×{length}×64", "attention", program, partial(heads, count=count),
            (1, 8, length, 64), (1, 2, 5, 4), streaming=False,
        )
        for length in (512, 4096)
        for name, program, count in kinds
    ]  # fmt: skip


def _contractions() -> list[Case]:
    products = {
        "matmul 256³": (0, 256, 256, 256),
        "matmul 1024³": (0, 1024, 1024, 1024),
        "matmul 2048³": (0, 2048, 2048, 2048),
        "matmul 64×784×256": (0, 64, 784, 256),
        "matmul 1×4096×4096": (0, 1, 4096, 4096),
        "matmul of 32 pairs, 128×64×128": (32, 128, 64, 128),
    }
    return [
        *[Case(name, "contractions", matmul, factors, shape, (2, 3, 5, 4), streaming=shape[1] == 1)
          for name, shape in products.items()],
        Case(
            "matmul, bias, gelu 1024³", "contractions", linear_and_gelu, factors_and_bias,
            (1024, 1024, 1024), (3, 5, 4), streaming=False,
        ),
    ]  # fmt: skip


def _convolutions() -> list[Case]:
    layers = {
        "conv 3×3, 32×16×28×28 to 32": (32, 16, 28, 32, 16, 3),
        "conv 3×3, 8×64×56×56 to 64": (8, 64, 56, 64, 64, 3),
        "conv 1×1, 8×64×56×56 to 128": (8, 64, 56, 128, 64, 1),
        "conv 3×3 depthwise, 8×64×56×56": (8, 64, 56, 64, 1, 3),
    }
    tiny = {1: (2, 3, 5, 4, 3, 1), 3: (2, 3, 5, 4, 3, 3)}
    cases = []
    for name, shape in layers.items():
        small = tiny[shape[-1]] if shape[4] > 1 else (2, 3, 5, 3, 1, 3)
        cases += [
            Case(name, "convolutions", convolution, images, shape, small, streaming=False),
            Case(f"{name}, gradient", "convolutions", convolution_gradient, images_and_cotangent, shape, small,
                 streaming=False),
        ]  # fmt: skip
    return cases


def _training() -> list[Case]:
    def step(name: str, loss: Callable[..., Any], optimizer: str, inputs: Any, shape: Shape, tiny: Shape) -> Case:
        program = training(loss, optimizer)
        return Case(name, "training", program, inputs, shape, tiny, streaming=False, stateful=True, tolerance=1e-3)

    return [
        *[step(f"MLP training step, batch {batch}", mlp_loss, "adam", mlp, (batch, 784, 256, 10), (3, 5, 4, 3))
          for batch in (8, 64, 512)],
        step("CNN training step, 64×28×28", cnn_loss, "adam", cnn, (64, 28, 16, 32, 10), (3, 8, 2, 3, 4)),
        Case("transformer block 8×128×256", "training", forward(transformer_block), block, (8, 128, 256), (2, 3, 16),
             streaming=False),
        step("transformer block training step", block_loss, "sgd", block_and_target, (8, 128, 256), (2, 3, 16)),
        Case("RNN, 60 steps of 8×32", "training", forward(recurrent_network), rnn, (60, 8, 32), (3, 2, 4),
             streaming=False),
        step("RNN training step", rnn_loss, "sgd", rnn_and_target, (60, 8, 32), (3, 2, 4)),
    ]  # fmt: skip


GROUPS = (
    "elementwise",
    *(name for name, *_ in ROW_WISE),
    "reductions",
    "contractions",
    "convolutions",
    "attention",
    "training",
)

ALL = (
    *_elementwise(),
    *_row_wise(),
    Case("softmax of columns 4096×1024", "softmax", softmax_of_columns, one, (4096, 1024), (5, 3)),
    *_reductions(),
    *_attention(),
    *_contractions(),
    *_convolutions(),
    *_training(),
    Case("cross-entropy, gradient 512×1000", "training", cross_entropy_and_gradient, classes, (512, 1000), (4, 5)),
    Case(
        "embedding, layer_norm 16384×256", "training", embedding_and_layer_norm, tokens,
        (64, 256, 50257, 256), (2, 3, 7, 5),
        moved=lambda batch, length, _, features: (batch * length * (4 * features + 8), batch * length * 4 * features),
    ),
    Case(
        "Adam, 50 tensors, 1e6", "training", adam, layers, (25, 128, 311, 192), (2, 3, 5, 4),
        stateful=True,
        moved=lambda count, rows, columns, bias: adam_traffic(count * (rows * columns + bias)),
    ),
)  # fmt: skip

CASES: tuple[Case, ...] = tuple(sorted(ALL, key=lambda case: GROUPS.index(case.group)))
