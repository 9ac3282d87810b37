"""Points as Canvas imports them: the gradebook that the instructor exported, with columns filled in.

Canvas finds a student by the number in the column *ID* and an assignment by the number behind its name, as in
``NAME (4711)``. Both stay as they are, and so does the row *Points Possible*. A file with some of the columns changes
these alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ....errors import CommandError
from ..enrolment.roster import is_no_student, letters
from ..sheets import Sheet, plain, read_sheet
from .filled import Choices, number
from .people import Students
from .standings import Standing, Standings

EXCUSED = ("EX", "N/A")  # grades that are none: excused, and not assigned to this student


@dataclass(frozen=True)
class Filled:
    """The file to import, its exercises, the number of points in it, and the students that it has no row for."""

    sheet: Sheet
    exercises: tuple[str, ...]
    count: int
    unknown: tuple[str, ...]
    notes: tuple[str, ...] = ()


def fill_canvas(path: Path, found: Standings, students: Students, choices: Choices) -> Filled:
    """Fill in Canvas's gradebook.

    Args:
        path: as Canvas exported it (*Grades, Export*).
        found: the points.
        students: whose they are.
        choices: the instructor's.

    Raises:
        CommandError: if it is no such file, has no column for an exercise, or another maximum.
    """
    sheet = read_sheet(path)
    headings = [heading.strip() for heading in sheet.header]
    if "ID" not in headings or "Section" not in headings:
        raise CommandError(f"{path} is no gradebook as Canvas exports it: it has no columns ID and Section")
    section = headings.index("Section")
    columns = _columns(headings[section + 1 :], section + 1, found.exercises, choices, path)
    scales = {name: _scale(sheet, column, name, found, choices) for name, column in columns.items()}
    kept = [*range(section + 1), *columns.values()]
    identity = {name: headings.index(name) for name in ("ID", "SIS User ID", "SIS Login ID") if name in headings}
    rows, count, notes = [], 0, []
    met: set[str] = set()
    for row in sheet.rows:
        filled = list(row)
        if not is_no_student(row):
            keys = {name: row[column].strip() for name, column in identity.items()}
            student = students.find(
                _name(sheet, row), keys["ID"], keys.get("SIS Login ID", ""), keys.get("SIS User ID", "")
            )
            met.add(student or "")
            for exercise, column in columns.items():
                standing = found.graded.get((student or "", exercise))
                waiting = found.has_work(student, exercise)
                cell = _cell(row[column].strip(), standing, scales[exercise], choices.zero and not waiting)
                if standing is not None and cell in EXCUSED:
                    notes.append(
                        f"{student} {exercise} stays {cell}, though there are {number(standing.points)} points."
                    )
                filled[column] = cell
                count += standing is not None and cell not in EXCUSED
            filled = _safe(filled, section, headings.index("ID"))
        elif row[0].strip() == "Points Possible":
            for exercise, column in columns.items():
                filled[column] = row[column] if row[column].strip() else number(found.maximum(exercise))
        rows.append([filled[column] for column in kept])
    unknown = sorted({student for student, exercise in found.graded if exercise in columns} - met)
    header = [sheet.header[column] for column in kept]
    return Filled(replace(sheet, header=header, rows=rows), tuple(columns), count, tuple(unknown), tuple(notes))


def _columns(
    headings: Sequence[str], first: int, exercises: Sequence[str], choices: Choices, path: Path
) -> dict[str, int]:
    """The column of each exercise: the one that was named, or the one with its name."""
    found = {}
    for exercise in exercises:
        if (wanted := choices.columns.get(exercise)) is not None:
            matching = [index for index, heading in enumerate(headings) if wanted in (heading, _title(heading))]
        else:
            matching = [
                index for index, heading in enumerate(headings) if letters(_title(heading)) == letters(exercise)
            ]
        if len(matching) > 1 or (wanted is not None and not matching):
            raise CommandError(f"{path} has {len(matching)} columns {wanted or exercise}; name one with its number")
        if matching:
            found[exercise] = first + matching[0]
    if not found:
        titles = [heading for heading in headings if _title(heading) != heading]
        raise CommandError(
            f"{path} has no column for {', '.join(exercises)}; it has {', '.join(titles) or 'no assignments'}: "
            f"name one with --column '{exercises[0]}=ITS NAME'"
        )
    return found


def _title(heading: str) -> str:
    return re.sub(r"\s*\(\d+\)$", "", heading)


def _name(sheet: Sheet, row: Sequence[str]) -> str:
    if sheet.header[0].strip() == "LastName":
        return f"{row[0]}, {row[1]}"
    return re.sub(r'^="(.*)"$', r"\1", row[0].strip())  # as Canvas writes a name that would be a formula


def _scale(sheet: Sheet, column: int, exercise: str, found: Standings, choices: Choices) -> float:
    possible = next((row[column].strip() for row in sheet.rows if row[0].strip() == "Points Possible"), "")
    return scale_to(possible, exercise, found.maximum(exercise), choices.scale, "Canvas")


def scale_to(possible: str, exercise: str, maximum: float, scale: bool, platform: str) -> float:
    """The factor from our points to a platform's, whose maximum is a cell.

    Raises:
        CommandError: if it is not 1, and nobody asked for scaling.
    """
    try:
        theirs = float(possible.replace(",", "."))
    except ValueError:
        return 1.0
    if abs(theirs - maximum) < 1e-6:
        return 1.0
    if not scale or not maximum:
        raise CommandError(
            f"{exercise} gives {maximum:g} points, and {platform} has {theirs:g} for it: "
            "change that, or add --scale to have points scaled"
        )
    return theirs / maximum


def _cell(before: str, standing: Standing | None, scale: float, zero: bool) -> str:
    if before in EXCUSED:
        return before
    if standing is None:
        return before or ("0" if zero else "")
    return number(standing.points * scale)


def _safe(row: list[str], section: int, key: int) -> list[str]:
    """A row whose cells up to the section are no formulas; where Canvas has a number to find the student by."""
    if not row[key].strip().isdigit():
        return row
    return [cell if index == key or index > section else plain(cell) for index, cell in enumerate(row)]
