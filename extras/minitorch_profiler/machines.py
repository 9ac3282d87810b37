"""The machine's roofs (copy bandwidth and peak FLOP rates), measured once and cached."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from time import perf_counter, process_time

from minitorch import dtypes
from minitorch.tables import Table, Tabular

FORMAT = "minitorch machine 2"  # the number is the format's
TYPES = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int32, dtypes.int64)
ROUNDS, SECONDS = 2, 0.025  # seconds for one rate in each round, a copy five times as long; raising it is more exact
MOST_SECONDS = 0.8  # seconds after which no further round begins
BUSY = 0.75  # share of its threads' time that a process gets on an idle machine


@dataclass(frozen=True, repr=False)
class Machine(Tabular):
    """The roofs of a machine, and its processor.

    Attributes:
        processor: its name, as the code generator knows it.
        vector_bytes: bytes of a vector register.
        threads: the number of threads used.
        caches: bytes of the data caches of level 1, 2 and 3.
        bandwidth: bytes per second that a copy, too large for the caches, reads and writes.
        flops: multiplications and additions per second for each type, as compiled programs do them: 16-bit floats are
            computed in float32 and rounded after every operation.
        busy: whether other programs took much of the processor's time meanwhile; then the rates are too low.

    Example:
        >>> print(Machine("a machine", 32, 2, (32 << 10, 1 << 20, 8 << 20), 2e10, {"float32": 1e11}))
        a machine, vectors of 32 bytes, 2 threads
        data caches      L1 32 KB, L2 1 MB, L3 8 MB
        memory copy          20.0 GB/s, read and written
        float32             100.0 GFLOP/s
    """

    processor: str
    vector_bytes: int
    threads: int
    caches: tuple[int, int, int]
    bandwidth: float
    flops: dict[str, float]
    busy: bool = False

    def peak(self, dtype: str) -> float:
        """The FLOP rate for a type, by name; that of int32 for integers and bools that are not listed.

        Example:
            >>> Machine("m", 16, 1, (1, 2, 3), 1e9, {"int32": 2e9, "float32": 3e9}).peak("int8")
            2000000000.0
        """
        return self.flops.get(dtype, self.flops["int32"])

    def _parts(self) -> Iterator[Table | str]:
        sizes = ", ".join(f"L{level} {_size(size)}" for level, size in enumerate(self.caches, 1))
        threads = f"{self.threads} thread{'s' * (self.threads != 1)}"
        yield f"{self.processor}, vectors of {self.vector_bytes} bytes, {threads}"
        yield f"data caches      {sizes}"
        rows = [("memory copy", f"{self.bandwidth / 1e9:.1f}", "GB/s, read and written")]
        rows += [(name, f"{rate / 1e9:.1f}", "GFLOP/s") for name, rate in self.flops.items()]
        yield Table("{:<17}{:>8} {}", rows, names=())
        if self.busy:
            yield "other programs were running: mt.machine(again=True) measures again, and keeps better rates"

    def better(self, other: Machine) -> Machine:
        """The better of two measurements of one machine: disturbances only make it slower.

        Example:
            >>> first = Machine("m", 16, 1, (1, 2, 3), 1e9, {"int32": 2e9}, busy=True)
            >>> first.better(Machine("m", 16, 1, (1, 2, 3), 2e9, {"int32": 1e9})).bandwidth
            2000000000.0
        """
        flops = {name: max(rate, other.flops[name]) for name, rate in self.flops.items()}
        return replace(self, bandwidth=max(self.bandwidth, other.bandwidth), flops=flops, busy=self.busy and other.busy)


def _size(size: int) -> str:
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB"


_known: dict[int, Machine] = {}  # by the number of threads


def _remembered(threads: int, again: bool) -> Machine:
    from minitorch.compiler.codegen.host import host
    from minitorch.compiler.runtime import cache as code_cache  # loads LLVM

    about = (FORMAT, platform.node(), host(), threads)
    key = hashlib.sha256(repr(about).encode()).digest()
    content = code_cache.disk().get(key)
    found = None if content is None else read(content)
    if found is not None and not again:
        return found
    measured = measure()
    if found is not None:
        measured = measured.better(found)
    code_cache.disk().put(key, json.dumps(asdict(measured)).encode())
    return measured


def read(content: bytes) -> Machine | None:
    """A machine from the cache; None if the file is damaged.

    Example:
        >>> read(b"{}") is None
        True
    """
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        fields = json.loads(content)
        found = Machine(**{**fields, "caches": tuple(fields["caches"])})
        rates = [found.bandwidth, *found.flops.values()]
        if list(found.flops) == [dtype.name for dtype in TYPES] and all(math.isfinite(r) and r > 0 for r in rates):
            return found
    return None


def measure() -> Machine:
    """Measure now, in about a second: the best of some rounds, as other programs may disturb."""
    from minitorch.compiler.codegen.host import host  # loads LLVM
    from minitorch.compiler.runtime.threads import get_num_threads

    from .roofs import bandwidth, flop_rate

    target = host()
    copies, rates = [], dict.fromkeys((dtype.name for dtype in TYPES), 0.0)
    begin = perf_counter()
    for number in range(ROUNDS):
        if number and perf_counter() - begin > MOST_SECONDS:
            break
        copies.append(bandwidth(5 * SECONDS))
        rates = {dtype.name: max(rates[dtype.name], flop_rate(dtype, SECONDS)) for dtype in TYPES}
    threads = get_num_threads()
    begin, used = perf_counter(), process_time()
    flop_rate(dtypes.float32, SECONDS)
    busy = process_time() - used < BUSY * threads * (perf_counter() - begin)
    return Machine(target.cpu, target.vector_bytes, threads, target.caches, max(copies), rates, busy)


def machine(again: bool = False) -> Machine:
    """The roofs of this machine: copy bandwidth, peak FLOP rates, caches.

    It is measured once, in less than two seconds, and remembered in the cache folder, for this host and the present
    number of threads. ``python -m minitorch machine`` prints it.

    Args:
        again: measure now, if other programs disturbed the first measurement; the better rates are kept.

    Example:
        >>> import minitorch as mt
        >>> here = mt.machine()
        >>> here.bandwidth > 0 and here.flops["float32"] > 0
        True
    """
    from minitorch.compiler.runtime.threads import get_num_threads

    threads = get_num_threads()
    if again or threads not in _known:
        _known[threads] = _remembered(threads, again)
    return _known[threads]
