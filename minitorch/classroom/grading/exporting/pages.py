"""Feedback pages for students: one zip as Moodle and Canvas take it back, or a file for each student.

Moodle brings a file to the student whose number is in the folder's name, ``Ana Lopez_12345_assignsubmission_file_/``;
Canvas to the one whose file it was, ``lopezana_1234_5678_``. Both are what the download had, and `collected/` kept it.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from ....errors import CommandError
from ..course.folders import Course
from ..course.private import replace
from .filled import comment
from .moodle import one_exercise
from .standings import Standing, Standings

EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of all files, so that the same pages make the same zip


def page_of(course: Course, standing: Standing) -> str | None:
    """A student's page, which says what was taken for being late; None if there is none."""
    path = course.feedback(standing.student, standing.exercise)
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    said = comment(standing)
    return text.replace("<body>", Markup("<body>\n<p><b>{}</b></p>").format(said), 1) if said else text


def write_pages(course: Course, found: Standings, to: Path) -> tuple[Sequence[str], int, list[str]]:
    """Write pages as a zip for the platform that the work came from, or as ``FOLDER/EXERCISE/STUDENT.html``.

    Returns:
        The exercises, the number of pages, and what there is to know.

    Raises:
        CommandError: if no page can go back to a platform.
    """
    pages = [(standing, page) for standing in found.all if (page := page_of(course, standing)) is not None]
    if to.suffix != ".zip":
        for standing, page in pages:
            replace(to / standing.exercise / f"{standing.student}.html", page)
        return found.exercises, len(pages), []
    exercise, content = one_exercise(found), io.BytesIO()
    named = {name: page for standing, page in pages if (name := _name(standing)) is not None}
    if not named:
        raise CommandError(
            f"no page for {exercise} can go back to a platform, since none was collected from one: "
            "name a folder with --to, for a file for each student"
        )
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, page in named.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), page, zipfile.ZIP_DEFLATED)
    replace(to, content.getvalue())
    without = ", ".join(standing.student for standing, _ in pages if _name(standing) is None)
    return [exercise], len(named), [f"Came from no platform, and are not in the zip: {without}."] if without else []


def _name(standing: Standing) -> str | None:
    """The name of a page in the zip; None if the work came from no platform that takes it back."""
    if standing.attempt is None or not standing.attempt.mark:
        return None
    mark = standing.attempt.mark
    if standing.attempt.platform == "moodle":
        return f"{mark.rstrip('_')}_/{standing.exercise}.html"
    return f"{mark}{standing.exercise}.html"
