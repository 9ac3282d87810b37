"""The figures of a class as one HTML page that asks for nothing: no scripts, no requests, no text that becomes HTML."""

from __future__ import annotations

from html import escape

from ..submission.feedback import POLICY
from .figures import Exercise, Overview, Task
from .table import costs, label, said

STYLE = """
:root { color-scheme: light dark; --line: #8884; --bar: #4a80c4; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.4rem; }
table { border-collapse: collapse; } td.n { text-align: right; white-space: nowrap; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; border-top: 1px solid var(--line); }
table.bars td { border: 0; padding: .1rem .6rem .1rem 0; } table.bars td.bar { width: 30rem; }
.bar div { background: var(--bar); height: .9rem; } ul { margin: 0; padding-left: 1.1rem; }
"""


def page(found: Overview) -> str:
    """The figures as an HTML page."""
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>The class</title><style>{STYLE}</style>'
    )
    body = ["<h1>The class</h1>", *_queue(found)]
    body += [line for exercise in found.exercises for line in _exercise(exercise)]
    body += [*_hardest(found.hardest), *_changes(found)]
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(body) + "\n</body></html>\n"


def _queue(found: Overview) -> list[str]:
    rows = [
        f"<tr><td>{escape(each.student)}</td><td>{escape(each.exercise)}</td><td>{_list(each.why)}</td></tr>"
        for each in found.queue
    ]
    lines = [f"<h2>For a person to look at: {len(rows)}</h2>"]
    if rows:
        lines += ["<p>Formgrader says of each that it needs a manual grade.</p>"]
        lines += ["<table>", "<tr><th>student</th><th>exercise</th><th>why</th></tr>", *rows, "</table>"]
    return lines


def _list(texts: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def _exercise(exercise: Exercise) -> list[str]:
    most = max(*exercise.histogram, 1)
    bars = [
        f'<tr><td class="n">{label(number)}</td>'
        f'<td class="bar"><div style="width: {100 * count / most:.1f}%"></div></td>'
        f'<td class="n">{count}</td></tr>'
        for number, count in enumerate(exercise.histogram)
    ]
    lines = [
        f"<h2>{escape(exercise.name)}</h2>",
        f"<p>{exercise.students} submissions, mean {exercise.mean:.1f}, median {exercise.median:g} of {exercise.of:g} "
        "points</p>",
        '<table class="bars">',
        *bars,
        "</table>",
        "<table>",
        "<tr><th>task</th><th>mean</th><th>all points</th><th>none</th><th>the commonest reasons</th></tr>",
        *map(_task, exercise.tasks),
        "</table>",
    ]
    lines += [f"<p>{escape(str(each))}</p>" for each in exercise.bests]
    if exercise.incidents:
        lines.append(f"<p>Incidents: {', '.join(f'{escape(kind)} {count}' for kind, count in exercise.incidents)}</p>")
    if exercise.missing:
        lines.append(f"<p>Handed in nothing: {escape(', '.join(exercise.missing))}</p>")
    if exercise.late:
        lines.append(f"<p>Late: {escape(costs(exercise))}; these points come off those above</p>")
    return lines


def _task(task: Task) -> str:
    reasons = _list(tuple(f"{count} × {reason}" for reason, count in task.reasons))
    return (
        f'<tr><td>{escape(task.name)}</td><td class="n">{task.mean:.1f} of {task.of:g} ({task.share:.0%})</td>'
        f'<td class="n">{task.all_points}</td><td class="n">{task.no_points}</td><td>{reasons}</td></tr>'
    )


def _hardest(tasks: list[Task]) -> list[str]:
    if len(tasks) < 2:
        return []
    rows = [f"<li>{escape(task.exercise)} {escape(task.name)}: {task.share:.0%}</li>" for task in tasks[:10]]
    return ["<h2>The hardest tasks</h2>", "<ol>", *rows, "</ol>"]


def _changes(found: Overview) -> list[str]:
    if not found.changes:
        return []
    return ["<h2>Points that persons changed, the latest first</h2>", _list(tuple(map(said, found.changes)))]
