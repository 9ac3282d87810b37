"""Checkpoints: which activations of a chain of layers are kept, and which are computed again on the way back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any

from ...asks import memory as asks
from ...asks.plain import described
from ..golf import Golf, played
from ..task import Task, Verdict, cases_with

Case = tuple[str, tuple[list[int], list[int], int]]  # sizes, costs, the budget

CHECKPOINTS = {"within the budget": 12, "little is computed again": 18}


def needed(sizes: Sequence[int], kept: Collection[int]) -> tuple[int, int]:
    """What the kept activations take, and the largest run of activations between two of them."""
    total = run = most = 0
    for layer, size in enumerate(sizes):
        if layer in kept:
            total, run = total + size, 0
        else:
            run += size
            most = max(most, run)
    return total, most


def least(sizes: Sequence[int]) -> int:
    """The smallest peak that any choice has."""
    choices = range(1 << len(sizes))
    return min(sum(needed(sizes, [i for i in range(len(sizes)) if bits >> i & 1])) for bits in choices)


HOLES: tuple[tuple[list[int], list[int], int], ...] = (
    (
        [
            6, 6, 2, 4, 8, 6, 6, 4, 6, 4, 8, 4, 8, 4, 4, 4, 2, 8, 4, 8,
            8, 4, 4, 2, 2, 4, 6, 8, 2, 4, 6, 4, 8, 4, 8, 6, 6, 8, 4, 2,
        ],
        [
            9, 1, 2, 7, 1, 8, 6, 4, 6, 2, 4, 4, 4, 3, 9, 8, 2, 2, 6, 9,
            8, 2, 5, 9, 5, 2, 9, 6, 9, 4, 9, 5, 8, 2, 7, 6, 4, 5, 3, 4,
        ],
        82,
    ),
    (
        [16 - 2 * (layer // 5) for layer in range(40)],
        [
            3, 1, 5, 1, 9, 9, 9, 9, 3, 1, 9, 1, 9, 9, 1, 9, 5, 3, 1, 5,
            1, 1, 1, 1, 9, 3, 9, 1, 3, 9, 9, 3, 5, 3, 3, 9, 5, 1, 9, 1,
        ],
        144,
    ),
    (
        [4, 4, 4, 12] * 10,
        [
            1, 2, 2, 14, 3, 5, 5, 12, 1, 3, 7, 15, 9, 6, 9, 16, 9, 5, 1, 9,
            6, 8, 6, 15, 7, 9, 3, 17, 3, 4, 4, 9, 3, 6, 3, 11, 9, 9, 6, 17,
        ],
        96,
    ),
)  # fmt: skip
# Of the three chains together. Start: every sixth layer is kept, about the root of their number. Par: layers at the
# best even distance, 131, 132 and 192. Best: 105, 83 and 160, by two searches through what of each
# beginning matters for the rest; the 2 ** 40 choices themselves are too many.
AGAIN = Golf("GFLOP", start=566, par=455, best=348)


def _chains(seed: int) -> list[Case]:
    random = Random(seed)
    found: list[Case] = []
    for count in (1, 4, 7, 9):
        sizes = [random.choice((2, 4, 6, 8, 12, 16)) for _ in range(count)]
        costs = [random.randint(1, 9) for _ in range(count)]
        found.append(("within the budget", (sizes, costs, least(sizes) + random.randint(0, 4))))
    for sizes, costs, budget in HOLES:  # in other units, so that no table of answers fits
        unit, price = random.randint(1, 4), random.randint(1, 4)
        hole = [unit * size for size in sizes], [price * cost for cost in costs], unit * budget
        found.append(("little is computed again", hole))
    return found


def _about(given: tuple[list[int], list[int], int]) -> str:
    return f"sizes {given[0]}, budget {given[2]}"


def _wrong(given: tuple[list[int], list[int], int], answer: Any) -> str | None:
    sizes, _, budget = given
    where = _about(given)
    if type(answer) is not list or not all(type(each) is int for each in answer):
        return f"a list of layers was expected, and it is {described(answer)}; {where}"
    if not all(0 <= layer < len(sizes) for layer in answer):
        return f"{next(each for each in answer if not 0 <= each < len(sizes))} is no layer of {len(sizes)}; {where}"
    if len(set(answer)) < len(answer):
        return f"a layer is in the list twice: {answer}; {where}"
    total, most = needed(sizes, answer)
    if total + most <= budget:
        return None
    forgets = total <= budget
    why = ": what is computed again is in memory, too, until the next kept activation" if forgets else ""
    return f"keeping {answer} takes {total}, and the largest run between them {most}: {total + most} MiB{why}; {where}"


def _judge(cases: list[Case], answers: Any) -> Mapping[str, Verdict]:
    said = cases_with(CHECKPOINTS, _wrong, about=_about)(cases, answers)
    again = (
        sum(cost for layer, cost in enumerate(hole[1]) if layer not in answer)
        for hole, answer in zip(HOLES, answers[-len(HOLES) :], strict=True)
    )
    return played(said, "little is computed again", AGAIN, again, after=["within the budget"])


checkpoints = Task(asks.checkpoints, CHECKPOINTS, _chains, _judge)
