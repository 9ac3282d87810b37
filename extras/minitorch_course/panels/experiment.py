"""`Experiment`: a function at one size, some passes and classes of fusion switched off; its counts and its time.

Everything is the engine's own: the passes of the compiling backend, its ledger, its costs, its machine code. The
experiment only chooses what is switched off, as `f.ablate` does, and holds the stopwatch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from minitorch.backends import DEFAULT, get_num_threads, passes_for, set_num_threads
from minitorch.compiler.fusion import FUSIONS
from minitorch.dtypes import as_dtype
from minitorch.graph.cost import Traffic, in_units
from minitorch.interpreters import interpreting
from minitorch.modes.tracing.program import Program
from minitorch.modes.ways_in.jit import jit
from minitorch.passes import Pass
from minitorch.tensor import Tensor, with_value
from minitorch_checking.ablation import Variation
from minitorch_inspect.plots.plot import duration
from minitorch_profiler.breakeven import eagerly

from ..stopwatch import Comparison, compare

Shape = Sequence[str | int]

PASSES: dict[str, Pass] = {each.name: each for each in passes_for(DEFAULT)}

MOST_MEMORY = 2**30  # bytes alive at once; raising it lets the reader wait, or run out of memory
MOST_TRAFFIC = 2**31  # bytes that the operations move one by one; raising it makes a change take seconds
MOST_FLOPS = 10**10  # likewise
ROUNDS = 5  # of the stopwatch; fewer than elsewhere, as somebody waits
EAGER, WHOLE, CHOSEN = "eager", "all on", "as set"


class ImpossibleError(ValueError):
    """Controls that cannot be tried; the message says why."""


@dataclass(frozen=True)
class Controls:
    """What the controls of a panel say.

    Attributes:
        sizes: by name.
        dtype: of the arguments.
        threads: of the engine.
        passes, fusions: the names of those that are switched off.
    """

    sizes: Mapping[str, int]
    dtype: str = "float32"
    threads: int = 1
    passes: frozenset[str] = frozenset()
    fusions: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is switched off."""
        return not self.passes and not self.fusions

    def __str__(self) -> str:
        sizes = [f"{name} = {size:,}" for name, size in self.sizes.items()]
        threads = f"{self.threads} thread{'s' if self.threads != 1 else ''}"
        off = [f"without {name}" for name in (*sorted(self.passes), *sorted(self.fusions))]
        return ", ".join([*sizes, self.dtype, threads, *off])


@dataclass(frozen=True)
class Subject:
    """A function of tensors, and the shapes of its arguments.

    Attributes:
        function: what is traced.
        shapes: of its arguments; a name stands for a size that can be changed.
    """

    function: Callable[..., Any]
    shapes: tuple[Shape, ...]
    _traced: dict[tuple[Any, ...], tuple[Program, list[np.ndarray[Any, Any]]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def traced(self, controls: Controls) -> tuple[Program, list[np.ndarray[Any, Any]]]:
        """The program at these sizes, and its inputs; that of the last sizes is kept.

        Raises:
            ImpossibleError: if the arguments are too large for a panel.
            Exception: whatever the function raises for arguments of these sizes.
        """
        key = (*controls.sizes.items(), controls.dtype)
        if key not in self._traced:
            args = arguments(self.shapes, controls)
            found = jit(self.function, backend="interpret").program(*args)
            self._traced.clear()
            self._traced[key] = found
        return self._traced[key]


def arguments(shapes: Sequence[Shape], controls: Controls) -> list[Tensor]:
    """Random arguments of these shapes; the random state of the notebook stays what it is.

    Raises:
        ImpossibleError: if they are too large for a panel.

    Example:
        >>> [each.shape for each in arguments([("n", 3), ("n",)], Controls({"n": 2}))]
        [(2, 3), (2,)]
    """
    dtype = as_dtype(controls.dtype)
    sizes = [tuple(controls.sizes[each] if isinstance(each, str) else each for each in shape) for shape in shapes]
    needed = sum(math.prod(shape) * dtype.itemsize for shape in sizes)
    _at_most(needed, MOST_MEMORY, "B", "the arguments take")
    numbers = np.random.default_rng(0)
    return [with_value(numbers.standard_normal(shape, np.float32).astype(dtype.numpy)) for shape in sizes]


def _at_most(number: int, most: int, unit: str, what: str) -> None:
    if number > most:
        raise ImpossibleError(f"{what} {in_units(number, unit)}, and a panel tries {in_units(most, unit)} at most")


@dataclass(frozen=True)
class Experiment:
    """A program as the controls want it: counted at once, compiled and timed when it is asked for.

    Raises:
        ImpossibleError: if it is too large for a panel.

    Example:
        >>> import minitorch as mt
        >>> softmax = Subject(lambda x: x.softmax(1), (("rows", "columns"),))
        >>> found = Experiment(softmax, Controls({"rows": 64, "columns": 500}, fusions=frozenset(["shared rows"])))
        >>> found.whole.cost.kernels, found.chosen.cost.kernels, found.chosen.cost.bytes
        (1, 4, 769024)
    """

    subject: Subject
    controls: Controls

    def __post_init__(self) -> None:
        cost = self.program.graph.cost()
        _at_most(cost.peak_bytes, MOST_MEMORY, "B", "one by one, the operations hold")
        _at_most(cost.bytes, MOST_TRAFFIC, "B", "one by one, the operations move")
        _at_most(cost.flops, MOST_FLOPS, "", "the FLOPs are")

    @property
    def program(self) -> Program:
        """The traced program."""
        return self.subject.traced(self.controls)[0]

    @cached_property
    def whole(self) -> Variation:
        """All passes and classes of fusion."""
        return self._without(Controls({}))

    @cached_property
    def chosen(self) -> Variation:
        """Those that the controls leave."""
        return self.whole if self.controls.is_whole else self._without(self.controls)

    def _without(self, controls: Controls) -> Variation:
        passes = [each for each in passes_for(DEFAULT) if each.name not in controls.passes]
        return Variation(self.program, passes, controls.fusions, DEFAULT)

    @cached_property
    def costs(self) -> dict[str, tuple[int, Traffic, int]]:
        """Units of work, traffic and peak memory of each contender."""
        unfused = self.whole.cost.unfused
        found: dict[str, tuple[int, Traffic, int]] = {EAGER: (unfused.nodes, unfused, unfused.peak_bytes)}
        for name, variation in self.compiled.items():
            cost = variation.cost
            found[name] = cost.kernels, cost, cost.peak_bytes
        return found

    @property
    def compiled(self) -> dict[str, Variation]:
        """The compiled contenders: two, if something is switched off."""
        return {WHOLE: self.whole} | ({} if self.controls.is_whole else {CHOSEN: self.chosen})

    @cached_property
    def times(self) -> Comparison:
        """The contenders, measured in turns."""
        program, arrays = self.subject.traced(self.controls)
        before = get_num_threads()
        set_num_threads(self.controls.threads)
        try:
            own = [np.array(array) for array in arrays]  # a program may write to its inputs
            eager = eagerly(program.graph)
            contenders: dict[str, Callable[[], Any]] = {EAGER: lambda: eager(own)}
            for name, variation in self.compiled.items():
                contenders[name] = _called(variation.execute, [np.array(array) for array in arrays])
            with interpreting(None):
                return compare(contenders, rounds=ROUNDS)
        finally:
            set_num_threads(before)

    @property
    def verdict(self) -> str:
        """A sentence on the times, of the stopwatch."""
        if self.controls.is_whole:
            return self.times.verdict(WHOLE, EAGER)
        return self.times.verdict(CHOSEN, WHOLE)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The counts and times as text: a title, then one for each contender."""
        titles = ("kernels, or operations", "read", "written", "peak memory", "time", "GB/s", "GFLOP/s")
        columns = []
        for name, (units, cost, peak) in self.costs.items():
            seconds = self.times[name].seconds
            columns.append((
                str(units), in_units(cost.bytes_read, "B"), in_units(cost.bytes_written, "B"), in_units(peak, "B"),
                duration(seconds), f"{cost.bytes / seconds / 1e9:.1f}", f"{cost.flops / seconds / 1e9:.1f}",
            ))  # fmt: skip
        return list(zip(titles, *columns, strict=True))

    def parts(self) -> Iterator[tuple[str, int, int, int]]:
        """What is counted without each pass and each class of fusion: a name, kernels, bytes, peak memory.

        The first row has everything. Rows that do not differ from it are left out.
        """
        whole = _counts(self.whole)
        yield ("nothing", *whole)
        for name in PASSES:
            if (found := _counts(self._without(Controls({}, passes=frozenset([name]))))) != whole:
                yield (f"pass: {name}", *found)
        for name in FUSIONS:
            if (found := _counts(self._without(Controls({}, fusions=frozenset([name]))))) != whole:
                yield (f"fusion: {name}", *found)


def _counts(variation: Variation) -> tuple[int, int, int]:
    cost = variation.cost
    return cost.kernels, cost.bytes, cost.peak_bytes


def _called(execute: Callable[..., Any], arrays: list[np.ndarray[Any, Any]]) -> Callable[[], Any]:
    return lambda: execute(arrays)
