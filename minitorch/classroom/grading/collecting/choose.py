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
    said = []
    if found[-1].problem:
        said.append(f"the newest ({found[-1].said}) cannot be graded: {found[-1].problem}; the one before it is kept")
    chosen = sound[-1]
    if deadlines.keep == "best" and len(sound) > 1:
        waiting = [each for each in sound if each.points is None or each.points.release != release]
        best = max(sound, key=lambda each: (worth(each, student, exercise, deadlines), sound.index(each)))
        chosen = waiting[-1] if waiting else best
        if waiting:
            more = f"({len(waiting)} of {len(sound)} attempts are not graded yet)"
            said.append(f"grade and collect again for the best one {more}")
        elif best is not sound[-1]:
            said.append(f"an earlier one ({best.said}) is worth more and is kept")
    return chosen, "; ".join(said)


def worth(attempt: Attempt, student: str, exercise: str, deadlines: Deadlines) -> float:
    """The points of an attempt, less its penalty; none before it is graded."""
    if attempt.points is None:
        return 0.0
    earned, of = attempt.points.points, attempt.points.of
    return earned - deadlines.penalty(student, exercise, attempt.first, attempt.late, earned, of).points
