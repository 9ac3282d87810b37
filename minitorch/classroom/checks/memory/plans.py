"""Plans of an arena: an offset for each buffer, so that no two that live at the same time overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ...asks import memory as asks
from ...asks.plain import described
from ..golf import Golf, played
from ..task import Task, Verdict, cases_with

Buffer = tuple[int, int, int]  # KiB, the first step and the last in which it lives
Case = tuple[str, tuple[list[Buffer]]]


def meet(one: Buffer, other: Buffer) -> bool:
    """Whether two buffers live in the same step."""
    return one[1] <= other[2] and other[1] <= one[2]


def peak(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """The size of the arena."""
    return max((offset + size for offset, (size, _, _) in zip(offsets, buffers, strict=True)), default=0)


def in_gaps(buffers: Sequence[Buffer]) -> list[int]:
    """Offsets by best fit: one buffer after the other, each in the smallest gap that is large enough."""
    offsets: list[int] = []
    for buffer in buffers:
        busy = sorted(
            (offset, offset + other[0]) for offset, other in zip(offsets, buffers, strict=False) if meet(buffer, other)
        )
        at, gaps = 0, []
        for start, end in busy:
            if at + buffer[0] <= start:
                gaps.append((start - at, at))
            at = max(at, end)
        offsets.append(min(gaps)[1] if gaps else at)
    return offsets


def _about(arguments: tuple[list[Buffer]]) -> str:
    return f"buffers {arguments[0]}"


def wrong_plan(buffers: Sequence[Buffer], answer: Any) -> str | None:
    """Why offsets are no plan; None if they are one."""
    if type(answer) is not list or len(answer) != len(buffers) or not all(type(each) is int for each in answer):
        return f"{len(buffers)} offsets in a list were expected, whole numbers, and it is {described(answer)}"
    if min(answer, default=0) < 0:
        return f"buffer {answer.index(min(answer))} begins before the arena, at {min(answer)}"
    for i, one in enumerate(buffers):
        for j, other in enumerate(buffers[:i]):
            if meet(one, other) and answer[i] < answer[j] + other[0] and answer[j] < answer[i] + one[0]:
                return f"{_overlap(j, other, answer[j])} and {_overlap(i, one, answer[i])} overlap{_when(one, other)}"
    return None


def _wrong_offsets(arguments: tuple[list[Buffer]], answer: Any) -> str | None:
    reason = wrong_plan(*arguments, answer)
    return f"{reason}; {_about(arguments)}" if reason else None


def _overlap(number: int, buffer: Buffer, offset: int) -> str:
    size, first, last = buffer
    return f"buffer {number} (steps {first} to {last}, KiB {offset} to {offset + size})"


def _when(one: Buffer, other: Buffer) -> str:
    early, late = sorted((one, other), key=lambda buffer: buffer[1])
    if early[2] == late[1]:
        return f": step {late[1]} reads one for the last time while it writes the other, so both live in it"
    return f" in step {late[1]}"


# --- best_fit ---------------------------------------------------------------------------------------------------

BEST_FIT = {"a read and a write in one step": 5, "in any order": 5, "the smallest gap": 5}


def drawn(random: Random, count: int, steps: int) -> list[Buffer]:
    """Buffers in the order in which they begin."""
    found = []
    for _ in range(count):
        first = random.randrange(steps)
        last = min(steps - 1, first + random.choice((0, 1, 1, 2, 2, 3, 5)))
        found.append((random.choice((4, 6, 8, 10, 12, 16, 20, 24, 32)), first, last))
    return sorted(found, key=lambda buffer: buffer[1])


CHAIN: list[Buffer] = [(8, step, step + 1) for step in range(6)]
GAPS: list[Buffer] = [(8, 0, 1), (4, 0, 9), (4, 0, 1), (4, 0, 9), (4, 2, 3), (8, 2, 3)]
LATE_FIRST: list[Buffer] = [(8, 4, 6), (16, 0, 5), (4, 2, 3), (8, 1, 1), (16, 6, 7), (4, 0, 7)]


def _fits(seed: int) -> list[Case]:
    random = Random(seed)
    shuffled = drawn(random, 10, 7)
    random.shuffle(shuffled)
    return [
        ("a read and a write in one step", (CHAIN,)),
        ("a read and a write in one step", (drawn(random, 8, 6),)),
        ("in any order", (LATE_FIRST,)),
        ("in any order", (shuffled,)),
        ("the smallest gap", (GAPS,)),
        ("the smallest gap", (drawn(random, 10, 8),)),
    ]


def _wrong_fit(arguments: tuple[list[Buffer]], answer: Any) -> str | None:
    (buffers,) = arguments
    if reason := _wrong_offsets(arguments, answer):
        return reason
    right = in_gaps(buffers)
    if answer == right:
        return None
    if peak(buffers, answer) >= sum(size for size, _, _ in buffers) > peak(buffers, right):
        return f"the arena has {peak(buffers, answer)} KiB: nothing is used twice; buffers {buffers}"
    number, mine, best = next(
        (number, mine, best) for number, (mine, best) in enumerate(zip(answer, right, strict=True)) if mine != best
    )
    why = (
        "the gap there is larger, and best fit takes the smallest that is large enough"
        if mine < best
        else "another buffer is in the way only if both live in one step, and the smallest gap that fits is taken"
    )
    return f"buffer {number} begins at {mine}, and best fit puts it at {best}: {why}; buffers {buffers}"


best_fit = Task(asks.best_fit, BEST_FIT, _fits, cases_with(BEST_FIT, _wrong_fit, about=_about))

# --- plan -------------------------------------------------------------------------------------------------------

PLAN = {"no overlap": 10, "a small arena": 15}

HOLES: tuple[list[Buffer], ...] = (
    [
        (24, 0, 1), (10, 0, 2), (32, 0, 0), (16, 1, 3), (16, 2, 4), (10, 2, 3),
        (4, 3, 5), (20, 3, 3), (24, 4, 7), (20, 5, 6), (6, 6, 8), (32, 7, 8),
    ],
    [
        (12, 0, 0), (32, 1, 3), (16, 1, 1), (32, 2, 3), (12, 3, 4), (6, 4, 7),
        (16, 4, 5), (4, 4, 5), (12, 5, 8), (32, 5, 8), (6, 6, 8), (24, 7, 8),
    ],
    [
        (10, 0, 1), (16, 2, 2), (24, 2, 4), (4, 2, 3), (4, 3, 6), (10, 3, 3),
        (16, 4, 7), (6, 6, 8), (8, 6, 7), (6, 6, 7), (10, 7, 8), (24, 8, 8),
    ],
)  # fmt: skip
# Of the three arenas together. Start: nothing is used twice. Par: first fit in the order of the steps. Best: 66 and 80,
# the most that lives at once, and 48 for the third, of which 46 live at once; a search
# through all orders shows that no plan has 46.
ARENA = Golf("KiB", start=556, par=232, best=194)


def _plans(seed: int) -> list[Case]:
    random = Random(seed)
    found: list[Case] = [("no overlap", (drawn(random, count, 8),)) for count in (1, 6, 10, 14)]
    found.append(("no overlap", ([],)))
    for hole in HOLES:  # in another unit and later, so that no table of answers fits
        unit, later = random.randint(1, 4), random.randint(0, 3)
        found.append(("a small arena", ([(unit * size, first + later, last + later) for size, first, last in hole],)))
    return found


def _judge_plans(cases: list[Case], answers: Any) -> Mapping[str, Verdict]:
    said = cases_with(PLAN, _wrong_offsets, about=_about)(cases, answers)
    peaks = (
        -(-peak(buffers, answer) * hole[0][0] // buffers[0][0])
        for hole, (_, (buffers,)), answer in zip(HOLES, cases[-len(HOLES) :], answers[-len(HOLES) :], strict=True)
    )
    return played(said, "a small arena", ARENA, peaks, after=["no overlap"])


plan = Task(asks.plan, PLAN, _plans, _judge_plans)
