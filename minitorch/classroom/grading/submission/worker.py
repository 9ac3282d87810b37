"""A process that grades submissions one after the other; the class is shared out among several.

It reads jobs from its standard input, one line of JSON each, and writes each result to its standard output: eight
bytes, the length, and so many bytes of JSON. It keeps a fork server, has a clerk for each job, and writes no file. When
its standard input is closed, because whoever started it is done or dead, it ends with everything that it has started.
It never opens the gradebook.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from ..limits import Limits

LENGTH = 8  # bytes


@dataclass(frozen=True)
class Job:
    """One submission: the student and the folder, the exercise and what was handed out, and the conditions.

    ``tests`` has the sources of assert cells with their hidden tests, by `grade_id`; ``own`` has those of the
    exercise's own checks (`own.sources_in`). ``temporary`` is a folder that was made for this job alone, and is removed
    with it.
    """

    student: str
    folder: str
    exercise: str
    release: str
    seeds: tuple[int, ...]
    limits: Limits
    slot: int
    safe: bool
    seconds: float
    tests: dict[str, str] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    temporary: str = ""

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """A job that came as text."""
        data = json.loads(text)
        return cls(**{**data, "limits": Limits(**data["limits"]), "seeds": tuple(data["seeds"])})


class Worker:
    """A worker process, as its parent sees it. A context manager."""

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment | {"OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,  # an interrupt from the keyboard is the parent's to handle
        )

    def stop(self) -> None:
        """End the process and what it has started."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def do(self, job: Job) -> dict[str, Any]:
        """Have a job done; what came of it, or ``{"error": why nothing did}``. A worker that fails is replaced."""
        assert self.process.stdin is not None and self.process.stdout is not None
        late = threading.Timer(job.seconds + 60, self.process.kill)
        late.daemon = True
        late.start()
        try:
            self.process.stdin.write(json.dumps(asdict(job)).encode() + b"\n")
            self.process.stdin.flush()
            size = int.from_bytes(self.process.stdout.read(LENGTH))
            content = self.process.stdout.read(size)
        except OSError:
            size, content = 1, b""
        finally:
            late.cancel()
        if not size or len(content) < size:
            self.stop()
            self._start()
            return {"error": "its worker process ended"}
        result: dict[str, Any] = json.loads(content)
        return result


def main() -> None:
    """Do jobs until there are no more."""
    from ..results import Result
    from . import feedback, run  # noqa: F401  before there are clerks, which are copies of this process
    from .clerk import AbandonedError

    feedback.page("", "", Result())  # which loads its template

    answers = os.dup(1)
    os.dup2(2, 1)  # whatever else is printed is not an answer
    pending = b""
    with contextlib.suppress(AbandonedError), Servers() as servers:
        while True:
            while b"\n" not in pending:
                part = os.read(0, 1 << 16)
                if not part:
                    return
                pending += part
            line, _, pending = pending.partition(b"\n")
            job = Job.from_json(line)
            try:
                content = _done(job, servers)
            finally:  # also if whoever made it was killed
                if job.temporary:
                    shutil.rmtree(job.temporary, ignore_errors=True)
            os.write(answers, len(content).to_bytes(LENGTH))
            view = memoryview(content)
            while view:
                view = view[os.write(answers, view) :]


def _done(job: Job, servers: Servers) -> bytes:
    from ...own import checks_from
    from .clerk import LostError, by_a_clerk
    from .preflight import released

    try:
        release = [replace(part, tests=job.tests.get(part.name or "")) for part in released(Path(job.release))]
        checks = checks_from(job.own, f"solutions/{job.exercise}")
        server = servers.of(job, release, checks)
        return by_a_clerk(lambda: json.dumps(_graded(job, release, server, checks)).encode(), job.seconds, [0])
    except LostError as lost:
        return json.dumps({"error": str(lost)}).encode()
    except Exception as error:
        return json.dumps({"error": f"{type(error).__name__}: {error}"[:500]}).encode()


class Servers(contextlib.ExitStack):
    """The fork server of the exercise that is being graded; one at a time, since each takes memory."""

    def __init__(self) -> None:
        super().__init__()
        self._server: Any = None

    def of(self, job: Job, release: Sequence[Any], checks: Any) -> Any:
        """A server that is ready for a job."""
        from ..sandbox.bubblewrap import Sandbox
        from ..sandbox.server import ForkServer
        from .contents import contents

        sandbox = Sandbox(job.limits, job.slot, job.safe, contents(release, checks))
        if self._server is None or self._server.sandbox != sandbox or not self._server.is_alive:
            self.close()
            self._server = self.enter_context(ForkServer(sandbox))
        self._server.wait()
        return self._server


def _graded(job: Job, release: list[Any], server: Any, checks: Any) -> dict[str, Any]:
    """The result as plain data, with the notebook and the page as texts."""
    from ..sandbox.server import StartError
    from .autograded import with_incidents
    from .feedback import page
    from .run import GradingError, grade

    try:
        result = grade(Path(job.folder), job.exercise, release, job.seeds, server, checks)
        shown = result.notebook and with_incidents(result.notebook, result.incidents)
        notebook = shown and json.dumps(shown, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        return {**result.to_json(), "notebook": notebook, "page": page(job.student, job.exercise, result)}
    except GradingError as error:
        return {"fatal": str(error)}
    except StartError as error:  # which says all there is to say
        return {"error": str(error)}
    except Exception as error:  # whatever it is: it must not be the end of the run, and it must have a name
        import traceback

        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"[:500]}


if __name__ == "__main__":
    main()
