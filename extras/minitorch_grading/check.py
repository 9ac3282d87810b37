"""``minitorch check``: a notebook is graded as the grader does it, and its checks are shown as a table.

It is the grader's own function (`grading.submission.run.graded`), with the seeds that everybody has, in a process
without a sandbox: the same cells are run, by the same shell, with the same part of the engine. So a check and a grade
say the same of the same notebook.
"""

from __future__ import annotations

import hashlib
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from minitorch.errors import CommandError

from .assertions import visible
from .checks.score import Count
from .checks.task import SEEDS
from .dependencies import PACKAGE
from .grading.incidents import Incident
from .grading.limits import Limits
from .grading.results import Graded
from .grading.sandbox.image import contents
from .grading.sandbox.server import StartError
from .grading.submission.alone import processes
from .grading.submission.preflight import DamagedError, Part, load, of_released
from .grading.submission.run import GradingError, Setting, graded
from .handing_out.release import HANDED_OUT
from .own_checks import Checks, checks_from, sources_in

SHOWN = ("task", "points", "of", "reason", "parts")  # of each task, as plain data
BELOW = " " * 6  # before a reason that does not fit beside its points


@dataclass(frozen=True)
class Checked:
    """A notebook that was run.

    Attributes:
        path: the notebook.
        rows: one for each graded cell.
        incidents: what went wrong on the way, as the grader names it.
    """

    path: Path
    rows: list[Graded]
    incidents: Sequence[Incident] = ()

    @property
    def is_complete(self) -> bool:
        """Whether it has all points."""
        return all(row.points == row.of for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "notebook": str(self.path),
            "points": sum(row.points for row in self.rows),
            "of": sum(row.of for row in self.rows),
            "tasks": [{name: getattr(row, name) for name in SHOWN} for row in self.rows],
            "incidents": [str(each) for each in self.incidents],
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


def check_notebook(path: Path, seconds: float) -> Checked:
    """Grade a notebook, with the seeds of a student's own checks.

    Args:
        path: of the notebook.
        seconds: for all cells together.

    Raises:
        CommandError: if it cannot be read, or has no graded cell, or its exercise cannot be graded.
    """
    notebook = read_notebook(path)
    # Where what was handed out is not known, it is the notebook itself, without the answers.
    itself = [
        replace(part, source="") if part.solution and not _is_as_handed_out(part) else part
        for part in cells_of(notebook)
    ]
    release = _handed_out(path) or itself
    if not any(part.points is not None for part in release):
        raise CommandError(f"{path} has no graded cell")
    checks = checks_from(sources_in(path.parent), str(path.parent))
    try:
        with setting(release, seconds, checks) as here:
            result = graded(notebook, here)
    except DamagedError as error:
        raise CommandError(f"{path}: {error}") from None
    return Checked(path, result.graded, result.incidents)


@contextmanager
def setting(release: list[Part], seconds: float, checks: Checks) -> Iterator[Setting]:
    """The conditions of a student's own check: the seeds that everybody has, and a process without a sandbox.

    Raises:
        CommandError: if the exercise cannot be graded, or no process starts.
    """
    limits = Limits(seconds=seconds)
    try:
        with processes(contents((part.task for part in release), checks), limits) as start:
            yield Setting(release, SEEDS, start, limits, checks)
    except (GradingError, StartError) as error:
        raise CommandError(str(error)) from None


def read_notebook(path: Path) -> Any:
    """A notebook without outputs: those in the file may be of another day.

    Raises:
        CommandError: if it cannot be read.
    """
    try:
        return load(path, Limits().notebook)
    except DamagedError as error:
        raise CommandError(f"{path} cannot be read as a notebook: {error}") from None


def cells_of(notebook: Any) -> list[Part]:
    """The cells of a notebook as those of an exercise; hidden tests are run, and not shown."""
    parts = of_released(notebook["cells"])
    whole = [replace(part, tests=part.source) if part.is_check and part.task is None else part for part in parts]
    return [replace(part, source=visible(part.source)) if part.is_check else part for part in whole]


def _handed_out(path: Path) -> list[Part] | None:
    """The notebook's exercise as it was handed out: beside it in a course or a clone, or in the package."""
    above = [parent / HANDED_OUT for parent in path.resolve().parents]
    for folder in (*above, PACKAGE / HANDED_OUT, PACKAGE.parent / HANDED_OUT):
        found = folder / path.stem / f"{path.stem}.ipynb"
        if found.is_file() and not found.samefile(path):
            parts = of_released(read_notebook(found)["cells"])
            if all(map(_is_as_handed_out, parts)):
                return parts
    return None


def _is_as_handed_out(part: Part) -> bool:
    """Whether a cell has nbgrader's checksum (`nbgrader.utils.compute_checksum`): students may work in that file."""
    about = part.about or {}
    if "checksum" not in about:
        return not part.solution
    kinds = "".join(str(bool(about.get(name))) for name in ("grade", "solution", "locked"))
    points = float(about["points"]) if about.get("grade") else ""
    text = f"{part.source}{part.kind}{kinds}{part.name}{points}"
    found = hashlib.md5(text.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()
    return found == str(about["checksum"])


def table(checked: Checked, width: int = 0) -> str:
    """A table for a terminal: task, points, reason."""
    width = max(width or min(shutil.get_terminal_size().columns, 120), 60)
    rows = checked.rows
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
    return "\n".join([*lines, *(f"  {each}" for each in checked.incidents)])
