"""Solutions of exercise 13, quantisation."""

import numpy as np

from tests.grading.wrong_solutions import right, variants, wrong

# --- per_channel ------------------------------------------------------------------------------------------------


@right("quantization.per_channel")
def goes_channel_by_channel(weight):
    codes, scales = np.zeros(weight.shape, np.int8), np.ones(len(weight), np.float32)
    for channel, numbers in enumerate(weight):
        if numbers.any():
            scales[channel] = max(numbers.max(), -numbers.min()) / 127
            codes[channel] = np.rint(numbers / scales[channel])
    return codes, scales


@right("quantization.per_channel")
def goes_by_rows(weight):
    rows = weight.reshape(len(weight), -1)
    largest = np.abs(rows).max(1)
    scales = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    return np.round(rows / scales[:, None]).astype(np.int8).reshape(weight.shape), scales


variants(
    goes_by_rows,
    """
    cuts_off [13]: it was cut off and not rounded
    - return np.round(rows / scales[:, None]).astype(np.int8).reshape(weight.shape), scales
    + return (rows / scales[:, None]).astype(np.int8).reshape(weight.shape), scales
    forgets_the_sign [scales]: the largest number may be negative
    - largest = np.abs(rows).max(1)
    + largest = rows.max(1)
    leaves_floats [13]: their type is float32 and should be int8
    - return np.round(rows / scales[:, None]).astype(np.int8).reshape(weight.shape), scales
    + return np.round(weight / scales.reshape(-1, *(1,) * (weight.ndim - 1))), scales
    divides_in_the_memory_of_the_caller [0]: it changes its argument 1, which the caller may still need: work on a copy
    - return np.round(rows / scales[:, None]).astype(np.int8).reshape(weight.shape), scales
    + rows /= scales[:, None]
    + return np.round(rows).astype(np.int8).reshape(weight.shape), scales
    """,
)


@wrong("quantization.per_channel", says="that is one scale for the whole weight", points=0)
def uses_one_scale(weight):
    scale = np.abs(weight).max() / 127 or 1.0
    return np.round(weight / scale).astype(np.int8), np.full(len(weight), scale, np.float32)


@wrong("quantization.per_channel", says="the largest number becomes 127, so divide by 127", part="scales")
def divides_by_128(weight):
    rows = weight.reshape(len(weight), -1)
    largest = np.abs(rows).max(1)
    scales = np.where(largest > 0, largest / 128, 1).astype(np.float32)
    return np.clip(np.round(rows / scales[:, None]), -128, 127).astype(np.int8).reshape(weight.shape), scales


@wrong("quantization.per_channel", says="a channel of zeros has no largest number to divide by", points=14)
def divides_by_zero(weight):
    rows = weight.reshape(len(weight), -1)
    scales = np.abs(rows).max(1) / np.float32(127)
    return np.round(rows / scales[:, None]).astype(np.int8).reshape(weight.shape), scales


@wrong("quantization.per_channel", says="its shape is [4, 1] and should be [4]", part="scales")
def keeps_the_dimensions(weight):
    axes = tuple(range(1, weight.ndim))
    largest = np.abs(weight).max(axes, keepdims=True)
    scales = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    return np.round(weight / scales).astype(np.int8), scales


# --- round_trip -------------------------------------------------------------------------------------------------


@right("quantization.round_trip")
def clamps_before_it_rounds(x, low, high):
    low, high = min(0.0, low), max(0.0, high)
    steps = np.linspace(0, 255, 256)
    scale = (high - low) / 255
    zero_point = int(np.rint(-low / scale))
    codes = np.rint(np.clip(x, low, high).astype(np.float64) / scale) + zero_point
    codes = steps[np.clip(codes, 0, 255).astype(int)].astype(np.uint8)
    return codes, np.float32(scale) * (codes.astype(np.float32) - np.float32(zero_point))


@right("quantization.round_trip")
def goes_there_and_back(x, low, high):
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / 255
    zero_point = round(-low / scale)
    codes = np.clip(np.round(x / scale) + zero_point, 0, 255).astype(np.uint8)
    return codes, (scale * (codes.astype(np.float64) - zero_point)).astype(np.float32)


variants(
    goes_there_and_back,
    """
    leaves_the_sign [13]: 0 has to become the zero point
    - codes = np.clip(np.round(x / scale) + zero_point, 0, 255).astype(np.uint8)
    + codes = np.clip(np.round(x / scale) - zero_point, 0, 255).astype(np.uint8)
    takes_the_range_of_x [14]: the calibrated range is not used
    - low, high = min(low, 0.0), max(high, 0.0)
    + low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    leaves_zero_out [13]: 0 is not in this range, and would come back as
    - low, high = min(low, 0.0), max(high, 0.0)
    adds_on_the_way_back [the zero point]: a code stands for scale * (code - zero point)
    - return codes, (scale * (codes.astype(np.float64) - zero_point)).astype(np.float32)
    + return codes, (scale * (codes.astype(np.float64) + zero_point)).astype(np.float32)
    leaves_zero_out_above [zero is in the range]: 0 is not in this range, and would come back as
    - low, high = min(low, 0.0), max(high, 0.0)
    + low = min(low, 0.0)
    wraps_around: it wraps around
    - codes = np.clip(np.round(x / scale) + zero_point, 0, 255).astype(np.uint8)
    + codes = (np.round(x / scale) + zero_point).astype(np.int64).astype(np.uint8)
    """,
)


@wrong("quantization.round_trip", says="codes: element", points=0)
def hands_in_what_is_broken(x, low, high):
    low, high = float(x.min()), float(x.max())
    scale = (high - low) / 255
    zero_point = round(-low / scale)
    codes = np.clip(np.round(x / scale) - zero_point, 0, 255).astype(np.uint8)
    return codes, (scale * (codes.astype(np.float64) - zero_point)).astype(np.float32)


# --- calibrate --------------------------------------------------------------------------------------------------


@right("quantization.calibrate")
def returns_numbers_of_numpy(batches, share):
    numbers = np.sort(np.concatenate([np.array(batch) for batch in batches]))
    k = int(share * numbers.size)
    low, high = np.minimum(numbers[k], 0), np.maximum(numbers[-1 - k], 0)
    scale = (high - low) / 255
    return scale, np.int64(np.round(-low / scale))


@right("quantization.calibrate")
def sorts_all_numbers(batches, share):
    numbers = sorted(number for batch in batches for number in batch)
    k = int(share * len(numbers))
    low, high = min(numbers[k], 0.0), max(numbers[-1 - k], 0.0)
    scale = (high - low) / 255
    return scale, round(-low / scale)


variants(
    sorts_all_numbers,
    """
    has_the_other_sign: low has to become the code 0, and is negative
    - return scale, round(-low / scale)
    + return scale, round(low / scale)
    rounds_how_many [outliers]: is cut off, not rounded
    - k = int(share * len(numbers))
    + k = round(share * len(numbers))
    """,
)


@wrong("quantization.calibrate", says="only the last batch was used")
def keeps_the_last_batch(batches, share):
    for batch in batches:
        numbers = sorted(batch)
        k = int(share * len(numbers))
        low, high = min(numbers[k], 0.0), max(numbers[-1 - k], 0.0)
    scale = (high - low) / 255
    return scale, round(-low / scale)


@wrong("quantization.calibrate", says="that is the mean of the batches' ranges", points=0)
def averages_ranges(batches, share):
    lows, highs = [], []
    for batch in batches:
        numbers = sorted(batch)
        k = int(share * len(numbers))
        lows.append(numbers[k])
        highs.append(numbers[-1 - k])
    low, high = min(sum(lows) / len(lows), 0.0), max(sum(highs) / len(highs), 0.0)
    scale = (high - low) / 255
    return scale, round(-low / scale)


@wrong("quantization.calibrate", says="the share was ignored", points=12)
def takes_the_extremes(batches, share):
    numbers = [number for batch in batches for number in batch]
    low, high = min(*numbers, 0.0), max(*numbers, 0.0)
    scale = (high - low) / 255
    return scale, round(-low / scale)


@wrong("quantization.calibrate", says="the outliers of one batch count among the numbers of all", part="outliers")
def clips_each_batch(batches, share):
    low = high = 0.0
    for batch in batches:
        numbers = sorted(batch)
        k = int(share * len(numbers))
        low, high = min(low, numbers[k]), max(high, numbers[-1 - k])
    scale = (high - low) / 255
    return scale, round(-low / scale)


@wrong("quantization.calibrate", says="0 is not in that range", points=14)
def does_not_include_zero(batches, share):
    numbers = sorted(number for batch in batches for number in batch)
    k = int(share * len(numbers))
    scale = (numbers[-1 - k] - numbers[k]) / 255
    return scale, round(-numbers[k] / scale)


# --- product ----------------------------------------------------------------------------------------------------


@right("quantization.product")
def takes_the_zero_point_off_the_sum(x, x_zero, w, bias, multipliers, zero):
    sums = np.zeros((len(x), len(w)), np.int32)
    for row, codes in enumerate(x.tolist()):
        for output, weights in enumerate(w.tolist()):
            products = sum(a * b for a, b in zip(codes, weights, strict=True))
            sums[row, output] = products - x_zero * sum(weights) + int(bias[output])
    results = np.rint(sums.astype(np.float64) * multipliers[None]) + zero
    return sums, np.minimum(np.maximum(results, 0), 255).astype(np.uint8)


@right("quantization.product")
def converts_first(x, x_zero, w, bias, multipliers, zero):
    sums = (x.astype(np.int32) - x_zero) @ w.T.astype(np.int32) + bias
    return sums, np.clip(np.round(sums * multipliers) + zero, 0, 255).astype(np.uint8)


variants(
    converts_first,
    """
    adds_up_floats [accumulators]: a float32 has 24 bits, so large sums are rounded
    - sums = (x.astype(np.int32) - x_zero) @ w.T.astype(np.int32) + bias
    + sums = ((x.astype(np.float32) - x_zero) @ w.T.astype(np.float32) + bias).astype(np.int32)
    """,
)


@wrong("quantization.product", says="convert before you multiply", points=17)
def multiplies_bytes(x, x_zero, w, bias, multipliers, zero):
    sums = (x @ w.T - x_zero * w.sum(1, dtype=np.int32)).astype(np.int32) + bias
    return sums, np.clip(np.round(sums * multipliers) + zero, 0, 255).astype(np.uint8)


@wrong("quantization.product", says="the zero point of x is not taken into account", points=19)
def forgets_the_zero_point(x, x_zero, w, bias, multipliers, zero):
    sums = x.astype(np.int32) @ w.T.astype(np.int32) + bias
    return sums, np.clip(np.round(sums * multipliers) + zero, 0, 255).astype(np.uint8)


@wrong("quantization.product", says="it is in every one of the k terms", points=19)
def takes_the_zero_point_off_once(x, x_zero, w, bias, multipliers, zero):
    sums = x.astype(np.int32) @ w.T.astype(np.int32) - x_zero + bias
    return sums, np.clip(np.round(sums * multipliers) + zero, 0, 255).astype(np.uint8)


@wrong("quantization.product", says="x - x_zero wraps around in uint8", part="the zero point")
def subtracts_in_bytes(x, x_zero, w, bias, multipliers, zero):
    sums = (x - np.uint8(x_zero)).astype(np.int32) @ w.T.astype(np.int32) + bias
    return sums, np.clip(np.round(sums * multipliers) + zero, 0, 255).astype(np.uint8)


@wrong("quantization.product", says="clamp to 0 ... 255 before you convert", points=21)
def does_not_clamp(x, x_zero, w, bias, multipliers, zero):
    sums = (x.astype(np.int32) - x_zero) @ w.T.astype(np.int32) + bias
    return sums, (np.round(sums * multipliers) + zero).astype(np.int64).astype(np.uint8)


@wrong("quantization.product", says="the zero point comes before clamping")
def clamps_too_early(x, x_zero, w, bias, multipliers, zero):
    sums = (x.astype(np.int32) - x_zero) @ w.T.astype(np.int32) + bias
    return sums, (np.clip(np.round(sums * multipliers), 0, 255) + zero).astype(np.int64).astype(np.uint8)


@wrong("quantization.product", says="halves go to the even neighbour", part="requantisation", points=18)
def rounds_halves_up(x, x_zero, w, bias, multipliers, zero):
    sums = (x.astype(np.int32) - x_zero) @ w.T.astype(np.int32) + bias
    return sums, np.clip(np.floor(sums * multipliers + 0.5) + zero, 0, 255).astype(np.uint8)


@wrong("quantization.product", says="the bias is missing")
def leaves_the_bias_out(x, x_zero, w, bias, multipliers, zero):
    sums = (x.astype(np.int32) - x_zero) @ w.T.astype(np.int32)
    return sums, np.clip(np.round((sums + bias) * multipliers) + zero, 0, 255).astype(np.uint8)


@wrong("quantization.product", says="its type is float32 and should be int32", part="accumulators")
def accumulates_in_floats(x, x_zero, w, bias, multipliers, zero):
    sums = (x.astype(np.float32) - x_zero) @ w.T.astype(np.float32) + bias.astype(np.float32)
    return sums, np.clip(np.round(sums * multipliers) + zero, 0, 255).astype(np.uint8)


# --- scaler_step ------------------------------------------------------------------------------------------------


@right("quantization.scaler_step")
def multiplies_by_the_inverse(scale, good, gradients, interval):
    finite = np.isfinite(np.concatenate([each.reshape(-1) for each in gradients])).all()
    unscaled = [each * np.float32(1 / scale) for each in gradients] if finite else None
    good = good + 1 if finite else 0
    scale = scale if finite else max(1.0, 0.5 * scale)
    return (unscaled, scale, good) if good < interval else (unscaled, min(2.0 * scale, 1 << 24), 0)


@right("quantization.scaler_step")
def skips_or_unscales(scale, good, gradients, interval):
    if not all(np.isfinite(each).all() for each in gradients):
        return None, max(scale / 2, 1.0), 0
    unscaled = [each / np.float32(scale) for each in gradients]
    if good + 1 == interval:
        return unscaled, min(scale * 2, 2.0**24), 0
    return unscaled, scale, good + 1


variants(
    skips_or_unscales,
    """
    looks_for_infinities_only [11]: has a NaN, so the step is skipped
    - if not all(np.isfinite(each).all() for each in gradients):
    + if any(np.isinf(each).any() for each in gradients):
    looks_at_a_sum [11]: all gradients are finite, also where a sum of them would not be
    - if not all(np.isfinite(each).all() for each in gradients):
    + if not np.isfinite(sum(each.sum() for each in gradients)):
    looks_at_the_first_gradient [overflow]: gradient 1 has an infinity
    - if not all(np.isfinite(each).all() for each in gradients):
    + if not np.isfinite(gradients[0]).all():
    keeps_counting [12]: a skipped step ends the row of good ones
    - return None, max(scale / 2, 1.0), 0
    + return None, max(scale / 2, 1.0), good
    grows_one_step_late [11]: this step is the last one of the row
    - if good + 1 == interval:
    + if good == interval:
    grows_without_end [11]: a scale does not grow above 2**24
    - return unscaled, min(scale * 2, 2.0**24), 0
    + return unscaled, scale * 2, 0
    shrinks_without_end [12]: a scale does not fall below 1
    - return None, max(scale / 2, 1.0), 0
    + return None, scale / 2, 0
    """,
)


@wrong("quantization.scaler_step", says="it was not divided by the scale", points=11)
def does_not_unscale(scale, good, gradients, interval):
    if not all(np.isfinite(each).all() for each in gradients):
        return None, max(scale / 2, 1.0), 0
    if good + 1 == interval:
        return gradients, min(scale * 2, 2.0**24), 0
    return gradients, scale, good + 1
