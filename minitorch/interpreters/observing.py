"""Observers: objects that are told about every value, or every event, of a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from ..errors import ObserverError
from ..ir import user_place
from .eager import Observed, Observer
from .recorder import Recorder, Timed
from .state import thread

F = TypeVar("F", bound=Callable[..., Any])


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Tell an observer about every value that this thread computes, in eager mode and in graphs.

    Raises:
        ObserverError: if there is one already, and one of the two is a recorder (``MT503``).
    """
    state = thread
    if state.observer is not None and Recorder in (type(observer), type(state.observer)):
        raise ObserverError(
            "MT503",
            f"{_watcher(observer)} inside of {_watcher(state.observer)}",
            why="only one can watch what this thread runs, and the outer one would miss all of it",
            fix="leave the outer block first, or run the program twice",
        )
    previous = state.observer, state.eager, state.interpreter
    state.observer = observer
    if isinstance(observer, Recorder):
        state.eager = Timed(previous[1], observer)
    else:
        state.eager = Observed(previous[1], observer)
    if state.interpreter is previous[1]:
        state.interpreter = state.eager
    try:
        yield
    finally:
        state.observer, state.eager, state.interpreter = previous


def _watcher(observer: Observer) -> str:
    return "mt.profile" if isinstance(observer, Recorder) else "mt.debug.check_nan"


def current_observer() -> Observer | None:
    """The observer of the values that this thread computes."""
    return thread.observer


def current_recorder() -> Recorder | None:
    """The recorder of this thread's events."""
    observer = thread.observer
    return observer if isinstance(observer, Recorder) else None


def for_one_line(function: F) -> F:
    """For a function that is called repeatedly on behalf of one line of the user's: recorders look for that line once.

    The function must be this package's, and call nothing of the user's, which has lines of its own.
    """
    recorder = current_recorder()
    if recorder is None:
        return function
    place = user_place()

    def placed(*args: Any) -> Any:
        previous, recorder.place = recorder.place, place
        try:
            return function(*args)
        finally:
            recorder.place = previous

    return cast("F", placed)
