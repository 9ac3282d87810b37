"""Pairs of parties that share fingerprints, and the longest runs of tokens that they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .fingerprints import Fingerprints, fingerprints
from .parties import Party
from .tokens import Tokens

SMALL = 4  # parties; in a small class, what so many or fewer share is not yet common
BLOCK = 4096  # fingerprints at a time; more of them cost memory, 4 bytes for each and each party


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
    """The same tokens in two parties: the lines of each, and the number of tokens."""

    one: Lines
    other: Lines
    tokens: int


@dataclass(frozen=True)
class Pair:
    """Two parties that have code in common.

    Attributes:
        one, other: their names.
        share_of_one, share_of_other: the part of each one's fingerprints that the other has, too, from 0 to 1.
        matches: the common code, longest first.
    """

    one: str
    other: str
    share_of_one: float
    share_of_other: float
    matches: tuple[Match, ...]

    @property
    def tokens(self) -> int:
        """Number of tokens in common."""
        return sum(match.tokens for match in self.matches)

    @property
    def lines(self) -> int:
        """Number of lines in common, as the first party has written them."""
        return sum(len(match.one.text) for match in self.matches)


def compare(
    parties: Sequence[Party],
    without: NDArray[np.uint64],
    common: float = 1 / 3,
    at_least: float = 0.3,
    most: int = 50,
) -> list[Pair]:
    """The most similar pairs, by the number of common tokens.

    Args:
        parties: at least one of each pair is in the class.
        without: hashes of k-grams that do not count, such as those of the code that was handed out.
        common: fingerprints of more than this part of the class do not count.
        at_least: the least share of fingerprints, of either party, for a pair to be listed. The engine's own share
            is none, since it is large.
        most: number of pairs.
    """
    prints = [fingerprints(party.tokens, without) for party in parties]
    in_class = np.array([party.in_class for party in parties])
    limit = max(SMALL, int(common * in_class.sum()))
    shared, own, counted = _shared(prints, in_class, limit)
    share = shared / np.maximum(own, 1)[:, None]  # share[a, b]: of a's fingerprints, those that b has
    share[~in_class] = 0
    ranked = np.maximum(share, share.T)
    candidates = [
        (int(a), int(b)) for a, b in zip(*np.nonzero(np.triu(ranked >= at_least, 1) & (shared > 0)), strict=True)
    ]
    candidates.sort(key=lambda pair: (-int(shared[pair]), pair))
    found = []
    for a, b in candidates[: 2 * most]:
        matches = _matches(parties[a], parties[b], prints[a], prints[b], counted)
        found.append(Pair(parties[a].name, parties[b].name, float(share[a, b]), float(share[b, a]), matches))
    found.sort(key=lambda pair: (-pair.tokens, pair.one, pair.other))
    return [pair for pair in found if pair.matches][:most]


def _shared(
    prints: Sequence[Fingerprints], in_class: NDArray[np.bool_], limit: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    """For each two parties the number of shared fingerprints, each party's number, and those that count, sorted."""
    count = len(prints)
    hashes = np.concatenate([each.hashes for each in prints])
    owner = np.repeat(np.arange(count), [len(each.hashes) for each in prints])
    order = np.argsort(hashes, kind="stable")
    hashes, owner = hashes[order], owner[order]
    distinct, first, sizes = np.unique(hashes, return_index=True, return_counts=True)
    students = np.add.reduceat(in_class[owner].astype(np.int64), first) if len(first) else sizes
    kept = (students <= limit) & (students > 0)
    own = np.bincount(owner[np.repeat(kept, sizes)], minlength=count)
    counted = kept & (sizes > 1)
    column = np.repeat(np.where(counted, np.cumsum(counted) - 1, -1), sizes)
    owner, column = owner[column >= 0], column[column >= 0]
    shared = np.zeros((count, count), np.int64)
    for begin in range(0, int(counted.sum()), BLOCK):  # who has what, times its transpose, in blocks of columns
        here = slice(*np.searchsorted(column, [begin, begin + BLOCK]))
        has = np.zeros((count, BLOCK), np.float32)
        has[owner[here], column[here] - begin] = 1
        shared += (has @ has.T).astype(np.int64)
    return shared, own, distinct[counted]


def _matches(
    one: Party, other: Party, its: Fingerprints, others: Fingerprints, counted: NDArray[np.uint64]
) -> tuple[Match, ...]:
    """The longest common runs of tokens around each shared fingerprint. A token of `one` is in one of them at most."""
    both, here, there = np.intersect1d(its.hashes, others.hashes, assume_unique=True, return_indices=True)
    counts = np.isin(both, counted, assume_unique=True)
    starts, ends = its.positions[here[counts]], others.positions[there[counts]]
    covered = np.zeros(len(one.tokens.codes), bool)
    found = []
    for i, j in sorted(zip(starts.tolist(), ends.tolist(), strict=True)):
        if covered[i]:
            continue
        left, right = _extent(one, other, i, j, covered)
        if right > left:
            covered[i + left : i + right] = True
            tokens = right - left
            match = Match(_lines(one, i + left, i + right), _lines(other, j + left, j + right), tokens)
            found.append(match)
    return tuple(sorted(found, key=lambda match: -match.tokens))


def _extent(one: Party, other: Party, i: int, j: int, covered: NDArray[np.bool_]) -> tuple[int, int]:
    """How far to the left and the right of two places the tokens are the same, within one piece of each."""
    a, b = one.tokens, other.tokens
    left = right = 0
    while i + right < len(a.codes) and j + right < len(b.codes) and _same(a, b, i, j, right):
        right += 1
    while i + left > 0 and j + left > 0 and not covered[i + left - 1] and _same(a, b, i, j, left - 1):
        left -= 1
    return left, right


def _same(a: Tokens, b: Tokens, i: int, j: int, offset: int) -> bool:
    return bool(
        a.codes[i + offset] == b.codes[j + offset]
        and a.pieces[i + offset] == a.pieces[i]
        and b.pieces[j + offset] == b.pieces[j]
    )


def _lines(party: Party, begin: int, end: int) -> Lines:
    """The lines of some tokens of one piece."""
    piece = party.pieces[int(party.tokens.pieces[begin])]
    first, last = int(party.tokens.lines[begin]), int(party.tokens.lines[end - 1])
    return Lines(piece.place, first + 1, tuple(piece.source.split("\n")[first : last + 1]))
