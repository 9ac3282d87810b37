"""Links each word of the glossary where a notebook uses it first: ``python -m tools.link_words notebooks/*.ipynb``.

Words that plain English uses too (`EVERYDAY`) are linked by hand, where they are meant as terms.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GLOSSARY = Path(__file__).resolve().parent.parent / "notebooks" / "glossary.md"
EVERYDAY = frozenset(
    {
        "capture",
        "compiler",
        "definition",
        "edge",
        "feed",
        "fetch",
        "force",
        "gather",
        "gradient",
        "guard",
        "interpreter",
        "jit",
        "latency",
        "live",
        "mask",
        "operation",
        "page",
        "pass",
        "phase",
        "placeholder",
        "procedure",
        "rehearsal",
        "rewrite",
        "root",
        "scatter",
        "target",
        "transient",
        "view",
    }
)
# Code, formulas, links, headings, tags and what stands within a summary are left as they are.
ELSEWHERE = re.compile(
    r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]+\$|!?\[[^\]]*\]\([^)]*\)|^#+ .*?$|<summary>.*?</summary>|<[^>]*>",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Use:
    """The first use of a word in a notebook, which is no link: the cell, and where it stands in the cell's text."""

    term: str
    cell: int
    start: int
    end: int


def terms() -> list[str]:
    """The glossary's words, longer ones first: a vector register is no register."""
    return sorted(re.findall(r"^### (.+)$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE), key=len, reverse=True)


def anchor(term: str) -> str:
    """The part of a link after ``#``, for JupyterLab and GitHub.

    Example:
        >>> anchor("saved for backward")
        'saved-for-backward'
    """
    return term.replace(" ", "-")


def masked(text: str) -> str:
    """The text with blanks in place of what is no prose.

    Example:
        >>> masked("A `node` of a [graph](g.md).")
        'A        of a               .'
    """
    return ELSEWHERE.sub(lambda found: re.sub(r"\S", " ", found[0]), text)


def unlinked(cells: list[str]) -> Iterator[Use]:
    """The words that are used before they are linked, or without; ``cells`` holds the texts, and "" for code.

    Example:
        >>> [use.term for use in unlinked(["A node.", "A [kernel](glossary.md#kernel), and a kernel."])]
        ['node']
    """
    prose = [masked(text) for text in cells]
    for term in terms():
        pattern = re.compile(rf"(?<![\w-]){re.escape(term)}(?:e?s)?(?![\w-])", re.IGNORECASE)
        first = next(((i, found) for i, text in enumerate(prose) if (found := pattern.search(text))), None)
        prose = [pattern.sub(lambda found: " " * len(found[0]), text) for text in prose]  # not again within it
        if first is None or term in EVERYDAY:
            continue
        cell, found = first
        link = f"glossary.md#{anchor(term)})"
        before = [*cells[:cell], cells[cell][: found.start()]]
        if not any(link in text for text in before):
            yield Use(term, cell, found.start(), found.end())


def link(path: Path) -> int:
    """Link the words of a notebook, in place; return how many."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    texts = ["".join(cell["source"]) if cell["cell_type"] == "markdown" else "" for cell in notebook["cells"]]
    uses = sorted(unlinked(texts), key=lambda use: (use.cell, use.start), reverse=True)  # the last one first
    for use in uses:
        text = texts[use.cell]
        word = text[use.start : use.end]
        texts[use.cell] = f"{text[: use.start]}[{word}](glossary.md#{anchor(use.term)}){text[use.end :]}"
        notebook["cells"][use.cell]["source"] = texts[use.cell].splitlines(keepends=True)
    if uses:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return len(uses)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {link(Path(name))} linked")
