"""The notebook as it was run, in a form in which formgrader can show it and nothing of a student's becomes a program.

Formgrader makes HTML of the text cells of a notebook as they are, scripts included, in the browser in which an
instructor is logged in; no setting of nbgrader's or nbconvert's keeps its template from that. So a student's text is
written between fences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import Any

from ..incidents import Incident
from ..sandbox.execution import Message
from .preflight import Part


def verbatim(text: str) -> str:
    """Markdown that shows a text as it is written, whatever is in it.

    Example:
        >>> print(verbatim("<b>*1*</b>"))
        ```text
        <b>*1*</b>
        ```
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def as_notebook(parts: list[Part], outputs: dict[int, list[Message]], handed_out: set[str]) -> dict[str, Any]:
    """The executed notebook, for nbgrader's formgrader.

    Args:
        parts: the cells.
        outputs: of each cell, by its place.
        handed_out: the texts that are the instructor's own; all others are shown as they were written.
    """
    cells = []
    for number, part in enumerate(parts):
        is_text = part.kind != "code" and part.source not in handed_out
        cell: dict[str, Any] = {
            "cell_type": "markdown" if is_text else part.kind,
            "id": re.sub(r"[^a-zA-Z0-9_-]", "-", part.name or f"cell-{number}")[:64],
            "metadata": {"nbgrader": part.about} if part.about else {},
            "source": verbatim(part.source) if is_text else part.source,
        }
        if part.kind == "code":
            cell |= {"execution_count": None, "outputs": outputs.get(number, [])}
        cells.append(cell)
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def with_incidents(notebook: dict[str, Any], incidents: Sequence[Incident]) -> dict[str, Any]:
    """The notebook with its incidents above the first cell, where formgrader shows them."""
    if not incidents:
        return notebook
    text = "\n".join(f"{each}{'  <- look at it' if each.look else ''}" for each in incidents)
    source = f"**What happened while it was graded**\n\n{verbatim(text)}"
    taken = {each["id"] for each in notebook["cells"]}
    free = (f"incidents-{number}" for number in count() if f"incidents-{number}" not in taken)
    cell = {"cell_type": "markdown", "id": next(free), "metadata": {}, "source": source}
    return {**notebook, "cells": [cell, *notebook["cells"]]}
