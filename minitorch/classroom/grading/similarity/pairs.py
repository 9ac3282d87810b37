"""Pairs of parties that share fingerprints, and the lines that they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from .tokens import K, Party

SMALL = 4  # parties; in a small class, what so many or fewer share is not yet common


@dataclass(frozen=True)
class Lines:
    """Some lines of a piece: its place, the first line (from 1), and the lines as they are written."""

    place: str
    first: int
    text: tuple[str, ...]

    def __str__(self) -> str:
        last = self.first + len(self.text) - 1
        return f"{self.place}, line {self.first}" if last == self.first else f"{self.place}, lines {self.first}-{last}"


@dataclass(frozen=True)
class Match:
    """The same tokens in two parties: the lines of each, where the first party has them, and the number of tokens."""

    one: Lines
    other: Lines
    begin: int
    tokens: int


@dataclass(frozen=True)
class Pair:
    """Two parties that have code in common: of each one's fingerprints the share that the other has, from 0 to 1."""

    one: str
    other: str
    share_of_one: float
    share_of_other: float
    matches: tuple[Match, ...]

    @property
    def tokens(self) -> int:
        """The number of the first party's tokens in common; matches overlap, and each token counts once."""
        return len({each for match in self.matches for each in range(match.begin, match.begin + match.tokens)})

    @property
    def lines(self) -> int:
        """The number of lines in common, as the first party has written them."""
        runs = ((match.one.place, match.one.first, len(match.one.text)) for match in self.matches)
        return len({(place, line) for place, first, count in runs for line in range(first, first + count)})

    @property
    def shares(self) -> str:
        """Both shares in words; of the engine none, since it is large."""
        return " ".join(f"{share:.0%}" if share else "-" for share in (self.share_of_one, self.share_of_other))


def compare(
    parties: Sequence[Party], without: NDArray[np.uint64], common: float, at_least: float, most: int
) -> list[Pair]:
    """Return the most similar pairs, those with the most common tokens first.

    Args:
        parties: at least one of each pair is in the class.
        without: fingerprints that do not count: those of the code that was handed out.
        common: fingerprints of more than this part of the class do not count.
        at_least: the least share of fingerprints, of either party, for a pair to be listed. The engine's own share
            is none, since it is large.
        most: the number of pairs.
    """
    in_class = np.array([each.in_class for each in parties])
    owner = np.repeat(np.arange(len(parties)), [len(each.hashes) for each in parties])
    distinct, column = np.unique(np.concatenate([each.hashes for each in parties]), return_inverse=True)
    students = np.bincount(column, weights=in_class[owner], minlength=len(distinct))
    kept = (students > 0) & (students <= max(SMALL, int(common * in_class.sum()))) & ~np.isin(distinct, without)
    counts = kept[column]
    has = csr_array((np.ones(counts.sum()), (owner[counts], column[counts])), shape=(len(parties), len(distinct)))
    shared = (has @ has.T).toarray()
    share = np.where(in_class[:, None], shared / np.maximum(shared.diagonal(), 1)[:, None], 0.0)
    alike = np.triu((np.maximum(share, share.T) >= at_least) & (shared > 0), 1)
    found = sorted(zip(*np.nonzero(alike), strict=True), key=lambda pair: (-shared[pair], *pair))[:most]
    kept_parties = {index: _with(parties[index], distinct[kept]) for index in {each for pair in found for each in pair}}
    return [
        Pair(
            parties[a].name,
            parties[b].name,
            float(share[a, b]),
            float(share[b, a]),
            _matches(kept_parties[a], kept_parties[b]),
        )
        for a, b in found
    ]


def _with(party: Party, kept: NDArray[np.uint64]) -> Party:
    counts = np.isin(party.hashes, kept)
    return replace(party, hashes=party.hashes[counts], first=party.first[counts])


def _matches(one: Party, other: Party) -> tuple[Match, ...]:
    """Return the longest common runs of tokens, longest first."""
    _, here, there = np.intersect1d(one.hashes, other.hashes, assume_unique=True, return_indices=True)
    order = np.argsort(one.first[here])
    here, there = one.first[here][order], other.first[there][order]
    starts = np.flatnonzero((np.diff(here) != 1) | (np.diff(there) != 1)) + 1
    found = []
    for run in np.split(np.arange(len(here)), starts):
        count = len(run) + K - 1
        begin = int(here[run[0]])
        found.append(Match(_lines(one, begin, count), _lines(other, there[run[0]], count), begin, count))
    return tuple(sorted(found, key=lambda match: -match.tokens))


def _lines(party: Party, begin: int, count: int) -> Lines:
    (piece, first), (_, last) = party.at[begin], party.at[begin + count - 1]
    place = party.pieces[piece]
    return Lines(place.place, int(first) + 1, tuple(place.source.split("\n")[first : last + 1]))
