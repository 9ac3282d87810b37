"""Before anything is run: a submitted file becomes the notebook that was handed out, with the student's cells in it.

What the instructor owns (locked cells, points, order) comes from the released notebook; what the student owns (the
cells to be filled in, and cells that were added) comes from the file, found by `grade_id`. Whatever had to be mended is
an incident. Nothing of the file is believed: not its name, not its size, not its metadata.
"""

from __future__ import annotations

import json
import os
import stat
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...assertions import imported_tasks, task_named
from ...unrun import EXAMPLE
from ..incidents import Incident

Cell = dict[str, Any]

RELEASE_BYTES = 100_000_000
ENTRIES = 300
"""Entries of a submission's folders that are looked at; no exercise asks for more than a few."""
DEPTH = 8
"""Levels of folders that are entered."""


@dataclass(frozen=True)
class Part:
    """One cell of the notebook to be run.

    Attributes:
        source: what is in it.
        kind: ``"code"``, ``"markdown"`` or ``"raw"``.
        name: its `grade_id`; None for a cell that nbgrader does not know of.
        id: the notebook's own name for a released cell.
        task: of a check, the task that it asks for; None for an assert cell.
        tests: of an assert cell, the source with its hidden tests, which is what is run when a class is graded.
        is_example: whether the released cell has the tag `EXAMPLE`.
        points: what its check can give; None if it is no check.
        solution: whether it is the student's to fill in.
        about: nbgrader's metadata of the released cell.
        blank: whether the student's cell is as it was handed out.
    """

    source: str
    kind: str
    name: str | None = None
    points: float | None = None
    solution: bool = False
    about: dict[str, Any] | None = None
    blank: bool = False
    id: str | None = None
    tests: str | None = None
    is_example: bool = False
    task: str | None = None

    @property
    def is_check(self) -> bool:
        """Whether a program gives its points: a graded cell that the student does not fill in."""
        return self.points is not None and not self.solution


class DamagedError(Exception):
    """A submission that cannot be graded at all; its argument is the incident."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind)
        self.incident = Incident(kind, detail)


def released(path: Path) -> list[Part]:
    """The cells of a notebook as it was handed out.

    Raises:
        DamagedError: if it cannot be read.
    """
    cells = load(path, RELEASE_BYTES)["cells"]
    imported = imported_tasks(text_of(cell) for cell in cells if cell["cell_type"] == "code")
    return [_released(cell, imported) for cell in cells]


def _released(cell: Cell, imported: Mapping[str, str]) -> Part:
    about = cell["metadata"].get("nbgrader")
    source = text_of(cell)
    if not about or not about.get("grade_id"):
        return Part(
            source, cell["cell_type"], id=cell.get("id"), is_example=EXAMPLE in cell["metadata"].get("tags", ())
        )
    points = float(about["points"]) if about.get("grade") else None
    part = Part(source, cell["cell_type"], about["grade_id"], points, bool(about.get("solution")), dict(about))
    return replace(part, task=task_named(source, imported)) if part.is_check else part


def find(folder: Path, exercise: str, names: set[str], largest: int) -> tuple[Any, list[Incident]]:
    """The submitted notebook of a folder as plain data, and what was wrong with the file.

    Args:
        folder: where the student's files are; nothing outside of it is opened.
        exercise: the name that the notebook should have.
        names: the `grade_id` of each cell, by which the notebook is known if it has another name.
        largest: number of bytes of the largest file that is opened.

    Raises:
        DamagedError: if there is nothing to be graded.
    """
    right = folder / f"{exercise}.ipynb"
    if os.path.lexists(right):
        return load(right, largest), []
    others = notebooks(folder)
    if not others:
        raise DamagedError("missing-notebook")
    if len(others) > 1:
        others = [path for path in others if _is_meant(path, names, largest)]
    if len(others) != 1:
        raise DamagedError("several-notebooks", f"{len(others)} of them have cells of this exercise")
    return load(others[0], largest), [Incident("renamed", str(others[0].relative_to(folder)))]


def notebooks(folder: Path) -> list[Path]:
    """The notebooks in a folder and those below it, within the bounds, in order; links are not followed."""
    found: list[Path] = []
    waiting = deque([(folder, 1)])
    left = ENTRIES
    while waiting and left:
        place, depth = waiting.popleft()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if not left:
                        break
                    left -= 1
                    if entry.name.endswith(".ipynb"):
                        found.append(Path(entry.path))
                    elif depth < DEPTH and entry.name != ".ipynb_checkpoints" and entry.is_dir(follow_symlinks=False):
                        waiting.append((Path(entry.path), depth + 1))
        except OSError:
            continue
    return sorted(found)


def _is_meant(path: Path, names: set[str], largest: int) -> bool:
    try:
        return any(grade_id(cell) in names for cell in load(path, largest)["cells"])
    except DamagedError:
        return False


def contents(path: Path, largest: int) -> bytes:
    """The content of a submitted file.

    Raises:
        DamagedError: if it is no regular file, or larger than `largest` bytes.
    """
    try:
        # Opened without following a link and without waiting for a pipe, then looked at: there is no time in between.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise DamagedError("not-a-file", error.strerror or "") from None
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):  # asked first, because a folder cannot become a file object
        os.close(handle)
        raise DamagedError("not-a-file")
    with os.fdopen(handle, "rb") as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise DamagedError("too-large", f"{about.st_size / 1e6:.1f} MB, and {largest / 1e6:.1f} MB are allowed")
    return content


def load(path: Path, largest: int) -> Any:
    """A file as a notebook of format 4: plain data whose cells have a type, a source and metadata.

    Raises:
        DamagedError: if it is no regular file, is larger than `largest` bytes or no notebook.
    """
    content = contents(path, largest)
    try:
        notebook = json.loads(content.decode("utf-8-sig"))
        cells = notebook["cells"]
        if notebook["nbformat"] < 4:
            raise DamagedError("not-json", "it was saved in a format of before 2015")
        if not all(isinstance(text_of(cell), str) and isinstance(cell["metadata"], dict) for cell in cells):
            raise ValueError("a cell without text")
        if not {cell["cell_type"] for cell in cells} <= {"code", "markdown", "raw"}:
            raise ValueError("a cell of an unknown type")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError("not-json", f"{type(error).__name__}: {error}"[:200]) from None
    return notebook


def text_of(cell: Cell) -> str:
    """The source of a cell, which a file may hold as one text or as a list of lines."""
    source = cell["source"]
    text = source if isinstance(source, str) else "".join(source)
    return text.encode(errors="replace").decode()  # JSON can hold halves of characters, which nothing else can


def grade_id(cell: Cell) -> str | None:
    """By what nbgrader knows a cell, or None."""
    about = cell["metadata"].get("nbgrader")
    name = about.get("grade_id") if isinstance(about, dict) else None
    return name if isinstance(name, str) else None


def _is_check(cell: Cell) -> bool:
    """Whether nbgrader made it a check: a graded cell that is not the student's to fill in."""
    about = cell["metadata"].get("nbgrader")
    return isinstance(about, dict) and bool(about.get("grade")) and not about.get("solution")


def mend(notebook: Any, release: list[Part]) -> tuple[list[Part], list[Incident]]:
    """The cells to be run: those of the release in their order, with what the student wrote in them and between them.

    Args:
        notebook: what `load` returned.
        release: what `released` returned.

    Raises:
        DamagedError: if no cell of the exercise is in the notebook.
    """
    known = {part.name: part for part in release if part.name}
    found: dict[str, list[Cell]] = {name: [] for name in known}
    added: dict[str | None, list[Part]] = {}  # after which known cell
    free = {part.id: part for part in release if part.id}
    edited: dict[str | None, Part] = {}
    handed_out = {part.source.strip() for part in release if part.name is None}
    dropped: list[Incident] = []
    last: str | None = None
    for cell in notebook["cells"]:
        name = grade_id(cell)
        if name in found:
            found[name].append(cell)
            last = name
        elif _is_check(cell):  # its task was dropped or renamed: to run it would ask for inputs that nobody has
            dropped.append(Incident("check-dropped", name or ""))
        elif text_of(cell).strip() not in handed_out:
            part, identity = Part(text_of(cell), cell["cell_type"]), cell.get("id")
            if isinstance(identity, str) and identity in free:
                edited[identity] = part
            else:
                added.setdefault(last, []).append(part)
    if not any(found.values()):
        raise _why_none(notebook)
    incidents = _kernel(notebook) + dropped
    parts = added.pop(None, [])
    for part in release:
        if part.name is None:  # theirs to change; what others build on, such as imports, is run before all the same
            change = edited.get(part.id)
            parts += [part] if change is None else [part, change] if part.kind == "code" else [change]
            continue
        mended, wrong = _mend_cell(part, found[part.name])
        incidents += wrong
        parts += [mended, *added.get(part.name, [])]
    return parts, incidents


def _why_none(notebook: Any) -> DamagedError:
    """Why no cell of the exercise is in a notebook: `minitorch collect` writes one where it found nothing to grade."""
    about = notebook.get("metadata")
    ours = about.get("minitorch") if isinstance(about, dict) else None
    problem = ours.get("problem") if isinstance(ours, dict) else None
    return DamagedError("unreadable", problem[:300]) if isinstance(problem, str) else DamagedError("wrong-exercise")


def _mend_cell(part: Part, cells: list[Cell]) -> tuple[Part, Iterable[Incident]]:
    """The repaired form of a known cell, given the cells of the file that have its name."""

    def incident(kind: str, detail: str = "") -> Incident:
        return Incident(kind, detail, part.name)

    if not cells:
        return replace(part, blank=part.solution), [incident("cell-missing")]
    wrong = []
    if len(cells) > 1:
        wrong.append(incident("cell-twice", f"{len(cells)} times"))
    if any(cell["cell_type"] != part.kind for cell in cells):
        wrong.append(incident("cell-type"))
    if any(_rights(cell["metadata"]["nbgrader"]) != _rights(part.about or {}) for cell in cells):
        wrong.append(incident("cell-edited", "its points or rights"))
    written = [text_of(cell) for cell in cells if not same(text_of(cell), part.source)]
    if part.solution:
        return (replace(part, source=written[-1]) if written else replace(part, blank=True)), wrong
    if written:
        wrong.append(incident("cell-edited"))
    return part, wrong


def _rights(about: dict[str, Any]) -> tuple[Any, ...]:
    return (bool(about.get("grade")), bool(about.get("solution")), about.get("points") or 0)


def same(one: str, other: str) -> bool:
    """Whether two sources differ in nothing but white space at the ends of lines, which editors change."""
    lines = [[line.rstrip() for line in source.strip().splitlines()] for source in (one, other)]
    return lines[0] == lines[1]


def _kernel(notebook: Any) -> list[Incident]:
    about = notebook.get("metadata")
    spec = about.get("kernelspec") if isinstance(about, dict) else None
    if not isinstance(spec, dict):
        return []
    language, name = str(spec.get("language", "")), str(spec.get("name", ""))
    is_python = language.lower() == "python" if language else "py" in name.lower()
    return [] if is_python else [Incident("wrong-kernel", name[:60])]
