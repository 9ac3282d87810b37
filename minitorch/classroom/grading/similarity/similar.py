"""``minitorch similar``: the submissions for one exercise, compared with each other and with the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ....errors import CommandError
from ...parts import PACKAGE, sources
from ..course.folders import Course, submissions
from ..course.names import visible
from ..course.private import replace
from ..limits import Limits
from ..pages import render
from ..sheets import Sheet, plain
from ..submission.preflight import DamagedError, load, notebooks, text_of
from .pairs import Pair, compare
from .tokens import Party, Piece, party

SAYING = (
    "This accuses nobody. It shows where code is alike, not why: two people may have had the same idea, worked "
    "together as they were allowed to, or read the same book. Read the lines before you talk to anybody."
)
LARGEST = 100_000  # characters of one party that are read; a person writes a tenth of that. More costs time and memory
NOTEBOOKS = 10  # of one party that are read


@dataclass(frozen=True)
class Comparison:
    """The pairs of an exercise, the number of students compared, and what else to know of whom."""

    exercise: str
    students: int
    pairs: list[Pair]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        pairs = [
            {**vars(pair), "lines": pair.lines, "tokens": pair.tokens}
            | {"matches": [{**vars(each), "one": str(each.one), "other": str(each.other)} for each in pair.matches]}
            for pair in self.pairs
        ]
        return {**vars(self), "says": SAYING, "pairs": pairs}

    def __str__(self) -> str:
        lines = [f"{self.exercise}: {self.students} submissions, {len(self.pairs)} similar pairs", SAYING, ""]
        if self.pairs:
            width = max(len(name) for pair in self.pairs for name in (pair.one, pair.other))
            lines += [f"  {'one':<{width}}  {'other':<{width}}  {'alike':>11}  {'lines':>5}  tokens"]
            lines += [
                f"  {pair.one:<{width}}  {pair.other:<{width}}  {pair.shares:>11}  {pair.lines:>5}  {pair.tokens:>6}"
                for pair in self.pairs
            ]
        else:
            lines += ["Code that many have in common is left out; `--common 100` compares it, too."]
        return "\n".join([*lines, *([""] if self.notes else []), *self.notes])


def similar(course: Course, exercise: str, common: float, at_least: float, most: int) -> Comparison:
    """Compare the class's work for an exercise.

    Args:
        course: where things are.
        exercise: its name.
        common: code that more than this part of the class has does not count.
        at_least: the least part of a submission that another party has, too, for the pair to be listed.
        most: the number of pairs.

    Raises:
        CommandError: if there is nothing to compare.
    """
    found, notes = [], []
    for each in submissions(course, (exercise,))[0]:
        pieces, trouble = _student(each.folder)
        found.append(party(each.student, pieces))
        notes += [f"{each.student}: {said}" for said in trouble]
    if len(found) < 2:
        raise CommandError(f"nothing to compare: {len(found)} submission of {exercise} in {course.submitted}")
    try:
        handed_out = party("", list(_cells(course.release(exercise))))
    except DamagedError as error:
        raise CommandError(f"{course.release(exercise)}: {error.incident.text}; `minitorch release` makes it") from None
    pairs = compare([*found, engine()], handed_out.hashes, common, at_least, most)
    return Comparison(exercise, len(found), pairs, notes)


@cache
def engine() -> Party:
    """Return the package's own source as a party."""
    pieces = [Piece(str(path.relative_to(PACKAGE.parent)), path.read_text(encoding="utf-8")) for path in sources()]
    return party("minitorch", pieces, in_class=False)


def _student(folder: Path) -> tuple[list[Piece], list[str]]:
    """Return the code cells of a student's notebooks, and why some were not read."""
    pieces: list[Piece] = []
    notes: list[str] = []
    left = LARGEST
    for path in notebooks(folder)[:NOTEBOOKS]:
        try:
            for piece in _cells(path):
                pieces.append(Piece(piece.place, piece.source[: max(0, left)]))
                left -= len(piece.source)
        except DamagedError as error:
            notes.append(f"{path.name}: {error.incident.text}")
    if left < 0:
        notes.append(f"only the first {LARGEST} characters were compared")
    return pieces, notes if pieces or notes else ["no code"]


def _cells(path: Path) -> Iterator[Piece]:
    for number, cell in enumerate(load(path, Limits().notebook)["cells"], 1):
        if cell["cell_type"] == "code":
            yield Piece(f"cell {number}", text_of(cell))


def write(found: Comparison, folder: Path) -> list[Path]:
    """Write the page and the CSV; returns their paths."""
    rows = []
    for pair in found.pairs:
        where = "; ".join(f"{match.one} = {match.other}" for match in pair.matches)
        share = [f"{pair.share_of_one:.3f}", f"{pair.share_of_other:.3f}"]
        rows.append([plain(pair.one), plain(pair.other), *share, str(pair.lines), str(pair.tokens), plain(where)])
    sheet = Sheet(["one", "other", "share of one", "share of other", "lines", "tokens", "where"], rows)
    paths = [folder / f"{found.exercise}.html", folder / f"{found.exercise}.csv"]
    replace(paths[0], render("similar", title=f"{found.exercise}: similar submissions", says=SAYING, found=found))
    replace(paths[1], sheet.text())
    return paths


def common_lines(pairs: list[Pair]) -> str:
    """Return the common lines of pairs for a terminal, as the first of each two has written them."""
    lines = []
    for pair in pairs:
        lines += [f"{pair.one} | {pair.other}"]
        for match in pair.matches:
            lines += ["", f"{match.one} | {match.other}", *(f"    {visible(line)[:200]}" for line in match.one.text)]
        lines += [""]
    return "\n".join(lines)
