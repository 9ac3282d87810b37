"""Merging after fusion: independent kernels become one, and small kernels become phases of a larger one.

Fusion joins roots over the same rows. That leaves independent kernels, such as the updates of fifty parameters, and
small kernels that wait for a large one, such as the mean of a batch's losses. Each call of a kernel costs some
microseconds, and each wait for all threads more.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

from ...ir import Node
from ..loop_ir.loops import LoopKernel
from .kernel import Kernel

LONGEST_NAME = 36
SMALL = 1 << 15  # FLOPs plus iterations of a kernel that is not worth a call; raising it moves more work to one thread


def merge_siblings(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Make one kernel of kind K5 of independent pointwise kernels (horizontal fusion).

    The *depth* of a kernel is its longest path to the end. Kernels of one depth are independent, whatever their shapes:
    the updates of all parameters by an optimiser are the case that matters.
    """
    depth: dict[int, int] = {}
    users: dict[Node, list[int]] = {}
    for number, kernel in enumerate(kernels):
        for node in kernel.reads:
            users.setdefault(node, []).append(number)
    for number in range(len(kernels) - 1, -1, -1):
        below = [depth[user] + 1 for node in kernels[number].writes for user in users.get(node, ())]
        depth[number] = max(below, default=0)
    levels: dict[int, list[int]] = {}
    for number, kernel in enumerate(kernels):
        if kernel.kind == "K1":
            levels.setdefault(depth[number], []).append(number)
    level_of = {number: tuple(level) for level in levels.values() for number in level}
    return _in_order(kernels, [level_of.get(number, (number,)) for number in range(len(kernels))])


def _in_order(kernels: Sequence[Kernel], levels: Sequence[tuple[int, ...]]) -> list[Kernel]:
    """Return the kernels with each level merged, near their original order, so that values do not wait in memory.

    A level comes when its last kernel would have come, or before the first that reads one of it.
    """
    made = {node: number for number, kernel in enumerate(kernels) for node in kernel.writes}
    done: set[tuple[int, ...]] = set()
    result: list[Kernel] = []
    for number, level in enumerate(levels):
        pending = [level] if number == level[-1] else []
        while pending:
            at = pending[-1]
            reads = {made[node] for each in at for node in kernels[each].reads if node in made}
            missing = [levels[each] for each in sorted(reads) if levels[each] not in done]
            if at not in done and missing:
                pending += missing
                continue
            pending.pop()
            if at not in done:
                done.add(at)
                own = [kernels[each] for each in at]
                result.append(_side_by_side(own) if len(own) > 1 else own[0])
    return result


def _side_by_side(kernels: Sequence[Kernel]) -> Kernel:
    name = f"{kernels[0].name.split('_')[0]}_{len(kernels)}_side_by_side"
    return _together(kernels, name, "K5", tuple(0 for _ in kernels))


def merge_small(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Make small kernels later phases of a loop kernel before them.

    A kernel can move up to the last one that it reads from.
    """
    groups: list[list[Kernel]] = []
    ends: list[int] = []  # the phase after the last one of a group
    firsts: list[list[int]] = []  # the first phase of each kernel of a group
    made: dict[Node, int] = {}  # the group that writes a value, by its place
    is_run: list[bool] = []  # whether the group at that place has units of work, excluding later phases
    for kernel in kernels:
        place = max((made[node] for node in kernel.reads if node in made), default=0)
        while place < len(groups) and not is_run[place]:
            place += 1
        rounds = 0 if kernel.loops is None else kernel.loops.rounds
        if kernel.loops is None or rounds > SMALL or kernel.flops + rounds > SMALL:
            place = len(groups)
        if place == len(groups):
            groups.append([])
            firsts.append([])
            ends.append(0)
            is_run.append(kernel.loops is not None and kernel.loops.is_run)
        groups[place].append(kernel)
        firsts[place].append(ends[place])
        ends[place] += kernel.loops.phases[-1] + 1 if kernel.loops else 0
        made |= dict.fromkeys(kernel.writes, place)
    return [
        _in_phases(group, first) if len(group) > 1 else group[0] for group, first in zip(groups, firsts, strict=True)
    ]


def _in_phases(kernels: Sequence[Kernel], first_phases: Sequence[int]) -> Kernel:
    """Return several kernels as one, of the kind of the last that has more iterations than all before it."""
    name, kind, rounds = kernels[0].name, kernels[0].kind, 0
    for number, kernel in enumerate(kernels):
        assert kernel.loops is not None
        if number and not name.endswith("..."):
            longer = f"{name} then {kernel.name.partition('_')[2]}"
            name = longer if len(longer) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 9]} then ..."
        if kernel.loops.rounds > rounds:
            kind = kernel.kind
        rounds += kernel.loops.rounds
    return _together(kernels, name, kind, first_phases)


def _together(kernels: Sequence[Kernel], name: str, kind: str, first_phases: Sequence[int]) -> Kernel:
    """Return several kernels as one, with given first phases."""
    loops = [kernel.loops for kernel in kernels if kernel.loops is not None]
    begins = list(accumulate((len(kernel.buffers) for kernel in kernels), initial=0))
    phases: list[dict[Node, None]] = [{} for _ in range(max(first_phases) + 1)]
    for kernel, first in zip(kernels, first_phases, strict=True):
        phases += [{} for _ in range(first + len(kernel.phases) - len(phases))]
        for number, nodes in enumerate(kernel.phases, first):
            phases[number] |= dict.fromkeys(nodes)
    writes = dict.fromkeys(chain.from_iterable(kernel.writes for kernel in kernels))
    reads = dict.fromkeys(chain.from_iterable(kernel.reads for kernel in kernels))
    return Kernel(
        name,
        kind,
        tuple(map(tuple, phases)),
        tuple(node for node in reads if node not in writes),
        tuple(writes),
        kernels[0].target,
        LoopKernel(
            "kernel",
            tuple(chain.from_iterable(each.buffers for each in loops)),
            tuple(chain.from_iterable(each.nests for each in loops)),
            tuple(start + begin for each, begin in zip(loops, begins, strict=False) for start in each.starts),
            tuple(phase + first for each, first in zip(loops, first_phases, strict=True) for phase in each.phases),
        ),
        tuple(chain.from_iterable(kernel.buffers for kernel in kernels)),
    )
