"""Arena allocation: offsets in one block of memory for intermediate values, from their live ranges."""

from __future__ import annotations

import itertools
from bisect import insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64  # bytes: a cache line, and the longest vector register


@dataclass(frozen=True)
class Lifetime:
    """The live range of a buffer.

    Attributes:
        size: bytes.
        first: the step that writes it.
        last: the last step that reads it (`first` if it is never read).
        in_place: numbers of buffers, last read at step `first`, whose memory it may take: the step reads each of their
            elements before it writes the same bytes of this one.
    """

    size: int
    first: int
    last: int
    in_place: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The offset of each buffer in the arena.

    Attributes:
        offsets: in bytes, one per buffer.
        size: bytes of the arena.
    """

    offsets: tuple[int, ...]
    size: int


def aligned(size: int, alignment: int = ALIGNMENT) -> int:
    """Round `size` up to a multiple of `alignment`."""
    return -(-size // alignment) * alignment


def plan(buffers: Sequence[Lifetime]) -> Plan:
    """Return offsets in one arena such that no two buffers overlap while both are live.

    Large buffers are placed first ("greedy by size" of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural
    Net Inference", 2020). Each takes the memory of one of its `in_place` buffers if it can, else the smallest gap (best
    fit).

    Example:
        >>> chain = plan([Lifetime(100, 0, 1), Lifetime(100, 1, 2, in_place=(0,)), Lifetime(100, 2, 3)])
        >>> chain.offsets, chain.size
        ((0, 0, 128), 256)
    """
    offsets = [0] * len(buffers)
    placed: list[tuple[int, int]] = []  # offset and number, in order
    for i in sorted(range(len(buffers)), key=lambda i: (-buffers[i].size, buffers[i].first)):
        buffer, size = buffers[i], aligned(buffers[i].size)
        if not size:
            continue
        live = [
            (start, j) for start, j in placed if buffers[j].first <= buffer.last and buffer.first <= buffers[j].last
        ]
        offsets[i] = offset = _offset(buffers, i, size, live)
        insort(placed, (offset, i))
    ends = (offset + aligned(buffer.size) for offset, buffer in zip(offsets, buffers, strict=True))
    return Plan(tuple(offsets), max(ends, default=0))


def _offset(buffers: Sequence[Lifetime], i: int, size: int, live: Sequence[tuple[int, int]]) -> int:
    shared = {j: start for start, j in live if _may_share(buffers, i, j) or _may_share(buffers, j, i)}
    for offset in shared.values():
        if all(
            start + aligned(buffers[j].size) <= offset or offset + size <= start or shared.get(j) == offset
            for start, j in live
        ):
            return offset
    best, width, top = -1, -1, 0
    for start, j in live:
        if size <= start - top and (best < 0 or start - top < width):
            best, width = top, start - top
        top = max(top, start + aligned(buffers[j].size))
    return top if best < 0 else best


def _may_share(buffers: Sequence[Lifetime], new: int, old: int) -> bool:
    return old in buffers[new].in_place and buffers[old].last == buffers[new].first


def lower_bound(buffers: Sequence[Lifetime]) -> int:
    """Return the most live bytes at one step, if every buffer that may take the memory of another does."""
    change: dict[int, int] = defaultdict(int)  # live bytes at a step, less those at the step before
    shared: dict[int, int] = defaultdict(int)
    for buffer in buffers:
        size = aligned(buffer.size)
        change[buffer.first] += size
        change[buffer.last + 1] -= size
        shared[buffer.first] += min(size, max((aligned(buffers[j].size) for j in buffer.in_place), default=0))
    steps = sorted(change)
    live = itertools.accumulate(change[step] for step in steps)
    return max((size - shared.get(step, 0) for step, size in zip(steps, live, strict=True)), default=0)
