"""Moodle's grading worksheet of an assignment: who the numbered participants are, and when they handed in.

Moodle's downloads name people by a number that is another one in each assignment; the worksheet (*Download grading
worksheet*) says whose it is, in the column *Identifier*, as in ``Participant 12345``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from minitorch.errors import CommandError

from ..sheets import Sheet, read_sheet

# Columns by their English headings; `--column` names those of a Moodle in another language.
HEADINGS = {
    "identifier": "Identifier",
    "name": "Full name",
    "email": "Email address",
    "number": "ID number",
    "grade": "Grade",
    "maximum": "Maximum grade",
    "changeable": "Grade can be changed",
    "submitted": "Last modified (submission)",
    "comments": "Feedback comments",
}
_READ = ("identifier", "name", "email", "number", "submitted")


@dataclass(frozen=True)
class Participant:
    """A row of the worksheet. Empty is what it does not have; `when` is the time in UTC."""

    key: str
    name: str = ""
    email: str = ""
    number: str = ""
    when: datetime | None = None
    unread: str = ""  # a time that was not understood


@dataclass(frozen=True)
class Worksheet:
    """A worksheet: the table, and the column of each heading that it has."""

    path: Path
    sheet: Sheet
    columns: dict[str, int] = field(default_factory=dict)

    def cell(self, row: list[str], heading: str) -> str:
        """The cell of a row under a heading of `HEADINGS`; empty if there is no such column."""
        return row[self.columns[heading]].strip() if heading in self.columns else ""

    def participant(self, row: list[str], zone: tzinfo = UTC) -> Participant:
        """The person of a row."""
        identifier, name, email, number, written = (self.cell(row, heading) for heading in _READ)
        when = _time(written, zone)
        unread = written if when is None and written != "-" else ""
        return Participant(number_of(identifier), name, email, number, when, unread)


def read_worksheet(path: Path, names: Mapping[str, str] | None = None) -> Worksheet:
    """A worksheet.

    Args:
        path: the file.
        names: headings in another language, by those of `HEADINGS`.

    Raises:
        CommandError: if it is none.
    """
    sheet = read_sheet(path)
    columns = sheet.columns({name: ((names or {}).get(english, english),) for name, english in HEADINGS.items()})
    if "identifier" not in columns and sheet.rows and all(number_of(row[0]) for row in sheet.rows):
        columns["identifier"] = 0  # it is the first one in every language
    if "identifier" not in columns:
        raise CommandError(
            f"{path} has no column Identifier, so it is no grading worksheet; if your Moodle calls it otherwise, "
            "add --column Identifier=NAME"
        )
    return Worksheet(path, sheet, columns)


def number_of(identifier: str) -> str:
    """The number of a participant; empty if there is none.

    Example:
        >>> number_of("Participant 12345"), number_of("Ana")
        ('12345', '')
    """
    found = re.fullmatch(r"\D{0,40}?(\d{1,18})", identifier.strip())
    return found[1] if found else ""


def _time(text: str, zone: tzinfo) -> datetime | None:
    """A time as Moodle writes it in English: ``Sunday, 22 November 2026, 10:00 PM``."""
    written = re.sub(r"^[^\d,]*,|\s", "", text)
    for form in ("%d%B%Y,%I:%M%p", "%d%B%Y,%H:%M"):
        with suppress(ValueError):
            return datetime.strptime(written, form).replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
    return None


def participants_of(paths: Sequence[str], names: Mapping[str, str], zone: tzinfo) -> dict[str, Participant]:
    """The people in some worksheets, by their numbers, which are different ones in each of them."""
    sheets = [read_worksheet(Path(path), names) for path in paths]
    people = [sheet.participant(row, zone) for sheet in sheets for row in sheet.sheet.rows]
    return {each.key: each for each in people if each.key}
