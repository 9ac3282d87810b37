"""`Task`: a check in three steps, of which only the second runs code of the student's.

    inputs(seed)           -> cases, plain data
    ask.answering(object)  -> from a case to an answer, plain data      (see `minitorch.classroom.asks`)
    judge(cases, answers)  -> a reason, or none, for each part

The steps are a dialogue (`Task.examine`): a case is sent, an answer comes back, until there is a score. Where an
answer is wrong, smaller cases follow. In the student's notebook both sides are in one process, on a few seeds that
everybody has. When a class is graded, the very same cell finds an `Ask` where this module has a `Task`: it gives the
answers alone, to cases that come from outside, and whoever grades holds the other end, in another process. There is
then nothing in the student's process that would give points, and no seed.

The student's process may say anything. So nothing that it counts or notes about itself gives points, but what the judge
can compute again: an answer that is data (a graph, a plan, the rows of a trace), which the judge runs itself, on
numbers that are drawn when the answer is there (`samples.unforeseen`); or calls of an `Oracle`, which is on the judge's
side: a function that the student's code is given sends its arguments there and returns the reply (`Limited.consult`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from ..asks import Ask
from ..asks.plain import Fault, arrays, decode, encode
from .score import Count, Part, Score, in_halves, weakest
from .smaller import smaller

SEEDS = (0, 1, 2)  # of the student's own checks
SHRINKING_SECONDS = 10.0  # for the smaller cases of a task, all seeds together; raising it makes slow answers slower
MOST_REASON = 5000  # characters: a listing of a hundred lines, of which somebody reads the first ones

MOST_QUESTIONS = 1000  # to the oracle of one case; raising it lets a loop without end go on for longer

# The verdict on a part: None (it is right), why it is wrong, how much of it is right and why not all, or its count.
Verdict = str | tuple[float, str] | Count | None
Judge = Callable[[Any, Any], Mapping[str, Verdict]]


class Oracle(Protocol):
    """The judge's end of a function that the student's code is given: it computes the replies, and notes the calls.

    What it replies should not be known before, so that no reply can be made up: a function that is drawn, for instance.
    """

    @property
    def seen(self) -> Any:
        """What was noted, as plain data."""

    def reply(self, question: Any) -> Any:
        """Reply to a question; an exception refuses it, and is raised as a ValueError at the student's call."""


@dataclass(frozen=True)
class Task:
    """One task of an exercise.

    Attributes:
        ask: from the student's object and a case to the answer; it has the task's name.
        parts: what it asks for, and the points for each.
        make: from a seed to the cases.
        verdicts: from cases and answers to what is said of each part.
        shrinks: for cases that are a part and the text of a graph, ``(part, text, answer) -> why it is wrong``: of each
            part the first wrong case is made smaller, and what `verdicts` gets are attempts (see `smaller.py`).
        oracle: from a case to the oracle that its ask consults. A case is a part, what is sent, and perhaps, for the
            oracle alone, what is not. `verdicts` gets pairs of the answer and what the oracle has seen, or a fault.
    """

    ask: Ask
    parts: Mapping[str, int]
    make: Callable[[int], Any] = field(repr=False)
    verdicts: Judge = field(repr=False)
    shrinks: Callable[[str, str, Any], str | None] | None = field(default=None, repr=False)
    oracle: Callable[[Any], Oracle] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The module of the exercise and the name of what is to be written."""
        return self.ask.name

    @property
    def points(self) -> int:
        """The maximum of points."""
        return sum(self.parts.values())

    def inputs(self, seed: int) -> list[Any]:
        """The cases, as the student's code gets them: the same for the same seed, always."""
        return [arrays(decode(encode(case))) for case in self.make(seed)]

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
        left = SHRINKING_SECONDS
        for seed in seeds:
            cases, answers = self.inputs(seed), []
            failed: set[str] = set()
            for case in cases:
                answer = yield encode(case if self.oracle is None else case[:2])
                if self.shrinks is not None and type(case[1]) is str:
                    began = time.monotonic()
                    small = None if case[0] in failed else (yield from self._smaller(case[0], case[1], answer, left))
                    left -= time.monotonic() - began
                    if small is not None:
                        failed.add(case[0])
                    answer = {"tuple": [answer, small]}
                elif self.oracle is not None:
                    answer = yield from _consulted(self.oracle(case), answer)
                answers.append(answer)
            scores.append(self.judge(cases, {"list": answers}))
        return weakest(scores)

    def _smaller(self, part: str, text: str, given: Any, seconds: float) -> Generator[Any, Any, Any]:
        """A smaller graph and the answer to it, as JSON, if the given answer is wrong; found in so many seconds."""
        assert self.shrinks is not None
        try:
            dialogue = smaller(text, decode(given), partial(self.shrinks, part), seconds)
            candidate = next(dialogue)
            while True:
                candidate = dialogue.send(decode((yield encode((part, candidate)))))
        except StopIteration as end:
            return encode(end.value)
        except Exception:  # an answer that is not to be trusted to have any form: the verdict says so
            return None

    def score(self, student: object, seeds: Iterable[int]) -> Score:
        """Both sides of the dialogue, in this process.

        Example:
            >>> from minitorch.classroom import checks
            >>> checks.eager.unbroadcast.score(lambda gradient, shape: gradient, (7,)).points < 30
            True
        """
        dialogue = self.examine(seeds)
        answer = self.ask.answering(student, dialogue.send)
        given = None
        while True:
            try:
                case = dialogue.send(given)
            except StopIteration as end:
                found: Score = end.value
                return found
            given = answer(case)

    def __call__(self, student: object, seeds: Iterable[int] = ()) -> Score:
        """Check the student's object, on `seeds` besides those of every student; shown as the result of a cell."""
        return self.score(student, (*SEEDS, *seeds))


def _consulted(oracle: Oracle, message: Any) -> Generator[Any, Any, Any]:
    """Reply to questions until the answer comes; both are JSON."""
    questions = 0
    while type(message) is dict and "question" in message:
        questions += 1
        try:
            if questions > MOST_QUESTIONS:
                raise ValueError(f"it was called more than {MOST_QUESTIONS} times")
            reply = oracle.reply(arrays(decode(message).what))
        except Exception as error:  # the question is not to be trusted to have any form
            reply = Fault(type(error).__name__, str(error))
        message = yield {"tuple": [encode(reply)]}  # and never None, which ends the examination
    return message if type(message) is dict and "fault" in message else {"tuple": [message, encode(oracle.seen)]}


def _part(name: str, of: int, said: Verdict) -> Part:
    if said is None:
        return Part(name, float(of), of)
    if isinstance(said, Count):
        points = in_halves(said.fraction, of)
        return Part(name, points, of, "" if points == of else str(said), said)
    fraction, reason = (0.0, said) if isinstance(said, str) else said
    if len(reason) > MOST_REASON:
        reason = f"{reason[:MOST_REASON]}\n(and so on: {len(reason)} characters)"
    return Part(name, in_halves(fraction, of), of, reason)


def _attempted(answer: object) -> object:
    """The answer in an attempt (see `smaller.py`), which is that of the whole graph."""
    return answer[0] if type(answer) is tuple and len(answer) == 2 and isinstance(answer[0], Fault) else answer


def by_case(
    parts: Mapping[str, int],
    cases: Iterable[tuple[str, Any]],
    answers: object,
    wrong: Callable[[Any, Any], str | None],
    about: Callable[[Any], str] | None = None,
) -> Mapping[str, Verdict]:
    """The verdict on parts with several cases: a part is right if all of its cases are.

    Args:
        parts: of the task.
        cases: the name of a part, and what else there is to know about the case.
        answers: one for each case.
        wrong: ``(case, answer) -> the reason why it is wrong, or None``.
        about: names a case in a few words, for the reason of a call that raised something.

    Raises:
        ValueError: if there are not as many answers as cases.
    """
    if type(answers) is not list:
        raise ValueError("the answers to cases are a list")
    pairs = list(zip(cases, answers, strict=True))

    def told(case: Any, fault: Fault) -> str:
        unwritten = fault.kind == "NotImplementedError"
        return str(fault) if about is None or unwritten else f"{about(case)}: {fault}"

    faults = [told(case, fault) for (_, case), answer in pairs if isinstance(fault := _attempted(answer), Fault)]
    if len(faults) == len(pairs) > 0:
        return dict.fromkeys(parts, faults[0])
    said: dict[str, Verdict] = dict.fromkeys(parts)
    for (part, case), answer in pairs:
        if said[part] is None:
            said[part] = told(case, answer) if isinstance(answer, Fault) else wrong(case, answer)
    return said


def cases_with(
    parts: Mapping[str, int],
    wrong: Callable[[Any, Any], str | None],
    *,
    with_part: bool = False,
    about: Callable[[Any], str] | None = None,
) -> Judge:
    """The verdicts of a task that says of each case why an answer is wrong (see `by_case`).

    Args:
        parts, wrong, about: as for `by_case`.
        with_part: whether a case, as `wrong` and `about` get it, is a pair of its part and the rest.
    """

    def verdicts(cases: Any, answers: Any) -> Mapping[str, Verdict]:
        return by_case(parts, [(each[0], each if with_part else each[1]) for each in cases], answers, wrong, about)

    return verdicts
