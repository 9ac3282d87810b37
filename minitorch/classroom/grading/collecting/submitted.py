"""The attempt that is graded: the latest or the best, put into `submitted/`, where its points are noted.

A damaged one is never taken where another can be graded, and nothing that lay in `submitted/` is lost.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..course.folders import Course, Submission
from ..course.handed_in import handed_in
from ..course.private import folder as make_folder
from ..enrolment.deadlines import Deadlines
from ..results import Result
from .attempts import BY_HAND, Attempt, Points, attempts, digest_of, home, keep, note_points, notebooks_in
from .exercises import Exercises, release_digest
from .platforms import STAMP


def keep_by_hand(course: Course, exercises: Exercises, student: str, exercise: str) -> None:
    """Keep what lies in `submitted/` and was not collected, so that nothing replaces it for good.

    A notebook that was mended counts as handed in when the one before it was; one that was put there, when it was
    saved; `timestamp.txt` says otherwise.
    """
    folder = course.submitted / student / exercise
    found, known = notebooks_in(folder), attempts(course.root, student, exercise)
    digest = digest_of(found)
    if not found or any(each.digest == digest for each in known):
        return
    saved = datetime.fromtimestamp(int(max(path.stat().st_mtime for path in found)), UTC).replace(tzinfo=None)
    before = known[-1] if known else Attempt("", first=saved)
    when = handed_in(folder)[0] or before.first
    several = f"{len(found)} notebooks could be the one meant"
    problem = exercises.problem(found[0], exercise) if len(found) == 1 else several
    last = max(filter(None, (when, before.last)), default=None)
    attempt = Attempt(digest, BY_HAND, before.mark, when, last, before.order, before.late, problem=problem)
    keep(course.root, student, exercise, attempt, {path.name: path for path in found})


def put(course: Course, deadlines: Deadlines, exercises: Exercises, student: str, exercise: str) -> tuple[str, str]:
    """Choose an attempt for `submitted/`. Returns ``"new"``, ``"replaced"`` or ``"unchanged"``, and a remark."""
    found = attempts(course.root, student, exercise)
    chosen, remark = choose(found, student, exercise, deadlines, exercises.digest(exercise))
    folder = course.submitted / student / exercise
    was_there = bool(notebooks_in(folder))
    changed = _fill(folder, home(course.root, student, exercise) / chosen.name, chosen)
    return "unchanged" if not changed else "replaced" if was_there else "new", remark


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


def _fill(folder: Path, source: Path, attempt: Attempt) -> bool:
    """Make the notebooks of a folder, and its time as nbgrader writes it, those of an attempt.

    Returns whether anything changed.
    """
    wanted = {path.name: path.read_bytes() for path in notebooks_in(source)}
    if attempt.first is not None:
        wanted[STAMP] = f"{attempt.first:%Y-%m-%d %H:%M:%S} UTC".encode()
    changed = not folder.is_dir()
    make_folder(folder)
    for name, content in wanted.items():
        path = folder / name
        if path.is_symlink() or not path.is_file() or path.read_bytes() != content:
            unfinished = folder / f".{name}.part"
            unfinished.write_bytes(content)
            os.replace(unfinished, path)
            changed = True
    for path in (*folder.glob("*.ipynb"), folder / STAMP):
        if path.name not in wanted and (path.is_symlink() or path.is_file()):
            path.unlink()
            changed = True
    return changed


def note_result(course: Course, each: Submission, result: Result) -> None:
    """Note the points of the attempt that was graded; nothing if it was not collected, or could not be judged."""
    if not any(incident.kind == "grader" for incident in result.incidents):
        release = release_digest(course.release(each.exercise))
        note_points(course.root, each.student, each.exercise, each.folder, Points(result.points, result.of, release))
