"""Cells of a spreadsheet: text that a spreadsheet program would take for a formula is kept from being one.

A program that opens a CSV file runs a cell that begins with ``=``, ``+``, ``-`` or ``@`` (OWASP, *CSV Injection*). An
apostrophe before it makes it a text.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")


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
