"""The time of memory traffic: so many bytes read and so many written, with non-temporal stores, and nothing computed.

This is the bound of a kernel that memory limits. A copy of half as many bytes in each direction would be no bound for a
sum, which writes nothing. Non-temporal stores write whole lines without reading them first.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from minitorch.compiler.codegen import machine
from minitorch.compiler.codegen.host import host

LINE = 64  # bytes
PROTOTYPE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)

# A line of 64 bytes at a time: `copied` lines go from the source to the target, `read` more are read and `written` more
# are written. What is only read goes into a sum, so that it is read.
_TEXT = """
define void @move(ptr %source, ptr %target, ptr %sum, i64 %copied, i64 %read, i64 %written) {
entry:
  br label %copy
copy:
  %i = phi i64 [ 0, %entry ], [ %i1, %copy.body ]
  %copy.more = icmp ult i64 %i, %copied
  br i1 %copy.more, label %copy.body, label %reading
copy.body:
  %from = getelementptr <16 x i32>, ptr %source, i64 %i
  %to = getelementptr <16 x i32>, ptr %target, i64 %i
  %line = load <16 x i32>, ptr %from, align 64
  store <16 x i32> %line, ptr %to, align 64, !nontemporal !0
  %i1 = add i64 %i, 1
  br label %copy
reading:
  %j = phi i64 [ 0, %copy ], [ %j1, %read.body ]
  %total = phi <16 x i32> [ zeroinitializer, %copy ], [ %more, %read.body ]
  %read.more = icmp ult i64 %j, %read
  br i1 %read.more, label %read.body, label %writing
read.body:
  %j.at = add i64 %copied, %j
  %j.from = getelementptr <16 x i32>, ptr %source, i64 %j.at
  %j.line = load <16 x i32>, ptr %j.from, align 64
  %more = xor <16 x i32> %total, %j.line
  %j1 = add i64 %j, 1
  br label %reading
writing:
  %k = phi i64 [ 0, %reading ], [ %k1, %write.body ]
  %write.more = icmp ult i64 %k, %written
  br i1 %write.more, label %write.body, label %end
write.body:
  %k.at = add i64 %copied, %k
  %k.to = getelementptr <16 x i32>, ptr %target, i64 %k.at
  store <16 x i32> zeroinitializer, ptr %k.to, align 64, !nontemporal !0
  %k1 = add i64 %k, 1
  br label %writing
end:
  store <16 x i32> %total, ptr %sum, align 64
  fence seq_cst
  ret void
}
!0 = !{i32 1}
"""


def _aligned(size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Memory that begins with a line, every page of it touched."""
    memory = np.ones(size + LINE, np.uint8)
    begin = -memory.ctypes.data % LINE
    return memory[begin : begin + size]


def mover(read: int, written: int, threads: int) -> Callable[[], None]:
    """A call that reads and writes so many bytes, in whole lines, divided among threads.

    Raises:
        RuntimeError: if it copies wrongly.
    """
    function = machine.load(machine.compile_ir(_TEXT, host()), "move").function("move", PROTOTYPE)
    read, written = read // LINE, written // LINE
    source, target, sums = (_aligned(LINE * max(1, lines)) for lines in (read, written, threads))
    source.fill(7)
    jobs = []
    for number in range(threads):  # each has its own part of both
        (r0, r1), (w0, w1) = (((n * number) // threads, (n * (number + 1)) // threads) for n in (read, written))
        copied = min(r1 - r0, w1 - w0)
        places = (source.ctypes.data + r0 * LINE, target.ctypes.data + w0 * LINE, sums.ctypes.data + number * LINE)
        jobs.append((*places, copied, r1 - r0 - copied, w1 - w0 - copied))
    pool = ThreadPoolExecutor(threads)

    def move() -> None:
        if threads == 1:
            function(*jobs[0])
        else:
            list(pool.map(lambda job: function(*job), jobs))

    move.memory = source, target, sums, function  # type: ignore[attr-defined]  # as long as it can be called
    move()
    lines = min(read, written)
    if threads == 1 and not np.array_equal(source[: lines * LINE : 4096], target[: lines * LINE : 4096]):
        raise RuntimeError("the copy does not copy")
    return move


def movers(read: int, written: int) -> list[Callable[[], None]]:
    """By one thread, and by all cores: whichever is faster is the bound."""
    return [mover(read, written, threads) for threads in sorted({1, os.cpu_count() or 1})]
