"""Functions that go wrong under jit, to be repaired: traced at every step, one side of a branch, a leaked stand-in."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from ...asks import tracing as asks
from ...asks.plain import Array, arrays, described, plain
from ..compare import wrong_array
from ..samples import unforeseen
from ..task import Task, cases_with

Cases = list[tuple[str, Any]]

# --- a retrace at every step ------------------------------------------------------------------------------------

TRAIN = {"the right numbers": 3, "a call for each step": 4, "one trace": 8}


def _trainings(seed: int) -> Cases:
    random = np.random.default_rng(seed)
    return [
        (part, (random.uniform(-1, 1, int(random.integers(2, 5))), (0.5 / (1 + np.arange(steps))).tolist()))
        for part in TRAIN
        for steps in (1 + int(random.integers(2, 5)), 6)
    ]


class Programs:
    """Runs programs of jitted functions. The last digits of its results are its own: nobody can make up a result."""

    def __init__(self, case: tuple[str, Any]) -> None:
        self._programs: list[Any] = []
        self._known = [case[1][0]]
        self._calls = self._outside = 0

    @property
    def seen(self) -> tuple[int, int, int, Array]:
        """Traces, calls, calls with an array like `x` that is neither `x` nor a result, and the last result."""
        return len(self._programs), self._calls, self._outside, self._known[-1]

    def reply(self, question: Any) -> Any:
        """The number of a program, to compile; or its results, to run."""
        what, program, *given = question
        if what == "compile":
            self._programs.append(program)
            return len(self._programs) - 1
        self._calls += 1
        known = {array.tobytes() for array in self._known}
        for array in given[0]:  # one number everywhere, such as a rate, has nothing of `x` in it
            made = array.shape == self._known[0].shape and not (array == array.flat[0]).all()
            self._outside += made and array.tobytes() not in known
        found = asks.run_program(self._programs[program], given[0])
        marked = [_marked(each) for each in found] if isinstance(found, list) else _marked(found)
        self._known += marked if isinstance(marked, list) else [marked]
        return marked


def _marked(array: Array) -> Array:
    """The array with last digits that are drawn, where they are far below what a check tells apart."""
    return array * (1 + 1e-13 * unforeseen().integers(1, 1000, array.shape)) if array.dtype == np.float64 else array


def _wrong_train(case: Any, answer: Any) -> str | None:
    part, (x, rates) = case
    given, (traces, calls, outside, last) = answer
    right = x
    for rate in rates:
        right = right - rate * right
    what = f"{len(rates)} steps with the rates {[float(f'{rate:.3g}') for rate in rates]}"
    if reason := wrong_array(given, right, 1e-9):
        return f"{what}: {reason}"
    if part == "the right numbers":
        return None
    if not calls:
        return f"{what}: nothing that was jitted is ever called"
    if outside or given.array.tobytes() != last.array.tobytes():
        return f"{what}: operations with `x` outside of the jitted function, and all of a step belongs into it"
    if part == "a call for each step" and calls != len(rates):
        return f"{what}: {calls} calls of jitted functions, and it is one for each step"
    if part == "one trace" and traces != 1:
        many = "one for each step" if traces == len(rates) else "one is enough"
        why = "a function that is jitted anew has traced nothing yet, and a Python number belongs to the signature"
        return f"{what}: {traces} traces, {many}; {why}"
    return None


_judge_train = cases_with(TRAIN, _wrong_train, with_part=True)
train = Task(asks.train, TRAIN, _trainings, _judge_train, oracle=Programs)

# --- a branch and a leak ----------------------------------------------------------------------------------------

CLIPPED = {"both sides": 8, "a norm for each call": 6, "nothing leaks": 6}


# The norms of the arrays that the program is run on, as shares of the limit.
NORMS = {"both sides": (3.0, 0.5, 0.0, 0.9), "a norm for each call": (0.5, 3.0, 0.7, 0.5), "nothing leaks": (3.0, 0.5)}


def _limits(seed: int) -> Cases:
    """The length of the arrays, and the limit; the arrays are drawn when the program is there."""
    random = Random(seed)
    return [(part, (random.randrange(2, 5), float(random.randrange(2, 5)))) for part in CLIPPED]


def _wrong_clipped(case: Any, answer: Any) -> str | None:
    part, (length, limit) = case
    program, alive = arrays(answer)
    for place, share in enumerate(NORMS[part]):
        drawn = unforeseen().uniform(0.1, 1, length)
        array = drawn * (limit * share / float(np.sqrt((drawn * drawn).sum())))
        with np.errstate(all="ignore"):
            found = asks.run_program(program, [array])
        pair = plain(tuple(found) if isinstance(found, list) else found)
        norm = np.sqrt((array * array).sum())
        where = f"call {place + 1} of one jitted function, with a norm of {norm:.4g} and the limit {limit:g}"
        if type(pair) is not tuple or len(pair) != 2:
            return f"{where}: a pair was expected, the clipped array and the norm, and it is {described(pair)}"
        right = array * (limit / norm) if norm > limit else array
        if reason := wrong_array(pair[0], right, 1e-9):
            other = array if norm > limit else array * (limit / max(norm, 1e-300))
            turned = place and wrong_array(pair[0], other, 1e-9) is None
            why = "; one side was chosen while tracing, for all calls" if turned else ""
            zero = "; 0 * NaN is NaN: choose a side with `where`, not with a mask" if not norm else ""
            return f"{where}: {reason}{zero or why}"
        if reason := wrong_array(pair[1], np.asarray(norm), 1e-9):
            return f"{where}: the norm is wrong: {reason}"
    if part == "nothing leaks" and alive:
        are = "stand-in is" if alive == 1 else "stand-ins are"
        return f"{alive} {are} alive when the trace is over: something outside of the function holds them"
    return None


clipped = Task(asks.clipped, CLIPPED, _limits, cases_with(CLIPPED, _wrong_clipped, with_part=True))
