"""Laws of algebra: the student's table is run by the engine's own rewriting, on values at which tempting laws fail."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from ....graph import Graph
from ....passes import DEAD_CODE
from ...asks import rewriting as asks
from ...asks.plain import Array
from ..samples import evaluate
from ..task import Task, by_case
from .passes import changed, legal

LAWS = {"laws of one": 4, "negation": 4, "the right zero": 4, "with a condition": 4, "no law that fails": 4}

# The part, the type, an expression, and how many operations a law leaves of it; then expressions to be left alone: no
# law holds for them, or none that was asked for.
WANTED = (
    ("laws of one", "float", ("%0 = mul(x, 1.0)",), 0),
    ("laws of one", "float", ("%0 = div(x, 1.0)",), 0),
    ("negation", "float", ("%0 = neg(x)", "%1 = neg(%0)"), 0),
    ("negation", "float", ("%0 = neg(y)", "%1 = sub(x, %0)"), 1),
    ("the right zero", "float", ("%0 = sub(x, 0.0)",), 0),
    ("the right zero", "float", ("%0 = add(x, -0.0)",), 0),
    ("with a condition", "int", ("%0 = mul(x, 0)",), 0),
    ("with a condition", "int", ("%0 = sub(x, x)",), 0),
)
TEMPTING = (
    (("%0 = mul(x, 0.0)",), "0 times NaN or infinity is NaN, and 0 times -1 is -0.0"),
    (("%0 = sub(x, x)",), "infinity minus infinity is NaN"),
    (("%0 = div(x, x)",), "0 / 0 is NaN"),
    (("%0 = add(x, 0.0)",), "-0.0 + 0.0 is 0.0"),
    (("%0 = add(x, y)", "%1 = sub(%0, y)"), "x + y rounds: what is small beside y is lost"),
    (("%0 = mul(x, y)", "%1 = div(%0, y)"), "x * y may overflow, and y may be 0"),
    (("%0 = sqrt(x)", "%1 = mul(%0, %0)"), "the root is rounded, and that of -1 is NaN"),
)
UNASKED = (("%0 = abs(x)", "%1 = abs(%0)"), ("%0 = mul(x, -1.0)",))
_NUMBERS = (1.0, float("nan"), float("inf"), -1.0, 2.0, 0.0, -0.0, 3e38, 1e-3, float("-inf"), 0.1, 7.0)


def _text(kind: str, lines: tuple[str, ...]) -> str:
    return "\n".join([f"graph(x: {kind}[4], y: {kind}[4]):", *lines, f"return %{len(lines) - 1}"])


FLOATS, INTEGERS = ("f32", "f64"), ("i32", "i64", "i8")


ROWS: tuple[tuple[str, str, tuple[str, ...], int, str], ...] = (
    *((*row, "") for row in WANTED),
    *(("no law that fails", "float", lines, -1, why) for lines, why in TEMPTING),
    *(("no law that fails", "float", lines, -1, "") for lines in UNASKED),
)


def _tables(seed: int) -> list[tuple[str, Any]]:
    """The expressions alone: what becomes of them is for the student's table to say."""
    random = Random(seed)
    kinds = {"float": FLOATS, "int": INTEGERS}
    return [("an expression", _text(random.choice(kinds[kind]), lines)) for _, kind, lines, _, _ in ROWS]


def _pairs(dtype: Any) -> Iterator[list[Array]]:
    """All pairs of our numbers, four at a time."""
    x, y = np.meshgrid(np.array(_NUMBERS).astype(dtype), np.array(_NUMBERS).astype(dtype))
    yield from map(list, zip(x.reshape(-1, 4), y.reshape(-1, 4), strict=True))


def refutation(before: Graph, after: Graph) -> str:
    """A pair of numbers for which two expressions of floats differ; empty if none of ours does."""
    for x, y in _pairs(before.inputs[0].dtype.numpy):
        old, new = (evaluate(graph, [x, y])[0] for graph in (before, after))
        same = ((old == new) & (np.signbit(old) == np.signbit(new))) | ((old != old) & (new != new))
        if not same.all():
            at = int(np.argmin(same))
            return f"for x = {x[at]:g}, y = {y[at]:g} it was {old[at]:g} and now is {new[at]:g}"
    return ""


def _wrong(case: tuple[str, int, str], answer: Any) -> str | None:
    text, left, why = case
    before = Graph.parse(text)
    expression = "; ".join(line.partition(" :")[0].strip() for line in str(before).splitlines()[1:-1])
    after, _ = legal(before, answer)
    if after is not None and before.inputs[0].dtype.is_floating_point and (found := refutation(before, after)):
        return f"a law changes {expression}: {found}{why and ' (' + why + ')'}"
    new, reason = changed(before, answer)
    if new is None:
        return f"{expression}: {reason}"
    count = DEAD_CODE(new).count()
    if left >= 0 and count.total() > left:
        return f"{expression} is still there, though a law makes it {'x' if not left else 'shorter'} or a number"
    if left < 0 and count != before.count():
        return f"{expression} was rewritten: the laws asked for are those of the list that hold, and no others"
    return None


def _judge(cases: list[tuple[str, Any]], answers: Any) -> Any:
    rows = [(part, (text, left, why)) for (part, _, _, left, why), (_, text) in zip(ROWS, cases, strict=True)]
    said = dict(by_case(LAWS, rows, answers, _wrong))
    if all(said[part] for part in LAWS if part != "no law that fails") and not said["no law that fails"]:
        said["no law that fails"] = "no law of the others holds yet, and an empty table is no achievement"
    return said


laws = Task(asks.laws, LAWS, _tables, _judge)
