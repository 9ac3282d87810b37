"""`Driver`: a test driver, from the student's object and a case to an answer; and how it talks to a grader."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from minitorch.interpreters import interpreting, set_grad_enabled

from .limit import SECONDS, Limited
from .needs import Needs
from .plain import MUTATION, TIMEOUT, Fault, arrays, decode, encode

Answer = Callable[[Limited, Any], Any]


@dataclass(frozen=True)
class Driver:
    """The test driver of a task: it calls the student's code for an answer.

    Attributes:
        name: of the task: the module of the exercise and the name of what is to be written, e.g. ``"eager.observe"``.
        function: from the student's object, behind a time limit, and a case to the answer.
        needs: what is there of the engine when work is graded, and in ``minitorch check``.
        seconds: for each call of the student's object.
    """

    name: str
    function: Answer = field(repr=False)
    needs: Needs = field(repr=False)
    seconds: float = SECONDS

    def answering(self, student: object, send: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
        """From a case as JSON to the answer of the student's code as JSON; `send` is how to consult the judge.

        Each call has its own time limit. A function that had to be stopped once has less time from then on: a cell in
        which every call is stopped has to end before a grader stops the cell, and with it the parts of the task that
        are right.
        """
        seconds = self.seconds

        def answer(case: Any) -> Any:
            nonlocal seconds
            with _computing():
                found = encode(self.function(Limited(student, seconds, send), arrays(decode(case))))
            if f'"fault": ["{TIMEOUT}"' in json.dumps(found):
                seconds = self.seconds / 4
            return found

        return answer

    def __call__(self, student: object, seeds: Iterable[int] = ()) -> None:
        """Answer the grader's cases, as long as there are any. A task's check takes the same arguments.

        Raises:
            RuntimeError: if there is no grader (see `answer_grader`).
        """
        if _grader is None:
            raise RuntimeError(f"{self.name} can be run by a grader only: use minitorch.classroom.checks")
        grader = _grader

        def send(answer: Any) -> Any:
            return grader({"answer": answer})["case"]

        answer = self.answering(student, send)
        case = grader({"task": self.name})["case"]
        while case is not None:
            case = send(answer(case))


@contextmanager
def _computing() -> Iterator[None]:
    """Eager mode with a tape, as in a new session, whatever the check's cell is inside of and has switched off."""
    enabled = set_grad_enabled(True)
    try:
        with interpreting(None):
            yield
    finally:
        set_grad_enabled(enabled)


def driver(name: str, needs: Needs, seconds: float = SECONDS) -> Callable[[Answer], Driver]:
    """Decorate the function that is the driver of the task of this name.

    Example:
        >>> @driver("arithmetic.double", Needs())
        ... def double(call, case):
        ...     return call(*case)
        >>> double.answering(lambda number: 2 * number)({"tuple": [3]})
        6
    """
    return lambda function: Driver(name, function, needs, seconds)


def call_with_arguments(call: Limited, case: tuple[str, tuple[Any, ...]]) -> Any:
    """Call the student's function with the arguments of the case: the driver of a task that has no other."""
    return call(*case[1])


def call_purely(call: Limited, case: tuple[str, tuple[Any, ...]]) -> Any:
    """Call the student's function with the arguments of the case, which it leaves as they are.

    Example:
        >>> in_order = Driver("arithmetic.in_order", call_purely, Needs())
        >>> case = {"tuple": ["sorted", {"tuple": [{"list": [2, 1]}]}]}
        >>> in_order.answering(sorted)(case)
        {'list': [1, 2]}
        >>> in_order.answering(lambda numbers: numbers.sort() or numbers)(case)["fault"][1]
        'it changes its argument 1, which the caller may still need: work on a copy'
    """
    before = [encode(each) for each in case[1]]
    answer = call_with_arguments(call, case)
    changed = [number for number, each in enumerate(case[1], 1) if encode(each) != before[number - 1]]
    if not changed or isinstance(answer, Fault):
        return answer
    return Fault(MUTATION, f"it changes its argument {changed[0]}, which the caller may still need: work on a copy")


def within(work: Callable[..., Any]) -> Answer:
    """Make the function of a driver of `work`, which gets the student's object and what the case has, and its time.

    Example:
        >>> twice = Driver("arithmetic.twice", within(lambda function, number: function(function(number))), Needs())
        >>> twice.answering(lambda number: 2 * number)({"tuple": ["twice", 3]})
        12
    """

    def answer(call: Limited, case: tuple[str, Any]) -> Any:
        return call.within(work, *(case[1] if type(case[1]) is tuple else (case[1],)))

    return answer


def refused(answer: Any, is_wanted: bool) -> Any:
    """What was raised as a pair of texts, if that is wanted of the student's function; any other answer as it is."""
    unlike = (TIMEOUT, "NotImplementedError", "NameError", "WithheldError")
    is_one = is_wanted and isinstance(answer, Fault) and answer.kind not in unlike
    return (answer.kind, answer.text) if is_one else answer


_grader: Callable[[object], Any] | None = None  # set where a class is graded, and nowhere else


def answer_grader(send: Callable[[object], Any] | None) -> None:
    """From now on drivers answer a grader: `send` sends it a message and waits for the next one."""
    global _grader
    _grader = send
