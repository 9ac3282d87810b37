"""A pool of memory blocks, for outputs and arenas.

A page fault of a fresh page costs more than the arithmetic that fills it, so large blocks are kept and reused. An arena
is a block, too: a call takes one, and gives it back when it ends, so that concurrent calls never share one.
`minitorch.compiler.kernels.arena` finds the offsets in an arena.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial
from math import prod
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from ..kernels.arena import ALIGNMENT, aligned

Array = np.ndarray[Any, np.dtype[Any]]

# --- blocks that are used again ---------------------------------------------------------------------------------------


def main_memory() -> int:
    """Return the bytes of main memory that this process may use; 0 where the system does not say.

    Example:
        >>> main_memory() >= 0
        True
    """
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
    try:  # a container may have less
        return min(size, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    except (OSError, ValueError):  # no such file, or "max"
        return size


def _round(size: int) -> int:
    """Round an allocation to its block's size: whole pages, and few different sizes; at most an eighth is lost."""
    return aligned(size, max(mmap.PAGESIZE, 1 << max(0, size.bit_length() - 4)))


class Block:
    """Some memory of a pool: its address and its size in bytes."""

    __slots__ = ("address", "memory", "size")

    def __init__(self, size: int) -> None:
        try:  # private, so that a forked process has its own copy
            private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
            self.memory = mmap.mmap(-1, size, **private)
        except (OSError, ValueError) as error:
            raise MemoryError(f"no {size:,} bytes of memory are left") from error
        if hasattr(mmap, "MADV_HUGEPAGE") and size >= 4 << 20:
            self.memory.madvise(mmap.MADV_HUGEPAGE)
        self.address = address(np.frombuffer(self.memory, np.uint8))
        self.size = size


class _Lease(np.ndarray[Any, Any]):
    """The base of a lent array: it is freed with the last view of it, and the block returns to the pool.

    A finaliser may run anywhere. Were this one Python code, an interrupt could come in it, and would be printed and
    lost, as no caller could catch it; and it could wait for a lock that its own thread holds. So it is a call of C
    functions alone: the property looks up the attribute, which is a `partial`, and that is called.
    """

    give_back: Callable[[], None]
    __del__ = property(attrgetter("give_back"))


class Pool:
    """Blocks of memory, kept for reuse when they are given back.

    No thread waits for another, and no lock has to survive a fork: each step is one operation of a deque or a
    dictionary, which is atomic in Python.

    Args:
        limit: most unused bytes that are kept, of one size at any time, of all together after the next `take`;
            the sizes unused for longest are returned to the system first.
        smallest: arrays of fewer bytes are plain `np.empty`: the C library keeps such memory itself.

    Example:
        >>> pool = Pool()
        >>> first = pool.array((1024, 1024), np.float32)
        >>> place = address(first)
        >>> del first
        >>> address(pool.array((1024, 1024), np.float32)) == place
        True
    """

    def __init__(self, limit: int | None = None, smallest: int = 1 << 20) -> None:
        self.limit = min(1 << 30, (main_memory() or 8 << 30) // 8) if limit is None else limit
        self.smallest = smallest
        self._free: OrderedDict[int, deque[Block]] = OrderedDict()  # by size, in the order of their last use

    @property
    def held(self) -> int:
        """Bytes that are kept and not in use."""
        return sum(size * len(blocks) for size, blocks in list(self._free.items()))

    def take(self, size: int) -> Block:
        """Take a block of at least `size` bytes, for the caller alone; beyond the limit, others go to the system."""
        size = _round(max(size, 1))
        blocks = self._blocks(size)
        self._free.move_to_end(size)
        excess = self.held - self.limit
        for other, unused in list(self._free.items()) if excess > 0 else ():
            with contextlib.suppress(IndexError):  # another thread has taken the last one
                while excess > 0:
                    unused.popleft()
                    excess -= other
        try:
            return blocks.pop()
        except IndexError:
            return Block(size)

    def _blocks(self, size: int) -> deque[Block]:
        """Return the free blocks of a size; beyond the limit, the oldest of them goes to the system."""
        found = self._free.get(size)
        return self._free.setdefault(size, deque(maxlen=self.limit // size)) if found is None else found

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any] | type[Any]) -> Array:
        """Return an array with undefined contents, as `np.empty`; its memory returns when its last view is freed.

        Large ones are aligned to 64 bytes.
        """
        dtype = np.dtype(dtype)
        size = prod(shape) * dtype.itemsize
        if size < self.smallest:
            return np.empty(shape, dtype)
        block = self.take(size)
        lease = np.ndarray.__new__(_Lease, shape, dtype, block.memory)
        lease.give_back = partial(self._blocks(block.size).append, block)
        return lease.view(np.ndarray)


pool = Pool()


GUARD = 4096  # bytes before and after a guarded array; raising it detects writes further outside, and takes memory


class Guards:
    """Allocator of arrays filled with NaN, or -1, between guard zones of the same bytes.

    So elements that are not written show, and so do reads beyond an end; writes beyond an end are found by `broken`.
    Other new memory may have the right numbers in it, if the same was computed before.

    Example:
        >>> guards = Guards()
        >>> guards.array((2,), np.float32), guards.array((), np.int8)
        (array([nan, nan], dtype=float32), array(-1, dtype=int8))
        >>> guards.broken()
        False
    """

    def __init__(self) -> None:
        self._zones: list[tuple[Array, Array]] = []

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any] | type[Any]) -> Array:
        """Return a new array, aligned like the pool's."""
        size = prod(shape) * np.dtype(dtype).itemsize
        memory = np.full(size + 2 * GUARD + ALIGNMENT, 0xFF, np.uint8)
        begin = GUARD + -address(memory) % ALIGNMENT
        self._zones.append((memory[:begin], memory[begin + size :]))
        return memory[begin : begin + size].view(dtype).reshape(shape)

    def copy(self, array: Array) -> Array:
        """Return a copy of an array; one that is not contiguous has no guard zones."""
        if not array.flags.c_contiguous:
            return np.array(array, order="K")
        result = self.array(array.shape, array.dtype)
        result[...] = array
        return result

    def broken(self) -> bool:
        """Return whether memory outside of the arrays was written."""
        return any(not (zone == 0xFF).all() for zones in self._zones for zone in zones)


# --- addresses --------------------------------------------------------------------------------------------------------

# Where NumPy's C interface has fields of an array, after the object's head: data, nd, dimensions, strides, base, descr,
# flags. Reading the address there takes 0.2 us, `array.ctypes.data` 1 us.
DATA = object.__basicsize__
FLAGS = DATA + 6 * ctypes.sizeof(ctypes.c_void_p)


def address(array: Array) -> int:
    """Return where the elements of an array begin; not for NumPy's scalars, which are no arrays."""
    return ctypes.c_void_p.from_address(id(array) + DATA).value or 0
