"""A thread pool that runs one kernel on several parts of its range at the same time.

The parts depend on the range and the number of threads only; which thread runs which part depends on timing. The
caller, who knows the cost of a kernel, decides whether to split it.

The threads are Python's, but their work is machine code (`minitorch.compiler.runtime.board`): to wake a thread takes 20
to 60 microseconds, and so does handing over the GIL; a core moves a megabyte in that time. So a worker that is done
polls for the next kernel for a short while, without the GIL, before it sleeps. A graph of several kernels wakes it
once.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ..codegen.host import host
from . import cache

PARTS_PER_THREAD = 32  # at most; raising it balances load better, and claims more parts
LOOK_OUT = 100e-6  # seconds that an idle worker polls for the next kernel; raising it wakes fewer, and burns time

# Waking a sleeping worker costs 50 us. It pays for work of LARGE grains, or for kernels that follow within CLOSE.
LARGE = 32
CLOSE = 500e-6  # seconds from one kernel to the next


class Workers:
    """`number` threads, the caller's own among them; the others start with the first work for them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._forget()

    def _forget(self) -> None:
        """Reset the state in a new process, also after a fork: threads do not survive it, and a lock may be held."""
        self._leading = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._asleep: deque[Any] = deque()  # locks that workers wait for
        self._stopped = False
        self._job = 0
        self._asked = 0.0  # when
        self._core: int | None = None  # where the caller who woke them runs

    def run(self, kernel: int, buffers: int, extent: int, step: int, parts: int, large: bool) -> bool:
        """Call the kernel on every part and return when all are done.

        False, without any call, if another thread leads the workers, if all sleep and it does not pay to wake them, or
        if they have been stopped.
        """
        if self._leading.locked():
            return False
        with self._leading:  # `with`: an interrupt between `acquire` and `try` would leave it locked for ever
            if self._stopped:
                return False
            if not self._threads:
                self._start()
            before, self._asked = self._asked, time.perf_counter()
            pays = large or self._asked - before < CLOSE
            if not pays and len(self._asleep) == len(self._threads):
                return False
            self._job = self._job % 0x7FFFFFFF + 1  # before anyone is woken: see `_work`
            if pays:
                self._wake()
            done = 0
            try:
                done = self._lead(self._board, self._job, kernel, buffers, extent, step, parts, self._patience)
            finally:
                if not done:
                    self._wait()
        return True

    def _wait(self) -> None:
        """Wait until all parts are done, through interrupts too, as the buffers have to outlive the parts."""
        interrupt: BaseException | None = None
        while True:
            try:
                if self._finished(self._board, self._patience):
                    break
                time.sleep(0)
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def _wake(self) -> None:
        if self._asleep:
            self._core = _this_core()
        with contextlib.suppress(IndexError):
            while self._asleep:
                self._asleep.popleft().release()

    def _start(self) -> None:
        from . import board

        (library,) = cache.libraries([board.text()], *board.PROTOTYPES)
        functions = {name: library.function(name, prototype) for name, prototype in board.PROTOTYPES.items()}
        self._lead, self._finished, serve = functions["lead"], functions["finished"], functions["serve"]
        self._memory = ctypes.create_string_buffer(board.BYTES + 64)
        self._board = -(-ctypes.addressof(self._memory) // 64) * 64
        self._patience = int(LOOK_OUT / min(_duration(serve, self._board, 0, 50) for _ in range(5)) * 50)
        for number in range(1, self.number):
            # Daemons: a process that ends does not wait for them.
            self._threads.append(
                threading.Thread(target=self._work, args=(serve,), name=f"minitorch-{number}", daemon=True)
            )
            self._threads[-1].start()

    def _work(self, serve: Any) -> None:
        job = 0
        while not self._stopped:
            announced = self._job
            job = serve(self._board, job, self._patience)
            bed = threading.Lock()
            bed.acquire()
            self._asleep.append(bed)
            # Getting here took the GIL. Its holder may have posted a job, and found no thread to wake. A
            # job that was announced before this round and has not come yet was interrupted, and never will.
            if self._job not in (announced, job) or self._stopped:
                with contextlib.suppress(ValueError):
                    self._asleep.remove(bed)
                continue
            bed.acquire()  # until `_wake`
            _leave_core(self._core)

    def stop(self) -> None:
        """End the threads when they are idle; later calls of `run` return False."""
        with self._leading:
            self._stopped = True
            self._wake()
            for thread in self._threads:
                thread.join(timeout=1)


# Systems tend to wake a thread on the core of the waker, the one core that is surely busy.
try:
    _this_core: Callable[[], int | None] = ctypes.CDLL(None).sched_getcpu
except (AttributeError, OSError, TypeError):  # not Linux

    def _this_core() -> int | None:
        return None


def _duration(function: Callable[..., Any], *arguments: int) -> float:
    begin = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begin


def _leave_core(core: int | None) -> None:
    if core is not None and (others := os.sched_getaffinity(os.getpid()) - {core}):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, others)  # of this thread alone


def _default() -> int:
    text = os.environ.get("MINITORCH_NUM_THREADS", "")
    return max(1, int(text)) if text.isdecimal() else host().cores


_current: list[Workers] = []  # one element, from the first request on
_changing = threading.Lock()


def workers() -> Workers:
    """Return the threads of this process."""
    with _changing:
        if not _current:
            _current.append(Workers(_default()))
        return _current[0]


def get_num_threads() -> int:
    """Return how many threads a kernel may run on.

    At first as many as the cores that this process may use, or the environment variable
    ``MINITORCH_NUM_THREADS``.

    Example:
        >>> get_num_threads() >= 1
        True
    """
    return workers().number


def set_num_threads(number: int) -> None:
    """Let kernels run on that many threads, the caller's own among them. Results do not depend on it.

    Raises:
        TypeError: if `number` is not an int.
        ValueError: if it is less than 1.

    Example:
        >>> before = get_num_threads()
        >>> set_num_threads(1)
        >>> get_num_threads()
        1
        >>> set_num_threads(before)
    """
    if type(number) is not int:
        raise TypeError(f"set_num_threads takes an int, not {number!r}")
    if number < 1:
        raise ValueError(f"set_num_threads takes a number of at least 1, not {number}: the caller's own thread counts")
    before = workers()
    with _changing:
        _current[:] = [Workers(number)]
    before.stop()


def _stop_all() -> None:
    for current in _current:
        current.stop()


def _after_fork() -> None:
    global _changing
    _changing = threading.Lock()
    for current in _current:
        current._forget()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def split(extent: int, parts: int, step: int = 1) -> list[tuple[int, int]]:
    """Return the parts of ``range(extent)`` that `run` makes: consecutive, equal up to a step, all but the last whole.

    Example:
        >>> split(100, parts=3, step=16)
        [(0, 32), (32, 64), (64, 100)]
    """
    steps = -(-extent // step)
    bounds = [min(extent, part * steps // parts * step) for part in range(parts + 1)]
    return list(itertools.pairwise(bounds))


def run(kernel: Any, buffers: int, extent: int, *, cost: float, grain: float, step: int = 1) -> None:
    """Call `kernel(buffers, begin, end)` for all of ``range(extent)``, on several threads if that pays.

    Several Python threads may call this at once, with the same kernel too: one has the workers, the others do without.

    Args:
        kernel: a function of a `minitorch.compiler.codegen.machine.Library`; its parts must not depend on each other.
        buffers: the address of the addresses of the buffers.
        extent: the length of the parallel range.
        cost: the cost of the whole call, in any unit.
        grain: the least cost of a part that is worth another thread, in the same unit.
        step: parts begin at multiples of this.
    """
    if cost >= 2 * grain and extent > step and (threads := (_current or [workers()])[0]).number > 1:
        parts = min(int(cost // grain), PARTS_PER_THREAD * threads.number, -(-extent // step))
        if threads.run(kernel.address, buffers, extent, step, parts, cost >= LARGE * grain):
            return
    kernel(buffers, 0, extent)
