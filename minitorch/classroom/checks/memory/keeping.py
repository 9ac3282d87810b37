"""Checkpoints: which activations of a chain of layers are kept, and which are computed again on the way back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any

from ...asks import memory as asks
from ...asks.plain import described
from ..golf import Golf, played
from ..task import Task, Verdict, by_case

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
    ([4, 4, 12, 4, 16, 4, 4, 12, 4, 16, 4, 8], [1, 6, 2, 4, 8, 1, 6, 2, 4, 8, 1, 9], 50),
    ([32, 32, 16, 16, 16, 8, 8, 8, 8, 4, 4, 2], [3, 9, 1, 9, 1, 5, 1, 5, 1, 3, 1, 2], 92),
    ([6, 10, 4, 8, 12, 4, 10, 6, 8, 4, 12, 6], [5, 2, 7, 1, 4, 6, 3, 8, 2, 5, 1, 6], 45),
)
# Of the three chains together. Best: 21, 15 and 18, the least of all 4,096 choices of each.
AGAIN = Golf("GFLOP", start=110, par=70, best=54)


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


def _wrong(given: tuple[list[int], list[int], int], answer: Any) -> str | None:
    sizes, _, budget = given
    where = f"sizes {sizes}, budget {budget}"
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
    said = by_case(CHECKPOINTS, cases, answers, _wrong)
    again = (
        sum(cost for layer, cost in enumerate(hole[1]) if layer not in answer)
        for hole, answer in zip(HOLES, answers[-len(HOLES) :], strict=True)
    )
    return played(said, "little is computed again", AGAIN, again, after=["within the budget"])


checkpoints = Task(asks.checkpoints, CHECKPOINTS, _chains, _judge)
