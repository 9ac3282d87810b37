"""`Task`: a check in three steps, of which only the second runs code of the student's.

    inputs(seed)           -> cases, plain data
    driver.answering(object)  -> from a case to an answer, plain data      (see `minitorch.classroom.harness`)
    judge(cases, answers)  -> a reason, or none, for each part

The steps are a dialogue (`Task.examine`): a case is sent, an answer comes back, until there is a score. Where an
answer is wrong, smaller cases follow. In the student's notebook both sides are in one process, on a few seeds that
everybody has. When a class is graded, the very same cell finds a `Driver` where this module has a `Task`: it gives the
answers alone, to cases that come from outside, and whoever grades holds the other end, in another process. There is
then nothing in the student's process that would give points, and no seed.

The student's process may say anything. So nothing that it counts or notes about itself gives points, but what the judge
can compute again: an answer that is data (a graph, a plan, the rows of a trace), which the judge runs itself, on
numbers that are drawn when the answer is there (`samples.unforeseen`); or calls of an `Oracle`, which is on the judge's
side: a function that the student's code is given sends its arguments there and returns the reply (`Limited.consult`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from random import Random
from typing import Any, Protocol

from ..harness import Driver
from ..harness.plain import Fault, arrays, decode, encode
from .golf import Golf
from .reasons import Wrong, in_context
from .samples import in_parts
from .score import Count, Part, Score, in_halves, weakest
from .smaller import smaller

SEEDS = (0, 1, 2)  # of the student's own checks
SHRINKING_SECONDS = 10.0  # for the smaller cases of a task, all seeds together; raising it makes slow answers slower
MOST_REASON = 5000  # characters: a listing of a hundred lines, of which somebody reads the first ones

MOST_QUESTIONS = 1000  # to the oracle of one case; raising it lets a loop without end go on for longer

Cases = list[tuple[str, Any]]  # the part of each, and what is sent
Table = Mapping[str, Iterable[Any]]  # of each part what is sent

# The verdict on a part: None (it is right), why it is wrong, how much of it is right and why not all, or its count.
Verdict = str | tuple[float, str] | Count | None
Judge = Callable[[Any, Any], Mapping[str, Verdict]]
Why = Callable[[str, Any, Any], str | None]  # from a part, a case and an answer to the reason why it is wrong


class Oracle(Protocol):
    """The judge's end of a function that the student's code is given: it computes the replies, and notes the calls.

    What it replies should not be known before, so that no reply can be made up: a function that is drawn, for instance.
    """

    @property
    def seen(self) -> Any:
        """What was noted, as plain data."""

    def reply(self, question: Any) -> Any:
        """Reply to a question; an exception refuses it, and is raised as a ValueError at the student's call."""


@dataclass(frozen=True, repr=False)
class Task:
    """One task of an exercise. Its cases are judged one by one: a part is right if all of its cases are.

    Attributes:
        driver: from the student's object and a case to the answer; it has the task's name.
        parts: what it asks for, and the points for each.
        cases: from a generator of random numbers to cases: the part, what is sent, and perhaps what the oracle alone
            gets; or a table of the cases of each part.
        wrong: ``(part, what was sent, answer) -> why the answer is wrong, or None``; it may raise `Wrong` as well.
        draws: from a seed to the generator.
        about: what was sent, in words for the student: a line, which is put before the reason, or lines, of which all
            but the first are a listing below it; the first may be empty.
        on_fault: ``(part, fault) -> what to add`` to the reason of a call that raised something.
        refine: ``(said, answers) -> said``, where the answers together say more than each alone.
        after: parts that count only if all of others are right, or the part without which no other counts; by default
            those that are scored by a number, after all others.
        golf: parts whose right answers are scored by a number, and how.
        count: ``(part, what was sent, answer) -> the number``; the cases of a part add up.
        oracle: from a case to the oracle that its driver consults. Answers are pairs then, of the answer and of what
            the oracle has seen, or a fault.
        shrinks: whether wrong cases that are a graph's text are made smaller (`smaller.py`): of each part the first.
        judges: ``(cases, answers) -> what is said of each part``, in place of `verdicts`; with `shrinks`, it gets pairs
            of an answer and the smaller case.
    """

    driver: Driver
    parts: Mapping[str, int]
    cases: Callable[[Any], Iterable[Any]]
    wrong: Why
    _: KW_ONLY
    draws: Callable[[int], Any] = Random
    about: Callable[[Any], str] | None = None
    on_fault: Callable[[str, Fault], str] | None = None
    refine: Callable[[dict[str, Verdict], list[Any]], Mapping[str, Verdict]] | None = None
    after: Mapping[str, Sequence[str]] | str | None = None
    golf: Mapping[str, Golf] = field(default_factory=dict)
    count: Callable[[str, Any, Any], int] | None = None
    oracle: Callable[[Any], Oracle] | None = None
    shrinks: bool = False
    judges: Judge | None = None

    @property
    def name(self) -> str:
        """The module of the exercise and the name of what is to be written."""
        return self.driver.name

    @property
    def points(self) -> int:
        """The maximum of points."""
        return sum(self.parts.values())

    def inputs(self, seed: int) -> list[Any]:
        """The cases, as the student's code gets them: the same for the same seed, always."""
        made = self.cases(self.draws(seed))
        return [arrays(decode(encode(case))) for case in (in_parts(made) if isinstance(made, Mapping) else made)]

    def judge(self, inputs: Any, answers: Any) -> Score:
        """The score of answers that came as JSON; of whatever else came, too: it has no points."""
        try:
            said = (self.judges or self.verdicts)(inputs, decode(answers))
        except Exception as error:  # the answers are not to be trusted to have any form
            said = dict.fromkeys(self.parts, f"the answers cannot be read ({type(error).__name__})")
        return Score(self.name, tuple(_part(name, of, said[name]) for name, of in self.parts.items()))

    def verdicts(self, made: list[Any], answers: Any) -> Mapping[str, Verdict]:
        """What is said of each part."""
        if type(answers) is not list:
            raise ValueError("the answers to cases are a list")
        rows: list[tuple[str, Any, Any, Any]] = []
        for (part, case, *_), given in zip(made, answers, strict=True):
            answer, small = given if self.shrinks and type(case) is str else (given, None)
            rows.append((part, case, answer, small))
        whole = [answer for _, _, answer, _ in rows]
        if rows and all(isinstance(answer, Fault) for answer in whole):
            return dict.fromkeys(self.parts, self._told(*rows[0][:3]))
        said: dict[str, Verdict] = dict.fromkeys(self.parts)
        for part, case, answer, small in rows:
            if said[part] is None and (reason := self._told(part, case, answer)):
                said[part] = (small and self._told(part, *small)) or reason
        said |= self.refine(said, whole) if self.refine else {}
        others = [part for part in self.parts if part not in self.golf]
        after = dict.fromkeys(self.golf, others) if self.after is None else self.after
        if isinstance(after, str):
            after = {part: [after] for part in self.parts if part != after}
        for part, earlier in after.items():
            missing = [each for each in earlier if said[each] is not None]
            if said[part] is None and missing:
                said[part] = f"it counts when the part {missing[0]!r} is right"
        for part, scoring in self.golf.items():
            if said[part] is None and self.count is not None:
                said[part] = scoring.verdict(sum(self.count(*row[:3]) for row in rows if row[0] == part))
        return said

    def _told(self, part: str, case: Any, answer: Any) -> str | None:
        if not isinstance(answer, Fault):
            reason = self._judged(part, case, answer)
        elif answer.kind == "NotImplementedError":
            return str(answer)
        else:
            reason = f"{answer}{self.on_fault(part, answer) if self.on_fault else ''}"
        return in_context(reason, self.about(case)) if reason and self.about else reason

    def _judged(self, part: str, case: Any, answer: Any) -> str | None:
        try:
            return self.wrong(part, case, answer)
        except Wrong as reason:
            return str(reason)

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
                if self.shrinks and type(case[1]) is str:
                    began, small = time.monotonic(), None
                    if case[0] not in failed:
                        small = yield from smaller(case[0], case[1], answer, self._judged, left)
                    left -= time.monotonic() - began
                    failed |= {case[0]} if small else set()
                    answer = {"tuple": [answer, small]}
                elif self.oracle is not None:
                    answer = yield from _consulted(self.oracle(case), answer)
                answers.append(answer)
            scores.append(self.judge(cases, {"list": answers}))
        return weakest(scores)

    def score(self, student: object, seeds: Iterable[int]) -> Score:
        """Both sides of the dialogue, in this process.

        Example:
            >>> from minitorch.classroom import checks
            >>> checks.eager.unbroadcast.score(lambda gradient, shape: gradient, (7,)).points < 30
            True
        """
        dialogue = self.examine(seeds)
        answer = self.driver.answering(student, dialogue.send)
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
