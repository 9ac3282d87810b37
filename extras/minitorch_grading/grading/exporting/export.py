"""``minitorch export``: points and feedback in the forms that platforms import.

Pages go back as one zip: Moodle brings a file to the student whose number is in the folder's name,
``Ana Lopez_12345_assignsubmission_file_/``; Canvas to the one whose file it was, ``lopezana_1234_5678_``. Both are what
the download had, and `collected/` kept it.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from minitorch.errors import CommandError

from ..course.bests import Best
from ..course.folders import Course
from ..course.private import replace
from ..course.report import Row
from ..course.returned import page_of
from ..enrolment.deadlines import Rules
from .canvas import fill_canvas
from .filled import Choices, Filling, Students, comment
from .moodle import fill_worksheet, grade_import, one_exercise
from .standings import enter_penalties, standings

EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of all files, so that the same pages make the same zip
TAKES = {
    "canvas": "the gradebook that Canvas exported",
    "moodle": "no file: it is made of roster.csv",
    "worksheet": "the grading worksheet of the assignment",
    "feedback": "no file",
}


@dataclass(frozen=True)
class Export:
    """What was written: a path, the number of points in it, those who were late, and notes for a person to read.

    `is_complete` says whether everybody who handed something in has points there.
    """

    written: Path
    count: int
    late: list[Row]
    notes: list[str]
    is_complete: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        late = [
            {"student": each.student, "exercise": each.exercise, "earned": each.points, "points": each.counts}
            | {"penalty": each.penalty.points, "days": each.penalty.days, "assumed": each.penalty.assumed}
            for each in self.late
        ]
        return {"written": [str(self.written)], "count": self.count, "late": late, "notes": self.notes}

    def __str__(self) -> str:
        lines = [f"{self.count} written to {self.written}"]
        lines += ["", "Late:"] if self.late else []
        lines += [
            f"  {each.student} {each.exercise}: {each.points:g} earned, {each.penalty}, {each.counts:g} count"
            for each in self.late
        ]
        return "\n".join([*lines, *(line for note in self.notes for line in ("", note))])


def export(
    form: str,
    file: Path | None,
    to: Path,
    course: Course,
    rules: Rules,
    exercises: Sequence[str],
    choices: Choices,
) -> Export:
    """Write an export.

    Args:
        form: one of `TAKES`.
        file: the platform's own file, for the forms that fill one in.
        to: the file to write; for feedback a zip or a folder.
        course: where things are.
        rules: who is in the course, and when work is late.
        exercises: those to export; all by default.
        choices: the instructor's.

    Raises:
        CommandError: if nothing was graded, or files do not fit.
    """
    if (file is None) != (form in ("moodle", "feedback")):
        raise CommandError(f"the form {form} takes {TAKES[form]}")
    found = standings(course, rules.deadlines, exercises)
    before = []
    try:
        enter_penalties(course, found)
    except CommandError as error:  # the points that are exported are right all the same
        before.append(f"Formgrader still shows the penalties of before: {error}.")
    filling = Filling(found, choices)
    if form == "feedback":
        names = write_pages(course, filling, to)
    else:
        if file is None:
            sheet, names = grade_import(rules.roster, filling)
        else:
            sheet, names = (fill_canvas if form == "canvas" else fill_worksheet)(
                file, filling, Students(rules.roster, found)
            )
        replace(to, sheet.text())
    said, is_complete = filling.said(names, form != "feedback")
    said = [*before, *said]
    if filling.zeros:
        said.append(f"Cells with 0, since nothing was handed in: {filling.zeros}.")
    if left := [name for name in found.exercises if name not in names and form == "canvas"]:
        said.append(f"No column for {', '.join(left)}; --column '{left[0]}=ITS NAME' names one.")
        is_complete = False
    late = [row for who, row in found.rows.items() if row.penalty.days and not row.is_undecided and who[1] in names]
    return Export(to, filling.count, late, said, is_complete)


def write_pages(course: Course, filling: Filling, to: Path) -> Sequence[str]:
    """Write pages as a zip for the platform that the work came from, or as ``FOLDER/EXERCISE/STUDENT.html``.

    Returns:
        The exercises.

    Raises:
        CommandError: if no page can go back to a platform.
    """
    found = filling.found
    pages = {
        who: page for who, row in found.rows.items() if (page := exported_page(course, row, found.bests)) is not None
    }
    filling.count = len(pages)
    if to.suffix != ".zip":
        for (student, exercise), page in pages.items():
            replace(to / exercise / f"{student}.html", page)
        return found.exercises
    exercise, content = one_exercise(found), io.BytesIO()
    named = {name: page for who, page in pages.items() if (name := _name(found.rows[who])) is not None}
    if not named:
        raise CommandError(
            f"no page for {exercise} can go back to a platform, since none was collected from one: "
            "name a folder with --to, for a file for each student"
        )
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, page in named.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), page, zipfile.ZIP_DEFLATED)
    replace(to, content.getvalue())
    filling.count = len(named)
    if without := [student for student, _ in pages if _name(found.rows[student, exercise]) is None]:
        filling.notes.append(f"Came from no platform, and are not in the zip: {', '.join(without)}.")
    return [exercise]


def exported_page(course: Course, row: Row, bests: Sequence[Best]) -> str | None:
    """A student's page, which says what was taken for being late; None if there is none."""
    text, said = page_of(course, row, bests), comment(row)
    return text.replace("<body>", Markup("<body>\n<p><b>{}</b></p>").format(said), 1) if text and said else text


def _name(row: Row) -> str | None:
    """The name of a page in the zip; None if the work came from no platform that takes it back."""
    if row.attempt is None or not row.attempt.mark:
        return None
    mark = row.attempt.mark
    return (
        f"{mark.rstrip('_')}_/{row.exercise}.html" if row.attempt.platform == "moodle" else f"{mark}{row.exercise}.html"
    )
