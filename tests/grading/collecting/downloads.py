"""Made-up downloads in the forms in which Moodle, Canvas and nbgrader give a class's work, and what becomes of them."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

from minitorch.__main__ import main
from tests.grading.classes import EXERCISE, RIGHT, notebook, sample

Files = dict[str, str]  # the content of each file of a download, by its path

BLANK = notebook(sample())
DONE = notebook(sample(first=RIGHT))
ALL = notebook(sample(RIGHT, RIGHT))
DAMAGED = DONE[: len(DONE) // 2]


def moodle(name: str, number: int, content: str, file: str = f"{EXERCISE}.ipynb", end: str = "_") -> Files:
    """One student's folder in Moodle's download; `end` is empty from Moodle 4.1 on."""
    return {f"{name}_{number}_assignsubmission_file{end}/{file}": content}


def moodle_flat(name: str, number: int, content: str, file: str = f"{EXERCISE}.ipynb") -> Files:
    """The same where Moodle was told to make no folders."""
    return {f"{name}_{number}_assignsubmission_file_{file}": content}


def canvas(
    name: str, user: int, order: int, content: str, file: str = f"{EXERCISE}.ipynb", late: bool = False
) -> Files:
    """One file in Canvas's download."""
    return {f"{name}{'_LATE' if late else ''}_{user}_{order}_{file}": content}


def exchange(student: str, time: str, content: str, exercise: str = EXERCISE) -> Files:
    """One submission in the exchange of nbgrader."""
    folder = f"{student}+{exercise}+{time}+dGhlcmU"
    return {f"{folder}/{exercise}.ipynb": content, f"{folder}/timestamp.txt": time}


def submitted(student: str, content: str, exercise: str = EXERCISE) -> Files:
    """One submission in the folder of nbgrader's course."""
    return {f"{student}/{exercise}/{exercise}.ipynb": content}


def folder(root: Path, files: Files) -> Path:
    """A download that was unpacked."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def packed(path: Path, files: Files) -> Path:
    """A download as the zip that it came in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def collect(root: Path, source: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """Collect by the command line: the status, and what is said."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = main(["collect", str(source), "--to", str(root / "submitted"), "--json", *options])
    return status, json.loads(out.getvalue() or "null")


def work(root: Path, exercise: str = EXERCISE) -> dict[str, str]:
    """The notebook of each student that would be graded."""
    found = (root / "submitted").glob(f"*/{exercise}/{exercise}.ipynb")
    return {path.parts[-3]: path.read_text() for path in sorted(found)}


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below a folder, with the time at which it was changed."""
    return {
        str(path.relative_to(root)): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(root.rglob("*"))
    }
