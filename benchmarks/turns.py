"""Calls that take turns in one process, so that what else the machine does falls on all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any


def medians(calls: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Of each call the median of its seconds; they take turns, each as often the first as any other."""
    names = list(calls)
    times: dict[str, list[float]] = {name: [] for name in names}
    for call in calls.values():
        call(), call()
    end, turn = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or turn < 10:
        for place in range(len(names)):
            name = names[(place + turn) % len(names)]
            begin = time.perf_counter()
            calls[name]()
            times[name].append(time.perf_counter() - begin)
        turn += 1
    return {name: statistics.median(found) for name, found in times.items()}
