"""Parts cover the range exactly once, whoever runs them; nobody waits for a thread that will not come."""

from __future__ import annotations

import contextlib
import ctypes
import dis
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from minitorch.compiler.codegen import machine
from minitorch.compiler.codegen.host import host
from minitorch.compiler.runtime import threads
from minitorch.compiler.runtime.memory_pool import address

# Adds 1 to each element of its part, and does that so many times.
TEXT = """
define void @count(ptr %buffers, i64 %begin, i64 %stop) {
entry:
  %x = load ptr, ptr %buffers
  %second = getelementptr ptr, ptr %buffers, i64 1
  %turns = load i64, ptr %second
  br label %outer
outer:
  %turn = phi i64 [ 0, %entry ], [ %turn_after, %next ]
  %go = icmp slt i64 %begin, %stop
  br i1 %go, label %loop, label %next
loop:
  %i = phi i64 [ %begin, %outer ], [ %after, %loop ]
  %to = getelementptr i32, ptr %x, i64 %i
  %old = load volatile i32, ptr %to
  %new = add i32 %old, 1
  store volatile i32 %new, ptr %to
  %after = add i64 %i, 1
  %more = icmp slt i64 %after, %stop
  br i1 %more, label %loop, label %next
next:
  %turn_after = add i64 %turn, 1
  %again = icmp slt i64 %turn_after, %turns
  br i1 %again, label %outer, label %exit
exit:
  ret void
}
"""


@pytest.fixture(scope="module")
def kernel() -> Any:
    return machine.load(machine.compile_ir(TEXT, host()), "count").function("count")


@pytest.fixture(autouse=True)
def number_of_threads() -> Iterator[None]:
    before = threads.get_num_threads()
    yield
    threads.set_num_threads(before)


def count(kernel: Any, extent: int, turns: int = 1, **options: Any) -> np.ndarray:
    array = np.zeros(extent, np.int32)
    buffers = (ctypes.c_int64 * 2)(address(array), turns)
    threads.run(kernel, ctypes.addressof(buffers), extent, **{"cost": 1000, "grain": 1, **options})
    return array


@pytest.mark.parametrize("number", [1, 2, 3, 8])
def test_every_element_is_done_once(kernel: Any, number: int) -> None:
    threads.set_num_threads(number)
    assert threads.get_num_threads() == number
    for extent in (0, 1, 2, 63, 64, 1000, 100_003):
        for cost in (0, 2, 3, 1000):
            assert (count(kernel, extent, cost=cost) == 1).all()


def test_parts_follow_each_other_and_only_the_last_is_shorter() -> None:
    # A kernel that writes down its part: at the part's beginning, its end.
    text = """
    define void @note(ptr %buffers, i64 %begin, i64 %stop) {
      %x = load ptr, ptr %buffers
      %to = getelementptr i64, ptr %x, i64 %begin
      store i64 %stop, ptr %to
      ret void
    }
    """
    note = machine.load(machine.compile_ir(text, host()), "note").function("note")
    threads.set_num_threads(2)
    for extent, most in ((100, 7), (1000, 3), (17, 2), (64, 8), (99, 64), (5, 4)):
        array = np.zeros(extent + 1, np.int64)
        buffers = (ctypes.c_int64 * 1)(address(array))
        while not threads.workers().run(note.address, ctypes.addressof(buffers), extent, most, True):
            pass
        begins = np.flatnonzero(array)
        lengths = array[begins] - begins
        assert list(begins) == [0, *array[begins[:-1]]]
        assert array[begins[-1]] == extent
        assert len(begins) <= most
        assert (lengths[:-1] == lengths[0]).all()
        assert lengths[-1] <= lengths[0]


# Counts who has begun, and waits for two; at the part's beginning it writes how many have come, at last.
MEET = """
define void @meet(ptr %buffers, i64 %begin, i64 %stop) {
entry:
  %x = load ptr, ptr %buffers
  %met = getelementptr i64, ptr %x, i64 %begin
  %come = getelementptr i64, ptr %x, i64 2
  %before = atomicrmw add ptr %come, i64 1 seq_cst
  br label %look
look:
  %turn = phi i64 [ 0, %entry ], [ %next, %look ]
  %now = load atomic i64, ptr %come seq_cst, align 8
  %next = add i64 %turn, 1
  %alone = icmp slt i64 %now, 2
  %patient = icmp slt i64 %turn, 1000000000
  %again = and i1 %alone, %patient
  br i1 %again, label %look, label %end
end:
  store i64 %now, ptr %met
  ret void
}
"""


def test_a_worker_that_waited_for_the_interpreter_takes_part() -> None:
    meet = machine.load(machine.compile_ir(MEET, host()), "meet").function("meet")
    threads.set_num_threads(2)
    array = np.zeros(3, np.int64)
    buffers = (ctypes.c_int64 * 1)(address(array))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(10)  # nobody takes the interpreter's lock from a thread that computes
    try:
        for pause in (0, 1e-5, 1e-4, 1e-3) * 5:
            array[:] = 0
            assert threads.workers().run(meet.address, ctypes.addressof(buffers), 2, 2, True)
            assert (array == 2).all(), f"one thread did both parts, {pause} seconds after the job before"
            until = time.perf_counter() + pause  # until then it looked out for a job, and then wanted to sleep
            while time.perf_counter() < until:
                pass
    finally:
        sys.setswitchinterval(interval)


def test_a_worker_does_not_wait_for_ever_for_a_job_that_was_interrupted() -> None:
    """The job is announced when the worker has given up looking out, and never posted: it looks once more."""
    workers, looked = threads.Workers(2), []

    def serve(board: Any, patience: int) -> None:
        looked.append(board)
        workers._jobs = 1
        workers._stopped = len(looked) == 3  # when it is woken

    workers._board = 0
    worker = threading.Thread(target=workers._work, args=(serve,), daemon=True)
    worker.start()
    worker.join(timeout=0.2)
    assert len(looked) == 2
    workers._wake()
    worker.join(timeout=20)
    assert len(looked) == 3
    assert not worker.is_alive()


def test_small_work_stays_here(kernel: Any) -> None:
    threads.set_num_threads(4)
    count(kernel, 1000, cost=1.9, grain=1)
    assert not threads.workers()._threads
    count(kernel, 1000, cost=2, grain=1)
    assert len(threads.workers()._threads) == 3


def test_many_calls_in_a_row(kernel: Any) -> None:
    threads.set_num_threads(3)
    array = np.zeros(1000, np.int32)
    buffers = (ctypes.c_int64 * 2)(address(array), 1)
    for turn in range(5000):
        threads.run(kernel, ctypes.addressof(buffers), 1000, cost=8, grain=1)
        if turn % 1000 == 999:
            assert (array == turn + 1).all()
            time.sleep(0.002)  # they fall asleep


def test_several_threads_call_at_once(kernel: Any) -> None:
    threads.set_num_threads(3)

    def work(extent: int) -> bool:
        return all((count(kernel, extent) == 1).all() for _ in range(200))

    with ThreadPoolExecutor(4) as executor:
        assert all(executor.map(work, [100, 1000, 5000, 333]))


def test_the_number_changes_while_others_work(kernel: Any) -> None:
    stop = threading.Event()

    def work() -> bool:
        good = True
        while not stop.is_set():
            good = good and bool((count(kernel, 1000) == 1).all())
        return good

    with ThreadPoolExecutor(2) as executor:
        results = [executor.submit(work) for _ in range(2)]
        for number in (1, 4, 2, 3, 1, 2) * 3:
            threads.set_num_threads(number)
            time.sleep(0.003)
        stop.set()
        assert all(result.result() for result in results)
    running = [thread for thread in threading.enumerate() if thread.name.startswith("minitorch-")]
    assert len(running) <= 1, "those of former pools have ended"


@pytest.mark.parametrize(
    ("number", "error"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError), ("2", TypeError)]
)
def test_numbers_of_threads_that_make_no_sense(number: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="set_num_threads takes"):
        threads.set_num_threads(number)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_an_interrupt_waits_for_the_parts(kernel: Any) -> None:
    threads.set_num_threads(2)

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    array = np.zeros(1 << 16, np.int32)
    buffers = (ctypes.c_int64 * 2)(address(array), 1000)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(KeyboardInterrupt):
            threads.run(kernel, ctypes.addressof(buffers), len(array), cost=100, grain=1)
            time.sleep(1)
        at_once = array.copy()
        time.sleep(0.1)
        assert (array == at_once).all(), "nobody writes to it any more"
        assert (array == array[0]).all(), "all parts are done, unless the interrupt came before them"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (count(kernel, 1000) == 1).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore")  # whoever else has threads in this process (JAX) warns of forks
def test_a_forked_process_starts_its_own_threads(kernel: Any) -> None:
    threads.set_num_threads(2)
    count(kernel, 1000)
    with threads.workers()._leading:  # as if another thread were at work
        child = os.fork()
        if child == 0:
            good = (count(kernel, 1000) == 1).all() and len(threads.workers()._threads) == 1
            os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (count(kernel, 1000) == 1).all()


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(0)", "import os; os.kill(os.getpid(), 2)"])
def test_a_process_ends_although_there_are_threads(end: str) -> None:
    program = f"""
        import ctypes, threading
        from minitorch.compiler.codegen import machine
        from minitorch.compiler.codegen.host import host
        from minitorch.compiler.runtime import threads
        text = "define void @nothing(ptr %b, i64 %begin, i64 %stop) {{ ret void }}"
        kernel = machine.load(machine.compile_ir(text, host()), "nothing").function("nothing")
        threads.set_num_threads(3)
        run = lambda: [threads.run(kernel, 0, 100, cost=100, grain=1) for _ in range(100)]
        run()
        threading.Thread(target=run).start()
        {end}
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0 or "KeyboardInterrupt" in done.stderr, done.stderr


def test_the_environment_chooses_the_first_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINITORCH_NUM_THREADS", "7")
    assert threads._default() == 7
    for nonsense in ("", "0", "many"):
        monkeypatch.setenv("MINITORCH_NUM_THREADS", nonsense)
        assert threads._default() >= 1


def test_an_interrupt_after_any_call_leaves_the_workers_to_the_next_caller(kernel: Any) -> None:
    """Python looks for interrupts where a call returns: there they come, one after another."""
    threads.set_num_threads(2)
    count(kernel, 100)
    code = threads.Workers.run.__code__
    pairs = itertools.pairwise(dis.get_instructions(code))
    places = [after.offset for call, after in pairs if call.opname.startswith("CALL")]
    assert len(places) > 5

    def interrupted_at(place: int) -> None:
        def trace(frame: Any, event: str, _: Any) -> Any:
            if frame.f_code is not code:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode" and frame.f_lasti == place:
                raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                count(kernel, 100)
        finally:
            sys.settrace(before)

    for place in places:
        interrupted_at(place)
        is_led = threads.workers()._leading.locked()
        if is_led:
            threads.workers()._leading.release()
        assert not is_led, place
        assert (count(kernel, 100) == 1).all()
