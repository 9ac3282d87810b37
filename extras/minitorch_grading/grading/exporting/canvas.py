"""Points as Canvas imports them: the gradebook that the instructor exported, with columns filled in.

Canvas finds a student by the number in the column *ID* and an assignment by the number behind its name, as in
``NAME (4711)``. Both stay as they are, and so does the row *Points Possible*. A file with some of the columns changes
these alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from minitorch.errors import CommandError

from ..enrolment.roster import is_no_student, letters
from ..sheets import Sheet, plain, read_sheet
from .filled import Filling, Students, number


def fill_canvas(path: Path, filling: Filling, students: Students) -> tuple[Sheet, list[str]]:
    """Fill in Canvas's gradebook; returns the file to import, and the exercises in it.

    Args:
        path: as Canvas exported it (*Grades, Export*).
        filling: of points.
        students: whose they are.

    Raises:
        CommandError: if it is no such file, has no column for an exercise, or another maximum.
    """
    sheet = read_sheet(path)
    headings = [heading.strip() for heading in sheet.header]
    if "ID" not in headings or "Section" not in headings:
        raise CommandError(f"{path} is no gradebook as Canvas exports it: it has no columns ID and Section")
    section = headings.index("Section")
    columns = _columns(headings[section + 1 :], section + 1, filling, path)
    kept = [*range(section + 1), *columns.values()]
    possible = next((row for row in sheet.rows if row[0].strip() == "Points Possible"), [""] * len(headings))
    rows = []
    for row in sheet.rows:
        filled = list(row)
        if not is_no_student(row):
            keys = {heading: cell.strip() for heading, cell in zip(headings, row, strict=True)}
            ids = (keys["ID"], keys.get("SIS Login ID", ""), keys.get("SIS User ID", ""))
            student = students.find(_name(sheet, row), *ids)
            for exercise, column in columns.items():
                filled[column] = filling.cell(student, exercise, row[column].strip(), possible[column])
            if keys["ID"].isdigit():  # by which Canvas finds the student, whatever the other cells are
                filled[: section + 1] = [
                    cell if heading == "ID" else plain(cell)
                    for heading, cell in zip(headings[: section + 1], filled, strict=False)
                ]
        elif row is possible:
            for exercise, column in columns.items():
                filled[column] = row[column] if row[column].strip() else number(filling.found.maximum(exercise))
        rows.append([filled[column] for column in kept])
    return replace(sheet, header=[sheet.header[column] for column in kept], rows=rows), list(columns)


def _columns(headings: Sequence[str], first: int, filling: Filling, path: Path) -> dict[str, int]:
    """Return the column of each exercise: the one that was named, or the one with its name."""
    found = {}
    exercises = filling.found.exercises
    for exercise in exercises:
        wanted = filling.choices.columns.get(exercise)
        matching = [
            index
            for index, heading in enumerate(headings, first)
            if (wanted in (heading, _title(heading)) if wanted else letters(_title(heading)) == letters(exercise))
        ]
        if len(matching) > 1:
            raise CommandError(f"{path} has {len(matching)} columns {wanted or exercise}; name one with its number")
        if wanted is not None and not matching:
            raise CommandError(f"{path} has no column {wanted}; it has {_assignments(headings)}")
        if matching:
            found[exercise] = matching[0]
    if not found:
        raise CommandError(
            f"{path} has no column for {', '.join(exercises)}; it has {_assignments(headings)}: "
            f"name one with --column '{exercises[0]}=ITS NAME'"
        )
    others = [heading for index, heading in enumerate(headings, first) if index not in found.values()]
    if len(found) < len(exercises) and (unfilled := _assignments(others)):
        filling.notes.append(f"Columns of {path.name} to which nothing was written: {unfilled}.")
    return found


def _assignments(headings: Sequence[str]) -> str:
    return ", ".join(heading for heading in headings if _title(heading) != heading) or "no assignments"


def _title(heading: str) -> str:
    return re.sub(r"\s*\(\d+\)$", "", heading)


def _name(sheet: Sheet, row: Sequence[str]) -> str:
    if sheet.header[0].strip() == "LastName":
        return f"{row[0]}, {row[1]}"
    return re.sub(r'^="(.*)"$', r"\1", row[0].strip())  # as Canvas writes a name that would be a formula
