"""A process that grades submissions one after the other; the class is shared out among several.

It takes jobs from a connection and answers each with JSON. It keeps a fork server, has a clerk for each job, and writes
no file. When the connection is closed, because whoever started it is done or dead, it ends with everything that it has
started. It never opens the gradebook.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from ...own_checks import Checks, checks_from
from ..limits import Limits
from ..results import Result
from ..sandbox.bubblewrap import Sandbox
from ..sandbox.image import contents
from ..sandbox.server import ForkServer, StartError
from .alone import processes
from .autograded import text_of
from .clerk import AbandonedError, LostError, by_a_clerk
from .feedback import notebook
from .preflight import Files, Part, read
from .run import GradingError, Setting, grade


@dataclass(frozen=True)
class Job:
    """One submission: its folder, the exercise as it was handed out, and the conditions.

    ``own`` has the sources of the exercise's own checks (`own.sources_in`). ``files`` are what was handed in; they are
    read as late as can be, by `loaded`, and travel with the job.
    """

    folder: Path
    exercise: str
    release: list[Part]
    seeds: tuple[int, ...]
    limits: Limits
    safe: bool
    seconds: float
    own: dict[str, str] = field(default_factory=dict)
    slot: int = 0
    files: Files = field(default_factory=dict)

    def loaded(self) -> Job:
        """The same with its files."""
        return replace(self, files=read(self.folder, self.exercise, self.limits.notebook))


class Worker:
    """A worker process, as its parent sees it. A context manager."""

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._connection, theirs = Pipe()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=environment | {"OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,  # an interrupt from the keyboard is the parent's to handle
            )

    def stop(self) -> None:
        """End the process and what it has started."""
        self._connection.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def do(self, job: Job) -> dict[str, Any]:
        """Have a job done; what came of it, or ``{"error": why nothing did}``. A worker that fails is replaced."""
        late = threading.Timer(job.seconds + 60, self.process.kill)
        late.daemon = True
        late.start()
        try:
            self._connection.send_bytes(pickle.dumps(job))
            result: dict[str, Any] = json.loads(self._connection.recv_bytes())
            return result
        except (EOFError, OSError):
            self.stop()
            self._start()
            return {"error": "its worker process ended"}
        finally:
            late.cancel()


def main() -> None:
    """Do jobs until there are no more."""
    notebook(Result(notebook={"cells": []}))  # which loads its template, before there are clerks
    connection = Connection(int(sys.argv[1]))
    os.dup2(2, 1)  # whatever is printed is for whoever looks at the grader
    with contextlib.suppress(EOFError, OSError, AbandonedError), Servers() as servers:
        while True:
            connection.send_bytes(_done(pickle.loads(connection.recv_bytes()), servers, connection.fileno()))


def _done(job: Job, servers: Servers, leash: int) -> bytes:
    try:
        checks = checks_from(job.own, f"solutions/{job.exercise}")
        start = servers.of(job, checks)
        return by_a_clerk(lambda: json.dumps(_graded(job, start, checks)).encode(), job.seconds, leash)
    except LostError as lost:
        return json.dumps({"error": str(lost)}).encode()
    except Exception as error:
        return json.dumps({"error": f"{type(error).__name__}: {error}"[:500]}).encode()


class Servers(contextlib.ExitStack):
    """The fork server of the exercise that is being graded; one at a time, since each takes memory."""

    def __init__(self) -> None:
        super().__init__()
        self._server: ForkServer | None = None

    def of(self, job: Job, checks: Checks) -> Callable[[], Any]:
        """What starts a process for a job: a copy of the server that is ready for it, or one without a sandbox."""
        inside = contents((part.task for part in job.release), checks)
        if not job.safe:
            self.close()
            return self.enter_context(processes(inside, job.limits))
        from ..sandbox.kernel import Kernel  # which Linux alone can import

        sandbox = Sandbox(job.limits, job.slot, inside)
        if self._server is None or self._server.sandbox != sandbox or not self._server.is_alive:
            self.close()
            self._server = self.enter_context(ForkServer(sandbox))
        self._server.wait()
        return partial(Kernel, self._server)


def _graded(job: Job, start: Callable[[], Any], checks: Checks) -> dict[str, Any]:
    """The result as plain data, with the notebook as a file and as HTML."""
    try:
        result = grade(job.files, job.exercise, Setting(job.release, job.seeds, start, job.limits, checks))
        text = result.notebook and text_of(result.notebook)
        return {**result.to_json(), "notebook": text, "shown": notebook(result)}
    except GradingError as error:
        return {"fatal": str(error)}
    except StartError as error:  # which says all there is to say
        return {"error": str(error)}
    except Exception as error:  # whatever it is: it must not be the end of the run, and it must have a name
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"[:500]}


if __name__ == "__main__":
    main()
