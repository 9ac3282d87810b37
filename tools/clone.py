"""The course as it was committed, whatever a reader has run, answered and saved in this clone, or made beside it.

``NOTEBOOKS``, ``RELEASED`` and ``SOLUTIONS`` are copies, for this process. They have the files that git knows: those of
`exercises/`, where students write answers, and notebooks that were run are as git has them, all others as they are
here. Without git the copies have what is here.

    python -m tools.clone       leave in this clone what a session in JupyterLab leaves; the tests stay green
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("notebooks", "exercises", "solutions")


def git(*command: str) -> bytes | None:
    """What git prints of this clone; None if this is none."""
    try:
        return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def leftovers(notebook: dict[str, Any]) -> Iterator[str]:
    """What an execution has left in a notebook, one line each."""
    for number, cell in enumerate(notebook["cells"], 1):
        if cell.get("outputs"):
            yield f"cell {number} has outputs"
        if cell.get("execution_count") is not None:
            yield f"cell {number} has the execution count {cell['execution_count']}"
    if "widgets" in notebook["metadata"]:
        yield "the metadata hold the state of widgets"


def as_committed(name: str) -> bytes:
    """A file that was changed or deleted since it was last added to git."""
    path = ROOT / name
    is_readers = name.startswith("exercises/") or not path.exists()
    if is_readers or (path.suffix == ".ipynb" and any(leftovers(json.loads(path.read_bytes())))):
        return git("show", f":{name}") or b""
    return path.read_bytes()


def copied(to: Path) -> None:
    """Copy the folders of the course."""
    known, changed = git("ls-files", "-z", *FOLDERS), git("diff-files", "-z", "--name-only", *FOLDERS)
    if known is None or changed is None:
        for folder in FOLDERS:
            shutil.copytree(ROOT / folder, to / folder, ignore=shutil.ignore_patterns(".*"))
        return
    for name in known.decode().split("\0")[:-1]:
        content = as_committed(name) if name in changed.decode().split("\0") else (ROOT / name).read_bytes()
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_bytes(content)


_copy = tempfile.TemporaryDirectory(prefix="minitorch-course-", ignore_cleanup_errors=True)
copied(Path(_copy.name))
NOTEBOOKS, RELEASED, SOLUTIONS = (Path(_copy.name, folder) for folder in FOLDERS)


def use() -> None:
    """Leave what a session in JupyterLab leaves: outputs, answers, checkpoints of every file, files of one's own."""
    for path in [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.ipynb")]:
        notebook = json.loads(path.read_bytes())
        for count, cell in enumerate(notebook["cells"], 1):
            if cell["cell_type"] == "code":
                cell["execution_count"] = count
                cell["source"] = ["1 / 0  # an attempt"]
                cell["outputs"] = [{"output_type": "stream", "name": "stderr", "text": ["an output\n"]}]
        notebook["metadata"] |= {"widgets": {}, "language_info": {"name": "python", "version": "3"}}
        path.write_text(json.dumps(notebook, indent=1))
        shutil.copy(path, path.with_name(f"{path.stem}-Copy1.ipynb"))
    for path in [path for path in ROOT.rglob("*.*") if path.is_file() and not path.is_relative_to(ROOT / ".venv")]:
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts):
            checkpoints = path.parent / ".ipynb_checkpoints"
            checkpoints.mkdir(exist_ok=True)
            shutil.copy(path, checkpoints / f"{path.stem}-checkpoint{path.suffix}")
    for folder in (ROOT, *(ROOT / name for name in FOLDERS)):
        for name in ("Untitled.ipynb", "untitled.md", "untitled.py", "untitled.txt"):
            (folder / name).write_text("{" if name.endswith("ipynb") else "1 / 0\n")


if __name__ == "__main__":
    use()
