"""The page that a student gets back: points and reasons first, then incidents, then the notebook as it was run.

It is one file that asks for nothing: a policy in its head forbids every request, no text of the student's becomes HTML,
and none steers the browser (`plain`); what the instructor wrote in Markdown does become HTML. Hidden inputs are not in
it, because they never were in the notebook.
"""

from __future__ import annotations

import base64
from typing import Any

from markupsafe import Markup, escape

from ...checks.score import Count
from ..pages import render
from ..plain import plain
from ..results import Graded, Result
from .markdown import html_of

SHOWN = 20_000  # characters of one output
NOTEBOOK = "<h2>The notebook, as it was run</h2>"
END_OF_PLACE = "<!--/best-->"


def page(student: str, exercise: str, result: Result) -> str:
    """Return the feedback as an HTML page.

    Args:
        student: the student's name, as the folder says it.
        exercise: the name of the exercise.
        result: what came of the submission.
    """
    by_hand = sum(each.of for each in result.graded if each.manual)
    total = f"{result.points:g} of {result.of:g} points"
    if result.look and not result.points:
        total = f"No points yet of {result.of:g}: a person has still to look at this"
    elif by_hand:
        total += f", of which {by_hand:g} are still to be given by a person"
    return render(
        "feedback",
        title=f"{exercise}: {student}",
        heading=exercise,
        student=student,
        total=total,
        rows=[row for each in result.graded for row in _rows(each)],
        incidents=result.incidents,
        notebook=Markup(NOTEBOOK),
        noted={each.cell for each in result.incidents if each.cell},
        cells=None if result.notebook is None else [_cell(cell) for cell in result.notebook["cells"]],
    )


def _rows(graded: Graded) -> list[dict[str, Any]]:
    """Return the row of a task and those of its parts. Where a part has a count, there is a place for the best one."""
    parts = (graded.score or {}).get("parts", [])
    if graded.points >= graded.of:
        parts = [part for part in parts if part.get("count")]
    task = graded.score["task"] if graded.score else graded.cell
    rows = [{"kind": "task", **vars(graded), "name": task, "reason": "" if parts else graded.reason, "place": ""}]
    for part in parts:
        counted = part.get("count")
        reason = part["reason"] or (str(Count(**counted)) if counted else "")
        place = Markup(place_of(graded.cell, part["name"]) + END_OF_PLACE) if counted else ""
        rows.append({"kind": "part", "manual": False, **part, "reason": reason, "place": place})
    for row in rows:
        row["mark"] = "?" if row["manual"] else "✓" if row["points"] == row["of"] else "✗"
    return rows


def place_of(cell: str, part: str) -> str:
    """Return the mark where the best of the class stands: a comment, so no text of a student's can be one.

    Example:
        >>> place_of("plan-check", "few bytes")
        '<!--best plan-check few bytes-->'
    """
    return f"<!--best {escape(plain(cell))} {escape(plain(part)).replace('--', '')}-->"


def _cell(cell: dict[str, Any]) -> dict[str, Any]:
    if cell["cell_type"] != "code":
        return {"html": Markup(plain(html_of(cell["source"])))}
    name = cell["metadata"].get("nbgrader", {}).get("grade_id")
    outputs = [shown for output in cell["outputs"] if (shown := _output(output))]
    return {"html": "", "name": name, "source": cell["source"], "outputs": outputs}


def _output(output: dict[str, Any]) -> tuple[str, str] | None:
    """Return text or a PNG picture. Other forms of an output could hold anything, and have a text beside them."""
    if output["output_type"] == "error":
        return "bad", _text("\n".join(output["traceback"]))
    if output["output_type"] == "stream":
        return "", _text(output["text"])
    data = output["data"]
    if picture := data.get("image/png"):  # its size was looked at when it was made
        try:
            return "picture", base64.b64encode(base64.b64decode(picture.replace("\n", ""), validate=True)).decode()
        except ValueError:
            return None
    if any(name.endswith("score+json") for name in data):
        return None  # it is in the table
    return ("", _text(str(data["text/plain"]))) if data.get("text/plain") else None


def _text(text: str) -> str:
    return text[:SHOWN] + ("\n..." if len(text) > SHOWN else "")
