"""The engine's own schedules: which rewrites turn the definition of a nest into the procedure that is run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

from ....errors import ScheduleError
from ...loop_ir.loops import Buffer, LoopKernel, Nest
from ...loop_ir.tree import Procedure, parallel, procedure
from ...loop_ir.wellformed import broken
from ...target import Target
from ..layout import nest_units
from ..rewrites import Rewrite, parallelise
from ..streaming import streamed
from .attention import attention_schedule
from .products import product_schedule
from .rows import row_schedule

Schedule = tuple[Rewrite, ...]
Own = Mapping[tuple[Nest, tuple[Buffer, ...]], Schedule]  # the user's own schedules, by nest and its buffers

# The first that knows a nest gives its schedule.
SCHEDULES: tuple[Callable[[Nest, Target, frozenset[int]], Schedule | None], ...] = (
    attention_schedule,
    product_schedule,
    row_schedule,
)


def chosen(kernel: LoopKernel, target: Target, own: tuple[Schedule | None, ...] = ()) -> tuple[Schedule | None, ...]:
    """The schedule of each nest of a kernel: the user's own where there is one, else the engine's, if it has one."""
    parts = zip(kernel.parts, streamed(kernel, target), own or (None,) * len(kernel.nests), strict=True)
    return tuple(
        schedule_of(nest, buffers, target, past_caches) if schedule is None else schedule
        for (nest, buffers, _), past_caches, schedule in parts
    )


@lru_cache(256)
def schedule_of(
    nest: Nest, buffers: tuple[Buffer, ...], target: Target, past_caches: frozenset[int]
) -> Schedule | None:
    """The rewrites for a nest, in code for a target; None if it has a contraction without tiles, which is stored then.

    A schedule is a proposal: the laws of the rewrites and the rules of procedures say whether it is one for this nest.

    Args:
        nest: what is computed.
        buffers: its arguments.
        target: the machine that it is made for.
        past_caches: the arguments that it writes past the caches.
    """
    proposals: list[Schedule | None] = []
    if all(each.extent for loop in nest.loops for each in (*nest.rows, *loop.columns)):  # else there is no order
        proposals += [schedule(nest, target, past_caches) for schedule in SCHEDULES]
    if not nest.has_sums:
        proposals += [(parallelise(*(row.name for row in nest.rows)),), ()]
    return next((each for each in proposals if each is not None and _is_legal(nest, buffers, each)), None)


def _is_legal(nest: Nest, buffers: tuple[Buffer, ...], schedule: Schedule) -> bool:
    try:
        return broken(scheduled(nest, buffers, schedule)) is None
    except ScheduleError:
        return False


@lru_cache(64)
def scheduled(nest: Nest, buffers: tuple[Buffer, ...], schedule: Schedule) -> Procedure:
    """The procedure after all steps of a schedule.

    Raises:
        ScheduleError: if a step would change what is computed (``MT603``).
    """
    found = procedure(nest, buffers)
    for rewrite in schedule:
        found = rewrite.apply(found)
    return found


def parallel_units(kernel: LoopKernel, target: Target, own: tuple[Schedule | None, ...] = ()) -> list[int]:
    """How many parts of each nest of a kernel can be run at the same time; 0 of one that has nothing to do."""
    found = []
    for (nest, buffers, _), schedule in zip(kernel.parts, chosen(kernel, target, own), strict=True):
        units = nest_units(nest, target)
        found.append(_units(nest, buffers, schedule) if units and schedule is not None else units)
    return found


@lru_cache(256)
def _units(nest: Nest, buffers: tuple[Buffer, ...], schedule: Schedule) -> int:
    return math.prod(each.extent for each in parallel(scheduled(nest, buffers, schedule)))


def units(kernel: LoopKernel, target: Target, own: tuple[Schedule | None, ...] = ()) -> int:
    """How many parts a kernel falls into: the range that `begin` and `end` of a call are taken from."""
    found = zip(parallel_units(kernel, target, own), kernel.phases, strict=True)
    return sum(count for count, phase in found if not phase)
