"""The runner: a worker process per contender, all asked for case after case in turns, in several rounds.

Every round starts new processes. In the first the caches on disk are empty, so that first calls are cold; in the later
ones they are warm. Results are compared with a NumPy reference in float64 in the first round, before anything is timed.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .cases import LARGE, Case, flat, in_float64
from .libraries import NumPy
from .worker import COPY, Answer

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 300  # seconds after which a worker is stopped
# Seconds between turns: threads of OpenBLAS and OpenMP look out for more work for 10 to 30 ms, and keep a core busy.
QUIET = 0.05


@dataclass
class Entry:
    """What one contender did in one case: a time per round, and the first calls.

    Attributes:
        seconds: the typical time of a call, by round.
        first: the first call of a process, with an empty cache on disk.
        warm: the same with what the rounds before left on disk.
        error: the distance to the reference.
        failed: why it was not timed.
    """

    seconds: dict[int, float] = field(default_factory=dict)
    first: float | None = None
    warm: list[float] = field(default_factory=list)
    error: float | None = None
    failed: str = ""


@dataclass
class Results:
    """Everything measured: entries by case and contender, and the bytes of each case."""

    contenders: list[str]
    cases: list[Case]
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    starts: dict[str, list[float]] = field(default_factory=dict)

    def entry(self, case: str, contender: str) -> Entry:
        return self.entries.setdefault((case, contender), Entry())


class Worker:
    """A process for one contender, started when it is first needed and again when it has died."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.log = folder / f"{name}.log"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> Answer:
        """Make the process; the answer is what it says about itself."""
        environment = {name: text for name, text in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
        environment |= {
            "JAX_ENABLE_COMPILATION_CACHE": "false",
            "JAX_PLATFORMS": "cpu",
            "MINITORCH_CACHE_DIR": str(self.folder / f"{self.name}.cache"),
            "TORCHINDUCTOR_CACHE_DIR": str(self.folder / f"{self.name}.cache"),
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.worker", self.name],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                cwd=ROOT, env=environment, text=True, encoding="utf-8",
            )  # fmt: skip
        return self._answer()

    def ask(self, request: Answer) -> Answer:
        """The answer to a request; if the process dies over it, why."""
        if self.process is None:
            about = self.start()
            if "failed" in about:
                return about
        assert self.process is not None and self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> Answer:
        process = self.process
        assert process is not None and process.stdout is not None
        timer = threading.Timer(LIMIT, process.kill)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        if line:
            answer: Answer = json.loads(line)
            return answer
        self.stop()
        said = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return {"failed": f"the process ended with {process.returncode}: {said[-1] if said else 'it said nothing'}"}

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            assert self.process.stdin is not None and self.process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
            self.process = None


@contextlib.contextmanager
def workers(names: Sequence[str], folder: Path) -> Iterator[list[Worker]]:
    """Workers that are stopped at the end, whatever happens."""
    made = [Worker(name, folder) for name in names]
    try:
        yield made
    finally:
        for worker in made:
            worker.stop()


def reference(case: Case, inputs: list[Any]) -> list[Any]:
    """The results in float64."""
    with np.errstate(all="ignore"):
        return [np.asarray(each) for each in flat(case.prepare(NumPy(), in_float64(inputs))())]


def run(
    cases: Sequence[Case],
    contenders: Sequence[str],
    rounds: int,
    seconds: float,
    advance: Callable[[str], None] = lambda text: None,
) -> Results:
    """Measure all cases with all contenders.

    Args:
        cases: rows of the table.
        contenders: names of installed ones.
        rounds: how often everything is measured.
        seconds: how long a measurement takes at least.
        advance: called before each measurement, with what is measured.
    """
    results = Results(list(contenders), list(cases))
    with tempfile.TemporaryDirectory(prefix="minitorch-benchmarks-") as name:
        for number in range(rounds):
            _round(results, number, seconds, Path(name), advance)
    return results


def _round(results: Results, number: int, seconds: float, folder: Path, advance: Callable[[str], None]) -> None:
    with workers([*results.contenders, COPY], folder) as asked:
        for worker in asked:
            advance(f"start {worker.name}")
            about = worker.start()
            results.versions[worker.name] = about.get("version", "")
            results.starts.setdefault(worker.name, []).append(about.get("start", 0.0))
        for position, case in enumerate(results.cases):
            inputs = case.make_inputs()
            paths = {"inputs": folder / "inputs", "reference": folder / "reference"}
            paths["inputs"].write_bytes(pickle.dumps(inputs, 5))
            if number == 0:
                expected = reference(case, inputs)
                results.bytes[case.name] = case.bytes(inputs, expected)
                paths["reference"].write_bytes(pickle.dumps(expected, 5))
                del expected
            del inputs
            turn = (number + position) % len(asked)  # nobody is always first, or always after the same one
            for worker in (*asked[turn:], *asked[:turn]):
                advance(f"{case.name}: {worker.name}")
                if worker.name == COPY and results.bytes[case.name] < LARGE:
                    continue
                entry = results.entry(case.name, worker.name)
                if entry.failed:
                    continue
                time.sleep(QUIET)
                answer = worker.ask(
                    {
                        "case": case.name,
                        "inputs": str(paths["inputs"]),
                        "reference": str(paths["reference"]) if number == 0 else None,
                        "seconds": seconds,
                        "bytes": results.bytes[case.name],
                    }
                )
                _note(entry, answer, number)


def _note(entry: Entry, answer: Answer, number: int) -> None:
    """Add an answer to what is known."""
    if "failed" in answer:
        entry.failed = answer["failed"]
    elif "seconds" in answer:
        entry.seconds[number] = answer["seconds"]
        entry.error = answer.get("error", entry.error)
        if "first" in answer and number == 0:
            entry.first = answer["first"]
        elif "first" in answer:
            entry.warm.append(answer["first"])
