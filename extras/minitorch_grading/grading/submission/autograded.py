"""The notebook as it was run, in a form in which formgrader can show it and nothing of a student's becomes a program.

Formgrader makes HTML of the text cells of a notebook as they are, scripts included, in the browser in which an
instructor is logged in; no setting of nbgrader's or nbconvert's keeps its template from that. So a student's text is
written between fences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import count
from typing import Any

from ..sandbox.execution import Message
from .preflight import Part

BOX = "**What happened while it was graded**"


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


def without_box(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook without the box above its first cell; no text of a student's begins as the box does."""
    is_box = [each["cell_type"] == "markdown" and each["source"].startswith(BOX) for each in notebook["cells"][:1]]
    return {**notebook, "cells": notebook["cells"][sum(is_box) :]}


def boxed(notebook: dict[str, Any], lines: Sequence[str]) -> dict[str, Any]:
    """The notebook with lines for a person above the first cell, where formgrader shows them."""
    if not lines:
        return notebook
    taken = {each["id"] for each in notebook["cells"]}
    free = (f"incidents-{number}" for number in count() if f"incidents-{number}" not in taken)
    source = f"{BOX}\n\n{verbatim(chr(10).join(lines))}"
    cell = {"cell_type": "markdown", "id": next(free), "metadata": {}, "source": source}
    return {**notebook, "cells": [cell, *notebook["cells"]]}


def text_of(notebook: dict[str, Any]) -> str:
    """The notebook as a file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
