"""Matrices in vector registers, transposed: squares of elements or of groups of them, and a few long rows.

The code is straight: every step interleaves two vectors, or takes every second block of two.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .vector_memory import byte_size, shuffled

BLOCK = 16  # bytes within which every machine interleaves two vectors by one instruction


def transposed(builder: Any, rows: list[Any], block: int) -> list[Any]:
    """Return the columns of a square matrix as vectors.

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
    result: list[Any] = [None] * lanes
    for column, vectors in enumerate(zip(*groups, strict=True)):
        for number, vector in enumerate(_across(builder, list(vectors), block)):
            result[number * block + column] = vector
    return result


def transposed_units(builder: Any, rows: list[Any], unit: int) -> list[Any]:
    """Return the columns of a square matrix whose elements are groups of so many neighbours."""
    kind = rows[0].type
    size = unit * byte_size(kind.element)
    wide = ir.VectorType(ir.IntType(8 * size), kind.count // unit)
    columns = transposed(builder, [builder.bitcast(row, wide) for row in rows], max(1, BLOCK // size))
    return [builder.bitcast(column, kind) for column in columns]


def interleaved(builder: Any, rows: list[Any]) -> list[Any]:
    """Interleave the elements of rows, a power of two of them: one of each row, then the next of each.

    As in `transposed`, first within blocks, and then the blocks are brought into order.
    """
    count, lanes = len(rows), rows[0].type.count
    block = min(lanes, max(1, BLOCK // byte_size(rows[0].type.element)))
    group, half = list(rows), count // 2
    for _ in range(count.bit_length() - 1):
        pairs = list(zip(group[:half], group[half:], strict=True))
        group = [_zipped(builder, *pair, block, upper) for pair in pairs for upper in (0, 1)]
    blocks = lanes // block
    if blocks == count:
        return _across(builder, group, block)
    places = [at % count * lanes + at // count * block for at in range(count * blocks)]
    order = [place + lane for place in places for lane in range(block)]
    return [permuted(builder, group, order[first : first + lanes]) for first in range(0, len(order), lanes)]


def _across(builder: Any, vectors: list[Any], block: int) -> list[Any]:
    """Transpose a square matrix of blocks."""
    for _ in range(len(vectors).bit_length() - 1):
        pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
        vectors = [_unzipped(builder, *pair, block, odd) for odd in (0, 1) for pair in pairs]
    return vectors


def permuted(builder: Any, rows: list[Any], order: list[int]) -> Any:
    """Return elements of some vectors, numbered in turn, in any order: a shuffle for each vector that has some."""
    lanes = rows[0].type.count
    sources = sorted({place // lanes for place in order})
    found = rows[sources[0]]
    for source in (
        sources if len(sources) > 1 or order != list(range(sources[0] * lanes, (sources[0] + 1) * lanes)) else ()
    ):
        chosen = [lanes + place % lanes if place // lanes == source else lane for lane, place in enumerate(order)]
        found = shuffled(builder, found, rows[source], chosen)
    return found


def _zipped(builder: Any, a: Any, b: Any, block: int, upper: int) -> Any:
    """Return the lower or upper halves of each block of two vectors, interleaved."""
    order = []
    for start in range(0, a.type.count, block):
        for place in range(block // 2):
            lane = start + upper * (block // 2) + place
            order += [lane, lane + a.type.count]
    return shuffled(builder, a, b, order)


def _unzipped(builder: Any, a: Any, b: Any, block: int, odd: int) -> Any:
    """Return the even or odd blocks of two vectors, one after another."""
    starts = range(odd * block, 2 * a.type.count, 2 * block)
    return shuffled(builder, a, b, [start + place for start in starts for place in range(block)])
