"""A layer and its normalization as one layer: the right formulas, and wrong ones that people write.

The wrong ones name the misconception behind an answer of `fold_layer`, and are what the data of `convincing` has to
find (mutation testing: DeMillo, Lipton and Sayward, "Hints on test data selection", 1978).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...harness import inference as harness
from ...harness.plain import Array, Value, described
from ..compare import wrong_array
from ..reasons import Wrong, expect, hint
from ..task import Task


class Layer(NamedTuple):
    """A layer with weights [outputs, inputs, ...], and the normalization after it."""

    weight: Array
    bias: Array | None
    gamma: Array
    beta: Array
    mean: Array
    variance: Array
    eps: float

    @property
    def old(self) -> Array:
        """The bias; zeros if there is none."""
        return np.zeros(len(self.weight)) if self.bias is None else self.bias

    @property
    def deviation(self) -> Array:
        """The number that each channel is divided by."""
        return np.sqrt(self.variance + self.eps)


def scaled(weight: Array, scale: Array) -> Array:
    """Weights times a scale for each output."""
    return weight * scale.reshape(-1, *(1,) * (weight.ndim - 1))


def with_scale(layer: Layer, scale: Array) -> tuple[Array, Array]:
    """The layer that one and its normalization are, if the scale is this one."""
    return scaled(layer.weight, scale), scale * (layer.old - layer.mean) + layer.beta


def folded(layer: Layer) -> tuple[Array, Array]:
    """The weights and the bias of the layer that one and its normalization are."""
    return with_scale(layer, layer.gamma / layer.deviation)


def _columns(layer: Layer) -> tuple[Array, Array]:
    weight, scale = layer.weight, layer.gamma / layer.deviation
    is_square = weight.shape[0] == weight.shape[1]
    return (scaled(weight.swapaxes(0, 1), scale).swapaxes(0, 1) if is_square else weight), folded(layer)[1]


def _with(**changes: Callable[[Layer], Any]) -> Callable[[Layer], tuple[Array, Array]]:
    return lambda layer: folded(layer._replace(**{name: change(layer) for name, change in changes.items()}))


def _bias(change: Callable[[Layer, Array], Array]) -> Callable[[Layer], tuple[Array, Array]]:
    """The right weights, and another bias, of the layer and its scale."""
    return lambda layer: (folded(layer)[0], change(layer, layer.gamma / layer.deviation))


# Of each part what a wrong fold does, and the fold.
MUTANTS: Mapping[str, Mapping[str, Callable[[Layer], tuple[Array, Array]]]] = {
    "what is forgotten": {
        "only deletes the normalization": lambda layer: (layer.weight, layer.old),
        "forgets gamma": _with(gamma=lambda layer: np.ones_like(layer.gamma)),
        "forgets beta": _with(beta=lambda layer: 0 * layer.beta),
        "forgets the mean": _with(mean=lambda layer: 0 * layer.mean),
        "forgets the variance": lambda layer: with_scale(layer, layer.gamma),
        "forgets the old bias": _with(bias=lambda layer: None),
    },
    "what is not scaled": {
        "divides by the variance, not by its root": lambda layer: with_scale(layer, layer.gamma / layer.deviation**2),
        "does not scale the old bias": _bias(lambda layer, s: layer.old - s * layer.mean + layer.beta),
        "does not scale the mean": _bias(lambda layer, s: s * layer.old - layer.mean + layer.beta),
        "scales beta, too": _bias(lambda layer, s: s * (layer.old - layer.mean + layer.beta)),
        "adds the mean": _bias(lambda layer, s: s * (layer.old + layer.mean) + layer.beta),
    },
    "the wrong channel": {
        "scales the inputs of the layer, not its outputs": _columns,
        "takes the scale of the first channel for all": lambda layer: with_scale(
            layer, np.full_like(layer.gamma, (layer.gamma / layer.deviation)[0])
        ),
        "takes the betas in the opposite order": _with(beta=lambda layer: layer.beta[::-1]),
    },
    "what is rarely seen": {
        "takes gamma for positive": _with(gamma=lambda layer: np.abs(layer.gamma)),
        "forgets eps": _with(eps=lambda layer: 0.0),
    },
}

# fold_layer ---------------------------------------------------------------------------------------------------------

FOLD_LAYER = {"a linear layer": 5, "a convolution": 5, "without a bias": 5}
SHAPES = {"a linear layer": ((3, 3), (4, 2)), "a convolution": ((3, 3, 3, 3), (2, 1, 5)), "without a bias": ((3, 3),)}
CLOSE = 1e-9


def random_layer(draw: np.random.Generator, shape: tuple[int, ...], has_bias: bool = True) -> Layer:
    """A layer with weights of this shape, whose statistics are nothing special."""
    bias, gamma, beta, mean = draw.normal(size=(4, shape[0])).round(3)
    variance = draw.uniform(0.05, 3, shape[0]).round(3)
    return Layer(draw.normal(size=shape).round(3), bias if has_bias else None, gamma, beta, mean, variance, 0.01)


def _layers(draw: np.random.Generator) -> list[Any]:
    cases = [(part, shape) for part, shapes in SHAPES.items() for shape in shapes]
    return [(part, tuple(random_layer(draw, shape, part != "without a bias"))) for part, shape in cases]


def _wrong_layer(part: str, arguments: Any, answer: Any) -> str | None:
    expect(answer, tuple[Value, Value], "a pair of arrays", "the weights and the bias")
    layer = Layer(*arguments)

    def differs(right: tuple[Array, Array]) -> str | None:
        for name, given, wanted in zip(("weights", "bias"), answer, right, strict=True):
            if said := wrong_array(given, wanted, CLOSE):
                return f"the {name}: {said}"
        return None

    said = differs(folded(layer))
    if said is None:
        return None
    with np.errstate(all="ignore"):
        found = (name for mutants in MUTANTS.values() for name, mutant in mutants.items() if not differs(mutant(layer)))
        return next((f"it {name}; {said}" for name in found), said)


fold_layer = Task(harness.fold_layer, FOLD_LAYER, _layers, _wrong_layer, draws=np.random.default_rng)

# convincing ---------------------------------------------------------------------------------------------------------

CONVINCING = {"what is forgotten": 5, "what is not scaled": 5, "the wrong channel": 3, "what is rarely seen": 2}
SEEN, LARGEST = 1e-3, 100.0
FORM = {"weight": (2, 2), "x": (2,)} | dict.fromkeys(("bias", "gamma", "beta", "mean", "variance"), (2,))


def _data(answer: Any) -> dict[str, Array]:
    """The arrays of an answer."""
    expect(answer, dict, f"a dict with {', '.join(FORM)}")
    found: dict[str, Array] = {}
    for name, shape in FORM.items():
        try:
            found[name] = np.array(answer.get(name), np.float64)
        except (TypeError, ValueError):
            raise Wrong(f"{name} has to be a list of numbers, and it is {described(answer[name])}") from None
        if found[name].shape != shape:
            raise Wrong(f"{name} has the shape {list(found[name].shape)} and should have {list(shape)}")
        if not (np.abs(found[name]) <= LARGEST).all():
            raise Wrong(f"{name} has a number that is not between -{LARGEST:g} and {LARGEST:g}")
    if (found["variance"] < 0).any():
        raise Wrong("the variance is negative")
    return found


def _survivor(part: str, case: tuple[float], answer: Any) -> str | None:
    (eps,) = case
    data = _data(answer)
    x = data.pop("x")
    layer = Layer(**data, eps=eps)

    def result(weight: Array, bias: Array) -> Array:
        return np.asarray(weight @ x + bias)

    right = result(*folded(layer))
    with np.errstate(all="ignore"):
        for name, mutant in MUTANTS[part].items():
            if np.abs(result(*mutant(layer)) - right).max() <= SEEN:  # infinity and NaN are seen
                return f"a fold that {name} goes unnoticed: no result differs by more than {SEEN:g}"
    return None


def _numbers_of(draw: np.random.Generator) -> list[Any]:
    eps = round(0.01 * (1 + draw.random()), 4)
    return [(part, (eps,)) for part in CONVINCING]


convincing = Task(harness.convincing, CONVINCING, _numbers_of, _survivor, draws=np.random.default_rng)

# error_bound: no measured error exceeds it, and it is not much too large -------------------------------------------

ERROR_BOUND = {"random numbers": 6, "terms that cancel": 7, "a long sum": 7}
U = 2.0**-24  # the unit roundoff of float32
STEPS, FOLDING = 5, 3  # after the sum: bias, mean, deviation, gamma, beta; of the folded weights
# Times the bound of the notebook; more of LOOSE, and less of TIGHT, forgives other ways to count roundings.
LOOSE, TIGHT = 3.0, 0.85


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


def _layer_and_input(draw: np.random.Generator, part: str) -> tuple[Any, ...]:
    if part == "a long sum":  # a large number first: from the front, each small one is rounded away
        x = np.full(4096, 0.9 * U)
        x[0] = 1.0
        layer = random_layer(draw, (2, len(x)))
        zero = np.zeros(2)
        return *layer._replace(weight=np.ones((2, len(x))), bias=zero, mean=zero, beta=zero), x
    layer = random_layer(draw, (3, 40))
    x = draw.normal(size=40).round(3)
    if part == "random numbers":  # each term is a good share of all, and of both signs
        shift = np.array([12.3, -15.7, 18.9])
        layer = layer._replace(gamma=shift / 10, bias=shift, mean=-shift, beta=-shift)
    if part == "terms that cancel":  # in the sum, and in the shift
        half = layer.weight[:, :20]
        x[20:] = -x[:20]
        large = np.array([3000.3, -5000.7, 7000.9])
        layer = layer._replace(weight=np.hstack([1000 * half, 1000 * half]), bias=large, mean=large)
    return *layer, x


def _sums(draw: np.random.Generator) -> list[Any]:
    return [(part, _layer_and_input(draw, part)) for part in ERROR_BOUND]


HINTS = {
    "random numbers": "each of the two programs may be off by as much",
    "terms that cancel": "the error is a share of the terms, not of their sum: take absolute values first",
    "a long sum": "each of the k additions may round, so the bound grows with k",
}


def _wrong_bound(part: str, arguments: Any, answer: Any) -> str | None:
    layer, x = Layer(*arguments[:7]), arguments[7]
    try:
        given = np.asarray(answer.array, np.float64)
    except (AttributeError, TypeError, ValueError):
        return f"an array of bounds was expected, and it is {described(answer)}"
    if given.shape != (len(layer.weight),):
        return f"one number for each of {len(layer.weight)} outputs was expected; its shape is {list(given.shape)}"
    allowed, found = derived(layer, x), measured(layer, x)
    if part == "random numbers" and not (given >= TIGHT * allowed).all():
        at = int(np.argmin(given - TIGHT * allowed))
        said = f"the bound of output {at} is {given[at]:.3g}, which is too small: {allowed[at]:.3g} can be shown"
        return said + hint(np.allclose(2 * given, allowed, 0.1, 0), HINTS["random numbers"])
    at = int(np.argmax(np.where(np.isnan(given), np.inf, found - given)))
    if not (given >= found).all():
        return f"output {at} is off by {found[at]:.3g}, and the bound is {given[at]:.3g}: {HINTS[part]}"
    if not (given <= LOOSE * allowed).all():
        at = int(np.argmax(given - LOOSE * allowed))
        return f"the bound of output {at} is {given[at]:.3g}, which is too large: {allowed[at]:.3g} can be shown"
    return None


error_bound = Task(harness.error_bound, ERROR_BOUND, _sums, _wrong_bound, draws=np.random.default_rng)
