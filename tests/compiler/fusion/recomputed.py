"""Programs in which values are computed on the way to products, windows, sums and concatenations: named and random."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import minitorch as mt

F = mt.nn.functional
Shape = tuple[int, ...]
Parameters = Callable[..., mt.Tensor]

CHEAP = (
    lambda x: x * 1.5 + 0.5,
    F.relu,
    lambda x: mt.where(x > 0, x, x * 0.1),
    lambda x: x.abs() + x,
    lambda x: (x * x + 1) * x - 0.5,
)
EXPENSIVE = (mt.exp, F.gelu, mt.sigmoid, mt.tanh, lambda x: (x * x + 1).log(), F.silu, lambda x: x / (x.abs() + 1))
MOST_ELEMENTS = 1 << 18  # of a value; what would be larger is left out


def zeros_between(x: mt.Tensor) -> mt.Tensor:
    """An image with zeros between its elements, as a transposed convolution of stride 2 sees it."""
    batch, channels, height, width = x.shape
    x = F.pad(x.reshape(batch, channels, height, 1, width, 1), (0, 1, 0, 0, 0, 1))
    return x.reshape(batch, channels, 2 * height, 2 * width)


def normed(x: mt.Tensor, weight: mt.Tensor, bias: mt.Tensor) -> mt.Tensor:
    """The batch normalization of a batch by itself."""
    return F.batch_norm(x, None, None, weight, bias, training=True)


def pieces(x: mt.Tensor, w: mt.Tensor) -> mt.Tensor:
    """Thin pieces that are stacked before a convolution."""
    width = x.shape[-1]
    stacked = mt.stack([F.pad(x * 2 + 1, (0, s))[:, :, s : s + width] for s in range(8)], 1)
    return F.conv2d(stacked, w, padding=1)


def transposed(x: mt.Tensor, w: mt.Tensor, g: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
    """A transposed convolution behind batch normalization and ReLU."""
    return F.conv2d(F.pad(zeros_between(F.relu(normed(x, g, b))), (1, 2, 1, 2)), w)


def two_layers(x: mt.Tensor, w: mt.Tensor, g: mt.Tensor, b: mt.Tensor) -> list[mt.Tensor]:
    """The gradients of a convolution between batch normalizations."""
    w, g, b = (each.detach().requires_grad_() for each in (w, g, b))
    y = F.relu(normed(F.conv2d(F.relu(normed(x, g, b)), w, padding=1), g, b))
    y.square().mean().backward()
    return [w.grad, g.grad, b.grad]


def positions(x: mt.Tensor, w: mt.Tensor) -> mt.Tensor:
    """Sines and cosines of many frequencies, joined before a product."""
    joined = mt.cat([each(x * 2.0**power) for power in range(6) for each in (mt.sin, mt.cos)], -1)
    return F.relu(joined @ w)


def many_cheap(x: mt.Tensor, w: mt.Tensor) -> mt.Tensor:
    """A chain of cheap operations on a vector that all rows of a matrix are multiplied with."""
    for _ in range(12):
        x = x * 1.01 + 0.1
    return w @ x


def shifted_attention(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
    """The result of attention, read at several places."""
    y = F.softmax(q @ k.mT, -1) @ v
    return mt.stack([F.pad(y, (0, s))[..., s:] for s in range(4)]).tanh()


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Shape, ...]]] = {
    "pieces into a convolution": (pieces, ((2, 64, 264), (16, 8, 3, 3))),
    "transposed convolution": (transposed, ((2, 64, 16, 16), (32, 64, 4, 4), (64,), (64,))),
    "transposed convolution, one channel": (transposed, ((4, 64, 14, 14), (1, 64, 4, 4), (64,), (64,))),
    "depthwise convolution": (
        lambda x, w, g, b: F.conv2d(F.relu(normed(x, g, b)), w, padding=3, groups=16),
        ((4, 16, 32, 32), (16, 1, 7, 7), (16,), (16,)),
    ),
    "training step": (two_layers, ((4, 16, 32, 32), (16, 16, 3, 3), (16,), (16,))),
    "encoded positions": (positions, ((512, 3), (36, 64))),
    "a vector": (many_cheap, ((1024,), (512, 1024))),
    "mean of windows": (
        lambda x: F.pad(F.relu(x * 2 + 1) * x - 1, (2, 2, 2, 2)).unfold(2, 5, 1).unfold(3, 5, 1).mean((-1, -2)),
        ((2, 16, 32, 32),),
    ),
    "rotary embeddings": (
        lambda q, k, v, a: F.softmax(_rotated(q, a) @ _rotated(k, a).mT, -1) @ v,
        ((2, 4, 128, 64), (2, 4, 128, 64), (2, 4, 128, 64), (128, 32)),
    ),
    "attention at several places": (shifted_attention, ((4, 64, 32), (4, 64, 32), (4, 64, 32))),
}


def _rotated(x: mt.Tensor, angle: mt.Tensor) -> mt.Tensor:
    one, other = x.chunk(2, -1)
    return mt.cat([one * angle.cos() - other * angle.sin(), other * angle.cos() + one * angle.sin()], -1)


def _convolved(x: mt.Tensor, random: Random, p: Parameters) -> mt.Tensor:
    size, channels = random.choice([1, 3, 3, 5]), x.shape[1]
    groups = random.choice([1, 1, 1, channels])
    filters = channels if groups > 1 else random.choice([1, 4, 8, 16])
    if min(x.shape[2:]) < size:
        return x
    w, padding, stride = (
        p(filters, channels // groups, size, size),
        random.choice([0, size // 2]),
        random.choice([1, 2]),
    )
    return F.conv2d(x, w, padding=padding, stride=stride, groups=groups)


def _stacked(x: mt.Tensor, random: Random, p: Parameters) -> mt.Tensor:
    step, width = random.choice([1, 2]), x.shape[-1]
    parts = [F.pad(x, (0, n * step))[..., n * step : n * step + width] for n in range(random.choice([2, 4, 8]))]
    return mt.cat([random.choice(CHEAP + EXPENSIVE)(part) for part in parts] if random.random() < 0.5 else parts, 1)


def _windows(x: mt.Tensor, random: Random, p: Parameters) -> mt.Tensor:
    size = random.choice([2, 3, 5])
    if min(x.shape[2:]) < size:
        return x
    windows = x.unfold(2, size, 1).unfold(3, size, 1)
    return random.choice([windows.mean, windows.amax])((-1, -2))


def _scaled(x: mt.Tensor, random: Random, p: Parameters) -> mt.Tensor:
    return x * random.choice(CHEAP)(random.choice(CHEAP + EXPENSIVE)(p(x.shape[1], 1, 1))) + p(x.shape[-1])


def _gathered(x: mt.Tensor, random: Random, p: Parameters) -> mt.Tensor:
    width = x.shape[-1]
    return x[..., (mt.arange(random.choice([width, 2 * width])) * 3) % width]


def _attended(x: mt.Tensor, random: Random, p: Parameters) -> mt.Tensor:
    width, apply = x.shape[-1], random.choice(CHEAP)
    return F.softmax(apply(x @ p(width, 8)) @ (x @ p(width, 8)).mT, -1) @ apply(x)


def _pairs(x: mt.Tensor, random: Random, p: Parameters) -> mt.Tensor:
    y = x.mean((0, 1))
    return x * 0.5 + random.choice(EXPENSIVE)(-((y.mean(1)[:, None] - y.mean(0)[None, :]) ** 2))


STEPS: tuple[Callable[[mt.Tensor, Random, Parameters], mt.Tensor], ...] = (
    _convolved, _stacked, _windows, _scaled, _gathered, _attended, _pairs,
    lambda x, random, p: x @ p(x.shape[-1], random.choice([1, 8, 32, 640])),
    lambda x, random, p: normed(x, p(x.shape[1]), p(x.shape[1])),
    lambda x, random, p: F.layer_norm(x, x.shape[-1:], p(x.shape[-1]), p(x.shape[-1])),
    lambda x, random, p: F.softmax(x, random.choice([1, -1])),
    lambda x, random, p: mt.cat([x, random.choice(CHEAP + EXPENSIVE)(x)], 1),
    lambda x, random, p: x.transpose(2, 3),
    lambda x, random, p: random.choice(CHEAP)(random.choice(CHEAP)(x)),
    lambda x, random, p: random.choice(EXPENSIVE)(x),
    lambda x, random, p: random.choice(CHEAP + EXPENSIVE)(x) * random.choice(CHEAP + EXPENSIVE)(x),
    lambda x, random, p: x + x.mean(random.choice([1, -1]), keepdim=True),
    lambda x, random, p: zeros_between(x),
    lambda x, random, p: _convolved(zeros_between(x), random, p),
    lambda x, random, p: _convolved(_stacked(x, random, p), random, p),
)  # fmt: skip


def random_program(seed: int) -> tuple[Callable[..., Any], list[Shape]]:
    """Some steps after each other, or their gradients; and the shapes of the arguments."""
    random = Random(seed)
    shape = random.choice([1, 2, 4]), random.choice([1, 3, 8, 16]), *random.choices([4, 8, 16, 32], k=2)
    steps = [(random.choice(STEPS), random.randrange(1 << 30)) for _ in range(random.randint(3, 9))]
    is_gradient, shapes = random.random() < 0.3, [shape]

    def run(x: mt.Tensor, p: Parameters) -> mt.Tensor:
        for step, own in steps:
            y = step(x, Random(own), p)
            x = y if 0 < math.prod(y.shape) <= MOST_ELEMENTS else x
        return x

    def noted(*lengths: int) -> mt.Tensor:
        shapes.append(lengths)
        return mt.ones(*lengths)

    run(mt.ones(*shape), noted)

    def program(*arguments: mt.Tensor) -> Any:
        x, *rest = [each.detach().requires_grad_() for each in arguments] if is_gradient else arguments
        given: Iterator[mt.Tensor] = iter(rest)
        y = run(x, lambda *_: next(given))
        if not is_gradient:
            return y
        y.square().mean().backward()
        return [each.grad for each in (x, *rest) if each.grad is not None]

    return program, shapes
