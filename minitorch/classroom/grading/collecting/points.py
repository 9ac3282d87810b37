"""The points of attempts, noted when they are graded, so that the best attempt can be chosen."""

from __future__ import annotations

from ..course.folders import Course, Submission
from ..results import Result
from .attempts import Points, note_points
from .exercises import release_digest


def note_result(course: Course, each: Submission, result: Result) -> None:
    """Note the points of the attempt that was graded; nothing if it was not collected, or could not be judged."""
    if not any(incident.kind == "grader" for incident in result.incidents):
        release = release_digest(course.release(each.exercise))
        note_points(course.root, each.student, each.exercise, each.folder, Points(result.points, result.of, release))
