"""Golf: a right answer is scored by a number that the judge counts, beside par and the best that is known.

As in the game, fewer is better. A part of a task is scored so: kernels, bytes, traces, the peak of memory. The judge
counts on the answer, which is plain data (a graph, a plan, a schedule); nothing that a student's code says about itself
is a count. A wrong answer has no count, and no points in this part.

What is counted should be the same for every seed, so that numbers of two students can be compared: the best of a class
is told on the page that each of them gets.
"""

from __future__ import annotations

from dataclasses import dataclass

from .score import Count


@dataclass(frozen=True)
class Golf:
    """How counts become points: none at `start`, half of them at `par`, all of them at `best`; straight between these.

    Attributes:
        unit: of what is counted, as a plural ("kernels").
        start: the count of an answer in which nothing was gained.
        par: the count of a sound answer.
        best: the best count that is known, which is that of a solution, or a bound that some answer reaches.

    Example:
        >>> few = Golf("kernels", start=9, par=5, best=3)
        >>> [few.fraction(count) for count in (10, 9, 7, 5, 4, 3, 2)]
        [0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
        >>> print(few.verdict(5))
        yours: 5 kernels; best known: 3

    Raises:
        ValueError: unless `best` is smaller than `par`, and that than `start`.
    """

    unit: str
    start: int
    par: int
    best: int

    def __post_init__(self) -> None:
        if not 0 <= self.best < self.par < self.start:
            raise ValueError(f"golf has best < par < start, and not {self.best}, {self.par}, {self.start}")

    def fraction(self, count: int) -> float:
        """How much of the points a count earns: never less for a smaller count."""
        if count >= self.par:
            return max(self.start - count, 0) / (self.start - self.par) / 2
        return 1 - max(count - self.best, 0) / (self.par - self.best) / 2

    def verdict(self, count: int) -> Count:
        """The verdict on a right answer with this count."""
        return Count(self.unit, count, self.best, self.fraction(count))
