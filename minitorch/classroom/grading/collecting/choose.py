"""Choosing the attempt that is graded: the latest or the best, and never a damaged one where another can be graded."""

from __future__ import annotations

from collections.abc import Sequence

from ..enrolment.deadlines import Deadlines
from .attempts import Attempt


def choose(
    found: Sequence[Attempt], student: str, exercise: str, deadlines: Deadlines, release: str
) -> tuple[Attempt, str]:
    """The attempt to grade, and a sentence where that is not simply the latest.

    Args:
        found: the student's attempts at the exercise, the newest last; at least one.
        student, exercise: whose they are, and for what.
        deadlines: the rules of the course.
        release: digest of the exercise as it is handed out now; points for another one do not count.
    """
    sound = [attempt for attempt in found if not attempt.problem]
    if not sound:
        return found[-1], f"cannot be graded: {found[-1].problem}"
    said = ""
    if found[-1].problem:
        said = f"the newest ({_time(found[-1])}) cannot be graded: {found[-1].problem}; the one before it is kept"
    if deadlines.keep == "latest" or len(sound) == 1:
        return sound[-1], said
    graded = [attempt for attempt in sound if attempt.points is not None and attempt.points.release == release]
    if waiting := [attempt for attempt in sound if attempt not in graded]:
        more = f" ({len(waiting)} of {len(sound)} attempts are not graded yet)"
        return waiting[-1], f"{said}; grade and collect again for the best one{more}".removeprefix("; ")
    best = max(graded, key=lambda each: (worth(each, student, exercise, deadlines), graded.index(each)))
    if best is not sound[-1]:
        said = f"{said}; an earlier one ({_time(best)}) is worth more and is kept".removeprefix("; ")
    return best, said


def worth(attempt: Attempt, student: str, exercise: str, deadlines: Deadlines) -> float:
    """The points of an attempt, less its penalty."""
    assert attempt.points is not None
    earned, of = attempt.points.points, attempt.points.of
    return earned - deadlines.penalty(student, exercise, attempt.first, attempt.late, earned, of).points


def _time(attempt: Attempt) -> str:
    return f"{attempt.last:%Y-%m-%d %H:%M} UTC" if attempt.last else f"file {attempt.order}, at an unknown time"
