"""Golf: where should a recording be run? Each run cuts the program, and what is alive there goes through memory."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from ...asks import deferred as asks
from ...asks.plain import described
from ..golf import Golf, played
from ..task import Task, by_case

Cases = list[tuple[str, Any]]
Request = tuple[int, int]  # after which operation the value is there, and before which it is needed

RUNS = {"every request is met": 8, "few bytes": 17}


def _drawn(random: Random, size: int, requests: int) -> tuple[list[int], list[Request]]:
    costs = [random.choice((40, 400, 4000)) + 4 * random.randrange(10) for _ in range(size)]
    made = [random.randrange(size - 1) for _ in range(requests)]
    return costs, [(at, random.randrange(at + 1, min(at + 12, size) + 1)) for at in made]


@cache
def _courses() -> tuple[tuple[list[int], list[Request]], ...]:
    """Costs and requests that are the same for everybody."""
    random = Random(5)
    return tuple(_drawn(random, size, requests) for size, requests in ((20, 6), (40, 12), (60, 25), (60, 10)))


def _cases(seed: int) -> Cases:
    random = Random(seed)
    found: Cases = [("every request is met", _drawn(random, size, size // 2)) for size in (4, 10, 20)]
    found += [("few bytes", (costs, random.sample(requests, len(requests)))) for costs, requests in _courses()]
    return found


def _wrong(case: tuple[list[int], list[Request]], answer: Any) -> str | None:
    costs, requests = case
    what = f"{len(costs)} operations, {len(requests)} requests"
    if type(answer) is not list or not all(type(each) is int for each in answer):
        return f"{what}: a list of whole numbers was expected, and it is {described(answer)}"
    if strange := [each for each in answer if not 0 <= each < len(costs)]:
        return f"{what}: there is no operation {strange[0]}"
    for made, needed in requests:
        if not any(made <= at < needed for at in answer):
            early = [at for at in answer if at < made]
            why = f"; the run after {early[-1]} is too early, the value is not recorded yet" if early else ""
            return f"{what}: a value of operation {made} is needed before {needed}, and no run is in between{why}"
    return None


def total(costs: list[int], runs: list[int]) -> int:
    """The bytes that go through memory, each run once."""
    return sum(costs[at] for at in set(runs))


def as_late_as_possible(requests: list[Request]) -> list[int]:
    """Runs where a value is needed that is not there yet: what lazy mode does by itself."""
    found: list[int] = []
    for made, needed in sorted(requests, key=lambda request: request[1]):
        if not any(made <= at < needed for at in found):
            found.append(needed - 1)
    return found


def fewest(costs: list[int], requests: list[Request]) -> int:
    """The fewest bytes: for each operation as the last run so far, the best run before it."""
    best: dict[int, int] = {-1: 0}
    for at in range(len(costs) + 1):
        before = [
            best[last]
            for last in range(-1, at)
            if not any(last < made and needed <= at for made, needed in requests)  # none is left out in between
        ]
        best[at] = min(before) + (costs[at] if at < len(costs) else 0)
    return best[len(costs)]


@cache
def golf() -> Golf:
    """Bytes of all courses: a run after each operation, as late as possible, and the fewest."""
    return Golf(
        "bytes",
        start=sum(sum(costs) for costs, _ in _courses()),
        par=sum(total(costs, as_late_as_possible(requests)) for costs, requests in _courses()),
        best=sum(fewest(costs, requests) for costs, requests in _courses()),
    )


def _judge(cases: Cases, answers: Any) -> Any:
    said = by_case(RUNS, cases, answers, _wrong)
    pairs = zip(cases, answers, strict=True)
    counts = (total(case[0], answer) for (part, case), answer in pairs if part == "few bytes")
    return played(said, "few bytes", golf(), counts, after=["every request is met"])


runs = Task(asks.runs, RUNS, _cases, _judge)
