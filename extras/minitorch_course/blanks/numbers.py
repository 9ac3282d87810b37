"""The blanks of notebook 13: the bits of a float, a scale and a zero point, channels that are made equal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

import minitorch as mt

from ..blanking import Blank, Case

FORMATS = {np.float16: (5, 10), ml_dtypes.bfloat16: (8, 7), ml_dtypes.float8_e5m2: (5, 2)}  # exponent, fraction


def value(sign: Any, exponent: Any, fraction: Any, exponent_bits: Any, fraction_bits: Any) -> Any:
    """Return the number that the three fields of a float stand for."""
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 0:
        return (-1) ** sign * 2.0 ** (1 - bias) * fraction / 2**fraction_bits
    return (-1) ** sign * 2.0 ** (exponent - bias) * (1 + fraction / 2**fraction_bits)


def _fields() -> Iterable[Case]:
    yield "For 0 01101 0101010101, a float16", np.float16, [0x3555]
    yield "For 1 00000 0000000011, a float16", np.float16, [0x8003]
    yield "For 0 01111111 0000000, a bfloat16", ml_dtypes.bfloat16, [0x3F80]
    for kind, (exponent_bits, fraction_bits) in FORMATS.items():
        finite, sign = (2**exponent_bits - 1) << fraction_bits, 1 << (exponent_bits + fraction_bits)
        yield f"Of many patterns of {kind.__name__}", kind, [*range(finite), *range(sign, sign + finite)][::7]


def _values(function: Any, kind: Any, patterns: list[int]) -> Any:
    """The numbers of patterns, of a function that is given their fields."""
    exponent_bits, fraction_bits = FORMATS[kind]
    found = []
    for pattern in patterns:
        sign, rest = divmod(pattern, 2 ** (exponent_bits + fraction_bits))
        found.append(function(sign, *divmod(rest, 2**fraction_bits), exponent_bits, fraction_bits))
    return found[0] if len(found) == 1 else np.array(found, np.float64)


def affine(low: Any, high: Any) -> Any:
    """Return the scale and the zero point that map the numbers from low to high, and 0, to 0 ... 255."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / 255
    zero_point = round(-low / scale)
    return scale, zero_point


def _ranges() -> Iterable[Case]:
    yield "From -1 to 4.1", -1.0, 4.1
    yield "From -2 to 1", -2.0, 1.0
    yield "From 2 to 6", 2.0, 6.0
    yield "From -3 to -1", -3.0, -1.0


def equalise(weight: Any, bias: Any, following: Any, largest: Any) -> Any:
    """Return the three parameters, so that the largest number of each channel between the two layers is 1."""
    weight = weight / largest
    bias = bias / largest
    following = following * largest.reshape(-1, 1, 1)
    return weight, bias, following


def _layers() -> Iterable[Case]:
    draw = np.random.default_rng(13)
    weight, bias, largest = (mt.from_numpy(draw.uniform(0.5, 2, 4).astype(np.float32)) for _ in range(3))
    yield "For four channels", weight, bias, mt.from_numpy(draw.standard_normal((4, 4, 3, 3), np.float32)), largest


BLANKS = {
    "value": Blank(
        value,
        _fields,
        {
            "Where the exponent is 0, no 1 is added to the fraction.": {"if exponent == 0": "if False"},
            "Where the exponent is 0, the power is 1 - bias, and not -bias.": {"(1 - bias)": "-bias"},
        },
        ask=_values,
        close=0,
    ),
    "affine": Blank(
        affine,
        _ranges,
        {
            "0 has to be in the range: low is at most 0 and high is at least 0.": {
                "min(low, 0.0), max(high, 0.0)": "low, high"
            },
            "From 0 to 255 there are 255 steps, and not 256.": {"255\n": "256\n"},
            "The zero point has the wrong sign: low / scale is negative, and has to become the integer 0.": {
                "-low": "low"
            },
        },
    ),
    "equalise": Blank(
        equalise,
        _layers,
        {
            "The bias is added behind the weight's product: it has to become smaller by the same factor.": {
                "bias / largest": "bias"
            },
            "The next layer gets smaller numbers, so its weights have to become larger.": {
                "following *": "following /"
            },
            "The next layer's weight is [outputs, channels, 3, 3]: you have scaled its outputs.": {
                "(-1, 1, 1)": "(-1, 1, 1, 1)"
            },
        },
    ),
}
