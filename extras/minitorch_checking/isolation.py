"""Process isolation: machine code runs in a child process, so that wrong code does not end the user's session.

The child is a fork: it has the very code and the very addresses of its parent, and costs a few milliseconds. It is
given a certain time, and what it returns comes back through a pipe. Windows cannot fork, and on macOS the system's
libraries may not be used in a fork; there the code runs in the process itself, and a crash ends that.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, TypeVar

Result = TypeVar("Result")

AVAILABLE = hasattr(os, "fork") and sys.platform != "darwin"

_CHUNK = 1 << 20  # bytes that are read at once


class ChildDiedError(Exception):
    """A child process that crashed, or took too long; the message says how."""


def isolated(run: Callable[[], Result], seconds: float) -> Result:
    """Call a function in a child process; its changes to memory are lost.

    Args:
        run: its result and its exceptions have to be picklable.
        seconds: how long it may take.

    Raises:
        ChildDiedError: if it crashes, or takes longer.

    Example:
        >>> isolated(lambda: 6 * 7, seconds=60)
        42
    """
    if not AVAILABLE:
        return run()
    source, target = os.pipe()
    content, end, child = bytearray(), time.monotonic() + seconds, 0
    try:
        with warnings.catch_warnings(), _interrupted_later():
            warnings.simplefilter("ignore")  # of threads, whose locks may be held: the child takes none but its own
            child = os.fork()
            if not child:
                _serve(run, target)
            os.close(target)
        while select.select([source], [], [], max(0.0, end - time.monotonic()))[0]:
            part = os.read(source, _CHUNK)
            if not part:
                break
            content += part
        else:
            raise ChildDiedError(f"it did not end within {seconds:.0f} s")
    finally:
        os.close(source)
        if child:  # 0 would be this whole group of processes
            if time.monotonic() >= end or sys.exc_info()[0] is not None:
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise ChildDiedError(f"it was ended by {signal.Signals(os.WTERMSIG(status)).name}")
    if os.waitstatus_to_exitcode(status) or not content:
        raise ChildDiedError(f"it ended with status {os.waitstatus_to_exitcode(status)}")
    raised, result = pickle.loads(content)
    if raised:
        raise result
    found: Result = result
    return found


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Raise what Ctrl-C raises at the end of the block, and not within it.

    Libraries have Python call hooks before and after a fork, and Python drops what a hook raises: an interrupt would be
    lost there, and one between the fork and the next line would leave the child alone.
    """
    raises = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(raises):
        yield  # no interrupt is raised here
        return
    arrived: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: arrived.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, raises)
    if arrived:
        raises(*arrived[0])


def _serve(run: Callable[[], Any], target: int) -> NoReturn:
    """The child: nothing of it may reach the parent's code, files or finalisers."""
    status = 1
    try:
        gc.disable()
        faulthandler.disable()
        result: tuple[bool, Any]
        try:
            result = False, run()
        except Exception as error:
            result = True, error
        try:
            content = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
            if result[0]:
                pickle.loads(content)
        except Exception as error:
            content = pickle.dumps((True, RuntimeError(f"{type(result[1]).__name__}: {result[1]} ({error})")))
        with os.fdopen(target, "wb") as pipe:
            pipe.write(content)
        status = 0
    finally:
        os._exit(status)
