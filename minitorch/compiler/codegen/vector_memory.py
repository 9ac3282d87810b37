"""Vectors in and out of memory, as LLVM instructions: dense, strided, scattered; whole or under a mask."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from llvmlite import ir

from .builder import is_known_mask
from .instructions import BIT, I64
from .mathematics.values import call_named, splat

POINTER = ir.PointerType()
I32 = ir.IntType(32)

SHORTEST = 16  # bytes of the shortest vector registers: no mask is taken apart below that


@lru_cache(1024)
def integer(value: int) -> Any:
    """Return a 64-bit constant, which keeps its text."""
    return ir.Constant(I64, value)


@lru_cache(1024)
def integers(kind: Any, values: tuple[int, ...]) -> Any:
    """Return a vector of constants, which keeps its text: printing so many lanes repeatedly would take long."""
    return ir.Constant(ir.VectorType(kind, len(values)), list(values))


def byte_size(element: Any) -> int:
    """Return the bytes of an element in memory."""
    return {"half": 2, "float": 4, "double": 8}.get(str(element), getattr(element, "width", 8) // 8)


def first_lanes(lanes: int, count: int) -> Any:
    """Return the mask of the first `count` lanes."""
    return integers(BIT, tuple(int(lane < count) for lane in range(lanes)))


def lanes_left_out(mask: Any) -> frozenset[int]:
    """Return the lanes that a mask leaves out whatever the data, as far as it is made of known masks."""
    if is_known_mask(mask):
        return frozenset(lane for lane, bit in enumerate(mask.constant) if not bit.constant)
    if getattr(mask, "opname", "") == "and":
        one, other = mask.operands
        return lanes_left_out(one) | lanes_left_out(other)
    if getattr(mask, "opname", "") == "shufflevector":
        one, other, order = mask.operands
        out = lanes_left_out(one) | {one.type.count + lane for lane in lanes_left_out(other)}
        return frozenset(lane for lane, place in enumerate(order.constant) if place.constant in out)
    return frozenset()


def _part_in_use(kind: Any, mask: Any) -> tuple[int, int]:
    """Return where the needed lanes begin, and their number: all, a half, a half of that, ..., or none.

    If two registers hold a vector, and one of them is left out by a mask that two loads share, LLVM 22 for AVX2 can
    take that half of the mask for undefined, and read or write it (`combineMaskedLoad`, `combineMaskedStore`); not if
    the whole mask is a constant. So no half is loaded that is known to be left out.
    """
    start, count = 0, kind.count
    out = frozenset() if is_known_mask(mask) else lanes_left_out(mask)
    if len(out) == count:
        return 0, 0
    while out and count * byte_size(kind.element) > SHORTEST:
        half = count // 2
        needed = [first for first in (start, start + half) if not out.issuperset(range(first, first + half))]
        if len(needed) > 1:
            break
        start, count = needed[0], half
    return start, count


def load_words(builder: Any, place: Any, kind: Any, mask: Any, align: int) -> Any:
    """Load neighbouring words at an address that is a multiple of fewer bytes; zero in lanes left out by the mask."""
    if mask is None:
        return builder.load(place, typ=kind, align=align)
    operands = [place, ir.Constant(I32, align), mask, ir.Constant(kind, None)]
    return _call(builder, "masked.load", kind, kind, operands)


def load(builder: Any, place: Any, kind: Any, mask: Any = None) -> Any:
    """Load neighbouring elements; zero in lanes that the mask leaves out, whose memory is not touched."""
    if mask is None:
        return builder.load(place, typ=kind, align=byte_size(kind.element))
    start, count = _part_in_use(kind, mask)
    if count == kind.count:
        return _call(builder, "masked.load", kind, kind, [place, _alignment(kind), mask, ir.Constant(kind, None)])
    if not count:
        return ir.Constant(kind, None)
    part = ir.VectorType(kind.element, count)
    first = builder.gep(place, [integer(start)], source_etype=kind.element)
    found = load(builder, first, part, shuffled(builder, mask, mask, list(range(start, start + count))))
    order = [lane - start if start <= lane < start + count else count for lane in range(kind.count)]
    return shuffled(builder, found, ir.Constant(part, None), order)


def store(builder: Any, place: Any, value: Any, mask: Any = None) -> None:
    """Store neighbouring elements."""
    align = byte_size(value.type.element)
    start, count = (0, value.type.count) if mask is None else _part_in_use(value.type, mask)
    if mask is None:
        builder.store(value, place, align=align)
    elif not count:
        return
    elif count < value.type.count:
        lanes = list(range(start, start + count))
        first = builder.gep(place, [integer(start)], source_etype=value.type.element)
        store(builder, first, shuffled(builder, value, value, lanes), shuffled(builder, mask, mask, lanes))
    elif isinstance(mask, ir.Constant) and sum(lane.constant for lane in mask.constant) == 1:
        # LLVM 22 for x86 stores more than one element if a truncation goes before.
        builder.store(builder.extract_element(value, ir.Constant(I32, 0)), place, align=align)
    else:
        _call(builder, "masked.store", ir.VoidType(), value.type, [value, place, _alignment(value.type), mask])


def store_past_caches(builder: Any, place: Any, value: Any, wanted: Any) -> None:
    """Store a whole vector past the caches if it fills its place in a line; ordinarily if `wanted` is not 0."""
    size = value.type.count * byte_size(value.type.element)
    offset = builder.and_(builder.ptrtoint(place, I64), integer(size - 1))
    with builder.if_else(builder.icmp_unsigned("==", offset, wanted)) as (fits, straddles):
        with fits:
            stored = builder.store(value, place, align=size)
            stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(I32, 1)]))
        with straddles:
            store(builder, place, value)


def wait_for_stores(builder: Any) -> None:
    """Order stores past the caches, which keep no order with others, before what follows."""
    builder.fence("seq_cst")


def load_repeated(builder: Any, first: Any, kind: Any, times: int, count: int) -> Any:
    """Load neighbouring elements, each in so many lanes one after another, in the first `count` lanes."""
    needed = -(-count // times)
    found = load(builder, first, kind, None if needed == kind.count else first_lanes(kind.count, needed))
    return shuffled(builder, found, found, [lane // times for lane in range(kind.count)])


def store_interleaved(builder: Any, first: Any, values: list[Any], count: int) -> None:
    """Store the first `count` lanes of some vectors: lane 0 of each, then lane 1 of each, and so on, without gaps."""
    lanes, number = values[0].type.count, len(values)
    for start in range(0, count * number, lanes):
        result = values[0]
        for own, value in enumerate(values):
            order = [lanes + at // number if at % number == own else lane for lane, at in _counted(start, lanes)]
            result = shuffled(builder, result, value, order)
        place = builder.gep(first, [integer(start)], source_etype=result.type.element)
        there = min(lanes, count * number - start)
        store(builder, place, result, None if there == lanes else first_lanes(lanes, there))


def _counted(start: int, count: int) -> Iterator[tuple[int, int]]:
    return enumerate(range(start, start + count))


def gather(builder: Any, places: Any, kind: Any, mask: Any = None) -> Any:
    """Load the element at each lane's address; zero in lanes that the mask leaves out."""
    mask = first_lanes(kind.count, kind.count) if mask is None else mask
    return _call(builder, "masked.gather", kind, kind, [places, _alignment(kind), mask, ir.Constant(kind, None)])


def scatter(builder: Any, places: Any, value: Any, mask: Any = None) -> None:
    """Store an element to each lane's address."""
    mask = first_lanes(value.type.count, value.type.count) if mask is None else mask
    _call(builder, "masked.scatter", ir.VoidType(), value.type, [value, places, _alignment(value.type), mask])


def prefetch(builder: Any, place: Any) -> None:
    """Ask for the line of memory at an address, which may be anything."""
    how = (ir.Constant(I32, number) for number in (0, 3, 1))  # to be read, kept in every cache, and data
    call_named(builder, "llvm.prefetch.p0", ir.VoidType(), [place, *how])


def load_strided(builder: Any, first: Any, kind: Any, step: int, count: int, mask: Any = None) -> Any:
    """Load elements a constant step apart, in the first `count` lanes: all between them is read, and sorted out.

    Under a mask, which is not known beforehand, nothing between them is read.

    Args:
        builder: where instructions go.
        first: the address of lane 0's element.
        kind: the vector.
        step: from lane to lane, not 0; backwards if negative.
        count: how many lanes to fill.
        mask: which of them, perhaps.
    """
    lanes = kind.count
    nothing = first_lanes(lanes, 0)
    reach = (count - 1) * abs(step)  # from the lowest element to the highest
    lowest = builder.gep(first, [integer(-reach)], source_etype=kind.element) if step < 0 else first
    places = [lane * step + (reach if step < 0 else 0) for lane in range(count)]
    result = None
    for start in range(0, reach + 1, lanes):
        there = min(lanes, reach + 1 - start)
        place = builder.gep(lowest, [integer(start)], source_etype=kind.element)
        present = None if there == lanes else first_lanes(lanes, there)
        if mask is not None:
            lane_at = {place: lane for lane, place in enumerate(places)}
            present = shuffled(builder, mask, nothing, [lane_at.get(start + at, lanes) for at in range(lanes)])
        covering = load(builder, place, kind, present)
        result = covering if result is None else result
        order = []
        for lane in range(lanes):
            offset = places[lane] - start if lane < count else -1
            order.append(lanes + offset if 0 <= offset < lanes else lane)
        result = shuffled(builder, result, covering, order)
    return result


def merged(builder: Any, a: Any, b: Any) -> Any:
    """Return two vectors as one, where each lane of one of them is zero."""
    bits = ir.VectorType(ir.IntType(8 * byte_size(a.type.element)), a.type.count)
    if a.type.element == BIT or isinstance(a.type.element, ir.IntType):
        return builder.or_(a, b)
    return builder.bitcast(builder.or_(builder.bitcast(a, bits), builder.bitcast(b, bits)), a.type)


def broadcast(builder: Any, value: Any, lanes: int) -> Any:
    """Return a scalar in every lane."""
    kind = ir.VectorType(value.type, lanes)
    if isinstance(value, ir.Constant):
        return splat(kind, value.constant)
    nothing = ir.FormattedConstant(value.type, "undef")
    nothing.type = kind
    first = builder.insert_element(nothing, value, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(I32, lanes), None))


def shuffled(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    """Reorder the lanes of two vectors, numbered one after another; two known masks give another."""
    if is_known_mask(a) and is_known_mask(b):
        both = [*a.constant, *b.constant]
        return integers(BIT, tuple(both[lane] for lane in order))
    return builder.shuffle_vector(a, b, integers(I32, tuple(order)))


def _alignment(kind: Any) -> Any:
    return ir.Constant(I32, byte_size(kind.element))


def _call(builder: Any, name: str, result: Any, kind: Any, operands: list[Any]) -> Any:
    """Call one of LLVM's memory intrinsics on vectors."""
    lanes = f"v{kind.count}{kind.element.intrinsic_name}"
    pointers = f"v{kind.count}p0" if name in ("masked.gather", "masked.scatter") else "p0"
    return call_named(builder, f"llvm.{name}.{lanes}.{pointers}", result, operands)
