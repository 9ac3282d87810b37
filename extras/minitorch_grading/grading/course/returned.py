"""The student's page and the box in formgrader, in line with gradebook, incidents and the best of the class.

A page is written when a submission is graded. What changes later (points and comments of a person, the best of the
class, a time that was mended) comes to it here, and all of it is in the files: so it can be done again at any time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ..results import Result
from ..submission import feedback
from ..submission.autograded import boxed, text_of, without_box
from .bests import Best
from .folders import Course
from .gradebook.ledger import Ledger
from .gradebook.marks import Who
from .journal.journal import Entry
from .private import replace as write
from .report import Row


def refresh(course: Course, bests: Sequence[Best], entries: Mapping[Who, Entry]) -> None:
    """Bring pages and notebooks of a course up to date; what is right already is not written."""
    ledger = Ledger.read(course.gradebook)
    for who, entry in entries.items():
        row = Row.read(who, ledger, entry, course.submitted.joinpath(*who))
        for path, made in ((course.autograded(*who), notebook_of), (course.feedback(*who), page_of)):
            with suppress(ValueError, KeyError):  # a file that another program has damaged; `--again` makes it anew
                after = made(course, row, bests)
                if after is not None and after != path.read_text(encoding="utf-8"):
                    write(path, after)


def page_of(course: Course, row: Row, bests: Sequence[Best]) -> str | None:
    """The page of a student; None if there is none. If nbgrader has written one there, ours is made again."""
    path, notebook = course.feedback(row.student, row.exercise), course.autograded(row.student, row.exercise)
    if not path.is_file():
        return None
    before = path.read_text(encoding="utf-8")
    shown, is_ours = feedback.notebook_on(before), before.endswith(feedback.END)
    theirs = {(best.cell, best.part): best.told for best in bests if best.exercise == row.exercise}
    is_as_graded = not any(words in before for words in ("a person", "timestamp"))
    if is_ours and is_as_graded and not (theirs or row.by_hand or row.comments or row.result.incidents):
        return before  # as of most of a class, which saves a millisecond for each
    if not is_ours and notebook.is_file():
        shown = feedback.notebook(Result(notebook=without_box(json.loads(notebook.read_text(encoding="utf-8")))))
    return feedback.page(replace(row, result=replace(row.result, shown=shown)), theirs)


def notebook_of(course: Course, row: Row, _: Sequence[Best] = ()) -> str | None:
    """The notebook for formgrader, with the incidents and why a cell asks above it; None if there is none."""
    path = course.autograded(row.student, row.exercise)
    if not path.is_file():
        return None
    before = path.read_text(encoding="utf-8")
    lines = [f"{each}{'  <- look at it' if each.look else ''}" for each in row.result.incidents]
    lines += [why for why in row.why if why not in map(str, row.result.incidents)]
    if not lines and "incidents-" not in before:
        return before
    return text_of(boxed(without_box(json.loads(before)), lines))
