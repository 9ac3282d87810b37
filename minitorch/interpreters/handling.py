"""Handlers: modes above the tape, which decide how marked functions are called.

    user's call ──► linear(x, w)        marked with `handled` where it is defined
                      │  has the thread a handler?
                      ├── no ──► linear itself
                      └── yes ─► handler.call(linear itself, (x, w), {})

An interpreter is asked about primitives, and so cannot tell the exponential of a `softmax` from that of a loss. The
levels below a handler (recording, gradients, passes, kernels) see only what it calls, as with PyTorch's function
modes. The handler belongs to the thread; a recording begins with its own (`Handler.again`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from .state import Handler, thread

F = TypeVar("F", bound=Callable[..., Any])

# The marked functions by name, without their marks.
HANDLED: dict[str, Callable[..., Any]] = {}


def handled(function: F) -> F:
    """Mark a function, so that the thread's handler decides how it is called."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        handler = thread.handler
        return function(*args, **options) if handler is None else handler.call(function, args, options)

    HANDLED[function.__name__] = function
    return cast("F", called)


def current_handler() -> Handler | None:
    """Return the handler of this thread, or None."""
    return thread.handler


def set_handler(handler: Handler | None) -> Handler | None:
    """Give this thread another handler; return what it had."""
    previous, thread.handler = thread.handler, handler
    return previous


@contextmanager
def handling(handler: Handler | None) -> Iterator[None]:
    """Give this thread a handler, which remembers nothing, for a `with` block: for what runs again, or runs later."""
    previous = set_handler(handler and handler.again())
    try:
        yield
    finally:
        set_handler(previous)
