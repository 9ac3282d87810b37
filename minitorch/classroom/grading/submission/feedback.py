"""The page that a student gets back: points and reasons first, then incidents, then the notebook as it was run.

It is one file that asks for nothing: a policy in its head forbids every request, no text of the student's becomes HTML,
and none steers the browser (`plain`); what the instructor wrote in Markdown does become HTML. Hidden inputs are not in
it, because they never were in the notebook.
"""

from __future__ import annotations

from html import escape
from typing import Any

from ...checks.score import Count
from ..incidents import Incident
from ..plain import plain
from ..results import Graded, Result
from .markdown import html_of

SHOWN = 20_000  # characters of one output

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --good: #1a7f37; --bad: #b35900; }
@media (prefers-color-scheme: dark) { :root { --good: #4ac26b; --bad: #f0883e; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.total { font-size: 1.2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; border-top: 1px solid var(--line); }
th { font-weight: 600; border-top: 0; } td.n { white-space: nowrap; text-align: right; }
tr.part td { border-top: 0; padding-top: 0; font-size: .93rem; } tr.part td:nth-child(2) { padding-left: 1.2rem; }
.good { color: var(--good); } .bad { color: var(--bad); }
pre { font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; }
td pre { margin: .2rem 0; }
.cell { border-left: 3px solid var(--line); padding: .1rem .8rem; margin: .8rem 0; }
.cell > pre:first-child { background: var(--soft); padding: .5rem .7rem; }
.text { color: inherit; opacity: .85; } .note { border-left-color: var(--bad); }
img { max-width: 100%; } @media print { body { margin: 0; } .cell { break-inside: avoid; } }
"""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(student: str, exercise: str, result: Result) -> str:
    """The feedback as an HTML page.

    Args:
        student: the student's name, as the folder says it.
        exercise: the name of the exercise.
        result: what came of the submission.
    """
    by_hand = sum(each.of for each in result.graded if each.manual)
    total = f"{result.points:g} of {result.of:g} points"
    if by_hand:
        total += f", of which {by_hand:g} are still to be given by a person"
    body = [
        f"<h1>{escape(exercise)}</h1>",
        f"<p>{escape(student)}</p>",
        f'<p class="total"><b>{total}</b></p>',
        *_tasks(result.graded),
        *_incidents(result.incidents),
        *_notebook(result),
    ]
    title = f"{escape(exercise)}: {escape(student)}"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>{title}</title><style>{STYLE}</style>'
    )
    body.insert(0, f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>')
    return plain("\n".join([*body, "</body></html>\n"]))


def _tasks(graded: list[Graded]) -> list[str]:
    rows = ["<table>", "<tr><th>points</th><th>task</th><th>why</th></tr>"]
    for each in graded:
        parts = (each.score or {}).get("parts", [])
        if each.points >= each.of:
            parts = [part for part in parts if part.get("count")]
        named = each.score["task"] if each.score else each.cell
        reason = "" if parts else each.reason
        rows.append(_row(each.points, each.of, f"<b>{escape(named)}</b>", reason, manual=each.manual))
        rows += [_part(each.cell, part) for part in parts]
    return [*rows, "</table>"]


def _part(cell: str, part: dict[str, Any]) -> str:
    """The row of a part. Where it has a count, there is a place for the best of the class (`course/bests.py`)."""
    name, counted = escape(part["name"]), part.get("count")
    if not counted:
        return _row(part["points"], part["of"], name, part["reason"], "part")
    row = _row(part["points"], part["of"], name, part["reason"] or str(Count(**counted)), "part")
    return row.removesuffix("</td></tr>") + f"{place_of(cell, part['name'])}{END_OF_PLACE}</td></tr>"


END_OF_PLACE = "<!--/best-->"


def place_of(cell: str, part: str) -> str:
    """The mark where the best of the class stands: a comment, so no text of a student's can be one.

    Example:
        >>> place_of("plan-check", "few bytes")
        '<!--best plan-check few bytes-->'
    """
    return f"<!--best {escape(cell)} {escape(part).replace('--', '')}-->"


def _row(points: float, of: float, name: str, reason: str, kind: str = "task", manual: bool = False) -> str:
    all_of_it = points == of
    mark = "?" if manual else "✓" if all_of_it else "✗"
    color = "good" if all_of_it else "bad"
    first, _, more = reason.partition("\n")
    why = escape(first) + (f"<pre>{escape(more)}</pre>" if more else "")
    return (
        f'<tr class="{kind}"><td class="n"><span class="{color}">{mark}</span> {points:g} of {of:g}</td>'
        f"<td>{name}</td><td>{why}</td></tr>"
    )


def _incidents(incidents: list[Incident]) -> list[str]:
    if not incidents:
        return []
    rows = [
        f"<li><b>{escape(each.kind)}</b>{f' in cell <code>{escape(each.cell)}</code>' if each.cell else ''}: "
        f"{escape(each.text)}</li>"
        for each in incidents
    ]
    return ["<h2>What happened while it was graded</h2>", "<ul>", *rows, "</ul>"]


def _notebook(result: Result) -> list[str]:
    if result.notebook is None:
        return []
    noted = {each.cell for each in result.incidents if each.cell}
    cells = ["<h2>The notebook, as it was run</h2>"]
    for cell in result.notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if cell["cell_type"] != "code":
            cells.append(f'<div class="text">{html_of(cell["source"])}</div>')
            continue
        source = f"<pre>{escape(cell['source'])}</pre>"
        outputs = "".join(_output(output) for output in cell["outputs"])
        cells.append(f'<div class="cell{" note" if name in noted else ""}">{source}{outputs}</div>')
    return cells


def _output(output: dict[str, Any]) -> str:
    """Text and PNG pictures. Other forms of an output could hold anything, and have a text beside them."""
    if output["output_type"] == "error":
        return f'<pre class="bad">{_text(chr(10).join(output["traceback"]))}</pre>'
    if output["output_type"] == "stream":
        return f"<pre>{_text(output['text'])}</pre>"
    data = output["data"]
    if picture := data.get("image/png"):
        return f'<img alt="" src="data:image/png;base64,{escape(picture)}">'
    if any(name.endswith("score+json") for name in data):
        return ""  # it is in the table
    text = data.get("text/plain", "")
    return f"<pre>{_text(text if isinstance(text, str) else str(text))}</pre>" if text else ""


def _text(text: str) -> str:
    return escape(text[:SHOWN]) + ("\n..." if len(text) > SHOWN else "")
