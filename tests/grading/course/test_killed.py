"""A run of the grader that is killed at any moment leaves nothing running or lying about, and loses nothing."""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.grading import classes
from tests.grading.classes import RIGHT, hand_in, notebook, sample

STUDENTS = 4
SLOW = f"{RIGHT}\nimport subprocess, time\nsubprocess.Popen(['sleep', '100'])\ntime.sleep(0.3)"


@pytest.fixture
def course() -> Iterator[Path]:
    classes.needs_bubblewrap()
    with tempfile.TemporaryDirectory(prefix="minitorch-killed-") as folder:
        root = classes.course(Path(folder))
        for number in range(STUDENTS):
            hand_in(root, f"s{number}", notebook(sample(SLOW, RIGHT)))
        yield root


def graded(root: Path) -> list[str]:
    """The students whose results are in the journal."""
    journal = root / "grading.jsonl"
    lines = journal.read_text().splitlines() if journal.exists() else []
    return [entry["student"] for entry in map(json.loads, lines) if "result" in entry]


def test_killed_at_any_moment_it_leaves_nothing_and_goes_on(course: Path) -> None:
    moments = random.Random(time.time_ns())
    for _ in range(2):  # `make class` kills more often
        before = graded(course)
        with classes.start(course, "--workers", "2", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                process.wait(moments.uniform(0, 3))
            except subprocess.TimeoutExpired:
                process.kill()
        assert not classes.left_running(course)
        assert not list(classes.temporary(course).iterdir())
        assert graded(course)[: len(before)] == before
    report = classes.grade(course)
    assert {row["points"] for row in report.values()} == {60.0} and len(report) == STUDENTS
    assert sorted(graded(course)) == sorted(report), "each once"


@pytest.mark.parametrize("victim", ["submission.worker", "fork_server", "bwrap"])
def test_a_part_of_it_that_is_killed_is_replaced(course: Path, victim: str) -> None:
    """A worker, a sandbox: its submission is named or graded again, and the others are graded."""
    with classes.start(course, "--workers", "1", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        killed = 0
        end = time.monotonic() + 60
        while killed < 2 and process.poll() is None and time.monotonic() < end:
            time.sleep(0.2)
            for child in psutil.Process(process.pid).children(recursive=True):
                try:
                    if len(graded(course)) > killed and victim in " ".join(child.cmdline()):
                        child.kill()
                        killed += 1
                        break
                except psutil.Error:
                    continue
        said = process.communicate()[0]
    assert killed and process.returncode in (0, 1), said
    report = {row["student"]: row for row in json.loads(said)["submissions"]}
    assert len(report) == STUDENTS
    lost = [row for row in report.values() if row["points"] < 60]
    assert all(classes.kinds(row) for row in lost), "no silent zero"
    assert len(lost) <= killed
    assert {row["points"] for row in classes.grade(course).values()} >= {60.0}
    assert not classes.left_running(course)
