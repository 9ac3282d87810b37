"""`Task`: a check in three steps, of which only the second runs code of the student's.

    inputs(seed)           -> cases, plain data
    answer(call, case)     -> plain data       `call` is the student's object, behind a time limit
    judge(cases, answers)  -> a reason, or none, for each part

The steps are a dialogue (`Task.examine`): a case is sent, an answer comes back, until there is a score. Where an
answer is wrong, smaller cases follow. In the student's notebook both sides are in one process, on a few seeds that
everybody has. When a class is graded, the very same cell gives the answers alone, to cases that come from outside, and
whoever grades holds the other end, in another process. There is then nothing in the student's process that would give
points, and no seed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .limit import SECONDS, Limited
from .plain import TIMEOUT, Fault, arrays, decode, encode
from .score import Part, Score, in_halves, weakest
from .smaller import smaller

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
        make: from a seed to the cases.
        ask: from the student's object and a case to the answer. It uses the engine as it likes.
        verdicts: from cases and answers to what is said of each part.
        seconds: for each call of the student's object.
        shrinks: for cases that are a part and the text of a graph, ``(part, text, answer) -> why it is wrong``: of each
            part the first wrong case is made smaller, and what `verdicts` gets are attempts (see `smaller.py`).
    """

    name: str
    parts: Mapping[str, int]
    make: Callable[[int], Any] = field(repr=False)
    ask: Callable[[Limited, Any], Any] = field(repr=False)
    verdicts: Judge = field(repr=False)
    seconds: float = SECONDS
    shrinks: Callable[[str, str, Any], str | None] | None = field(default=None, repr=False)

    @property
    def points(self) -> int:
        """The maximum of points."""
        return sum(self.parts.values())

    def inputs(self, seed: int) -> list[Any]:
        """The cases, as the student's code gets them: the same for the same seed, always."""
        return [arrays(decode(encode(case))) for case in self.make(seed)]

    def answer(self, student: object, case: Any, seconds: float | None = None) -> Any:
        """The answer of the student's code to a case, as JSON; each call has its own time limit, or `seconds`."""
        return encode(self.ask(Limited(student, seconds or self.seconds), case))

    def judge(self, inputs: Any, answers: Any) -> Score:
        """The score of answers that came as JSON; of whatever else came, too: it has no points."""
        try:
            said = self.verdicts(inputs, decode(answers))
        except Exception as error:  # the answers are not to be trusted to have any form
            said = dict.fromkeys(self.parts, f"the answers cannot be read ({type(error).__name__})")
        return Score(self.name, tuple(_part(name, of, said[name]) for name, of in self.parts.items()))

    def examine(self, seeds: Iterable[int]) -> Generator[Any, Any, Score]:
        """The judge's side of the dialogue: it gives cases as JSON, takes answers as JSON, and returns the score.

        A part counts if it is right for every one of the seeds.
        """
        scores = []
        for seed in seeds:
            cases, answers = self.inputs(seed), []
            failed: set[str] = set()
            for case in cases:
                answer = yield encode(case)
                if self.shrinks is not None and type(case[1]) is str:
                    small = None if case[0] in failed else (yield from self._smaller(case[0], case[1], answer))
                    if small is not None:
                        failed.add(case[0])
                    answer = {"tuple": [answer, small]}
                answers.append(answer)
            scores.append(self.judge(cases, {"list": answers}))
        return weakest(scores)

    def _smaller(self, part: str, text: str, given: Any) -> Generator[Any, Any, Any]:
        """A smaller graph and the answer to it, as JSON, if the given answer is wrong."""
        assert self.shrinks is not None
        try:
            dialogue = smaller(text, decode(given), partial(self.shrinks, part))
            candidate = next(dialogue)
            while True:
                candidate = dialogue.send(decode((yield encode((part, candidate)))))
        except StopIteration as end:
            return encode(end.value)
        except Exception:  # an answer that is not to be trusted to have any form: the verdict says so
            return None

    def answering(self, student: object) -> Callable[[Any], Any]:
        """The student's side of the dialogue: from a case as JSON to an answer as JSON.

        A function that had to be stopped once has less time from then on: a cell in which every call is stopped has to
        end before a grader stops the cell, and with it the parts of the task that are right.
        """
        seconds = self.seconds

        def answer(case: Any) -> Any:
            nonlocal seconds
            found = self.answer(student, arrays(decode(case)), seconds)
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
        given = None
        while True:
            try:
                case = dialogue.send(given)
            except StopIteration as end:
                found: Score = end.value
                return found
            given = answer(case)

    def __call__(self, student: object, seeds: Iterable[int] = ()) -> Score | None:
        """Check the student's object, on `seeds` besides those of every student; shown as the result of a cell.

        While a class is graded it returns None, and answers the grader instead (see `ask_grader`).
        """
        if _grader is None:
            return self.score(student, (*SEEDS, *seeds))
        answer = self.answering(student)
        case = _grader({"task": self.name})["case"]
        while case is not None:
            case = _grader({"answer": answer(case)})["case"]
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
