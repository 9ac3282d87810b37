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
extensions = { ana = "3 days", ben = 2026-12-01T12:00:00 }
handed_in = { eve = 2026-11-23T08:30:00 }    # where the platform's download does not say it
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from ....errors import CommandError

FILE = "deadlines.toml"
KEEPS = ("latest", "best")
DAY = timedelta(days=1)
_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": DAY, "week": 7 * DAY}


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

    def due_for(self, student: str) -> datetime | None:
        """Until when a student may hand in."""
        extension = self.extensions.get(student)
        if isinstance(extension, datetime):
            return extension
        return self.due if self.due is None or extension is None else self.due + extension


@dataclass(frozen=True)
class Penalty:
    """The cost of one late submission.

    Attributes:
        points: taken from what was earned.
        days: begun since the due date; 0 if it was in time.
        assumed: whether the platform says that it is late, and not since when; then it is taken for one day.
    """

    points: float = 0.0
    days: int = 0
    assumed: bool = False

    def __str__(self) -> str:
        if not self.days:
            return "in time"
        late = f"{self.days} day{'s' if self.days > 1 else ''} late"
        return f"{late}{' (assumed)' if self.assumed else ''}: {self.points:g} points less"


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
        due = rules.due_for(student)
        if when is None:
            if not late or student in rules.extensions:
                return Penalty()
            return _penalty(rules.late, DAY, earned, maximum, assumed=True)
        if due is None or when <= due + rules.late.grace:
            return Penalty()
        return _penalty(rules.late, when - due, earned, maximum, assumed=False)


def _penalty(rules: Late, by: timedelta, earned: float, maximum: float, assumed: bool) -> Penalty:
    days = math.ceil(by / DAY)
    points = rules.per_day.of(maximum) * days
    if rules.at_most is not None:
        points = min(points, rules.at_most.of(maximum))
    if rules.until is not None and by > rules.until:
        points = earned
    return Penalty(min(points, earned), days, assumed)


def deadlines_of(course: Path) -> Deadlines:
    """The rules in the folder of a course; none if there is no file.

    Raises:
        CommandError: if the file is not as it should be; it says where.
    """
    path = course / FILE
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Deadlines()
    except (OSError, ValueError) as error:
        raise CommandError(f"{path}: {error}") from None
    try:
        return _deadlines(data)
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None


def _deadlines(data: dict[str, Any]) -> Deadlines:
    _only(data, ("zone", "keep", "late", "exercises"), "the file")
    keep = data.get("keep", "latest")
    if keep not in KEEPS:
        raise ValueError(f"keep is {keep!r}; it can be {' or '.join(KEEPS)}")
    zone = _zone(data.get("zone", "UTC"))
    late = _late(data.get("late", {}), Late(), "late")
    exercises = {}
    for name, rules in _table(data, "exercises", "exercises").items():
        place = f"exercises.{name}"
        _only(rules, ("due", "late", "extensions", "handed_in"), place)
        extensions = {
            student: _span(value, place) if isinstance(value, str) else _time(value, zone, place)
            for student, value in _table(rules, "extensions", place).items()
        }
        exercises[name] = Deadline(
            _time(rules["due"], zone, place) if "due" in rules else None,
            _late(rules.get("late", {}), late, place),
            extensions,
            {student: _time(value, zone, place) for student, value in _table(rules, "handed_in", place).items()},
        )
    return Deadlines(keep, late, exercises, zone)


def _late(data: Any, before: Late, place: str) -> Late:
    _only(data, ("grace", "per_day", "at_most", "until"), place)
    changes: dict[str, Any] = {}
    for name, value in data.items():
        changes[name] = _span(value, place) if name in ("grace", "until") else _amount(value, f"{place}.{name}")
    return replace(before, **changes)


def _table(data: dict[str, Any], name: str, place: str) -> dict[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, dict):
        raise ValueError(f"{place}: {name} has to be a table")
    return found


def _only(data: Any, names: tuple[str, ...], place: str) -> None:
    if not isinstance(data, dict):
        raise ValueError(f"{place} has to be a table")
    if strange := [name for name in data if name not in names]:
        raise ValueError(f"{place} has no {strange[0]}; it has {', '.join(names)}")


def _zone(name: Any) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"the time zone {name!r} is not known; Europe/Madrid or UTC is") from None


def _time(value: Any, zone: ZoneInfo, place: str) -> datetime:
    if not isinstance(value, datetime):
        raise ValueError(f"{place}: {value!r} is no time such as 2026-11-22T23:59:00")
    local = value if value.tzinfo else value.replace(tzinfo=zone)
    return local.astimezone(UTC).replace(tzinfo=None)


def _span(value: Any, place: str) -> timedelta:
    found = (
        re.fullmatch(r"\s*(\d{1,4}(?:\.\d+)?)\s*(minute|hour|day|week)s?\s*", value) if isinstance(value, str) else None
    )
    if found is None:
        raise ValueError(f"{place}: {value!r} is no time span such as '3 days' or '15 minutes'")
    return float(found[1]) * _UNITS[found[2]]


def _amount(value: Any, place: str) -> Amount:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf:
        return Amount(points=float(value))
    found = re.fullmatch(r"\s*(\d{1,3}(?:\.\d+)?)\s*%\s*", value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{place}: {value!r} is no number of points, and no share such as '10 %'")
    return Amount(share=float(found[1]) / 100)
