"""Text that student code has made, for a page or a terminal: characters that would steer either are written out."""

from __future__ import annotations

import re

_COLORS = re.compile(r"\x1b\[[0-9;]*[mAK]")  # and what progress bars send: a line up, and the rest of a line cleared
# Control characters other than tab and newline, those that turn the direction of the text around them (the Unicode
# Standard Annex #9; "Trojan Source", arXiv:2111.00169), and halves of pairs of UTF-16.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """Return a text without colours, in which every other control character is written as Python would.

    Example:
        >>> print(plain(chr(27) + "[31mred" + chr(27) + "[2J, " + chr(0x202E) + "abc"))
        red\\x1b[2J, \\u202eabc
    """
    text = _COLORS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
