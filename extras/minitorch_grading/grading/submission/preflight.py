"""Read a submitted file: find the notebook, drop its outputs, and check that it has the form of one.

Nothing of the file is believed: not its name, not its size, not its metadata. How its cells become the notebook that is
run is in `alignment`.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...assertions import imported_tasks, task_named
from ..incidents import Incident
from ..limits import MIB

Cell = dict[str, Any]
# Notebooks by their paths in a folder: the content without outputs, or why it could not be read.
Files = dict[str, "bytes | Incident"]

# The tag of a cell that shows what the engine does, and is not run when work is graded: what it uses is not there.
EXAMPLE = "example"

# Bytes of a file with its outputs, which are dropped. Raising it lets a submission take as much memory for a while.
FILE_BYTES = 100_000_000
# Of a submission's notebooks together. Raising it lets students send more to another machine of a cluster.
BYTES = 64 * MIB
ENTRIES = 300  # entries of a submission's folders that are looked at; no exercise asks for more than a few
DEPTH = 8  # levels of folders that are entered


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
        skipped: whether it is not run: an example (`EXAMPLE`), or a stub of what the student defines in another cell.
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
    skipped: bool = False
    task: str | None = None

    @property
    def is_check(self) -> bool:
        """Whether a program gives its points: a graded cell that the student does not fill in."""
        return self.points is not None and not self.solution


class DamagedError(Exception):
    """A submission that cannot be graded at all; its argument is the incident."""

    def __init__(self, kind: str, detail: str = "") -> None:
        self.incident = Incident(kind, detail)
        super().__init__(self.incident.text)


def released(path: Path) -> list[Part]:
    """The cells of a notebook as it was handed out.

    Raises:
        DamagedError: if it cannot be read.
    """
    return of_released(load(path, FILE_BYTES)["cells"])


def of_released(cells: list[Cell]) -> list[Part]:
    """The cells of a notebook that was read (`load`), as those of an exercise."""
    imported = imported_tasks(cell["source"] for cell in cells if cell["cell_type"] == "code")
    return [_released(cell, imported) for cell in cells]


def _released(cell: Cell, imported: Mapping[str, str]) -> Part:
    name, source, kind = grade_id(cell), text_of(cell), cell["cell_type"]
    if not name:
        return Part(source, kind, id=cell.get("id"), skipped=EXAMPLE in cell["metadata"].get("tags", ()))
    about = cell["metadata"]["nbgrader"]
    points = float(about["points"]) if about.get("grade") else None
    part = Part(source, kind, name, points, bool(about.get("solution")), dict(about))
    return replace(part, task=task_named(source, imported)) if part.is_check else part


def read(folder: Path, exercise: str, largest: int) -> Files:
    """The notebooks of a folder that could be meant: the one with the right name, or if there is none, all of them.

    Args:
        folder: where the student's files are; nothing outside of it is opened.
        exercise: the name that the notebook should have.
        largest: number of bytes of the largest notebook that is read, without its outputs.
    """
    right = folder / f"{exercise}.ipynb"
    found: Files = {}
    left = BYTES
    for path in [right] if os.path.lexists(right) else notebooks(folder):
        try:
            content: bytes | Incident = read_stripped(path, min(largest, left))
        except DamagedError as damaged:
            content = damaged.incident
        left -= len(content) if isinstance(content, bytes) else 0
        found[str(path.relative_to(folder))] = content
    return found


def find(files: Files, exercise: str, names: set[str]) -> tuple[Any, list[Incident]]:
    """The notebook that was handed in, as plain data, and what was wrong with its name.

    Args:
        files: as `read` gives them.
        exercise: the name that the notebook should have.
        names: the `grade_id` of each cell, by which the notebook is known if it has another name.

    Raises:
        DamagedError: if there is nothing to be graded.
    """
    if not files:
        raise DamagedError("missing-notebook")
    meant = [name for name, content in files.items() if len(files) == 1 or _is_meant(content, names)]
    if len(meant) != 1:
        raise DamagedError("several-notebooks", f"{len(meant)} of them have cells of this exercise")
    wrong = [] if meant[0] == f"{exercise}.ipynb" else [Incident("renamed", meant[0])]
    return parsed(files[meant[0]]), wrong


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


def _is_meant(content: bytes | Incident, names: set[str]) -> bool:
    try:
        return any(grade_id(cell) in names for cell in parsed(content)["cells"])
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


# A key whose value is dropped, where an array or an object follows; or a text, so that nothing is found inside of one.
# They search a copy without escapes: a repeated group of escapes would take memory for each of them.
_KEYS = re.compile(rb'("(?:outputs|attachments|widgets)"\s*:\s*)(?=[\[{])|"[^"]*"?')
_BRACKETS = re.compile(rb'[\[{]+|[\]}]+|"[^"]*"?')


def stripped(content: bytes, largest: int) -> bytes:
    """Return a notebook; one that is larger than this many bytes without outputs, attachments and the state of widgets.

    It is done on bytes, before anything is parsed, so that a large file never becomes many objects. Whatever is no JSON
    is left as it is.

    Example:
        >>> stripped(b'{"cells": [{"outputs": [{"text": "]"}], "source": "1"}]}', 10)
        b'{"cells": [{"outputs": [], "source": "1"}]}'
    """
    if len(content) <= largest:
        return content
    kept, begin, bare = [], 0, content.replace(rb"\\", b"__").replace(rb"\"", b"__")
    key = _KEYS.search(bare)
    while key is not None:
        end = key.end()
        if key[1]:
            kept += [content[begin:end], b"[]" if content[end] == ord("[") else b"{}"]
            begin = end = _end_of_value(bare, end)
        key = _KEYS.search(bare, end)
    return b"".join([*kept, content[begin:]])


def _end_of_value(content: bytes, begin: int) -> int:
    """The place after an array or object that begins somewhere; the end of the content if it has none."""
    depth = 0
    for each in _BRACKETS.finditer(content, begin):
        size = each.end() - each.start()
        if each[0][:1] in b"[{":
            depth += size
        elif each[0][:1] in b"]}":
            if size >= depth:
                return each.start() + depth
            depth -= size
    return len(content)


def read_stripped(path: Path, largest: int) -> bytes:
    """Return the content of a submitted notebook, `stripped`; no more than `FILE_BYTES` are read.

    Raises:
        DamagedError: if it is no regular file, or more than `largest` bytes are left.
    """
    return bounded(contents(path, FILE_BYTES), largest)


def bounded(content: bytes, largest: int) -> bytes:
    """Return a notebook, `stripped`.

    Raises:
        DamagedError: if more than `largest` bytes are left.
    """
    content = stripped(content, largest)
    if len(content) > largest:
        size = f"{len(content) / 1e6:.1f} MB without outputs"
        raise DamagedError("too-large", f"{size}, and {largest / 1e6:.1f} MB are allowed")
    return content


def load(path: Path, largest: int) -> Any:
    """Return a file as a notebook of format 4 (`parsed`).

    Raises:
        DamagedError: if it is no regular file, is larger than `largest` bytes without outputs, or no notebook.
    """
    return parsed(read_stripped(path, largest))


def parsed(content: bytes | Incident) -> Any:
    """Return a notebook of format 4 as plain data.

    Each cell has a type, a source, which is one text, and metadata. Older formats are converted.

    Raises:
        DamagedError: if it could not be read, or is no notebook.
    """
    if isinstance(content, Incident):
        raise DamagedError(content.kind, content.detail)
    try:
        notebook = json.loads(content)
        is_old = notebook["nbformat"] < 4
        cells = [each for sheet in notebook["worksheets"] for each in sheet["cells"]] if is_old else notebook["cells"]
        notebook["cells"] = [_of_format_3(cell) if is_old else _cell(cell) for cell in cells]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError("not-json", f"{type(error).__name__}: {error}"[:200]) from None
    return notebook


def _cell(cell: Cell) -> Cell:
    metadata = cell.get("metadata", {})
    if not isinstance(metadata, dict) or cell["cell_type"] not in ("code", "markdown", "raw"):
        raise ValueError("a cell of an unknown type or form")
    return {**cell, "source": text_of(cell), "metadata": metadata}


def _of_format_3(cell: Cell) -> Cell:
    """A cell of the format of before 2015, which IPython's notebook wrote."""
    kind, source = cell["cell_type"], cell["input"] if cell["cell_type"] == "code" else cell["source"]
    if kind == "heading":
        source = ["#" * cell.get("level", 1), " ", *source]
    kind = kind if kind in ("code", "raw") else "markdown"
    return _cell({**cell, "cell_type": kind, "source": source})


def text_of(cell: Cell) -> str:
    """The source of a cell, which a file may hold as one text or as a list of lines, of any system."""
    text = "".join(cell["source"])
    text = text.encode(errors="replace").decode()  # JSON can hold halves of characters, which nothing else can
    return text.replace("\r\n", "\n").replace("\r", "\n")


def grade_id(cell: Cell) -> str | None:
    """By what nbgrader knows a cell, or None."""
    about = cell["metadata"].get("nbgrader")
    name = about.get("grade_id") if isinstance(about, dict) else None
    return name if isinstance(name, str) else None
