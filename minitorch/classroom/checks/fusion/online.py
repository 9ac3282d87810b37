"""Online softmax: a maximum and a sum of exponentials in one pass, and how two partial results become one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import Any

from ...asks import fusion as asks
from ...asks.plain import described
from ..task import Task, Verdict, by_case

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


# --- two partial results become one -----------------------------------------------------------------------------

MERGE = {"two blocks": 4, "large numbers": 3, "nothing so far": 3}


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


def _wrong_merge(case: tuple[Partial, Partial], answer: Any) -> str | None:
    a, b = case
    largest = max(a[0], b[0])
    right = (
        NOTHING
        if largest == -math.inf
        else (
            largest,
            sum(total * math.exp(top - largest) for top, total in case if total),
        )
    )
    where = f"merging ({a[0]:.4g}, {a[1]:.4g}) and ({b[0]:.4g}, {b[1]:.4g})"
    reason = _off(answer, right)
    if reason is None:
        return None
    if type(answer) is tuple and len(answer) == 2 and answer[1] == a[1] + b[1]:
        reason += "; the totals were added as they are, but each was scaled by its own largest number"
    return f"{where}: {reason}"


merge = Task(
    asks.merge,
    MERGE,
    _pairs,
    lambda cases, answers: _overflowing(by_case(MERGE, cases, answers, _wrong_merge)),
)

# --- a row in one pass ------------------------------------------------------------------------------------------

MOST_KEPT = 1 << 16  # bytes in use at once; the numbers of a long row are twice as many, and pairs of its blocks half
ONLINE = {"the right pair": 5, "large numbers": 4, "one pass": 6}


def _rows(seed: int) -> Cases:
    """The blocks of a row, or the start of a long one."""
    random = Random(seed)

    def blocks(center: float = 0.0) -> list[list[float]]:
        return [[random.gauss(center, 2) for _ in range(random.randint(1, 6))] for _ in range(4)]

    rising = [[float(4 * i + j) for j in range(4)] for i in range(3)]
    return [
        ("the right pair", blocks()),
        ("the right pair", rising),
        ("the right pair", [block[::-1] for block in rising[::-1]]),
        ("large numbers", blocks(1000.0)),
        ("large numbers", [[-1000.0], [-1001.0, -999.0]]),
        ("one pass", blocks()),
        ("one pass", rising),
        ("one pass", random.randrange(1 << 30)),
    ]


def _wrong_long_row(start: int, answer: Any) -> str | None:
    pair, kept = answer
    if reason := _off(pair, statistics([number for block in asks.long_row(start) for number in block])):
        return f"{reason}; a row of {asks.BLOCKS} blocks"
    if kept < 8 * asks.LENGTH:
        return "less memory was measured than a single block takes: the function must leave `tracemalloc` alone"
    if kept <= MOST_KEPT:
        return None
    return f"for a row of {asks.BLOCKS} blocks {kept} bytes were in use at once: keep the pair, not the numbers"


def _wrong_row(case: tuple[str, Any], answer: Any) -> str | None:
    part, blocks = case
    if type(blocks) is int:
        return _wrong_long_row(blocks, answer)
    right = statistics([number for block in blocks for number in block])
    reason = _off(answer, right)
    if reason is None:
        return None
    shown = [[round(number, 3) for number in block] for block in blocks]
    tops = [max(block) for block in blocks]
    # The result if the total is never scaled, number by number and block by block.
    numbers = [number for block in blocks for number in block]
    one_by_one = sum(math.exp(n - max(numbers[: i + 1])) for i, n in enumerate(numbers))
    by_block = sum(math.exp(n - max(tops[: i + 1])) for i, block in enumerate(blocks) for n in block)
    total = answer[1] if type(answer) is tuple and len(answer) == 2 else None
    if type(total) is float and (math.isclose(total, one_by_one) or math.isclose(total, by_block)):
        reason += "; when the largest number rises, the total so far has to be scaled down to it"
    elif part == "one pass":
        reason += "; a block that has been passed is gone: keep the pair, not the numbers"
    return f"{reason}; blocks {shown}"


def _judge_rows(cases: Cases, answers: Any) -> Any:
    said = by_case(ONLINE, [(part, (part, blocks)) for part, blocks in cases], answers, _wrong_row)
    fault = said["one pass"]
    if fault and str(fault).startswith("it raises") and said["the right pair"] is None:
        said = {**said, "one pass": f"{fault}; a block that has been passed is gone: keep the pair, not the numbers"}
    return _overflowing(said)


def _overflowing(said: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """With the reason for an overflow where there is one."""
    why = "; exp(1000) is too large for a float: subtract the largest number first"
    return {
        part: f"{reason}{why}" if reason and "raises OverflowError" in str(reason) else reason
        for part, reason in said.items()
    }


online_softmax = Task(asks.online_softmax, ONLINE, _rows, _judge_rows)
