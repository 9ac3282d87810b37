"""A thread pool that runs one kernel on several parts of its range at the same time.

The parts depend on the range and the number of threads only; which thread runs which part depends on timing. The
caller, who knows the cost of a kernel, decides whether to split it.

The threads are Python's, but their work is machine code (`NATIVE`): to wake a thread takes 20 to 60 microseconds, so
does handing over the GIL; a core moves a megabyte in that time. So a worker that is done polls for the next kernel for
a short while, without the GIL, before it sleeps. A graph of several kernels wakes it once. With a pool of threads that
sleep between kernels (`concurrent.futures`), a training step of a perceptron (784-256-10, batch 64) takes 12 % longer
on two cores, and a step of Adam on a million numbers 26 %.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ..codegen.host import host
from . import cache

PARTS_PER_THREAD = 32  # at most; raising it balances load better, and claims more parts
PATIENCE = 256  # rounds, some 100 us, that an idle worker polls for; raising it wakes fewer, and burns time

# Waking a sleeping worker costs 50 us. It pays for work of LARGE grains, or for kernels that follow within CLOSE.
LARGE = 32
CLOSE = 500e-6  # seconds from one kernel to the next

# The board, which all threads see: word 0, how many parts of the job nobody has claimed; word 8, on a cache line of its
# own, how many are not done; from word 16 on the job: kernel, buffers, extent, elements of a part, parts. A thread that
# has claimed a part reads the job afterwards: it does not change before that part is done.
JOB = 16
NATIVE = """
declare i64 @llvm.umin.i64(i64, i64)
declare i32 @@YIELD@()

; Run parts until none has come for so many rounds.
define void @serve(ptr %board, i64 %patience) {
  br label %look
look:
  %round = phi i64 [ 0, %0 ], [ 0, %run ], [ %more, %rest ]
  %seen = load atomic i64, ptr %board monotonic, align 8
  %some = icmp sgt i64 %seen, 0
  br i1 %some, label %claim, label %wait
claim:
  %left = atomicrmw sub ptr %board, i64 1 acquire
  %won = icmp sgt i64 %left, 0
  br i1 %won, label %run, label %wait
run:
  %job = getelementptr i64, ptr %board, i64 @JOB@
  %fields = load { ptr, ptr, i64, i64, i64 }, ptr %job
  %kernel = extractvalue { ptr, ptr, i64, i64, i64 } %fields, 0
  %buffers = extractvalue { ptr, ptr, i64, i64, i64 } %fields, 1
  %extent = extractvalue { ptr, ptr, i64, i64, i64 } %fields, 2
  %size = extractvalue { ptr, ptr, i64, i64, i64 } %fields, 3
  %parts = extractvalue { ptr, ptr, i64, i64, i64 } %fields, 4
  %part = sub i64 %parts, %left
  %begin = mul i64 %part, %size
  %most = add i64 %begin, %size
  %end_of_part = call i64 @llvm.umin.i64(i64 %most, i64 %extent)
  call void %kernel(ptr %buffers, i64 %begin, i64 %end_of_part)
  %undone = getelementptr i64, ptr %board, i64 8
  %before = atomicrmw sub ptr %undone, i64 1 release
  br label %look
wait:
  %more = add i64 %round, 1
  %enough = icmp ugt i64 %more, %patience
  br i1 %enough, label %end, label %rest
rest:
  %ignored = call i32 @@YIELD@()
  br label %look
end:
  ret void
}

; Whether all parts are done, at the latest after so many rounds.
define i64 @finished(ptr %board, i64 %patience) {
  %undone = getelementptr i64, ptr %board, i64 8
  br label %look
look:
  %round = phi i64 [ 0, %0 ], [ %more, %rest ]
  %left = load atomic i64, ptr %undone acquire, align 8
  %all = icmp eq i64 %left, 0
  %more = add i64 %round, 1
  %enough = icmp ugt i64 %more, %patience
  %stop = or i1 %all, %enough
  br i1 %stop, label %end, label %rest
rest:
  %ignored = call i32 @@YIELD@()
  br label %look
end:
  %result = zext i1 %all to i64
  ret i64 %result
}

; Post the job, help with it, and wait for the others as `finished` does.
define i64 @lead(ptr %board, i64 %parts, i64 %patience) {
  %undone = getelementptr i64, ptr %board, i64 8
  store atomic i64 %parts, ptr %undone monotonic, align 8
  store atomic i64 %parts, ptr %board release, align 8
  call void @serve(ptr %board, i64 0)
  %result = call i64 @finished(ptr %board, i64 %patience)
  ret i64 %result
}
""".replace("@YIELD@", "SwitchToThread" if sys.platform == "win32" else "sched_yield").replace("@JOB@", str(JOB))

_INT, _POINTER = ctypes.c_int64, ctypes.c_void_p
PROTOTYPES = {
    "serve": ctypes.CFUNCTYPE(None, _POINTER, _INT),
    "finished": ctypes.CFUNCTYPE(_INT, _POINTER, _INT),
    "lead": ctypes.CFUNCTYPE(_INT, _POINTER, _INT, _INT),
}


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
        self._jobs = 0  # announced
        self._asked = 0.0  # when
        self._core: int | None = None  # where the caller who woke them runs

    def run(self, kernel: int, buffers: int, extent: int, parts: int, large: bool) -> bool:
        """Call the kernel on at most `parts` parts of the range, and return when all are done.

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
            self._jobs += 1  # before anyone is woken: see `_work`
            if pays:
                self._wake()
            size = -(-extent // parts)
            parts, done = -(-extent // size), 0
            self._job[:] = [kernel, buffers, extent, size, parts]
            try:
                done = self._lead(self._board, parts, PATIENCE)
            finally:
                if not done:
                    self._wait()
        return True

    def _wait(self) -> None:
        """Wait until all parts are done, through interrupts too, as the buffers have to outlive the parts."""
        interrupt: BaseException | None = None
        while True:
            try:
                if self._finished(self._board, PATIENCE):
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
        (library,) = cache.libraries([NATIVE], *PROTOTYPES)
        serve, self._finished, self._lead = (library.function(*each) for each in PROTOTYPES.items())
        self._memory = ctypes.create_string_buffer(64 * 4)
        self._board = -(-ctypes.addressof(self._memory) // 64) * 64
        self._job = (_INT * 5).from_address(self._board + 8 * JOB)
        for number in range(1, self.number):
            # Daemons: a process that ends does not wait for them.
            self._threads.append(
                threading.Thread(target=self._work, args=(serve,), name=f"minitorch-{number}", daemon=True)
            )
            self._threads[-1].start()

    def _work(self, serve: Any) -> None:
        while not self._stopped:
            announced = self._jobs
            serve(self._board, PATIENCE)
            bed = threading.Lock()
            bed.acquire()
            self._asleep.append(bed)
            # Getting here took the GIL. Its holder may have announced a job, and found no thread to wake.
            if self._jobs != announced or self._stopped:
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


def run(kernel: Any, buffers: int, extent: int, *, cost: float, grain: float) -> None:
    """Call `kernel(buffers, begin, end)` for all of ``range(extent)``, on several threads if that pays.

    Several Python threads may call this at once, with the same kernel too: one has the workers, the others do without.

    Args:
        kernel: a function of a `minitorch.compiler.codegen.machine.Library`; its parts must not depend on each other.
        buffers: the address of the addresses of the buffers.
        extent: the length of the parallel range.
        cost: the cost of the whole call, in any unit.
        grain: the least cost of a part that is worth another thread, in the same unit.
    """
    if cost >= 2 * grain and extent > 1 and (threads := (_current or [workers()])[0]).number > 1:
        parts = min(int(cost // grain), PARTS_PER_THREAD * threads.number, extent)
        if threads.run(kernel.address, buffers, extent, parts, cost >= LARGE * grain):
            return
    kernel(buffers, 0, extent)
