"""Exercise 13, quantisation: scales, a round trip to repair, calibration, a product of integers, and a loss scaler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..harness import quantization as harness
from ..harness.plain import Array, Value
from .compare import off, wrong_array
from .reasons import expect, hint, recognised
from .task import Table, Task

PER_CHANNEL = {"scales": 7, "codes": 7, "channels of zeros": 6}
ROUND_TRIP = {"the zero point": 7, "the calibration": 6, "zero is in the range": 7}
CALIBRATE = {"all batches": 6, "outliers": 8, "zero is in the range": 6}
PAIR = tuple[Value, Value]
NEAR = 1e-5  # share by which a scale may be off: some roundings of float32


def affine(low: float, high: float) -> tuple[float, int]:
    """The scale and the zero point of a range, and 0, on the integers from 0 to 255."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / 255
    return scale, round(-low / scale)


# --- per_channel ------------------------------------------------------------------------------------------------


def _weights(draw: np.random.Generator) -> Table:

    def weight(*shape: int) -> Array:
        size = 2.0 ** draw.permutation(np.arange(shape[0]) * 2 - 3).reshape(-1, *(1,) * (len(shape) - 1))
        numbers = draw.uniform(-1, 1, shape) * size
        numbers.reshape(shape[0], -1)[:, 0] = -1.2 * size.reshape(-1)  # the largest number of a channel is negative
        return numbers.astype(np.float32)

    empty = weight(4, 6)
    empty[draw.integers(4)] = 0
    return {
        "scales": [(weight(4, 9),), (weight(3, 3, 2, 2),)],
        "codes": [(weight(5, 7),), (weight(3, 2, 3, 3),)],
        "channels of zeros": [(empty,), (np.zeros((2, 3), np.float32),)],
    }


def _wrong_channels(part: str, case: Any, answer: Any) -> str | None:
    (weight,) = case
    expect(answer, PAIR, "a tuple of arrays (codes, scales)")
    codes, scales = answer[0].array, answer[1].array
    rows = weight.reshape(len(weight), -1).astype(np.float64)
    largest = np.abs(rows).max(1)
    right = np.where(largest > 0, largest / 127, 1.0)
    near = scales.shape == right.shape and bool((np.abs(scales - right) <= 0.05 * right).all())
    if part != "codes":
        if said := wrong_array(answer[1], right.astype(np.float32), NEAR) or off(scales, right, _near):
            return f"scales: {said}{_why_scales(scales, rows)}; the largest numbers are {_few(largest)}"
        return None if part == "scales" or not codes[largest == 0].any() else "a channel of zeros is not stored as 0"
    units = rows / (scales.astype(np.float64) if near else right)[:, None]
    if said := wrong_array(answer[0], codes if codes.shape == weight.shape else weight):
        return f"codes: {said}"
    if codes.dtype != np.int8:
        return f"codes: their type is {codes.dtype} and should be int8"
    apart = np.abs(codes.reshape(rows.shape) - units)
    if (apart <= 0.5 + 1e-3).all():
        return None
    at = np.unravel_index(int(apart.argmax()), apart.shape)
    given, unit = int(codes.reshape(rows.shape)[at]), float(units[at])
    why = "; it was cut off and not rounded" if given == math.trunc(unit) else ""
    why = "; an int8 ends at 127, so a larger number wraps around" if abs(given - unit) > 200 else why
    return f"{rows[at]:.5g} is {unit:.3f} steps of its channel, and is stored as {given}{why}"


def _near(scales: Array, right: Array) -> Array:
    """Which scales are near the right ones, as a share: `wrong_array` is generous with small numbers."""
    return np.asarray(np.abs(scales - right) <= NEAR * right)


def _why_scales(scales: Array, rows: Array) -> str:
    if scales.shape != (len(rows),):
        return ""
    largest = np.abs(rows).max(1)
    if not largest.all() and not (scales[largest == 0] == 1).all():
        return "; a channel of zeros has no largest number to divide by: its scale is 1"
    known = (
        ("that is one scale for the whole weight: each channel has its own", largest.max() / 127 + 0 * largest),
        ("the largest number becomes 127, so divide by 127", largest / 128),
        ("that is the step of an unsigned range: from 0 to the largest number there are 127", largest / 255),
        ("the largest number may be negative: take absolute values", rows.max(1) / 127),
        ("from -127 to 127 the steps are symmetric: only the largest number counts", np.ptp(rows, 1) / 255),
    )
    return recognised(known, lambda wrong: np.allclose(scales, wrong, NEAR, 0))


def _few(numbers: Sequence[float] | Array) -> list[float]:
    return [float(f"{each:.4g}") for each in numbers]


per_channel = Task(harness.per_channel, PER_CHANNEL, _weights, _wrong_channels, draws=np.random.default_rng)


# --- round_trip -------------------------------------------------------------------------------------------------


def _trips(draw: np.random.Generator) -> Table:
    """Each part shows one of the mistakes alone: the others make no difference there.

    Below 0 the zero point is 255, and a wrong sign would be counted twice: there only the range counts.
    """
    low, high = -1.0, 1.0
    while abs(-low / affine(low, high)[0] % 1 - 0.5) < 0.1:  # the zero point is not half-way between two integers
        low, high = -draw.uniform(1, 3), draw.uniform(2, 5)

    def numbers(low: float, high: float, first: int, last: int) -> Array:
        """Numbers that are not half-way between two steps, from one integer to another."""
        scale, zero_point = affine(low, high)
        codes = np.array([first, last, *draw.integers(first, last, 6)])
        return (scale * (codes - zero_point + draw.uniform(-0.4, 0.4, 8))).astype(np.float32)

    whole = numbers(low, high, 1, 254)
    whole[:2] = low, high
    above = draw.uniform(2, 4)
    positive = numbers(above, 2.3 * above, 130, 254)
    positive[:2] = above, 2.3 * above
    first, last = map(float, positive[:2])
    return {
        "the zero point": [(whole, float(whole[0]), float(whole[1]))],
        "the calibration": [(numbers(0, high, 20, most), 0.0, high) for most in (120, 400)],
        "zero is in the range": [(positive, first, last), (-positive, -last, -first)],
    }


def _about_trip(case: Any) -> str:
    _, low, high = case
    return f"a range from {low:.4g} to {high:.4g}"


def _wrong_trip(part: str, case: Any, answer: Any) -> str | None:
    x, low, high = case
    expect(answer, PAIR, "a tuple of arrays (codes, back)")
    scale, zero_point = affine(low, high)
    wide = x.astype(np.float64)
    right = np.clip(np.round(wide / scale) + zero_point, 0, 255).astype(np.uint8)
    if said := wrong_array(answer[0], right):
        known = answer[0].array.shape == right.shape
        why = _why_trip(answer[0].array.astype(np.int64), wide, low, high) if known else ""
        return None if high < 0 and not why.startswith("; 0 is not in") else f"codes: {said}{why}"
    said = wrong_array(answer[1], (scale * (right.astype(np.float64) - zero_point)).astype(np.float32), NEAR)
    return f"back: {said}; a code stands for scale * (code - zero point)" if said else None


def _why_trip(codes: Array, x: Array, low: float, high: float) -> str:
    def with_range(low: float, high: float) -> Array:
        scale = (high - low) / 255
        return np.clip(np.round(x / scale) + round(-low / scale), 0, 255)

    scale, zero_point = affine(low, high)
    if (codes == np.clip(np.round(x / scale) - zero_point, 0, 255)).all() and zero_point:
        return "; the zero point is subtracted on the way in, and again on the way back: 0 has to become the zero point"
    if (
        not low <= 0 <= high
        and (codes == np.clip(np.round(x / (high - low) * 255) + round(-low / (high - low) * 255), 0, 255)).all()
    ):
        return f"; 0 is not in this range, and would come back as {np.clip(0, low, high):.4g}: ReLU makes zeros"
    if (codes == (np.round(x / scale) + zero_point).astype(np.int64) % 256).all():
        return "; it wraps around: clamp to 0 ... 255 before you convert"
    for mine in ((x.min(), x.max()), (min(x.min(), 0), max(x.max(), 0))):
        if mine != (low, high) and (np.abs(codes - with_range(*mine)) <= 1).all():
            return "; that is the range of x itself: the calibrated range is not used"
    return ""


round_trip = Task(harness.round_trip, ROUND_TRIP, _trips, _wrong_trip, draws=np.random.default_rng, about=_about_trip)


# --- calibrate --------------------------------------------------------------------------------------------------


def extremes(batches: list[list[float]], share: float) -> tuple[float, float]:
    """The ends of the range, without a share of the numbers at each side."""
    every = sorted(number for batch in batches for number in batch)
    clipped = int(share * len(every))
    return every[clipped], every[-1 - clipped]


def _batches(draw: np.random.Generator) -> Table:

    def drawn(share: float, shift: float = 0.0) -> tuple[Any, float]:
        while True:  # until the zero point is not half-way between two integers, nor what is clipped between two counts
            batches = [draw.normal(shift, draw.uniform(0.5, 2), draw.integers(40, 90)).tolist() for _ in range(4)]
            if share:
                batches[1][3], batches[1][5] = 60.0, -80.0
            low, high = extremes(batches, share)
            scale, _ = affine(low, high)
            fraction = -min(low, 0.0) / scale % 1
            if abs(fraction - 0.5) > 0.05 and (not shift or low > 0 or high < 0):
                return batches, share

    return {
        "all batches": [drawn(0.0)],
        "outliers": [drawn(0.0213), drawn(0.0331)],
        "zero is in the range": [drawn(0.0, 12.0), drawn(0.0, -12.0)],
    }


def _wrong_calibration(part: str, case: Any, answer: Any) -> str | None:
    batches, share = case
    expect(answer, tuple[float, int], "a tuple (scale, zero point) of a float and an int")
    low, high = extremes(batches, share)
    scale, zero_point = affine(low, high)
    if math.isclose(answer[0], scale, rel_tol=NEAR) and answer[1] == zero_point:
        return None
    given = f"the range is {low:.5g} to {high:.5g}"
    said = f"({answer[0]:.5g}, {answer[1]}) and should be ({scale:.5g}, {zero_point})"
    return f"{given}: it is {said}{_why_calibration(batches, share, answer)}"


def _why_calibration(batches: list[list[float]], share: float, answer: tuple[float, int]) -> str:
    every = np.sort(np.concatenate(batches))
    each = np.array([extremes([batch], share) for batch in batches])
    half, nearest = int(share * len(every) / 2), round(share * len(every))
    low, high = extremes(batches, share)
    if math.isclose(answer[0], affine(low, high)[0], rel_tol=NEAR):
        return "; the scale is right: low has to become the code 0, and is negative"
    known = (
        ("the share was ignored: outliers are in the range", (every[0], every[-1])),
        ("only the last batch was used", tuple(each[-1])),
        ("that is the mean of the batches' ranges: the numbers of all batches count together", tuple(each.mean(0))),
        ("the outliers of one batch count among the numbers of all", (each[:, 0].min(), each[:, 1].max())),
        ("the share is clipped at each side, not half of it", (every[half], every[-1 - half])),
        ("how many are left out is cut off, not rounded", (every[nearest], every[-1 - nearest])),
        ("between two numbers nothing is interpolated", tuple(np.quantile(every, [share, 1 - share]))),
    )
    given = recognised(known, lambda it: it != (low, high) and math.isclose(answer[0], affine(*it)[0], rel_tol=1e-4))
    without = math.isclose(answer[0], (high - low) / 255, rel_tol=NEAR) and not low <= 0 <= high
    return given or hint(without, "0 is not in that range: let it begin or end at 0")


calibrate = Task(
    harness.calibrate,
    CALIBRATE,
    _batches,
    _wrong_calibration,
    draws=np.random.default_rng,
    about=lambda case: f"{len(case[0])} batches, share {case[1]:g}",
)

# --- product: what accumulators hold, and what they are stored as ------------------------------------------------

PRODUCT = {"accumulators": 8, "the zero point": 6, "requantisation": 7, "clamping": 4}


def computed(x: Array, x_zero: int, w: Array, bias: Array, multipliers: Array, zero: int) -> tuple[Array, Array]:
    """The accumulators, and the integers of the result."""
    accumulators = (x.astype(np.int64) - x_zero) @ w.T.astype(np.int64) + bias
    codes = np.clip(np.round(accumulators * multipliers.astype(np.float64)) + zero, 0, 255)
    return accumulators.astype(np.int32), codes.astype(np.uint8)


def _products(draw: np.random.Generator) -> Table:

    def operands(rows: int, k: int, outputs: int, x_zero: int, zero: int, bits: int, most: int = 5) -> tuple[Any, ...]:
        """Sums fit into an int16, so that other mistakes show; a larger weight than 5 makes them overflow there."""
        x, w = draw.integers(0, 256, (rows, k), np.uint8), draw.integers(-most, most + 1, (outputs, k), np.int8)
        multipliers = 2.0 ** -draw.permutation(np.arange(outputs) % 3 + bits)  # exact, so that halves are halves
        return x, x_zero, w, draw.integers(-500, 500, outputs, np.int32), multipliers.astype(np.float32), zero

    large = list(operands(2, 1024, 3, 0, 0, 20, 127))
    large[0], large[2][0] = np.full_like(large[0], 255), 127
    large[2][0, 0] = 126  # a large odd sum, which a float32 does not hold
    return {
        "accumulators": [tuple(large), operands(3, 40, 2, 0, 0, 12, 127)],
        "the zero point": [operands(3, 24, 4, int(draw.integers(90, 160)), 0, 12), operands(1, 8, 2, 255, 0, 12)],
        "requantisation": [operands(5, 12, 3, 0, int(draw.integers(110, 140)), 6), _halves(draw)],
        "clamping": [operands(4, 16, 4, 0, int(draw.integers(20, 60)), 2)],
    }


def _halves(draw: np.random.Generator) -> tuple[Any, ...]:
    """Accumulators that are half-way between two integers, of both signs, small enough not to be clamped."""
    x = draw.integers(0, 8, (6, 1), np.uint8) * 2 + 1
    w = np.array([[2], [-2]], np.int8)
    return x.astype(np.uint8), 0, w, np.zeros(2, np.int32), np.array([0.25, 0.25], np.float32), 100


def _wrong_product(part: str, case: Any, answer: Any) -> str | None:
    *_, multipliers, zero = case
    expect(answer, PAIR, "a tuple of arrays (accumulators, codes)")
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


def _about_product(case: tuple[Any, ...]) -> str:
    x, x_zero, w, _, _, zero = case
    return f"{x.shape[0]}×{x.shape[1]} times {w.shape[1]}×{w.shape[0]}, x_zero {x_zero}, zero {zero}"


def _why_accumulators(given: Array, case: tuple[Any, ...]) -> str:
    x, x_zero, w, bias, _, _ = case
    wide, weights = x.astype(np.int64), w.T.astype(np.int64)
    if given.shape != (len(x), len(w)):
        return "; there is one for each row of x and each row of w"
    narrow = ((wide - x_zero) @ weights).astype(np.int16)
    known = (
        ("the bias is missing", (wide - x_zero) @ weights),
        ("uint8 times int8 is an int16 for NumPy, which overflows: convert before you multiply", narrow + bias),
        ("the zero point of x is not taken into account", wide @ weights + bias),
        ("the zero point of x is added: a code stands for code - zero point", (wide + x_zero) @ weights + bias),
        ("the zero point is taken off once: it is in every one of the k terms", wide @ weights + bias - x_zero),
        ("x - x_zero wraps around in uint8: convert before you subtract", (x - np.uint8(x_zero)) @ weights + bias),
    )
    is_near = given.dtype.kind == "f" or np.allclose(given, (wide - x_zero) @ weights + bias, 1e-6, 0)
    rounded = hint(is_near, "a float32 has 24 bits, so large sums are rounded")
    return recognised(known, lambda wrong: (given == wrong).all()) or rounded


def _why_codes(given: Array, accumulators: Array, multipliers: Array, zero: int) -> str:
    if given.shape != accumulators.shape:
        return ""
    exact = accumulators * multipliers.astype(np.float64)
    wraps = "it wraps around: clamp to 0 ... 255 before you convert"
    known = (
        (wraps, (np.round(exact) + zero).astype(np.int64) % 256),
        (wraps, np.round(exact + zero).astype(np.int64) % 256),
        ("the zero point comes before clamping", (np.clip(np.round(exact), 0, 255) + zero) % 256),
        ("the zero point of the result is missing", np.clip(np.round(exact), 0, 255)),
        ("it is cut off and not rounded", np.clip(np.trunc(exact + zero), 0, 255)),
        ("halves go to the even neighbour, as np.round does it", np.clip(np.floor(exact + 0.5) + zero, 0, 255)),
        ("one multiplier was used for all outputs", np.clip(np.round(accumulators * multipliers[0]) + zero, 0, 255)),
    )
    return recognised(known, lambda wrong: (given == wrong).all())


product = Task(harness.product, PRODUCT, _products, _wrong_product, draws=np.random.default_rng, about=_about_product)

# --- scaler_step: gradients unscaled or skipped, and the scale that grows and shrinks ----------------------------

SCALER = {"unscaling": 4, "overflow": 4, "growing": 4, "shrinking": 3}
LEAST, MOST = 1.0, 2.0**24  # between which a scale stays: part of the task


def stepped(scale: float, good: int, gradients: list[Array], interval: int) -> tuple[list[Array] | None, float, int]:
    """What the optimiser gets, or None; the next scale, and how many steps in a row were good."""
    if not all(np.isfinite(each).all() for each in gradients):
        return None, max(scale / 2, LEAST), 0
    unscaled = [each / np.float32(scale) for each in gradients]
    if good + 1 == interval:
        return unscaled, min(scale * 2, MOST), 0
    return unscaled, scale, good + 1


def _steps(draw: np.random.Generator) -> Table:

    def gradients(size: float = 1.0) -> list[Array]:
        return [(size * draw.standard_normal(shape)).astype(np.float32) for shape in ((3,), (2, 2))]

    def spoilt(at: int, value: float) -> list[Array]:
        found = gradients()
        found[at].reshape(-1)[draw.integers(found[at].size)] = value
        return found

    scale = 2.0 ** int(draw.integers(6, 14))
    interval = int(draw.integers(4, 9))
    huge = [np.full(3, 3e38, np.float32), np.array([[-3e38, 3e38], [1.0, 2.0]], np.float32)]
    last = interval - 1
    made = {
        "unscaling": [(scale, 0, gradients(100)), (scale, 1, gradients(1e-4))],
        "overflow": [(scale, 2, spoilt(at, each)) for at, each in ((1, np.inf), (0, -np.inf), (1, np.nan))]
        + [(scale, 0, huge)],
        "growing": [(scale, last, gradients()), (scale, last - 1, gradients()), (MOST, last, gradients())],
        "shrinking": [(scale, last, spoilt(0, np.inf)), (LEAST, 3, spoilt(1, np.inf))],
    }
    return {part: [(*case, interval) for case in several] for part, several in made.items()}


def _wrong_step(part: str, case: Any, answer: Any) -> str | None:
    scale, good, gradients, interval = case
    form = tuple[Any, float | int, int]  # min(2 * scale, 2**24) is an int, and right
    expect(answer, form, "a tuple (gradients or None, a float, an int)")
    unscaled, next_scale, next_good = stepped(scale, good, gradients, interval)
    if part in ("unscaling", "overflow"):
        return _wrong_gradients(part, answer[0], unscaled, gradients)
    if answer[1:] == (next_scale, next_good):
        return None
    said = f"scale and good steps are {answer[1:]} and should be {(next_scale, next_good)}"
    return f"{said}{_why_step(answer, unscaled is None, scale, good, interval)}"


def _about_step(case: Any) -> str:
    scale, good, _, interval = case
    return f"scale {scale:g}, {good} good steps so far, interval {interval}"


def _wrong_gradients(part: str, given: Any, right: list[Array] | None, gradients: list[Array]) -> str | None:
    if right is None:
        found = "an infinity" if any(np.isinf(each).any() for each in gradients) else "a NaN"
        which = next(number for number, each in enumerate(gradients) if not np.isfinite(each).all())
        return None if given is None else f"gradient {which} has {found}, so the step is skipped: None is expected"
    if given is None:
        return "all gradients are finite, also where a sum of them would not be: the step is not skipped"
    if part == "overflow":
        return None
    expect(given, list, f"a list of {len(right)} arrays", count=len(right))
    for number, (one, other, scaled) in enumerate(zip(given, right, gradients, strict=True)):
        if said := wrong_array(one, other, 0):
            same = not wrong_array(one, scaled, 0)
            return f"gradient {number}: {said}{'; it was not divided by the scale' if same else ''}"
    return None


def _why_step(answer: tuple[Any, ...], skipped: bool, scale: float, good: int, interval: int) -> str:
    _, next_scale, next_good = answer
    if skipped:
        if next_scale == LEAST / 2:
            return f"; a scale does not fall below {LEAST:g}"
        if next_scale > scale:
            return "; a step that overflows does not let the scale grow, however many were good before"
        return "; a skipped step ends the row of good ones" if next_good else ""
    if next_scale == 2 * MOST:
        return f"; a scale does not grow above 2**24, {MOST:g}"
    if next_scale == scale and good + 1 == interval and scale < MOST:
        return "; this step is the last one of the row: count it before you compare"
    if next_scale == 2 * scale and good + 1 < interval:
        return "; it grows one step too early"
    return "; when the scale has grown, counting begins again" if next_good >= interval else ""


scaler_step = Task(harness.scaler_step, SCALER, _steps, _wrong_step, draws=np.random.default_rng, about=_about_step)

TASKS = (per_channel, round_trip, calibrate, product, scaler_step)
