"""The memory hierarchy of a machine: registers, caches and main memory, with the size and the speed of each.

The nearer a level is to the arithmetic, the smaller and the faster it is (Hennessy and Patterson, *Computer
Architecture: A Quantitative Approach*, chapter 2). Two numbers describe its speed. The *bandwidth* is measured by
reading an array again and again, in vectors, in order. The *latency* is measured by following pointers through the
array in a random order, so that no load can begin before the one before it has ended, and no prefetcher can guess the
next address (McVoy and Staelin, "lmbench", 1996). Both are those of one core.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

import numpy as np

from minitorch.compiler.codegen.host import host
from minitorch.compiler.runtime import cache
from minitorch.compiler.runtime.memory_pool import address, main_memory
from minitorch.compiler.target import Target
from minitorch.dtypes import float32

from .roofs import UNITS, flops_text, lanes, shortest

SECONDS = 0.02  # for one number; raising it finds a quieter moment
ROUNDS = 2  # of which the better numbers count
LINE = 128  # bytes from pointer to pointer; at least a line of any cache, so that each is fetched for itself
ACCUMULATORS = 8  # vectors that a step reads; raising it hides more of an addition's latency, and takes registers
ABOVE = 3  # times the cache before it, an array that a cache is measured with; other programs use the last cache, too
BEYOND, MOST = 4, 512 << 20  # main memory is measured with so many times the last cache, at most so many bytes
LOADS = 20_000  # pointers that are followed in one measurement, some milliseconds of main memory
PASSED = 1 << 20  # bytes, at least, that one measurement reads; less is too short for the clock


@dataclass(frozen=True)
class Level:
    """A level of the memory hierarchy, as one core sees it.

    Attributes:
        name: ``"registers"``, ``"L1"``, ``"L2"``, ``"L3"`` or ``"memory"``.
        bytes: how much it holds; 0 where the system does not say. The registers are the vector registers.
        bandwidth: bytes per second that a core reads from it; from registers, as operands of multiply-adds.
        latency: seconds from the address to the number; 0 for registers.
        array: bytes of the array that it was measured with; 0 for registers.
    """

    name: str
    bytes: int
    bandwidth: float
    latency: float
    array: int

    def better(self, other: Level) -> Level:
        """The better of two measurements of one level: disturbances only make it slower.

        Example:
            >>> Level("L1", 1, 5e9, 2e-9, 1).better(Level("L1", 1, 4e9, 1e-9, 1))
            Level(name='L1', bytes=1, bandwidth=5000000000.0, latency=1e-09, array=1)
        """
        faster, sooner = max(self.bandwidth, other.bandwidth), min(self.latency, other.latency)
        return replace(self, bandwidth=faster, latency=sooner)


_known: list[tuple[Level, ...]] = []  # of this process, once it is measured


def hierarchy(again: bool = False) -> tuple[Level, ...]:
    """Registers, caches and main memory, the nearest first. It is measured once in a process, in less than a second.

    Args:
        again: measure now, if other programs disturbed the first measurement; the better numbers are kept.

    Example:
        >>> found = hierarchy()
        >>> found[0].name, found[-1].name
        ('registers', 'memory')
    """
    if again or not _known:
        for _ in range(ROUNDS):
            found = measure()
            if _known:
                found = tuple(one.better(other) for one, other in zip(_known.pop(), found, strict=True))
            _known.append(found)
    return _known[0]


def measure(seconds: float = SECONDS) -> tuple[Level, ...]:
    """Measure now, so many seconds for each number."""
    here = host()
    found = [Level("registers", here.vector_registers * here.vector_bytes, _registers(here, seconds), 0.0, 0)]
    planned = levels_of(here.caches)
    words = _aligned(planned[-1][2])
    for name, size, array in planned:
        part = words[: array // 8]
        link(part)
        read = _bandwidth(part, here, seconds)
        found.append(Level(name, size or main_memory(), read, _latency(part, here, seconds), array))
    return tuple(found)


def levels_of(caches: tuple[int, ...]) -> list[tuple[str, int, int]]:
    """Name, size, and bytes of the array to measure it with, of each cache and of main memory, whose size is 0.

    A cache is measured with an array that is too large for the one before it, and smaller than itself: `ABOVE` times
    the one before, or the geometric mean of both sizes if that is less. A cache that is hardly larger than the one
    before it is left out.

    Example:
        >>> levels_of((32 << 10, 512 << 10, 8 << 20))
        [('L1', 32768, 16384), ('L2', 524288, 98304), ('L3', 8388608, 1572864), ('memory', 0, 33554432)]
        >>> [name for name, _, _ in levels_of((32 << 10, 16 << 20, 8 << 20))]
        ['L1', 'L2', 'memory']
    """
    found, before = [], caches[0] // 4
    for level, size in enumerate(caches, 1):
        if size >= 2 * before:
            found.append((f"L{level}", size, _whole(min(ABOVE * before, isqrt(size * before)))))
            before = size
    return [*found, ("memory", 0, _whole(min(BEYOND * before, MOST)))]


def _whole(size: int) -> int:
    """Whole steps of the reading loop, for any vector registers."""
    step = max(LINE, ACCUMULATORS * 64)
    return max(1, size // step) * step


# --- what is run ------------------------------------------------------------------------------------------------------

READ = """
define void @kernel(ptr %buffers, i64 %steps, i64 %rounds) {{
entry:
  %data = load ptr, ptr %buffers
  %place = getelementptr ptr, ptr %buffers, i64 1
  %out = load ptr, ptr %place
  br label %round
round:
  %r = phi i64 [ 0, %entry ], [ %r1, %next ]
  {outer}
  br label %step
step:
  %s = phi i64 [ 0, %round ], [ %s1, %step ]
  {inner}
  {loads}
  %s1 = add i64 %s, 1
  %more = icmp slt i64 %s1, %steps
  br i1 %more, label %step, label %next
next:
  %r1 = add i64 %r, 1
  %again = icmp slt i64 %r1, %rounds
  br i1 %again, label %round, label %done
done:
  {stores}
  ret void
}}
"""

CHASE = """
define void @kernel(ptr %buffers, i64 %begin, i64 %end) {
entry:
  %from = load ptr, ptr %buffers
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %i1, %loop ]
  %p = phi ptr [ %from, %entry ], [ %q, %loop ]
  %q = load ptr, ptr %p
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %end
  br i1 %more, label %loop, label %done
done:
  store ptr %q, ptr %buffers
  ret void
}
"""


def read_text(target: Target) -> str:
    """A kernel that reads an array in vectors, in several rounds, and joins all of it by exclusive or."""
    numbers, width = range(ACCUMULATORS), target.vector_bytes // 8
    kind, zero = f"<{width} x i64>", "zeroinitializer"
    outer = [f"%o{n} = phi {kind} [ {zero}, %entry ], [ %x{n}, %next ]" for n in numbers]
    inner = [f"%a{n} = phi {kind} [ %o{n}, %round ], [ %x{n}, %step ]" for n in numbers]
    loads = [f"%first = getelementptr [{ACCUMULATORS} x {kind}], ptr %data, i64 %s"]
    for n in numbers:
        loads += [
            f"%p{n} = getelementptr {kind}, ptr %first, i64 {n}",
            f"%v{n} = load {kind}, ptr %p{n}, align 8",
            f"%x{n} = xor {kind} %a{n}, %v{n}",
        ]
    stores = []
    for n in numbers:
        stores += [f"%t{n} = getelementptr {kind}, ptr %out, i64 {n}", f"store {kind} %x{n}, ptr %t{n}, align 8"]
    parts = {"outer": outer, "inner": inner, "loads": loads, "stores": stores}
    return READ.format(**{name: "\n  ".join(lines) for name, lines in parts.items()})


def link(words: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
    """Write into the first word of each line the address of another line, so that all of them are one cycle."""
    step = LINE // words.itemsize
    order = np.random.default_rng(0).permutation(len(words) // step)
    addresses = np.uint64(address(words)) + np.uint64(LINE) * order.astype(np.uint64)
    words[step * order] = np.roll(addresses, -1)


def _aligned(size: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """An array of so many bytes that begins with a line; its pages are there, as it was written."""
    memory = np.ones(size + LINE, np.uint8)
    return memory[-address(memory) % LINE :][:size].view(np.uint64)


def _function(text: str) -> Any:
    (library,) = cache.libraries([text], "kernel")
    return library.function("kernel")


def _bandwidth(words: np.ndarray[Any, np.dtype[np.uint64]], target: Target, seconds: float) -> float:
    """Bytes per second of reading an array."""
    function = _function(read_text(target))
    out = np.zeros(ACCUMULATORS * target.vector_bytes // 8, np.uint64)
    table = np.array([address(words), address(out)], np.int64)
    steps = words.nbytes // out.nbytes
    rounds = max(1, PASSED // words.nbytes) | 1  # odd: exclusive or of an even number of rounds is 0
    taken = shortest(lambda: function(address(table), steps, rounds), seconds)
    if np.bitwise_xor.reduce(out) != np.bitwise_xor.reduce(words):
        raise RuntimeError("the kernel that reads an array does not read all of it")
    return rounds * words.nbytes / taken


def _latency(words: np.ndarray[Any, np.dtype[np.uint64]], target: Target, seconds: float) -> float:
    """Seconds of a load that has to wait for the one before it."""
    function = _function(CHASE)
    table = np.array([address(words)], np.int64)  # where the next measurement goes on
    return shortest(lambda: function(address(table), 0, LOADS), seconds) / LOADS


def _registers(target: Target, seconds: float) -> float:
    """Bytes per second that multiply-adds read from registers, at the peak of one core."""
    text, operations = flops_text(float32)
    function = _function(text)
    operands = np.repeat(np.array([[0.5], [1]], np.float32), lanes(float32), axis=1)
    out = np.empty((UNITS, lanes(float32)), np.float32)
    table = np.array([address(operands), address(out), 0, 0], np.int64)
    taken = shortest(lambda: function(address(table), 0, UNITS), seconds)
    read = 3 if target.fma else 4  # operands: of one multiply-add, or of a multiplication and an addition
    return UNITS * operations / 2 * read * float32.itemsize / taken
