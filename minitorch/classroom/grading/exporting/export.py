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
from .canvas import fill_canvas
from .filled import Choices, Export, Filling, notes
from .moodle import fill_worksheet, grade_import
from .pages import write_pages
from .people import Students
from .standings import standings

TAKES = {
    "canvas": "the gradebook that Canvas exported",
    "moodle": "no file: it is made of roster.csv",
    "worksheet": "the grading worksheet of the assignment",
    "feedback": "no file",
}


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
        form: one of `TAKES`.
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
    if (file is None) != (form in ("moodle", "feedback")):
        raise CommandError(f"the form {form} takes {TAKES[form]}")
    found = standings(course, deadlines, exercises)
    said = []
    try:
        enter_penalties(course, deadlines)
    except CommandError as error:  # the points that are exported are right all the same
        said.append(f"Formgrader still shows the penalties of before: {error}.")
    filling = Filling(found, choices)
    met = None
    if form == "feedback":
        names, filling.count, filling.notes = write_pages(course, found, to)
    else:
        if file is None:
            sheet, names = grade_import(roster, filling)
        else:
            sheet, names = (fill_canvas if form == "canvas" else fill_worksheet)(file, filling, Students(roster, found))
        replace(to, sheet.text())
        met = filling.met
    said += [*notes(found, names, met), *filling.notes]
    if filling.zeros:
        said.append(f"Cells with 0, since nothing was handed in: {filling.zeros}.")
    if left := [name for name in found.exercises if name not in names and form == "canvas"]:
        said.append(f"No column for {', '.join(left)}; --column '{left[0]}=ITS NAME' names one.")
    late = [each for who, each in sorted(found.graded.items()) if each.penalty.days and who[1] in names]
    missing = [
        *found.waiting,
        *(() if met is None else (*found.undecided, *(who for who in found.graded if who[0] not in met))),
    ]
    return Export([to], filling.count, late, said, not any(who[1] in names for who in missing))
