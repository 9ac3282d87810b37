"""A comparison as text for the terminal, as CSV, and as plain data."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ..sheets import plain
from .pairs import Lines, Match, Pair

SAYING = (
    "This accuses nobody. It shows where code is alike, not why: two people may have had the same idea, worked "
    "together as they were allowed to, or read the same book. Read the lines before you talk to anybody."
)
WIDTH = 56  # characters of a line, for two of them to fit side by side
LONGEST = 60  # lines of a match that are shown


@dataclass(frozen=True)
class Comparison:
    """The pairs of an exercise, the number of students compared, and what else to know of whom."""

    exercise: str
    students: int
    pairs: list[Pair]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "exercise": self.exercise,
            "students": self.students,
            "says": SAYING,
            "pairs": [_pair(pair) for pair in self.pairs],
            "notes": self.notes,
        }

    def __str__(self) -> str:
        plural = "" if len(self.pairs) == 1 else "s"
        head = f"{self.exercise}: {self.students} submissions, {len(self.pairs)} similar pair{plural}"
        lines = [head, SAYING]
        if not self.pairs:
            lines += ["", "Code that many have in common is left out; `--common 100` compares it, too."]
        else:
            width = max(len(name) for pair in self.pairs for name in (pair.one, pair.other))
            lines += ["", f"  {'one':<{width}}  {'other':<{width}}  {'alike':>11}  {'lines':>5}  tokens"]
            lines += [
                f"  {pair.one:<{width}}  {pair.other:<{width}}  {shares(pair):>11}  {pair.lines:>5}  {pair.tokens:>6}"
                for pair in self.pairs
            ]
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines)


def shares(pair: Pair) -> str:
    """Of each party, the part that the other has, too; of the engine none, since it is large."""
    return " ".join(f"{share:.0%}" if share else "-" for share in (pair.share_of_one, pair.share_of_other))


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "one": pair.one,
        "other": pair.other,
        "share_of_one": round(pair.share_of_one, 3),
        "share_of_other": round(pair.share_of_other, 3),
        "lines": pair.lines,
        "tokens": pair.tokens,
        "matches": [
            {"one": str(match.one), "other": str(match.other), "tokens": match.tokens} for match in pair.matches
        ],
    }


def side_by_side(pairs: Iterable[Pair]) -> str:
    """The common lines of pairs, in two columns."""
    lines: list[str] = []
    for pair in pairs:
        lines += [f"{pair.one} | {pair.other}", ""]
        for match in pair.matches:
            lines += [f"{match.one!s:<{WIDTH}} | {match.other}"]
            lines += [f"{_short(one):<{WIDTH}} | {_short(other)}".rstrip() for one, other in rows(match)]
            lines.append("")
    return "\n".join(lines)


def rows(match: Match) -> Iterable[tuple[str, str]]:
    """The lines of a match, beside each other."""
    return zip_longest(_shown(match.one), _shown(match.other), fillvalue="")


def _shown(lines: Lines) -> list[str]:
    more = len(lines.text) - LONGEST
    return [*lines.text[:LONGEST], *([f"... {more} more lines"] if more > 0 else [])]


def _short(line: str) -> str:
    """A line for a terminal, whatever a student has put into it."""
    line = "".join(each if each.isprintable() else " " for each in line[: 2 * WIDTH].expandtabs(4))
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."


def as_csv(comparison: Comparison) -> str:
    """The pairs as CSV, a row for each."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["one", "other", "share of one", "share of other", "lines", "tokens", "where"])
    for pair in comparison.pairs:
        where = "; ".join(f"{match.one} = {match.other}" for match in pair.matches)
        share = [f"{pair.share_of_one:.3f}", f"{pair.share_of_other:.3f}"]
        writer.writerow([plain(pair.one), plain(pair.other), *share, pair.lines, pair.tokens, plain(where)])
    return file.getvalue()
