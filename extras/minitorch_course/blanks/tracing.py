"""The blank of notebook 04: the tracer's note of an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..blanking import Blank, Case


def record(self: Any, operation: Any, *operands: Any) -> Any:
    """Append a row to the trace, and return the tracer of its result."""
    name = f"%{len(self.trace)}"  # the first row is %0
    names = [each.name if isinstance(each, Tracer) else each for each in operands]
    self.trace.append((name, operation, names))
    return Tracer(name, self.trace)


class Tracer:
    """The notebook has one with more methods."""

    def __init__(self, name: str, trace: list[Any]) -> None:
        self.name, self.trace = name, trace


def _operations() -> Iterable[Case]:
    yield "For x times 2, the first row", [], "mul", ("x", 2)
    yield "For %0 + x, the second row", [("%0", "mul", ["x", 2])], "add", ("%0", "x")


def _noted(function: Callable[..., Any], trace: list[Any], operation: str, operands: tuple[Any, ...]) -> str:
    """Say in words what the trace and the result are."""
    tracer = function.__globals__["Tracer"]  # of the notebook
    given = [tracer(each, trace) if isinstance(each, str) else each for each in operands]
    result = function(given[0], operation, *given)
    rows = [str(row).replace("'", "") if _is_row(row) else "a row of another form" for row in trace]
    same = getattr(result, "trace", None) is trace
    return (
        f"the trace is {', '.join(rows) or 'empty'}; the result is {getattr(result, 'name', 'no tracer')}"
        f"{'' if same else ', and not of this trace'}"
    )


def _is_row(row: Any) -> bool:
    names = row[2] if isinstance(row, tuple) and len(row) == 3 else None
    return isinstance(names, list) and all(isinstance(each, (str, int)) for each in names)


BLANKS = {
    "record": Blank(
        record,
        _operations,
        {
            "A row has names in place of tracers: each.name of a tracer, and a plain number as it is.": {
                "each.name if isinstance(each, Tracer) else each": "each"
            },
            "The trace is still as it was: append the row.": {"self.trace.append": "tuple"},
            "The new tracer has a trace of its own. The next row has to stand in the same one.": {
                "Tracer(name, self.trace)": "Tracer(name, [])"
            },
        },
        ask=_noted,
    )
}
