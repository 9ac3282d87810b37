"""Functions that go wrong under jit, to be repaired: traced at every step, one side of a branch, a leaked stand-in."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from ...asks import tracing as asks
from ...asks.plain import Array, described
from ..compare import wrong_array
from ..task import Task, by_case

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


def _wrong_train(case: Any, answer: Any) -> str | None:
    part, (x, rates) = case
    given, traces, calls, outside = answer
    right = x
    for rate in rates:
        right = right - rate * right
    what = f"{len(rates)} steps with the rates {[float(f'{rate:.3g}') for rate in rates]}"
    if reason := wrong_array(given, right, 1e-9):
        return f"{what}: {reason}"
    if part != "the right numbers" and not calls:
        return f"{what}: nothing that was jitted is ever called"
    if part != "the right numbers" and outside:
        return (
            f"{what}: {outside} operations with `x` outside of the jitted function, and all of a step belongs into it"
        )
    if part == "a call for each step" and calls != len(rates):
        return f"{what}: {calls} calls of jitted functions, and it is one for each step"
    if part == "one trace" and traces != 1:
        many = "one for each step" if traces == len(rates) else "one is enough"
        why = "a function that is jitted anew has traced nothing yet, and a Python number belongs to the signature"
        return f"{what}: {traces} traces, {many}; {why}"
    return None


train = Task(
    asks.train,
    TRAIN,
    _trainings,
    lambda cases, answers: by_case(TRAIN, [(part, (part, case)) for part, case in cases], answers, _wrong_train),
)

# --- a branch and a leak ----------------------------------------------------------------------------------------

CLIPPED = {"both sides": 8, "a norm for each call": 6, "nothing leaks": 6}


def _arrays(seed: int) -> Cases:
    random = Random(seed)
    limit = float(random.randrange(2, 5))
    n = random.randrange(2, 5)

    def array(norm: float) -> Array:
        drawn = np.array([random.uniform(0.1, 1) for _ in range(n)])
        return np.asarray(drawn * (norm / float(np.sqrt((drawn * drawn).sum()))))

    small, large = array(limit * 0.5), array(limit * 3)
    return [
        ("both sides", ([small, large], limit)),
        ("both sides", ([large, small, np.zeros(n)], limit)),
        ("a norm for each call", ([small, large, array(limit * 0.7), small], limit)),
        ("nothing leaks", ([large, small], limit)),
    ]


def _wrong_clipped(case: Any, answer: Any) -> str | None:
    part, (arrays, limit) = case
    answers, traces, alive = answer
    for place, (array, pair) in enumerate(zip(arrays, answers, strict=True)):
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
        if not _is_number(pair[1], float(norm)):
            return f"{where}: the norm is {_shown(pair[1])}"
    if traces != 1:
        return f"{traces} traces for arrays of one shape"
    if part == "nothing leaks" and alive:
        are = "stand-in is" if alive == 1 else "stand-ins are"
        return f"{alive} {are} alive when the trace is over: something outside of the function holds them"
    return None


def _is_number(value: Any, right: float) -> bool:
    array = getattr(value, "array", None)
    number = float(array) if array is not None and array.shape == () else value
    return type(number) is float and bool(np.isclose(number, right, rtol=1e-9))


def _shown(value: Any) -> str:
    array = getattr(value, "array", None)
    return f"{float(array):.4g}" if array is not None and array.shape == () else described(value)


clipped = Task(
    asks.clipped,
    CLIPPED,
    _arrays,
    lambda cases, answers: by_case(CLIPPED, [(part, (part, case)) for part, case in cases], answers, _wrong_clipped),
)
