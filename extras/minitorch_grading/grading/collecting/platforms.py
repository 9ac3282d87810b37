"""The platforms of a course, one row each: how a path in a download is read, and where times come from.

Moodle: ``Ana Lopez_12345_assignsubmission_file_/03-graph.ipynb``. One folder a student, or one prefix if folders are
off. The last underline is missing from Moodle 4.1 on. The number is another one in each assignment.

Canvas: ``lopezana_LATE_1234_5678_03-graph-1.ipynb``. The name, whether it is late, the user's number, the file's number
(that of a later file is greater) and the file's name, with ``-1`` if one of that name was handed in before.

nbgrader's exchange: ``ana+03-graph+2026-11-22 10:00:00 UTC+random/03-graph.ipynb``. Its course, and any folder that is
filled by hand: ``ana/03-graph/03-graph.ipynb``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from ..course.handed_in import parsed
from ..course.names import refused, visible
from ..enrolment.roster import Roster, folded, folder_name, twins
from ..enrolment.worksheet import Participant

DEPTH, LONGEST = 20, 1000  # folders above a student's work, and characters of a path, that are looked at
STAMP = "timestamp.txt"


@dataclass(frozen=True)
class Platform:
    """One row.

    Attributes:
        name: of the platform.
        path: a student's file. Its groups are `key` (the person), `file`, and as far as the platform says it `name`,
            `exercise`, `time` (believed), `late` and `order` (a number that is greater for a later file).
        is_shared: whether everybody can write into its folder.
        has_worksheet: whether `key` is a number in a grading worksheet, which says the time.
        has_stamp: whether `timestamp.txt` beside the notebook is the collector's own, and believed.
    """

    name: str
    path: re.Pattern[str]
    is_shared: bool = False
    has_worksheet: bool = False
    has_stamp: bool = False


def _path(text: str) -> re.Pattern[str]:
    return re.compile(text.replace("NUMBER", r"\d{1,18}") + "(?P<file>.+)", re.DOTALL)


# In this order: whatever name a student takes, a platform puts its own marks behind it.
PLATFORMS = (
    Platform(
        "moodle", _path(r"(?P<name>[^/]+?)_(?P<key>NUMBER)_assignsubmission_(file|onlinetext)_?/?"), has_worksheet=True
    ),
    Platform("canvas", _path(r"(?P<name>anon)_((?P<late>LATE)_)?(?P<key>[A-Za-z0-9]{1,20})_(?P<order>NUMBER)_")),
    Platform("canvas", _path(r"(?P<name>\w+?)(_(?P<late>LATE))?_(?P<key>NUMBER)_(?P<order>NUMBER)_")),
    Platform(
        "nbgrader",
        _path(r"(?P<key>[^+/]+)\+(?P<exercise>[^+/]+)\+(?P<time>\d{4}-\d\d-\d\d[^+/]*)(\+[^/]*)?/"),
        is_shared=True,
        has_stamp=True,
    ),
    Platform("nbgrader", _path(r"(?P<key>[^/]+)/(?P<exercise>[^/]+)/"), has_stamp=True),
)


@dataclass(frozen=True)
class Handed:
    """A file that was handed in: who it is from, and what its path says, as of the groups in `Platform.path`.

    Attributes:
        platform: the row.
        place: the folder or zip that the platform made of an assignment.
        mark: the part of the path that brings feedback back to the person.
        file: its path, as the student gave it.
    """

    platform: Platform
    place: tuple[str, ...]
    mark: str
    key: str
    file: str
    name: str = ""
    exercise: str | None = None
    time: str | None = None
    order: str = "0"
    late: str | None = None

    @property
    def short(self) -> str:
        """Its name without folders."""
        return re.split(r"[/\\]", self.file)[-1]

    @property
    def parcel(self) -> tuple[object, ...]:
        """What was handed in together has the same: all files of a person, but nbgrader has a folder for each time."""
        return self.place, self.platform.name, self.key, self.mark if self.platform.has_stamp else self.late


def recognise(above: tuple[str, ...], parts: tuple[str, ...], exercises: Collection[str]) -> Handed | None:
    """Read whose a file is out of its path; None if no platform names files so. The outermost part that says it counts.

    Args:
        above: of the download.
        parts: of the path in it.
        exercises: names of exercises; in a path where one has to be, no other name is one.

    Example:
        >>> found = recognise(("d.zip",), ("lopezana_LATE_1234_5678_x.ipynb",), ["03-graph"])
        >>> found.platform.name, found.key, found.file, found.late
        ('canvas', '1234', 'x.ipynb', 'LATE')
    """
    for depth in range(min(len(parts), DEPTH)):
        text = "/".join(parts[depth:])[:LONGEST]
        for platform in PLATFORMS:
            found = platform.path.fullmatch(text)
            if found and ("exercise" not in found.groupdict() or found["exercise"] in exercises):
                mark = text[: found.start("file")].rstrip("/").replace("_onlinetext", "_file")
                return Handed(platform, (*above, *parts[:depth]), mark, **found.groupdict())
    return None


def time_of(text: str | None) -> datetime | None:
    """A time as nbgrader writes it; None if it is none. In a file's name a colon may be an underline."""
    try:
        return parsed(text.replace("_", ":").strip()) if text else None
    except (ValueError, OverflowError):
        return None


class UnknownError(Exception):
    """A sender who is no student of the course; the argument is the reason."""


class People:
    """The students of a course, and who else was met in this download.

    Args:
        roster: who is in the course; None if anybody may be.
        participants: Moodle's people by their numbers.
        known: the students who have folders.
    """

    def __init__(self, roster: Roster | None, participants: Mapping[str, Participant], known: Iterable[str]) -> None:
        self._roster, self._participants = roster, participants
        self._folders = {folded(name): name for name in known}
        self._met: dict[tuple[str, ...], str] = {}

    def student(self, sender: Handed) -> str:
        """The name of the student's folder; nobody is in one download under two numbers.

        Raises:
            UnknownError: if it is nobody of the roster, or has no name that can be one of a folder.
        """
        student = self._named(sender) if self._roster is None else self._in_roster(self._roster, sender)
        if reason := refused(student):
            raise UnknownError(f"{reason}; a roster can give another")
        key = self._met.setdefault((folded(student), sender.platform.name, *sender.place), sender.key)
        if folded(key) != folded(sender.key):
            two = f"is the name of two people, {visible(key)} and {visible(sender.key)}"
            apart = "a roster, with Moodle's grading worksheet, tells them apart"
            raise UnknownError(f"{visible(sender.name or student)} {two}; {apart}")
        if (name := self._folders.setdefault(folded(student), student)) != student:
            raise UnknownError(f"{twins(student, name)}; a roster can give another name")
        return student

    def when(self, sender: Handed) -> datetime | None:
        """When a sender handed in, in UTC, if Moodle's worksheet says so."""
        return known.when if (known := self._participant(sender)) else None

    def _participant(self, sender: Handed) -> Participant | None:
        return self._participants.get(sender.key) if sender.platform.has_worksheet else None

    def _in_roster(self, roster: Roster, sender: Handed) -> str:
        known = self._participant(sender)
        if known is not None:
            person = roster.find(known.name or sender.name, email=known.email, number=known.number)
        elif sender.platform.has_stamp:
            person = roster.find("", student=sender.key, login=sender.key, email=sender.key)
        else:
            person = roster.find(sender.name, canvas="" if sender.platform.has_worksheet else sender.key)
        if person is None:
            name = visible(sender.name or sender.key)
            raise UnknownError(f"{name} ({visible(sender.key)}) is not on the roster, or there more than once")
        return person.student

    def _named(self, sender: Handed) -> str:
        if sender.platform.has_stamp:
            return sender.key
        known = self._participant(sender)
        name = folder_name(known.name if known and known.name else sender.name)
        numbered = not sender.platform.has_worksheet or not name or name in ("participant", "anon")
        return f"{name or 'student'}-{sender.key}" if numbered else name
