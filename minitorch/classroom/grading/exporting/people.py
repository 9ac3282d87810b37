"""The student that a row of a platform's file is about."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..enrolment.roster import Person, Roster, folder_name
from .standings import Standings

_MOODLE = re.compile(r"_(\d+)_assignsubmission_file_?$")
_CANVAS = re.compile(r"_(\d+)_\d+_$")


class Students:
    """The students of a course, by whatever a platform knows of them."""

    def __init__(self, roster: Roster | None, found: Standings) -> None:
        self._roster = roster
        self._names = {each.student for each in found.all} | {student for student, _ in found.waiting}
        self._canvas: dict[str, str] = {}
        self._moodle: dict[str, str] = {}
        for standing in found.all:
            mark = standing.attempt.mark if standing.attempt else ""
            for pattern, known in ((_CANVAS, self._canvas), (_MOODLE, self._moodle)):
                if number := pattern.search(mark):
                    known[number[1]] = standing.student

    def find(
        self, name: str, canvas: str = "", login: str = "", number: str = "", email: str = "", moodle: str = ""
    ) -> str | None:
        """The student with these names and numbers, as far as a platform gives them; None if it is nobody's."""
        known = self._canvas.get(canvas) or self._moodle.get(moodle)
        if known is not None:
            return known
        if self._roster is not None:
            person: Person | None = self._roster.find(name, canvas=canvas, login=login, number=number, email=email)
            return person.student if person else None
        return next((each for each in self._guesses(name, canvas, login, number, email) if each in self._names), None)

    def _guesses(self, name: str, canvas: str, login: str, number: str, email: str) -> Iterable[str]:
        """The folders that a student may have where there is no roster, as collecting names them."""
        yield from (each for each in (login, number, email) if each)
        if name and not canvas:
            yield folder_name(name)
