"""Memory that is filled once, when a program is loaded: packed weights.

Kernels and programs that pack the same constant in the same way share the memory. It lives as long as one of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Sequence
from weakref import WeakValueDictionary

import numpy as np

from ..kernels.arena import ALIGNMENT, aligned
from ..kernels.kernel import Filling, Kernel
from . import cache
from .memory_pool import Array, address


class Held:
    """Memory for the arrays of one nest.

    Attributes:
        filling: that of the arrays. It keeps the constants alive by whose addresses they are known.
        addresses: of the arrays, in the order in which the kernel expects them.
    """

    def __init__(self, filling: Filling) -> None:
        self.filling = filling
        sizes = [aligned(array.size * array.dtype.itemsize) for array in filling.arrays]
        self._memory: Array = np.empty(sum(sizes) + ALIGNMENT, np.uint8)
        self._memory.fill(0)  # bytes between the blocks are read, and not used
        start = aligned(address(self._memory))
        self.addresses = [start + sum(sizes[:number]) for number in range(len(sizes))]


HELD: WeakValueDictionary[Hashable, Held] = WeakValueDictionary()  # filled arrays, by the key of their filling


def filled(kernel: Kernel, buffers: Sequence[int]) -> list[Held]:
    """Return the arrays of a kernel that are filled once; they live as long as the result.

    Args:
        kernel: made of loops.
        buffers: the addresses of its buffers; only those of constants are read.
    """
    count = sum(len(each.arrays) for each in kernel.fillings)
    found: list[Held] = []
    for number, filling in enumerate(kernel.fillings if kernel.units else ()):
        key = filling.key
        held = HELD.get(key)
        if held is None:
            held = Held(filling)
            (library,) = cache.libraries([kernel.filling], "kernel")
            trouble = (ctypes.c_int64 * 2)()
            arrays = [there for each in (*found, held) for there in each.addresses]
            notes = ctypes.addressof(trouble), ctypes.addressof(trouble) + 8
            places = [*buffers, *arrays, *[0] * (count - len(arrays)), *notes]
            library.function("kernel")((ctypes.c_int64 * len(places))(*places), number, number + 1)
            HELD[key] = held
        found.append(held)
    return found
