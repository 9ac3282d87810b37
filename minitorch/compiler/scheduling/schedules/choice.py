"""The engine's own schedules: which rewrites turn the definition of a nest into the procedure that is run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import repeat
from operator import attrgetter

from ....errors import ScheduleError
from ....packages import load
from ...loop_ir.loops import Buffer, LoopKernel, Nest
from ...loop_ir.origins import at_origin
from ...loop_ir.tree import Procedure, parallel, procedure
from ...loop_ir.wellformed import beyond_lengths, broken
from ...target import Target
from ..rewrite import Rewrite
from ..rewrites import parallelise
from ..streaming import streamed
from . import Facts
from .rows import row_schedule

Schedule = tuple[Rewrite, ...]
Own = Mapping[tuple[Nest, tuple[Buffer, ...]], Schedule]  # the user's own schedules, by nest and its buffers
Row = Callable[[Nest, Target, Facts], Schedule | None]


def _later(place: str, may_fit: Callable[[Nest], object]) -> Row:
    """Return a function ``module:name`` of this folder, which is loaded for the first nest that it may fit."""
    module, _, name = place.partition(":")

    def schedule(nest: Nest, target: Target, facts: Facts) -> Schedule | None:
        if not may_fit(nest):
            return None
        found: Schedule | None = getattr(load(f"{__package__}.{module}"), name)(nest, target, facts)
        return found

    return schedule


HAS_SUMS, HAS_TOTAL = attrgetter("has_sums"), attrgetter("total")

# The first that knows a nest, and is legal for it, gives its schedule.
SCHEDULES: tuple[Row, ...] = (
    _later("attention:attention_schedule", HAS_SUMS),
    _later("products:product_schedule", HAS_TOTAL),
    _later("dots:dot_schedule", HAS_TOTAL),
    _later("decoded:decoded_schedule", HAS_TOTAL),
    row_schedule,
)


@dataclass(frozen=True)
class Scheduled:
    """A nest of a kernel, and its schedule.

    Attributes:
        nest: the loop nest, with indices relative to each buffer's first element in use.
        schedule: the rewrites.
        procedure: the loops after them.
        units: how many parts can run at the same time; 0 without work.
        refused: for each of the engine's schedules that knows the nest and is not legal for it, the law that it breaks.
        start: the place of its first buffer in the kernel.
        first: by buffer, the first element in use, where that is not 0.
        phase: 0, or the phase that it waits for.
    """

    nest: Nest
    schedule: Schedule
    procedure: Procedure
    units: int
    refused: tuple[str, ...] = ()
    start: int = 0
    first: Mapping[int, int] = field(default_factory=dict)
    phase: int = 0

    @property
    def is_as_defined(self) -> bool:
        """Whether the loops are those of the definition, at most with parallel rows."""
        return all(each.name == "parallelise" for each in self.schedule)


def scheduled(kernel: LoopKernel, target: Target, own: tuple[Schedule | None, ...] = ()) -> tuple[Scheduled, ...]:
    """Schedule the nests of a kernel: by the user's schedule of a nest where it has one, else by the engine's."""
    found = []
    parts = zip(kernel.parts, kernel.phases, streamed(kernel, target), own or repeat(None), strict=False)
    for (nest, buffers, start), phase, past_caches, rewrites in parts:
        moved, first = at_origin(nest)
        one = schedule_of(moved, buffers, target, past_caches, rewrites)
        found.append(replace(one, start=start, first=first, phase=phase))
    return tuple(found)


@lru_cache(256)
def schedule_of(
    nest: Nest,
    buffers: tuple[Buffer, ...],
    target: Target,
    past_caches: frozenset[int],
    own: Schedule | None = None,
) -> Scheduled:
    """Schedule a nest, in code for a target.

    A schedule is a proposal: the laws of the rewrites and the rules of procedures say whether it is one for this nest.
    The loops as they are defined are always one.

    Args:
        nest: the loop nest.
        buffers: its arguments.
        target: the machine that it is made for.
        past_caches: the arguments that it writes past the caches.
        own: the user's schedule.
    """
    reasons: list[str] = []
    if own is not None:
        schedule, found = own, applied(nest, buffers, own)
    else:
        schedule, found = _first_legal(nest, buffers, target, past_caches, reasons)
    is_empty = not all(row.extent for row in nest.rows)
    count = 0 if is_empty else math.prod(each.extent for each in parallel(found))
    return Scheduled(nest, schedule, found, count, tuple(reasons))


def _first_legal(
    nest: Nest, buffers: tuple[Buffer, ...], target: Target, past_caches: frozenset[int], reasons: list[str]
) -> tuple[Schedule, Procedure]:
    """Return the engine's first legal schedule, and its loops; add the reasons against those before it."""
    if all(each.extent for loop in nest.loops for each in (*nest.rows, *loop.columns)):  # else they have no order
        constants = frozenset(number for number, buffer in enumerate(buffers) if buffer.constant)
        bounds = tuple((number, each.bounds) for number, each in enumerate(buffers) if each.bounds is not None)
        facts = Facts(past_caches, constants, bounds)
        for schedule in SCHEDULES:
            legal = _legal(nest, buffers, partial(schedule, nest, target, facts), reasons)
            if legal is not None:
                return _prepacked(*legal) if constants else legal
    plain = (parallelise(*(row.name for row in nest.rows)),)
    return _legal(nest, buffers, lambda: plain, []) or ((), procedure(nest, buffers))


def _legal(
    nest: Nest, buffers: tuple[Buffer, ...], propose: Callable[[], Schedule | None], reasons: list[str]
) -> tuple[Schedule, Procedure] | None:
    """Return a schedule and the loops after it; None if there is none that is legal, after adding the reason."""
    try:
        schedule = propose()
        if schedule is None:
            return None
        found = applied(nest, buffers, schedule)
        fault = broken(found) or _beyond(nest, buffers, found)
        if fault is None:
            return schedule, found
    except ScheduleError as error:
        fault = str(error).partition("\n")[0]
    reasons.append(fault)
    return None


def _beyond(nest: Nest, buffers: tuple[Buffer, ...], found: Procedure) -> str | None:
    """Return an access beyond the lengths that a call gives which the definition has not; None without any."""
    accesses = beyond_lengths(found)
    added = accesses.keys() - beyond_lengths(procedure(nest, buffers)).keys() if accesses else ()
    return next((f"memory ends at the length of a call, but there is {accesses[each]}" for each in added), None)


def _prepacked(schedule: Schedule, found: Procedure) -> tuple[Schedule, Procedure]:
    """Return a schedule that packs constants once, when the program is loaded, instead of in every call."""
    from ..prepacking import prepack, prepacked

    packs = [str(each.arguments()["into"]) for each in schedule if each.name == "pack"]
    names, found = prepacked(found, packs)
    return (*schedule, *map(prepack, names)), found


def applied(nest: Nest, buffers: tuple[Buffer, ...], schedule: Schedule) -> Procedure:
    """Return the loops of a nest after all steps of a schedule.

    Raises:
        ScheduleError: if a step would change what is computed (``MT603``).
    """
    found = procedure(nest, buffers)
    for rewrite in schedule:
        found = rewrite.apply(found)
    return found


def units(parts: Iterable[Scheduled]) -> int:
    """Return how many parts a kernel falls into: the range that `begin` and `end` of a call are taken from."""
    return sum(part.units for part in parts if not part.phase)
