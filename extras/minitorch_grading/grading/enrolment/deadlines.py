"""Due dates, extensions and what being late costs: `deadlines.toml` in the folder of the course.

zone = "Europe/Madrid"               # of times that name none; UTC if this is left out
keep = "latest"                      # of several attempts; or "best", by points after penalties

[late]                               # for all exercises that say nothing else
grace = "15 minutes"                 # until then it is not late
per_day = "10 %"                     # of what the exercise can give, for each day begun; or a number of points
at_most = "50 %"                     # no more than this is taken
until = "7 days"                     # what comes later has no points

[exercises.03-graph]
due = 2026-11-22T23:59:00
late = { per_day = 5 }               # only what differs
extensions = { ana = "3 days", eve = 2026-12-01T12:00:00 }
handed_in = { ana = 2026-11-23T08:30:00 }    # where the platform's download does not say it
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from minitorch.errors import CommandError

from ..course.names import visible
from .roster import Roster, folded, roster_of, students_of, twins

FILE = "deadlines.toml"
KEEPS = ("latest", "best")
DAY = timedelta(days=1)
Parser = Callable[[Any, str], Any]  # reads a value of the file; the text says where it stands


@dataclass(frozen=True)
class Amount:
    """A number of points, or a share of what an exercise can give."""

    points: float = 0.0
    share: float = 0.0

    def of(self, maximum: float) -> float:
        """The amount in points."""
        return self.points + self.share * maximum


@dataclass(frozen=True)
class Late:
    """The cost of being late. A field that is None sets no bound."""

    grace: timedelta = timedelta()
    per_day: Amount = field(default_factory=Amount)
    at_most: Amount | None = None
    until: timedelta | None = None


@dataclass(frozen=True)
class Deadline:
    """The rules of one exercise. Times are in UTC."""

    due: datetime | None = None
    late: Late = field(default_factory=Late)
    extensions: dict[str, datetime | timedelta] = field(default_factory=dict)
    handed_in: dict[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True)
class Penalty:
    """The cost of one late submission.

    Attributes:
        points: taken from what was earned.
        days: begun since the due date; 0 if it was in time.
        assumed: whether the platform says that it is late, and not since when; then it is taken for one day.
        is_known: whether it is known to be late, or not: there is no due date, or a time, or the platform's mark.
    """

    points: float = 0.0
    days: int = 0
    assumed: bool = False
    is_known: bool = True

    def __str__(self) -> str:
        if not self.days:
            return "in time"
        late = f"{self.days} day{'s' if self.days > 1 else ''} late"
        return f"{late}{', as the platform marks it' if self.assumed else ''}: {self.points:g} points less"


IN_TIME = Penalty()


@dataclass(frozen=True)
class Deadlines:
    """The rules of a course."""

    keep: str = "latest"
    late: Late = field(default_factory=Late)
    exercises: dict[str, Deadline] = field(default_factory=dict)
    zone: tzinfo = UTC

    def of(self, exercise: str) -> Deadline:
        """The rules of an exercise."""
        return self.exercises.get(exercise, Deadline(late=self.late))

    def penalty(
        self, student: str, exercise: str, when: datetime | None, late: bool, earned: float, maximum: float
    ) -> Penalty:
        """The penalty of a submission.

        Args:
            student, exercise: whose it is, and for what.
            when: the time at which it was handed in, in UTC; None if that is not known.
            late: whether the platform says that it was late.
            earned, maximum: its points, and those that the exercise can give.
        """
        rules = self.of(exercise)
        when = rules.handed_in.get(student, when)
        extension = rules.extensions.get(student, timedelta())
        due = extension if isinstance(extension, datetime) else rules.due and rules.due + extension
        if when is None:  # then the platform's mark counts, but not against an extension, which is not the platform's
            by = DAY if late and student not in rules.extensions else timedelta()
        else:
            by = when - due if due is not None and when > due + rules.late.grace else timedelta()
        days = math.ceil(by / DAY)
        is_over = when is not None and rules.late.until is not None and by > rules.late.until
        most = earned if is_over or rules.late.at_most is None else rules.late.at_most.of(maximum)
        points = most if is_over else rules.late.per_day.of(maximum) * days
        is_known = late or due is None or when is not None
        return Penalty(min(points, most, earned), days, assumed=when is None and days > 0, is_known=is_known)


def deadlines_of(course: Path, students: Collection[str] | None = None) -> Deadlines:
    """Return the rules in the folder of a course; none if there is no file.

    Args:
        course: the folder.
        students: who is in it; by default those on the roster, or without one those who have folders. If they are
            empty, every name is taken.

    Raises:
        CommandError: if the file is not as it should be, or names an exercise or a student that is not known; it says
            where. Also if two students' folders have names that are one on some file systems.
    """
    path = course / FILE
    names = students_of(course)
    if same := [pair for pair in pairwise(sorted(names, key=folded)) if folded(pair[0]) == folded(pair[1])]:
        raise CommandError(f"{course / 'submitted'}: {twins(*same[0])}")
    if students is None:
        students = names if (roster := roster_of(course)) is None else roster.by_student
    exercises = [each.name for place in ("exercises", "solutions") for each in (course / place).glob("*/")]
    try:
        found = _deadlines(tomllib.loads(path.read_text(encoding="utf-8-sig")))
        for exercise, rules in found.exercises.items():
            _known(exercise, exercises, "exercise", "exercises")
            for field in ("extensions", "handed_in"):
                for student in getattr(rules, field):
                    _known(student, students, "student", f"exercises.{exercise}.{field}")
    except FileNotFoundError:
        return Deadlines()
    except (OSError, ValueError, OverflowError) as error:
        raise CommandError(f"{path}: {error}") from None
    return found


@dataclass(frozen=True)
class Rules:
    """Who is in a course, if it has a roster, and until when work is due."""

    deadlines: Deadlines
    roster: Roster | None

    @classmethod
    def of(cls, course: Path, roster: str | None = None, is_begun: bool = True) -> Rules:
        """Those in the folder of a course.

        Args:
            course: the folder.
            roster: a file that is the roster in place of the one there.
            is_begun: whether students without a roster are known by now: those who have handed in something.

        Raises:
            CommandError: if they cannot be read, or name somebody who is not known.
        """
        people = roster_of(course, roster)
        return cls(deadlines_of(course, people.by_student if people else None if is_begun else ()), people)


def _known(name: str, names: Collection[str], what: str, place: str) -> None:
    """Refuse a name that is none of those that are known, if any are."""
    if names and name not in names:
        by_form = {folded(each): each for each in names}
        near = [by_form[each] for each in get_close_matches(folded(name), by_form)]
        known = f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(sorted(names)[:9])}"
        raise ValueError(visible(f"{place}: there is no {what} {name}; {known}"))


def _deadlines(data: dict[str, Any]) -> Deadlines:
    zone = _zone(data.get("zone", "UTC"), "")
    late = _late(Late(), data.get("late", {}), "late")
    time = partial(_time, zone)

    def extension(value: Any, place: str) -> datetime | timedelta:
        return _span(value, place) if isinstance(value, str) else time(value, place)

    def rules(value: Any, place: str) -> Deadline:
        each: dict[str, Parser] = {"extensions": partial(_each, extension), "handed_in": partial(_each, time)}
        return Deadline(**{"late": late, **_fields(value, place, {"due": time, "late": partial(_late, late), **each})})

    parsers: dict[str, Parser] = {
        "zone": _zone,
        "keep": _keep,
        "late": partial(_late, Late()),
        "exercises": partial(_each, rules),
    }
    return Deadlines(**_fields(data, "", parsers))


def _fields(data: Any, place: str, parsers: Mapping[str, Parser]) -> dict[str, Any]:
    """A table, each field as its parser reads it."""
    if strange := [name for name in _each(lambda value, _: value, data, place) if name not in parsers]:
        raise ValueError(f"{place or 'the file'} has no {strange[0]}; it has {', '.join(parsers)}")
    return {name: parsers[name](value, f"{place}.{name}".strip(".")) for name, value in data.items()}


def _each(parser: Parser, data: Any, place: str) -> dict[str, Any]:
    """A table whose names can be any, all fields read by one parser."""
    if not isinstance(data, dict):
        raise ValueError(f"{place} has to be a table")
    return {name: parser(value, f"{place}.{name}") for name, value in data.items()}


def _late(before: Late, data: Any, place: str) -> Late:
    parsers = {"grace": _span, "per_day": _amount, "at_most": _amount, "until": _span}
    return replace(before, **_fields(data, place, parsers))


def _keep(value: Any, place: str) -> str:
    if value not in KEEPS:
        raise ValueError(f"{place} is {value!r}; it can be {' or '.join(KEEPS)}")
    return str(value)


def _zone(value: Any, place: str) -> ZoneInfo:
    try:
        return ZoneInfo(value)
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"the time zone {value!r} is not known; Europe/Madrid or UTC is") from None


def _time(zone: tzinfo, value: Any, place: str) -> datetime:
    if not isinstance(value, datetime):
        raise ValueError(f"{place}: {value!r} is no time such as 2026-11-22T23:59:00")
    local = value if value.tzinfo else value.replace(tzinfo=zone)
    return local.astimezone(UTC).replace(tzinfo=None)


def _span(value: Any, place: str) -> timedelta:
    found = re.fullmatch(r"\s*(\d{1,4}(?:\.\d+)?)\s*(minute|hour|day|week)s?\s*", str(value))
    if found is None:
        raise ValueError(f"{place}: {value!r} is no time span such as '3 days' or '15 minutes'")
    return timedelta(**{f"{found[2]}s": float(found[1])})


def _amount(value: Any, place: str) -> Amount:
    number = re.fullmatch(r"\s*(\d{1,9}(?:\.\d+)?)\s*(%?)\s*", str(value))
    if number is None or (number[2] == "") is isinstance(value, str):
        raise ValueError(f"{place}: {value!r} is no number of points, and no share such as '10 %'")
    return Amount(share=float(number[1]) / 100) if number[2] else Amount(points=float(number[1]))
