"""Calling the student's code: for so long and no longer, and whatever it raises is an answer, too.

A second thread raises an exception in the caller's when the time is up. That works on every system and in every thread,
and ends whatever runs Python instructions. One long call into C it cannot end: that is for whoever limits the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir import is_ours
from .plain import MOST_LINE, MOST_NAME, TIMEOUT, Fault

SECONDS = 2.0  # for one call, unless the task says otherwise: a hundred times what it needs


class OutOfTime(BaseException):
    """Not an `Exception`, so that an ``except Exception`` of the student's does not swallow it."""


@dataclass(frozen=True)
class Limited:
    """The student's function; calling it returns what it returns, or a `Fault`.

    Example:
        >>> def endless():
        ...     while True:
        ...         pass
        >>> print(Limited(endless, 0.05)())
        it was stopped after 0.05 seconds: does a loop never end?
        >>> print(Limited(lambda x: x.y)(1).kind)
        AttributeError
    """

    function: Any
    seconds: float = SECONDS

    def __call__(self, *arguments: object, **named: object) -> Any:
        """Call it."""
        return limited(lambda: self.function(*arguments, **named), self.seconds)


def limited(work: Callable[[], Any], seconds: float) -> Any:
    """What `work` returns, or a `Fault` that says why it returned nothing."""
    thread = ctypes.c_ulong(threading.get_ident())
    lock = threading.Lock()
    state = {"running": True, "late": False}

    def stop() -> None:
        with lock:
            if state["running"]:
                state["late"] = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(OutOfTime))

    watch = threading.Timer(seconds, stop)
    watch.daemon = True
    try:
        try:
            watch.start()
            # nbgrader takes anything on stderr for a failed test, a warning of NumPy's as well.
            with warnings.catch_warnings(action="ignore"), redirect_stderr(sys.stdout), np.errstate(all="ignore"):
                return _done(work)
        finally:
            with lock:
                state["running"] = False
            watch.cancel()
            if state["late"]:  # it may have come back in the very moment in which it was stopped
                _let_it_arrive()
    except KeyboardInterrupt:
        raise
    except OutOfTime:
        return Fault(TIMEOUT, f"{seconds:g}")
    except BaseException as error:  # no thread can be started, for instance
        return _fault(error)


def _done(work: Callable[[], Any]) -> Any:
    """The result, or the fault, within the time: to ask an exception for its text is to run the student's code, too."""
    try:
        return work()
    except (KeyboardInterrupt, OutOfTime):
        raise
    except BaseException as error:  # SystemExit, too
        return _fault(error)


def _fault(error: BaseException) -> Fault:
    return Fault(str(type(error).__name__)[:MOST_NAME], _first_line(error), _place(error))


def _let_it_arrive() -> None:
    """Wait for an exception that is on its way to this thread, if it has not been raised yet.

    To take it back, by setting None, would leave the interpreter looking for it at every instruction: up to Python 3.11
    a function that is traced, as by a debugger, is then never entered.
    """
    with contextlib.suppress(OutOfTime):
        for _ in range(1000):
            pass


def _first_line(error: BaseException) -> str:
    try:
        return next(iter(str(error).splitlines()), "")[:MOST_LINE]
    except Exception:  # an exception class of the student's
        return ""


def _place(error: BaseException) -> str:
    """The innermost line that is not the engine's or a library's."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if _is_students(each.filename)]
    return f"line {frames[-1].lineno} of {frames[-1].name[:MOST_NAME]}" if frames else ""


def _is_students(file: str) -> bool:
    return not is_ours(file) and "site-packages" not in file and "/lib/python" not in file
