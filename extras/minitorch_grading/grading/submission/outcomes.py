"""Reading what a cell has shown: data for the grader, the incident that an error is, and why there are no answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..incidents import Incident
from ..sandbox.execution import Message, Ran

# The incident of an error that ends a cell: by its name, and by the number of an OSError.
ERRORS = {
    "MemoryError": "memory",
    "StdinNotImplementedError": "input",
    "FileNotFoundError": "outside",
    "ModuleNotFoundError": "outside",
    "PermissionError": "outside",
    "URLError": "outside",
    "gaierror": "outside",
    "ConnectionError": "outside",
    "WithheldError": "withheld",
}
NUMBERS = {
    1: "refused",
    11: "processes",
    12: "memory",
    27: "disk",
    24: "files",
    28: "disk",
    36: "disk",
    30: "outside",
    101: "outside",
}


def why_no_answers(ran: Ran, stopped: Sequence[Stopped] = ()) -> str:
    """Why a check gave no answers, for the student; `stopped` are the cells before it that did not reach their end."""
    if ran.incident is not None:
        return f"not judged: {ran.incident.text}"
    if ran.error is not None:
        kind, text = ran.error["ename"], ran.error["evalue"][:500]
        return why_missing(kind, text, stopped) or f"the check stopped with {kind}: {text}"
    return "the check came to its end without answers"


def faults(collected: object) -> Iterator[str]:
    """The kinds of incident that a check's answers tell of: calls that took too long, or asked for input."""
    text = json.dumps(collected)
    for kind, name in (("call-time", "timeout"), *((kind, name) for name, kind in ERRORS.items())):
        if f'{{"fault": ["{name}"' in text:
            yield kind


def of_error(error: Message | None) -> Incident | None:
    """The incident that an error is; None for the errors that everybody makes."""
    if error is None:
        return None
    name, text = error["ename"], error["evalue"]
    number = re.search(r"\[Errno (\d+)\]", text)
    kind = NUMBERS.get(int(number[1])) if number else None
    kind = kind or ERRORS.get(name)
    return Incident(kind, f"{name}: {text}"[:200]) if kind else None


def of_cell(name: str, source: str, ran: Ran) -> Stopped | None:
    """A cell that did not come to its end; None for one that did."""
    if ran.incident is not None:
        return Stopped(name, source, ran.incident.text)
    if ran.error is not None:
        return Stopped(name, source, f"{ran.error['ename']}: {ran.error['evalue'][:200]}")
    return None


@dataclass(frozen=True)
class Stopped:
    """A cell that did not come to its end.

    Attributes:
        name: what to call it.
        source: what is in it.
        reason: what stopped it.
    """

    name: str
    source: str
    reason: str


def why_missing(kind: str, text: str, stopped: Iterable[Stopped]) -> str | None:
    """The cause of a check's `NameError`; None for other errors.

    Args:
        kind, text: the error's class and message.
        stopped: the cells before the check that did not come to their end.

    Example:
        >>> cell = Stopped("merge", "def merge(a, b): return a +", "SyntaxError: invalid syntax")
        >>> print(why_missing("NameError", "name 'merge' is not defined", [cell]))
        the cell `merge` above did not run (SyntaxError: invalid syntax), and `merge` is missing: mend and run it first
        >>> print(why_missing("NameError", "name 'cost' is not defined", [cell]))
        no cell above defines `cost` (NameError): has it another name, or was its cell deleted?
    """
    found = re.match(r"name '(\w+)' is not defined", text)
    if kind != "NameError" or found is None:
        return None
    name = found[1]
    for cell in stopped:
        if defines(cell.source, name):
            why = f"the cell `{cell.name}` above did not run ({cell.reason})"
            return f"{why}, and `{name}` is missing: mend and run it first"
    return f"no cell above defines `{name}` (NameError): has it another name, or was its cell deleted?"


def defines(source: str, name: str) -> bool:
    """Whether a cell's source defines a name; it may be a cell that Python cannot read."""
    definition = rf"(?:async\s+)?(?:def|class)\s+{name}\b|{name}\s*[:=]|(?:from|import)\b.*\b{name}\b"
    return re.search(rf"^[ \t]*(?:{definition})", source, re.MULTILINE) is not None
