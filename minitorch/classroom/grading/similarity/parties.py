"""Those who are compared: each submission of an exercise, and the engine, whose source everybody has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ....errors import CommandError
from ...parts import PACKAGE, sources
from ..limits import Limits
from ..submission.preflight import DamagedError, load, text_of
from .tokens import LARGEST, Text, Tokens, cut, tokens_of

ENGINE = "minitorch"


@dataclass(frozen=True)
class Party:
    """One party of the comparison.

    Attributes:
        name: the student, or the engine.
        pieces: its cells or files.
        tokens: of these.
        in_class: whether it is a student's.
        note: why not all of it was read, or nothing; empty if all was.
    """

    name: str
    pieces: tuple[Text, ...]
    tokens: Tokens
    in_class: bool = True
    note: str = ""


def code_cells(path: Path) -> tuple[Text, ...]:
    """The code cells of a notebook.

    Raises:
        DamagedError: if it cannot be read.
    """
    cells = load(path, Limits().notebook)["cells"]
    return tuple(
        Text(f"cell {number}", text_of(cell)) for number, cell in enumerate(cells, 1) if cell["cell_type"] == "code"
    )


def student(name: str, folder: Path) -> Party:
    """A student's submission; all its notebooks, if there are several."""
    pieces: list[Text] = []
    notes: list[str] = []
    for path in _notebooks(folder):
        try:
            pieces += code_cells(path)
        except DamagedError as error:
            notes.append(f"{path.name}: {error.incident.text}")
    if sum(len(piece.source) for piece in pieces) > LARGEST:
        notes.append(f"only the first {LARGEST} characters were compared")
    if not pieces and not notes:
        notes.append("no code")
    kept = cut(tuple(pieces))
    return Party(name, kept, tokens_of(kept), note="; ".join(notes))


def _notebooks(folder: Path, most: int = 10) -> list[Path]:
    """The notebooks that lie in a folder, without its subfolders."""
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix == ".ipynb")
    except OSError:
        return []
    return found[:most]


@cache
def engine() -> Party:
    """The package's own source."""
    pieces = tuple(Text(str(path.relative_to(PACKAGE.parent)), path.read_text(encoding="utf-8")) for path in sources())
    return Party(ENGINE, pieces, tokens_of(pieces), in_class=False)


def students(submitted: Path, exercise: str) -> list[Party]:
    """The submissions for an exercise.

    Raises:
        CommandError: if there are fewer than two.
    """
    found = [student(folder.parent.name, folder) for folder in _folders(submitted, exercise)]
    if len(found) < 2:
        raise CommandError(f"nothing to compare: {len(found)} submissions of {exercise} in {submitted}")
    return found


def _folders(submitted: Path, exercise: str) -> Iterator[Path]:
    if not submitted.is_dir():
        raise CommandError(f"there is no folder {submitted}; `minitorch collect` fills it")
    for owner in sorted(submitted.iterdir()):
        folder = owner / exercise
        named = owner.name.isprintable() and not owner.name.startswith(".")
        if named and folder.is_dir() and not owner.is_symlink() and not folder.is_symlink():
            yield folder


def handed_out(paths: Sequence[Path]) -> Tokens:
    """The tokens of what was handed out."""
    pieces: list[Text] = []
    for path in paths:
        try:
            pieces += code_cells(path)
        except DamagedError as error:
            raise CommandError(f"{path}: {error.incident.text}; `minitorch release` makes it again") from None
    return tokens_of(tuple(pieces))
