"""A user's schedule for a kernel: checked by the laws, and compiled once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ...errors import ScheduleError
from ..loop_ir.tree import Allocate, loops, procedure, statements
from ..scheduling.rewrites import Rewrite, refused
from ..scheduling.schedules.choice import Own, Schedule
from .kernel import Kernel


def own_schedule(kernel: Kernel, rewrites: Schedule, nest: int = 0) -> Own:
    """Return the schedule of one nest of a kernel, for `minitorch.compiler.kernels.ledger.ledger_of`.

    Raises:
        ScheduleError: if a step would change what is computed, or cannot be carried out.
    """
    if kernel.loops is None:
        raise refused(f"{kernel.name} is run by NumPy", "a schedule is one of loops")
    if not 0 <= nest < len(kernel.loops.nests):
        raise refused(
            f"{kernel.name} has no nest {nest}", f"its nests have the numbers 0 to {len(kernel.loops.nests) - 1}"
        )
    definition, buffers, _ = list(kernel.loops.parts)[nest]
    made = procedure(definition, buffers)
    lines = ", ".join(dict.fromkeys(str(node.source) for node in kernel.nodes if node.source))
    names: set[str] = set()  # also of loops of one iteration, which are left out: steps may name them
    # The engine's schedules name loops that are left out, too: a step of one may be mixed here with other steps.
    vanished = {name for each in replace(kernel, own=()).schedule.nests[nest] for name in _mentioned(each)}
    for number, rewrite in enumerate(rewrites, 1):
        names |= {each.variable.name for each in loops(made.body)}
        names |= {each.local.name for each in statements(made.body) if isinstance(each, Allocate)}
        try:
            unknown = rewrite.names - names
            before, made = made, made if unknown - vanished else rewrite(made)
            if unknown and made == before:
                raise refused(f"there is no {_list(unknown)}", f"a step names what there is: {_list(names)}")
            names |= _mentioned(rewrite)
        except ScheduleError as error:
            error.locate(f"step {number} of {len(rewrites)}, {rewrite}, for {kernel.name}: {lines}")
            raise
    own: list[Schedule | None] = [None] * len(kernel.loops.nests)
    own[nest] = rewrites
    assert replace(kernel, own=tuple(own)).llvm
    return {(definition, buffers): rewrites}


def _mentioned(rewrite: Rewrite) -> set[str]:
    return set(re.findall(r"'(\w+)'", rewrite.text))


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
