"""The exercises of a course: which one a download is for, and whether a notebook can be graded as work for it."""

from __future__ import annotations

import re
from functools import cache, partial

from minitorch.errors import CommandError

from ...handing_out.release import exercises_in
from ..course.folders import Course, read_exercise
from ..course.names import visible
from ..incidents import KINDS
from ..limits import Limits
from ..submission.alignment import mend
from ..submission.preflight import DamagedError, bounded, parsed


class Exercises:
    """The exercises of a course.

    Args:
        course: where they are.
        only: the exercise that all of a download is for; by default its name says it.

    Raises:
        CommandError: if there are none, or not this one.
    """

    def __init__(self, course: Course, only: str | None = None) -> None:
        self.names = exercises_in(course.exercises)
        self.only = only
        self._release = cache(partial(read_exercise, course))
        if not self.names:
            raise CommandError(f"there are no exercises in {course.exercises}; copy what students got there")
        if only is not None and only not in self.names:
            raise CommandError(f"there is no exercise {only} in {course.exercises}; there is {', '.join(self.names)}")

    def cells(self, name: str) -> dict[str, float]:
        """The points of each graded cell of an exercise."""
        return {part.name or "": part.points for part in self._release(name) if part.points is not None}

    def slot(self, place: tuple[str, ...]) -> str:
        """Return the exercise that a download is for: what students hand in there never decides that.

        Args:
            place: the parts of its path; the innermost that names one exercise counts.

        Raises:
            CommandError: if none does, and nobody has said it.
        """
        only = [self.only] if self.only else self.names if len(self.names) == 1 else []
        for part in reversed(place):
            found = only or [name for name in self.names if _is_named(name, part)]
            longest = max(found, key=len, default="")
            if found and all(name in longest for name in found):
                return longest
        raise CommandError(
            f"which exercise is {visible('/'.join(place))} for? Say it with --exercise NAME, "
            f"or in its name, as in {self.names[0]}.zip"
        )

    def problem(self, content: bytes, slot: str) -> str:
        """Why the grader could not grade a notebook as work for an exercise; empty if it could."""
        problem = self._problem(content, slot)
        others = [name for name in self.names if problem and name != slot and not self._problem(content, name)]
        return f"{problem}, but cells of {others[0]} are" if others else problem

    def _problem(self, content: bytes, name: str) -> str:
        release = self._release(name)
        try:
            mend(parsed(bounded(content, Limits().notebook)), release)
        except DamagedError as error:  # all but what follows from it, since it is not graded
            return KINDS[error.incident.kind].meaning.partition(";")[0]
        except Exception as error:  # whatever a file does when it is read is a fault of this file
            return f"it cannot be read as a notebook ({type(error).__name__})"
        return ""


def _is_named(name: str, text: str) -> bool:
    """Whether a text has the name of an exercise in it, as platforms write it.

    Example:
        >>> _is_named("03-graph", "CS101-03 Graph-4711.zip"), _is_named("03-graph", "03-graphs.zip")
        (True, False)
    """
    words = r"[-_ ]+".join(map(re.escape, re.split(r"[-_ ]+", name)))
    return re.search(rf"(?<![^\W_]){words}(?![^\W_])", text, re.IGNORECASE) is not None


def plain_name(file: str) -> str:
    """The name of a notebook without what platforms and browsers add to it, and without its ending.

    Example:
        >>> plain_name("03-graph-2.ipynb"), plain_name("03-graph (1).ipynb"), plain_name("03-graph.ipynb")
        ('03-graph', '03-graph', '03-graph')
    """
    stem = re.sub(r"(?i)\.ipynb$", "", file)
    return re.sub(r"(?:[-_ ]\d{1,3}|\s*\(\d{1,3}\)|\s*[-_ ]copy\d*)$", "", stem, flags=re.IGNORECASE)
