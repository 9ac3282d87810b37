"""The best of a class, where points depend on a count (`checks/golf.py`): found in the journal, told on every page.

A page says the number and not whose it is. The report, which is the instructor's, says that too. Nobody's solution is
in either. Less than the best that is known is a discovery, or a check that was deceived: the report says it, and the
class hears of it when a person has looked at the work and changed the `best` of the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .gradebook.marks import Who
from .journal.journal import Entry
from .names import visible

NAMED = 3  # students that a line of the report names


@dataclass(frozen=True)
class Best:
    """The smallest count of a class in a part of a task, who has it, and how many have a count.

    Example:
        >>> print(Best("11-memory", "plan-check", "memory.plan", "few bytes", "bytes", 96, 80, ("ana", "bob"), 7))
        memory.plan, few bytes: best of the class 96 bytes (ana, bob); best known 80; 7 right answers
    """

    exercise: str
    cell: str
    task: str
    part: str
    unit: str
    count: int
    known: int
    students: tuple[str, ...]
    answers: int

    @property
    def told(self) -> int:
        """The number on the pages of the class."""
        return max(self.count, self.known)

    def __str__(self) -> str:
        names = ", ".join(map(visible, self.students[:NAMED]))
        more = f" and {len(self.students) - NAMED} more" if len(self.students) > NAMED else ""
        seldom = ", which the pages go on saying" if self.count < self.known else ""
        right = f"{self.answers} right answer{'' if self.answers == 1 else 's'}"
        return (
            f"{self.task}, {self.part}: best of the class {self.count} {self.unit} ({names}{more}); "
            f"best known {self.known}{seldom}; {right}"
        )

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def bests_of(entries: Mapping[Who, Entry]) -> tuple[Best, ...]:
    """The bests of all parts that have a count.

    Results that were made under other conditions than the latest are left out, since they may be of another task.

    Args:
        entries: the journal's, by student and exercise, the latest last.
    """
    latest = {exercise: entry.conditions for (_, exercise), entry in entries.items()}
    found: dict[tuple[str, str, str, str], dict[str, dict[str, Any]]] = {}
    for (student, exercise), entry in sorted(entries.items()):
        if entry.conditions != latest[exercise]:
            continue
        for graded in entry.result.graded:
            for part in graded.parts:
                if part.get("count"):
                    found.setdefault((exercise, graded.cell, graded.task, part["name"]), {})[student] = part["count"]
    bests = []
    for key, counts in found.items():
        least = min(counts.values(), key=lambda each: each["yours"])
        students = tuple(student for student, each in counts.items() if each["yours"] == least["yours"])
        bests.append(Best(*key, least["unit"], least["yours"], least["best"], students, len(counts)))
    return tuple(bests)
