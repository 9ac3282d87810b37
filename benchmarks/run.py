"""The runner: a worker process per contender, all asked for case after case in turns, in several rounds.

Every round starts new processes. In the first the caches on disk are empty, so that first calls are cold; in the later
ones they are warm. Results are compared with a NumPy reference in float64 in the first round, before anything is timed.

    one turn:      a prepares and is measured, b prepares and is measured, ...         for each case
    three turns:   a prepares, b prepares, ...;  a b c ... are measured,  b c ... a,  c ... a b

With several turns, all hold a case at the same time, and what slows the machine down for seconds, such as others'
traffic to memory, slows all of them down.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import processor
from .cases import LARGE, Case, flat, in_float64
from .libraries import NumPy
from .targets import NATIVE, Probe, environment, variables
from .worker import COPY, EVERYBODY, Answer

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 300  # seconds after which a worker is stopped
# Seconds between turns: threads of OpenBLAS and OpenMP look out for more work for 10 to 30 ms, and keep a core busy.
QUIET = 0.05
NOTHING: Mapping[str, str] = {}


@dataclass
class Entry:
    """What one contender did in one case: a time per turn, and the first calls.

    Attributes:
        seconds: the typical time of a call, by turn; those of a round follow those of the round before.
        first: the first call of a process, with an empty cache on disk.
        warm: the same with what the rounds before left on disk.
        error: the distance to the reference.
        failed: why it was not timed.
        form: what was measured, of a library with several ways to the same, the last time.
        skipped: it does not take part in this case.
    """

    seconds: dict[int, float] = field(default_factory=dict)
    first: float | None = None
    warm: list[float] = field(default_factory=list)
    error: float | None = None
    failed: str = ""
    form: str = ""
    skipped: bool = False


@dataclass
class Results:
    """Everything measured for a target: entries by case and contender; the bytes that each case reads and writes."""

    contenders: list[str]
    cases: list[Case]
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    traffic: dict[str, tuple[int, int]] = field(default_factory=dict)
    target: str = NATIVE
    cores: int | None = None
    probes: list[Probe] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    starts: dict[str, list[float]] = field(default_factory=dict)

    def entry(self, case: str, contender: str) -> Entry:
        return self.entries.setdefault((case, contender), Entry())


class Worker:
    """A process for one contender, started when it is first needed and again when it has died.

    Args:
        name: of the contender.
        folder: where it may write.
        environment: what is different for it.
        root: the folder in which it finds `benchmarks` and `minitorch`.
        cores: how many it may use; None for all. All libraries make as many threads as they may use cores.
        target: whose features it is shown, where that is possible.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        environment: Mapping[str, str] = NOTHING,
        root: Path = ROOT,
        cores: int | None = None,
        target: str = NATIVE,
    ) -> None:
        self.name, self.folder, self.root = name, folder, root
        self.command = processor.command(target, "benchmarks.worker", name, *([] if cores is None else [str(cores)]))
        self.environment = dict(environment)
        self.cache, self.log = (folder / f"{name.replace(' ', '-')}.{end}" for end in ("cache", "log"))  # for compilers
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> Answer:
        """Make the process; the answer is what it says about itself."""
        environment = {name: text for name, text in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
        environment |= {
            "JAX_ENABLE_COMPILATION_CACHE": "false",
            "JAX_PLATFORMS": "cpu",
            "MINITORCH_CACHE_DIR": str(self.cache),
            "TORCHINDUCTOR_CACHE_DIR": str(self.cache),
            **self.environment,
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=self.root, env=environment,
                text=True, encoding="utf-8",
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
def running(made: Sequence[Worker]) -> Iterator[Sequence[Worker]]:
    """Workers that are stopped at the end, whatever happens."""
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
    advance: Callable[[str, str], None] = lambda case, what: None,
    target: str = NATIVE,
    cores: int | None = None,
    turns: int = 1,
    probed: Sequence[Probe] | None = None,
) -> Results:
    """Measure all cases with all contenders.

    Args:
        cases: rows of the table.
        contenders: names of installed ones.
        rounds: how often processes start, prepare, and are measured.
        seconds: how long a measurement takes at least.
        advance: called before each measurement, with the case and who is measured.
        target: to which all are restricted.
        cores: how many each process may use; None for all.
        turns: how often everything is measured in a round.
        probed: how contenders are restricted, if that is known.
    """
    results = Results(list(contenders), list(cases), target=target, cores=cores)
    with tempfile.TemporaryDirectory(prefix="minitorch-benchmarks-") as name:
        if target != NATIVE:
            advance(f"restricted to {target}", "")
            results.probes = _probes(results, Path(name)) if probed is None else list(probed)
        for number in range(rounds):
            _round(results, number, turns, seconds, Path(name), advance)
    return results


def _workers(results: Results, folder: Path) -> list[Worker]:
    packages = dict.fromkeys(EVERYBODY[name].package for name in results.contenders)
    told = environment(results.target, ["minitorch", "numpy", *packages])
    everybody = (*results.contenders, COPY)
    return [Worker(name, folder, told, cores=results.cores, target=results.target) for name in everybody]


def _probes(results: Results, folder: Path) -> list[Probe]:
    """Whether each of the contenders is restricted to the target."""
    found = {}
    with running(_workers(results, folder)) as asked:
        for worker in asked:
            found[worker.name] = worker.ask({"kind": "probe"})
            worker.stop()  # one at a time: idle threads of others look out for work
    return [
        Probe(
            name,
            results.target,
            variables(results.target, EVERYBODY[name].package),
            str(found[name].get("says", found[name].get("failed", ""))),
            tuple(sorted(processor.hidden(results.target).intersection(found[name].get("shown", ())))),
            found[name].get("rates", {}),
            found[COPY]["rates"],
        )
        for name in results.contenders
    ]


def _round(
    results: Results, number: int, turns: int, seconds: float, folder: Path, advance: Callable[[str, str], None]
) -> None:
    with running(_workers(results, folder)) as asked:
        for worker in asked:
            advance("start", worker.name)
            about = worker.start()
            results.versions[worker.name] = about.get("version", "")
            results.starts.setdefault(worker.name, []).append(about.get("start", 0.0))
        for position, case in enumerate(results.cases):
            inputs = case.make_inputs()
            paths = {"inputs": folder / "inputs", "reference": folder / "reference"}
            paths["inputs"].write_bytes(pickle.dumps(inputs, 5))
            if number == 0:
                expected = reference(case, inputs)
                results.traffic[case.name] = case.traffic(inputs, expected)
                paths["reference"].write_bytes(pickle.dumps(expected, 5))
                del expected
            del inputs
            request = {
                "case": case.name,
                "inputs": str(paths["inputs"]),
                "reference": str(paths["reference"]) if number == 0 else None,
                "seconds": seconds if turns == 1 else 0,
                "traffic": results.traffic[case.name],
            }
            copied = case.streaming and sum(results.traffic[case.name]) >= LARGE
            taking_part = [worker for worker in asked if worker.name != COPY or copied]
            first = (number + position) % len(taking_part)  # nobody is always first, or always after the same one
            for worker in _from(taking_part, first):
                advance(case.name, worker.name)
                _ask(results.entry(case.name, worker.name), worker, request, number)
            again = {"kind": "again", "seconds": seconds}
            for turn in range(turns if turns > 1 else 0):
                for worker in _from(taking_part, first + turn):
                    _ask(results.entry(case.name, worker.name), worker, again, number * turns + turn)


def _from(workers: Sequence[Worker], first: int) -> list[Worker]:
    """All of them, in turn from one of them."""
    first %= len(workers)
    return [*workers[first:], *workers[:first]]


def _ask(entry: Entry, worker: Worker, request: Answer, number: int) -> None:
    """One request about a case, and its answer into the entry; none of who has failed or does not take part."""
    if entry.failed or entry.skipped:
        return
    time.sleep(QUIET)
    answer = worker.ask(request)
    if "failed" in answer:
        entry.failed = answer["failed"]
        return
    entry.skipped = "skipped" in answer
    if "seconds" in answer:
        entry.seconds[number] = answer["seconds"]
    entry.form = answer.get("form", entry.form)
    entry.error = answer.get("error", entry.error)
    if "first" in answer and number == 0:
        entry.first = answer["first"]
    elif "first" in answer:
        entry.warm.append(answer["first"])
