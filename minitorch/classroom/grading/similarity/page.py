"""A comparison as one HTML page that asks for nothing: no scripts, no requests, and no student's text becomes HTML."""

from __future__ import annotations

from html import escape

from ..submission.feedback import POLICY
from .pairs import Lines, Match, Pair
from .table import SAYING, Comparison, rows, shares

LONGEST = 300  # characters of a line that are shown

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 90rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.says { border-left: 3px solid var(--line); padding-left: .8rem; max-width: 50rem; }
table { border-collapse: collapse; } td.n { text-align: right; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-top: 1px solid var(--line); }
table.code { table-layout: fixed; width: 100%; margin-bottom: 1.2rem; } table.code td { width: 50%; }
pre { font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: 0;
  background: var(--soft); padding: .3rem .6rem; }
.place { font-size: .9rem; opacity: .8; }
"""


def page(comparison: Comparison) -> str:
    """The comparison as an HTML page."""
    title = f"{escape(comparison.exercise)}: similar submissions"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>{title}</title><style>{STYLE}</style>'
    )
    body = [
        f"<h1>{title}</h1>",
        f'<p class="says">{escape(SAYING)}</p>',
        f"<p>{comparison.students} submissions; code that was handed out, and what many have in common, is left out. "
        "Names, numbers and texts count as equal.</p>",
        *_summary(comparison.pairs),
        *(f"<p>{escape(note)}</p>" for note in comparison.notes),
        *(line for number, pair in enumerate(comparison.pairs, 1) for line in _details(number, pair)),
    ]
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(body) + "\n</body></html>\n"


def _summary(pairs: list[Pair]) -> list[str]:
    if not pairs:
        return ["<p>No pair has much in common.</p>"]
    lines = ["<table>", "<tr><th>one</th><th>other</th><th>alike</th><th>lines</th><th>tokens</th></tr>"]
    for number, pair in enumerate(pairs, 1):
        lines.append(
            f'<tr><td><a href="#pair{number}">{escape(pair.one)}</a></td><td>{escape(pair.other)}</td>'
            f'<td>{shares(pair)}</td><td class="n">{pair.lines}</td><td class="n">{pair.tokens}</td></tr>'
        )
    return [*lines, "</table>"]


def _details(number: int, pair: Pair) -> list[str]:
    lines = [f'<h2 id="pair{number}">{escape(pair.one)} and {escape(pair.other)}</h2>']
    return lines + [_match(match) for match in pair.matches]


def _match(match: Match) -> str:
    columns = zip(*rows(match), strict=True)
    cells = "".join(
        f"<td>{_place(lines)}<pre>{escape(chr(10).join(line[:LONGEST] for line in column).rstrip())}</pre></td>"
        for lines, column in zip((match.one, match.other), columns, strict=True)
    )
    return f'<table class="code"><tr>{cells}</tr></table>'


def _place(lines: Lines) -> str:
    return f'<div class="place">{escape(str(lines))}</div>'
