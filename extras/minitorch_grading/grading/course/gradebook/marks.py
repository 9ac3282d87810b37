"""The points of one student for one cell, as the gradebook has them."""

from __future__ import annotations

from dataclasses import dataclass

Who = tuple[str, str]  # a student and an exercise


@dataclass(frozen=True)
class Mark:
    """The points of a student for one cell, as formgrader shows them.

    Attributes:
        program: the points that the checks gave; None where a person has to give them.
        person: the points that a person gave, which count instead.
        extra: what a person gave beyond them.
        of: what can be earned.
        waits: whether formgrader says "needs manual grade".
    """

    program: float | None
    person: float | None = None
    extra: float | None = None
    of: float = 0.0
    waits: bool = False

    @property
    def points(self) -> float:
        """The points that count.

        Example:
            >>> Mark(10, person=25).points, Mark(10, extra=1).points, Mark(None).points
            (25.0, 11, 0.0)
        """
        given = self.program if self.person is None else self.person
        return (given or 0.0) + (self.extra or 0.0)

    @property
    def is_by_hand(self) -> bool:
        """Whether a person gave any of them."""
        return self.person is not None or bool(self.extra)
