"""`python -m minitorch.sharding.launch`: The same program in several processes, whose devices make one mesh.

    python -m minitorch.sharding.launch --processes 2 --devices 4 train.py --epochs 3

Every process runs the program from its beginning, and `jax.distributed` lets each see the devices of all. So the
program is written as for one process: it makes the same values everywhere, and `shard` keeps the parts of the own
devices. What the processes write is shown line by line, with the number of the process in front.

If one of them ends with an error or is killed, the others are ended too. With ``--restarts`` all begin again: a program
that loads its last checkpoint, if there is one, goes on from there.
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
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO

from .. import backends

PATIENCE = 5.0  # seconds between asking a process to end and ending it
POLL = 0.05  # seconds between two looks at the processes
# The library of collectives tells of each connection that it makes, in several threads at once.
NOISE = re.compile(
    r"(\[Gloo\] Rank |\d+| is connected to | peer ranks\. | ?Expected number of connected peer ranks is : )*"
)

Process = subprocess.Popen[str]


def launch(program: Sequence[str], processes: int, devices: int | None = None, restarts: int = 0) -> int:
    """Run a program in several processes on this machine, and wait for them.

    Args:
        program: the path of a Python file, and its arguments.
        processes: how many.
        devices: virtual ones in each process; by default what JAX sees there.
        restarts: how many times all are started again after one has failed.

    Returns:
        The exit status: 0, or that of the process which failed first in the last attempt; 128 and the number of the
        signal if it was killed.
    """
    for attempt in range(restarts + 1):
        status = _attempt(program, processes, devices)
        if status == 0:
            return 0
        left = restarts - attempt
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


def _attempt(program: Sequence[str], processes: int, devices: int | None) -> int:
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
                command, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace"
            )
            started.append(process)
            for source, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
                reader = threading.Thread(target=_copy, args=(source, target, f"[{place}] "))
                reader.start()
                readers.append(reader)
        while True:
            states = [process.poll() for process in started]
            failed = [state for state in states if state]
            if failed:
                return failed[0] if failed[0] > 0 else 128 - failed[0]
            if None not in states:
                return 0
            time.sleep(POLL)
    finally:
        _end(started)
        for reader in readers:
            reader.join()


def _copy(source: IO[str] | None, target: IO[str], prefix: str) -> None:
    assert source is not None
    with source:
        for line in source:
            text = line.rstrip("\n")
            if not NOISE.fullmatch(text):
                target.write(f"{prefix}{text}\n")
                target.flush()


def _end(processes: list[Process]) -> None:
    for process in processes:
        if process.poll() is None:
            process.terminate()
    until = time.monotonic() + PATIENCE
    for process in processes:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
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
    backends.get("xla")
    jax = import_module("jax")
    if devices:
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", devices)
    jax.distributed.initialize(address, num_processes=processes, process_id=place)
    jax.devices()  # looked for now: the program's use_virtual_devices finds those of all processes
    sys.argv = program
    sys.path[0] = str(Path(program[0]).resolve().parent)
    runpy.run_path(program[0], run_name="__main__")
    jax.distributed.shutdown()


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
    parser.add_argument("--processes", type=_positive, required=True, help="how many processes run the program")
    parser.add_argument("--devices", type=_positive, help="virtual devices in each; by default what JAX sees")
    parser.add_argument("--restarts", type=int, default=0, help="how often all begin again after one has failed")
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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return launch(program, options.processes, options.devices, options.restarts)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _positive(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("one or more")
    return count


if __name__ == "__main__":
    sys.exit(main())
