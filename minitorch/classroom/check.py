"""``minitorch check``: a notebook is run in a kernel of its own, and its checks are shown as a table.

Cells with the tag of an example are not run, as when work is graded: so whoever builds on them hears of it in time.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CommandError
from .assertions import credit, imported_tasks, task_named, why_not
from .checks.score import MIME, Count
from .imports import quick_imports
from .unrun import EXAMPLE, Stopped, why_missing

BELOW = " " * 6  # before a reason that does not fit beside its points
SETTINGS = {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}  # of the kernel


@dataclass(frozen=True)
class Row:
    """One graded cell: its task, the points, why they are not all, and the parts of its score, if it has one."""

    task: str
    points: float
    of: float
    reason: str
    parts: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Checked:
    """A notebook that was run.

    Attributes:
        path: the notebook.
        rows: one for each graded cell.
        stopped: why it did not come to its end; empty if it did.
    """

    path: Path
    rows: tuple[Row, ...]
    stopped: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether it has all points."""
        return not self.stopped and all(row.points == row.of for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "notebook": str(self.path),
            "points": sum(row.points for row in self.rows),
            "of": sum(row.of for row in self.rows),
            "stopped": self.stopped,
            "tasks": [vars(row) for row in self.rows],
        }


def notebooks(paths: Iterable[str]) -> list[Path]:
    """The notebooks that are meant by some paths: a notebook, or the ones in a folder.

    Raises:
        CommandError: if there is none.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(path.glob("*.ipynb")) if path.is_dir() else [path] if path.is_file() else []
        if not inside:
            here = Path(path.stem if path.suffix == ".ipynb" else path.name)
            remedy = f"; there is one in {here}: minitorch check {here}" if list(here.glob("*.ipynb")) else ""
            raise CommandError(f"there is no notebook at {path}{remedy}")
        found += inside
    return found


def check_notebook(path: Path, seconds: float, examples: bool = False) -> Checked:
    """Run a notebook for so many seconds at most, and read its scores.

    Args:
        path: of the notebook.
        seconds: for all cells together.
        examples: whether to run examples too, which are not run when work is graded: what they define is not there.

    Raises:
        CommandError: if it cannot be read, or has no graded cell, or the `course` extra is not installed.
    """
    notebook = read_notebook(path)
    if not any(map(_is_graded, notebook.cells)):
        raise CommandError(f"{path} has no graded cell")
    ended, stopped = asyncio.run(run_cells(notebook, path.resolve().parent, seconds, examples))
    return Checked(path, tuple(graded_rows(notebook.cells, ended)), stopped)


def read_notebook(path: Path) -> Any:
    """A notebook without outputs: those in the file may be of another day.

    Raises:
        CommandError: if it cannot be read, or the `course` extra is not installed.
    """
    try:
        with quick_imports():
            import nbformat
    except ImportError:
        raise CommandError("running notebooks needs the course extra: pip install 'minitorch[course]'") from None
    try:
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    except Exception as error:  # nbformat raises what its JSON reader raises, and its own
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise CommandError(f"{path} cannot be read as a notebook: {first}") from None
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


async def run_cells(notebook: Any, folder: Path, seconds: float, examples: bool = False) -> tuple[int, str]:
    """Run all cells, or all but examples, going on after errors.

    Returns:
        How many came to their end, and what kept the notebook from its own, or nothing.
    """
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    deadline = time.monotonic() + seconds
    # With no folder to search, the client's own "python3" is left, which is this very interpreter.
    kernel = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    client = NotebookClient(
        notebook,
        km=kernel,
        allow_errors=True,
        timeout_func=lambda cell: max(deadline - time.monotonic(), 0.1),
        resources={"metadata": {"path": str(folder)}},
    )
    # A kernel's own messages in the terminal do not concern the notebook.
    started = {"env": {**os.environ, **SETTINGS}, "stderr": subprocess.DEVNULL, "cleanup_kc": True}
    ended = 0
    try:
        async with client.async_setup_kernel(**started):
            for number, cell in enumerate(notebook.cells):
                if examples or EXAMPLE not in cell.metadata.get("tags", ()):
                    await client.async_execute_cell(cell, number)
                ended = number + 1
    except CellTimeoutError:
        return ended, f"it was stopped after {seconds:g} seconds"
    except DeadKernelError:
        return ended, "its kernel died"
    return ended, ""


def _is_graded(cell: Any) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("grade"))


def graded_rows(cells: Sequence[Any], ended: int) -> Iterator[Row]:
    """The rows of the graded cells; `ended` is the number of cells that came to their end."""
    stopped: list[Stopped] = []
    imported = imported_tasks(cell.source for cell in cells if cell.cell_type == "code")
    for number, cell in enumerate(cells):
        if _is_graded(cell):
            yield _row(cell, task_named(cell.source, imported), number < ended, stopped)
        elif error := next((each for each in cell.get("outputs", ()) if each.output_type == "error"), None):
            name = cell.metadata.get("nbgrader", {}).get("grade_id") or str(number + 1)
            stopped.append(Stopped(name, cell.source, f"{error.ename}: {error.evalue}"))


def _row(cell: Any, task: str | None, ended: bool, stopped: Sequence[Stopped]) -> Row:
    about = cell.metadata.nbgrader
    name, of = task or str(about.grade_id), float(about.points)
    if about.get("solution"):
        return Row(name, 0, of, "a person reads this answer")
    for output in cell.outputs:
        score = output.get("data", {}).get(MIME)
        if score:
            return Row(score["task"], score["points"], of, score["reason"], tuple(score["parts"]))
        if output.output_type == "error":
            reason = f"the cell stops with {output.ename}: {output.evalue}" if task else why_not(output, cell.source)
            return Row(name, 0, of, why_missing(output.ename, output.evalue, stopped) or reason)
    if task or not ended:
        return Row(name, 0, of, "the cell has shown no score" if task else "the cell did not come to its end")
    points, reason = credit(cell.outputs, of)
    return Row(name, points, of, reason)


def table(checked: Checked, width: int = 0) -> str:
    """A table for a terminal: task, points, reason."""
    width = max(width or min(shutil.get_terminal_size().columns, 120), 60)
    rows: Sequence[Row] = checked.rows
    names = max([len(row.task) for row in rows])
    total = sum(row.points for row in rows)
    lines = [f"{checked.path}: {total:g} of {sum(row.of for row in rows):g} points"]
    for row in rows:
        head = f"  {row.task:<{names}}  {row.points:>4g} of {row.of:<3g}  "
        counted = [f"{part['name']}: {Count(**part['count'])}" for part in row.parts if part.get("count")]
        said = row.reason.splitlines() or counted or [""]
        if len(said) == 1 and len(head) + len(said[0]) <= width:
            lines.append((head + said[0]).rstrip())
            continue
        lines.append(head.rstrip())
        for line in said:  # a listing is indented and stays as it is; a sentence is broken
            pieces = [line] if line.startswith(" ") else textwrap.wrap(line, width - len(BELOW))
            lines += [BELOW + piece for piece in pieces]
    if checked.stopped:
        lines.append(f"  {checked.stopped}")
    return "\n".join(lines)
