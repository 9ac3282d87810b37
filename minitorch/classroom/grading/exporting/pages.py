"""Feedback pages for students: one zip as Moodle and Canvas take it back, or a file for each student.

Moodle brings a file to the student whose number is in the folder's name, ``Ana Lopez_12345_assignsubmission_file_/``;
Canvas to the one whose file it was, ``lopezana_1234_5678_``. Both are what the download had, and `collected/` kept it.
"""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

from markupsafe import Markup

from ....errors import CommandError
from ..course.folders import Course
from ..course.private import replace
from .filled import comment
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


def feedback_zip(course: Course, exercise: str, found: Standings, to: Path) -> tuple[int, list[str]]:
    """Write the pages for an exercise as a zip for the platform that the work came from.

    Returns:
        Number of pages, and the students whose work came from no platform.
    """
    content, without = io.BytesIO(), []
    count = 0
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for standing in found.all:
            page = page_of(course, standing) if standing.exercise == exercise else None
            name = _name(standing)
            if page is None:
                continue
            if name is None:
                without.append(standing.student)
                continue
            archive.writestr(zipfile.ZipInfo(name, EPOCH), page, zipfile.ZIP_DEFLATED)
            count += 1
    if not count:
        raise CommandError(
            f"no page for {exercise} can go back to a platform, since none was collected from one: "
            "name a folder with --to, for a file for each student"
        )
    unfinished = to.with_name(f".{to.name}.part")
    unfinished.write_bytes(content.getvalue())
    os.replace(unfinished, to)
    return count, without


def _name(standing: Standing) -> str | None:
    """The name of a page in the zip; None if the work came from no platform that takes it back."""
    if standing.attempt is None or not standing.attempt.mark:
        return None
    mark = standing.attempt.mark
    if standing.attempt.platform == "moodle":
        return f"{mark.rstrip('_')}_/{standing.exercise}.html"
    return f"{mark}{standing.exercise}.html"


def feedback_files(course: Course, found: Standings, to: Path) -> list[Path]:
    """Write ``FOLDER/EXERCISE/STUDENT.html`` for all pages; returns the paths."""
    pages = {to / each.exercise / f"{each.student}.html": page_of(course, each) for each in found.all}
    for path, page in pages.items():
        if page is not None:
            replace(path, page)
    return [path for path, page in pages.items() if page is not None]
