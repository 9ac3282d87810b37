"""Results of a submission: points and reasons, incidents, and the notebook as it was run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .incidents import Incident
from .plain import plain


@dataclass(frozen=True)
class Graded:
    """The points of one check, or why it has none.

    Attributes:
        cell: the `grade_id`.
        points: what was earned.
        of: what can be earned.
        reason: why it is not all; empty if it is.
        score: the parts of it as `Score.to_json` gives them, if there were answers.
        manual: whether a person has to give the points: there are none yet, not even 0.
        task: what a reader is told of; the cell, if it asks for no task.
    """

    cell: str
    points: float
    of: float
    reason: str
    score: dict[str, Any] | None = None
    manual: bool = False
    task: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", plain(self.reason))
        object.__setattr__(self, "task", self.task or (self.score["task"] if self.score else self.cell))

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The parts of its score; none if there is none."""
        return self.score["parts"] if self.score else []


@dataclass
class Result:
    """The result of a submission.

    Attributes:
        graded: the points of each check.
        incidents: what went wrong.
        notebook: with the outputs of its run; None if nothing could be run.
        seconds: how long it took.
        text, shown: the notebook as a file, and as HTML for the student's page, if they were made already.
    """

    graded: list[Graded] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    notebook: dict[str, Any] | None = None
    seconds: float = 0.0
    text: str | None = None
    shown: str = ""

    @property
    def points(self) -> float:
        """The points earned."""
        return sum(each.points for each in self.graded)

    @property
    def of(self) -> float:
        """The maximum of points."""
        return sum(each.of for each in self.graded)

    @property
    def look(self) -> bool:
        """Whether a person should look at it."""
        return any(incident.look for incident in self.incidents)

    @property
    def failed(self) -> bool:
        """Whether the grader itself failed on it."""
        return any(incident.kind == "grader" for incident in self.incidents)

    def to_json(self) -> dict[str, Any]:
        """As plain data, but for the notebook."""
        return {
            "graded": [vars(each) for each in self.graded],
            "incidents": [vars(each) for each in self.incidents],
            "seconds": round(self.seconds, 1),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Result:
        """What `to_json` gave, as a result again."""
        graded = [Graded(**each) for each in data["graded"]]
        incidents = [Incident(**each) for each in data["incidents"]]
        return cls(graded, incidents, None, data["seconds"], data.get("notebook"), data.get("shown", ""))
