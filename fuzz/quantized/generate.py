"""From a seed to a program in Q/DQ form, statement by statement; each is computed as it is made, so that scales fit.

Half of the programs are *exact*: scales are powers of two, so every number is a multiple of a power of two, its *unit*.
A statement whose sums would have more than 24 bits is not made. Then no sum is rounded in float32, whatever its order,
and ties, which are frequent, are ties in every mode.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import minitorch as mt

from .graphs import Array, Evaluation, Grid, Program, Step

RANGES = {"uint8": (0, 255), "int8": (-128, 127)}
NARROW = {"uint8": ((0, 127), (0, 15)), "int8": ((-127, 127), (-8, 7), (0, 127))}
BITS = 24  # of a float32 number
MOST_ELEMENTS = 6000  # of a value; raising it makes programs slower, not other ones


@dataclass(frozen=True)
class Value:
    """A value of the program under way.

    Attributes:
        place: among all values.
        unit: the exponent of a power of two that it is a multiple of, in exact programs.
        largest: a bound of its absolute values, and of sums of absolute values in it.
        grid: of what it was dequantised with, and only moved since; None for another float.
    """

    place: int
    unit: int
    largest: float
    grid: Grid | None = None


class TooManyBitsError(Exception):
    """A sum would not be exact."""


def generate(seed: int) -> Program:
    """The program of a seed."""
    return _Maker(seed).program()


class _Maker:
    def __init__(self, seed: int) -> None:
        self.seed, self.choose, self.numbers = seed, random.Random(seed), np.random.default_rng(seed)
        self.is_exact = self.choose.random() < 0.5
        self.arrays: dict[str, Array] = {}
        self.given: list[str] = []
        self.steps: list[Step] = []
        self.grids: list[Grid] = []
        self.floats: list[Value] = []
        self.largest: list[float] = []
        self.tensors: dict[str, mt.Tensor] = {}
        self.run = Evaluation(self.tensors, is_wide=True)
        self.values: list[mt.Tensor] = []

    def program(self) -> Program:
        """Inputs, statements, and results: all that nothing else reads, and at times more."""
        for _ in range(self.choose.choice([1, 1, 2])):
            self._input()
        for _ in range(self.choose.randint(3, 9)):
            value = self._recent()
            kind = self.choose.choice(FOUR if self._tensor(value).ndim == 4 else TWO)
            try:
                made = kind(self, value)
            except TooManyBitsError:
                continue
            if made is not None:
                self.floats.append(made)
        read = {place for step in self.steps for place in step.operands}
        for value in self.floats:
            if value.place not in read and value.grid is None and self.choose.random() < 0.6:
                self._quantize(value)
        read = {place for step in self.steps for place in step.operands}
        results = [place for place in range(len(self.steps)) if place not in read]
        if self.choose.random() < 0.3:
            results.append(self.choose.choice(self.floats).place)
        return Program(
            self.seed, self.is_exact, self.arrays, tuple(self.given), tuple(self.steps),
            tuple(dict.fromkeys(results)), tuple(self.largest),
        )  # fmt: skip

    # Parts --------------------------------------------------------------------------------------------------------

    def _tensor(self, value: Value) -> mt.Tensor:
        return self.values[value.place]

    def _recent(self) -> Value:
        """A value, rather one of the last."""
        return self.choose.choice(self.floats[-3:] if self.choose.random() < 0.8 else self.floats)

    def _array(self, name: str, array: Array, share: float = 0.3) -> str:
        """A parameter; an argument of the program as often as `share` says."""
        name = f"{name}{len(self.arrays)}"
        self.arrays[name], self.tensors[name] = array, mt.tensor(array)
        if self.choose.random() < share:
            self.given.append(name)
        return name

    def _step(self, name: str, operands: list[Value], unit: int, largest: float, /, **options: Any) -> Value:
        """Append a statement.

        Raises:
            TooManyBitsError: if its result would not be exact, and has to be.
        """
        if self.is_exact and name != "quantize" and largest > 2.0 ** (unit + BITS):
            raise TooManyBitsError
        step = Step(name, tuple(value.place for value in operands), options)
        with np.errstate(all="ignore"):
            self.run.extend(self.values, step)
        self.steps.append(step)
        self.largest.append(largest)
        return Value(len(self.steps) - 1, unit, largest)

    def _input(self) -> None:
        """An image or a row of numbers: integers, or floats, of which some may be NaN or infinite."""
        shape = [self.choose.randint(1, 3), self.choose.choice([1, 2, 3, 4, 8, 16])]
        shape += [self.choose.randint(4, 8), self.choose.randint(4, 8)] if self.choose.random() < 0.75 else []
        if self.choose.random() < 0.5:
            dtype = self.choose.choice(list(RANGES))
            low, high = RANGES[dtype]
            name = self._array("x", self.numbers.integers(low, high, shape, dtype, endpoint=True), 1)
            bytes_ = self._step("input", [], 0, 255, name=name, is_bytes=True)
            self.floats.append(self._dequantize(bytes_, self._grid(1.0, shape, dtype)))
            return
        array = self.numbers.standard_normal(shape).astype(np.float32)
        if self.is_exact:
            array = np.rint(array * np.float32(64)) / np.float32(32)
        else:
            array = np.clip(array, -8, 8)
        if self.choose.random() < 0.15:
            wild = self.numbers.random(shape) < 0.05
            array[wild] = self.numbers.choice([np.nan, np.inf, -np.inf], wild.sum())
        self.floats.append(self._step("input", [], -5, 16.0, name=self._array("x", array, 1), is_bytes=False))

    def _grid(self, size: float, shape: Any, dtype: str | None = None, like: Grid | None = None) -> Grid:
        """Parameters for numbers up to about `size`: new ones, or those of another value, or nearly those.

        Args:
            like: what the value was dequantised with, if it was.
        """
        if like is not None and self.choose.random() < 0.6:
            return self._nearly(like)
        known = [each for each in self.grids if (dtype is None or each.dtype == dtype) and each.axis is None]
        near = [each for each in known if 0.25 < float(self.arrays[each.scale]) * 128 / size < 8]
        if near and self.choose.random() < 0.3:
            return self._nearly(self.choose.choice(near))
        dtype = dtype or self.choose.choice(list(RANGES))
        low, high = RANGES[dtype]
        if self.choose.random() < 0.25:
            low, high = self.choose.choice(NARROW[dtype])
        axis = 1 if self.choose.random() < 0.15 else None
        zeros = self.choose.choice([None, (low, high), (low, high), (high, high)])
        grid = self._new_grid(size / 128, dtype, (low, high), axis, () if axis is None else (shape[1],), zeros)
        self.grids.append(grid)
        return grid

    def _nearly(self, grid: Grid) -> Grid:
        """The same parameters, equal ones that are other values, or ones that differ in one thing."""
        what = self.choose.choice(["same"] * 6 + ["copy", "scale", "zero", "range"])
        scale, zero = self.arrays[grid.scale], self.arrays[grid.zero]
        if what in ("scale", "copy"):
            grid = replace(grid, scale=self._array("s", scale * np.float32(2 if what == "scale" else 1)))
        if what in ("zero", "copy"):
            nearer = np.where(zero < 100, zero + (what == "zero"), zero - (what == "zero")).astype(zero.dtype)
            grid = replace(grid, zero=self._array("z", nearer))
        if what == "range":
            low, high = self.choose.choice(NARROW[grid.dtype])
            grid = replace(grid, low=low, high=high)
        return grid

    def _new_grid(
        self, step: float, dtype: str, ends: tuple[int, int], axis: int | None, shape: Any, zeros: Any
    ) -> Grid:
        if self.is_exact:
            scale = 2.0 ** (round(math.log2(step)) + self.numbers.integers(-1, 2, shape if shape else None))
        else:
            scale = step * self.numbers.uniform(0.4, 2.0, shape)
        kind = self.choose.choice([dtype, "int32"])
        low, high = (0, 0) if zeros is None else zeros
        zero = np.asarray(self.numbers.integers(low, high, shape, kind, endpoint=True))
        if kind == "int32" and axis is None and self.choose.random() < 0.15:
            zero = np.asarray(
                self.choose.choice([RANGES[dtype][0] - 7, RANGES[dtype][1] + 1, 300]), kind
            )  # 0.0 is none of the numbers then
        names = self._array("s", np.asarray(scale, np.float32)), self._array("z", zero)
        return Grid(*names, dtype, *ends, axis, self.choose.random() < 0.5)

    def _quantize(self, value: Value) -> tuple[Value, Grid]:
        tensor = self._tensor(value).numpy()
        finite = np.abs(tensor[np.isfinite(tensor)])
        size = float(finite.max(initial=0)) or 1.0
        grid = self._grid(size, tensor.shape, like=value.grid)
        return self._step("quantize", [value], 0, 255, grid=grid), grid

    def _dequantize(self, value: Value, grid: Grid) -> Value:
        scale = self.arrays[grid.scale].astype(np.float64)
        unit, (low, high), zero = round(math.log2(scale.min())), RANGES[grid.dtype], self.arrays[grid.zero].astype(int)
        most = max(int(high - zero.min()), int(zero.max() - low))
        return self._step("dequantize", [value], unit, most * float(scale.max()), grid=grid)

    def _rounded(self, value: Value) -> Value:
        """A value in Q/DQ form, most of the time; the integers may be moved before they are floats again."""
        if value.grid is not None and self.choose.random() < 0.7:
            return value
        if self.choose.random() < 0.1:
            return value
        integers, grid = self._quantize(value)
        if self._tensor(integers).ndim == 4 and grid.axis is None and self.choose.random() < 0.15:
            integers = self._step("flip", [integers], 0, 255, dim=2)
        return replace(self._dequantize(integers, grid), grid=grid)

    # Statements -----------------------------------------------------------------------------------------------------

    def _contraction(self, name: str, x: Value, shape: tuple[int, ...], **options: Any) -> Value:
        """A convolution or a linear layer, whose weight has that shape: integers, a grid, and perhaps a bias."""
        terms = math.prod(shape[1:])
        dtype = self.choose.choice(["int8", "int8", "int8", "uint8"])
        low, high = RANGES[dtype]
        if self.is_exact and terms * x.largest * 255 > 2.0 ** (x.unit + BITS):
            low, high = NARROW[dtype][1]
        axis = self.choose.choice([None, None, 0, 0, 0, 0, 0, 1])  # of the scales: along 1 they cannot be taken out
        zeros = None if self.choose.random() < 0.7 else (low, high)
        length = () if axis is None else (shape[axis],)
        grid = self._new_grid(0.5 / high, dtype, RANGES[dtype], axis, length, zeros)
        scale = self.arrays[grid.scale].astype(np.float64)
        unit = x.unit + round(math.log2(scale.min()))
        most = max(abs(low), high) if zeros is None else high - low
        largest = terms * x.largest * most * float(scale.max())
        bias = ""
        if self.choose.random() < 0.7:
            size = largest / math.sqrt(terms) / 4
            numbers = self.numbers.uniform(-size, size, shape[0])
            if self.is_exact:
                numbers = np.rint(numbers * 2.0**-unit) * 2.0**unit
            bias = self._array("b", numbers.astype(np.float32))
            largest += size + 2.0**unit
        weight = self._array("w", self.numbers.integers(low, high, shape, dtype, endpoint=True), 0.1)
        return self._step(name, [x], unit, largest, weight=weight, grid=grid, bias=bias, **options)

    def _conv2d(self, value: Value) -> Value | None:
        x = self._rounded(value)
        _, channels, height, width = self._tensor(x).shape
        size = self.choose.choice([1, 2, 3, 3, 3])
        keeps = size == 3 and self.choose.random() < 0.6
        padding, stride = (1, 1) if keeps else (self.choose.choice([0, 1]), self.choose.choice([1, 1, 2]))
        if min(height, width) + 2 * padding < size:
            return None
        out = channels if keeps and self.choose.random() < 0.7 else self.choose.choice([1, 3, 4, 8, 16, 17])
        groups = 1
        if self.choose.random() < 0.15:
            out = groups = channels
        shape = (out, channels // groups, size, size)
        return self._contraction("conv2d", x, shape, stride=stride, padding=padding, groups=groups)

    def _linear(self, value: Value) -> Value | None:
        x = self._rounded(value)
        k = self._tensor(x).shape[-1]
        out = k if self.choose.random() < 0.3 else self.choose.choice([1, 3, 8, 10, 16, 33])
        return self._contraction("linear", x, (out, k))

    def _partner(self, value: Value, is_joined: bool) -> Value | None:
        """Another value that can be added to it, or joined with it along the channels."""
        shape = list(self._tensor(value).shape)

        def fits(other: Value) -> bool:
            found = list(self._tensor(other).shape)
            return other is not value and (
                found == shape or (is_joined and found[:1] + found[2:] == shape[:1] + shape[2:])
            )

        others = [each for each in self.floats if fits(each)]
        return self.choose.choice(others) if others else None

    def _add(self, value: Value) -> Value | None:
        other = self._partner(value, is_joined=False)
        if other is None:
            return None
        a, b = (self._rounded(each) if self.choose.random() < 0.7 else each for each in (value, other))
        return self._step("add", [a, b], min(a.unit, b.unit), a.largest + b.largest)

    def _cat(self, value: Value) -> Value | None:
        other = self._partner(value, is_joined=True)
        if other is None or self._tensor(value).numel() + self._tensor(other).numel() > MOST_ELEMENTS:
            return None
        pair = [self._rounded(each) if self.choose.random() < 0.5 else each for each in (value, other)]
        return self._step("cat", pair, min(x.unit for x in pair), max(x.largest for x in pair))

    def _max_pool2d(self, x: Value) -> Value | None:
        size = self.choose.choice([2, 2, 3])
        if min(self._tensor(x).shape[2:]) < size:
            return None
        stride = self.choose.choice([1, 2])
        pooled = self._moved("max_pool2d", x, size=size, stride=stride)
        return self._times(pooled) if self.choose.random() < 0.2 else pooled

    def _avg_pool2d(self, x: Value) -> Value | None:
        if min(self._tensor(x).shape[2:]) < 2:
            return None
        return self._step("avg_pool2d", [x], x.unit - 2, 4 * x.largest)

    def _mean(self, x: Value) -> Value | None:
        count = math.prod(self._tensor(x).shape[2:])
        bits = math.log2(count)
        if self.is_exact and bits % 1:
            return None
        return self._step("mean", [x], x.unit - math.ceil(bits), count * x.largest)

    def _pad(self, x: Value) -> Value | None:
        number = 0.0 if self.choose.random() < 0.8 else 2.0 ** (x.unit + 2)
        amounts = tuple(self.choose.choice([0, 1, 1, 2]) for _ in range(2 * (self._tensor(x).ndim - 2) or 2))
        if self._tensor(x).numel() > MOST_ELEMENTS // 3:
            return None
        largest = max(x.largest, number)
        padded = self._step("pad", [x], x.unit, largest, amounts=amounts, value=number)
        return replace(padded, grid=None if number else x.grid)

    def _moved(self, name: str, x: Value, **options: Any) -> Value:
        """A movement, or what else has no other numbers than its operand."""
        return replace(self._step(name, [x], x.unit, x.largest, **options), grid=x.grid)

    def _flatten(self, x: Value) -> Value | None:
        return self._moved("flatten", x) if math.prod(self._tensor(x).shape[1:]) <= 300 else None

    def _slice(self, x: Value) -> Value | None:
        length = self._tensor(x).shape[1]
        if length < 2:
            return None
        return self._moved("slice", x, start=self.choose.randrange(length // 2), step=self.choose.choice([1, 2]))

    def _relu(self, x: Value) -> Value:
        return self._step("relu", [x], x.unit, x.largest)

    def _times(self, x: Value) -> Value:
        """A number of either sign: behind a negative one, the largest of a pool is the smallest."""
        number = self.choose.choice([-1.0, -2.0, 0.5, -0.25]) if self.is_exact else self.numbers.uniform(-2, 2)
        name = self._array("n", np.asarray(number, np.float32), 0.5)
        unit = x.unit + (round(math.log2(abs(number))) if self.is_exact else 0)
        return self._step("times", [x], unit, x.largest * abs(number), number=name)


Maker = Callable[[_Maker, Value], Value | None]
BOTH: tuple[Maker, ...] = (
    _Maker._add,
    _Maker._add,
    _Maker._cat,
    _Maker._relu,
    _Maker._slice,
    _Maker._times,
    _Maker._pad,
)
FOUR: tuple[Maker, ...] = (
    *(_Maker._conv2d,) * 8, *BOTH, *(_Maker._max_pool2d,) * 3, _Maker._avg_pool2d, _Maker._mean, _Maker._pad,
    _Maker._flatten, lambda maker, x: maker._moved("transpose", x), lambda maker, x: maker._moved("flip", x, dim=3),
)  # fmt: skip
TWO: tuple[Maker, ...] = (*(_Maker._linear,) * 6, *BOTH, lambda maker, x: maker._moved("flip", x, dim=1))
