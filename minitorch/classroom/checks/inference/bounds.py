"""A bound of the rounding error of folding: no measured error exceeds it, and it is not much too large."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...asks import inference as asks
from ...asks.plain import Array, described
from ..task import by_case
from .layers import Layer, folded, random_layer

ERROR_BOUND = {"random numbers": 6, "terms that cancel": 7, "a long sum": 7}
U = 2.0**-24  # the unit roundoff of float32
STEPS, FOLDING = 5, 3  # after the sum: bias, mean, deviation, gamma, beta; of the folded weights
LOOSE = 3.0  # times the bound of the notebook; more of it forgives other ways to count roundings


def derived(layer: Layer, x: Array) -> Array:
    """The bound of notebook 12, section 6, for each output of a linear layer."""
    scale = np.abs(layer.gamma / layer.deviation)
    roundings = (len(x) + STEPS + FOLDING) * U
    terms = scale * (np.abs(layer.weight) @ np.abs(x) + np.abs(layer.old) + np.abs(layer.mean)) + np.abs(layer.beta)
    return np.asarray(2 * roundings / (1 - roundings) * terms)


def measured(layer: Layer, x: Array) -> Array:
    """How far apart the two programs are in float32, one with its sum from the front, the other from the back."""

    def product(weight: Array, order: int) -> Array:
        total = np.zeros(len(weight), np.float32)
        for column, number in list(zip(weight.T.astype(np.float32), x.astype(np.float32), strict=True))[::order]:
            total += column * number
        return total

    weight, bias, gamma, beta, mean, variance = (np.asarray(each, np.float32) for each in layer[:6])
    before = (product(weight, 1) + bias - mean) / np.sqrt(variance + np.float32(layer.eps)) * gamma + beta
    new_weight, new_bias = folded(layer)
    after = product(new_weight, -1) + new_bias.astype(np.float32)
    return np.asarray(np.abs(before.astype(np.float64) - after))


def _made(draw: np.random.Generator, part: str) -> tuple[Any, ...]:
    if part == "a long sum":  # a large number first: from the front, each small one is rounded away
        x = np.full(4096, 0.9 * U)
        x[0] = 1.0
        layer = random_layer(draw, (2, len(x)))
        zero = np.zeros(2)
        return *layer._replace(weight=np.ones((2, len(x))), bias=zero, mean=zero, beta=zero), x
    layer = random_layer(draw, (3, 40))
    x = draw.normal(size=40).round(3)
    if part == "terms that cancel":  # in the sum, and in the shift
        half = layer.weight[:, :20]
        x[20:] = -x[:20]
        large = np.array([3000.3, -5000.7, 7000.9])
        layer = layer._replace(weight=np.hstack([1000 * half, 1000 * half]), bias=large, mean=large)
    return *layer, x


def _cases(seed: int) -> list[Any]:
    draw = np.random.default_rng(seed)
    return [(part, _made(draw, part)) for part in ERROR_BOUND]


HINTS = {
    "random numbers": "each of the two programs may be off by as much",
    "terms that cancel": "the error is a share of the terms, not of their sum: take absolute values first",
    "a long sum": "each of the k additions may round, so the bound grows with k",
}


def _wrong(part: str, arguments: Any, answer: Any) -> str | None:
    layer, x = Layer(*arguments[:7]), arguments[7]
    try:
        given = np.asarray(answer.array, np.float64)
    except (AttributeError, TypeError, ValueError):
        return f"an array of bounds was expected, and it is {described(answer)}"
    if given.shape != (len(layer.weight),):
        return f"one number for each of {len(layer.weight)} outputs was expected; its shape is {list(given.shape)}"
    allowed, found = derived(layer, x), measured(layer, x)
    at = int(np.argmax(np.where(np.isnan(given), np.inf, found - given)))
    if not (given >= found).all():
        return f"output {at} is off by {found[at]:.3g}, and the bound is {given[at]:.3g}: {HINTS[part]}"
    if not (given <= LOOSE * allowed).all():
        at = int(np.argmax(given - LOOSE * allowed))
        return f"the bound of output {at} is {given[at]:.3g}, which is too large: {allowed[at]:.3g} can be shown"
    return None


error_bound = by_case(asks.error_bound, ERROR_BOUND, _cases, _wrong)
