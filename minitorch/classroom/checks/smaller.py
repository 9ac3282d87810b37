"""The smallest graph on which an answer is wrong: found where the student's code runs, believed when judged again.

An attempt is ``(answer, None)`` or ``(answer, (smaller graph, answer to that))``. Points depend on the first alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from ...errors import MinitorchError
from ...graph import Graph
from .plain import TIMEOUT, Fault, plain
from .samples import shrink

Answer = Callable[[str], Any]  # from the text of a graph to what the student's code makes of it
Wrong = Callable[[str, Any], str | None]  # from a graph's text and an answer to the reason why it is wrong
TOO_LARGE = 1 << 20  # bytes of a value in a graph that is not our own


def attempt(text: str, answer: Answer, wrong: Wrong) -> tuple[Any, tuple[str, Any] | None]:
    """The answer to a graph; if it is wrong, a smaller graph to which it is wrong as well."""
    given = answer(text)

    kind = given.kind if isinstance(given, Fault) else None

    def is_wrong(graph: Graph) -> bool:
        again = answer(str(graph))
        if isinstance(again, Fault) or kind is not None:
            return isinstance(again, Fault) and again.kind == kind
        return wrong(str(graph), plain(again)) is not None

    if kind in (TIMEOUT, "NotImplementedError") or reason_for(text, plain(given), wrong) is None:
        return given, None
    small = str(shrink(Graph.parse(text), is_wrong))
    return given, (small, answer(small))


def attempts(
    cases: Iterable[tuple[Hashable, str]], answer: Answer, wrong: Callable[[Any, str, Any], str | None]
) -> list[Any]:
    """The attempts at some graphs, each of a part of the task; of a part, only the first that is wrong is made smaller.

    Args:
        cases: the part, and the text of a graph.
        answer: what the student's code makes of a graph.
        wrong: ``(part, text, answer)`` -> the reason why it is wrong, or None.
    """
    found: list[Any] = []
    failed: set[Hashable] = set()
    for part, text in cases:
        if part in failed:
            found.append((answer(text), None))
            continue
        found.append(attempt(text, answer, partial(wrong, part)))
        if found[-1][1] is not None:
            failed.add(part)
    return found


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
    text, answer = believed(text, attempted, wrong)
    return reason_for(text, answer, wrong)


def believed(text: str, attempted: Any, wrong: Wrong) -> tuple[str, Any]:
    """The graph and the answer that say best what is wrong: the smaller ones, if they are what they claim to be."""
    answer, smaller = attempted
    if smaller is not None and reason_for(text, answer, wrong) is not None:
        small, given = smaller
        with suppress(MinitorchError, TypeError, ValueError):
            if len(small) <= len(text) and is_harmless(Graph.parse(small)) and reason_for(small, given, wrong):
                return small, given
    return text, answer


def is_harmless(graph: Graph) -> bool:
    """Whether a graph that somebody else wrote can be computed in little time and memory."""
    sizes = [node.spec.nbytes for node in graph.nodes]
    return len(sizes) < 10_000 and max(sizes, default=0) <= TOO_LARGE and sum(sizes) <= 64 * TOO_LARGE
