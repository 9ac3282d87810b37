"""Calling the student's code: for so long and no longer, and whatever it raises is an answer, too.

A second thread raises an exception in the caller's when the time is up. That works on every system and in every thread,
and ends whatever runs Python instructions. One long call into C it cannot end: that is for whoever limits the process.

The time is the thread's own processor time where the system tells it (not on macOS and Windows), so that a busy machine
takes no points away. Code that waits uses none, and is stopped when `PATIENCE` times as long has passed on the clock.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from minitorch.ir import is_ours

from .plain import MOST_LINE, MOST_NAME, TIMEOUT, Fault, Question, arrays, decode, encode

SECONDS = 2.0  # for one call, unless the task says otherwise: a hundred times what it needs
PATIENCE = (
    5.0  # times the limit, on the clock; more of it suits a busier machine, and waits longer for code that sleeps
)
SHORTEST_WAIT = 0.01  # seconds between two looks at a thread's time; less of it looks more often, and is more exact
DEBUGGERS = ("bdb", "debugpy", "pydevd")  # Python's own, on which IPython's stands, and Jupyter's and VS Code's


class OutOfTime(BaseException):
    """Not an `Exception`, so that an ``except Exception`` of the student's does not swallow it."""


@dataclass(frozen=True)
class Limited:
    """The student's function; calling it returns what it returns, or a `Fault`.

    Attributes:
        function: of the student's.
        seconds: for one call.
        send: from a message to the judge to the next message from there, both as JSON.

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
    send: Callable[[Any], Any] | None = None

    def __call__(self, *arguments: object, **named: object) -> Any:
        """Call it."""
        return limited(lambda: self.function(*arguments, **named), self.seconds)

    def within(self, work: Callable[..., Any], *arguments: object) -> Any:
        """What ``work(function, *arguments)`` returns, or a `Fault`: several calls in one limit, and what is around."""
        return limited(lambda: work(self.function, *arguments), self.seconds)

    def consult(self, question: object) -> Any:
        """Ask the judge's `Oracle` (`checks/task.py`) in the middle of a call, and return its reply.

        Args:
            question: plain data.

        Raises:
            ValueError: if the oracle refuses, with its reason.
        """
        if self.send is None:
            raise RuntimeError("there is no judge to consult")
        (reply,) = decode(_undisturbed(partial(self.send, encode(Question(question)))))
        if isinstance(reply, Fault):
            raise ValueError(reply.text)
        return arrays(reply)


def limited(work: Callable[[], Any], seconds: float) -> Any:
    """What `work` returns, or a `Fault` that says why it returned nothing."""
    thread = threading.get_ident()
    lock, over = threading.Lock(), threading.Event()
    state = {"running": True, "late": False}
    outer, _watched.by = getattr(_watched, "by", None), (lock, state)
    before = np.geterr(), warnings.filters, sys.stderr

    def stop() -> None:
        left = _time_left(thread, seconds)
        while not over.wait(max(left(), SHORTEST_WAIT)):
            if left() > 0:
                continue
            left = _time_left(thread, seconds)  # again as much for whoever looks at it in a debugger
            with lock:
                if state["running"] and not _is_debugged(sys._current_frames().get(thread)):
                    state["late"] = True
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OutOfTime))
                    return

    watch = threading.Thread(target=stop, daemon=True)
    try:
        try:
            watch.start()
            # nbgrader takes anything on stderr for a failed test, a warning of NumPy's as well.
            with warnings.catch_warnings(action="ignore"), redirect_stderr(sys.stdout), np.errstate(all="ignore"):
                return _done(work)
        finally:
            _watched.by = outer
            with lock:
                state["running"] = False
            over.set()
            if state["late"]:  # it may have come back in the very moment in which it was stopped
                _let_it_arrive()
    except KeyboardInterrupt:  # it may have come while one of the three was left
        errors, warnings.filters, sys.stderr = before
        np.seterr(**errors)
        with warnings.catch_warnings():  # at the end of which Python forgets what it has looked up in the filters
            raise
    except OutOfTime:
        return Fault(TIMEOUT, f"{seconds:g}")
    except BaseException as error:  # no thread can be started, for instance
        return _fault(error)


_watched = threading.local()  # `by`: the lock and the state of the limit that this thread runs under


def _undisturbed(work: Callable[[], Any]) -> Any:
    """Do what must not be stopped half way, such as a message to the judge: the limit waits until it is done."""
    if (watch := getattr(_watched, "by", None)) is None:
        return work()
    lock, state = watch
    with lock:
        if state["late"]:
            raise OutOfTime
        return work()


def _time_left(thread: int, seconds: float) -> Callable[[], float]:
    """A function that says how many seconds a thread may go on at least, from now; 0 if its time is up."""
    if not hasattr(time, "pthread_getcpuclockid"):
        end = time.monotonic() + seconds
        return lambda: max(0.0, end - time.monotonic())
    clock = time.pthread_getcpuclockid(thread)
    end_of_work = time.clock_gettime(clock) + seconds
    end_of_waiting = time.monotonic() + PATIENCE * seconds

    def left() -> float:
        try:
            work = end_of_work - time.clock_gettime(clock)
        except OSError:  # the thread has ended, and with it its clock
            work = seconds
        return max(0.0, min(work, end_of_waiting - time.monotonic()))

    return left


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


def _is_debugged(frame: FrameType | None) -> bool:
    """Whether somebody looks at a thread in a debugger, who may take any time."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in DEBUGGERS:
            return True
        frame = frame.f_back
    return False


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
