"""Garbage collection beside the student's code, for tasks that count the objects that are still alive."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial


@contextmanager
def young() -> Iterator[Callable[[], int]]:
    """Keep the objects that are made in the block in the collector's youngest generation; yields what collects these.

    A full collection looks at every object of the process, which takes most of a second where there are millions.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield partial(gc.collect, 0)
    finally:
        if enabled:
            gc.enable()
