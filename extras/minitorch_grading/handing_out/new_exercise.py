"""``minitorch new-exercise``: a small exercise that works, to be made into another one.

Its files are those of `template/`. The notebook is written there as text: a line ``--- KIND ID [POINTS | solution]``
begins each cell.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from minitorch.errors import CommandError

TEMPLATE = Path(__file__).with_name("template")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def new_exercise(name: str, source: Path, wrong: Path) -> list[Path]:
    """Write an exercise with checks, an assert cell and wrong solutions; returns the paths.

    Args:
        name: of the exercise.
        source: the folder of the solutions.
        wrong: the folder of the wrong solutions.

    Raises:
        CommandError: if the name will not do, or there is such an exercise or folder already.
    """
    if not NAME.fullmatch(name):
        raise CommandError(f"{name} is no name for an exercise: letters, digits, `.`, `_` and `-`, at most 64")
    for folder in (source / name, wrong / name):
        if folder.exists():
            raise CommandError(f"{folder} is there already")
    files = {
        source / name / f"{name}.ipynb": notebook(_text("notebook.txt", name)),
        source / name / "checks.py": _text("checks.py.txt", name),
        wrong / name / "mean.py": _text("wrong_solutions.py.txt", name),
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)


def _text(file: str, name: str) -> str:
    return (TEMPLATE / file).read_text(encoding="utf-8").replace("{NAME}", name)


def notebook(text: str) -> str:
    """A notebook of a text, with nbgrader's metadata.

    Example:
        >>> (cell,) = json.loads(notebook("--- code add-tests 5" + chr(10) + "assert add(1, 2) == 3"))["cells"]
        >>> cell["source"], cell["metadata"]["nbgrader"]["points"]
        (['assert add(1, 2) == 3'], 5)
    """
    cells = []
    for piece in re.split(r"^--- ", text, flags=re.MULTILINE)[1:]:
        head, _, source = piece.partition("\n")
        kind, identity, *rights = head.split()
        cell: dict[str, Any] = {"cell_type": kind, "id": identity, "metadata": {}}
        cell["source"] = source.strip("\n").splitlines(keepends=True)
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        if rights:
            solution = rights == ["solution"]
            about = {"grade": not solution, "grade_id": identity, "locked": not solution, "schema_version": 3}
            points = {} if solution else {"points": int(rights[0])}
            cell["metadata"]["nbgrader"] = {**about, "solution": solution, "task": False, **points}
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    made = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
