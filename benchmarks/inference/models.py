"""The models: a perceptron, a convolutional network, a transformer block, and a matrix times a vector.

Each is said three times, of the same parameters: as a program for a library of `benchmarks.libraries` (the float64
reference, and JAX), as a module (minitorch and PyTorch, whose names are the same), and as an ONNX graph
(`onnx_graphs`). The parameters of a layer are those of `benchmarks.cases`: a weight [in, out] or [out, in, 3, 3], and
a bias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..cases import Case, block, dense, filters, normal, transformer_block
from ..libraries import HEADS, Array

STRIDES = (1, 2, 1, 2)  # of the convolutions
NORMALIZED = 6  # parameters of a convolution with batch normalization
ROWS = 64  # of other inputs, from which scales are taken: more makes them more exact, and preparing slower


@dataclass(frozen=True)
class Model:
    """What is computed.

    Attributes:
        name: by which libraries find their own form of it.
        program: ``program(lib, parameters, x)``, the array that comes out.
        module: ``module(nn, F, parameters)``, a module of minitorch or PyTorch for parameters of these shapes; the
            names in its state are in their order.
    """

    name: str
    program: Callable[[Any, Any, Any], Any]
    module: Callable[[Any, Any, list[Array]], Any]

    def __call__(self, lib: Any, *arrays: Any) -> Callable[[], Any]:
        """The call that is measured; the library makes constants of the parameters, or arguments."""
        step: Callable[[], Any] = lib.inference(self, list(arrays[:-1]), arrays[-1])
        return step


def calibration(x: Array) -> list[Array]:
    """Inputs like `x`, the same for every library."""
    rng = np.random.default_rng(16)
    return [normal(rng, *x.shape) for _ in range(max(4, ROWS // len(x)))]


def state(names: list[str], parameters: list[Array]) -> dict[str, Array]:
    """The parameters by their names in a module, whose weights of linear layers are [out, in]."""
    names = [name for name in names if not name.endswith("num_batches_tracked")]
    return {
        name: np.ascontiguousarray(each.T) if each.ndim == 2 else each
        for name, each in zip(names, parameters, strict=True)
    }


# --- three layers -----------------------------------------------------------------------------------------------------


def mlp(rng: np.random.Generator, batch: int, *sizes: int) -> list[Array]:
    """Weights and biases of the layers, and an input."""
    layers = pairwise(sizes)
    return [*(each for rows, columns in layers for each in dense(rng, rows, columns)), normal(rng, batch, sizes[0])]


def mlp_program(lib: Any, parameters: Any, x: Any) -> Any:
    for at in range(0, len(parameters), 2):
        x = (lib.maximum(x, 0) if at else x) @ parameters[at] + parameters[at + 1]
    return x


def mlp_module(nn: Any, F: Any, parameters: list[Array]) -> Any:
    layers = [layer for weight in parameters[::2] for layer in (nn.Linear(*weight.shape), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


# --- four convolutions ------------------------------------------------------------------------------------------------


def cnn(rng: np.random.Generator, batch: int, side: int, *channels: int) -> list[Array]:
    """A convolution, the four parameters of its batch normalization, and so on; then images."""
    parameters: list[Array] = []
    for depth, count in pairwise(channels):
        norm = [1 + 0.1 * normal(rng, count), 0.1 * normal(rng, count), 0.1 * normal(rng, count)]
        parameters += [*filters(rng, count, depth, 3), *norm, rng.uniform(0.5, 1.5, count).astype(np.float32)]
    return [*parameters, normal(rng, batch, channels[0], side, side)]


def cnn_program(lib: Any, parameters: Any, x: Any) -> Any:
    for stride, at in zip(STRIDES, range(0, len(parameters), NORMALIZED), strict=True):
        x = lib.normalized_convolution(x, stride, *parameters[at : at + NORMALIZED])
    return x


def cnn_module(nn: Any, F: Any, parameters: list[Array]) -> Any:
    layers: list[Any] = []
    for stride, weight in zip(STRIDES, parameters[::NORMALIZED], strict=True):
        count, depth = weight.shape[:2]
        layers += [nn.Conv2d(depth, count, 3, stride, padding=1), nn.BatchNorm2d(count), nn.ReLU()]
    return nn.Sequential(*layers)


# --- a transformer block ----------------------------------------------------------------------------------------------


def block_module(nn: Any, F: Any, parameters: list[Array]) -> Any:
    """`cases.transformer_block`, of tokens [batch, length, width]."""
    width = len(parameters[0])

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.norm2, self.up = nn.LayerNorm(width), nn.Linear(width, 4 * width)
            self.down = nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length = x.shape[:2]
            qkv = self.qkv(self.norm1(x)).reshape(batch, length, 3, HEADS, width // HEADS)
            q, k, v = (qkv[:, :, number].transpose(1, 2) for number in range(3))
            mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
            x = x + self.out(mixed)
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    return Block()


# --- a matrix times a vector ------------------------------------------------------------------------------------------


def product(rng: np.random.Generator, batch: int, rows: int, columns: int) -> list[Array]:
    return [dense(rng, rows, columns)[0], normal(rng, batch, rows)]


def product_program(lib: Any, parameters: Any, x: Any) -> Any:
    return x @ parameters[0]


def product_module(nn: Any, F: Any, parameters: list[Array]) -> Any:
    return nn.Sequential(nn.Linear(*parameters[0].shape, bias=False))


# --- the table --------------------------------------------------------------------------------------------------------

MLP = Model("MLP", mlp_program, mlp_module)
CNN = Model("CNN", cnn_program, cnn_module)
BLOCK = Model("block", transformer_block, block_module)
PRODUCT = Model("product", product_program, product_module)

Sizes = tuple[int, ...]

# Name, model, inputs, their sizes, and those of a test.
ROWS_OF_TABLE: tuple[tuple[str, Model, Any, Sizes, Sizes], ...] = (
    *((f"MLP 784-1024-1024-10, batch {n}", MLP, mlp, (n, 784, 1024, 1024, 10), (3, 33, 32, 31, 12)) for n in (1, 64)),
    *(
        (f"CNN 3-32-64-64-128, 32×32, batch {n}", CNN, cnn, (n, 32, 3, 32, 64, 64, 128), (3, 8, 3, 4, 5, 4, 6))
        for n in (1, 16)
    ),
    ("transformer block 1×128×256", BLOCK, block, (1, 128, 256), (1, 5, 16)),
    ("matrix 4096×4096 times vector", PRODUCT, product, (1, 4096, 4096), (1, 64, 12)),
)

CASES: tuple[Case, ...] = tuple(
    Case(name, model.name, model, inputs, shape, tiny, streaming=False, stateful=True)
    for name, model, inputs, shape, tiny in ROWS_OF_TABLE
)
