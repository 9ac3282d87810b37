"""Points as Moodle imports them: a grading worksheet, filled in, and a file for *Grades, Import, CSV file*.

The worksheet is matched by its column *Identifier*; Moodle also reads *Grade*, *Feedback comments* and *Last modified
(grade)*, by which it sees whether a grade has changed since. These cells stay as they are. In the other file the
instructor tells Moodle which column is which, so it has the address and the number of each student.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from minitorch.errors import CommandError

from ..course.names import visible
from ..enrolment.roster import Roster
from ..enrolment.worksheet import read_worksheet
from ..sheets import Sheet, plain
from .filled import Filling, Students, comment
from .standings import Standings

READ = ("identifier", "grade", "comments")  # columns that Moodle reads


def fill_worksheet(path: Path, filling: Filling, students: Students) -> tuple[Sheet, list[str]]:
    """Fill in a grading worksheet; returns the file to upload, and its exercise.

    Args:
        path: as Moodle made it (*Download grading worksheet*).
        filling: of points for one exercise.
        students: whose they are.

    Raises:
        CommandError: if it is no such file, there are several exercises, or the maximum is another.
    """
    exercise = one_exercise(filling.found)
    work = read_worksheet(path, filling.choices.columns)
    if "grade" not in work.columns:
        raise CommandError(f"{path} has no column Grade; if your Moodle calls it otherwise, add --column Grade=NAME")
    grade, comments = work.columns["grade"], work.columns.get("comments")
    known = {work.columns[name] for name in READ if name in work.columns}
    known |= {index for index, heading in enumerate(work.sheet.header) if heading == "Last modified (grade)"}
    rows = []
    for row in work.sheet.rows:
        person = work.participant(row)
        student = students.find(person.name, number=person.number, email=person.email, moodle=person.key)
        graded = filling.found.graded(student, exercise)
        filled = [cell if index in known else plain(cell) for index, cell in enumerate(row)]
        if work.cell(row, "changeable").casefold() == "no":
            filling.met.add(student or "")
            filling.notes += [f"Moodle does not let the grade of {student} be changed."] if graded else []
        else:
            filled[grade] = filling.cell(student, exercise, row[grade].strip(), work.cell(row, "maximum"))
            if comments is not None and not row[comments].strip():
                filled[comments] = comment(graded)
        rows.append(filled)
    return replace(work.sheet, rows=rows), [exercise]


def grade_import(roster: Roster | None, filling: Filling) -> tuple[Sheet, list[str]]:
    """Make a file for *Grades, Import, CSV file*: a column for each exercise, and one for what a student should know.

    Raises:
        CommandError: if there is no roster, or it has neither addresses nor numbers.
    """
    if roster is None or not any(person.email or person.number for person in roster.people):
        raise CommandError(
            "Moodle finds students by e-mail or ID number: put a roster.csv with `Email address` or `ID number` into "
            "the folder of the course, such as Moodle's own list of participants"
        )
    found = filling.found
    names = [filling.choices.columns.get(exercise, exercise) for exercise in found.exercises]
    header = [
        "Email address",
        "ID number",
        "Full name",
        *(each for name in names for each in (name, f"{name} feedback")),
    ]
    rows = []
    for person in roster.people:
        if person.email and not re.fullmatch(r"[^\s@]+@[^\s@]+", person.email):
            raise CommandError(f"`{visible(person.email)}` of {person.student} is no e-mail address")
        row = [person.email, person.number, plain(person.name)]
        for exercise in found.exercises:
            row += [filling.cell(person.student, exercise), comment(found.graded(person.student, exercise))]
        rows.append(row)
    return Sheet(header, rows), list(found.exercises)


def one_exercise(found: Standings) -> str:
    """The exercise that a file for one assignment is about.

    Raises:
        CommandError: if there are several.
    """
    if len(found.exercises) != 1:
        listed = ", ".join(found.exercises) or "none"
        raise CommandError(f"this is for one assignment, and {listed} were graded: add --exercise NAME")
    return found.exercises[0]
