"""Ablation: the worth of each pass and each class of fusion, measured without it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import backends
from minitorch.graph import Graph
from minitorch.modes.tracing.program import Program
from minitorch.passes import Pass, Run, run_pipeline
from minitorch.tables import Table, Tabular

if TYPE_CHECKING:
    from minitorch.compiler.kernels.cost import FusedCost
    from minitorch.compiler.kernels.ledger import Ledger

Array = np.ndarray[Any, Any]

FEWEST_ROUNDS = 3


@dataclass(frozen=True)
class Variant:
    """A program without some passes or classes of fusion.

    Attributes:
        without: what is switched off: a pass or a class of fusion by its name, or several.
        meaning: the purpose of what is switched off, in a sentence; empty for several.
        seconds: the time of the fastest call.
        kernels: units of work: kernels and library calls, or nodes where nothing is fused.
        bytes: read and written by all of them.
        peak_bytes: the most memory alive at once, inputs included.
    """

    without: str
    meaning: str
    seconds: float
    kernels: int
    bytes: int
    peak_bytes: int


@dataclass(frozen=True, repr=False)
class Ablation(Tabular):
    """The variants of a program; the first one is complete."""

    name: str
    backend: str
    variants: tuple[Variant, ...]

    def _parts(self) -> list[Table | str]:
        whole = self.variants[0]
        width = max(len(variant.without) for variant in self.variants) + 2
        rows = [
            (
                *(each.without, f"{each.seconds * 1e6:.1f}", f"{each.seconds / whole.seconds:.2f}"),
                *(str(each.kernels), f"{each.bytes / 1e6:.3f}", f"{each.peak_bytes / 1e6:.3f}"),
            )
            for each in self.variants
        ]
        head = ("without", "us", "ratio", "kernels", "MB moved", "MB at peak")
        table = Table(f"{{:<{width}}}{{:>10}}{{:>8}}{{:>9}}{{:>11}}{{:>12}}", rows, head)
        return [f"{self.name} on backend {self.backend!r}", table]


def ablate(program: Program, arrays: Sequence[Array], seconds: float) -> Ablation:
    """Compile a program without each pass and each class of fusion, and measure all variants together.

    Args:
        program: compiled again for each variant, and not changed.
        arrays: its inputs; they are copied, as a call may write to them.
        seconds: the time of all measurements together.
    """
    variants = [_Built(program, *each) for each in _variants(program)]
    own = [np.array(array) for array in arrays]
    times: list[list[float]] = [[] for _ in variants]
    for variant in variants:
        variant.execute(own)
    end = time.perf_counter() + seconds
    order = list(range(len(variants)))
    shuffle = Random(0).shuffle
    while len(times[0]) < FEWEST_ROUNDS or time.perf_counter() < end:
        shuffle(order)  # in turns, so that a disturbance meets all; and never after the same one
        for number in order:
            begin = time.perf_counter()
            variants[number].execute(own)
            times[number].append(time.perf_counter() - begin)
    rows = [
        Variant(each.name, each.meaning, min(found), *each.counts) for each, found in zip(variants, times, strict=True)
    ]
    return Ablation(program.graph.name, program.backend, tuple(rows))


def _variants(program: Program) -> Iterator[tuple[str, str, Sequence[Pass], frozenset[str]]]:
    """The name of each variant, the purpose of what it lacks, its passes, and the classes of fusion that it lacks."""
    passes = [stage.applied for stage in program.pipeline]
    everything: frozenset[str] = frozenset()
    yield "nothing", "", passes, everything
    for name, meaning in {each.name: each.doc for each in passes}.items():
        yield f"pass: {name}", meaning, [each for each in passes if each.name != name], everything
    if passes:
        yield "all passes", "", [], everything
    if hasattr(program.compiled, "ledger"):
        from minitorch.compiler.fusion import FUSIONS  # loads LLVM

        for name, meaning in FUSIONS.items():
            yield f"fusion: {name}", meaning, passes, frozenset((name,))
        yield "all fusion", "", passes, frozenset(FUSIONS)


class Variation:
    """A program without some passes and classes of fusion; it is compiled when it is first run.

    Args:
        program: not changed.
        passes: those that are left, in order.
        without: the classes of fusion that it lacks.
        backend: what runs it; by default the program's own.

    Example:
        >>> import minitorch as mt
        >>> program, _ = mt.jit(lambda x: x.softmax(1)).program(mt.ones(64, 500))
        >>> passes = [stage.applied for stage in program.pipeline]
        >>> [len(Variation(program, passes, without).ledger.kernels) for without in (set(), {"shared rows"})]
        [1, 4]
    """

    def __init__(
        self, program: Program, passes: Sequence[Pass], without: Set[str] = frozenset(), backend: str | None = None
    ) -> None:
        self.program, self.passes, self.without = program, tuple(passes), without
        self.backend = backend or program.backend

    @cached_property
    def run(self) -> Run:
        """The graph before and after each pass."""
        return run_pipeline(self.program.graph, self.passes)

    @cached_property
    def execute(self) -> Callable[..., Any]:
        """The backend's executable, with one array per input of the program."""
        options = {"without": self.without} if self.without else {}
        return backends.get(self.backend)(self.run.graph, self.program.updates, **options)

    @cached_property
    def ledger(self) -> Ledger:
        """Its kernels, which are found without being compiled."""
        from minitorch.compiler.codegen.host import host
        from minitorch.compiler.kernels.ledger import ledger_of

        return ledger_of(self.run.graph, host(), self.without)

    @cached_property
    def cost(self) -> FusedCost:
        """The counts of its kernels, beside those of the operations as they were traced."""
        from minitorch.compiler.kernels.cost import fused_cost

        return fused_cost(self.ledger, self.program.graph, self.program.updates)


class _Built:
    """A variant, compiled."""

    def __init__(
        self, program: Program, name: str, meaning: str, passes: Sequence[Pass], without: frozenset[str]
    ) -> None:
        self.name, self.meaning = name, meaning
        variation = Variation(program, passes, without)
        self.execute = variation.execute
        self.counts = _counts(variation.run.graph, getattr(self.execute, "ledger", None))


def _counts(graph: Graph, schedule: Any) -> tuple[int, int, int]:
    """Kernels, bytes, and peak memory."""
    if schedule is None:
        cost = graph.cost()
        return cost.nodes, cost.bytes, cost.peak_bytes
    from minitorch.compiler.kernels.cost import fused_cost

    fused = fused_cost(schedule, graph)
    return fused.kernels, fused.bytes, fused.peak_bytes
