"""Golf: to how many lengths should texts be padded? Each length costs a trace, and all padding is computed with."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from ...asks import tracing as asks
from ...asks.plain import described
from ..golf import Golf, played
from ..task import Task, by_case

Cases = list[tuple[str, Any]]

BUCKETS = {"every text fits": 8, "few elements": 17}


@cache
def _courses() -> tuple[tuple[tuple[int, ...], int], ...]:
    """Lengths of texts, and what a trace costs in elements: the same for everybody."""
    random = Random(4)
    short = [random.randrange(5, 40) for _ in range(30)]
    long = [random.randrange(300, 400) for _ in range(10)]
    spread = [int(2 ** random.uniform(3, 9)) for _ in range(40)]
    clusters = [center + random.randrange(-6, 7) for center in (33, 65, 130, 257) for _ in range(12)]
    return (tuple(short + long), 300), (tuple(spread), 700), (tuple(clusters), 400), (tuple(spread + short), 60)


def _cases(seed: int) -> Cases:
    random = Random(seed)
    found: Cases = [
        ("every text fits", ([random.randrange(1, 200) for _ in range(count)], random.randrange(10, 500)))
        for count in (1, 6, 20)
    ]
    for lengths, cost in _courses():
        found.append(("few elements", (random.sample(lengths, len(lengths)), cost)))
    return found


def _wrong(case: tuple[list[int], int], answer: Any) -> str | None:
    lengths, _ = case
    what = f"{len(lengths)} texts of up to {max(lengths)} elements"
    if type(answer) is not list or not all(type(each) is int for each in answer):
        return f"{what}: a list of whole numbers was expected, and it is {described(answer)}"
    if too_long := [length for length in lengths if length > max(answer, default=0)]:
        most = f"the longest is {max(answer)}" if answer else "there is none"
        return f"{what}: a text of {max(too_long)} fits into no bucket, {most}"
    return None


def total(lengths: list[int], cost: int, buckets: list[int]) -> int:
    """The elements of all texts, padded to the smallest bucket that they fit into, and what the traces cost."""
    padded = [min(bucket for bucket in buckets if bucket >= length) for length in lengths]
    return sum(padded) + cost * len(set(padded))


def fewest(lengths: list[int], cost: int) -> int:
    """The least total: of the texts by length, the best last bucket after the best for those before."""
    ordered = sorted(lengths)
    best = [0]
    for end in range(1, len(ordered) + 1):
        best.append(min(best[start] + cost + (end - start) * ordered[end - 1] for start in range(end)))
    return best[-1]


@cache
def golf() -> Golf:
    """Elements of all courses: a bucket for each length, powers of two, and the fewest."""
    courses = [(list(lengths), cost) for lengths, cost in _courses()]
    powers = [1 << place for place in range(12)]
    return Golf(
        "elements",
        start=sum(total(lengths, cost, lengths) for lengths, cost in courses),
        par=sum(total(lengths, cost, powers) for lengths, cost in courses),
        best=sum(fewest(*course) for course in courses),
    )


def _judge(cases: Cases, answers: Any) -> Any:
    said = by_case(BUCKETS, cases, answers, _wrong)
    pairs = zip(cases, answers, strict=True)
    counts = (total(case[0], case[1], answer) for (part, case), answer in pairs if part == "few elements")
    return played(said, "few elements", golf(), counts, after=["every text fits"])


buckets = Task(asks.buckets, BUCKETS, _cases, _judge)
