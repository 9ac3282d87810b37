"""`rounds`: a collective operation on simulated devices, step by step: as a table, and as frames.

An algorithm is data: a list of steps, each a list of sends. A digit of a number that is not 0 is a contribution: 101
has those of devices 0 and 2, and 201 has one of them twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .frames import Frames, rectangle, words

# The device that sends, the one that receives, the number of the chunk, and ``"add"`` or ``"copy"``.
Send = tuple[int, int, int, str]

DIGIT, ROW, LEFT, TOP, GAP = 8, 30, 56, 40, 16  # pixels
IN_A_ROW = 3  # pictures; of a ring of four, a row for each half
EDGE, SENT, DONE = "#888899", "#D55E00", "#cdebc5"
SHADES = ("none", "#d3e4f5", "#b7d2ec", "#9bc0e3", "#7faeda")  # more contributions, darker


@dataclass(frozen=True)
class Rounds:
    """What the devices hold before each step of an algorithm, and after the last.

    Attributes:
        steps: the sends of each.
        history: before each of them, and at the end, what each device holds of each chunk.
    """

    steps: tuple[tuple[Send, ...], ...]
    history: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def sent(self) -> tuple[int, ...]:
        """How many chunks each device sends."""
        sources = [source for step in self.steps for source, *_ in step]
        return tuple(map(sources.count, range(len(self.history[0]))))

    @property
    def length(self) -> int:
        """How many chunks are sent one after the other: of each step, as many as its busiest device sends."""
        return sum(max(map([source for source, *_ in step].count, range(len(self.history[0])))) for step in self.steps)

    def _told(self, value: int) -> str:
        return f"{value:0{len(self.history[0])}d}"

    def _title(self, number: int) -> str:
        if number == len(self.steps):
            return f"after step {number}"
        kinds = sorted({how for _, _, _, how in self.steps[number]})
        return f"step {number + 1}: {' and '.join(kinds) or 'nothing'}"

    def __str__(self) -> str:
        lines = []
        for number, state in enumerate(self.history):
            sends = self.steps[number] if number < len(self.steps) else ()
            told = ", ".join(f"{source}→{target} chunk {chunk}" for source, target, chunk, _ in sends)
            lines.append(f"{self._title(number)}{'  ' if told else ''}{told}")
            lines += [f"  device {device}: {' '.join(map(self._told, chunks))}" for device, chunks in enumerate(state)]
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def _cell(self) -> int:
        return DIGIT * len(self.history[0]) + 16

    @property
    def _size(self) -> tuple[int, int]:
        state = self.history[0]
        return LEFT + self._cell * len(state[0]) + GAP, TOP + ROW * len(state) + GAP

    def _marks(self, number: int) -> str:
        """A state and the sends that come next, as SVG at the origin."""
        state, cell = self.history[number], self._cell
        whole = int("1" * len(state))
        sends = self.steps[number] if number < len(self.steps) else ()
        sending = {(source, chunk) for source, _, chunk, _ in sends}
        marks = [words(LEFT, 14, self._title(number), "title")]
        marks += [
            words(LEFT + cell * (chunk + 0.5), TOP - 7, f"chunk {chunk}", "small") for chunk in range(len(state[0]))
        ]
        for device, chunks in enumerate(state):
            y = TOP + ROW * device
            marks.append(words(LEFT / 2, y + 19, f"device {device}", "small"))
            for chunk, value in enumerate(chunks):
                count = sum(digit != "0" for digit in str(value))
                fill = DONE if value == whole else SHADES[min(count, len(SHADES)) - 1]
                x = LEFT + cell * chunk
                marks.append(rectangle(x, y, cell, ROW, fill, EDGE))
                marks.append(words(x + cell / 2 - 4, y + 19, self._told(value), "" if fill == "none" else "on"))
        for device, chunk in sorted(sending):
            corner = LEFT + cell * chunk + 1.5, TOP + ROW * device + 1.5
            marks.append(rectangle(*corner, cell - 3, ROW - 3, "none", SENT, 2))
        for source, target, chunk, _ in sends:
            x = LEFT + cell * (chunk + 1) - 8
            begin, end = TOP + ROW * (source + 0.5), TOP + ROW * (target + 0.5)
            tip = -6 if end > begin else 6
            marks.append(
                f'<path d="M{x} {begin}L{x} {end}" stroke="{SENT}" stroke-width="2" fill="none"/>'
                f'<path d="M{x - 4} {end + tip}L{x + 4} {end + tip}L{x} {end}Z" fill="{SENT}"/>'
            )
        return "".join(marks)

    @property
    def frames(self) -> Frames:
        """The pictures before each step, and after the last."""
        count = len(self.history)
        return Frames(count, self._size, self._marks, str(self), range(count), IN_A_ROW)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return self.frames._repr_mimebundle_()


def rounds(steps: Sequence[Sequence[Send]], devices: int) -> Rounds:
    """Carry out an algorithm on simulated devices, and show it step by step.

    All sends of a step happen at once: what arrives is what the sender had before the step.

    Args:
        steps: for each its sends: the device that sends, the one that receives, the chunk, and ``"add"`` or
            ``"copy"``.
        devices: how many. Each begins with as many chunks, and in each of them a 1 at the digit that is its own.

    Raises:
        ValueError: for a device or a chunk that is not there, or another word than ``"add"`` and ``"copy"``.

    Example:
        >>> shown = rounds([[(0, 1, 0, "add"), (1, 0, 1, "add")]], 2)
        >>> print(shown)
        step 1: add  0→1 chunk 0, 1→0 chunk 1
          device 0: 01 01
          device 1: 10 10
        after step 1
          device 0: 01 11
          device 1: 11 10
        >>> shown.sent, shown.length
        ((1, 1), 1)
    """
    held = [[10**device] * devices for device in range(devices)]
    history = [tuple(map(tuple, held))]
    for number, step in enumerate(steps):
        for send in step:
            if not all(each in range(devices) for each in send[:3]) or send[3] not in ("add", "copy"):
                raise ValueError(f"step {number + 1} has {send}: there are devices and chunks 0 to {devices - 1}")
        messages = [(target, chunk, how, held[source][chunk]) for source, target, chunk, how in step]
        for target, chunk, how, value in messages:
            held[target][chunk] = held[target][chunk] + value if how == "add" else value
        history.append(tuple(map(tuple, held)))
    return Rounds(tuple(map(tuple, steps)), tuple(history))
