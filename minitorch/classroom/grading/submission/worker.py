"""A process that grades submissions one after the other; the class is shared out among several.

It reads jobs from its standard input, one line of JSON each, writes each result to a file, and then a line with the
file's name. When its standard input ends, because whoever started it is done or dead, it ends at once
with everything that it has started. It never opens the gradebook.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import psutil

from ..limits import Limits


@dataclass(frozen=True)
class Job:
    """One submission: the student's folder, the exercise, the notebook that was handed out, and the conditions."""

    folder: str
    exercise: str
    release: str
    seeds: tuple[int, ...]
    limits: Limits
    slot: int
    safe: bool

    @classmethod
    def from_json(cls, text: str) -> Self:
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
            text=True,
            env=environment,
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

    def do(self, job: Job, seconds: float) -> dict[str, Any]:
        """Have a job done; what came of it, or ``{"error": why nothing did}``. A worker that fails is replaced."""
        assert self.process.stdin is not None and self.process.stdout is not None
        late = threading.Timer(seconds, self.process.kill)
        late.daemon = True
        late.start()
        try:
            self.process.stdin.write(json.dumps(asdict(job)) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:
            line = ""
        finally:
            late.cancel()
        if not line.endswith("\n"):
            self.stop()
            self._start()
            return {"error": f"its worker process ended, or took more than {seconds:.0f} s"}
        result: dict[str, Any] = json.loads(Path(line[:-1]).read_text())
        return result


def main() -> None:
    """Do jobs until there are no more."""
    from ..sandbox.kernel import FOLDERS
    from .run import grade

    folder = Path(tempfile.mkdtemp(prefix="minitorch-grade-"))
    FOLDERS.add(folder)
    jobs: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(jobs,), daemon=True).start()
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # whatever else is printed is not an answer
        while True:
            job = Job.from_json(jobs.get())
            (folder / "result.json").write_text(json.dumps(_do(job, grade)))
            answers.write(f"{folder / 'result.json'}\n")
            answers.flush()


def _do(job: Job, grade: Any) -> dict[str, Any]:
    from ..sandbox.bubblewrap import Sandbox
    from ..sandbox.kernel import KernelError
    from .preflight import released
    from .run import GradingError

    try:
        release = released(Path(job.release))
        sandbox = Sandbox(job.limits, job.slot, job.safe)
        result = grade(Path(job.folder), job.exercise, release, job.seeds, sandbox)
    except GradingError as error:
        return {"fatal": str(error)}
    except Exception as error:  # whatever it is: it must not be the end of the run, and it must have a name
        if not isinstance(error, KernelError):  # which says all there is to say
            traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    return {**result.to_json(), "notebook": result.notebook}


def _read(jobs: queue.Queue[str]) -> None:
    for line in sys.stdin:
        jobs.put(line)
    from ..sandbox.kernel import FOLDERS

    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()
    for folder in list(FOLDERS):
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main()
