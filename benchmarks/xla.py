"""What `backend="xla"` costs beside the same function written by hand for `jax.jit`: calls of both, in turns.

python -m benchmarks.xla            the table
python -m benchmarks.xla --check    ends with 1 if it costs more than it may

Both run on JAX and on the same device, values stay there between calls, and a call ends when its result is there. So
what differs is what we do around a call, and the program that XLA is given.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import minitorch as mt
from minitorch.nn import functional as F

from .turns import medians

SECONDS = 4.0  # for each case
AT_MOST = 20e-6, 0.05  # the bounds that the project promises: of a call, and of the run of a training step
SIZES = (784, 512, 256, 10)
IMAGE, FILTERS = (3, 32, 32), (32, 64)
RATE = 0.01

Call = Callable[[], Any]
Array = np.ndarray[Any, Any]


def on_device(*arrays: Any) -> list[mt.Tensor]:
    """Tensors whose values are where XLA computes."""
    found: list[mt.Tensor] = mt.jit(lambda *xs: [x * 1 for x in xs], backend="xla")(*map(mt.tensor, arrays))
    return found


def finished(result: mt.Tensor) -> None:
    """Wait for the value, where it is."""
    result._value.array.block_until_ready()


def few() -> tuple[Call, Call]:
    """One operation on few elements: all of the time is the call's."""
    array = np.arange(8, dtype=np.float32)
    (x,), z = on_device(array), jax.device_put(array)
    ours, by_hand = mt.jit(lambda x: x * 2 + 1, backend="xla"), jax.jit(lambda x: x * 2 + 1)
    return lambda: finished(ours(x)), lambda: by_hand(z).block_until_ready()


def parameters() -> list[Array]:
    """Weights and biases of a network with two hidden layers."""
    draw = np.random.default_rng(0)
    found: list[Array] = []
    for inputs, outputs in pairwise(SIZES):
        found.append((draw.standard_normal((outputs, inputs)) / np.sqrt(inputs)).astype(np.float32))
        found.append(np.zeros(outputs, np.float32))
    return found


def model() -> mt.nn.Sequential:
    """The network, with these parameters."""
    layers: list[mt.nn.Module] = []
    for inputs, outputs in pairwise(SIZES):
        layers += [mt.nn.Linear(inputs, outputs), mt.nn.ReLU()]
    network = mt.nn.Sequential(*layers[:-1])
    for parameter, array in zip(network.parameters(), parameters(), strict=True):
        parameter.data.copy_(mt.tensor(array))
    return network


def forward_by_hand(weights: Any, x: Any) -> Any:
    """The network in `jax.numpy`."""
    last = len(weights) // 2 - 1
    for place in range(last + 1):
        x = x @ weights[2 * place].T + weights[2 * place + 1]
        x = x if place == last else jax.nn.relu(x)
    return x


def forward(batch: int) -> tuple[Call, Call]:
    """The network on a batch."""
    array = np.random.default_rng(1).standard_normal((batch, SIZES[0])).astype(np.float32)
    network = model().requires_grad_(False)  # else what its gradient needs is a result, too
    (x,), z, weights = on_device(array), jax.device_put(array), jax.device_put(parameters())
    ours, by_hand = mt.jit(network, backend="xla"), jax.jit(forward_by_hand)
    np.testing.assert_allclose(ours(x).numpy(), by_hand(weights, z), rtol=1e-4, atol=1e-5)
    return lambda: finished(ours(x)), lambda: by_hand(weights, z).block_until_ready()


def training(
    network: mt.nn.Module, arrays: list[Array], function: Callable[[Any, Any], Any], shape: tuple[int, ...]
) -> tuple[Call, Call]:
    """A step of SGD, which replaces the parameters.

    Args:
        network: the classifier, with these parameters.
        arrays: the parameters.
        function: the same classifier in `jax.numpy`.
        shape: of a batch.
    """
    array = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    labels = np.arange(len(array)) % SIZES[-1]
    optimizer = mt.optim.SGD(network.parameters(), RATE)
    x, y = on_device(array, labels)
    z, classes = jax.device_put(array), jax.device_put(labels.astype(np.int32))
    weights, gradients = jax.device_put(arrays), None

    @mt.jit(backend="xla")
    def ours(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def loss_by_hand(weights: Any, x: Any, y: Any) -> Any:
        rows = jax.nn.log_softmax(function(weights, x))
        return -jnp.mean(jnp.take_along_axis(rows, y[:, None], 1))

    def step(weights: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_by_hand)(weights, x, y)
        updated = [weight - RATE * gradient for weight, gradient in zip(weights, gradients, strict=True)]
        return loss, updated, gradients  # which our step leaves in `grad`

    by_hand = jax.jit(step, donate_argnums=0)

    def step_by_hand() -> Any:
        nonlocal weights, gradients
        loss, weights, gradients = by_hand(weights, z, classes)
        return loss.block_until_ready()

    for _ in range(3):
        np.testing.assert_allclose(ours(x, y).item(), step_by_hand(), rtol=1e-4)
    return lambda: finished(ours(x, y)), step_by_hand


def convolution() -> tuple[Call, Call]:
    """One convolution."""
    draw = np.random.default_rng(0)
    x, w = (draw.standard_normal(shape).astype(np.float32) for shape in ((8, 64, 28, 28), (64, 64, 3, 3)))
    here, there = on_device(x, w), jax.device_put([x, w])
    ours = mt.jit(lambda x, w: F.conv2d(x, w, padding=1), backend="xla")
    by_hand = jax.jit(lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), ((1, 1), (1, 1))))
    np.testing.assert_allclose(ours(*here).numpy(), by_hand(*there), rtol=1e-3, atol=1e-3)
    return lambda: finished(ours(*here)), lambda: by_hand(*there).block_until_ready()


def cnn_parameters() -> list[Array]:
    """Filters and biases of two convolutions, and a linear layer."""
    draw = np.random.default_rng(0)
    channels, length, _ = IMAGE
    shapes = [
        (FILTERS[0], channels, 3, 3),
        (FILTERS[1], FILTERS[0], 3, 3),
        (SIZES[-1], FILTERS[1] * (length // 4) ** 2),
    ]
    found: list[Array] = []
    for shape in shapes:
        found.append((draw.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))
        found.append(np.zeros(shape[0], np.float32))
    return found


def cnn() -> mt.nn.Sequential:
    """Two convolutions, each with ReLU and a pool, and a linear layer."""
    arrays = cnn_parameters()
    layers: list[mt.nn.Module] = []
    for filters in (arrays[0], arrays[2]):
        layers += [mt.nn.Conv2d(filters.shape[1], filters.shape[0], 3, padding=1), mt.nn.ReLU(), mt.nn.MaxPool2d(2)]
    network = mt.nn.Sequential(*layers, mt.nn.Flatten(), mt.nn.Linear(arrays[4].shape[1], SIZES[-1]))
    for parameter, array in zip(network.parameters(), arrays, strict=True):
        parameter.data.copy_(mt.tensor(array))
    return network


def cnn_by_hand(weights: Any, x: Any) -> Any:
    """The same in `jax.lax`."""
    for place in (0, 2):
        x = jax.lax.conv_general_dilated(x, weights[place], (1, 1), ((1, 1), (1, 1)))
        x = jax.nn.relu(x + weights[place + 1][:, None, None])
        x = jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return x.reshape(len(x), -1) @ weights[4].T + weights[5]


CASES: dict[str, Callable[[], tuple[Call, Call]]] = {
    "x * 2 + 1, 8 elements": few,
    "MLP, batch 1": lambda: forward(1),
    "MLP, batch 256": lambda: forward(256),
    "MLP, a training step of 256": lambda: training(model(), parameters(), forward_by_hand, (256, SIZES[0])),
    "convolution, 64 channels": convolution,
    "CNN, a training step of 32": lambda: training(cnn(), cnn_parameters(), cnn_by_hand, (32, *IMAGE)),
}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="end with 1 if it costs more than it may")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each case")
    options = parser.parse_args()
    good = True
    for name, case in CASES.items():
        calls = case()
        ours, by_hand = medians({"ours": calls[0], "by hand": calls[1]}, options.seconds).values()
        added = ours - by_hand
        is_good = added <= max(AT_MOST[0], AT_MOST[1] * by_hand)
        good = good and is_good
        print(
            f"{name:<30}{ours * 1e6:>10.1f} us, by hand {by_hand * 1e6:>8.1f} us: "
            f"{added * 1e6:+.1f} us, {added / by_hand:+.1%}{'' if is_good else '  <- more than it may'}"
        )
    return 0 if good or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
