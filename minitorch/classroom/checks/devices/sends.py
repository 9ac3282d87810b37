"""Collectives as lists of sends: the judge carries them out, and counts chunks and steps."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from ...asks import devices as asks
from ...asks.devices import carry_out
from ..task import Task, Verdict, by_case

Group = list[int]
Case = tuple[str, tuple[Group]]


def in_a_row(steps: Any) -> int:
    """How many chunks are sent one after the other: of each step, those of its largest message."""
    return sum(max(map([send[0] for send in step].count, {send[0] for send in step}), default=0) for step in steps)


def _drawn(random: Random, count: int) -> Group:
    """The numbers of some devices, in any order."""
    return random.sample(range(4 * count), count)


def _about(arguments: tuple[Group]) -> str:
    return f"devices {arguments[0]}"


# --- all_gather -------------------------------------------------------------------------------------------------

FEW = "few bytes one after the other"
ALL_GATHER = {"two devices and four": 5, "any number of devices": 5, FEW: 5}


def _gathers(seed: int) -> list[Case]:
    random = Random(seed)
    return [
        *[("two devices and four", (_drawn(random, count),)) for count in (2, 4)],
        *[("any number of devices", (_drawn(random, count),)) for count in (1, 3, 6, random.choice((5, 7, 9)))],
        *[(FEW, (_drawn(random, count),)) for count in (4, 7)],
    ]


def _wrong_gather(part: str, case: tuple[Group], answer: Any) -> str | None:
    (group,), chunks = case, range(len(case[0]))
    own = {device: [chunk if chunk == at else None for chunk in chunks] for at, device in enumerate(group)}
    try:
        held = carry_out(answer, own)
    except ValueError as error:
        return str(error)
    for device, found in held.items():
        if None in found:
            return f"at the end device {device} does not have chunk {found.index(None)}"
        if (odd := next((chunk for chunk in chunks if found[chunk] != chunk), None)) is not None:
            return f"chunk {odd} of device {device} was added to: what arrives is complete, and is copied"
    if part == FEW and (sent := in_a_row(answer)) > len(group) - 1:
        return f"{sent} chunks are sent one after the other; {len(group) - 1} are enough if all send in each step"
    return None


all_gather = by_case(asks.all_gather, ALL_GATHER, _gathers, _wrong_gather, about=_about)

# --- all_reduce -------------------------------------------------------------------------------------------------

SUMS, BYTES, STEPS = "every sum is complete", "as few bytes as a ring", "few steps"
ALL_REDUCE = {SUMS: 10, BYTES: 10, STEPS: 10}


def _reductions(seed: int) -> list[Case]:
    random = Random(seed)
    return [(SUMS, (_drawn(random, count),)) for count in (2, 4, 8, 16)]  # the first that is wrong is told


def _wrong_sums(part: str, arguments: tuple[Group], answer: Any) -> str | None:
    (group,) = arguments
    try:
        held = carry_out(answer, {device: [10**at] * len(group) for at, device in enumerate(group)})
    except ValueError as error:
        return str(error)
    for device, chunks in held.items():
        for chunk, value in enumerate(chunks):
            counts = [int(digit) for digit in reversed(f"{value:0{len(group)}d}")]
            twice = next((at for at, count in enumerate(counts) if count > 1), None)
            if twice is not None or len(counts) > len(group):
                whose = group[(twice or 0) % len(group)]
                return f"in chunk {chunk} of device {device}, what device {whose} had is counted more than once"
            if 0 in counts:
                whose = group[counts.index(0)]
                return f"in chunk {chunk} of device {device}, what device {whose} had is missing"
    return None


_COMPLETE = by_case(asks.all_reduce, {SUMS: ALL_REDUCE[SUMS]}, _reductions, _wrong_sums, about=_about)


def _judge_reductions(cases: list[Case], answers: Any) -> Mapping[str, Verdict]:
    said = {**_COMPLETE.verdicts(cases, answers)}
    if said[SUMS] is not None:
        return dict.fromkeys(ALL_REDUCE, said[SUMS])
    for (_, (group,)), answer in zip(cases, answers, strict=True):
        count = len(group)
        sent, least, fewest = in_a_row(answer), 2 * (count - 1), 2 * (count.bit_length() - 1)
        if sent > least:
            reason = f"{_about((group,))}: {sent} chunks are sent one after the other, in a ring {least}"
            said[BYTES] = said.get(BYTES) or f"{reason}; send no chunk whose sum the other does not need"
        if len(answer) > fewest:
            reason = f"{_about((group,))}: {len(answer)} steps, and {fewest} are enough"
            said[STEPS] = said.get(STEPS) or f"{reason}; each step can halve the work that is left"
    return {part: said.get(part) for part in ALL_REDUCE}


all_reduce = Task(asks.all_reduce, ALL_REDUCE, _reductions, _judge_reductions)
