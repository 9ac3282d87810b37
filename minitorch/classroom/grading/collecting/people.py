"""The student that a sender is: by the roster, by Moodle's worksheets, or by the platform's own name for the person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from ..course.names import refused, visible
from ..enrolment.roster import Roster, folded, folder_name, twins
from ..enrolment.worksheet import Participant
from .platforms import Handed


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
