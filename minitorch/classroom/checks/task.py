"""`Task`: a check in three steps, of which only the second runs code of the student's.

    inputs(seed)            -> plain data
    answers(call, inputs)   -> plain data       `call` is the student's object, behind a time limit
    judge(inputs, answers)  -> a reason, or none, for each part

In the student's notebook all three happen in a row, on a few seeds that everybody has. When a class is graded, the very
same cell does the second step alone, on seeds that the grader sends, and shows its answers as an output of the type
`MIME`; whoever grades judges them in another process. There is then nothing in the student's process that would give
points.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .limit import SECONDS, Limited
from .plain import TIMEOUT, Fault, arrays, decode, encode
from .score import Part, Score, in_halves, weakest

MIME = "application/vnd.minitorch.answers+json"
SEEDS = (0, 1, 2)  # of the student's own checks

# The verdict on a part: None (it is right), why it is wrong, or how much of it is right and why not all.
Verdict = str | tuple[float, str] | None
Judge = Callable[[Any, Any], Mapping[str, Verdict]]


@dataclass(frozen=True)
class Task:
    """One task of an exercise.

    Attributes:
        name: the module of the exercise and the name of what is to be written, e.g. ``"eager.unbroadcast"``.
        parts: what it asks for, and the points for each.
        make: from a seed to the inputs.
        ask: from the student's object and the inputs to the answers. It uses the engine as it likes.
        verdicts: from inputs and answers to what is said of each part.
        seconds: for each call of the student's object.
    """

    name: str
    parts: Mapping[str, int]
    make: Callable[[int], Any] = field(repr=False)
    ask: Callable[[Limited, Any], Any] = field(repr=False)
    verdicts: Judge = field(repr=False)
    seconds: float = SECONDS

    @property
    def points(self) -> int:
        """The maximum of points."""
        return sum(self.parts.values())

    def inputs(self, seed: int) -> Any:
        """The inputs of the student's code: the same for the same seed, always."""
        return arrays(decode(encode(self.make(seed))))

    def answers(self, student: object, inputs: Any, seconds: float | None = None) -> Any:
        """The answers of the student's code to the inputs, as JSON; each call has its own time limit, or `seconds`."""
        return encode(self.ask(Limited(student, seconds or self.seconds), inputs))

    def judge(self, inputs: Any, answers: Any) -> Score:
        """The score of answers that came as JSON; of whatever else came, too: it has no points."""
        try:
            said = self.verdicts(inputs, decode(answers))
        except Exception as error:  # the answers are not to be trusted to have any form
            said = dict.fromkeys(self.parts, f"the answers cannot be read ({type(error).__name__})")
        return Score(self.name, tuple(_part(name, of, said[name]) for name, of in self.parts.items()))

    def collect(self, student: object, seeds: Iterable[int]) -> dict[str, Any]:
        """The answers for several seeds, as they are sent to whoever judges them.

        A function that had to be stopped once has less time from the next seed on: a cell in which every call is
        stopped has to end before a grader stops the cell, and with it the parts of the task that are right.
        """
        found: list[Any] = []
        seconds = self.seconds
        for seed in seeds:
            found.append([seed, self.answers(student, self.inputs(seed), seconds)])
            if f'"fault": ["{TIMEOUT}"' in json.dumps(found[-1]):
                seconds = self.seconds / 4
        return {"task": self.name, "answers": found}

    def assess(self, collected: Any, seeds: Iterable[int]) -> Score:
        """The score for what `collect` sent: a part counts if it is right for every one of the judge's seeds.

        Example:
            >>> from minitorch.classroom import checks
            >>> task = checks.eager.unbroadcast
            >>> task.assess({"nonsense": 1}, (7,)).points
            0.0
        """
        given: dict[int, Any] = {}
        with suppress(KeyError, TypeError, ValueError):
            given = {seed: answers for seed, answers in collected["answers"] if type(seed) is int}
        return weakest([self.judge(self.inputs(seed), given.get(seed)) for seed in seeds])

    def __call__(self, student: object, seeds: Iterable[int] = ()) -> Score | None:
        """Check the student's object, on `seeds` besides those of every student; shown as the result of a cell.

        While a class is graded it returns None, and shows the answers instead (see `answer_for`).
        """
        if _hidden:
            from IPython.display import display

            display({MIME: self.collect(student, _hidden)}, raw=True)  # type: ignore[no-untyped-call]
            return None
        seeds = (*SEEDS, *seeds)
        return self.assess(self.collect(student, seeds), seeds)


_hidden: tuple[int, ...] = ()  # set in a kernel that grades, and nowhere else


def answer_for(seeds: Iterable[int]) -> None:
    """From now on checks do not judge, but show the answers for these seeds: a grader calls this before each cell."""
    global _hidden
    _hidden = tuple(seeds)


def _part(name: str, of: int, said: Verdict) -> Part:
    if said is None:
        return Part(name, float(of), of)
    fraction, reason = (0.0, said) if isinstance(said, str) else said
    return Part(name, in_halves(fraction, of), of, reason)


def all_faults(parts: Mapping[str, int], answers: Iterable[object]) -> dict[str, Verdict] | None:
    """The same reason for every part, if no call gave anything: mostly, that nothing has been written yet."""
    found = list(answers)
    if found and all(isinstance(answer, Fault) for answer in found):
        return dict.fromkeys(parts, str(found[0]))
    return None


def _attempted(answer: object) -> object:
    """The answer in an attempt (see `smaller.py`), which is that of the whole graph."""
    return answer[0] if type(answer) is tuple and len(answer) == 2 and isinstance(answer[0], Fault) else answer


def by_case(
    parts: Mapping[str, int],
    cases: Iterable[tuple[str, Any]],
    answers: object,
    wrong: Callable[[Any, Any], str | None],
) -> Mapping[str, Verdict]:
    """The verdict on parts with several cases: a part is right if all of its cases are.

    Args:
        parts: of the task.
        cases: the name of a part, and what else there is to know about the case.
        answers: one for each case.
        wrong: ``(case, answer) -> the reason why it is wrong, or None``.

    Raises:
        ValueError: if there are not as many answers as cases.
    """
    if type(answers) is not list:
        raise ValueError("the answers to cases are a list")
    pairs = list(zip(cases, answers, strict=True))
    if same := all_faults(parts, [_attempted(answer) for _, answer in pairs]):
        return same
    said: dict[str, Verdict] = dict.fromkeys(parts)
    for (part, case), answer in pairs:
        if said[part] is None:
            said[part] = str(answer) if isinstance(answer, Fault) else wrong(case, answer)
    return said
