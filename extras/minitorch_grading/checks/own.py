"""`task`: a check of an instructor's own, made of cases and a function that says why an answer is wrong.

A file `checks.py` beside the notebook of an exercise has such tasks (`docs/own-checks.md`). `wrong_value` is for the
usual comparison.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from minitorch.tensor import Tensor

from ..harness import Driver, Needs, call_with_arguments
from ..harness.limit import SECONDS
from ..harness.plain import described, encode
from .compare import wrong_array, wrong_tensor
from .golf import Golf
from .task import Oracle, Task

Case = tuple[str, tuple[Any, ...]]

__all__ = ["Golf", "described", "task", "wrong_array", "wrong_tensor", "wrong_value"]


def task(
    name: str,
    parts: Mapping[str, int],
    cases: Callable[[int], Iterable[Case]],
    wrong: Callable[[str, tuple[Any, ...], Any], str | None],
    *,
    driver: Driver | None = None,
    needs: Needs | None = None,
    seconds: float = SECONDS,
    golf: Mapping[str, Golf] | None = None,
    count: Callable[[str, tuple[Any, ...], Any], int] | None = None,
    oracle: Callable[[Case], Oracle] | None = None,
) -> Task:
    """A task in which students write the function `name`.

    Args:
        name: of the function, and of the task.
        parts: the points for each part. A part is right if all of its cases are.
        cases: from a seed to cases: the part, and the arguments of a call. They are plain data: numbers, texts, arrays,
            and lists, tuples and dicts of these. Students check themselves with the seeds 0, 1 and 2, and work is
            graded with seeds that are drawn anew for each course.
        wrong: ``(part, arguments, answer) -> why the answer is wrong, or None``. The answer is plain data, too.
        driver: what calls the function, if that is not ``function(*arguments)``; from `harness.py`. It has its own
            `needs` and `seconds`.
        needs: what the exercise needs of the engine; all of it by default.
        seconds: for each call.
        golf: parts that are scored by a number, and how (`golf.py`).
        count: ``(part, arguments, answer) -> the number`` for a right answer in such a part; its cases add up.
        oracle: from a case to what `Limited.consult` of the driver talks to (`task.py`). Answers are pairs then, of the
            answer and of what the oracle has seen.

    Example:
        >>> double = task(
        ...     "double",
        ...     {"whole numbers": 3, "texts": 2},
        ...     lambda seed: [("whole numbers", (seed,)), ("texts", ("ab",))],
        ...     lambda part, arguments, answer: wrong_value(answer, 2 * arguments[0]),
        ... )
        >>> print(double(lambda x: x + x))
        double: 5 of 5 points
          3 of 3  whole numbers
          2 of 2  texts
        >>> print(double(lambda x: x * x))
        double: 0 of 5 points
          0 of 3  whole numbers: it is 1 and should be 2
          0 of 2  texts: it raises TypeError (in line 1 of <lambda>): can't multiply sequence by non-int of type 'str'

    Raises:
        ValueError: if a case is for a part that is not there, or a part has no case or no points.
    """
    if not name.isidentifier():
        raise ValueError(f"the name of a task is that of what students write, and {name!r} is no name in Python")
    if not parts or not all(type(points) is int and points > 0 for points in parts.values()):
        raise ValueError(f"the parts of {name} have a whole number of points each, more than 0: {dict(parts)}")
    scored = dict(golf or {})
    if strange := [part for part in scored if part not in parts]:
        raise ValueError(f"golf of {name} is for {strange[0]!r}, which is none of its parts: {', '.join(parts)}")
    if scored and count is None:
        raise ValueError(f"golf of {name} needs `count`, which says the number of a right answer")

    def make(seed: int) -> list[Case]:
        made = list(cases(seed))
        for part, arguments, *_ in made:
            if part not in parts:
                raise ValueError(f"a case of {name} is for {part!r}, which is none of its parts: {', '.join(parts)}")
            if not isinstance(arguments, tuple):
                raise ValueError(f"a case of {name} is a part and a tuple of arguments, and not {arguments!r}")
            if found := re.search(r'{"unknown": "([^"]*)', json.dumps(encode(arguments))):
                raise ValueError(f"a case of {name} has {found[1]}, which is no plain data: make it in harness.py")
        if missing := [part for part in parts if part not in {part for part, *_ in made}]:
            raise ValueError(f"no case of {name} is for {missing[0]!r}: its points would be for nothing")
        return made

    def judged(part: str, arguments: tuple[Any, ...], answer: Any) -> str | None:
        said = wrong(part, arguments, answer)
        if said is not None and not isinstance(said, str):
            raise TypeError(f"`wrong` of {name} says why an answer is wrong, or None, and not {said!r}")
        return said

    called = driver or Driver(name, call_with_arguments, needs or Needs(), seconds)
    return Task(called, parts, make, judged, draws=int, after={}, golf=scored, count=count, oracle=oracle)


def wrong_value(answer: Any, right: Any, tolerance: float = 1e-9) -> str | None:
    """Why an answer is not this value: the same type, and numbers up to a relative tolerance; None if it is.

    Args:
        answer: as `wrong` of a task gets it.
        right: a number, text, array or tensor, or a list, tuple or dict of these.
        tolerance: of floating-point numbers; 0 asks for the bits of arrays.

    Example:
        >>> wrong_value(1, 1.0), wrong_value([1, 3], [1, 2]), wrong_value(0.1 + 0.2, 0.3)
        ('a float was expected, and it is 1', 'element 1: it is 3 and should be 2', None)
    """
    if isinstance(right, Tensor):
        return wrong_tensor(answer, np.asarray(right.detach().numpy()), tolerance)
    if isinstance(right, np.ndarray):
        return wrong_array(answer, right, tolerance)
    if type(answer) is not type(right):
        kind = type(right).__name__
        return f"{'an' if kind == 'int' else 'a'} {kind} was expected, and it is {described(answer)}"
    if isinstance(right, (list, tuple, dict)):
        if len(answer) != len(right):
            return f"it has {len(answer)} elements and should have {len(right)}: {described(answer)}"
        if isinstance(right, dict) and (strange := [key for key in answer if key not in right]):
            return f"it has the key {strange[0]!r}, which should not be there"
        for key, each in right.items() if isinstance(right, dict) else enumerate(right):
            if said := wrong_value(answer[key], each, tolerance):
                return f"element {key!r}: {said}"
        return None
    same = answer == right or (answer != answer and right != right)
    if isinstance(right, float) and not same:
        same = math.isclose(answer, right, rel_tol=tolerance, abs_tol=tolerance)
    return None if same else f"it is {described(answer)} and should be {described(right)}"
