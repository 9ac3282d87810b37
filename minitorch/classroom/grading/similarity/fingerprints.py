"""Document fingerprints by winnowing (Schleimer, Wilkerson and Aiken, *Winnowing: Local Algorithms for Document
Fingerprinting*, SIGMOD 2003).

Each run of K tokens (a k-gram) has a hash. Of each WINDOW hashes in a row the least one is a fingerprint. Two texts
that have K + WINDOW - 1 tokens in a row in common have a fingerprint in common, wherever these tokens stand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .tokens import Tokens

K = 12  # tokens, some two lines; a larger number ignores shorter copies, a smaller one finds what everyone writes
WINDOW = 6  # hashes; a larger number keeps fewer fingerprints, and misses matches shorter than K + WINDOW - 1

_NONE = np.iinfo(np.uint64).max


@dataclass(frozen=True)
class Fingerprints:
    """The distinct fingerprints of a party in ascending order, and the first position of each among its tokens."""

    hashes: NDArray[np.uint64]
    positions: NDArray[np.int64]


def kgrams(tokens: Tokens) -> NDArray[np.uint64]:
    """The hash of each k-gram, by where it begins; one that goes over the end of a piece counts for nothing."""
    count = len(tokens.codes) - K + 1
    if count <= 0:
        return np.zeros(0, np.uint64)
    hashes = np.zeros(count, np.uint64)
    for offset in range(K):  # a polynomial in an odd base, modulo 2 ** 64
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + tokens.codes[offset : offset + count]
    hashes ^= hashes >> np.uint64(32)
    hashes *= np.uint64(0xD6E8FEB86659FD93)
    hashes ^= hashes >> np.uint64(32)
    hashes[tokens.pieces[:count] != tokens.pieces[K - 1 :]] = _NONE
    return hashes


def fingerprints(tokens: Tokens, without: NDArray[np.uint64]) -> Fingerprints:
    """The fingerprints of a party.

    Args:
        tokens: of the party.
        without: hashes of k-grams that do not count, such as those of the code that was handed out.
    """
    hashes = kgrams(tokens)
    hashes[np.isin(hashes, without)] = _NONE
    if not len(hashes):
        return Fingerprints(hashes, np.zeros(0, np.int64))
    window = min(WINDOW, len(hashes))
    # The rightmost of several least ones, as in the paper, so that a long repetition has few fingerprints.
    windows = np.lib.stride_tricks.sliding_window_view(hashes, window)[:, ::-1]
    chosen = np.unique(np.arange(len(windows)) + window - 1 - windows.argmin(axis=1))
    chosen = chosen[hashes[chosen] != _NONE]
    distinct, first = np.unique(hashes[chosen], return_index=True)
    return Fingerprints(distinct, chosen[first])
