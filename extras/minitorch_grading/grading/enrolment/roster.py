"""The roster of a course: who is in it, and by which names the platforms know them.

It is a CSV file, `roster.csv` in the folder of the course. The first row names the columns; `COLUMNS` says which names
are understood, so a gradebook that Canvas exported, and a list of participants from Moodle, are rosters as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from minitorch.errors import CommandError

from ..course.names import refused, visible
from ..sheets import is_formula, read_sheet

FILE = "roster.csv"

# The field of a person, and the headings under which it is found, without regard to case.
COLUMNS: dict[str, tuple[str, ...]] = {
    "student": ("student id", "student_id", "id", "username"),
    "name": ("name", "full name", "student"),
    "first": ("first name", "first_name", "firstname"),
    "last": ("last name", "last_name", "lastname", "surname"),
    "email": ("email", "e-mail", "email address"),
    "canvas": ("canvas", "canvas id"),
    "login": ("login", "sis login id"),
    "number": ("number", "id number", "sis user id"),
}
IN_CANVAS = COLUMNS | {"student": ("student id", "student_id"), "canvas": ("canvas", "canvas id", "id")}


@dataclass(frozen=True)
class Person:
    """Somebody in the course. Empty is what is not known.

    Attributes:
        student: the name of the folder.
        name: as people write it.
        email: the address.
        canvas: the number of the user in Canvas.
        login: the name for logging in.
        number: the institution's number (ID number in Moodle, SIS User ID in Canvas).
    """

    student: str
    name: str = ""
    email: str = ""
    canvas: str = ""
    login: str = ""
    number: str = ""


@dataclass(frozen=True)
class Roster:
    """The people of a course, in the order of the file."""

    people: tuple[Person, ...]

    @cached_property
    def by_student(self) -> dict[str, Person]:
        """The people by the name of their folder."""
        return {person.student: person for person in self.people}

    def find(self, name: str = "", **fields: str) -> Person | None:
        """The person with one of these fields, in this order, or the only one with this name.

        Example:
            >>> roster = Roster((Person("ana", "Ana López", canvas="7"), Person("bo", "Bo Li")))
            >>> roster.find(canvas="7").student, roster.find("Lopez, Ana").student, roster.find("Eve")
            ('ana', 'ana', None)
        """
        for field, value in fields.items():
            if value and (found := self._index.get((field, folded(value)))) is not None:
                return found
        named = [person for person in self.people if spellings(name) & spellings(person.name)]
        return named[0] if len(named) == 1 else None

    @cached_property
    def _index(self) -> dict[tuple[str, str], Person]:
        return {
            (field, folded(value)): person
            for person in self.people
            for field, value in vars(person).items()
            if value and field != "name"
        }


def letters(name: str) -> str:
    """The letters and digits of a name, without accents and without regard to case, as file names have them left."""
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    return "".join(each for each in decomposed if each.isalnum())


def folded(name: str) -> str:
    """A name in the form that is the same for all names which some file systems take for one.

    Example:
        >>> folded("Jos\\u00e9") == folded("jose\\u0301")
        True
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def twins(one: str, other: str) -> str:
    """Say that some file systems take two names for one. Where they look the same, their characters are written out.

    Example:
        >>> twins("Ana", "ana")
        '`Ana` and `ana` are one folder on some file systems: rename one'
    """
    look = [unicodedata.normalize("NFC", name) for name in (one, other)]
    written = [ascii(name)[1:-1] for name in (one, other)] if look[0] == look[1] else [one, other]
    return f"`{visible(written[0])}` and `{visible(written[1])}` are one folder on some file systems: rename one"


@lru_cache(10_000)
def spellings(name: str) -> frozenset[str]:
    """The ways in which a platform may write a name: with each of its words first.

    Example:
        >>> sorted(spellings("Ana López"))
        ['analopez', 'lopezana']
    """
    words = [word for word in map(letters, re.split(r"[\s,]+", name)) if word][:8]
    return frozenset("".join(words[turn:] + words[:turn]) for turn in range(len(words)))


def folder_name(text: str) -> str:
    """A name for a student's folder, from a name that people write.

    Example:
        >>> folder_name("Ana López de la Vega")
        'ana-lópez-de-la-vega'
    """
    return re.sub(r"[^\w]+", "-", unicodedata.normalize("NFC", text).casefold().replace("_", " ")).strip("-")


def read_roster(path: Path) -> Roster:
    """The roster in a file.

    Raises:
        CommandError: if it cannot be read, has no column that is understood, or names somebody twice or unsafely.
    """
    sheet = read_sheet(path)
    columns = sheet.columns(IN_CANVAS if "Section" in sheet.header else COLUMNS)
    if not {"student", "name", "last", "email"} & columns.keys():
        known = ", ".join(each for names in COLUMNS.values() for each in names)
        raise CommandError(f"{path} has no column for a student's name; the columns that are understood are {known}")
    people = [
        _person({field: row[column].strip() for field, column in columns.items()}, f"{path}, row {number}")
        for number, row in enumerate(sheet.rows, 2)
        if any(row[column].strip() for column in columns.values()) and not is_no_student(row)
    ]
    _refuse_doubles(people, path)
    return Roster(tuple(people))


def is_no_student(row: Sequence[str]) -> bool:
    """Whether a row of Canvas's gradebook is about the columns, or its made-up student."""
    first = row[0].strip()
    return first in ("Points Possible", "Student, Test", "Test Student") or "Manual Posting" in row


def _person(fields: dict[str, str], place: str) -> Person:
    first, last = fields.pop("first", ""), fields.pop("last", "")
    name = fields.pop("name", "") or f"{first} {last}".strip()
    known = (fields.pop("student", ""), fields.get("login", ""), fields.get("number", ""), fields.get("email", ""))
    student = next((each for each in known if each), "") or folder_name(name)
    for text in (student, *fields.values()):
        if is_formula(text):
            raise CommandError(f"{place}: `{visible(text)}` is a formula to a spreadsheet program; write it otherwise")
    if reason := refused(student):
        raise CommandError(f"{place}: {reason}; a column `student id` can give another")
    return Person(student, name, **fields)


def _refuse_doubles(people: Iterable[Person], path: Path) -> None:
    seen: dict[tuple[str, str], Person] = {}
    for person in people:
        for field in ("student", "email", "canvas"):
            value = getattr(person, field)
            other = seen.setdefault((field, folded(value)), person)
            if value and other is not person:
                is_twin = field == "student" and other.student != value
                same = f"two people have the {field} {visible(value)}"
                raise CommandError(f"{path}: {twins(other.student, value) if is_twin else same}")


def students_of(course: Path) -> list[str]:
    """The students who have folders in a course, in order."""
    places = (course / "submitted", course / "collected")
    found = (path for place in places if place.is_dir() for path in place.iterdir() if path.is_dir())
    return sorted({path.name for path in found if not path.name.startswith(".")})


def roster_of(course: Path, path: str | None = None) -> Roster | None:
    """The roster of a course: a file that is named, or the one in its folder; None if there is none."""
    if path is not None:
        return read_roster(Path(path))
    return read_roster(course / FILE) if (course / FILE).is_file() else None
