"""Whose a file is, and when it was handed in, by how platforms name the files of a download.

Moodle: ``Ana Lopez_12345_assignsubmission_file_/03-graph.ipynb``. One folder a student, or one prefix if folders are
off. The last underline is missing from Moodle 4.1 on. The number is another one in each assignment.

Canvas: ``lopezana_LATE_1234_5678_03-graph-1.ipynb``. The name, whether it is late, the user's number, the file's number
(that of a later file is greater) and the file's name, with ``-1`` if one of that name was handed in before.

nbgrader's exchange: ``inbound/ana+03-graph+2026-11-22 10:00:00 UTC+random/03-graph.ipynb``.

nbgrader's course: ``submitted/ana/03-graph/03-graph.ipynb``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from ..course.handed_in import parsed
from .entries import Entry

MOODLE = re.compile(
    r"(?P<name>.+?)_(?P<key>\d{1,18})_assignsubmission_(?P<plugin>file|onlinetext)_?(?P<file>.*)", re.DOTALL
)
CANVAS = re.compile(r"(?P<name>\w+?)(?:_(?P<late>LATE))?_(?P<key>\d{1,18})_(?P<order>\d{1,18})_(?P<file>.+)", re.DOTALL)
ANONYMOUS = re.compile(
    r"anon_(?:(?P<late>LATE)_)?(?P<key>[A-Za-z0-9]{1,20})_(?P<order>\d{1,18})_(?P<file>.+)", re.DOTALL
)
EXCHANGE = re.compile(r"(?P<key>[^+]+)\+(?P<exercise>[^+]+)\+(?P<time>\d{4}-\d\d-\d\d[^+]*)(?:\+(?P<random>.*))?")


@dataclass(frozen=True)
class Sender:
    """Who handed something in, as the platform writes it.

    Attributes:
        platform: ``"moodle"``, ``"canvas"`` or ``"nbgrader"``.
        key: the platform's number or name for the person.
        name: the person's name, as far as the platform's file name has it.
        mark: the part of the file name that brings feedback back to the person.
    """

    platform: str
    key: str
    name: str
    mark: str


@dataclass(frozen=True)
class Handed:
    """A file that was handed in.

    Attributes:
        sender: who it is from.
        file: its name, as the student gave it.
        entry: where it is.
        place: the folder or zip that it came in; files of one sender and one place belong together.
        exercise: what it is for, if the path says so.
        when: the time in UTC, if the path says so.
        order: a number that is greater for a later file; 0 if there is none.
        late: whether the platform marks it as late.
    """

    sender: Sender
    file: str
    entry: Entry
    place: tuple[str, ...]
    exercise: str | None = None
    when: datetime | None = None
    order: int = 0
    late: bool = False


Recogniser = Callable[[Entry, int, Collection[str]], Handed | None]


def _moodle(entry: Entry, depth: int, exercises: Collection[str]) -> Handed | None:
    part = entry.parts[depth]
    found = MOODLE.fullmatch(part)
    if found is None or found["plugin"] != "file":
        return None
    mark = part[: found.start("file")]
    file = entry.parts[-1] if depth + 1 < len(entry.parts) else found["file"]
    sender = Sender("moodle", found["key"], found["name"], mark)
    return Handed(sender, file, entry, (*entry.parts[:depth], mark)) if file else None


def _canvas(entry: Entry, depth: int, exercises: Collection[str]) -> Handed | None:
    part = entry.parts[depth]
    found = ANONYMOUS.fullmatch(part) or CANVAS.fullmatch(part)
    if found is None:
        return None
    name = found.groupdict().get("name", "anon")
    file = entry.parts[-1] if depth + 1 < len(entry.parts) else found["file"]
    sender = Sender("canvas", found["key"], name, part[: found.start("file")])
    place = entry.parts[: depth + 1]
    return Handed(sender, file, entry, place, order=int(found["order"]), late=found["late"] is not None)


def _exchange(entry: Entry, depth: int, exercises: Collection[str]) -> Handed | None:
    found = EXCHANGE.fullmatch(entry.parts[depth])
    if found is None or depth + 1 == len(entry.parts) or found["exercise"] not in exercises:
        return None
    try:
        when = parsed(found["time"].replace("_", ":").strip())  # a colon cannot be in a file name everywhere
    except ValueError:
        when = None
    sender = Sender("nbgrader", found["key"], found["key"], "")
    return Handed(sender, entry.parts[-1], entry, entry.parts[: depth + 1], found["exercise"], when)


def _submitted(entry: Entry, depth: int, exercises: Collection[str]) -> Handed | None:
    if depth + 2 >= len(entry.parts) or entry.parts[depth + 1] not in exercises:
        return None
    student, exercise = entry.parts[depth : depth + 2]
    return Handed(Sender("nbgrader", student, student, ""), entry.parts[-1], entry, entry.parts[: depth + 2], exercise)


RECOGNISERS: tuple[Recogniser, ...] = (_exchange, _moodle, _canvas, _submitted)


def recognise(entry: Entry, exercises: Collection[str]) -> Handed | None:
    """Whose a file is; None if no platform names files so. The outermost part of the path that says it counts."""
    for depth in range(len(entry.parts)):
        for recogniser in RECOGNISERS:
            if (found := recogniser(entry, depth, exercises)) is not None:
                return found
    return None


def plain_name(file: str) -> str:
    """The name of a notebook without what platforms and browsers add to it, and without its ending.

    Example:
        >>> plain_name("03-graph-2.ipynb"), plain_name("03-graph (1).ipynb"), plain_name("03-graph.ipynb")
        ('03-graph', '03-graph', '03-graph')
    """
    stem = re.sub(r"(?i)\.ipynb$", "", file)
    return re.sub(r"(?:[-_ ]\d{1,3}|\s*\(\d{1,3}\)|\s*[-_ ]copy\d*)$", "", stem, flags=re.IGNORECASE)
