"""Classes for the tests of grading: an exercise, its students, and what each of them hands in."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.support.helpers import require

Cell = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
EXERCISE = "01-sample"
PLANTED = {"PLANTED": "a planted secret"}  # an environment variable of whoever grades

BLANK = """
def {name}(gradient, shape):
    raise NotImplementedError
"""

RIGHT = """
def {name}(gradient, shape):
    front = gradient.ndim - len(shape)
    dims = [*range(front)] + [front + i for i, n in enumerate(shape) if n == 1 and gradient.shape[front + i] > 1]
    return (gradient.sum(dim=dims) if dims else gradient).reshape(shape)
"""


def needs_bubblewrap() -> None:
    """Skip where there is no sandbox; fail where MINITORCH_REQUIRE says that there has to be one."""
    from minitorch_grading.grading.sandbox.bubblewrap import unavailable

    require("bubblewrap", unavailable())


def known(source: str, grade_id: str, **about: object) -> Cell:
    """A code cell that nbgrader knows."""
    rights = {"grade": False, "solution": False, "locked": True, "task": False, "schema_version": 3, **about}
    cell = added(source)
    cell["metadata"] = {"nbgrader": {"grade_id": grade_id, **rights}}
    return cell | {"id": grade_id}


def added(source: str) -> Cell:
    """A code cell that nobody knows."""
    return {"cell_type": "code", "metadata": {}, "source": source.strip(), "outputs": [], "execution_count": None}


def sample(first: str = BLANK, second: str = BLANK) -> list[Cell]:
    """An exercise of two tasks with 30 points each, so that one shows what is left when the other goes wrong."""
    tasks = [("first", first), ("second", second)]
    cells = [known("import minitorch as mt\nfrom minitorch.classroom import checks", "setup")]
    for name, source in tasks:
        cells.append(known(source.replace("{name}", name), name, solution=True, locked=False))
        cells.append(known(f"checks.eager.unbroadcast({name})", f"{name}-check", grade=True, points=30))
    return cells


def notebook(cells: list[Cell], kernel: str = "python3", language: str = "python") -> str:
    spec = {"name": kernel, "language": language, "display_name": kernel}
    return json.dumps({"cells": cells, "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5})


def course(root: Path, release: str | None = None, exercise: str = EXERCISE) -> Path:
    """The folder of a course in which an exercise was handed out."""
    for folder, content in (
        ("exercises", release or notebook(sample())),
        ("solutions", notebook(sample(RIGHT, RIGHT))),
    ):
        path = root / folder / exercise / f"{exercise}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(content)
    return root


def hand_in(root: Path, student: str, content: str, name: str = "", exercise: str = EXERCISE) -> Path:
    path = root / "submitted" / student / exercise / (name or f"{exercise}.ipynb")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def command(root: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "minitorch", "grade", str(root / "submitted"), "--json", *options]


def temporary(root: Path) -> Path:
    """Where grading a course puts its temporary files: nothing else does, so by it all that it starts is found."""
    folder = root / "temporary"
    folder.mkdir(exist_ok=True)
    return folder


def environment(root: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "", "TMPDIR": str(temporary(root)), **PLANTED}


def left_running(root: Path, *marks: str, seconds: float = 60) -> list[str]:
    """The processes that grading a course has started and that still run after so many seconds.

    Also those with a mark in their command, and the sandboxes of any run whose own process is no more.
    """
    end = time.monotonic() + seconds
    while (found := list(_running(str(temporary(root)), marks))) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def _running(folder: str, marks: Sequence[str]) -> Iterator[str]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            line = " ".join(process.cmdline())
            run = re.search(r"\bgrading-(\d+)-", line)  # in the sandbox there is no environment
            orphan = run is not None and run[1] != "0" and not psutil.pid_exists(int(run[1]))  # 0 is no run, but a test
            if orphan or process.environ().get("TMPDIR") == folder or any(mark in line for mark in (folder, *marks)):
                yield line


def start(root: Path, *options: str, **pipes: Any) -> subprocess.Popen[str]:
    """Begin to grade the course by the command line."""
    return subprocess.Popen(command(root, *options), env=environment(root), cwd=root, text=True, **pipes)


def grade(root: Path, *options: str) -> dict[str, dict[str, Any]]:
    """Grade the course by the command line; what the report says of each student."""
    with start(root, *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        said, complaints = process.communicate()
    assert process.returncode in (0, 1), complaints
    return {row["student"]: row for row in json.loads(said)["submissions"]}


def points(row: dict[str, Any]) -> dict[str, float]:
    """A student's points by task."""
    return {each["cell"].removesuffix("-check"): each["points"] for each in row["graded"]}


def kinds(row: dict[str, Any]) -> list[str]:
    """The names of what went wrong, each once, in order."""
    return list(dict.fromkeys(incident["kind"] for incident in row["incidents"]))
