"""The operators of the exercise, by formulas in float64, and the mistakes that people make with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from ...asks import primitives as asks
from ...asks.ask import Ask
from ...asks.plain import Array
from ..golf import Golf, played
from ..samples import unforeseen
from ..task import Task, Verdict, cases_with
from .written import Formula, Written, unlike, written

Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]
Cases = list[tuple[str, Any]]

GRADIENTS = "gradients"
KERNEL = "one kernel"


def near(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers on both sides of zero."""
    return random.uniform(-5, 5, shape).astype(np.float32).astype(np.float64)


def beyond(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers at which exponentials overflow, vanish, and vanish beside 1, or lose digits there."""
    ends = random.choice([-1000.0, -90.0, -30.0, -20.0, 30.0, 90.0, 1000.0], shape)
    between = random.uniform(5, 30, shape) * random.choice([-1.0, 1.0], shape)
    return np.where(random.random(shape) < 0.5, ends, between.astype(np.float32).astype(np.float64))


def both(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers of both kinds."""
    return np.where(random.random(shape) < 0.5, near(random, shape), beyond(random, shape))


@dataclass(frozen=True)
class Operator:
    """An operator that is asked for.

    Attributes:
        value: its formula.
        gradient: of the sum of its values, by the argument.
        draws: how the numbers of each part are drawn.
        hint: ``(x, found) -> the misconception`` behind wrong values, or "".
        slope, steep: the misconception behind wrong gradients that are numbers, and behind NaN.
        relative, absolute: tolerances.
        sloped: the parts in which gradients are looked at as well.
    """

    value: Formula
    gradient: Formula
    draws: Mapping[str, Draw]
    hint: Callable[[Array, Array], str]
    slope: str = ""
    steep: str = ""
    relative: float = 1e-4
    absolute: float = 1e-7
    sloped: tuple[str, ...] = (GRADIENTS,)

    def wrong(self, case: tuple[str, Any], answer: Any) -> str | None:
        """Why a graph is wrong; None if it is right."""
        part, shape = case
        found = written(answer)
        if isinstance(found, str):
            return found
        x = self.draws[part](unforeseen(), tuple(shape))
        values, slopes = found.run(x)
        right = self.value(x)
        if reason := unlike(values, right, x, "the value", self.relative, self.absolute):
            why = self.hint(x, values) if values.shape == right.shape else ""
            return f"{reason}{why and '; ' + why}{found.listing}"
        if part == KERNEL and found.kernels != 1:
            return f"{found.kernels} kernels, and one can do it: look for values that rows share{found.listing}"
        if part not in self.sloped:
            return None
        if reason := unlike(slopes, self.gradient(x), x, "the gradient", 10 * self.relative, 100 * self.absolute):
            why = self.steep or found.indeterminate if np.isnan(slopes).any() else self.slope
            return f"{reason}{why and '; ' + why}{found.listing}"
        return None


def _task(
    ask: Ask, parts: Mapping[str, int], operator: Operator, shapes: Callable[[Random], list[tuple[int, ...]]]
) -> Task:
    def make(seed: int) -> Cases:
        random = Random(seed)
        return [(part, list(shape)) for part in parts for shape in shapes(random)]

    return Task(ask, parts, make, cases_with(parts, operator.wrong, with_part=True, about=_about))


def _about(case: tuple[str, Any]) -> str:
    return f"x of shape {case[1]}"


def _lists(random: Random) -> list[tuple[int, ...]]:
    return [(random.randint(20, 40),), (random.randint(20, 40),)]


# --- hard_swish -------------------------------------------------------------------------------------------------


def _hard_swish(x: Array) -> Array:
    found: Array = x * np.clip(x + 3, 0, 6) / 6
    return found


def _hard_hint(x: Array, found: Array) -> str:
    if np.allclose(found, x * np.clip(x + 3, 0, 6), atol=1e-4):
        return "it is six times too large"
    if np.allclose(found, np.clip(x + 3, 0, 6) / 6, atol=1e-4):
        return "that is the factor: multiply it by x"
    if np.allclose(found, x * np.maximum(x + 3, 0) / 6, atol=1e-4):
        return "above 3 the factor stays 1: min(a, b) is -maximum(-a, -b), or a where a < b"
    return ""


HARD_SWISH = {"right numbers": 9, GRADIENTS: 6}
hard_swish = _task(
    asks.hard_swish,
    HARD_SWISH,
    Operator(
        _hard_swish,
        lambda x: np.where(x < -3, 0, np.where(x > 3, 1, (2 * x + 3) / 6)),
        {"right numbers": near, GRADIENTS: near},
        _hard_hint,
        "it is 0 below -3 and 1 above 3",
        absolute=1e-5,
    ),
    _lists,
)

# --- asinh ------------------------------------------------------------------------------------------------------


def _asinh_hint(x: Array, found: Array) -> str:
    off = np.abs(found - np.arcsinh(x)) > 1e-4 * np.abs(np.arcsinh(x))
    if np.all(x[off] < -5):
        return (
            "far below zero x and the root cancel: asinh(-x) is -asinh(x), so let the logarithm see the absolute "
            "value, and turn the sign round afterwards"
        )
    if np.all(np.abs(x[off]) < 0.1):
        return (
            "1 + 1e-6 keeps few digits of 1e-6, and its logarithm no more: log1p(t) is log(1 + t) without that sum, "
            "and sqrt(a * a + 1) - 1 is a * a / (1 + sqrt(a * a + 1)) without a difference"
        )
    return ""


def tiny(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers near zero, on both sides."""
    found: Array = 10 ** random.uniform(-6, -2, shape) * random.choice([-1.0, 1.0], shape)
    return found.astype(np.float32).astype(np.float64)


ASINH = {"right numbers": 4, "far from zero": 4, "near zero": 4, GRADIENTS: 3}
asinh = _task(
    asks.asinh,
    ASINH,
    Operator(
        np.arcsinh,
        lambda x: 1 / np.sqrt(1 + x * x),
        {"right numbers": near, "far from zero": beyond, "near zero": tiny, GRADIENTS: both},
        _asinh_hint,
        absolute=1e-30,
    ),
    _lists,
)

# --- layer_norm -------------------------------------------------------------------------------------------------

SMALL = 1e-5  # added to the variance


def _layer_norm(x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    found: Array = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + SMALL)
    return found


def _norm_hint(x: Array, found: Array) -> str:
    flat = x.var(-1) < 1e-3
    if flat.any() and np.allclose(found[~flat], _layer_norm(x)[~flat], atol=1e-3):
        return "1e-5 is added to the variance, before the root: without it a row of equal numbers is divided by 0"
    if np.abs(x).min() > 500:
        return (
            "far from zero the mean of squares and the square of the mean agree in all their digits: "
            "take the mean of the squared differences"
        )
    if x.shape[0] == x.shape[1]:
        spread = x - x.mean(-1)
        if np.allclose(found, spread / np.sqrt((spread * spread).mean(-1) + SMALL), atol=1e-3) or np.allclose(
            found, spread / np.sqrt(x.var(-1) + SMALL), atol=1e-3
        ):
            return "each column has the mean of a row: a mean of shape [n] is aligned on the right. Keep the dimension"
    return ""


def _far(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(1000 + random.integers(-8, 9, shape) / 8.0)


def _some_flat(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A row of equal numbers, a row of small ones, and others."""
    x = near(random, shape)
    x[0] = 1
    x[1] /= 1024
    return x


LAYER_NORM = {"square matrices": 5, "other matrices": 5, "far from zero": 5, KERNEL: 5}


def _norm_cases(seed: int) -> Cases:
    random = Random(seed)
    n = random.randint(4, 7)
    return [
        ("square matrices", [n, n]),
        ("other matrices", [n, n + random.randint(1, 4)]),
        ("other matrices", [n + random.randint(1, 4), n]),
        ("far from zero", [5, 8]),
        (KERNEL, [16, 32]),
    ]


_NORM = Operator(
    _layer_norm,
    _layer_norm,
    {"square matrices": near, "other matrices": _some_flat, "far from zero": _far, KERNEL: near},
    _norm_hint,
    relative=1e-3,
    absolute=1e-4,
)
layer_norm = Task(
    asks.layer_norm,
    LAYER_NORM,
    _norm_cases,
    cases_with(LAYER_NORM, _NORM.wrong, with_part=True, about=_about),
)

# --- lengths ----------------------------------------------------------------------------------------------------


def _lengths(x: Array) -> Array:
    found: Array = np.sqrt((x * x).sum(-1))
    return found


def _directions(x: Array) -> Array:
    length = _lengths(x)[:, None]
    return np.divide(x, length, out=np.zeros_like(x), where=length > 0)


def _some_zero(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    x = near(random, shape)
    x[1] /= 1 << 30
    x[:: max(2, len(x) - 1)] = 0
    return x


def _length_hint(x: Array, found: Array) -> str:
    if np.allclose(found, (x * x).sum(-1), rtol=1e-4):
        return "that is the square of the length"
    if np.any((_lengths(x) == 0) & (found != 0)):
        return "the length of a row of zeros is 0, and nothing else, however small"
    return ""


LENGTHS = {"right numbers": 4, GRADIENTS: 4, "rows of zeros": 12}
_LENGTH = Operator(
    _lengths,
    _directions,
    {"right numbers": near, GRADIENTS: near, "rows of zeros": _some_zero},
    _length_hint,
    "the gradient of a length is the direction of the row",
    "`where` gives 0 to the branch that is not taken, and the root has an infinite gradient at 0: 0 times infinity. "
    "Let the root see another number there",
    absolute=0.0,
    sloped=(GRADIENTS, "rows of zeros"),
)
lengths = _task(
    asks.lengths, LENGTHS, _LENGTH, lambda random: [(random.randint(4, 8), random.randint(2, 5)) for _ in range(2)]
)

# --- mish -------------------------------------------------------------------------------------------------------


def _ratio(x: Array) -> Array:
    """tanh(softplus(x))."""
    return np.tanh(np.logaddexp(0, x))


def _mish(x: Array) -> Array:
    return x * _ratio(x)


def _mish_slope(x: Array) -> Array:
    found: Array = _ratio(x) + x * (1 - _ratio(x) ** 2) * np.exp(-np.logaddexp(0, -x))
    return found


def _mish_hint(x: Array, found: Array) -> str:
    if not np.isfinite(found).all():
        return "exp(1000) is infinite, and infinity over infinity is NaN: let the exponential see no large number"
    if np.any((found == 0) & (np.abs(_mish(x)) > 1e-12)):
        return "all digits are lost: 1 + exp(-20) is 1 in float32, so keep exp(x) itself where x is below zero"
    return ""


MISH = {"right numbers": 6, "far from zero": 6, GRADIENTS: 6, "few primitives": 12}

# Best: less, where, exp, log1p, tanh, mul. Par: the stable softplus, then tanh and mul.
FEWEST = Golf("primitives", start=12, par=8, best=6)

_MISH = Operator(
    _mish,
    _mish_slope,
    {"right numbers": near, "far from zero": beyond, GRADIENTS: both, "few primitives": both},
    _mish_hint,
    absolute=1e-11,
)


def _mish_cases(seed: int) -> Cases:
    random = Random(seed)
    return [*((part, list(shape)) for part in list(MISH)[:3] for shape in _lists(random)), ("few primitives", [32])]


def _judge_mish(cases: Cases, answers: Any) -> Mapping[str, Verdict]:
    said = cases_with(MISH, _MISH.wrong, with_part=True, about=_about)(cases, answers)
    last = written(answers[-1])
    counts = [last.primitives] if isinstance(last, Written) else []
    return played(said, "few primitives", FEWEST, counts, after=["right numbers", "far from zero", GRADIENTS])


mish = Task(asks.mish, MISH, _mish_cases, _judge_mish)
