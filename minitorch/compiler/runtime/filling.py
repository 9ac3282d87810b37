"""Memory of a program that is filled once, when the program is loaded: packed weights.

Each kernel has arrays of its own. The memory lives as long as the program.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from ..kernels.arena import ALIGNMENT, aligned
from ..kernels.kernel import Kernel
from . import cache
from .memory import Array, address


class Filled:
    """The arrays of a kernel that are filled once.

    Args:
        kernel: made of loops.
        buffers: the addresses of its buffers; those of what is no constant are not read.

    Attributes:
        addresses: of the arrays, in the order in which the kernel expects them.
        nbytes: of all of them.
    """

    def __init__(self, kernel: Kernel, buffers: Sequence[int]) -> None:
        sizes = [aligned(array.size * array.dtype.itemsize) for array in kernel.arrays]
        self.nbytes = sum(sizes)
        self.addresses: list[int] = []
        if not sizes:
            return
        self._memory: Array = np.empty(self.nbytes + ALIGNMENT, np.uint8)
        self._memory.fill(0)  # what lies between the blocks is read, and not used
        start = aligned(address(self._memory))
        for size in sizes:
            self.addresses.append(start)
            start += size
        if not kernel.units:
            return
        (library,) = cache.libraries([kernel.filling], "kernel")
        notes = (ctypes.c_int64 * 2)()
        places = [*buffers, *self.addresses, ctypes.addressof(notes), ctypes.addressof(notes) + 8]
        library.function("kernel")((ctypes.c_int64 * len(places))(*places), 0, len(kernel.arrays))
