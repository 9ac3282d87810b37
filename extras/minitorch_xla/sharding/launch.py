"""`python -m minitorch.sharding.launch`: The same program in several processes, whose devices make one mesh.

    python -m minitorch.sharding.launch --processes 2 --devices 4 train.py --epochs 3

Every process runs the program from its beginning, and `jax.distributed` lets each see the devices of all. So the
program is written as for one process: it makes the same values everywhere, and `shard` keeps the parts of the own
devices. What the processes write is shown line by line, with the number of the process in front.

If one of them ends with an error or is killed, the others are ended too. With ``--restarts`` all begin again: a program
that loads its last checkpoint, if there is one, goes on from there. A process that fails ends at once, after its
traceback and without functions registered by `atexit`: JAX's would wait five minutes for processes that wait for it.

SIGINT (Ctrl-C) or SIGTERM ends the launcher and its processes: they get SIGTERM, and after five seconds, or at a second
signal, SIGKILL.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, NoReturn

from minitorch import backends

PATIENCE = 5.0  # seconds between asking a process to end and killing it, and that what it wrote is waited for
SHUTDOWN = 7 * 24 * 3600  # seconds that a process which is done waits for the others; raising it allows longer programs
# The library of collectives tells of each connection that it makes, in several threads at once.
BEGIN = "[Gloo] Rank "
NOISE = re.compile(
    r"(\[Gloo\] Rank |\d+| is connected to | peer ranks\. | ?Expected number of connected peer ranks is : )*"
)

Process = subprocess.Popen[str]


class _Events:
    """The ends of processes and the signals to the launcher, in the order in which they come.

    A signal's handler only notes it: it interrupts nothing, and least of all the ending of processes.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Process | None, int]] = SimpleQueue()  # its put can be called by such handlers

    @contextmanager
    def signals(self) -> Iterator[None]:
        """A block in which signals are noted; only the main thread gets any."""
        is_main = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
        before = [signal.signal(number, lambda given, _: self._queue.put((None, given))) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def watch(self, process: Process) -> None:
        """Note the end of a process."""
        threading.Thread(target=lambda: self._queue.put((process, process.wait())), daemon=True).start()

    def next(self, until: float | None = None) -> tuple[Process | None, int] | None:
        """A process and its status, or None and a signal; None when the clock has reached a time."""
        try:
            return self._queue.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
        except Empty:
            return None


def launch(program: Sequence[str], processes: int, devices: int | None = None, restarts: int = 0) -> int:
    """Run a program in several processes on this machine, and wait for them.

    Args:
        program: the path of a Python file, and its arguments.
        processes: how many.
        devices: virtual ones in each process; by default what JAX sees there.
        restarts: how many times all are started again after one has failed.

    Returns:
        The exit status: 0, or that of the process which failed first in the last attempt; 128 and the number of the
        signal if it, or the launcher, got one.
    """
    events = _Events()
    with events.signals():
        for left in range(max(0, restarts), -1, -1):
            status, is_asked = _attempt(program, processes, devices, events)
            if status == 0 or is_asked:
                break
            then = f"all begin again, {left} restarts are left" if left else "no restarts are left"
            print(f"launch: a process ended with {status}; {then}", file=sys.stderr, flush=True)
    return status


def has_address() -> bool:
    """Whether the name of this machine has an address: the collectives of JAX on processors ask for it."""
    try:
        socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    except OSError:
        return False
    return True


def _attempt(program: Sequence[str], processes: int, devices: int | None, events: _Events) -> tuple[int, bool]:
    """Run all once; the status, and whether a signal to the launcher is the reason."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{found.getsockname()[1]}"
    started: list[Process] = []
    readers: list[threading.Thread] = []
    try:
        for place in range(processes):
            joins = ["--join", f"{place}@{address}", "--processes", str(processes)]
            counted = ["--devices", str(devices)] if devices else []
            command = [sys.executable, "-u", "-m", "minitorch.sharding.launch", *joins, *counted, *program]
            pipe = subprocess.PIPE
            process = subprocess.Popen(
                command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # the terminal's Ctrl-C is for the launcher
            )
            started.append(process)
            events.watch(process)
            assert process.stdout is not None and process.stderr is not None
            for source, lines, target in (
                (process.stdout, process.stdout, sys.stdout),
                (process.stderr, quiet(process.stderr), sys.stderr),
            ):
                reader = threading.Thread(target=_copy, args=(source, lines, target, f"[{place}] "), daemon=True)
                reader.start()
                readers.append(reader)
        running = list(started)
        while running:
            event = events.next()
            assert event is not None
            ended, status = event
            if ended is None:
                return 128 + status, True
            if ended not in running:  # of an earlier attempt
                continue
            running.remove(ended)
            if status:
                return status if status > 0 else 128 - status, False
        return 0, False
    finally:
        _end(started, events)
        until = time.monotonic() + PATIENCE
        for reader in readers:  # a process that one of ours has started may keep a pipe open
            reader.join(max(0.0, until - time.monotonic()))


def quiet(lines: Iterable[str]) -> Iterator[str]:
    """The lines without what the library of collectives tells; as many are left out as messages have begun.

    Example:
        >>> list(quiet(["3\\n", "[Gloo] Rank 0[Gloo] Rank 1\\n", " is connected to 1\\n", "1\\n"]))
        ['3\\n', '1\\n']
    """
    begun = 0
    for line in lines:
        begun += line.count(BEGIN)
        if begun and NOISE.fullmatch(line.rstrip("\n")):
            begun -= 1
        else:
            yield line


def _copy(source: IO[str], lines: Iterable[str], target: IO[str], prefix: str) -> None:
    with source, suppress(BrokenPipeError):  # nobody reads on: the process notices it as soon as it writes
        for line in lines:
            text = line.rstrip("\n")
            target.write(f"{prefix}{text}\n")
            target.flush()


def _end(processes: list[Process], events: _Events) -> None:
    """Ask the processes to end, and kill those that have not, after some time or at the next signal."""
    for process in processes:
        process.terminate()  # nothing, if it has ended
    until = time.monotonic() + PATIENCE
    while any(process.poll() is None for process in processes):
        event = events.next(until)
        if event is None or event[0] is None:
            for process in processes:
                process.kill()
            break
    for process in processes:
        process.wait()
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()


def _join(place: int, address: str, processes: int, devices: int | None, program: list[str]) -> None:
    """What one of the processes does: it joins the others, then runs the program."""
    threading.Thread(target=_end_with_launcher, daemon=True).start()
    # The program's own standard output is the pipe; libraries that write to descriptor 1 write to standard error.
    sys.stdout = open(os.dup(1), "w", buffering=1, encoding="utf-8")  # noqa: SIM115  to the end
    os.dup2(2, 1)
    sys.stdin = open(os.devnull)  # noqa: SIM115
    try:
        backends.get("xla")
        jax = import_module("jax")
        if devices:
            jax.config.update("jax_platforms", "cpu")
            jax.config.update("jax_num_cpu_devices", devices)
        jax.config.update("jax_enable_preemption_service", False)  # it takes SIGTERM, and goes on
        jax.distributed.initialize(
            address, num_processes=processes, process_id=place, shutdown_timeout_seconds=SHUTDOWN
        )
        jax.devices()  # looked for now: the program's use_virtual_devices finds those of all processes
        sys.argv = program
        sys.path[0] = str(Path(program[0]).resolve().parent)
        try:
            runpy.run_path(program[0], run_name="__main__")
        except SystemExit as asked:
            if asked.code not in (None, 0):
                raise
        jax.distributed.shutdown()
    except BaseException as error:
        _fail(error)


def _fail(error: BaseException) -> NoReturn:
    """End the process as Python does after an exception, but at once."""
    status = 1
    try:
        if not isinstance(error, SystemExit):
            if isinstance(error, KeyboardInterrupt):
                status = 128 + signal.SIGINT
            trace = error.__traceback__
            while trace and trace.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
                trace = trace.tb_next
            sys.excepthook(type(error), error.with_traceback(trace), trace)
        elif isinstance(error.code, int):
            status = error.code & 0xFF
        else:
            print(error.code, file=sys.stderr)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:  # a hook can raise, and a pipe be closed
        os._exit(status)


def _end_with_launcher() -> None:
    with suppress(OSError):
        while os.read(0, 1):  # nothing is written: it returns when the launcher has ended, however that came
            pass
    os._exit(1)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m minitorch.sharding.launch",
        description=(__doc__ or "").partition(": ")[2].strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--processes", type=_whole(1), required=True, help="how many processes run the program")
    parser.add_argument("--devices", type=_whole(1), help="virtual devices in each; by default what JAX sees")
    parser.add_argument("--restarts", type=_whole(0), default=0, help="how often all begin again after one has failed")
    parser.add_argument("--join", help=argparse.SUPPRESS)
    parser.add_argument("program", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")
    options = parser.parse_args(arguments)
    program = [options.program, *options.arguments]
    if not Path(options.program).is_file():
        parser.error(f"there is no file {options.program}")
    if options.join:
        place, _, address = options.join.partition("@")
        _join(int(place), address, options.processes, options.devices, program)
        return 0
    backends.get("xla")  # one sentence if there is no JAX
    if options.processes > 1 and not has_address():
        name = socket.gethostname()
        parser.error(
            f"this machine is called {name}, and that name has no address, by which the processes would find each "
            f"other: add the line `127.0.0.1 {name}` to /etc/hosts"
        )
    return launch(program, options.processes, options.devices, options.restarts)


def _whole(least: int) -> Callable[[str], int]:
    """Whole numbers from this one up, as arguments of a command."""

    def number(text: str) -> int:
        if not re.fullmatch(r"\d+", text, re.ASCII) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is no whole number from {least} up")
        return int(text)

    return number


if __name__ == "__main__":
    status = main()
    os._exit(status)  # without waiting for readers: a process that one of ours has started may keep a pipe open
