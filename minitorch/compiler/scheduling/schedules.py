"""The engine's own schedules: which rewrites turn the definition of a nest into the procedure that is run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

from ...errors import ScheduleError
from ..loop_ir.loops import Buffer, LoopKernel, Nest
from ..loop_ir.tree import Procedure, parallel, procedure
from ..target import Target
from .layout import nest_units
from .products import product_schedule
from .rewrites import Rewrite
from .rows import row_schedule

Schedule = tuple[Rewrite, ...]
Own = Mapping[tuple[Nest, tuple[Buffer, ...]], Schedule]  # the user's own schedules, by nest and its buffers

# The first that knows a nest gives its schedule.
SCHEDULES: tuple[Callable[[Nest, Target], Schedule | None], ...] = (product_schedule, row_schedule)


@lru_cache(256)
def schedule_of(nest: Nest, buffers: tuple[Buffer, ...], target: Target) -> Schedule | None:
    """The rewrites for a nest, in code for a target; None if it is emitted in another way.

    A schedule is a proposal: the laws of the rewrites say whether it is one for this nest.
    """
    if not all(each.extent for loop in nest.loops for each in (*nest.rows, *loop.columns)):
        return None  # without elements there are no iterations to put in order
    proposals = (schedule(nest, target) for schedule in SCHEDULES)
    return next((each for each in proposals if each is not None and _is_legal(nest, buffers, each)), None)


def _is_legal(nest: Nest, buffers: tuple[Buffer, ...], schedule: Schedule) -> bool:
    try:
        scheduled(nest, buffers, schedule)
    except ScheduleError:
        return False
    return True


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
    given = own or (None,) * len(kernel.nests)
    found = []
    for (nest, buffers, _), schedule in zip(kernel.parts, given, strict=True):
        units = nest_units(nest, target)
        if units and schedule is not None:
            units = math.prod(each.extent for each in parallel(scheduled(nest, buffers, schedule)))
        found.append(units)
    return found
