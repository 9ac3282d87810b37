"""Lexical analysis that ignores what a copyist changes first: names, literals, comments, docstrings and layout.

One regular expression cuts any text into tokens, in one pass and in linear time. Text that is no Python becomes words
and signs by the same rules, so nothing that a student writes makes this fail; the tokenizer of the standard library
raises an error for such text.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

LARGEST = 100_000  # characters of one party that are read; a person writes a tenth of that. More costs time and memory

# A string without an end goes to the end of its line, or of the text in triple quotes: after a repetition nothing can
# fail, so nothing is scanned twice. (Possessive quantifiers would say so, but match wrongly before Python 3.11.5.)
_TOKEN = re.compile(
    r"""
      (?P<skipped> \#[^\n]* | \\\n | [^\S\n]+ )
    | (?P<string> [rRbBfFuU]{0,2} (?:
          \"{3} (?: [^\\"]+ | \\(?:.|\Z) | "(?!"") )* (?: \"{3} | \Z )
        | '{3} (?: [^\\']+ | \\(?:.|\Z) | '(?!'') )* (?: '{3} | \Z )
        | " (?: [^\\"\n]+ | \\(?:.|\Z) )* (?: " | (?=\n) | \Z )
        | ' (?: [^\\'\n]+ | \\(?:.|\Z) )* (?: ' | (?=\n) | \Z ) ) )
    | (?P<number> \.?\d (?: [eE][+-]\d | [\w.] )* )
    | (?P<name> [^\W\d]\w* )
    | (?P<line> \n )
    | (?P<sign> -> | := | \*\* | // | [<>=!]= | << | >> | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_KEPT = frozenset(keyword.kwlist) | frozenset(dir(builtins))


@dataclass(frozen=True)
class Text:
    """A piece of source, a cell or a file: its place, as a reader is told it, and its text."""

    place: str
    source: str


@dataclass(frozen=True)
class Tokens:
    """The tokens of some pieces, in order: for each a code, the number of its piece, and its line there (from 0)."""

    codes: NDArray[np.uint64]
    pieces: NDArray[np.int32]
    lines: NDArray[np.int32]


def folded(source: str) -> Iterator[tuple[str, int]]:
    """The folded tokens of a text, each with its line, from 0.

    Names become ``name``, but for keywords, built-ins and attributes, which belong to a library more often than to
    whoever writes. Literals become ``0`` and ``""``. A new line is ``;``, and none in brackets or after another.

    Example:
        >>> [token for token, line in folded("total = x.sum(3.5)  # all of it")]
        ['name', '=', 'name', '.', 'sum', '(', '0', ')']
        >>> [token for token, line in folded("def f(:  'unfinished")]
        ['def', 'name', '(', ':', '""']
    """
    last, owner = ";", ""
    depth = line = 0
    docstring = False
    for match in _TOKEN.finditer(source):
        kind, text = match.lastgroup, match[0]
        here = line
        if kind in ("line", "string", "skipped"):
            line += text.count("\n")
        if kind == "skipped":
            continue
        if docstring and kind != "line":  # a string that begins a statement, but is not all of it
            yield '""', here
            last = '""'
        docstring = False
        if kind == "line" or text == ";":
            if depth or last == ";":
                continue
            token = ";"
        elif kind == "string":
            if last == ";" and not depth:
                docstring = True
                continue
            token = '""'
        elif kind == "number":
            token = "0"
        elif kind == "name":
            is_attribute = last == "." and owner != "self"
            token = text if text in _KEPT or is_attribute else "name"
            owner = text
        else:
            token = text
            depth = max(0, depth + (text in "([{") - (text in ")]}"))
        yield token, here
        last = token


@lru_cache(maxsize=65536)
def code(token: str) -> int:
    """A number of 64 bits for a token, the same in every process."""
    return int.from_bytes(blake2b(token.encode(errors="replace"), digest_size=8).digest(), "little")


def tokens_of(pieces: tuple[Text, ...]) -> Tokens:
    """The tokens of some pieces."""
    codes: list[int] = []
    numbers: list[int] = []
    lines: list[int] = []
    for number, piece in enumerate(pieces):
        for token, line in folded(piece.source):
            codes.append(code(token))
            numbers.append(number)
            lines.append(line)
    return Tokens(np.array(codes, np.uint64), np.array(numbers, np.int32), np.array(lines, np.int32))


def cut(pieces: tuple[Text, ...], largest: int = LARGEST) -> tuple[Text, ...]:
    """The first pieces of a text, with no more characters than `largest` together."""
    found = []
    for piece in pieces:
        if largest <= 0:
            break
        found.append(Text(piece.place, piece.source[:largest]))
        largest -= len(piece.source)
    return tuple(found)
