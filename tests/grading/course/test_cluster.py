"""Grading on a Dask cluster: whichever part of it ends in the middle, nothing is lost and nothing doubled."""

from __future__ import annotations

import contextlib
import errno
import json
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from minitorch.errors import CommandError
from minitorch_grading.grading.cluster import client, there
from minitorch_grading.grading.limits import Limits
from minitorch_grading.grading.submission.worker import Job
from tests.grading import classes
from tests.grading.classes import EXERCISE, RIGHT, hand_in, notebook, sample
from tests.support.helpers import require

SLOW = f"{RIGHT}\nimport time\ntime.sleep(0.5)"
STUDENTS = 9


def eventually(condition: Callable[[], Any], seconds: float = 200) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)
    return found


@dataclass
class Cluster:
    """A scheduler and its workers, as processes of this machine."""

    root: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.root / "cluster.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *command],
                env=classes.environment(self.root),
                cwd=self.root,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    def scheduler(self) -> str:
        """Start one; its address."""
        file = self.root / "scheduler.json"
        file.unlink(missing_ok=True)
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))

        def address() -> Any:
            with contextlib.suppress(OSError, ValueError):
                return json.loads(file.read_text())["address"]

        found: str = eventually(address)
        return found

    def workers(self, address: str, count: int) -> list[subprocess.Popen[bytes]]:
        """Start some, and wait until the scheduler knows them."""
        started = [
            self.start("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard") for _ in range(count)
        ]
        eventually(lambda: (self.root / "cluster.log").read_text().count("Register worker") >= count)
        return started

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    classes.needs_bubblewrap()
    require("distributed", "" if find_spec("distributed") else "not installed")
    with tempfile.TemporaryDirectory(prefix="minitorch-cluster-") as folder:
        found = Cluster(classes.course(Path(folder)))
        try:
            yield found
        finally:
            found.end()
            assert not classes.left_running(found.root)


def graded(root: Path) -> list[str]:
    """The students whose results are in the journal."""
    journal = root / "grading.jsonl"
    lines = journal.read_text().splitlines() if journal.exists() else []
    return [entry["student"] for entry in map(json.loads, lines) if "result" in entry]


def test_a_worker_and_a_client_that_are_killed_lose_and_double_nothing(cluster: Cluster) -> None:
    root = cluster.root
    for number in range(STUDENTS):
        hand_in(
            root, f"s{number}", notebook(sample(SLOW, RIGHT if number % 3 else "def second(gradient, shape): pass"))
        )
    hand_in(root, "another-name", notebook(sample(RIGHT, RIGHT)), "mine.ipynb")
    (root / "submitted" / "a-folder" / EXERCISE / f"{EXERCISE}.ipynb").mkdir(parents=True)
    address = cluster.scheduler()
    workers = cluster.workers(address, 3)
    with classes.start(root, "--scheduler", address, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        eventually(lambda: len(graded(root)) >= 2)
        process.kill()
    before = graded(root)
    with classes.start(root, "--scheduler", address, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        eventually(lambda: len(graded(root)) > len(before))
        workers[0].send_signal(signal.SIGKILL)
        said, complaints = process.communicate(timeout=200)
    assert process.returncode == 0, complaints
    assert [line for line in complaints.splitlines() if "distributed" in line] == []
    report = {row["student"]: row for row in json.loads(said)["submissions"]}
    assert sorted(graded(root)) == sorted(report), "each once"
    assert {name: row["points"] for name, row in report.items()} == {
        **{f"s{number}": 60.0 if number % 3 else 30.0 for number in range(STUDENTS)},
        "another-name": 60.0,
        "a-folder": 0.0,
    }
    assert {name: classes.kinds(row) for name, row in report.items() if row["incidents"]} == {
        "another-name": ["renamed"],
        "a-folder": ["not-a-file"],
    }


def test_a_scheduler_that_ends_is_said_and_the_same_command_goes_on(cluster: Cluster) -> None:
    root = cluster.root
    for number in range(4):
        hand_in(root, f"s{number}", notebook(sample(SLOW, RIGHT)))
    address = cluster.scheduler()
    cluster.workers(address, 1)
    with classes.start(root, "--scheduler", address, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        eventually(lambda: graded(root))
        cluster.end()
        _, complaints = process.communicate(timeout=200)
    assert process.returncode == 2
    assert f"the scheduler at {address} ended or was restarted; what is done is kept" in complaints.splitlines()[-1]
    before = graded(root)
    with classes.start(root, "--scheduler", address, stderr=subprocess.PIPE) as process:
        _, complaints = process.communicate(timeout=200)
    assert process.returncode == 2 and f"no Dask scheduler answers at {address}" in complaints
    report = classes.grade(root)
    assert {row["points"] for row in report.values()} == {60.0}
    assert graded(root)[: len(before)] == before and sorted(graded(root)) == sorted(report)


def test_a_job_that_travels_has_all_that_is_needed(tmp_path: Path) -> None:
    path = hand_in(classes.course(tmp_path), "ana", notebook(sample()))
    (path.parent / "data.csv").write_text("nothing else is sent")
    job = Job(path.parent, EXERCISE, [], (1,), Limits(), True, 1.0).loaded()
    assert job.files == {f"{EXERCISE}.ipynb": path.read_bytes()}
    assert pickle.loads(pickle.dumps(job)) == job


class Machines:
    """A client of a cluster whose workers say this of themselves."""

    def __init__(self, threads: dict[str, int], *said: Any) -> None:
        self.nthreads = lambda: threads
        self.run = lambda *_, **__: dict(zip(threads, said, strict=True))


def test_a_fault_of_a_worker_is_not_taken_for_one_of_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_process() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(address="tcp://b:1"))
    monkeypatch.setattr(there, "trouble", lambda *_: "")
    monkeypatch.setattr(there, "Worker", no_process)
    job = Job(Path(), EXERCISE, [], (1,), Limits(), True, seconds=1)
    said = there.do("", job)
    assert said == {"fatal": "the worker tcp://b:1 cannot grade: [Errno 24] Too many open files"}


OTHER = there.trouble("0123", True)


@pytest.mark.parametrize(
    ("machines", "sentence"),
    [
        (Machines({}), "the cluster has no worker: start one with `dask worker tcp://x:1`"),
        (Machines({"a": 1, "b": 1}, "", OTHER), "the worker b cannot grade: it has another minitorch"),
        (
            Machines({"a": 1}, ModuleNotFoundError("No module named 'minitorch'")),
            "the worker a cannot grade: it cannot",
        ),
        (Machines({"a": 1}, "no bubblewrap"), "the worker a cannot grade: no bubblewrap"),
    ],
)
def test_a_cluster_that_cannot_grade_is_refused(machines: Machines, sentence: str) -> None:
    with pytest.raises(CommandError) as refused:
        client._check(machines, "tcp://x:1", True)
    assert sentence in str(refused.value)
