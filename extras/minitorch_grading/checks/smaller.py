"""The smallest graph on which an answer is wrong: the judge asks for answers to smaller and smaller ones.

An attempt is ``(answer, None)`` or ``(answer, (smaller graph, answer to that))``. Points depend on the first alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

from minitorch.graph import Graph

from ..harness.plain import TIMEOUT, Fault, decode, encode
from .samples import smaller_ones

MOST_TRIES = 300  # graphs that are tried


def smaller(
    part: str, text: str, given: Any, wrong: Callable[[str, str, Any], str | None], seconds: float
) -> Generator[Any, Any, Any]:
    """A dialogue in JSON that finds a smaller graph to which the answer is wrong as well, and the answer to that.

    Args:
        part: of the task.
        text: of a graph.
        given: the answer to it, as JSON.
        wrong: ``(part, text, answer) -> why the answer is wrong``.
        seconds: after which the smallest one so far will do.

    Returns:
        The pair, or None if the given answer is right, or there is nothing to be learned from others.
    """

    def fails(text: str, answer: Any) -> bool:
        if isinstance(answer, Fault) or kind is not None:
            return isinstance(answer, Fault) and answer.kind == kind
        return wrong(part, text, answer) is not None

    try:
        end, answer = time.monotonic() + seconds, decode(given)
        kind = answer.kind if isinstance(answer, Fault) else None
        if kind in (TIMEOUT, "NotImplementedError") or not fails(text, answer):
            return None
        found, left = (text, answer), MOST_TRIES
        candidates = smaller_ones(Graph.parse(text))
        while left and time.monotonic() <= end and (graph := next(candidates, None)) is not None:
            left, candidate = left - 1, str(graph)
            answer = decode((yield encode((part, candidate))))
            if isinstance(answer, Fault) and answer.kind == TIMEOUT:
                break  # whatever else is tried may take as long
            if fails(candidate, answer):
                found, candidates = (candidate, answer), smaller_ones(graph)
        return encode(found)
    except Exception:  # an answer that is not to be trusted to have any form: the verdict says so
        return None
