"""The blank of notebook 09: the correction of an online softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..blanking import Blank, Case


def corrected(m: Any, s: Any, part: Any) -> Any:
    """Return the maximum and the sum, of all numbers so far and of those in `part`."""
    largest = np.maximum(m, part.max())
    s = s * np.exp(m - largest) + np.exp(part - largest).sum()
    return largest, s


def _parts() -> Iterable[Case]:
    numbers = np.array([1, 3, 2], np.float32)
    nothing = np.float32(-np.inf), np.float32(0)
    yield "For the first numbers, 1, 3 and 2", *nothing, numbers
    yield "With a sum of 2 measured from 5, for 1, 3 and 2", np.float32(5), np.float32(2), numbers
    yield "With a sum of 2 measured from 1, for 1, 3 and 2", np.float32(1), np.float32(2), numbers


def _plain(function: Callable[..., Any], *arguments: Any) -> Any:
    result = function(*arguments)
    return tuple(float(each) for each in result) if isinstance(result, tuple) else result


BLANKS = {
    "corrected": Blank(
        corrected,
        _parts,
        {
            "The old sum is measured from the old maximum: it needs the factor.": {"s * np.exp(m - largest)": "s"},
            "The factor is the wrong way round: where the maximum rises, the old terms become smaller.": {
                "m - largest": "min(largest - m, np.float32(80))"
            },
            "The factor is for the old terms alone; the new ones are measured from the new maximum.": {
                "np.exp(part - largest).sum()": "np.exp(part - largest).sum() * np.exp(m - largest)"
            },
        },
        ask=_plain,
    )
}
