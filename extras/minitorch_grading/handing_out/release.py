"""``minitorch release``: from `solutions/` to what students get, by nbgrader, and the same bytes every time."""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minitorch.errors import CommandError

from ..imports import quick_imports

OWN = ("checks.py", "harness.py")  # an exercise's own checks, which students have, too
HANDED_OUT = "exercises"  # the folder of what was released: in a course, in a clone, and in the package of a wheel
MARKS = ("### BEGIN SOLUTION", "### END SOLUTION", "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS")


@dataclass(frozen=True)
class Released:
    """One file of `exercises/`: its path there, and its content."""

    path: Path
    content: bytes


def exercises_in(folder: Path) -> list[str]:
    """The names of the exercises in a folder, in order: those with a notebook of the same name."""
    return sorted(path.stem for path in folder.glob("[!.]*/*.ipynb") if path.stem == path.parent.name)


def release(source: Path, names: Sequence[str] = ()) -> Iterator[Released]:
    """The students' version of some exercises, or of all, with their own checks if they have some.

    Solutions become a stub, hidden tests and outputs go; graded cells get nbgrader's checksums, and the id of a cell
    that nbgrader knows is the name by which it knows it.

    Raises:
        CommandError: for an exercise that is not there or that nbgrader refuses, or if nbgrader is not installed.
    """
    known = exercises_in(source)
    if not known:
        raise CommandError(f"there are no exercises in {source}: they are {source}/NAME/NAME.ipynb")
    if strange := [name for name in names if name not in known]:
        raise CommandError(f"there is no exercise {strange[0]} in {source}; there is {', '.join(known)}")
    for name in names or known:
        yield Released(Path(name) / f"{name}.ipynb", _released(source, name))
        for file in OWN:
            if (source / name / file).is_file():
                yield Released(Path(name) / file, (source / name / file).read_bytes())


class _Said(logging.Handler):
    """The log of nbgrader when it fails: the last line of the traceback is the reason."""

    reason = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the reason."""
        lines = record.getMessage().strip().splitlines()
        if lines and lines[0].startswith("Traceback"):
            self.reason = lines[-1]


def _released(source: Path, name: str) -> bytes:
    try:
        with quick_imports():
            import nbformat
            from nbgrader.converters import GenerateAssignment
            from nbgrader.coursedir import CourseDirectory
            from nbgrader.preprocessors import SaveCells
        from traitlets.config import Config
    except ImportError:
        raise CommandError("releasing needs nbgrader, which is not installed: pip install nbgrader") from None

    with tempfile.TemporaryDirectory(prefix="minitorch-release-") as folder:
        config = Config()
        config.CourseDirectory.root = folder
        config.CourseDirectory.source_directory = str(source.resolve())
        config.CourseDirectory.release_directory = "released"
        config.CourseDirectory.assignment_id = name
        # A release depends on its source alone; what a gradebook has to know is entered by whoever grades.
        config.GenerateAssignment.no_database = True
        converter = GenerateAssignment(coursedir=CourseDirectory(config=config), config=config)
        converter.preprocessors = [each for each in converter.preprocessors if each is not SaveCells]
        said = _Said()
        converter.log = logging.Logger("minitorch.release")
        converter.log.addHandler(said)
        try:
            converter.start()
        except Exception as error:  # its own says "see above" and no more
            raise CommandError(f"nbgrader does not release {name}: {said.reason or error}") from error
        path = Path(folder) / "released" / name / f"{name}.ipynb"
        notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        if about := cell.metadata.get("nbgrader"):
            cell.id = about.grade_id
    _refuse_leftovers(notebook, name)
    text: str = nbformat.writes(notebook)  # type: ignore[no-untyped-call]
    return f"{text.rstrip()}\n".encode()


def _refuse_leftovers(notebook: Any, name: str) -> None:
    """Nothing that is not for students, and nothing that differs from time to time.

    Raises:
        CommandError: naming the cell.
    """
    ids = [cell.id for cell in notebook.cells]
    for cell in notebook.cells:
        wrong = [mark for mark in MARKS if mark in cell.source]
        if wrong:
            raise CommandError(f"{name}: the cell {cell.id} still has {wrong[0]}")
        if not re.fullmatch(r"[a-z0-9-]+", cell.id.replace("_", "-")) or ids.count(cell.id) > 1:
            raise CommandError(f"{name}: the id {cell.id} is not readable, or there twice")
        if cell.cell_type == "code" and (cell.outputs or cell.execution_count is not None):
            raise CommandError(f"{name}: the cell {cell.id} has outputs")


def write(released: Sequence[Released], folder: Path) -> list[Path]:
    """Write what is not there yet as it should be; returns the paths that were written."""
    changed = outdated(released, folder)
    contents = {each.path: each.content for each in released}
    for path in changed:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(contents[path])
    return changed


def outdated(released: Sequence[Released], folder: Path) -> list[Path]:
    """The paths in a folder whose content is not what was released."""
    there = [(each, folder / each.path) for each in released]
    return [each.path for each, path in there if not path.is_file() or path.read_bytes() != each.content]
