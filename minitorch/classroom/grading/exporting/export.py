"""``minitorch export``: points and feedback in the forms that platforms import."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ....errors import CommandError
from ..course.folders import Course
from ..course.private import replace
from ..enrolment.deadlines import Deadlines
from ..enrolment.roster import Roster
from .after import enter_penalties
from .canvas import Filled, fill_canvas
from .filled import Choices, Export, late, notes
from .moodle import fill_worksheet, grade_import, one_exercise
from .pages import feedback_files, feedback_zip
from .people import Students
from .standings import Standings, standings

FORMS = ("canvas", "moodle", "worksheet", "feedback")


def export(
    form: str,
    file: Path | None,
    to: Path,
    course: Course,
    deadlines: Deadlines,
    roster: Roster | None,
    exercises: Sequence[str],
    choices: Choices,
) -> Export:
    """Write an export.

    Args:
        form: one of `FORMS`.
        file: the platform's own file, for the forms that fill one in.
        to: the file to write; for feedback a zip or a folder.
        course: where things are.
        deadlines: the rules of being late.
        roster: who is in the course, if it says so.
        exercises: those to export; all by default.
        choices: the instructor's.

    Raises:
        CommandError: if nothing was graded, or files do not fit.
    """
    found = standings(course, deadlines, exercises)
    said = []
    try:
        enter_penalties(course, deadlines)
    except CommandError as error:  # the points that are exported are right all the same
        said.append(f"Formgrader still shows the penalties of before: {error}.")
    if form == "feedback":
        return _feedback(course, found, to)
    if (file is None) != (form == "moodle"):
        wanted = "the gradebook that Canvas exported" if form == "canvas" else "the grading worksheet of the assignment"
        raise CommandError(
            "the form moodle is made of roster.csv, and takes no file" if form == "moodle" else f"it takes {wanted}"
        )
    filled = _filled(form, file, found, Students(roster, found), roster, choices)
    replace(to, filled.sheet.text())
    said += [*notes(found, filled.exercises, filled.unknown), *filled.notes]
    if left := [name for name in found.exercises if name not in filled.exercises]:
        said.append(f"No column for {', '.join(left)}; --column '{left[0]}=ITS NAME' names one.")
    missing = any(who[1] in filled.exercises for who in (*found.waiting, *found.undecided))
    return Export([to], filled.count, late(found, filled.exercises), said, not (missing or filled.unknown))


def _filled(
    form: str, file: Path | None, found: Standings, students: Students, roster: Roster | None, choices: Choices
) -> Filled:
    if file is None:
        return grade_import(roster, found, choices)
    if form == "canvas":
        return fill_canvas(file, found, students, choices)
    return fill_worksheet(file, one_exercise(found), found, students, choices)


def _feedback(course: Course, found: Standings, to: Path) -> Export:
    if to.suffix != ".zip":
        paths = feedback_files(course, found, to)
        return Export([to], len(paths), late(found, found.exercises), notes(found, found.exercises))
    exercise = one_exercise(found)
    count, without = feedback_zip(course, exercise, found, to)
    said = notes(found, (exercise,))
    if without:
        said.append(f"Came from no platform, and are not in the zip: {', '.join(without)}.")
    return Export([to], count, late(found, (exercise,)), said)
