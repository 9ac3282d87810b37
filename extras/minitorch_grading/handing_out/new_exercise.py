"""``minitorch new-exercise``: a small exercise that works, to be made into another one.

Its files are those of `template/`.
"""

from __future__ import annotations

import re
from pathlib import Path

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
        source / name / f"{name}.ipynb": _text("notebook.ipynb.txt", name),
        source / name / "checks.py": _text("checks.py.txt", name),
        wrong / name / "mean.py": _text("wrong_solutions.py.txt", name),
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)


def _text(file: str, name: str) -> str:
    return (TEMPLATE / file).read_text(encoding="utf-8").replace("{NAME}", name)
