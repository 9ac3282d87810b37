"""A child process that answers questions one at a time, and is started again after it has died or was stopped.

It is spawned, not forked: nothing of the parent's threads or of its copy of LLVM is in it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

Answer = Any
Question = Any


class DiedError(Exception):
    """The child ended over a question; the text says how."""


class Child:
    """A process that calls a function with whatever it is asked.

    Args:
        target: ``target(question) -> answer``, importable by name.
        environment: variables that it has beside its parent's.
        memory: bytes that it may have; where the system can say so.
    """

    def __init__(
        self, target: Callable[[Question], Answer], environment: Mapping[str, str] | None = None, memory: int = 12 << 30
    ) -> None:
        self.target, self.environment, self.memory = target, dict(environment or {}), memory
        self.starts = 0
        self._process: Any = None
        self._connection: Any = None
        descriptor, name = tempfile.mkstemp(prefix="minitorch-fuzz-", suffix=".log")
        os.close(descriptor)
        self.log = Path(name)

    def ask(self, question: Question, seconds: float) -> Answer:
        """The answer.

        Raises:
            DiedError: if there is none.
        """
        if self._process is None:
            self._start()
        try:
            self._connection.send(question)
            if not self._connection.poll(seconds):
                self.stop()
                raise DiedError(f"no answer within {seconds:g} seconds")
            return self._connection.recv()
        except (EOFError, OSError):
            raise DiedError(self._epitaph()) from None

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._connection.close()
            self._process.join(0.2)
            self._process.kill()
            self._process.join()
            self._process = None

    def close(self) -> None:
        """End the process, and remove its log."""
        self.stop()
        self.log.unlink(missing_ok=True)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        arguments = (theirs, self.target, str(self.log), self.memory, self.environment)
        self._process = context.Process(target=answer, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self.starts += 1

    def _epitaph(self) -> str:
        """How the process ended, and what it said last."""
        self._process.join(5)
        code = self._process.exitcode
        self.stop()
        said = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit status {code}"
        return f"{how}: {said[-1][:300] if said else 'it said nothing'}"


def answer(
    connection: Any, target: Callable[[Question], Answer], log: str, memory: int, environment: Mapping[str, str]
) -> None:
    """Answer until the connection is closed; this runs in the child."""
    os.environ.update(environment)
    descriptor = os.open(log, os.O_WRONLY | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send(target(connection.recv()))


@contextlib.contextmanager
def closing(children: list[Child]) -> Iterator[list[Child]]:
    """Children that are ended with the block."""
    try:
        yield children
    finally:
        for each in children:
            each.close()
