"""How many minutes a notebook takes, estimated from what is in it: ``python tools/minutes.py notebooks/*.ipynb``.

Words are read at 200 a minute, as of technical prose; lines of code at ten a minute, since they are understood and not
only read; a prediction takes one minute, and lines that the reader types three. Sections marked *optional* in their
heading count separately.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import astuple, dataclass
from pathlib import Path

WORDS, LINES, PREDICTIONS, BLANKS = 200, 10, 1, 1 / 3  # a minute
STATED = re.compile(r"^Time: (\d+) minutes", re.MULTILINE)


@dataclass(frozen=True)
class Counts:
    """What is in a notebook, or in a part of it."""

    words: int = 0
    lines: int = 0
    predictions: int = 0
    blanks: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def minutes(self) -> float:
        """For reading, guessing and typing."""
        return self.words / WORDS + self.lines / LINES + self.predictions / PREDICTIONS + self.blanks / BLANKS


def counted(kind: str, source: str) -> Counts:
    """What is in a cell.

    Example:
        >>> counted("markdown", "Two words. **Predict:** a number?"), counted("code", "x = 1\\n\\n# why\\ny = 2")
        (Counts(words=5, lines=0, predictions=1, blanks=0), Counts(words=0, lines=2, predictions=0, blanks=0))
    """
    if kind == "code":
        lines = [line.strip() for line in source.splitlines()]
        read = sum(bool(line) and not line.startswith("#") for line in lines)
        return Counts(0, read, source.count("course.predict("), source.count("@course.blank("))
    text = re.sub(r"\]\([^)]*\)", "]", source)  # nobody reads where a link leads
    return Counts(len(re.findall(r"[^\W_]+(?:['’.-][^\W_]+)*", text)), 0, len(re.findall(r"\*\*Predict", source)))


def of_notebook(path: Path) -> tuple[Counts, Counts, int]:
    """What everybody reads, what is optional, and the minutes that the notebook states; 0 if it states none."""
    main, optional, stated, level = Counts(), Counts(), 0, 0
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and (heading := re.search(r"^(#+) (.*)$", source, re.MULTILINE)):
            depth = len(heading[1])
            if not level or depth <= level:  # a section within an optional one is optional, too
                level = depth if "optional" in heading[2].lower() else 0
        if found := STATED.search(source):
            stated = int(found[1])
        if level:
            optional += counted(cell["cell_type"], source)
        else:
            main += counted(cell["cell_type"], source)
    return main, optional, stated


def main(paths: list[str]) -> None:
    """A line for each notebook."""
    print(f"{'':32}{'words':>7}{'lines':>7}{'predictions':>13}{'minutes':>9}{'stated':>8}{'optional':>10}")
    for path in map(Path, paths):
        found, optional, stated = of_notebook(path)
        counts = f"{found.words:>7}{found.lines:>7}{found.predictions:>13}"
        print(f"{path.stem:32}{counts}{found.minutes:>9.0f}{stated:>8}{optional.minutes:>10.0f}")


if __name__ == "__main__":
    main(sys.argv[1:])
