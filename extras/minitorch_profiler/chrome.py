"""Timelines in the Trace Event Format, which Perfetto and Chrome open.

The format is that of https://chromium.googlesource.com/catapult/+/HEAD/docs/trace-event-format.md: an object with a
list of events. Used are *complete* events (``"ph": "X"``: one that began at `ts` and took `dur` microseconds),
*counter* events (``"C"``: a number that changes over time), *metadata* events (``"M"``: names of process and thread).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from .recorder import Recorder
from .rows import TIMED, label, works


def events(recorder: Recorder, live: Sequence[tuple[float, int]]) -> Iterator[dict[str, Any]]:
    """All events of a profile; times are microseconds from its begin."""
    process, thread = os.getpid(), recorder.thread
    where = {"pid": process, "tid": thread}
    for name, text in (("process_name", "minitorch"), ("thread_name", "profiled thread")):
        yield {"ph": "M", "name": name, "cat": "__metadata", "ts": 0, **where, "args": {"name": text}}
    for begin, end, kind, what in recorder.events:
        if kind not in TIMED:
            yield _complete(recorder, begin, end, str(getattr(what, "name", what)), kind, where, {})
    for begin, end, _, work in works(recorder):
        arguments = {
            "lines": label(work.sources),
            "dtype": work.dtype,
            "bytes read": work.bytes_read,
            "bytes written": work.bytes_written,
            "flops": work.flops,
            "transcendentals": work.transcendentals,
        }
        yield _complete(recorder, begin, end, work.name, f"kernel,{work.kind}", where, arguments)
    for seconds, size in live:
        yield {"ph": "C", "name": "live bytes", "cat": "memory", "ts": seconds * 1e6, **where, "args": {"bytes": size}}


def _complete(
    recorder: Recorder, begin: int, end: int, name: str, category: str, where: dict[str, int], args: dict[str, Any]
) -> dict[str, Any]:
    ts, dur = (begin - recorder.begin) / 1e3, (end - begin) / 1e3
    return {"ph": "X", "name": name, "cat": category, "ts": ts, "dur": dur, **where, "args": args}


def write(recorder: Recorder, live: Sequence[tuple[float, int]], path: str | PathLike[str]) -> None:
    """Write the file."""
    trace = {"traceEvents": list(events(recorder, live)), "displayTimeUnit": "ms"}
    Path(path).write_text(json.dumps(trace), encoding="utf-8")
