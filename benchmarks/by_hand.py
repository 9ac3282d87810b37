"""Losses of whole models and their gradients, written by hand with NumPy: the reference of the training cases.

Each function takes the parameters and the data of the program of the same name in `cases`, and returns the loss and the
gradients of the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Gradients = tuple[Array, list[Array]]

_SLOPE, _CUBE = math.sqrt(2 / math.pi), 0.044715


def _gelu(x: Array) -> tuple[Array, Array]:
    """The value and the derivative."""
    t = np.tanh(_SLOPE * (x + _CUBE * x**3))
    return 0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * _SLOPE * (1 + 3 * _CUBE * x * x)


def _softmax(x: Array) -> Array:
    shifted = np.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def _standardized(x: Array, eps: float) -> tuple[Array, Array]:
    centered = x - x.mean(-1, keepdims=True)
    scale = 1 / np.sqrt((centered * centered).mean(-1, keepdims=True) + eps)
    return centered * scale, scale


def _standardized_gradient(h: Array, y: Array, scale: Array) -> Array:
    return scale * (h - h.mean(-1, keepdims=True) - y * (h * y).mean(-1, keepdims=True))


def _rows(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1])


def _linear_gradient(x: Array, weight: Array, g: Array) -> tuple[Array, Array, Array]:
    """Those of the input, the weight and the bias."""
    return g @ weight.T, _rows(x).T @ _rows(g), _rows(g).sum(0)


def _mean_square(y: Array, target: Array) -> tuple[Array, Array]:
    difference = y - target
    return np.mean(difference * difference), difference * (2 / difference.size)


def mlp_loss(parameters: Sequence[Array], x: Array, target: Array) -> Gradients:
    """Two layers and a cross-entropy."""
    w1, b1, w2, b2 = parameters
    hidden, slope = _gelu(x @ w1 + b1)
    g = _softmax(hidden @ w2 + b2)
    rows = np.arange(len(target))
    loss = -np.log(g[rows, target]).mean()
    g[rows, target] -= 1
    g, dw2, db2 = _linear_gradient(hidden, w2, g / len(target))
    _, dw1, db1 = _linear_gradient(x, w1, g * slope)
    return loss, [dw1, db1, dw2, db2]


def block_loss(parameters: Sequence[Array], x: Array, target: Array, heads: int, eps: float) -> Gradients:
    """A transformer block with the norms before the layers, and a mean square."""
    n1, c1, w_qkv, b_qkv, w_out, b_out, n2, c2, w1, b1, w2, b2 = parameters
    batch, length, width = x.shape
    scale = 1 / math.sqrt(width // heads)

    def split(z: Array) -> Array:
        return z.reshape(batch, length, heads, width // heads).swapaxes(1, 2)

    def joined(z: Array) -> Array:
        return z.swapaxes(1, 2).reshape(batch, length, width)

    y1, _ = _standardized(x, eps)
    a1 = y1 * n1 + c1
    q, k, v = map(split, np.split(a1 @ w_qkv + b_qkv, 3, -1))
    p = _softmax(q @ k.swapaxes(-1, -2) * scale)
    mixed = joined(p @ v)
    middle = x + mixed @ w_out + b_out
    y2, s2 = _standardized(middle, eps)
    a2 = y2 * n2 + c2
    hidden, slope = _gelu(a2 @ w1 + b1)
    loss, g = _mean_square(middle + hidden @ w2 + b2, target)

    dh, dw2, db2 = _linear_gradient(hidden, w2, g)
    da2, dw1, db1 = _linear_gradient(a2, w1, dh * slope)
    dn2, dc2 = _rows(da2 * y2).sum(0), _rows(da2).sum(0)
    dmiddle = g + _standardized_gradient(da2 * n2, y2, s2)
    dmixed, dw_out, db_out = _linear_gradient(mixed, w_out, dmiddle)
    do = split(dmixed)
    dp, dv = do @ v.swapaxes(-1, -2), p.swapaxes(-1, -2) @ do
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * scale
    dqkv = np.concatenate([joined(ds @ k), joined(ds.swapaxes(-1, -2) @ q), joined(dv)], -1)
    da1, dw_qkv, db_qkv = _linear_gradient(a1, w_qkv, dqkv)
    dn1, dc1 = _rows(da1 * y1).sum(0), _rows(da1).sum(0)
    return loss, [dn1, dc1, dw_qkv, db_qkv, dw_out, db_out, dn2, dc2, dw1, db1, dw2, db2]


def _windows(x: Array, size: Sequence[int], groups: int, ends: Sequence[int]) -> Array:
    """[batch, group, channel, *places, *size] of images with so many zeros around them."""
    x = np.pad(x, [(0, 0), (0, 0), *((each, each) for each in ends)])
    found = np.lib.stride_tricks.sliding_window_view(x, tuple(size), (2, 3))
    return found.reshape(len(x), groups, -1, *found.shape[2:])


def _grouped(x: Array, groups: int) -> Array:
    return x.reshape(len(x), groups, -1, *x.shape[2:])


def convolution(x: Array, weight: Array, bias: Array) -> Array:
    """Padded to the same size, with bias and relu; as many groups as channels do not fit under a filter."""
    filters, depth, *size = weight.shape
    groups = x.shape[1] // depth
    seen = _windows(x, size, groups, [length // 2 for length in size])
    y = np.einsum("bgdhwij,gfdij->bgfhw", seen, weight.reshape(groups, -1, depth, *size), optimize=True)
    return np.maximum(y.reshape(len(x), filters, *y.shape[3:]) + bias[:, None, None], 0)


def convolution_gradient(x: Array, weight: Array, bias: Array, g: Array) -> tuple[Array, Array, Array]:
    """Those of the images, the filters and the bias."""
    g = g * (convolution(x, weight, bias) > 0)
    _, depth, *size = weight.shape
    groups = x.shape[1] // depth
    filters, ends = weight.reshape(groups, -1, depth, *size), [length // 2 for length in size]
    seen, back = _windows(x, size, groups, ends), _windows(g, size, groups, ends)
    dx = np.einsum("bgfhwij,gfdij->bgdhw", back, filters[..., ::-1, ::-1], optimize=True)
    dw = np.einsum("bgdhwij,bgfhw->gfdij", seen, _grouped(g, groups), optimize=True)
    return dx.reshape(x.shape), dw.reshape(weight.shape), g.sum((0, 2, 3))


def max_pool(x: Array) -> Array:
    """Over squares of four elements."""
    return _squares(x).max((3, 5))


def _squares(x: Array) -> Array:
    return x.reshape(*x.shape[:2], x.shape[2] // 2, 2, x.shape[3] // 2, 2)


def _max_pool_gradient(x: Array, g: Array) -> Array:
    chosen = _squares(x) == max_pool(x)[:, :, :, None, :, None]
    return (chosen * g[:, :, :, None, :, None]).reshape(x.shape)


def cnn_loss(parameters: Sequence[Array], x: Array, target: Array) -> Gradients:
    """Two convolutions with poolings, a linear layer and a cross-entropy."""
    w1, b1, w2, b2, w3, b3 = parameters
    y1 = convolution(x, w1, b1)
    z1 = max_pool(y1)
    y2 = convolution(z1, w2, b2)
    z2 = max_pool(y2)
    flat = z2.reshape(len(x), -1)
    g = _softmax(flat @ w3 + b3)
    rows = np.arange(len(target))
    loss = -np.log(g[rows, target]).mean()
    g[rows, target] -= 1
    g, dw3, db3 = _linear_gradient(flat, w3, g / len(target))
    dz1, dw2, db2 = convolution_gradient(z1, w2, b2, _max_pool_gradient(y2, g.reshape(z2.shape)))
    _, dw1, db1 = convolution_gradient(x, w1, b1, _max_pool_gradient(y1, dz1))
    return loss, [dw1, db1, dw2, db2, dw3, db3]


def rnn_loss(parameters: Sequence[Array], x: Array, target: Array) -> Gradients:
    """Steps of a recurrent network, and a mean square of the last state."""
    w_in, w, b = parameters
    states = [np.zeros((x.shape[1], w.shape[0]), x.dtype)]
    for now in x:
        states.append(np.tanh(now @ w_in + states[-1] @ w + b))
    loss, g = _mean_square(states[-1], target)
    dw_in, dw, db = np.zeros_like(w_in), np.zeros_like(w), np.zeros_like(b)
    for now, before, after in zip(x[::-1], states[-2::-1], states[:0:-1], strict=True):
        g = g * (1 - after * after)
        dw_in += now.T @ g
        dw += before.T @ g
        db += g.sum(0)
        g = g @ w.T
    return loss, [dw_in, dw, db]
