"""A program in Q/DQ form as data, and its definition: the steps one by one, in float32 or in float64.

In float32 it is the program that passes and compilers are given. In float64 no sum is rounded, so that the number
before each rounding to integers is known; the integers may be those that another run has made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import minitorch as mt
from minitorch import quantization as q

F = mt.nn.functional
Array = np.ndarray[Any, Any]
Options = Mapping[str, Any]


@dataclass(frozen=True)
class Grid:
    """Scale and zero point, by the names of their arrays, and the integers.

    Attributes:
        axis: of the channels; None if the whole tensor has one scale.
        widens: whether the zero point is cast to int32 before it is used, as quantised layers do.
    """

    scale: str
    zero: str
    dtype: str
    low: int
    high: int
    axis: int | None = None
    widens: bool = False


@dataclass(frozen=True)
class Step:
    """An operation, the places of its operands among all values, and its options."""

    name: str
    operands: tuple[int, ...] = ()
    options: Options = field(default_factory=dict)

    def __str__(self) -> str:
        given = [f"v{place}" for place in self.operands]
        return f"{self.name}({', '.join([*given, *(f'{name}={value}' for name, value in self.options.items())])})"


@dataclass(frozen=True)
class Program:
    """What is run.

    Attributes:
        seed: that it was made of.
        is_exact: whether all numbers and sums are numbers of float32, so that no order of sums changes them.
        arrays: its inputs and parameters, by name.
        given: the names of those that are arguments; it holds the others.
        steps: whose results are the values 0, 1, 2, ...
        results: the places of the values that are returned.
        largest: for each value, a bound of its absolute values and of the sums of absolute values in it.
    """

    seed: int
    is_exact: bool
    arrays: Mapping[str, Array]
    given: tuple[str, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    largest: tuple[float, ...]

    @property
    def rounded(self) -> tuple[int, ...]:
        """The places of the values that are quantised."""
        return tuple(place for place, step in enumerate(self.steps) if step.name == "quantize")

    def observed(self) -> Program:
        """The program that returns every quantised value, too."""
        return replace(self, results=tuple(dict.fromkeys([*self.results, *self.rounded])))

    def __str__(self) -> str:
        kinds = {name: f"{array.dtype}{list(array.shape)}" for name, array in self.arrays.items()}
        lines = [f"seed {self.seed}, {'exact' if self.is_exact else 'rounded'}"]
        lines += [f"  {name}: {kind}{', given' if name in self.given else ''}" for name, kind in kinds.items()]
        lines += [f"  v{place} = {step}" for place, step in enumerate(self.steps)]
        return "\n".join([*lines, f"  return {', '.join(f'v{place}' for place in self.results)}"])

    def arguments(self) -> list[mt.Tensor]:
        """A tensor for each argument."""
        return [mt.tensor(self.arrays[name].copy()) for name in self.given]

    def function(self) -> Callable[..., tuple[mt.Tensor, ...]]:
        """The program in float32, which holds tensors of its own."""
        held = {name: mt.tensor(each.copy()) for name, each in self.arrays.items() if name not in self.given}

        def program(*arguments: mt.Tensor) -> tuple[mt.Tensor, ...]:
            run = Evaluation({**held, **dict(zip(self.given, arguments, strict=True))})
            values = run.values(self.steps)
            return tuple([values[place] for place in self.results])

        return program


class Evaluation:
    """The steps of a program, one by one.

    Args:
        tensors: its inputs and parameters, by name.
        is_wide: whether sums are those of float64.
        integers: the results of quantisations, by place, where these are known.

    Attributes:
        numbers: what was rounded, in units of the scale, from the zero point, by place; in float64 alone.
    """

    def __init__(
        self, tensors: Mapping[str, mt.Tensor], is_wide: bool = False, integers: Mapping[int, mt.Tensor] | None = None
    ) -> None:
        self.tensors, self.is_wide, self.integers = tensors, is_wide, integers or {}
        self.numbers: dict[int, Array] = {}

    def values(self, steps: Sequence[Step]) -> list[mt.Tensor]:
        """All values of a program."""
        values: list[mt.Tensor] = []
        for step in steps:
            self.extend(values, step)
        return values

    def extend(self, values: list[mt.Tensor], step: Step) -> None:
        """Append the result of a step."""
        operands = [values[place] for place in step.operands]
        self._place = len(values)
        values.append(OPERATIONS[step.name](self, operands, step.options))

    def number(self, name: str) -> mt.Tensor:
        """A parameter, in float64 where this is wide."""
        return self.tensors[name].double() if self.is_wide else self.tensors[name]

    def quantized(self, x: mt.Tensor, grid: Grid) -> mt.Tensor:
        """Integers of numbers."""
        if not self.is_wide:
            return q.quantize(x, self._parameters(grid))
        scale, zero = self._placed(grid, x.ndim)
        units, point = (x / scale).numpy(), zero.numpy()

        def inside(number: Array) -> Array:
            return np.where(np.isnan(number), grid.high, np.clip(number + point, grid.low, grid.high))

        self.numbers[self._place] = inside(units)
        found = self.integers.get(self._place)
        return mt.tensor(inside(np.rint(units)).astype(grid.dtype)) if found is None else found

    def dequantized(self, x: mt.Tensor, grid: Grid) -> mt.Tensor:
        """The numbers that integers stand for."""
        if not self.is_wide:
            return q.dequantize(x, self._parameters(grid))
        scale, zero = self._placed(grid, x.ndim)
        return (x.double() - zero) * scale

    def _parameters(self, grid: Grid) -> q.QParams:
        zero = self.tensors[grid.zero]
        zero = zero.to(mt.int32) if grid.widens else zero
        return q.QParams(self.tensors[grid.scale], zero, getattr(mt, grid.dtype), grid.low, grid.high, grid.axis)

    def _placed(self, grid: Grid, ndim: int) -> tuple[mt.Tensor, mt.Tensor]:
        pair = self.number(grid.scale), self.number(grid.zero)
        shape = [-1 if axis == grid.axis else 1 for axis in range(ndim)]
        return pair if grid.axis is None else (pair[0].reshape(shape), pair[1].reshape(shape))


def _weights(run: Evaluation, options: Options) -> tuple[mt.Tensor, mt.Tensor | None]:
    weight = run.dequantized(run.tensors[options["weight"]], options["grid"])
    return weight, run.number(options["bias"]) if options["bias"] else None


def _conv2d(run: Evaluation, operands: list[mt.Tensor], options: Options) -> mt.Tensor:
    window = {name: options[name] for name in ("stride", "padding", "groups")}
    return F.conv2d(operands[0], *_weights(run, options), **window)


Operation = Callable[[Evaluation, list[mt.Tensor], Options], mt.Tensor]

OPERATIONS: dict[str, Operation] = {
    "input": lambda run, x, o: run.tensors[o["name"]] if o["is_bytes"] else run.number(o["name"]),
    "quantize": lambda run, x, o: run.quantized(x[0], o["grid"]),
    "dequantize": lambda run, x, o: run.dequantized(x[0], o["grid"]),
    "conv2d": _conv2d,
    "linear": lambda run, x, o: F.linear(x[0], *_weights(run, o)),
    "add": lambda run, x, o: x[0] + x[1],
    "cat": lambda run, x, o: mt.cat(x, 1),
    "max_pool2d": lambda run, x, o: F.max_pool2d(x[0], o["size"], o["stride"]),
    "avg_pool2d": lambda run, x, o: F.avg_pool2d(x[0], 2),
    "mean": lambda run, x, o: x[0].mean((2, 3)),
    "pad": lambda run, x, o: F.pad(x[0], o["amounts"], value=o["value"]),
    "flatten": lambda run, x, o: x[0].flatten(1),
    "transpose": lambda run, x, o: x[0].transpose(-1, -2),
    "flip": lambda run, x, o: x[0].flip(o["dim"]),
    "slice": lambda run, x, o: x[0][:, o["start"] :: o["step"]],
    "relu": lambda run, x, o: F.relu(x[0]),
    "times": lambda run, x, o: x[0] * run.number(o["number"]),
}
