"""A square matrix in vector registers, transposed.

The code is straight: every step interleaves two vectors, or takes every second block of two.
"""

from __future__ import annotations

from typing import Any

from .vector_memory import shuffled

BLOCK = 16  # bytes within which every machine interleaves two vectors by one instruction


def transposed(builder: Any, rows: list[Any], block: int) -> list[Any]:
    """The columns of a square matrix as vectors.

    Within blocks of `block` elements, log2(block) rounds interleave the elements of two rows. Then a matrix
    of blocks is transposed, which takes apart even and odd blocks of two rows, log2 of their number times.
    """
    lanes = len(rows)
    block = min(block, lanes)
    groups = []
    for start in range(0, lanes, block):
        group, half = rows[start : start + block], block // 2
        for _ in range(block.bit_length() - 1):
            pairs = list(zip(group[:half], group[half:], strict=True))
            group = [_zipped(builder, *pair, block, upper) for pair in pairs for upper in (0, 1)]
        groups.append(group)
    blocks = lanes // block
    result: list[Any] = [None] * lanes
    for column, vectors in enumerate(zip(*groups, strict=True)):
        across = list(vectors)
        for _ in range(blocks.bit_length() - 1):
            pairs = list(zip(across[::2], across[1::2], strict=True))
            across = [_unzipped(builder, *pair, block, odd) for odd in (0, 1) for pair in pairs]
        for number, vector in enumerate(across):
            result[number * block + column] = vector
    return result


def _zipped(builder: Any, a: Any, b: Any, block: int, upper: int) -> Any:
    """The lower or upper halves of each block of two vectors, interleaved."""
    order = []
    for start in range(0, a.type.count, block):
        for place in range(block // 2):
            lane = start + upper * (block // 2) + place
            order += [lane, lane + a.type.count]
    return shuffled(builder, a, b, order)


def _unzipped(builder: Any, a: Any, b: Any, block: int, odd: int) -> Any:
    """The even or odd blocks of two vectors, one after another."""
    starts = range(odd * block, 2 * a.type.count, 2 * block)
    return shuffled(builder, a, b, [start + place for start in starts for place in range(block)])
