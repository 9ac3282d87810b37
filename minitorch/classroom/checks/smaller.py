"""The smallest graph on which an answer is wrong: the judge asks for answers to smaller and smaller ones.

An attempt is ``(answer, None)`` or ``(answer, (smaller graph, answer to that))``. Points depend on the first alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

from ...graph import Graph
from ..asks.plain import TIMEOUT, Fault
from . import samples

Wrong = Callable[[str, Any], str | None]  # from a graph's text and an answer to the reason why it is wrong
TOO_LARGE = 1 << 20  # bytes of a value in a graph that is not our own


def smaller(text: str, given: Any, wrong: Wrong, seconds: float) -> Generator[str, Any, tuple[str, Any] | None]:
    """A dialogue that finds a smaller graph to which the answer is wrong as well; None if the given one is right.

    Args:
        text: of a graph.
        given: the answer to it.
        wrong: says why an answer to a graph is wrong.
        seconds: after which the smallest one so far will do.
    """
    end = time.monotonic() + seconds
    kind = given.kind if isinstance(given, Fault) else None
    if kind in (TIMEOUT, "NotImplementedError") or reason_for(text, given, wrong) is None:
        return None
    found = (text, given)
    shrinking = samples.shrinking(Graph.parse(text))
    is_wrong = None
    while True:
        try:
            candidate = str(shrinking.send(is_wrong))
        except StopIteration:
            return found
        if time.monotonic() > end:
            return found
        answer = yield candidate
        if isinstance(answer, Fault) or kind is not None:
            if isinstance(answer, Fault) and answer.kind == TIMEOUT:
                return found  # whatever else is tried may take as long
            is_wrong = isinstance(answer, Fault) and answer.kind == kind
        else:
            is_wrong = wrong(candidate, answer) is not None
        if is_wrong:
            found = (candidate, answer)


def reason_for(text: str, answer: Any, wrong: Wrong) -> str | None:
    """Why an answer to a graph is wrong; None if it is not."""
    if not isinstance(answer, Fault):
        return wrong(text, answer)
    return (
        str(answer) if answer.kind == "NotImplementedError" else f"{answer}, given\n{indented(str(Graph.parse(text)))}"
    )


def indented(text: str) -> str:
    """A listing as it stands in a reason."""
    return "\n".join(f"  {line}" for line in text.splitlines())


def explained(text: str, attempted: Any, wrong: Wrong) -> str | None:
    """Why an attempt is wrong, told of the smaller graph if there is one and it is wrong there; None if it is right."""
    reason = reason_for(text, attempted[0], wrong)
    return reason and (reason_for(*believed(text, attempted, wrong), wrong) or reason)


def believed(text: str, attempted: Any, wrong: Wrong) -> tuple[str, Any]:
    """The graph and the answer that say best what is wrong: the smaller ones, if the answer to the whole is wrong."""
    answer, small = attempted
    return (text, answer) if small is None or reason_for(text, answer, wrong) is None else small


def is_harmless(graph: Graph) -> bool:
    """Whether a graph that somebody else wrote can be computed in little time and memory."""
    sizes = [node.spec.nbytes for node in graph.nodes]
    return len(sizes) < 10_000 and max(sizes, default=0) <= TOO_LARGE and sum(sizes) <= 64 * TOO_LARGE
