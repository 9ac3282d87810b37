"""The page that a student gets back: points and reasons first, then incidents, then the notebook as it was run.

It is one file that asks for nothing: a policy in its head forbids every request, no text of the student's becomes HTML,
and none steers the browser (`plain`); what the instructor wrote in Markdown does become HTML. Hidden inputs are not in
it, because they never were in the notebook.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import mistune
from markupsafe import Markup

from ...checks.score import Count
from ..pages import render
from ..plain import plain
from ..results import Graded, Result

if TYPE_CHECKING:
    from ..course.gradebook.marks import Mark
    from ..course.report import Row

SHOWN = 20_000  # characters of one output
NOTEBOOK = "<h2>The notebook, as it was run</h2>"
END = "</body></html>\n"
NOTHING: Mapping[tuple[str, str], int] = MappingProxyType({})


def page(row: Row, bests: Mapping[tuple[str, str], int] = NOTHING) -> str:
    """Return the feedback as an HTML page.

    Args:
        row: what came of the submission, with its notebook as HTML, and what persons have changed and written.
        bests: of the class, by cell and part.
    """
    result = row.result
    rows = [line for each in result.graded for line in _rows(each, bests, row.marks.get(each.cell))]
    to_give = sum(line["of"] for line in rows if line["manual"])
    total = f"{row.points:g} of {row.of:g} points"
    if row.is_undecided:
        total = f"No points yet of {row.of:g}: a person has still to look at this"
    elif to_give:
        total += f", of which {to_give:g} are still to be given by a person"
    return render(
        "feedback",
        title=f"{row.exercise}: {row.student}",
        heading=row.exercise,
        student=row.student,
        total=total,
        rows=rows,
        comments=row.comments,
        incidents=result.incidents,
        notebook=Markup(result.shown),
    )


def notebook_on(page: str) -> str:
    """Return the notebook of a page as HTML; no text of a student's can be its heading, or end it."""
    _, heading, rest = page.partition(NOTEBOOK)
    return f"{heading}{rest.removesuffix(END)}"


def notebook(result: Result) -> str:
    """Return the notebook of a result as HTML; empty if nothing could be run."""
    if result.notebook is None:
        return ""
    noted = {each.cell for each in result.incidents if each.cell}
    cells = [_cell(cell) for cell in result.notebook["cells"]]
    return render("notebook", heading=Markup(NOTEBOOK), cells=cells, noted=noted)


def _rows(graded: Graded, bests: Mapping[tuple[str, str], int], mark: Mark | None) -> list[dict[str, Any]]:
    """Return the row of a task, with the points that a person gave for it, and those of its parts."""
    parts = graded.parts
    if graded.points >= graded.of:
        parts = [part for part in parts if part.get("count")]
    rows = [
        {"kind": "task", **vars(graded), "name": graded.task, "reason": "" if parts else graded.reason, "best": None}
    ]
    if mark is not None:
        by_hand = {"points": mark.points, "reason": "by a person"} if mark.is_by_hand else {}
        rows[0] |= {"manual": graded.manual and mark.waits, **by_hand}
    for part in parts:
        counted = part.get("count")
        reason = part["reason"] or (str(Count(**counted)) if counted else "")
        best = bests.get((graded.cell, part["name"])) if counted else None
        rows.append({"kind": "part", "manual": False, **part, "reason": reason, "best": best})
    for row in rows:
        row["mark"] = "?" if row["manual"] else "✓" if row["points"] >= row["of"] else "✗"
    return rows


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


class _Renderer(mistune.HTMLRenderer):
    """As usual, but for what would lead away from the page."""

    def link(self, text: str, url: str, title: str | None = None) -> str:
        return text

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return text


_markdown: Any = mistune.create_markdown(renderer=_Renderer(escape=True), plugins=["table"])


def html_of(text: str) -> str:
    """Return a text in Markdown as HTML that can be put on a page: no tags but those of its own form, no links.

    The texts are the instructor's, and those of students between fences (`autograded.verbatim`), which is where they
    stay: HTML is escaped in both.

    Example:
        >>> print(html_of("*one* <script>, [two](https://example.org)"), end="")
        <p><em>one</em> &lt;script&gt;, two</p>
    """
    return str(_markdown(text))
