"""Observation of the functions of the user's program that run, each with its frame.

Python 3.12 reports the functions that start, and stops reporting those of the engine (PEP 669). Before, a profile
function is called for every call and return; it is set aside while an operation is recorded.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from .ownership import is_users_file, is_users_frame

Entered = Callable[[FrameType], None]
Profile = Callable[[FrameType, str, Any], object]


@contextmanager
def functions_observed(entered: Entered) -> Iterator[Profile | None]:
    """Call ``entered(frame)`` for each of the user's functions that starts in this thread, inside the block.

    A running profiler still receives every event.

    Yields:
        The profile function that may be set aside where only the engine's code runs, if there is one.
    """
    tool = None if sys.getprofile() is not None else _free_tool()
    if tool is None:
        with _profiled(entered) as profile:
            yield profile
        return
    # mypy checks for 3.11, which has no `sys.monitoring`.
    monitoring: Any = getattr(sys, "monitoring")  # noqa: B009
    thread, start = threading.get_ident(), monitoring.events.PY_START

    def started(code: CodeType, offset: int) -> Any:
        if not code.co_filename.startswith("<") and not is_users_file(code.co_filename):
            return monitoring.DISABLE
        frame = sys._getframe(1)
        if threading.get_ident() == thread and is_users_frame(frame):
            entered(frame)
        return None

    monitoring.register_callback(tool, start, started)
    monitoring.set_events(tool, start)
    try:
        yield None
    finally:
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, start, None)
        monitoring.free_tool_id(tool)


def _free_tool() -> int | None:
    """Reserve a number among those that `sys.monitoring` leaves to programs; return None if all are taken."""
    for tool in (3, 4) if sys.version_info >= (3, 12) else ():
        try:
            getattr(sys, "monitoring").use_tool_id(tool, "minitorch")  # noqa: B009
        except ValueError:  # another thread or program took it
            continue
        return tool
    return None


@contextmanager
def _profiled(entered: Entered) -> Iterator[Profile | None]:
    before: Any = sys.getprofile()
    told = before if callable(before) else None

    def look(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and is_users_frame(frame):
            entered(frame)
        if told is not None:
            told(frame, event, argument)

    sys.setprofile(look)
    try:
        yield look if before is None and sys.version_info < (3, 12) else None
    finally:
        sys.setprofile(told)
        if told is None and before is not None:  # the profiler of `cProfile`
            before.enable()
