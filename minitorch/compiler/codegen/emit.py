"""Loop IR as LLVM IR: one function per kernel, with vectors written out.

A nest is emitted in the order of its procedure (see `procedures`). Nothing is left for LLVM's optimiser to find.

The function is ``void name(ptr buffers, i64 begin, i64 end)``: the part of the rows from `begin` up to `end`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from ..loop_ir.tree import Procedure, loaded
from ..scheduling.schedules.choice import Scheduled
from ..target import Target
from .builder import Builder
from .instructions import I64
from .procedures.emitter import Emitter
from .vector_memory import POINTER, integer

NAME = "kernel"  # of the module, and of the function that is called


def emit(parts: Sequence[Scheduled], target: Target, once: bool = False) -> str:
    """Return a kernel's module as text: a function for each distinct nest, and an entry that calls them.

    Args:
        parts: its nests.
        target: the machine that it is made for.
        once: emit the code that fills the program's arrays at loading, in place of the code that runs in every call.
    """
    module = ir.Module(name=NAME)
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64, I64])
    functions: dict[int, Any] = {}  # by the identity of the procedure, which nests that are alike share
    found: list[_Part] = []
    for part in parts:
        arrays, filling, body = loaded(part.procedure)
        key, buffers = id(part.procedure), part.procedure.buffers
        if part.units and key not in functions and (filling or not once):
            function = functions[key] = ir.Function(module, kind, f"nest{len(functions)}")
            function.linkage = "internal"
            Emitter(Procedure(buffers, filling if once else body), function, target, arrays).emit()
        offsets = [part.first.get(number, 0) * each.dtype.itemsize for number, each in enumerate(buffers)]
        units = min(part.units, len(arrays), 1) if once else part.units
        found.append(_Part(functions.get(key), part.start, offsets, len(arrays), units, 0 if once else part.phase))
    _emit_entry(module, found, target)
    return str(module)


@dataclass(frozen=True)
class _Part:
    """A nest's function, with the arguments of its calls.

    Attributes:
        function: of the nest.
        start: the place of its first buffer.
        offsets: by how many bytes the address of each of its buffers is moved.
        arrays: how many arrays of the program it uses.
        units: the parts of its range.
        phase: 0, or that which it waits for.
    """

    function: Any
    start: int
    offsets: Sequence[int]
    arrays: int
    units: int
    phase: int


def _emit_entry(module: Any, parts: Sequence[_Part], target: Target) -> None:
    """Emit the entry: it shares ``begin, end`` among the nests of phase 0, and ends with the others.

    Behind the buffers are the addresses of the arrays of the program, nest by nest, and two more: of a word that is set
    if an index is out of range, and of one in which all who share a call count the units that are done.
    """
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, I64, I64]), NAME)
    builder = Builder(entry.append_basic_block("entry"), target)
    table, begin, end = entry.args
    next_array = max(part.start + len(part.offsets) for part in parts)
    behind = next_array + sum(part.arrays for part in parts)
    trouble, counter = (
        builder.load(builder.gep(table, [integer(behind + number)], source_etype=POINTER), typ=POINTER)
        for number in range(2)
    )
    first = 0
    in_tail = False
    longest = max(len(part.offsets) + part.arrays for part in parts)
    memory = builder.alloca(POINTER, integer(longest), name="moved")
    for part in parts:
        if part.phase and not in_tail:
            in_tail = True
            _only_the_last(builder, counter, builder.sub(end, begin), first)
        arrays = range(next_array, next_array + part.arrays)
        next_array += part.arrays
        if not part.units:
            continue
        low, high = integer(0), integer(part.units)
        if not part.phase:
            low = builder.sub(begin, integer(first))
            low = builder.select(builder.icmp_signed(">", low, integer(0)), low, integer(0))
            high = builder.sub(end, integer(first))
            high = builder.select(builder.icmp_signed("<", high, integer(part.units)), high, integer(part.units))
        own = builder.gep(table, [integer(part.start)], source_etype=POINTER)
        if any(part.offsets) or arrays:
            own = _moved(builder, own, memory, part.offsets, table, arrays)
        builder.call(part.function, [own, trouble, low, high])
        first += part.units
    builder.ret_void()


def _moved(builder: Any, own: Any, memory: Any, offsets: Sequence[int], table: Any, arrays: Iterable[int]) -> Any:
    """Build another table of buffers, each some bytes further on; behind them some arrays of the whole table."""
    where = [(own, number, offset) for number, offset in enumerate(offsets)] + [(table, each, 0) for each in arrays]
    for number, (source, place, offset) in enumerate(where):
        pointer = builder.load(builder.gep(source, [integer(place)], source_etype=POINTER), typ=POINTER)
        if offset:
            pointer = builder.gep(pointer, [integer(offset)], source_etype=ir.IntType(8))
        builder.store(pointer, builder.gep(memory, [integer(number)], source_etype=POINTER))
    return memory


def _only_the_last(builder: Any, counter: Any, done: Any, units: int) -> None:
    """Return unless last; acquire/release orders the stores."""
    before = builder.atomic_rmw("add", counter, done, "acq_rel")
    is_last = builder.icmp_unsigned("==", builder.add(before, done), integer(units))
    tail, end = builder.append_basic_block("tail"), builder.append_basic_block("end")
    builder.cbranch(is_last, tail, end)
    builder.position_at_end(end)
    builder.ret_void()
    builder.position_at_end(tail)
