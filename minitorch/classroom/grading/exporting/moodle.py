"""Points as Moodle imports them: a grading worksheet, filled in, and a file for *Grades, Import, CSV file*.

The worksheet is matched by its column *Identifier*; Moodle also reads *Grade*, *Feedback comments* and *Last modified
(grade)*, by which it sees whether a grade has changed since. These cells stay as they are. In the other file the
instructor tells Moodle which column is which, so it has the address and the number of each student.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ....errors import CommandError
from ..course.names import visible
from ..enrolment.roster import Roster
from ..enrolment.worksheet import read_worksheet
from ..sheets import Sheet, plain
from .canvas import Filled, scale_to
from .filled import Choices, comment, number
from .people import Students
from .standings import Standings

READ = ("identifier", "grade", "comments")  # columns that Moodle reads


def fill_worksheet(path: Path, exercise: str, found: Standings, students: Students, choices: Choices) -> Filled:
    """Fill in a grading worksheet.

    Args:
        path: as Moodle made it (*Download grading worksheet*).
        exercise: what the assignment is.
        found: the points.
        students: whose they are.
        choices: the instructor's.

    Raises:
        CommandError: if it is no such file, or another maximum.
    """
    work = read_worksheet(path, choices.columns)
    if "grade" not in work.columns:
        raise CommandError(f"{path} has no column Grade; if your Moodle calls it otherwise, add --column Grade=NAME")
    known = {work.columns[name] for name in READ if name in work.columns}
    known |= {index for index, heading in enumerate(work.sheet.header) if heading == "Last modified (grade)"}
    rows, count, notes = [], 0, []
    met: set[str] = set()
    for row in work.sheet.rows:
        person = work.participant(row)
        student = students.find(person.name, number=person.number, email=person.email, moodle=person.key)
        met.add(student or "")
        standing = found.graded.get((student or "", exercise))
        filled = [cell if index in known else plain(cell) for index, cell in enumerate(row)]
        grade = work.columns["grade"]
        if work.cell(row, "changeable").casefold() == "no":
            notes += [f"Moodle does not let the grade of {student} be changed."] if standing else []
        elif standing is not None:
            scale = scale_to(work.cell(row, "maximum"), exercise, standing.of, choices.scale, "Moodle")
            filled[grade] = number(standing.points * scale)
            if "comments" in work.columns and comment(standing) and not row[work.columns["comments"]].strip():
                filled[work.columns["comments"]] = comment(standing)
            count += 1
        elif choices.zero and not found.has_work(student, exercise) and not row[grade].strip():
            filled[grade] = "0"
        rows.append(filled)
    unknown = sorted({student for student, name in found.graded if name == exercise} - met)
    return Filled(replace(work.sheet, rows=rows), (exercise,), count, tuple(unknown), tuple(notes))


def grade_import(roster: Roster | None, found: Standings, choices: Choices) -> Filled:
    """A file for *Grades, Import, CSV file*, with a column for each exercise, and one for what a student should know.

    Raises:
        CommandError: if there is no roster, or it has neither addresses nor numbers.
    """
    if roster is None or not any(person.email or person.number for person in roster.people):
        raise CommandError(
            "Moodle finds students by e-mail or ID number: put a roster.csv with `Email address` or `ID number` into "
            "the folder of the course, such as Moodle's own list of participants"
        )
    header = ["Email address", "ID number", "Full name"]
    for exercise in found.exercises:
        header += [choices.columns.get(exercise, exercise), f"{choices.columns.get(exercise, exercise)} feedback"]
    rows, count = [], 0
    for person in roster.people:
        if person.email and not re.fullmatch(r"[^\s@]+@[^\s@]+", person.email):
            raise CommandError(f"`{visible(person.email)}` of {person.student} is no e-mail address")
        row = [person.email, person.number, plain(person.name)]
        for exercise in found.exercises:
            standing = found.graded.get((person.student, exercise))
            waiting = found.has_work(person.student, exercise)
            nothing = "0" if choices.zero and not waiting else ""
            row += [number(standing.points), comment(standing)] if standing else [nothing, ""]
            count += standing is not None
        rows.append(row)
    unknown = sorted({student for student, _ in found.graded} - {person.student for person in roster.people})
    return Filled(Sheet(header, rows), found.exercises, count, tuple(unknown))


def one_exercise(found: Standings) -> str:
    """The exercise that a file for one assignment is about.

    Raises:
        CommandError: if there are several.
    """
    if len(found.exercises) != 1:
        listed = ", ".join(found.exercises) or "none"
        raise CommandError(f"this is for one assignment, and {listed} were graded: add --exercise NAME")
    return found.exercises[0]
