"""Spreadsheets as CSV: read and written in the form that a platform or a spreadsheet program gave them.

A program that opens a CSV file runs a cell that begins with ``=``, ``+``, ``-`` or ``@`` (OWASP, *CSV Injection*). An
apostrophe before it makes it a text.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from minitorch.errors import CommandError

LARGEST = 50_000_000  # bytes of a file that is read; a gradebook of 1,000 students and 100 columns has a tenth of that
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?|-")  # a lone - is what Moodle writes for nothing


@dataclass(frozen=True)
class Sheet:
    """A table: headings, rows that are as long as these, what separates cells, and whether a byte-order mark leads."""

    header: list[str]
    rows: list[list[str]]
    separator: str = ","
    mark: bool = False

    def columns(self, wanted: Mapping[str, Sequence[str]]) -> dict[str, int]:
        """The places of columns: for each name, that with the first of some headings, without regard to case."""
        headings = [heading.strip().casefold() for heading in self.header]
        found = {}
        for name, spellings in wanted.items():
            if there := [each.casefold() for each in spellings if each.casefold() in headings]:
                found[name] = headings.index(there[0])
        return found

    def text(self) -> str:
        """The table as CSV."""
        file = io.StringIO()
        if self.mark:
            file.write("\ufeff")
        writer = csv.writer(file, delimiter=self.separator, lineterminator="\r\n")
        writer.writerow(self.header)
        writer.writerows(self.rows)
        return file.getvalue()


def read_sheet(path: Path) -> Sheet:
    """A CSV file in UTF-8 (UTF-16 with a mark, as spreadsheet programs write it), with commas, semicolons or tabs.

    Raises:
        CommandError: if it cannot be read as that.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > LARGEST:
        raise CommandError(f"{path} is larger than {LARGEST // 1_000_000} MB")
    utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        text = content.decode("utf-16" if utf16 else "utf-8-sig")
        first = text.partition("\n")[0]
        separator = max(",;\t", key=first.count)
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if any(row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise CommandError(f"{path} is no CSV file in UTF-8: {error}") from None
    if not rows:
        raise CommandError(f"{path} is empty")
    header, *others = rows
    width = len(header)
    return Sheet(header, [(row + [""] * width)[:width] for row in others], separator, content[:3] == b"\xef\xbb\xbf")


def plain(text: str) -> str:
    """A cell that is no formula, whatever its text.

    Example:
        >>> plain("=HYPERLINK(1)"), plain("Ana"), plain("-3.5")
        ("'=HYPERLINK(1)", 'Ana', '-3.5')
    """
    return f"'{text}" if is_formula(text) else text


def is_formula(text: str) -> bool:
    """Whether a spreadsheet program may run a cell with this text."""
    return text.lstrip(" ")[:1] in tuple("=+-@\t\r\n|%") and not _NUMBER.fullmatch(text.strip())
