"""One contender in a process of its own: reads requests, one JSON object a line, and answers each with another.

The first line it writes says that it is ready. A request names a case, the files of its inputs and (if results are to
be compared) of its reference, and for how long to measure; or it asks for something else, of `KINDS`.
"""

from __future__ import annotations

import gc
import json
import math
import os
import pickle
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import inference, processor
from .cases import CASES, deviation, distance, flat
from .contenders import CONTENDERS
from .libraries import Library
from .peaks import FLOAT32, peaks, processor_rate

Request = dict[str, Any]
Answer = dict[str, Any]

EVERY_CASE = {case.name: case for case in (*CASES, *inference.CASES)}
EVERYBODY = {**CONTENDERS, **inference.CONTENDERS}

COPY = "copy"  # not a contender: reads and writes as many bytes as a case must
PRODUCTS = {"matmul 1024³": 2 * 1024**3, "conv 3×3, 8×64×56×56 to 64": 2 * 8 * 64 * 64 * 9 * 56 * 56}  # operations
SIZE = 1024  # of other matrices whose product is probed
FEWEST_CALLS = 3
BATCH = 0.002  # seconds that one reading of the clock should cover


def typical_seconds(call: Callable[[], Any], wait: Callable[[Any], None], seconds: float) -> float:
    """The median time of a call, over at least so many seconds and `FEWEST_CALLS`; results are dropped at once."""

    def batch(number: int) -> float:
        start = time.perf_counter()
        for _ in range(number):
            wait(call())
        return (time.perf_counter() - start) / number

    gc.collect()
    gc.disable()
    try:
        once = min(batch(1), batch(1))  # the first warms up
        number = max(1, int(BATCH / once))
        count = max(FEWEST_CALLS, math.ceil(seconds / (number * once)))
        return statistics.median(batch(number) for _ in range(count))
    finally:
        gc.enable()


def load(path: str) -> Any:
    """What the parent process wrote."""
    return pickle.loads(Path(path).read_bytes())


def measure(library: Library, request: Request) -> Answer:
    """First call, comparison, and time of one case; where no time is asked for, it stays prepared."""
    case = EVERY_CASE[request["case"]]
    library.prepared = None
    if not library.supports(case.program):
        return {"skipped": True}
    call = case.prepare(library, load(request["inputs"]))
    start = time.perf_counter()
    result = call()
    library.wait(result)
    answer: Answer = {"first": time.perf_counter() - start}
    if request["reference"]:
        reference = load(request["reference"])
        results = [library.numpy(each) for each in flat(result)]
        allowed, error = (library.tolerance, deviation) if library.tolerance else (case.tolerance, distance)
        answer["error"] = max(error(a, b) for a, b in zip(results, reference, strict=True))
        if not answer["error"] <= allowed:
            return {"failed": f"wrong by {answer['error']:.1e}, more than {allowed:.0e}"}
    del result
    if request["seconds"]:
        answer["seconds"] = typical_seconds(call, library.wait, request["seconds"])
    else:
        library.prepared = call
    return {**answer, "form": library.form}


def again(library: Library, request: Request) -> Answer:
    """The time of the case that was prepared last, and not measured."""
    assert library.prepared is not None
    return {"seconds": typical_seconds(library.prepared, library.wait, request["seconds"])}


def count(library: Library, request: Request) -> Answer:
    """How many kernels minitorch runs for one call of a case, and how many bytes they move."""
    import minitorch as mt

    case = EVERY_CASE[request["case"]]
    call = case.prepare(library, load(request["inputs"]))
    call()
    with mt.profile() as p:
        call()
    return {"kernels": p.calls, "bytes": p.bytes_read + p.bytes_written, "flops": p.flops}


def probe(library: Library, request: Request) -> Answer:
    """What a library says about its instructions, what the processor shows it, and the rates of its products."""
    rates: dict[str, float] = {}

    def add(kind: str, call: Callable[[], Any], operations: float) -> None:
        rates[kind] = max(rates.get(kind, 0), processor_rate(lambda: library.wait(call()), operations))

    for kind, call in library.products(SIZE):
        add(kind, call, 2 * SIZE**3)
    own = library.to_probe()
    for name, operations in PRODUCTS.items():
        case = EVERY_CASE[name]
        if own.supports(case.program):
            add(FLOAT32, case.prepare(own, case.make_inputs()), operations)
    return {"says": library.instructions(), "shown": sorted(processor.shown()), "rates": rates}


def copy_measure(request: Request) -> Answer:
    """The time in which as many bytes are read and written as a case must, with non-temporal stores."""
    from . import traffic  # which needs this checkout's compiler; `compare` runs workers of others

    if request.get("kind") == "probe":
        return {"rates": peaks()}
    calls = traffic.movers(*request["traffic"])
    return {"seconds": min(typical_seconds(call, lambda _: None, request["seconds"]) for call in calls)}


KINDS: dict[str, Callable[[Library, Request], Answer]] = {
    "measure": measure,
    "again": again,
    "count": count,
    "probe": probe,
}


def ready(name: str) -> tuple[Callable[[Request], Answer], Answer]:
    """What answers requests, warmed up, and what to say about it."""
    start = time.perf_counter()
    if name == COPY:
        return copy_measure, {"version": "", "start": time.perf_counter() - start}
    library = EVERYBODY[name].make()
    if library.supports(_warm_up):
        function = library.compile(_warm_up)
        library.wait(function(library.array(np.ones(16, np.float32))))
    start = time.perf_counter() - start  # with the import, and what the first compilation of a process costs
    return lambda request: KINDS[request.get("kind", "measure")](library, request), {
        "version": library.version,
        "start": start,
    }


def _warm_up(x: Any) -> Any:
    return x + 1


def keep_to(cores: int) -> None:
    """Use that many of the cores that this process may use, the last ones, also in threads that are made later."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-cores:])


def main() -> None:
    """Answer until the input ends. Arguments: the contender, and how many cores it may use."""
    if sys.argv[2:]:
        keep_to(int(sys.argv[2]))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is not an answer

    def say(answer: Answer) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    answer, about = ready(sys.argv[1])
    say(about)
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as error:  # of any kind: it is told, and the next case may well work
            said = {"failed": f"{type(error).__name__}: {error}".splitlines()[0]}
        gc.collect()  # before the answer, after which it is the next one's turn
        say(said)


if __name__ == "__main__":
    main()
