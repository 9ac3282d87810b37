"""What an exercise has in its sandbox, by the checks that its notebook calls."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

from ...asks import Needs
from ...assertions import task_named
from ...checks import TASKS
from ..sandbox.image import Contents
from .preflight import Part


def contents(release: Iterable[Part]) -> Contents:
    """The contents of the image for an exercise: the asks of its tasks, and what these need of the engine."""
    names = [task_named(part.source) for part in release if part.is_check]
    asks = [TASKS[name].ask for name in names if name in TASKS]
    modules = sorted({ask.name.partition(".")[0] for ask in asks})
    return Contents(reduce(or_, [ask.needs for ask in asks]) if asks else Needs(), tuple(modules))
