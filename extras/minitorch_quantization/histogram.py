"""Observers that keep a histogram: the range with the least squared error, and the range between two percentiles.

Both clip outliers, which would make the scale coarse for everything else. The histogram has 2048 bins from the smallest
number to the largest; when a later tensor widens that range, what was counted is moved into the new bins.

The search is that of PyTorch's `HistogramObserver`, step by step and in float32, so that it ends at the same bins: it
takes away quantiles from the end with more bins to spare, as long as the squared error falls. Calibration runs once and
on data, so this is NumPy, outside of every graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.functional.creation.creation import zeros
from minitorch.functional.inplace import assign
from minitorch.functional.operands import from_array
from minitorch.interpreters import concrete
from minitorch.tensor import Tensor

from .observers import Observer
from .schemes import require_finite, require_scale

Array = np.ndarray[Any, Any]

EAGERLY = "calibrate without jit; what is compiled or frozen is the model that convert(prepared) makes of it"
FINER = 16  # bins that each bin is divided into on the way to a new range; more of them place its counts more exactly
STEP = 1e-5  # the part of all numbers that a step of the search takes away; a larger one is faster, and less exact


class _Histogram(Observer):
    """What both observers share: the histogram, in float32 like PyTorch's."""

    histogram: Tensor

    def __init__(self, bins: int = 2048, **options: Any) -> None:
        super().__init__(**options)
        if bins < 1 or bins != int(bins):
            raise ValueError(f"{type(self).__name__}: bins is a whole number above 0, not {bins!r}")
        self.bins = bins
        self.register_buffer("histogram", zeros(bins))

    def observe(self, x: Tensor) -> None:
        """Count the numbers of a tensor; not while a graph is being recorded.

        Raises:
            TracedValueError: in a graph (``MT102``).
        """
        values = concrete(x, f"{self.name}, whose bins depend on data,", fix=EAGERLY)
        require_finite(self.name, x)
        old_low, old_high = (np.float32(each.item()) for each in (self.min_val, self.max_val))
        low, high = min(old_low, values.min()), max(old_high, values.max())
        require_scale(self.name, float(low), float(high))
        counts = counted(values, self.bins, low, high)
        before = self.histogram.numpy()
        if old_low <= old_high:
            counts = counts + moved(before, old_low, old_high, low, high)
        for buffer, value in ((self.histogram, counts), (self.min_val, low), (self.max_val, high)):
            assign(buffer, from_array(np.asarray(value, np.float32)), "an observer")

    def bounds(self) -> tuple[Tensor, Tensor]:
        """The range between two bins that `chosen` names."""
        low, high = (np.float32(each.item()) for each in (self.min_val, self.max_val))
        with np.errstate(over="ignore", invalid="ignore"):  # of errors beyond float32, which PyTorch ignores, too
            first, last = self.chosen(self.histogram.numpy(), low, high)
        width = (high - low) / np.float32(self.bins)
        return tuple([from_array(np.asarray(low + width * np.float32(at))) for at in (first, last + 1)])  # type: ignore[return-value]

    def chosen(self, histogram: Array, low: np.float32, high: np.float32) -> tuple[int, int]:
        """The first and the last bin that are kept."""
        raise NotImplementedError


class HistogramObserver(_Histogram):
    """The range whose quantisation has the least squared error, as PyTorch's observer of this name finds it.

    Args:
        bins: of the histogram.
        options: as of `Observer`.

    Example:
        >>> import minitorch as mt
        >>> observer = mt.quantization.HistogramObserver()
        >>> _ = observer(mt.linspace(-4, 4, 100_000) ** 5)
        >>> low, high = observer.bounds()
        >>> round(observer.max_val.item()), round(high.item())
        (1024, 1016)
    """

    def chosen(self, histogram: Array, low: np.float32, high: np.float32) -> tuple[int, int]:
        """The search."""
        levels = self.quant_levels
        total = float(histogram.sum())
        sums = np.cumsum(histogram, dtype=np.float64).astype(np.float32)
        alpha, beta, first, last, least = 0.0, 1.0, 0, self.bins - 1, float("inf")
        while alpha < beta:
            next_alpha, next_beta = alpha + STEP, beta - STEP
            left = min(max(first, int(np.searchsorted(sums, np.float32(next_alpha * total), "left"))), last)
            right = max(min(last, int(np.searchsorted(sums, np.float32(next_beta * total), "right")) - 1), first)
            if left - first > last - right:
                next_first, next_last, alpha = left, last, next_alpha
            else:
                next_first, next_last, beta = first, right, next_beta
            if (next_first, next_last) == (first, last):
                continue
            error = squared_error(histogram, float(low), float(high), next_first, next_last, levels)
            if error > least:
                break
            least, first, last = error, next_first, next_last
        return first, last

    @property
    def quant_levels(self) -> int:
        """The number of integers of the type, also where fewer are used: as PyTorch has it."""
        return 256


class PercentileObserver(_Histogram):
    """The range that holds a part of all numbers, the same share cut off at both ends, exact to the width of a bin.

    Args:
        percentile: the percentage that is kept, above 50 and at most 100.
        options: as of `Observer`, and `bins`.

    Raises:
        ValueError: for another percentage.

    Example:
        >>> import minitorch as mt
        >>> observer = mt.quantization.PercentileObserver(percentile=99)
        >>> _ = observer(mt.arange(1000).float())
        >>> [round(bound.item()) for bound in observer.bounds()]
        [5, 994]
    """

    def __init__(self, percentile: float = 99.99, **options: Any) -> None:
        super().__init__(**options)
        if not 50 < percentile <= 100:
            raise ValueError(f"{type(self).__name__}: percentile is above 50 and at most 100, not {percentile}")
        self.percentile = percentile

    def chosen(self, histogram: Array, low: np.float32, high: np.float32) -> tuple[int, int]:
        """The bins in which the two percentiles lie."""
        sums = np.cumsum(histogram, dtype=np.float64)
        cut = (1 - self.percentile / 100) / 2 * sums[-1]
        first = int(np.searchsorted(sums, cut, "right"))
        last = int(np.searchsorted(sums, sums[-1] - cut, "left"))
        return min(first, self.bins - 1), min(max(first, last), self.bins - 1)


def counted(values: Array, bins: int, low: np.float32, high: np.float32) -> Array:
    """How many numbers lie in each of the bins from `low` to `high`, as `torch.histc` counts them, in float32.

    Where float32 has no number between `low` - 1 and `low` + 1, or overflows, float64 takes its place.
    """
    least, most, number = (np.float32(each) for each in (low, high, bins))
    if least == most:
        least, most = least - np.float32(1), most + np.float32(1)
    with np.errstate(over="ignore"):
        if least == most or not np.isfinite((most - least) * number):
            least, most, number = (np.float64(each) for each in (low, high, bins))  # type: ignore[assignment]
    if least == most:
        at = np.full(values.size, bins // 2)
    else:
        at = ((values.reshape(-1) - least) * number / (most - least)).astype(np.int64)
    return np.bincount(np.minimum(at, bins - 1), minlength=bins).astype(np.float32)


def moved(histogram: Array, low: np.float32, high: np.float32, new_low: np.float32, new_high: np.float32) -> Array:
    """A histogram from `low` to `high` in the bins of a wider range: each bin in parts, by the part's middle."""
    bins = len(histogram)
    if (low, high) == (new_low, new_high):
        return histogram
    if low == high:
        return np.asarray(counted(np.asarray([low]), bins, new_low, new_high) * histogram.sum())
    parts = np.repeat(histogram, FINER) / np.float32(FINER)
    size = (high - low) / np.float32(bins * FINER)
    middles = np.linspace(low, high, bins * FINER + 1, dtype=np.float32)[:-1] + np.float32(0.5) * size
    edges = np.linspace(new_low, new_high, bins + 1, dtype=np.float32)
    at = np.clip(np.searchsorted(edges, middles, "right") - 1, 0, bins - 1)
    return np.bincount(at, weights=parts, minlength=bins).astype(np.float32)


def squared_error(histogram: Array, low: float, high: float, first: int, last: int, levels: int) -> float:
    """The squared error if the bins from `first` to `last` are mapped onto so many integers.

    The numbers of a bin are taken to be spread evenly over it. What lies in between two places then has the error
    (end**3 - begin**3) / 3, measured from the middle of the quantised number's own bin.
    """
    bins = len(histogram)
    width = (high - low) / bins
    step = width * (last - first + 1) / levels
    if step == 0.0:
        return 0.0
    begin = (np.arange(bins) - first).astype(np.float32) * np.float32(width)
    end = begin + np.float32(width)
    wide, half = np.float32(step), np.float32(step / 2)
    of_begin = np.clip(np.floor_divide(begin, wide), 0, levels - 1)
    of_end = np.clip(np.floor_divide(end, wide), 0, levels - 1)
    density = histogram / np.float32(width)

    def norm(since: Array | np.float32, until: Array | np.float32) -> Array:
        return np.asarray(density * ((until * until * until - since * since * since) / np.float32(3)))

    total = norm(begin - (of_begin + np.float32(0.5)) * wide, half)
    total = total + (of_end - of_begin - np.float32(1)) * norm(-half, half)
    total = total + norm(-half, end - (of_end * wide + half))
    return float(total.sum())
