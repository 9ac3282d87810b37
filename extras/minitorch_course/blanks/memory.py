"""The blank of notebook 11: the lowest place at which a value fits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..blanking import Blank, Case


def lowest_gap(taken: Any, size: Any) -> Any:
    """Return the lowest offset at which so many bytes fit beside what is taken."""
    place = 0
    for begin, end in taken:
        if place + size <= begin:
            break
        place = max(place, end)
    return place


def _places() -> Iterable[Case]:
    yield "For 10 bytes, where nothing is taken", [], 10
    yield "For 10 bytes beside 0 to 20", [(0, 20)], 10
    yield "For 10 bytes beside 10 to 20", [(10, 20)], 10
    yield "For 10 bytes beside 0 to 20 and 30 to 40", [(0, 20), (30, 40)], 10
    yield "For 10 bytes beside 0 to 20 and 50 to 60", [(0, 20), (50, 60)], 10
    yield "For 10 bytes beside 0 to 20 and 25 to 40", [(0, 20), (25, 40)], 10
    yield "For 10 bytes beside 0 to 50 and 20 to 30", [(0, 50), (20, 30)], 10


BLANKS = {
    "lowest_gap": Blank(
        lowest_gap,
        _places,
        {
            "Two that are taken may overlap each other: an end may lie below the place that you have reached.": {
                "max(place, end)": "end"
            },
            "It also fits where it ends exactly at the next beginning.": {"<=": "<"},
            "You put it above everything. There may be room between two that are taken.": {
                "            break\n": "            pass\n"
            },
        },
    )
}
