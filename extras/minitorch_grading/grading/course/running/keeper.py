"""Keeping what has been found out: pages, journal, gradebook, and the rows of the report.

An exception while one submission is written or recorded is that submission's incident `grader`. The run ends only if
nothing more can be written at all, as on a full disk; all that is in the journal stays.
"""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from minitorch.errors import CommandError

from ...incidents import Incident
from ...results import Result
from ...submission.autograded import as_notebook, text_of
from ...submission.feedback import page
from ..folders import Course, read_exercise
from ..gradebook.marks import Who
from ..gradebook.recorder import Recorder
from ..handed_in import with_time
from ..journal.journal import Entry, Journal
from ..private import replace
from ..report import Row
from .plan import Item

# Errors of the machine, which would befall every other submission, too.
FATAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class Keeper:
    """Takes results; `rows` has one for each."""

    def __init__(self, course: Course, journal: Journal, recorder: Recorder) -> None:
        self.course, self.journal, self.recorder = course, journal, recorder
        self.rows: dict[Who, Row] = {}
        self._said: set[str] = set()

    def done(self, item: Item, result: Result, why: str) -> Row:
        """Keep a new result; it counts as done when its line is in the journal."""
        with self._guarded("writing its pages", result):
            write(self.course, item.who, with_time(result, item.wrong))
        self.journal.add(item.who, Entry(item.conditions, item.work, result, item.attempt))
        return self.known(item, result, why)

    def known(self, item: Item, result: Result, why: str = "") -> Row:
        """Bring the gradebook in line with a result that is in the journal."""
        shown = with_time(result, item.wrong)
        with self._guarded("recording it", shown):
            self.recorder.record(item.who, shown, item.work, item.when, why)
        row = Row(*item.who, shown, self.recorder.ledger.marks.get(item.who, {}))
        self.rows[item.who] = row
        return row

    @contextmanager
    def _guarded(self, doing: str, result: Result) -> Iterator[None]:
        try:
            yield
        except CommandError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FATAL:
                raise
            said = f"{type(error).__name__}: {error}"
            if not isinstance(error, OSError) and said not in self._said:  # a fault of ours: where it was, once
                traceback.print_exc(file=sys.stderr)
            self._said.add(said)
            result.incidents.append(Incident("grader", f"{doing}: {said}"[:300]))


def write(course: Course, who: Who, result: Result) -> None:
    """Write the notebook as it was run, or if it could not be, as it was handed out, and the student's page."""
    text = result.text
    if text is None:  # then formgrader has something to open, and a person can give points
        release = read_exercise(course, who[1])
        text = text_of(as_notebook(release, {}, {part.source for part in release}))
    replace(course.autograded(*who), text)
    replace(course.feedback(*who), page(Row(*who, result)))
