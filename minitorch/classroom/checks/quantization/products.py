"""A matrix product of integers: what its accumulators hold, and what they are stored as."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...asks import quantization as asks
from ...asks.plain import Array
from ..compare import wrong_array
from ..task import Cases, by_case
from .ranges import arrays_of

PRODUCT = {"accumulators": 8, "the zero point": 6, "requantisation": 7, "clamping": 4}


def computed(x: Array, x_zero: int, w: Array, bias: Array, multipliers: Array, zero: int) -> tuple[Array, Array]:
    """The accumulators, and the integers of the result."""
    accumulators = (x.astype(np.int64) - x_zero) @ w.T.astype(np.int64) + bias
    codes = np.clip(np.round(accumulators * multipliers.astype(np.float64)) + zero, 0, 255)
    return accumulators.astype(np.int32), codes.astype(np.uint8)


def _cases(seed: int) -> Cases:
    draw = np.random.default_rng(seed)

    def operands(rows: int, k: int, outputs: int, x_zero: int, zero: int, bits: int, most: int = 5) -> tuple[Any, ...]:
        """Sums fit into an int16, so that other mistakes show; a larger weight than 5 makes them overflow there."""
        x, w = draw.integers(0, 256, (rows, k), np.uint8), draw.integers(-most, most + 1, (outputs, k), np.int8)
        multipliers = 2.0 ** -draw.permutation(np.arange(outputs) % 3 + bits)  # exact, so that halves are halves
        return x, x_zero, w, draw.integers(-500, 500, outputs, np.int32), multipliers.astype(np.float32), zero

    large = list(operands(2, 1024, 3, 0, 0, 20, 127))
    large[0], large[2][0] = np.full_like(large[0], 255), 127  # more than a float32 holds exactly
    return [
        ("accumulators", tuple(large)),
        ("accumulators", operands(3, 40, 2, 0, 0, 12, 127)),
        ("the zero point", operands(3, 24, 4, int(draw.integers(90, 160)), 0, 12)),
        ("the zero point", operands(1, 8, 2, 255, 0, 12)),
        ("requantisation", operands(5, 12, 3, 0, int(draw.integers(110, 140)), 6)),
        ("requantisation", _halves(draw)),
        ("clamping", operands(4, 16, 4, 0, int(draw.integers(20, 60)), 2)),
    ]


def _halves(draw: np.random.Generator) -> tuple[Any, ...]:
    """Accumulators that are half-way between two integers, of both signs, small enough not to be clamped."""
    x = draw.integers(0, 8, (6, 1), np.uint8) * 2 + 1
    w = np.array([[2], [-2]], np.int8)
    return x.astype(np.uint8), 0, w, np.zeros(2, np.int32), np.array([0.25, 0.25], np.float32), 100


def _wrong(part: str, case: Any, answer: Any) -> str | None:
    *_, multipliers, zero = case
    if said := arrays_of(answer, "accumulators", "codes"):
        return said
    accumulators, codes = computed(*case)
    if part in ("accumulators", "the zero point"):
        if said := wrong_array(answer[0], accumulators):
            return f"accumulators: {said}{_why_accumulators(answer[0].array, case)}"
        return None
    if part == "clamping" and answer[1].array.shape == codes.shape:
        codes = np.where((codes == 0) | (codes == 255), codes, answer[1].array.astype(np.uint8))
    if said := wrong_array(answer[1], codes):
        return f"codes: {said}{_why_codes(answer[1].array, accumulators, multipliers, zero)}"
    return None


def _about(case: tuple[Any, ...]) -> str:
    x, x_zero, w, _, _, zero = case
    return f"{x.shape[0]}×{x.shape[1]} times {w.shape[1]}×{w.shape[0]}, x_zero {x_zero}, zero {zero}"


def _why_accumulators(given: Array, case: tuple[Any, ...]) -> str:
    x, x_zero, w, bias, _, _ = case
    wide, weights = x.astype(np.int64), w.T.astype(np.int64)
    if given.shape != (len(x), len(w)):
        return "; there is one for each row of x and each row of w"
    narrow = ((wide - x_zero) @ weights).astype(np.int16)
    for why, wrong in (
        ("the bias is missing", (wide - x_zero) @ weights),
        ("uint8 times int8 is an int16 for NumPy, which overflows: convert before you multiply", narrow + bias),
        ("the zero point of x is not taken into account", wide @ weights + bias),
        ("the zero point of x is added: a code stands for code - zero point", (wide + x_zero) @ weights + bias),
        ("the zero point is taken off once: it is in every one of the k terms", wide @ weights + bias - x_zero),
        ("x - x_zero wraps around in uint8: convert before you subtract", (x - np.uint8(x_zero)) @ weights + bias),
    ):
        if (given == wrong).all():
            return f"; {why}"
    return "; a float32 has 24 bits, so large sums are rounded" if given.dtype.kind == "f" else ""


def _why_codes(given: Array, accumulators: Array, multipliers: Array, zero: int) -> str:
    if given.shape != accumulators.shape:
        return ""
    exact = accumulators * multipliers.astype(np.float64)
    for why, wrong in (
        ("it wraps around: clamp to 0 ... 255 before you convert", (np.round(exact) + zero).astype(np.int64) % 256),
        ("the zero point comes before clamping", (np.clip(np.round(exact), 0, 255) + zero) % 256),
        ("the zero point of the result is missing", np.clip(np.round(exact), 0, 255)),
        ("it is cut off and not rounded", np.clip(np.trunc(exact + zero), 0, 255)),
        ("halves go to the even neighbour, as np.round does it", np.clip(np.floor(exact + 0.5) + zero, 0, 255)),
        ("one multiplier was used for all outputs", np.clip(np.round(accumulators * multipliers[0]) + zero, 0, 255)),
    ):
        if (given == wrong).all():
            return f"; {why}"
    return ""


product = by_case(asks.product, PRODUCT, _cases, _wrong, about=_about)
