"""Which batch a server should collect: from counted bytes and FLOPs, a rate of requests, and a deadline."""

from __future__ import annotations

from random import Random
from typing import Any

from ...harness import inference as harness
from ...harness.plain import described
from ..own import wrong_value
from ..reasons import expect, recognised
from ..task import Task

Row = tuple[int, int, int]  # images in a batch, bytes and FLOPs of a call
Given = tuple[list[Row], float, float, float, float]  # rows, bytes per second, FLOPs per second, rate, deadline
Plan = tuple[int, float, float]  # batch, the longest latency in seconds, the share of the time that the server is busy

SERVE = {"one batch": 6, "the least busy": 5, "none": 4}
CLOSE = 1e-6
BATCHES = (1, 2, 4, 8, 16, 32, 64)


def plans(given: Given, adds: bool = False, waits: int = -1) -> list[Plan]:
    """Each batch that keeps up with the requests and meets the deadline; the last two are for wrong ways."""
    rows, bandwidth, peak, rate, deadline = given
    found = []
    for batch, size, flops in rows:
        times = size / bandwidth, flops / peak
        seconds = sum(times) if adds else max(times)
        latency, busy = (batch + waits) / rate + seconds, rate * seconds / batch
        if latency <= deadline and busy <= 1:
            found.append((batch, latency, busy))
    return found


def best(found: list[Plan]) -> Plan | None:
    """The plan that keeps the server least busy."""
    return min(found, key=lambda plan: plan[2], default=None)


def _rows(random: Random, batches: tuple[int, ...]) -> list[Row]:
    weights, each, flops = random.randint(4, 40) * 10**6, random.randint(10, 90) * 1000, random.randint(2, 20) * 10**6
    return [(batch, weights + batch * each, batch * flops) for batch in batches]


def _cases(random: Random) -> list[Any]:
    cases: list[tuple[str, Given]] = []
    for batch in (1, 8, 64):
        rows, rate = _rows(random, (batch,)), float(random.randint(50, 400))
        cases.append(("one batch", (rows, 2e10, 2e11, rate, 10.0)))
    for deadline in (0.004, 0.02, 0.1):
        many = _rows(random, BATCHES), 2e10, 2e11, float(random.randint(300, 500)), deadline
        cases.append(("the least busy", many))
    rows, rate = _rows(random, BATCHES), 400.0
    shortest = max(rows[0][1] / 2e10, rows[0][2] / 2e11)
    cases += [("none", (rows, 2e10, 2e11, rate, shortest * share)) for share in (0.9, 1.1)]
    for seconds in (1.5, 40.0):  # of arithmetic in a second: the server does not keep up
        slow = [(batch, size, round(batch * seconds * 2e11 / rate)) for batch, size, _ in rows]
        cases.append(("none", (slow, 2e10, 2e11, rate, 1e3)))
    return cases


def _wrong(part: str, given: Given, answer: Any) -> str | None:
    right = best(plans(given))
    if right is None:
        return None if answer is None else f"no batch will do, so None was expected, and it is {described(answer)}"
    expect(answer, tuple[Any, Any, Any] | None, "a tuple of a batch, a latency and a share")
    return _explained(given, right, answer)


def _about(given: Given) -> str:
    rows, _, _, rate, deadline = given
    batches = ", ".join(str(batch) for batch, _, _ in rows)
    return f"{rate:g} requests per second, a deadline of {deadline:.3g} s, batches of {batches}"


def _explained(given: Given, right: Plan, answer: Any) -> str | None:
    said = wrong_value(answer, right, CLOSE)
    if said is None:
        return None
    known = (
        ("bytes move while arithmetic is done: the longer of the two times counts, not their sum", plans(given, True)),
        ("the first request of a batch of n waits for n - 1 others, not for n", plans(given, waits=0)),
    )
    if why := recognised(known, lambda found: wrong_value(answer, best(found), CLOSE) is None):
        return f"it is {described(answer)}{why}"
    if answer is None:
        return f"it is None, and a batch of {right[0]} will do"
    if any(wrong_value(answer, plan, CLOSE) is None for plan in plans(given)):
        return f"{answer[0]} meets the deadline, but keeps the server busier than a batch of {right[0]}"
    names = ("the batch", "the latency", "the share of time")
    return next(
        f"{name}: {said}"
        for name, found, wanted in zip(names, answer, right, strict=True)
        if (said := wrong_value(found, wanted, CLOSE))
    )


serve = Task(harness.serve, SERVE, _cases, _wrong, about=_about)
