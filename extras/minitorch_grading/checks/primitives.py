"""Exercise 10, operators from primitives: their values, their gradients, their kernels, and how many they take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from ..harness import Driver
from ..harness import primitives as harness
from ..harness.plain import Array
from .golf import Golf
from .machines.graphs import unlike, written
from .reasons import hint, recognised
from .samples import unforeseen
from .task import Cases, Task

Formula = Callable[[Array], Array]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]

RIGHT, FAR, GRADIENTS, KERNEL, FEW = "right numbers", "far from zero", "gradients", "one kernel", "few primitives"


def _signed(random: np.random.Generator, sizes: Array) -> Array:
    """Numbers on both sides of zero, which float32 has."""
    return np.asarray((sizes * random.choice([-1.0, 1.0], sizes.shape)).astype(np.float32).astype(np.float64))


def near(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw numbers on both sides of zero, none of which is nearly zero, where a formula loses digits."""
    return _signed(random, random.uniform(0.1, 5, shape))


def beyond(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers at which exponentials overflow, vanish, and vanish beside 1, or lose digits there."""
    ends = random.choice([-1000.0, -90.0, -30.0, -20.0, 30.0, 90.0, 1000.0], shape)
    return np.where(random.random(shape) < 0.5, ends, _signed(random, random.uniform(5, 30, shape)))


def both(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers of both kinds."""
    return np.where(random.random(shape) < 0.5, near(random, shape), beyond(random, shape))


@dataclass(frozen=True)
class Operator:
    """An operator that is asked for.

    Attributes:
        value: its formula.
        gradient: of the sum of its values, by the argument.
        hint: ``(x, found) -> the misconception`` behind wrong values, for the end of a reason.
        draws: how the numbers of a part are drawn where they are not `near` ones.
        slope, steep: the misconception behind wrong gradients that are numbers, and behind NaN.
        relative, absolute: tolerances.
        sloped: the parts in which gradients are looked at as well.
    """

    value: Formula
    gradient: Formula
    hint: Callable[[Array, Array], str]
    draws: Mapping[str, Draw] = field(default_factory=dict)
    slope: str = ""
    steep: str = ""
    relative: float = 1e-4
    absolute: float = 1e-7
    sloped: tuple[str, ...] = (GRADIENTS,)

    def wrong(self, part: str, shape: list[int], answer: Any) -> str | None:
        """Why a graph is wrong; None if it is right."""
        found = written(answer, shape)
        x = self.draws.get(part, near)(unforeseen(), tuple(shape))
        values, slopes = found.run(x)
        right = self.value(x)
        if reason := unlike(values, right, x, "the value", self.relative, self.absolute):
            return f"{reason}{self.hint(x, values) if values.shape == right.shape else ''}{found.listing}"
        if part == KERNEL and found.kernels != 1:
            return f"{found.kernels} kernels, and one can do it: look for values that rows share{found.listing}"
        if part not in self.sloped:
            return None
        if reason := unlike(slopes, self.gradient(x), x, "the gradient", 10 * self.relative, 100 * self.absolute):
            why = self.steep or found.indeterminate if np.isnan(slopes).any() else self.slope
            return f"{reason}{hint(why, why)}{found.listing}"
        return None


def _lists(parts: Iterable[str], random: Random) -> Cases:
    """Cases with lists of numbers, two for each part."""
    return [(part, [random.randint(20, 40)]) for part in parts for _ in range(2)]


def _task(
    driver: Driver,
    parts: Mapping[str, int],
    operator: Operator,
    cases: Callable[[Iterable[str], Random], Cases] = _lists,
    **more: Any,
) -> Task:
    about = "x of shape {}".format
    return Task(driver, parts, lambda random: cases(parts, random), operator.wrong, about=about, **more)


# --- hard_swish ---------------------------------------------------------------------------------------------------


def _hard_hint(x: Array, found: Array) -> str:
    factor = np.clip(x + 3, 0, 6)
    over = "above 3 the factor stays 1: min(a, b) is -maximum(-a, -b), or a where a < b"
    known = (
        ("it is six times too large", x * factor),
        ("that is the factor: multiply it by x", factor / 6),
        (over, x * np.maximum(x + 3, 0) / 6),
    )
    return recognised(known, lambda wrong: np.allclose(found, wrong, atol=1e-4))


_HARD_SWISH = Operator(
    lambda x: np.asarray(x * np.clip(x + 3, 0, 6) / 6),
    lambda x: np.where(x < -3, 0, np.where(x > 3, 1, (2 * x + 3) / 6)),
    _hard_hint,
    slope="it is 0 below -3 and 1 above 3",
    absolute=1e-5,
)
hard_swish = _task(harness.hard_swish, {RIGHT: 9, GRADIENTS: 6}, _HARD_SWISH)

# --- asinh --------------------------------------------------------------------------------------------------------

NEAR_ZERO = "near zero"


def tiny(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers near zero, on both sides."""
    return _signed(random, 10 ** random.uniform(-6, -2, shape))


def _asinh_hint(x: Array, found: Array) -> str:
    off = x[np.abs(found - np.arcsinh(x)) > 1e-4 * np.abs(np.arcsinh(x))]
    return hint(
        np.all(off < -5),
        "far below zero x and the root cancel: asinh(-x) is -asinh(x), so let the logarithm see the absolute "
        "value, and turn the sign round afterwards",
        np.all(np.abs(off) < 0.1),
        "1 + 1e-6 keeps few digits of 1e-6, and its logarithm no more: log1p(t) is log(1 + t) without that sum, "
        "and sqrt(a * a + 1) - 1 is a * a / (1 + sqrt(a * a + 1)) without a difference",
    )


_ASINH = Operator(
    np.arcsinh,
    lambda x: 1 / np.sqrt(1 + x * x),
    _asinh_hint,
    {FAR: beyond, NEAR_ZERO: tiny, GRADIENTS: both},
    absolute=1e-30,
)
asinh = _task(harness.asinh, {RIGHT: 4, FAR: 4, NEAR_ZERO: 4, GRADIENTS: 3}, _ASINH)

# --- layer_norm ---------------------------------------------------------------------------------------------------

SQUARE, OTHER = "square matrices", "other matrices"
EPSILON = 1e-5  # added to the variance


def _layer_norm(x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + EPSILON))


def _norm_hint(x: Array, found: Array) -> str:
    flat = x.var(-1) < 1e-3
    square = x.shape[0] == x.shape[1]
    spread = x - x.mean(-1, keepdims=not square)
    variances = (spread * spread).mean(-1), x.var(-1)
    return hint(
        flat.any() and np.allclose(found[~flat], _layer_norm(x)[~flat], atol=1e-3),
        "1e-5 is added to the variance, before the root: without it a row of equal numbers is divided by 0",
        np.abs(x).min() > 500,
        "far from zero the mean of squares and the square of the mean agree in all their digits: "
        "take the mean of the squared differences",
        square and any(np.allclose(found, spread / np.sqrt(each + EPSILON), atol=1e-3) for each in variances),
        "each column has the mean of a row: a mean of shape [n] is aligned on the right. Keep the dimension",
    )


def _far(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(1000 + random.integers(-8, 9, shape) / 8.0)


def _some_flat(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A row of equal numbers, a row of small ones, and others."""
    x = near(random, shape)
    x[0] = 1
    x[1] /= 1024
    return x


def _matrices(_: Iterable[str], random: Random) -> Cases:
    n = random.randint(4, 7)
    wide, high = [n, n + random.randint(1, 4)], [n + random.randint(1, 4), n]
    return [(SQUARE, [n, n]), (OTHER, wide), (OTHER, high), (FAR, [5, 8]), (KERNEL, [16, 32])]


_NORM = Operator(_layer_norm, _layer_norm, _norm_hint, {OTHER: _some_flat, FAR: _far}, relative=1e-3, absolute=1e-4)
layer_norm = _task(harness.layer_norm, {SQUARE: 5, OTHER: 5, FAR: 5, KERNEL: 5}, _NORM, _matrices)

# --- lengths ------------------------------------------------------------------------------------------------------

ZEROS = "rows of zeros"


def _lengths(x: Array) -> Array:
    return np.asarray(np.sqrt((x * x).sum(-1)))


def _directions(x: Array) -> Array:
    length = _lengths(x)[:, None]
    return np.divide(x, length, out=np.zeros_like(x), where=length > 0)


def _some_zero(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    x = near(random, shape)
    x[1] /= 1 << 30
    x[:: max(2, len(x) - 1)] = 0
    return x


def _length_hint(x: Array, found: Array) -> str:
    return hint(
        np.allclose(found, (x * x).sum(-1), rtol=1e-4),
        "that is the square of the length",
        np.any((_lengths(x) == 0) & (found != 0)),
        "the length of a row of zeros is 0, and nothing else, however small",
    )


def _rows(parts: Iterable[str], random: Random) -> Cases:
    return [(part, [random.randint(4, 8), random.randint(2, 5)]) for part in parts for _ in range(2)]


_LENGTH = Operator(
    _lengths,
    _directions,
    _length_hint,
    {ZEROS: _some_zero},
    "the gradient of a length is the direction of the row",
    "`where` gives 0 to the branch that is not taken, and the root has an infinite gradient at 0: 0 times infinity. "
    "Let the root see another number there",
    absolute=0.0,
    sloped=(GRADIENTS, ZEROS),
)
lengths = _task(harness.lengths, {RIGHT: 4, GRADIENTS: 4, ZEROS: 12}, _LENGTH, _rows)

# --- mish ---------------------------------------------------------------------------------------------------------

# Best: less, where, exp, log1p, tanh, mul. Par: the stable softplus, then tanh and mul.
FEWEST = Golf("primitives", start=12, par=8, best=6)


def _ratio(x: Array) -> Array:
    """tanh(softplus(x))."""
    return np.tanh(np.logaddexp(0, x))


def _mish_slope(x: Array) -> Array:
    return np.asarray(_ratio(x) + x * (1 - _ratio(x) ** 2) * np.exp(-np.logaddexp(0, -x)))


def _mish_hint(x: Array, found: Array) -> str:
    return hint(
        not np.isfinite(found).all(),
        "exp(1000) is infinite, and infinity over infinity is NaN: let the exponential see no large number",
        np.any((found == 0) & (np.abs(x * _ratio(x)) > 1e-12)),
        "all digits are lost: 1 + exp(-20) is 1 in float32, so keep exp(x) itself where x is below zero",
    )


_MISH = Operator(
    lambda x: x * _ratio(x), _mish_slope, _mish_hint, {FAR: beyond, GRADIENTS: both, FEW: both}, absolute=1e-11
)
mish = _task(
    harness.mish,
    {RIGHT: 6, FAR: 6, GRADIENTS: 6, FEW: 12},
    _MISH,
    lambda parts, random: [*_lists((RIGHT, FAR, GRADIENTS), random), (FEW, [32])],
    golf={FEW: FEWEST},
    count=lambda part, shape, answer: written(answer, shape).primitives,
)

TASKS = (hard_swish, asinh, layer_norm, lengths, mish)
