"""The time at which a submission was handed in, from `timestamp.txt`, which a student may have written.

Two forms are read, and nothing is guessed: ISO 8601, and nbgrader's own, ``2026-01-02 03:04:05[.678] UTC``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from os.path import lexists
from pathlib import Path
from zoneinfo import ZoneInfo

from ..incidents import Incident
from ..results import Result
from ..submission.preflight import DamagedError, contents

LARGEST = 100  # bytes
YEARS = range(2000, 2100)

FORM = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)"
    r" ?([+-]\d\d(?::?[0-5]\d)?|[A-Za-z][A-Za-z0-9_+/-]{0,39})?",
    re.ASCII,
)


def handed_in(folder: Path) -> tuple[datetime | None, Incident | None]:
    """When it was handed in, in UTC and without a zone, as nbgrader keeps times; and what is wrong with the file."""
    path = folder / "timestamp.txt"
    if not lexists(path):
        return None, None
    try:
        return parsed(contents(path, LARGEST).decode("utf-8-sig").strip()), None
    except DamagedError as damaged:
        return None, Incident("timestamp", damaged.incident.detail or damaged.incident.kind)
    except (ValueError, OverflowError, OSError) as error:
        return None, Incident("timestamp", str(error)[:100])


def with_time(result: Result, wrong: Incident | None) -> Result:
    """The result with what is wrong with the time, which is no part of the work."""
    return replace(result, incidents=[*result.incidents, *([wrong] if wrong else [])])


def parsed(text: str) -> datetime:
    """A time in UTC; one without a zone is in UTC already.

    Raises:
        ValueError: if it has another form, is no time, or names no zone.

    Example:
        >>> parsed("2026-01-02 03:04:05.678 UTC")
        datetime.datetime(2026, 1, 2, 3, 4, 5, 678000)
        >>> parsed("2026-07-02T03:04:05+02:00"), parsed("2026-07-02 03:04 Europe/Berlin")
        (datetime.datetime(2026, 7, 2, 1, 4, 5), datetime.datetime(2026, 7, 2, 1, 4))
    """
    found = FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!a} is no time such as 2026-01-02 03:04:05 UTC")
    stamp, zone = found[1], found[2] or "UTC"
    offset = zone if zone[0] in "+-" else ""
    time = datetime.fromisoformat(stamp + offset)
    if time.year not in YEARS:
        raise ValueError(f"the year {time.year}")
    return (time if offset else time.replace(tzinfo=_zone(zone))).astimezone(UTC).replace(tzinfo=None)


@lru_cache
def _zone(name: str) -> tzinfo:
    if name in ("UTC", "Z", "z", "GMT"):
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # the last is zoneinfo's "not found"
        raise ValueError(f"the time zone {name} is not known; UTC or +01:00 is") from None
