"""The key of a jit cache: pairs of calls that can share a program, and pairs that cannot."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from ...asks import tracing as asks
from ...asks.plain import described
from ..task import Task, by_case

Cases = list[tuple[str, Any]]

SIGNATURE = {"values of arrays": 5, "shapes and types": 5, "plain values": 6, "structure": 4}


def _cases(seed: int) -> Cases:
    """Pairs of calls, in an order that the seed draws."""
    random = np.random.default_rng(seed)
    n, k = (int(each) for each in random.integers(2, 7, 2))

    def array(*shape: int, dtype: str = "f4") -> Any:
        return random.integers(0, 9, shape).astype(dtype)

    found: Cases = [
        ("values of arrays", ((array(n),), (array(n),))),
        ("values of arrays", ((array(n, 2), k), (array(n, 2), k))),
        ("values of arrays", ((array(),), (array(),))),
        ("shapes and types", ((array(n),), (array(n + 1),))),
        ("shapes and types", ((array(n, n + 1),), (array(n + 1, n),))),
        ("shapes and types", ((array(),), (array(1),))),
        ("shapes and types", ((array(n),), (array(n, dtype="f8"),))),
        ("shapes and types", ((array(n),), (array(n, dtype="i4"),))),
        ("shapes and types", ((array(2, n),), (array(2, n + 1),))),
        ("shapes and types", ((array(1100),), (array(1100 + k),))),  # its `str` leaves the middle out
        ("plain values", ((array(n), k), (array(n), k + 1))),
        ("plain values", ((array(n), k), (array(n), float(k)))),
        ("plain values", ((1,), (True,))),
        ("plain values", ((0.0,), (-0.0,))),
        ("plain values", ((float("nan"),), (float("nan"),))),
        ("plain values", (("mean", array(n)), ("sum", array(n)))),
        ("plain values", ((array(),), (2.0,))),
        ("plain values", ((array(n), k), (array(n), str(k)))),
        ("plain values", ((None,), ("None",))),
        ("structure", (([array(n), array(n)],), (array(n), array(n)))),
        ("structure", (((array(n), k),), ([array(n), k],))),
        ("structure", (([],), ((),))),
        ("structure", (({"w": k},), ([("w", k)],))),
        ("structure", ((["a, b"],), (["a", "b"],))),
        ("structure", (([array(n)], [array(n)]), ([array(n), array(n)], []))),
        ("structure", (({"w": array(n)},), ({"b": array(n)},))),
        ("structure", (({"w": array(n), "b": [array(n), k]},), ({"w": array(n), "b": [array(n), k]},))),
    ]
    Random(seed).shuffle(found)
    return found


def apart(one: Any, other: Any) -> str:
    """Why two arguments cannot be those of one program; empty if they can.

    Example:
        >>> apart((np.ones(2), 1), (np.zeros(2), 1)), apart((1,), (True,))
        ('', 'the int 1 and the bool True are written into programs that compute otherwise')
    """
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.shape != other.shape:
            return f"the shapes {list(one.shape)} and {list(other.shape)} differ"
        return "" if one.dtype == other.dtype else f"the types {one.dtype} and {other.dtype} differ"
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return "a program knows the value of the number, and does not know that of the array"
    if type(one) is not type(other):
        if isinstance(one, (list, tuple, dict)) or isinstance(other, (list, tuple, dict)):
            return "the arguments are put together in another way"
        names = [f"the {type(each).__name__} {each!r}" for each in (one, other)]
        return f"{names[0]} and {names[1]} are written into programs that compute otherwise"
    if isinstance(one, (list, tuple)):
        if len(one) != len(other):
            return "the arguments are put together in another way"
        return next((reason for pair in zip(one, other, strict=True) if (reason := apart(*pair))), "")
    if isinstance(one, dict):
        if list(one) != list(other):
            return "the keys of the dicts differ"
        return next((reason for key in one if (reason := apart(one[key], other[key]))), "")
    if repr(one) == repr(other):
        return ""
    zero = ": 1 / x tells them apart, == does not" if one == other else ""
    return f"{one!r} and {other!r} are written into the program{zero}"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(_shown, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_shown(each)}" for key, each in value.items()) + "}"
    return repr(value)


def _wrong(case: Any, answer: Any) -> str | None:
    one, other = case
    what = f"the calls {_shown(one)} and {_shown(other)}"
    if type(answer) is not bool:
        return f"{what}: they were to be compared, and that gives {described(answer)}"
    why = apart(one, other)
    if answer and why:
        return f"{what} have one signature, and cannot share a program: {why}"
    if not answer and not why:
        values = "; the values of arrays are what changes from call to call"
        more = "; NaN is not equal to itself, so each call would be traced" if "nan" in what else values
        return f"{what} have two signatures, and can share a program{more}"
    return None


def _judge(cases: Cases, answers: Any) -> Any:
    said = by_case(SIGNATURE, cases, answers, _wrong)
    if answers and all(answer is True for answer in answers):
        return dict.fromkeys(SIGNATURE, "all calls have one signature: nothing is told apart")
    if said["values of arrays"] is not None:  # whatever writes everything down tells all calls apart
        first = "it counts when the part 'values of arrays' is right"
        said = {part: reason or first for part, reason in said.items()}
    hint = "; a signature is the key of a dict: it has to be hashable, such as a tuple of tuples"
    return {
        part: f"{reason}{hint}" if reason and "unhashable" in str(reason) else reason for part, reason in said.items()
    }


signature = Task(asks.signature, SIGNATURE, _cases, _judge)
