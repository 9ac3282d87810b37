"""Moodle's grading worksheet of an assignment: who the numbered participants are, and when they handed in.

Moodle's downloads name people by a number that is another one in each assignment; the worksheet (*Download grading
worksheet*) says whose it is, in the column *Identifier*, as in ``Participant 12345``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from ....errors import CommandError
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
_MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
_TIME = re.compile(r"(\d{1,2}) ([A-Z][a-z]+) (\d{4}), (\d{1,2}):(\d{2})(?: ?([AaPp])[Mm])?")


@dataclass(frozen=True)
class Participant:
    """A row of the worksheet. Empty is what it does not have; `when` is the time in UTC."""

    key: str
    name: str = ""
    email: str = ""
    number: str = ""
    when: datetime | None = None
    unread: str = ""
    """A time that was not understood."""


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
        written = self.cell(row, "submitted")
        when = _time(written, zone)
        return Participant(
            number_of(self.cell(row, "identifier")),
            self.cell(row, "name"),
            self.cell(row, "email"),
            self.cell(row, "number"),
            when,
            written if when is None and written not in ("", "-") else "",
        )

    def participants(self, zone: tzinfo = UTC) -> dict[str, Participant]:
        """All people by their numbers."""
        found = [self.participant(row, zone) for row in self.sheet.rows]
        return {each.key: each for each in found if each.key}


def read_worksheet(path: Path, names: Mapping[str, str] | None = None) -> Worksheet:
    """A worksheet.

    Args:
        path: the file.
        names: headings in another language, by those of `HEADINGS`.

    Raises:
        CommandError: if it is none.
    """
    sheet = read_sheet(path)
    names = names or {}
    columns = {}
    for heading, english in HEADINGS.items():
        wanted = names.get(english, english).casefold()
        found = [index for index, name in enumerate(sheet.header) if name.strip().casefold() == wanted]
        if found:
            columns[heading] = found[0]
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
    found = _TIME.search(text)
    if found is None or found[2] not in _MONTHS:
        return None
    hour = int(found[4])
    if found[6]:
        hour = hour % 12 + (12 if found[6] in "Pp" else 0)
    try:
        local = datetime(int(found[3]), _MONTHS.index(found[2]) + 1, int(found[1]), hour, int(found[5]), tzinfo=zone)
    except ValueError:
        return None
    return local.astimezone(UTC).replace(tzinfo=None)


def participants_of(paths: Sequence[str], names: Mapping[str, str], zone: tzinfo) -> dict[str, Participant]:
    """The people in some worksheets, by their numbers, which are different ones in each of them."""
    return {
        key: participant
        for path in paths
        for key, participant in read_worksheet(Path(path), names).participants(zone).items()
    }
