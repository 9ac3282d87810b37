"""`Task`: a check in three steps, of which only the second runs code of the student's.

    inputs(seed)            -> plain data
    answers(call, inputs)   -> plain data       `call` is the student's object, behind a time limit
    judge(inputs, answers)  -> a reason, or none, for each part

The steps are a dialogue (`Task.examine`): inputs are sent, answers come back, until there is a score. In the student's
notebook both sides are in one process, on a few seeds that everybody has. When a class is graded, the very same cell
gives the answers alone, to inputs that come from outside, and whoever grades holds the other end, in another process.
There is then nothing in the student's process that would give points, and no seed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .limit import SECONDS, Limited
from .plain import TIMEOUT, Fault, arrays, decode, encode
from .score import Part, Score, in_halves, weakest

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

    def sent(self, seed: int) -> Any:
        """The inputs of the student's code as JSON: the same for the same seed, always."""
        return encode(self.make(seed))

    def inputs(self, seed: int) -> Any:
        """The inputs as the student's code gets them."""
        return arrays(decode(self.sent(seed)))

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

    def examine(self, seeds: Iterable[int]) -> Generator[Any, Any, Score]:
        """The judge's side of the dialogue: it gives inputs as JSON, takes answers as JSON, and returns the score.

        A part counts if it is right for every one of the seeds.
        """
        scores = []
        for seed in seeds:
            answers = yield self.sent(seed)
            scores.append(self.judge(self.inputs(seed), answers))
        return weakest(scores)

    def answering(self, student: object) -> Callable[[Any], Any]:
        """The student's side of the dialogue: from inputs as JSON to answers as JSON.

        A function that had to be stopped once has less time from then on: a cell in which every call is stopped has to
        end before a grader stops the cell, and with it the parts of the task that are right.
        """
        seconds = self.seconds

        def answer(inputs: Any) -> Any:
            nonlocal seconds
            found = self.answers(student, arrays(decode(inputs)), seconds)
            if f'"fault": ["{TIMEOUT}"' in json.dumps(found):
                seconds = self.seconds / 4
            return found

        return answer

    def score(self, student: object, seeds: Iterable[int]) -> Score:
        """Both sides of the dialogue, in this process.

        Example:
            >>> from minitorch.classroom import checks
            >>> checks.eager.unbroadcast.score(lambda gradient, shape: gradient, (7,)).points < 30
            True
        """
        dialogue, answer = self.examine(seeds), self.answering(student)
        answers = None
        while True:
            try:
                inputs = dialogue.send(answers)
            except StopIteration as end:
                found: Score = end.value
                return found
            answers = answer(inputs)

    def __call__(self, student: object, seeds: Iterable[int] = ()) -> Score | None:
        """Check the student's object, on `seeds` besides those of every student; shown as the result of a cell.

        While a class is graded it returns None, and answers the grader instead (see `ask_grader`).
        """
        if _grader is None:
            return self.score(student, (*SEEDS, *seeds))
        answer = self.answering(student)
        inputs = _grader({"task": self.name})["inputs"]
        while inputs is not None:
            inputs = _grader({"answers": answer(inputs)})["inputs"]
        return None


_grader: Callable[[object], Any] | None = None  # set where a class is graded, and nowhere else


def ask_grader(ask: Callable[[object], Any] | None) -> None:
    """From now on checks do not judge, but answer a grader: `ask` sends it a message and waits for the next one."""
    global _grader
    _grader = ask


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
