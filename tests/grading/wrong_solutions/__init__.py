"""For every task, wrong solutions that people hand in, each with what its reason must say, and right ones.

One file per exercise, and one with those that a check was wrong about. A solution is a plain function that needs
nothing but what the notebook's first cell imports, so that `as_cell` can put it into a notebook.
"""

from __future__ import annotations

import inspect
import linecache
import re
import textwrap
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from minitorch_grading.wrong_solutions import KNOWN_SOLUTIONS, KnownSolution, as_cell, right, wrong

__all__ = ["KNOWN_SOLUTIONS", "KnownSolution", "as_cell", "right", "variants", "wrong"]

HEAD = re.compile(r"(\w+)(?: \[(?:([\d.]+))?(?:, )?([^\]]*)\])?: (.*)")


def variants(of: Callable[..., Any], rows: str) -> None:
    """Add wrong solutions that are a right one but for some lines, which are the mistakes.

    Args:
        of: a right solution of the same file.
        rows: of each wrong one its name, perhaps its points and the part that loses them in brackets, and what the
            reason says; then lines of the right solution after ``-``, and what stands there instead after ``+``.
    """
    task = next(each.task for each in KNOWN_SOLUTIONS if each.function is of)
    _, _, correct = inspect.getsource(of).partition("\ndef ")
    for row in re.split(r"\n(?![-+] )", textwrap.dedent(rows).strip()):
        head, _, changes = f"{row}\n".partition("\n")
        name, points, part, says = HEAD.fullmatch(head).groups()  # type: ignore[union-attr]
        source = f"def {correct}".replace(of.__name__, name, 1)
        for old, new in re.findall(r"^- (.*\n)((?:\+ .*\n)*)", changes, re.MULTILINE):
            place = re.search(rf"^( *){re.escape(old)}", source, re.MULTILINE)
            assert place and source.count(place[0]) == 1, (name, old)
            source = source.replace(place[0], re.sub("(?m)^[+] ", place[1], new))
        file = f"{of.__code__.co_filename}: {name}"
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file  # for `as_cell`
        exec(compile(source, file, "exec"), of.__globals__)
        wrong(task, says, float(points) if points else None, part or "")(of.__globals__[name])


FILES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")

for _file in FILES:
    import_module(f"{__name__}.{_file}")
