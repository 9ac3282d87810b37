"""Fingerprints of programs: all runs of K tokens, where names, literals, comments and layout make no difference.

They are the k-grams of document fingerprinting (Schleimer, Wilkerson and Aiken, *Winnowing*, SIGMOD 2003). A class is
small enough to keep all of them. Pygments cuts any text into tokens, whether it is Python or not.
"""

from __future__ import annotations

import builtins
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pygments.lexers import PythonLexer
from pygments.token import Comment, Name, Number, String, Text

K = 12  # tokens, some two lines; a larger number ignores shorter copies, a smaller one finds what everyone writes

_LEXER = PythonLexer(stripnl=False, ensurenl=False)
_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True)
class Piece:
    """A cell or a file: its place, as a reader is told it, and its source."""

    place: str
    source: str


@dataclass(frozen=True)
class Party:
    """One party of a comparison: its pieces, of each token its piece and line, and its fingerprints.

    `hashes` are distinct and in ascending order; `first` says of each the token with which it begins first.
    """

    name: str
    pieces: tuple[Piece, ...]
    at: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    first: NDArray[np.int64]
    in_class: bool = True


def folded(source: str) -> Iterator[tuple[str, int]]:
    """Yield the folded tokens of a text, each with its line, from 0.

    Names become ``name``, but for built-ins and attributes, which belong to a library more often than to whoever
    writes. Literals become ``0`` and ``""``.

    Example:
        >>> [token for token, line in folded("total = x.sum(3.5)  # all of it")]
        ['name', '=', 'name', '.', 'sum', '(', '0', ')']
        >>> [token for token, line in folded("def f(:  'unfinished")]
        ['def', 'name', '(', ':', '""']
    """
    line, owner, before = 0, "", ""
    for kind, text in _LEXER.get_tokens(source):
        here, line = line, line + text.count("\n")
        if kind in Text or kind in Comment or kind in String.Doc:
            continue
        token = text.strip()
        if kind in String and kind not in String.Interpol:
            token = '""'
        elif kind in Number:
            token = "0"
        elif kind in Name:
            is_known = token in _BUILTINS or (before == "." and owner != "self")
            token, owner = token if is_known else "name", token
        if (token, before) != ('""', '""'):  # the parts of one text
            yield token, here
        before = token


def party(name: str, pieces: Sequence[Piece], in_class: bool = True) -> Party:
    """Return a party with its fingerprints; no run of tokens goes over the end of a piece."""
    found = [
        (zlib.crc32(token.encode(errors="replace")), number, line)
        for number, piece in enumerate(pieces)
        for token, line in folded(piece.source)
    ]
    codes, at = np.array([each[0] for each in found], np.uint64), np.array([each[1:] for each in found]).reshape(-1, 2)
    count = max(0, len(codes) - K + 1)
    hashes = np.zeros(count, np.uint64)
    for offset in range(K):  # a polynomial in an odd base, modulo 2 ** 64
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + codes[offset : offset + count]
    within = np.flatnonzero(at[:count, 0] == at[len(codes) - count :, 0])
    distinct, first = np.unique(hashes[within], return_index=True)
    return Party(name, tuple(pieces), at, distinct, within[first], in_class)
