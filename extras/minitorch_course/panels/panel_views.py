"""The views of a panel: an experiment's counts and times as a table, its kernels, ledger, graph and loops, as HTML."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping

from minitorch.graph.cost import in_units
from minitorch_inspect import show
from minitorch_inspect.picture import Picture

from ..stopwatch import AGAIN
from .experiment import Experiment

MOST_LINES = 400  # of loops; a browser shows more of them, but slowly


def facts(found: Experiment) -> str:
    """The counts and times as an HTML table, and the verdict."""
    head = "".join(f"<th scope='col'>{html.escape(name)}</th>" for name in found.costs)
    rows = "".join(
        f"<tr><th scope='row'>{html.escape(title)}</th>{''.join(f'<td>{html.escape(each)}</td>' for each in row)}</tr>"
        for title, *row in found.rows
    )
    verdict = found.verdict.replace(AGAIN, "measure again")
    return f"<table><tr><td></td>{head}</tr>{rows}</table><p>{html.escape(verdict)}</p>"


def parts(found: Experiment) -> str:
    """Tabulate as text what is counted without each pass and each class of fusion, where the text differs."""
    rows = {name: f"{n:>9}{in_units(size, 'B'):>10}{in_units(peak, 'B'):>10}" for name, n, size, peak in found.parts()}
    rows = {name: row for name, row in rows.items() if name == "nothing" or row != rows["nothing"]}
    rows = {"without": f"{'kernels':>9}{'moved':>10}{'peak':>10}"} | rows
    lines = [f"{name:<{max(map(len, rows))}}{row}" for name, row in rows.items()]
    return "\n".join([*lines, "(the others change none of these counts)"])


def _picture(picture: Picture) -> str:
    try:
        return picture.svg
    except ModuleNotFoundError:  # without Graphviz
        return _text(picture.text)


def _text(text: str) -> str:
    return f"<pre>{html.escape(text)}</pre>"


def _loops(found: Experiment) -> str:
    texts = []
    for kernel in found.chosen.ledger.kernels:
        loops = kernel.steps[-1].source if kernel.loops else "# run by NumPy"
        texts.append(f"# {kernel.name}\n{loops}")
    lines = "\n".join(texts).splitlines()
    more = [f"# and {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
    return _text("\n".join([*lines[:MOST_LINES], *more]))


VIEWS: Mapping[str, Callable[[Experiment], str]] = {
    "kernels": lambda found: _picture(show(found.chosen.ledger)),
    "ledger": lambda found: _text(str(found.chosen.ledger)),
    "graph": lambda found: _picture(show(found.chosen.run.graph)),
    "loops": _loops,
    "each part": lambda found: _text(parts(found)),
}
