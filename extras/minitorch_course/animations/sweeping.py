"""`sweep`: the state of an online softmax after each block, as frames: maximum, sum, result, correction.

The states are those of the reader's own loop; nothing is computed here but where to draw them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .frames import LETTERS, Frames, rectangle, words

BAR, WIDTH, LEFT, TOP = 7, 330, 8, 24  # pixels
HEIGHT, WEIGHTS, GAP = 78, 40, 22  # of the scores, of the weights, and between two parts
READ, LATER, NOW = "#56B4E9", "#88888860", "#D55E00"


class State(NamedTuple):
    """What an online softmax knows of one row after a block.

    Attributes:
        scores: of the block.
        m: the largest score so far.
        factor: ``exp(old m - m)``, which corrects the sum and the result.
        s: the sum of ``exp(score - m)`` over all scores so far.
        o: the sum of the values so far, each times its ``exp(score - m)``.
    """

    scores: Any
    m: float
    factor: float
    s: float
    o: Any


@dataclass(frozen=True)
class Sweep:
    """The states after each block of a row. Made by `sweep`."""

    states: tuple[State, ...]

    def __str__(self) -> str:
        return "\n".join(f"{self._title(number)}: {self._told(number)}" for number in range(len(self.states)))

    __repr__ = __str__

    def _title(self, number: int) -> str:
        return f"block {number + 1} of {len(self.states)}"

    def _told(self, number: int) -> str:
        state = self.states[number]
        result = ", ".join(f"{each:.2f}" for each in np.divide(state.o, state.s))
        return f"m = {state.m:.2f}, factor = {state.factor:.3f}, s = {state.s:.3f}, o / s = [{result}]"

    def _marks(self, number: int) -> str:
        """The scores with the maximum, the weights measured from it, and the state in numbers."""
        state, before = self.states[number], self.states[number - 1] if number else None
        scores = [np.ravel(each.scores) for each in self.states]
        low, high = min(map(np.min, scores)), max(map(np.max, scores))
        scale = (HEIGHT - 10) / (high - low or 1.0)
        marks = [words(LEFT, 14, self._title(number), "title")]
        marks.append(words(LEFT, TOP + 10, "scores", "left small"))
        x, floor, foot = float(LEFT), TOP + 14 + HEIGHT, TOP + 14 + HEIGHT + GAP + WEIGHTS
        marks.append(words(LEFT, floor + 14, "exp(score - m)", "left small"))
        for block, part in enumerate(scores):
            begin = x
            for score in part:
                tall = 4 + (score - low) * scale
                fill = NOW if block == number else READ if block < number else LATER
                marks.append(rectangle(x, floor - tall, BAR - 1, tall, fill))
                if block <= number:
                    weight = WEIGHTS * 0.8 * float(np.exp(score - state.m))
                    marks.append(rectangle(x, foot - weight, BAR - 1, weight, fill))
                x += BAR
            x += 4
            if block <= number:
                y = floor - 5 - (self.states[block].m - low) * scale
                marks.append(rectangle(begin, y, x - 4 - begin, 2, LETTERS))
        marks.append(rectangle(LEFT, foot, x - LEFT - 4, 1, LETTERS))
        told = [f"m = {state.m:.2f}", f"s = {state.s:.2f}"]
        if before:
            new = state.s - before.s * state.factor
            told[0] += f", before {before.m:.2f}: factor {state.factor:.2f}"
            told[1] = f"s = {before.s:.2f} · {state.factor:.2f} + {new:.2f} = {state.s:.2f}"
        told.append(f"o / s = [{', '.join(f'{each:.2f}' for each in np.divide(state.o, state.s))}]")
        marks += [words(LEFT, foot + 18 + 17 * at, text, "left") for at, text in enumerate(told)]
        return "".join(marks)

    @property
    def frames(self) -> Frames:
        """One frame for each block."""
        count = len(self.states)
        wide = LEFT * 3 + sum(BAR * np.size(each.scores) + 4 for each in self.states)
        tall = TOP + 14 + HEIGHT + GAP + WEIGHTS + 18 + 17 * 3
        return Frames(count, (max(wide, WIDTH), tall), self._marks, str(self), range(count), 3)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return self.frames._repr_mimebundle_()


def sweep(states: Sequence[Sequence[Any]]) -> Sweep:
    """Show the state of an online softmax after each block of one row, with a slider.

    Args:
        states: for each block its scores, the maximum so far, the factor of the correction, the sum and the result.

    Raises:
        ValueError: without a block.

    Example:
        >>> from minitorch import course
        >>> course.sweep([([1.0, 2.0], 2.0, 0.0, 1.37, [0.5]), ([3.0], 3.0, 0.37, 1.5, [1.2])])
        block 1 of 2: m = 2.00, factor = 0.000, s = 1.370, o / s = [0.36]
        block 2 of 2: m = 3.00, factor = 0.370, s = 1.500, o / s = [0.80]
    """
    if not states:
        raise ValueError("a sweep has at least one block")
    return Sweep(tuple(State(*each) for each in states))
