"""``minitorch similar``: the submissions for one exercise, compared with each other and with the engine."""

from __future__ import annotations

from pathlib import Path

from ..course.folders import Course
from ..course.private import replace
from .fingerprints import kgrams
from .page import page
from .pairs import compare
from .parties import engine, handed_out, students
from .table import Comparison, as_csv


def similar(course: Course, exercise: str, common: float, at_least: float, most: int) -> Comparison:
    """Compare the class's work for an exercise.

    Args:
        course: where things are.
        exercise: its name.
        common: code that more than this part of the class has does not count.
        at_least: the least part of a submission that another party has, too, for the pair to be listed.
        most: number of pairs.

    Raises:
        CommandError: if there is nothing to compare.
    """
    release = course.release(exercise)
    without = kgrams(handed_out([release] if release.is_file() else []))
    found = students(course.submitted, exercise)
    pairs = compare([*found, engine()], without, common, at_least, most)
    notes = [f"{party.name}: {party.note}" for party in found if party.note]
    if not release.is_file():
        notes.append(f"There is no {release}, so code that was handed out counts, too.")
    return Comparison(exercise, len(found), pairs, notes)


def write(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the page and the CSV; returns their paths."""
    texts = {
        folder / f"{comparison.exercise}.html": page(comparison),
        folder / f"{comparison.exercise}.csv": as_csv(comparison),
    }
    for path, text in texts.items():
        replace(path, text)
    return list(texts)
