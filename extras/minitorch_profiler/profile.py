"""`profile`: time, bytes and FLOPs of a program, operation by operation or kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from os import PathLike
from time import perf_counter_ns
from typing import Generic, TypeVar

from minitorch.interpreters import block, watching
from minitorch.tables import Table, Tabular

from . import chrome, texts
from .machines import Machine, machine
from .recorder import Recorder
from .rows import TIMED, Row, rows

T = TypeVar("T")

LIMIT = 30  # rows of a table; raising it shows more of the short operations


class _Counted(Generic[T]):
    """A property that is computed once when the block is over, and anew until then."""

    def __init__(self, count: Callable[[Profile], T]) -> None:
        self.count = count
        self.__doc__ = count.__doc__

    def __get__(self, profile: Profile | None, owner: type[Profile] | None = None) -> T:
        if profile is None:
            return self  # type: ignore[return-value]
        found = self.count(profile)
        if profile.recorder.end:
            profile.__dict__[self.count.__name__] = found  # instance attributes come first from now on
        return found


def _sum(name: str, doc: str) -> _Counted[int]:
    """A count of all rows together."""

    def count(profile: Profile) -> int:
        return sum(getattr(row, name) for row in profile._rows)

    count.__name__, count.__doc__ = name, doc
    return _Counted(count)


class Profile(Tabular):
    """The events of a `profile` block; print it for the table.

    All times are seconds, and add up: `kernels`, `dispatch`, `tracing`, `compiling` and `outside` are the `total`.

    Example:
        >>> import minitorch as mt
        >>> x = mt.ones(1000)
        >>> with mt.profile() as p:
        ...     y = x.exp() + x
        >>> for row in sorted(p.rows(), key=lambda row: row.name):
        ...     print(row.name, row.calls, row.bytes_read, row.bytes_written, row.flops, row.transcendentals)
        add 1 8000 4000 1000 0
        exp 1 4000 4000 0 1000
        >>> p.peak_bytes
        8000
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    # Time -----------------------------------------------------------------------------------------------

    @property
    def total(self) -> float:
        """Seconds from the beginning of the block to its end, or to now."""
        return ((self.recorder.end or perf_counter_ns()) - self.recorder.begin) / 1e9

    @_Counted
    def _own(self) -> dict[str, float]:
        """For each kind of event, the time of all events without the time of nested ones."""
        own: dict[str, float] = {}
        within: list[tuple[int, str]] = []  # the ends of the events that are open, and their kinds
        for begin, end, kind, _ in sorted(self.recorder.events, key=lambda event: (event[0], -event[1])):
            while within and within[-1][0] <= begin:
                within.pop()
            if within:
                own[within[-1][1]] -= (end - begin) / 1e9
            own[kind] = own.get(kind, 0.0) + (end - begin) / 1e9
            within.append((end, kind))
        return own

    def _time(self, *kinds: str) -> float:
        return sum(self._own.get(kind, 0.0) for kind in kinds)

    @property
    def kernels(self) -> float:
        """Time in kernels, nodes and eager operations, which compute."""
        return self._time(*TIMED)

    @property
    def dispatch(self) -> float:
        """Time in calls of compiled functions and in `bind`, outside of kernels."""
        return self._time("call") + self.recorder.before / 1e9

    @property
    def tracing(self) -> float:
        """Time for recording graphs."""
        return self._time("trace")

    @property
    def compiling(self) -> float:
        """Time in passes and backends."""
        return self._time("passes", "compile")

    @property
    def outside(self) -> float:
        """All other time: the program's own Python, and in eager mode the functions that apply primitives."""
        return self.total - sum(self._own.values()) - self.recorder.before / 1e9

    @property
    def times(self) -> dict[str, float]:
        """The parts of the total, by name."""
        return {name: getattr(self, name) for name in ("kernels", "dispatch", "tracing", "compiling", "outside")}

    # Counts ---------------------------------------------------------------------------------------------

    def rows(self, by: str = "operation") -> list[Row]:
        """The events added up by ``"operation"`` (or kernel) or by ``"line"``, the longest first."""
        return rows(self.recorder, by)

    @_Counted
    def _rows(self) -> list[Row]:
        return self.rows()

    calls = _sum("calls", "The number of operations, nodes and kernels that ran.")
    bytes_read = _sum("bytes_read", "Bytes from memory, of all of them.")
    bytes_written = _sum("bytes_written", "Bytes to memory.")
    flops = _sum("flops", "Arithmetic operations on elements.")
    transcendentals = _sum("transcendentals", "Elements of exp, log and the like.")

    # Memory ---------------------------------------------------------------------------------------------

    @_Counted
    def live(self) -> list[tuple[float, int]]:
        """Memory allocated in the block and not yet freed: times and bytes, after each change.

        Of compiled functions these are the results, what library calls return, and the arena of intermediate values.
        """
        changes = sorted(self.recorder.changes, key=lambda change: change[0])
        alive = accumulate(size for _, size in changes)
        return [((when - self.recorder.begin) / 1e9, size) for (when, _), size in zip(changes, alive, strict=True)]

    @property
    def bytes(self) -> int:
        """Read and written together."""
        return self.bytes_read + self.bytes_written

    @property
    def peak_bytes(self) -> int:
        """The most live bytes."""
        return max((size for _, size in self.live), default=0)

    # Showing --------------------------------------------------------------------------------------------

    def table(self, by: str = "operation", limit: int = LIMIT, roofs: Machine | None = None) -> str:
        """The rows as text, with the share that each has of this machine's memory bandwidth and peak FLOP rate.

        Args:
            by: ``"operation"`` or ``"line"``.
            limit: the most rows.
            roofs: the machine; by default this one, which is measured if it has not been.
        """
        return "\n".join(map(str, texts.parts(self, by, limit, roofs or machine())))

    def compare(self, other: Profile, by: str = "operation") -> str:
        """A table of this profile beside another one of the same program, row by row and in total."""
        return texts.comparison(self, other, by)

    def chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write a timeline that https://ui.perfetto.dev and ``chrome://tracing`` open."""
        chrome.write(self.recorder, self.live, path)

    def _parts(self) -> Iterator[Table | str]:
        return texts.parts(self, "operation", LIMIT, machine())


@block
def profile() -> Iterator[Profile]:
    """Profile the operations of this thread inside the `with` block, in every mode.

    The rows are eager operations, nodes of a graph that NumPy runs, and kernels of compiled code, each with time,
    calls, bytes, FLOPs and the shares of the machine's peak rates. Beside them are the times for dispatch, tracing and
    compiling, and the memory in use. Kernels that otherwise share one native call are run and timed one by one. A
    program on ``backend="xla"`` is one row, of the kind ``"XLA"``. A program that is not profiled pays nothing.

    Bytes and FLOPs are counted, not measured: their sums over one call of `f` are those of ``f.cost``. The computations
    of ``debug.print`` and ``debug.breakpoint`` are counted in addition.

    Raises:
        ObserverError: inside of another profile, or of ``debug.check_nan`` (``MT503``).

    Example:
        >>> import minitorch as mt
        >>> f = mt.jit(lambda x: x.softmax(1))
        >>> x = mt.ones(256, 1000)
        >>> y = f(x)
        >>> with mt.profile() as p:
        ...     y = f(x)
        >>> p.calls, p.bytes_read, p.bytes_written, p.compiling
        (1, 1024000, 1024000, 0.0)
        >>> p.rows()[0].kind
        'K3'
    """
    recorder = Recorder()
    result = Profile(recorder)
    with watching(recorder):
        try:
            yield result
        finally:
            recorder.stop()
