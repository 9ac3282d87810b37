"""``minitorch similar``: the submissions for one exercise, compared with each other and with the engine.

Programs are compared by their runs of K tokens, where names, literals, comments and layout make no difference: the
k-grams of document fingerprinting (Schleimer, Wilkerson and Aiken, *Winnowing*, SIGMOD 2003). A class is small enough
to keep all of them. Pygments cuts any text into tokens, whether it is Python or not.
"""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

from pygments.lexers import PythonLexer
from pygments.token import Comment, Name, Number, String, Text

from minitorch.errors import CommandError

from ..dependencies import place_of, sources
from .course.folders import Course, read_exercise, submissions
from .course.names import visible
from .course.private import replace as write_file
from .course.running.keys import work_of
from .limits import Limits
from .pages import render
from .sheets import Sheet, plain
from .submission.preflight import DamagedError, parsed, read

SAYING = (
    "This accuses nobody. It shows where code is alike, not why: two people may have had the same idea, worked "
    "together as they were allowed to, or read the same book. Read the lines before you talk to anybody."
)
K = 12  # tokens, some two lines; a larger number ignores shorter copies, a smaller one finds what everyone writes
SMALL = 4  # parties; in a small class, what so many or fewer share is not yet common
LARGEST = 100_000  # characters of one party that are read; a person writes a tenth of that. More costs time and memory

_LEXER = PythonLexer(stripnl=False, ensurenl=False)
_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True)
class Piece:
    """A cell or a file: its place, as a reader is told it, and its source."""

    place: str
    source: str


@dataclass(frozen=True)
class Party:
    """One party of a comparison.

    Attributes:
        name: of the student, or of the package.
        pieces: its code.
        at: of each token its piece and its line, from 0.
        runs: its runs of K tokens, each with the number of the token with which it begins first.
        in_class: whether it is a student.
    """

    name: str
    pieces: tuple[Piece, ...]
    at: list[tuple[int, int]]
    runs: dict[str, int]
    in_class: bool = True


@dataclass(frozen=True)
class Lines:
    """Some lines of a piece: its place, the first line (from 1), and the lines as they are written."""

    place: str
    first: int
    text: tuple[str, ...]

    def __str__(self) -> str:
        last = self.first + len(self.text) - 1
        return f"{self.place}, line {self.first}" if last == self.first else f"{self.place}, lines {self.first}-{last}"


@dataclass(frozen=True)
class Match:
    """The same tokens in two parties: the lines of each, where the first party has them, and the number of tokens."""

    one: Lines
    other: Lines
    begin: int
    tokens: int


@dataclass(frozen=True)
class Pair:
    """Two parties that have code in common: of each one's runs of tokens the share that the other has, from 0 to 1."""

    one: str
    other: str
    share_of_one: float
    share_of_other: float
    matches: tuple[Match, ...]

    @property
    def tokens(self) -> int:
        """The number of the first party's tokens in common; matches overlap, and each token counts once."""
        return len({each for match in self.matches for each in range(match.begin, match.begin + match.tokens)})

    @property
    def lines(self) -> int:
        """The number of lines in common, as the first party has written them."""
        found = (match.one for match in self.matches)
        return len({(each.place, each.first + number) for each in found for number in range(len(each.text))})

    @property
    def shares(self) -> str:
        """Both shares in words; of the engine none, since it is large."""
        return " ".join(f"{share:.0%}" if share else "-" for share in (self.share_of_one, self.share_of_other))


@dataclass(frozen=True)
class Comparison:
    """The pairs of an exercise, the number of students compared, and what else to know of whom.

    `common` is the number of students whose code was left out in part, since many have the same.
    """

    exercise: str
    students: int
    pairs: list[Pair]
    notes: list[str]
    common: int = 0

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
        if self.common:
            many = f"Code that many have in common is left out, in the work of {self.common} of {self.students}"
            lines += ["", f"{many}; `--common 100` compares it, too."]
        return "\n".join([*lines, *([""] if self.notes else []), *self.notes])


# --- tokens --------------------------------------------------------------------------------------------------------


def folded(source: str) -> Iterator[tuple[str, int]]:
    """Yield the folded tokens of a text, each with its line, from 0.

    Names become ``name``, but for built-ins and attributes, which belong to a library more often than to whoever
    writes. Literals become ``0`` and ``""``.

    Example:
        >>> [token for token, line in folded("total = x.sum(3.5)  # all of it")]
        ['name', '=', 'name', '.', 'sum', '(', '0', ')']
        >>> [token for token, line in folded("def f(:  'unfinished")]
        ['def', 'name', '(', ':', '""']
    """
    line, owner, before = 0, "", ""
    for kind, text in _LEXER.get_tokens(source):
        here, line = line, line + text.count("\n")
        if kind in Text or kind in Comment or kind in String.Doc:
            continue
        token = text.strip()
        if kind in String and kind not in String.Interpol:
            token = '""'
        elif kind in Number:
            token = "0"
        elif kind in Name:
            is_known = token in _BUILTINS or (before == "." and owner != "self")
            token, owner = token if is_known else "name", token
        if (token, before) != ('""', '""'):  # the parts of one text
            yield token, here
        before = token


def party(name: str, pieces: Sequence[Piece], in_class: bool = True) -> Party:
    """Return a party with its runs of tokens; none goes over the end of a piece."""
    at: list[tuple[int, int]] = []
    runs: dict[str, int] = {}
    for number, piece in enumerate(pieces):
        tokens, begin = [], len(at)
        for token, line in folded(piece.source):
            tokens.append(token)
            at.append((number, line))
        for place in range(len(tokens) - K + 1):
            runs.setdefault(" ".join(tokens[place : place + K]), begin + place)
    return Party(name, tuple(pieces), at, runs, in_class)


# --- pairs ---------------------------------------------------------------------------------------------------------


def compare(
    parties: Sequence[Party], without: Collection[str], common: float, at_least: float, most: int
) -> tuple[list[Pair], int]:
    """Return the most similar pairs, those with the most common tokens first, and how many have code that many have.

    Args:
        parties: at least one of each pair is in the class.
        without: runs of tokens that do not count: those of the code that was handed out.
        common: runs that more than this part of the class has do not count.
        at_least: the least share of runs, of either party, for a pair to be listed. The engine's own share is none,
            since it is large.
        most: the number of pairs.
    """
    students = [each for each in parties if each.in_class]
    counts = Counter(run for each in students for run in each.runs)
    bound = max(SMALL, common * len(students))
    kept = {run for run, count in counts.items() if count <= bound and run not in without}
    counted = [replace(each, runs={run: at for run, at in each.runs.items() if run in kept}) for each in parties]
    found = []
    for one, other in combinations(counted, 2):
        shared = one.runs.keys() & other.runs.keys()
        here, there = (each.in_class * len(shared) / max(1, len(each.runs)) for each in (one, other))
        if shared and max(here, there) >= at_least:
            found.append((len(shared), one, other, here, there))
    found.sort(key=lambda each: -each[0])
    pairs = [
        Pair(one.name, other.name, here, there, _matches(one, other)) for _, one, other, here, there in found[:most]
    ]
    many = {run for run, count in counts.items() if count > bound and run not in without}
    return pairs, sum(not many.isdisjoint(each.runs) for each in students)


def _matches(one: Party, other: Party) -> tuple[Match, ...]:
    """Return the longest sequences of common tokens, longest first."""
    places = sorted((one.runs[run], other.runs[run]) for run in one.runs.keys() & other.runs.keys())
    found = []
    for _, group in groupby(enumerate(places), key=lambda each: (each[1][0] - each[0], each[1][1] - each[0])):
        sequence = [place for _, place in group]
        count = len(sequence) + K - 1
        here, there = sequence[0]
        found.append(Match(_lines(one, here, count), _lines(other, there, count), here, count))
    return tuple(sorted(found, key=lambda match: -match.tokens))


def _lines(party: Party, begin: int, count: int) -> Lines:
    (piece, first), (_, last) = party.at[begin], party.at[begin + count - 1]
    place = party.pieces[piece]
    return Lines(place.place, first + 1, tuple(place.source.split("\n")[first : last + 1]))


# --- a class -------------------------------------------------------------------------------------------------------


def similar(course: Course, exercise: str, common: float, at_least: float, most: int) -> Comparison:
    """Compare the class's work for an exercise; the arguments are those of `compare`.

    Raises:
        CommandError: if there is nothing to compare.
    """
    found, notes = [], []
    same: dict[str, list[str]] = {}
    for student, _ in submissions(course, (exercise,))[0]:
        pieces, trouble = _code(course.submitted / student / exercise)
        same.setdefault(work_of(read(course.submitted / student / exercise, exercise, Limits().notebook)), []).append(
            student
        )
        found.append(party(student, pieces))
        notes += [f"{student}: {said}" for said in trouble]
    if len(found) < 2:
        raise CommandError(f"nothing to compare: {len(found)} submission of {exercise} in {course.submitted}")
    handed_out = [Piece("", part.source) for part in read_exercise(course, exercise) if part.kind == "code"]
    pairs, many = compare([*found, engine()], party("", handed_out).runs, common, at_least, most)
    notes += [f"The same notebook, byte for byte: {', '.join(each)}." for each in same.values() if len(each) > 1]
    return Comparison(exercise, len(found), pairs, notes, many)


@cache
def engine() -> Party:
    """Return the package's own source as a party."""
    pieces = [Piece(str(place_of(path)), path.read_text(encoding="utf-8")) for path in sources()]
    return party("minitorch", pieces, in_class=False)


def _code(folder: Path) -> tuple[list[Piece], list[str]]:
    """Return the code cells of a student's notebooks, and why some were not read."""
    pieces: list[Piece] = []
    notes: list[str] = []
    left = LARGEST
    for name, content in read(folder, folder.name, Limits().notebook).items():
        try:
            cells = parsed(content)["cells"]
        except DamagedError as error:
            notes.append(f"{name}: {error.incident.text}")
            continue
        for number, cell in enumerate(cells, 1):
            if cell["cell_type"] == "code":
                pieces.append(Piece(f"cell {number}", cell["source"][: max(0, left)]))
                left -= len(cell["source"])
    if left < 0:
        notes.append(f"only the first {LARGEST} characters were compared")
    return pieces, notes if pieces or notes else ["no code"]


def write(found: Comparison, folder: Path) -> list[Path]:
    """Write the page and the CSV; returns their paths."""
    rows = []
    for pair in found.pairs:
        where = "; ".join(f"{match.one} = {match.other}" for match in pair.matches)
        share = [f"{pair.share_of_one:.3f}", f"{pair.share_of_other:.3f}"]
        rows.append([plain(pair.one), plain(pair.other), *share, str(pair.lines), str(pair.tokens), plain(where)])
    sheet = Sheet(["one", "other", "share of one", "share of other", "lines", "tokens", "where"], rows)
    paths = [folder / f"{found.exercise}.html", folder / f"{found.exercise}.csv"]
    write_file(paths[0], render("similar", title=f"{found.exercise}: similar submissions", says=SAYING, found=found))
    write_file(paths[1], sheet.text())
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
