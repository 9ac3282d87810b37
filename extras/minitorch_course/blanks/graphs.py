"""The blank of notebook 03: the verifier's rule for a sum of two tensors that broadcast."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..blanking import Blank, Case


def add_rule(a: Any, b: Any) -> Any:
    """Return the shape of a sum of tensors of the shapes a and b, which have as many dimensions."""
    shape: Any = ()
    for one, other in zip(a, b, strict=True):
        if one != other and 1 not in (one, other):
            return "shapes that do not fit"
        shape += (other if one == 1 else one,)
    return shape


def _shapes() -> Iterable[Case]:
    yield "For (2, 3) and (2, 3)", (2, 3), (2, 3)
    yield "For (4, 1) and (1, 3)", (4, 1), (1, 3)
    yield "For (2, 3) and (2, 4)", (2, 3), (2, 4)
    yield "For (3, 1) and (3, 5)", (3, 1), (3, 5)


BLANKS = {
    "add_rule": Blank(
        add_rule,
        _shapes,
        {
            "A length of 1 is stretched to the other one: (4, 1) and (1, 3) give (4, 3).": {
                " and 1 not in (one, other)": ""
            },
            "The larger length is right only if the other one is 1: (2, 3) and (2, 4) do not fit.": {
                "if one != other and 1 not in (one, other)": "if False",
                "other if one == 1 else one": "max(one, other)",
            },
            "The result has the stretched lengths, not those of the first operand.": {
                "other if one == 1 else one": "one"
            },
        },
    )
}
