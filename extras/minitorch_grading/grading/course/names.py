"""The names of students: one rule for HTML, shells, spreadsheets and file systems.

A name begins with a letter or a digit of any script. Letters and their marks, digits and ``. _ - @ +`` follow; there
are at most 64 characters. So no name is a path, an option, a formula, a tag or an escape of a terminal. Whoever has
another name is refused with a reason: a name that is changed silently would be somebody else's.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

LONGEST = 64
PUNCTUATION = "._-@+"
LETTERS = ("Lu", "Ll", "Lt", "Lm", "Lo")
MARKS = ("Mn", "Mc")  # parts of letters, as in Hindi, and in names that a Mac has taken apart
DIGITS = ("Nd",)


def refused(name: str) -> str | None:
    """Why a name is not taken; None for one that is.

    Example:
        >>> refused("ana"), refused("søren.o'neill")
        (None, "the name has the character `'`; letters, digits and . _ - @ + are taken")
        >>> refused("-rf")
        'the name begins with `-`; it has to begin with a letter or a digit'
    """
    if not name:
        return "the name is empty"
    kinds = [unicodedata.category(character) for character in name]
    if kinds[0] not in (*LETTERS, *DIGITS):
        return f"the name begins with `{visible(name[0])}`; it has to begin with a letter or a digit"
    allowed = (*LETTERS, *MARKS, *DIGITS)
    for character, kind in zip(name, kinds, strict=True):
        if kind not in allowed and character not in PUNCTUATION:
            taken = f"letters, digits and {' '.join(PUNCTUATION)} are taken"
            return f"the name has the character `{visible(character)}`; {taken}"
    if len(name) > LONGEST:
        return f"the name has {len(name)} characters, and {LONGEST} are taken"
    return None


def visible(text: object) -> str:
    """A text for a terminal, whatever characters somebody has put into it.

    Example:
        >>> visible("red" + chr(27) + "[31m")
        'red\\\\x1b[31m'
    """
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in str(text))


def sentences(*notes: tuple[str, Iterable[str]]) -> list[str]:
    """The notes that are about somebody: of each a sentence and the names for its braces.

    Example:
        >>> sentences(("{} is late.", ["ana"]), ("{} is missing.", []))
        ['ana is late.']
    """
    found = ((sentence, ", ".join(names)) for sentence, names in notes)
    return [sentence.replace("{}", names) for sentence, names in found if names]
