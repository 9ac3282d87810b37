"""What an exercise has in its sandbox, by the checks that its notebook calls."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

from ...asks import Needs
from ...own import PACKAGED, Checks
from ..sandbox.image import Contents
from .preflight import Part


def contents(release: Iterable[Part], checks: Checks = PACKAGED) -> Contents:
    """The contents of the image for an exercise: the asks of its tasks, and what these need of the engine."""
    if checks.sources:
        return Contents(checks.needs, (), checks.inside)
    asks = [checks.tasks[part.task].ask for part in release if part.task is not None and part.task in checks.tasks]
    modules = sorted({ask.name.partition(".")[0] for ask in asks})
    return Contents(reduce(or_, [ask.needs for ask in asks]) if asks else Needs(), tuple(modules))
