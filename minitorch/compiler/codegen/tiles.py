"""Transposed tiles: memory that is dense along another loop variable than the lanes.

Where neighbouring lanes lie far apart in memory but neighbouring rounds of a loop lie side by side, a tile of lanes x
lanes elements is read as whole vectors, turned in registers, and put on the stack, from where the loop reads one vector
per round; what is written goes the other way. The turning is a function of the module, so that its code is there once.
It also does the tiles at the edges, which have fewer rows or columns, under masks.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..target import Target
from .builder import Builder
from .instructions import BIT, I64
from .vector_memory import POINTER, byte_size, integer, load, shuffled, store, store_past_caches

BLOCK = 16  # bytes within which every machine interleaves two vectors by one instruction


def transpose_function(module: Any, element: Any, lanes: int, target: Target, past_caches: bool = False) -> Any:
    """``void (source, source step, destination, destination step, rows, columns)`` for up to `lanes` rows and columns.

    A step is how many elements the beginnings of two rows, or of two columns, lie apart: element (r, c) is read at
    ``source + r * source_step + c`` and written to ``destination + c * destination_step + r``. If whole squares are to
    be stored past the caches, there is one more argument, see `store_past_caches`.
    """
    name = f"transpose.{lanes}x{element.intrinsic_name}{'.streamed' if past_caches else ''}"
    if name in module.globals:
        return module.globals[name]
    kind = ir.FunctionType(ir.VoidType(), [POINTER, I64, POINTER, I64, I64, I64, *[I64] * past_caches])
    function = ir.Function(module, kind, name)
    function.linkage = "internal"
    source, source_step, destination, destination_step, rows, columns, *wanted = function.args
    builder = Builder(function.append_basic_block("entry"), target)
    count = integer(lanes)
    is_whole = builder.and_(builder.icmp_signed("==", rows, count), builder.icmp_signed("==", columns, count))
    names = ("load_whole", "load_part", "turn", "store_whole", "store_part")
    blocks = [function.append_basic_block(name) for name in names]
    load_whole, load_part, turn, store_whole, store_part = blocks
    builder.cbranch(is_whole, load_whole, load_part)
    vector = ir.VectorType(element, lanes)
    loaded = []
    for block, masked in ((load_whole, False), (load_part, True)):
        builder.position_at_end(block)
        masks = _masks(builder, rows, columns, lanes) if masked else [None] * lanes
        places = _places(builder, source, source_step, element, lanes)
        loaded.append([load(builder, place, vector, mask) for place, mask in zip(places, masks, strict=True)])
        builder.branch(turn)
    builder.position_at_end(turn)
    vectors = [builder.phi(vector) for _ in range(lanes)]
    for phi, *values in zip(vectors, *loaded, strict=True):
        for value, block in zip(values, (load_whole, load_part), strict=True):
            phi.add_incoming(value, block)
    turned = transposed(builder, vectors, BLOCK // byte_size(element))
    builder.cbranch(is_whole, store_whole, store_part)
    for block, masked in ((store_whole, False), (store_part, True)):
        builder.position_at_end(block)
        masks = _masks(builder, columns, rows, lanes) if masked else [None] * lanes
        places = _places(builder, destination, destination_step, element, lanes)
        for place, value, mask in zip(places, turned, masks, strict=True):
            if past_caches and mask is None:
                store_past_caches(builder, place, value, *wanted)
            else:
                store(builder, place, value, mask)
        builder.ret_void()
    return function


def transposed(builder: Any, rows: list[Any], block: int) -> list[Any]:
    """The columns of a square matrix as vectors.

    Within blocks of `block` elements, log2(block) rounds interleave the elements of two rows. What is then left is to
    transpose a matrix of blocks, which takes apart even and odd blocks of two rows, log2 of their number times.
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


def _places(builder: Any, start: Any, step: Any, element: Any, count: int) -> list[Any]:
    """The addresses of rows that lie a step apart."""
    places, offset = [start], integer(0)
    for _ in range(count - 1):
        offset = builder.add(offset, step)
        places.append(builder.gep(start, [offset], source_etype=element))
    return places


def _masks(builder: Any, rows: Any, columns: Any, lanes: int) -> list[Any]:
    """The lanes of each row that are there: the first `columns`, or none."""
    some = builder.sub(builder.shl(integer(1), columns), integer(1))  # a bit for each
    masks = []
    for row in range(lanes):
        bits = builder.select(builder.icmp_signed("<", integer(row), rows), some, integer(0))
        masks.append(builder.bitcast(builder.trunc(bits, ir.IntType(lanes)), ir.VectorType(BIT, lanes)))
    return masks
