"""Online softmax: how two partial results become one, and how a block is added to a partial result.

The row is never there as a whole: a case has the result so far, which is the judge's, and a block. So one pass, and
memory for a block, is all that a right answer can take.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any

from ...asks import fusion as asks
from ...asks.plain import described
from ..task import Task, cases_with

Cases = list[tuple[str, Any]]
Partial = tuple[float, float]  # the largest number so far, and the sum of exp(number - largest)
NOTHING: Partial = (-math.inf, 0.0)


def statistics(numbers: list[float]) -> Partial:
    """The partial result of some numbers, in two passes."""
    if not numbers:
        return NOTHING
    largest = max(numbers)
    return largest, math.fsum(math.exp(number - largest) for number in numbers)


def _off(answer: Any, right: Partial) -> str | None:
    """Why an answer is not this pair; None if it is."""
    if type(answer) is not tuple or len(answer) != 2 or not all(type(each) is float for each in answer):
        return f"a tuple of two floats was expected, (largest, total), and it is {described(answer)}"
    if any(each != each for each in answer):
        return "NaN: infinity minus infinity is none; where there is nothing yet, there is nothing to rescale"
    same = [a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in zip(answer, right, strict=True)]
    if all(same):
        return None
    which, place = ("largest", 0) if not same[0] else ("total", 1)
    return f"{which} is {answer[place]:.6g} and should be {right[place]:.6g}"


def _wrong(case: tuple[Any, Any], answer: Any) -> str | None:
    """Why an answer is not the partial result of two parts of a row; each is such a result, or a list of numbers."""
    a, b = (statistics(each) if isinstance(each, list) else each for each in case)
    largest = max(a[0], b[0])
    right = (largest, sum(total * math.exp(top - largest) for top, total in (a, b) if total))
    reason = _off(answer, NOTHING if largest == -math.inf else right)
    if reason is None:
        return None
    total = answer[1] if type(answer) is tuple and len(answer) == 2 else None
    if type(total) is float and math.isclose(total, a[1] + b[1]):
        is_block = isinstance(case[1], list)
        rises = "when the largest number rises, the total so far has to be scaled down to it"
        reason += f"; {rises if is_block else 'the totals were added as they are, but each has a scale of its own'}"
    return f"{_about(case)}: {reason}"


def _shown(part: Any) -> str:
    if isinstance(part, list):
        return f"the block {[round(number, 3) for number in part]}"
    return f"({part[0]:.4g}, {part[1]:.4g})"


def _about(case: tuple[Any, Any]) -> str:
    return f"merging {' and '.join(map(_shown, case))}"


def _pairs(seed: int) -> Cases:
    random = Random(seed)
    a, b = ([random.uniform(-2, 2) for _ in range(random.randint(1, 5))] for _ in range(2))
    high = [1000.0 + number for number in a]
    return [
        ("two blocks", (statistics(a), statistics(b))),
        ("two blocks", (statistics(b), statistics([number + 1 for number in a]))),
        ("two blocks", (statistics([number + 3 for number in b]), statistics(a))),
        ("large numbers", (statistics(high), statistics(b))),
        ("large numbers", (statistics(b), statistics(high))),
        ("nothing so far", (NOTHING, statistics(a))),
        ("nothing so far", (statistics(b), NOTHING)),
        ("nothing so far", (NOTHING, NOTHING)),
    ]


def _blocks(seed: int) -> Cases:
    """The result so far, and the next block."""
    random = Random(seed)

    def block(center: float = 0.0) -> list[float]:
        return [random.gauss(center, 2) for _ in range(random.randint(2, 6))]

    return [
        ("the first block", (NOTHING, block())),
        ("the first block", (NOTHING, [-1000.0, -1001.0])),
        ("the next block", (statistics(block()), block(-6))),
        ("the next block", (statistics(block()), block(6))),
        ("the next block", (statistics(block(-9)), [1.0, 2.0, 3.0])),
        ("large numbers", (statistics(block(1000)), block(990))),
        ("large numbers", (statistics(block()), block(1000))),
        ("large numbers", (statistics(block(1000)), block())),
    ]


MERGE = {"two blocks": 4, "large numbers": 3, "nothing so far": 3}
merge = Task(asks.merge, MERGE, _pairs, cases_with(MERGE, _wrong, about=_about))

ONLINE = {"the first block": 4, "the next block": 7, "large numbers": 4}
online_softmax = Task(asks.online_softmax, ONLINE, _blocks, cases_with(ONLINE, _wrong, about=_about))
