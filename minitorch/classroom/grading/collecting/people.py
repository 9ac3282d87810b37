"""The student that a sender is: by the roster, by Moodle's worksheets, or by the platform's own name for the person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ..course.names import refused, visible
from ..enrolment.roster import Roster, folder_name
from ..enrolment.worksheet import Participant
from .platforms import Sender


class UnknownError(Exception):
    """A sender who is no student of the course; the argument is the reason."""


@dataclass
class People:
    """The students of a course, and who else was met in this download.

    Attributes:
        roster: who is in the course; None if anybody may be.
        participants: Moodle's people by their numbers.
    """

    roster: Roster | None
    participants: Mapping[str, Participant]
    _met: dict[tuple[str, ...], Sender] = field(default_factory=dict)

    def student(self, sender: Sender, place: tuple[str, ...]) -> str:
        """The name of the student's folder.

        Args:
            sender: as the platform names the person.
            place: the download that the work came in; nobody is in it under two numbers.

        Raises:
            UnknownError: if it is nobody of the roster, or has no name that can be one of a folder.
        """
        known = self.participants.get(sender.key) if sender.platform == "moodle" else None
        student = self._in_roster(sender, known) if self.roster else self._named(sender, known)
        if reason := refused(student):
            raise UnknownError(f"{reason}; a roster can give another")
        other = self._met.setdefault((student.casefold(), sender.platform, *place), sender)
        if other.key != sender.key:
            raise UnknownError(
                f"{visible(sender.name)} is the name of two people, {other.key} and {sender.key}; "
                "a roster, with Moodle's grading worksheet, tells them apart"
            )
        return student

    def when(self, sender: Sender) -> datetime | None:
        """When a sender handed in, in UTC, if Moodle's worksheet says so."""
        known = self.participants.get(sender.key) if sender.platform == "moodle" else None
        return known.when if known else None

    def _in_roster(self, sender: Sender, known: Participant | None) -> str:
        assert self.roster is not None
        if sender.platform == "moodle":
            person = self.roster.find(
                known.name if known else sender.name,
                email=known.email if known else "",
                number=known.number if known else "",
            )
        elif sender.platform == "canvas":
            person = self.roster.find(sender.name, canvas=sender.key)
        else:
            person = self.roster.find("", student=sender.key, login=sender.key, email=sender.key)
        if person is None:
            raise UnknownError(
                f"{visible(sender.name)} ({visible(sender.key)}) is not on the roster, or there more than once"
            )
        return person.student

    def _named(self, sender: Sender, known: Participant | None) -> str:
        if sender.platform == "nbgrader":
            return sender.key
        name = folder_name(known.name if known and known.name else sender.name)
        numbered = sender.platform == "canvas" or not name or name in ("participant", "anon")
        return f"{name or 'student'}-{sender.key}" if numbered else name
