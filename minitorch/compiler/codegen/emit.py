"""Loop IR as LLVM IR: one function per kernel, with vectors written out.

A nest is emitted in the order of its procedure (see `procedures`). Nothing is left for LLVM's optimiser to find.

The function is ``void name(ptr buffers, i64 begin, i64 end)``: the part of the rows from `begin` up to `end`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llvmlite import ir

from ..loop_ir.loops import LoopKernel, Nest
from ..loop_ir.origins import at_origin
from ..scheduling.schedules.choice import Schedule, chosen, parallel_units, scheduled
from ..scheduling.streaming import streamed
from ..target import Target
from .builder import Builder
from .instructions import I64
from .procedures.emitter import Emitter
from .vector_memory import POINTER, integer


def emit(kernel: LoopKernel, target: Target, own: tuple[Schedule | None, ...] = ()) -> str:
    """The module of a kernel, as text: a function per nest that is not like another one, and one that calls them.

    Args:
        kernel: its nests and buffers.
        target: the machine that it is made for.
        own: the user's own schedule of each nest, or None.
    """
    module = ir.Module(name=kernel.name)
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64, I64])
    functions: dict[Any, Any] = {}
    moved = [at_origin(nest) for nest in kernel.nests]
    keys = []
    units = parallel_units(kernel, target, own)
    parts = zip(moved, kernel.parts, streamed(kernel, target), chosen(kernel, target, own), units, strict=True)
    for (nest, _), (_, buffers, _), past_caches, steps, count in parts:
        keys.append((nest, buffers, past_caches, steps))
        if keys[-1] in functions or not count:
            continue
        function = functions[keys[-1]] = ir.Function(module, kind, f"nest{len(functions)}")
        function.linkage = "internal"
        Emitter(scheduled(nest, buffers, steps), function, target).emit()
    _emit_entry(module, kernel, moved, [functions.get(key) for key in keys], units, target)
    return str(module)


def _emit_entry(
    module: Any,
    kernel: LoopKernel,
    moved: Sequence[tuple[Nest, Mapping[int, int]]],
    functions: Sequence[Any],
    units: Sequence[int],
    target: Target,
) -> None:
    """The function that is called: it shares ``begin, end`` among the nests of phase 0, and ends with the others.

    Behind the buffers are two more addresses: of a word that is set if an index is out of range, and of one in which
    all who share a call count the units that are done.
    """
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, I64, I64]), kernel.name)
    builder = Builder(entry.append_basic_block("entry"), target)
    table, begin, end = entry.args
    trouble, counter = (
        builder.load(builder.gep(table, [integer(len(kernel.buffers) + number)], source_etype=POINTER), typ=POINTER)
        for number in range(2)
    )
    first = 0
    in_tail = False
    longest = max(len(buffers) for _, buffers, _ in kernel.parts)
    memory = builder.alloca(POINTER, integer(longest), name="moved")
    parts = zip(moved, kernel.parts, kernel.phases, functions, units, strict=True)
    for (_, begins), (_, buffers, start), phase, function, count in parts:
        if phase and not in_tail:
            in_tail = True
            _only_the_last(builder, counter, builder.sub(end, begin), first)
        if not count:
            continue
        low, high = integer(0), integer(count)
        if not phase:
            low = builder.sub(begin, integer(first))
            low = builder.select(builder.icmp_signed(">", low, integer(0)), low, integer(0))
            high = builder.sub(end, integer(first))
            high = builder.select(builder.icmp_signed("<", high, integer(count)), high, integer(count))
        own = builder.gep(table, [integer(start)], source_etype=POINTER)
        if begins:
            own = _moved(builder, own, memory, [begins.get(n, 0) * b.dtype.itemsize for n, b in enumerate(buffers)])
        builder.call(function, [own, trouble, low, high])
        first += count
    builder.ret_void()


def _moved(builder: Any, table: Any, memory: Any, offsets: Sequence[int]) -> Any:
    """Another table of buffers, each so many bytes further on."""
    for number, offset in enumerate(offsets):
        pointer = builder.load(builder.gep(table, [integer(number)], source_etype=POINTER), typ=POINTER)
        if offset:
            pointer = builder.gep(pointer, [integer(offset)], source_etype=ir.IntType(8))
        builder.store(pointer, builder.gep(memory, [integer(number)], source_etype=POINTER))
    return memory


def _only_the_last(builder: Any, counter: Any, done: Any, units: int) -> None:
    """Leave the function unless all units are done; whoever goes on sees what the others have written."""
    before = builder.atomic_rmw("add", counter, done, "acq_rel")
    is_last = builder.icmp_unsigned("==", builder.add(before, done), integer(units))
    tail, end = builder.append_basic_block("tail"), builder.append_basic_block("end")
    builder.cbranch(is_last, tail, end)
    builder.position_at_end(end)
    builder.ret_void()
    builder.position_at_end(tail)
