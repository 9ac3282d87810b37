"""Incidents: the ways in which a submission can go wrong, each with a name, its meaning, and the points.

One table, read by the grader, the feedback and the tests. An incident is never a score: the points are those of the
tasks that could be judged.
"""

from __future__ import annotations

from dataclasses import dataclass

from .plain import plain


@dataclass(frozen=True)
class Kind:
    """One row: what the student is told, and whether a person should look at the submission."""

    meaning: str
    look: bool = False


KINDS: dict[str, Kind] = {
    # the file
    "renamed": Kind("the notebook had another name; it was graded under its own"),
    "missing-notebook": Kind("no notebook of this exercise was handed in; nothing could be graded", look=True),
    "several-notebooks": Kind("several notebooks could be the one meant; nothing was graded", look=True),
    "not-json": Kind("the file is damaged and cannot be read as a notebook; nothing could be graded", look=True),
    "too-large": Kind("the file is too large, also without its outputs; nothing could be graded", look=True),
    "not-a-file": Kind("the notebook is a link or a folder, which is not followed; nothing could be graded", look=True),
    "unreadable": Kind("what was handed in cannot be graded", look=True),
    "wrong-exercise": Kind("no cell of this exercise is in the notebook; nothing could be graded", look=True),
    "wrong-kernel": Kind("the notebook asked for another kernel; it was run with the course's"),
    "timestamp": Kind("timestamp.txt holds no time that can be read; when it was handed in is not known", look=True),
    # its cells
    "cell-missing": Kind("a cell was deleted; it was put back as it was handed out"),
    "cell-twice": Kind("a cell was there twice; of an answer all versions were run, of a check the original"),
    "cell-edited": Kind("a cell that must stay as it is was changed; the original was used"),
    "cell-type": Kind("a cell had become text or code; it was changed back"),
    "check-dropped": Kind("the exercise no longer has this check; it was not run"),
    # running it
    "cell-time": Kind("a cell ran for too long and was stopped"),
    "submission-time": Kind("all cells together ran for too long; the rest was not run", look=True),
    "kernel-died": Kind("a cell ended the kernel; the other cells were run in a new one"),
    "memory": Kind("a cell used too much memory"),
    "processes": Kind("a cell started too many processes"),
    "files": Kind("a cell opened too many files"),
    "disk": Kind("a cell wrote more than a submission may"),
    "output": Kind("a cell printed too much; the rest was dropped"),
    "input": Kind("a cell waited for input, which nobody can give"),
    "refused": Kind("a cell asked the system for something that no exercise needs, and did not get it", look=True),
    "outside": Kind("a cell reached for a file, package or computer that is not there when it is graded", look=True),
    "withheld": Kind("a cell used a part of minitorch that the exercise does not need, and that was not there"),
    "call-time": Kind("a function ran for too long when it was checked, and was stopped"),
    "background": Kind("processes were left running; they were ended", look=True),
    # judging it
    "tampered": Kind("the checks were changed from within; points come from the grader's own", look=True),
    "no-answers": Kind("a check did not come to its end, so its task has no points"),
    "not-judged": Kind(
        "the answers of a task could not be judged in the time and memory for it; it has no points", look=True
    ),
    "grader": Kind("the grader itself failed; this submission has to be graded again", look=True),
}
NOTHING = frozenset(
    ["missing-notebook", "several-notebooks", "not-json", "too-large", "not-a-file", "unreadable", "wrong-exercise"]
)  # those because of which nothing was graded


@dataclass(frozen=True)
class Incident:
    """Something that happened to a submission: its kind, a detail, and the cell (by its grade_id) if it was in one.

    >>> print(Incident("cell-time", "more than 5 s", "unbroadcast"))
    cell-time in cell unbroadcast: a cell ran for too long and was stopped (more than 5 s)
    """

    kind: str
    detail: str = ""
    cell: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "detail", plain(self.detail))

    @property
    def look(self) -> bool:
        """Whether the instructor should look at the submission."""
        return KINDS[self.kind].look

    @property
    def text(self) -> str:
        """The incident in words, without its name."""
        return KINDS[self.kind].meaning + (f" ({self.detail})" if self.detail else "")

    def __str__(self) -> str:
        place = f" in cell {self.cell}" if self.cell else ""
        return f"{self.kind}{place}: {self.text}"
