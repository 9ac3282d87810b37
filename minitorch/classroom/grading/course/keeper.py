"""Keeping what has been found out: pages, journal, gradebook, and the rows of the report.

An exception while one submission is written or recorded is that submission's incident `grader`. The run ends only if
nothing more can be written at all, as on a full disk; all that is in the journal stays.
"""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from ....errors import CommandError
from ..incidents import Incident
from ..results import Result
from ..submission import feedback
from .folders import Submission
from .handed_in import handed_in
from .journal import Entry, Journal
from .plan import Item
from .recorder import Recorder
from .report import Row

FATAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors of the machine, which would befall every other submission, too."""


class Keeper:
    """Takes results; `rows` has one for each."""

    def __init__(
        self,
        journal: Journal,
        recorder: Recorder,
        write: Callable[[Submission, Result], None],
        note: Callable[[Submission, Result], None],
    ) -> None:
        self.journal, self.recorder, self._write, self._note = journal, recorder, write, note
        self.rows: dict[Submission, Row] = {}
        self._said: set[str] = set()

    def done(self, item: Item, result: Result, why: str, is_merged: bool = False) -> Row:
        """Keep a new result; it counts as done when its line is in the journal. A merged one needs a new page."""
        shown, _ = self._with_time(item, result)

        def write() -> None:
            self._write(
                item.submission,
                replace(
                    shown, page=_page(item, shown) if is_merged or shown.incidents != result.incidents else shown.page
                ),
            )

        self._guarded("writing its pages", result, write)
        self.journal.add(item.who, Entry(item.conditions, item.work, result.to_json(), item.attempt))
        return self.known(item, result, why)

    def known(self, item: Item, result: Result, why: str = "") -> Row:
        """Bring the gradebook in line with a result that is in the journal."""
        shown, when = self._with_time(item, result)
        self._guarded("recording it", shown, lambda: self.recorder.record(item.who, shown, item.work, when, why))
        self._guarded("noting its points", shown, lambda: self._note(item.submission, shown))
        row = Row(*item.who, shown, self.recorder.ledger.marks.get(item.who))
        self.rows[item.submission] = row
        return row

    def _with_time(self, item: Item, result: Result) -> tuple[Result, datetime | None]:
        """The result with what is wrong with the time of handing in, which is no part of the work; and that time."""
        shown = replace(result, incidents=list(result.incidents))
        found: list[datetime | None] = [None]

        def read() -> None:
            found[0], wrong = handed_in(item.submission.folder)
            shown.incidents += [wrong] if wrong else []

        self._guarded("reading when it was handed in", shown, read)
        return shown, found[0]

    def _guarded(self, doing: str, result: Result, work: Callable[[], None]) -> None:
        try:
            work()
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


def _page(item: Item, result: Result) -> str:
    """The page with the tables of this result, and the notebook of the page that was made with it."""
    tables = feedback.page(*item.who, replace(result, notebook=None))
    # No text of a student's can be before the heading as it stands here.
    _, heading, rest = result.page.partition(feedback.NOTEBOOK)
    return tables.removesuffix("</body></html>\n") + heading + rest if heading else tables
