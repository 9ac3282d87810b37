"""How many minutes a notebook takes, estimated from what is in it: ``python tools/minutes.py notebooks/*.ipynb``.

Words are read at 200 a minute, as of technical prose; lines of code at ten a minute, since they are understood and not
only read; lines of output at twenty a minute, and a picture takes one; a prediction takes one minute, and lines
that the reader types three. Sections marked *optional* in their heading count separately.

Notebooks are committed without outputs. How much there is of them was counted in a run, and is recorded in
`outputs.json`: ``python -m tests.notebook_runs 07 --on idle --record``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from operator import truediv
from pathlib import Path
from typing import Any

WORDS, LINES, PREDICTIONS, BLANKS, OUTPUTS, PICTURES = 200, 10, 1, 1 / 3, 20, 1  # a minute
RECORD = Path(__file__).with_name(
    "outputs.json"
)  # of each notebook: lines of output and pictures, and the optional ones
STATED = re.compile(r"^Time: (\d+) minutes", re.MULTILINE)


@dataclass(frozen=True)
class Counts:
    """What is in a notebook, or in a part of it."""

    words: int = 0
    lines: int = 0
    predictions: int = 0
    blanks: int = 0
    outputs: int = 0
    pictures: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def minutes(self) -> float:
        """For reading, guessing and typing."""
        rates = WORDS, LINES, PREDICTIONS, BLANKS, OUTPUTS, PICTURES
        return float(sum(map(truediv, astuple(self), rates)))


def counted(kind: str, source: str) -> Counts:
    """What is in a cell, but for its outputs.

    Example:
        >>> counted("markdown", "Two words. **Predict:** a number?"), counted("code", "x = 1\\n\\n# why\\ny = 2")
        (Counts(words=5, lines=0, predictions=1, ...), Counts(words=0, lines=2, ...))
    """
    if kind == "code":
        lines = [line.strip() for line in source.splitlines()]
        read = sum(bool(line) and not line.startswith("#") for line in lines)
        return Counts(0, read, source.count("course.predict("), source.count("@course.blank("))
    text = re.sub(r"\]\([^)]*\)", "]", source)  # nobody reads where a link leads
    return Counts(len(re.findall(r"[^\W_]+(?:['’.-][^\W_]+)*", text)), 0, len(re.findall(r"\*\*Predict", source)))


def shown(outputs: Iterable[dict[str, Any]]) -> Counts:
    """The lines and the pictures of a cell's outputs; a widget is no line.

    Example:
        >>> shown([{"text": "a\\n\\nb\\n"}, {"data": {"image/png": "", "text/plain": "a plot"}}])
        Counts(words=0, lines=0, predictions=0, blanks=0, outputs=2, pictures=1)
    """
    found = Counts()
    for output in outputs:
        data = output.get("data", {"text/plain": output.get("text", "")})
        if any(kind.startswith("image/") for kind in data) or "<svg" in "".join(data.get("text/html", "")):
            found += Counts(pictures=1)
        elif "application/vnd.jupyter.widget-view+json" not in data:
            lines = "".join(data.get("text/plain", "")).splitlines()
            found += Counts(outputs=sum(bool(line.strip()) for line in lines))
    return found


def of_notebook(path: Path) -> tuple[Counts, Counts, int]:
    """What everybody reads, what is optional, and the minutes that the notebook states; 0 if it states none.

    Outputs are those that were recorded.
    """
    main, optional, stated = of_cells(json.loads(path.read_text(encoding="utf-8"))["cells"])
    recorded = json.loads(RECORD.read_text(encoding="utf-8")).get(path.stem, [[0, 0], [0, 0]])
    more = [Counts(outputs=lines, pictures=pictures) for lines, pictures in recorded]
    return main + more[0], optional + more[1], stated


def of_cells(cells: Iterable[dict[str, Any]]) -> tuple[Counts, Counts, int]:
    """The same of cells, with the outputs that they have."""
    main, optional, stated, level = Counts(), Counts(), 0, 0
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and (heading := re.search(r"^(#+) (.*)$", source, re.MULTILINE)):
            depth = len(heading[1])
            if not level or depth <= level:  # a section within an optional one is optional, too
                level = depth if "optional" in heading[2].lower() else 0
        if found := STATED.search(source):
            stated = int(found[1])
        found_here = counted(cell["cell_type"], source) + shown(cell.get("outputs", ()))
        if level:
            optional += found_here
        else:
            main += found_here
    return main, optional, stated


def main(paths: list[str]) -> None:
    """A line for each notebook."""
    heads = ("words", "lines", "predictions", "blanks", "outputs", "pictures", "minutes", "stated", "optional")
    print(f"{'':32}" + "".join(f"{head:>12}" for head in heads))
    for path in map(Path, paths):
        found, optional, stated = of_notebook(path)
        row = *astuple(found), round(found.minutes), stated, round(optional.minutes)
        print(f"{path.stem:32}" + "".join(f"{each:>12}" for each in row))


if __name__ == "__main__":
    main(sys.argv[1:])
