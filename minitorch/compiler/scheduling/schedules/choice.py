"""The engine's own schedules: which rewrites turn the definition of a nest into the procedure that is run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

from ....errors import ScheduleError, ScheduleWarning
from ....ir import warn_user
from ...loop_ir.loops import Buffer, LoopKernel, Nest
from ...loop_ir.tree import Procedure, parallel, procedure
from ...loop_ir.wellformed import broken
from ...target import Target
from ..prepacking import prepacked
from ..rewrites import Rewrite, parallelise, prepack
from ..streaming import streamed
from .attention import attention_schedule, unskipped_schedule
from .decoded import decoded_schedule
from .dots import dot_schedule
from .few_rows import few_rows_schedule
from .products import product_schedule
from .rows import row_schedule

Schedule = tuple[Rewrite, ...]
Own = Mapping[tuple[Nest, tuple[Buffer, ...]], Schedule]  # the user's own schedules, by nest and its buffers

# The first that knows a nest, and is legal for it, gives its schedule; of (nest, target, past_caches).
SCHEDULES: tuple[Callable[..., Schedule | None], ...] = (
    attention_schedule,
    unskipped_schedule,
    few_rows_schedule,
    product_schedule,
    dot_schedule,
    decoded_schedule,
    row_schedule,
)


# What some of them are told of a nest's arguments: which are constant, and what numbers they hold.
KNOWING: dict[Callable[..., Schedule | None], tuple[str, ...]] = {
    few_rows_schedule: ("constants",),
    product_schedule: ("constants", "bounds"),
    dot_schedule: ("bounds",),
}


class Fallback(tuple[Rewrite, ...]):
    """A schedule that is taken since one of the engine's own, which knows the nest, is not legal for it.

    Attributes:
        reasons: for each schedule that is not legal, the law that it breaks.
    """

    reasons: tuple[str, ...] = ()

    def __new__(cls, rewrites: Schedule, reasons: tuple[str, ...]) -> Fallback:
        """The rewrites, with the reasons, of which the user is warned."""
        warn_user(
            f"a kernel is slow, since minitorch refuses a schedule of its own: {'; '.join(reasons)}. "
            "Its results are right. Please report it, with the program",
            ScheduleWarning,
        )
        made = super().__new__(cls, rewrites)
        made.reasons = reasons
        return made


def chosen(kernel: LoopKernel, target: Target, own: tuple[Schedule | None, ...] = ()) -> tuple[Schedule, ...]:
    """The schedule of each nest of a kernel: the user's own where there is one, else the engine's."""
    parts = zip(kernel.parts, streamed(kernel, target), own or (None,) * len(kernel.nests), strict=True)
    return tuple(
        schedule_of(nest, buffers, target, past_caches) if schedule is None else schedule
        for (nest, buffers, _), past_caches, schedule in parts
    )


@lru_cache(256)
def schedule_of(nest: Nest, buffers: tuple[Buffer, ...], target: Target, past_caches: frozenset[int]) -> Schedule:
    """The rewrites for a nest, in code for a target.

    A schedule is a proposal: the laws of the rewrites and the rules of procedures say whether it is one for this nest.
    The loops as they are defined are always one. Whatever takes the place of a schedule that is not legal is a
    `Fallback`.

    Args:
        nest: what is computed.
        buffers: its arguments.
        target: the machine that it is made for.
        past_caches: the arguments that it writes past the caches.
    """
    reasons: list[str] = []
    found = _first_legal(nest, buffers, target, past_caches, reasons)
    return Fallback(found, tuple(reasons)) if reasons else found


def _first_legal(
    nest: Nest, buffers: tuple[Buffer, ...], target: Target, past_caches: frozenset[int], reasons: list[str]
) -> Schedule:
    """The first legal one of the engine's schedules for a nest; the reasons against those before are added."""
    if all(each.extent for loop in nest.loops for each in (*nest.rows, *loop.columns)):  # else there is no order
        known = {
            "constants": frozenset(number for number, buffer in enumerate(buffers) if buffer.constant),
            "bounds": tuple((number, each.bounds) for number, each in enumerate(buffers) if each.bounds is not None),
        }
        for schedule in SCHEDULES:
            options = {name: known[name] for name in KNOWING.get(schedule, ()) if known[name]}
            proposal = schedule(nest, target, past_caches, **options)
            if proposal is not None and _is_legal(nest, buffers, proposal, reasons):
                return _prepacked(nest, buffers, proposal)
    plain = (parallelise(*(row.name for row in nest.rows)),)
    return plain if _is_legal(nest, buffers, plain, []) else ()


def _prepacked(nest: Nest, buffers: tuple[Buffer, ...], schedule: Schedule) -> Schedule:
    """A schedule that packs constants once, when the program is loaded, and not in every call."""
    if not any(buffer.constant for buffer in buffers):
        return schedule
    packs = [str(each.arguments()["into"]) for each in schedule if each.name == "pack"]
    return (*schedule, *map(prepack, prepacked(scheduled(nest, buffers, schedule), packs)))


def _is_legal(nest: Nest, buffers: tuple[Buffer, ...], schedule: Schedule, reasons: list[str]) -> bool:
    """Whether a schedule can be carried out; if it cannot, the reason is added to the others."""
    try:
        fault = broken(scheduled(nest, buffers, schedule))
    except ScheduleError as error:
        fault = str(error).partition("\n")[0]
    reasons += [fault] if fault is not None else []
    return fault is None


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


def procedures(kernel: LoopKernel, target: Target, own: tuple[Schedule | None, ...] = ()) -> list[Procedure]:
    """The loops of each nest of a kernel, in the order in which they run."""
    schedules = chosen(kernel, target, own)
    return [scheduled(nest, buffers, each) for (nest, buffers, _), each in zip(kernel.parts, schedules, strict=True)]


def parallel_units(kernel: LoopKernel, target: Target, own: tuple[Schedule | None, ...] = ()) -> list[int]:
    """How many parts of each nest of a kernel can be run at the same time; 0 of one that has nothing to do."""
    schedules = chosen(kernel, target, own)
    return [_units(nest, buffers, each) for (nest, buffers, _), each in zip(kernel.parts, schedules, strict=True)]


@lru_cache(256)
def _units(nest: Nest, buffers: tuple[Buffer, ...], schedule: Schedule) -> int:
    if not all(row.extent for row in nest.rows):
        return 0
    return math.prod(each.extent for each in parallel(scheduled(nest, buffers, schedule)))


def units(kernel: LoopKernel, target: Target, own: tuple[Schedule | None, ...] = ()) -> int:
    """How many parts a kernel falls into: the range that `begin` and `end` of a call are taken from."""
    found = zip(parallel_units(kernel, target, own), kernel.phases, strict=True)
    return sum(count for count, phase in found if not phase)
