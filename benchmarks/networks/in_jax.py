"""The networks as functions of JAX: parameters are taken from a list, in the order of use; images are NHWC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .table import EFFICIENTNET, MOMENTUM, RATE, RESNET, Network, filled

EPS = 1e-5
KEPT = 0.9  # of running statistics


class Parameters:
    """What a network takes in the order of use: given parameters and statistics, or new ones if there are none.

    Attributes:
        weights, statistics: those that were taken; statistics as they are afterwards.
        trains: whether normalisations go by the batch.
    """

    def __init__(self, weights: Sequence[Any] = (), statistics: Sequence[Any] = (), trains: bool = True) -> None:
        self._weights, self._statistics, self.trains = iter(weights), iter(statistics), trains
        self.weights: list[Any] = []
        self.statistics: list[Any] = []

    def weight(self, *shape: int, ones: bool = False) -> Any:
        """Return the next parameter: filters and matrices as PyTorch has them, a vector of zeros or ones."""
        make = filled(shape) if len(shape) > 1 else np.full(shape, float(ones), np.float32)
        if len(shape) == 4:
            make = make.transpose(2, 3, 1, 0)
        self.weights.append(next(self._weights, make))
        return self.weights[-1]


def linear(p: Parameters, x: Any, outputs: int) -> Any:
    return x @ p.weight(outputs, x.shape[-1]).T + p.weight(outputs)


def conv(p: Parameters, x: Any, outputs: int, size: int = 1, stride: int = 1, groups: int = 1) -> Any:
    weight, pad = p.weight(outputs, x.shape[-1] // groups, size, size), (size // 2, size // 2)
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(
        x, weight, (stride, stride), (pad, pad), dimension_numbers=numbers, feature_group_count=groups
    )


def batch_norm(p: Parameters, x: Any) -> Any:
    weight, bias = p.weight(x.shape[-1], ones=True), p.weight(x.shape[-1])
    mean, var = (next(p._statistics, np.full(x.shape[-1], start, np.float32)) for start in (0, 1))
    if p.trains:
        own = x.mean((0, 1, 2)), x.var((0, 1, 2))
        count = x.size // x.shape[-1]
        p.statistics += [KEPT * mean + (1 - KEPT) * own[0]]
        p.statistics += [KEPT * var + (1 - KEPT) * own[1] * count / (count - 1)]
        mean, var = own
    else:
        p.statistics += [mean, var]
    return (x - mean) * (jax.lax.rsqrt(var + EPS) * weight) + bias


def layer_norm(p: Parameters, x: Any) -> Any:
    weight, bias = p.weight(x.shape[-1], ones=True), p.weight(x.shape[-1])
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + EPS) * weight + bias


def block(p: Parameters, x: Any, outputs: int, *args: int, act: Callable[[Any], Any] = jax.nn.relu) -> Any:
    return act(batch_norm(p, conv(p, x, outputs, *args)))


def none(x: Any) -> Any:
    return x


def pool(x: Any, size: int, stride: int, pad: int = 0) -> Any:
    pads = ((0, 0), (pad, pad), (pad, pad), (0, 0))
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, size, size, 1), (1, stride, stride, 1), pads)


def resnet(p: Parameters, x: Any, classes: int) -> Any:
    x = pool(block(p, x, 64, 7, 2), 3, 2, 1)
    for outputs, stride in RESNET:
        y = block(p, block(p, x, outputs, 3, stride), outputs, 3, act=none)
        x = jax.nn.relu(y + (x if y.shape == x.shape else block(p, x, outputs, 1, stride, act=none)))
    return linear(p, x.mean((1, 2)), classes)


def biased(p: Parameters, x: Any, outputs: int) -> Any:
    return conv(p, x, outputs) + p.weight(outputs)


def efficientnet(p: Parameters, x: Any, classes: int) -> Any:
    x = block(p, x, 32, 3, 2, act=jax.nn.silu)
    for expand, size, stride, outputs in EFFICIENTNET:
        inputs = x.shape[-1]
        y = block(p, x, inputs * expand, act=jax.nn.silu) if expand != 1 else x
        y = block(p, y, inputs * expand, size, stride, inputs * expand, act=jax.nn.silu)
        scale = jax.nn.silu(biased(p, y.mean((1, 2), keepdims=True), inputs // 4))
        y = block(p, y * jax.nn.sigmoid(biased(p, scale, inputs * expand)), outputs, act=none)
        x = x + y if y.shape == x.shape else y
    return linear(p, block(p, x, 1280, act=jax.nn.silu).mean((1, 2)), classes)


def unet(p: Parameters, x: Any, width: int) -> Any:
    def twice(x: Any, outputs: int) -> Any:
        return block(p, block(p, x, outputs, 3), outputs, 3)

    seen = [twice(x, width)]
    for level in range(1, 5):
        seen.append(twice(pool(seen[-1], 2, 2), width << level))
    x = seen.pop()
    for level in reversed(range(4)):
        weight = jnp.flip(p.weight(2 * width << level, width << level, 2, 2), (0, 1)).swapaxes(2, 3)
        numbers = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_transpose(x, weight, (2, 2), "VALID", dimension_numbers=numbers) + p.weight(width << level)
        x = twice(jnp.concatenate([seen.pop(), x], -1), width << level)
    return biased(p, x, 1)


def transformer(p: Parameters, x: Any, width: int, blocks: int, heads: int) -> Any:
    batch, length, _ = x.shape
    for _ in range(blocks):
        qkv = linear(p, layer_norm(p, x), 3 * width).reshape(batch, length, 3, heads, width // heads)
        q, k, v = (qkv[:, :, number] for number in range(3))
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(p, y.reshape(batch, length, width), width)
        x = x + linear(p, jax.nn.gelu(linear(p, layer_norm(p, x), 4 * width), approximate=False), width)
    return x


def lstm(p: Parameters, x: Any, width: int) -> Any:
    w, u = p.weight(4 * width, width), p.weight(4 * width, width)
    b, c = p.weight(4 * width), p.weight(4 * width)

    def step(state: Any, gates: Any) -> Any:
        h, memory = state
        i, f, g, o = jnp.split(gates + h @ u.T, 4, -1)
        memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(memory), memory), None

    zero = jnp.zeros((x.shape[0], width), x.dtype)
    (h, _), _ = jax.lax.scan(step, (zero, zero), (x @ w.T + b + c).swapaxes(0, 1))
    return h


MODELS: dict[str, Callable[..., Any]] = {
    "lstm": lstm,
    "transformer": transformer,
    "resnet": resnet,
    "efficientnet": efficientnet,
    "unet": unet,
}


def prepared(network: Network, sizes: Sequence[int], shape: Sequence[int]) -> Callable[[], Any]:
    """Return the call that is measured: a prediction, or a training step that returns the loss."""
    model, array = MODELS[network.model], filled(shape)
    x = jnp.asarray(array.transpose(0, 2, 3, 1) if len(shape) == 4 else array)
    first = Parameters(trains=network.trains)
    jax.eval_shape(lambda x: model(first, x, *sizes), x)
    weights = [jnp.asarray(each) for each in first.weights]
    found: Any = Parameters(trains=False)
    jax.eval_shape(lambda x: model(found, x, *sizes), x)
    statistics = [jnp.asarray(each) for each in found.statistics]
    if not network.trains:
        predict = jax.jit(lambda w, s, x: model(Parameters(w, s, trains=False), x, *sizes))
        return lambda: predict(weights, statistics, x)

    def loss(weights: Any, statistics: Any, x: Any) -> Any:
        p = Parameters(weights, statistics)
        return (model(p, x, *sizes) ** 2).mean(), p.statistics

    with_gradient = jax.value_and_grad(loss, has_aux=True)
    if not network.updates:
        gradient = jax.jit(with_gradient)
        return lambda: gradient(weights, statistics, x)[0][0]
    state = weights, [jnp.zeros_like(each) for each in weights], statistics

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any, x: Any) -> Any:
        weights, moved, statistics = state
        (value, statistics), gradients = with_gradient(weights, statistics, x)
        moved = [MOMENTUM * old + new for old, new in zip(moved, gradients, strict=True)]
        return value, ([w - RATE * each for w, each in zip(weights, moved, strict=True)], moved, statistics), gradients

    def call() -> Any:
        nonlocal state
        result, state, _ = step(state, x)
        return result

    return call


def value(result: Any) -> Any:
    """Return a result as an array."""
    return np.asarray(result)
