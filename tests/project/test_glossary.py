"""The glossary says each word once, in an order in which it is found, and every link to it leads to a word."""

import json
import re
from pathlib import Path

import pytest

from tools import link_words
from tools.clone import NOTEBOOKS

TEXT = (NOTEBOOKS / "glossary.md").read_text(encoding="utf-8")
TERMS = re.findall(r"^### (.+)\n\n(.+)$", TEXT, re.MULTILINE)
LINK = re.compile(r"\[([^]]*)\]\((?:[./a-z]*/)?glossary\.md#([^)]*)\)")


def links(text: str) -> list[tuple[str, str]]:
    """The words that are linked to the glossary, and where to.

    Example:
        >>> links("A [node](glossary.md#node), two [kernels](../notebooks/glossary.md#kernel).")
        [('node', 'node'), ('kernels', 'kernel')]
    """
    return LINK.findall(text)


def test_every_term_has_one_entry() -> None:
    terms = [term.lower() for term, _ in TERMS]
    assert len(terms) > 100 and len(terms) == len(set(terms))


def test_every_meaning_is_a_sentence_or_two() -> None:
    wrong = [term for term, meaning in TERMS if not meaning.endswith(".") or len(re.findall(r"\. [A-Z]", meaning)) > 1]
    assert not wrong


def test_terms_are_in_alphabetical_order() -> None:
    terms = [term.lower() for term, _ in TERMS]
    assert terms == sorted(terms)


def test_headings_are_links_as_they_are() -> None:
    """JupyterLab and GitHub make different links of other characters."""
    assert not [term for term, _ in TERMS if re.search(r"[^\w -]", term)]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_words_of_notebooks_are_linked_where_they_are_used_first(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    found = [link for cell in cells for link in links("".join(cell["source"]))]
    anchors = {link_words.anchor(term) for term, _ in TERMS}
    assert not [link for link in found if link[1] not in anchors]
    texts = ["".join(cell["source"]) if cell["cell_type"] == "markdown" else "" for cell in cells]
    unlinked = [use.term for use in link_words.unlinked(texts)]
    assert not unlinked, f"`python -m tools.link_words notebooks/{path.name}` links them"


def test_the_first_use_of_a_word_is_linked_once(tmp_path: Path) -> None:
    texts = [
        "# Kernels\n\nA `node` of a [graph](https://example.org), vector registers.",
        "x = 1",
        "Kernels read nodes, a Node.",
    ]
    cells = [
        {"cell_type": kind, "source": [text]}
        for kind, text in zip(("markdown", "code", "markdown"), texts, strict=True)
    ]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert link_words.link(path) == 3 and link_words.link(path) == 0
    written = ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    assert written[0].endswith("[vector registers](glossary.md#vector-register).") and written[1] == "x = 1"
    assert written[2] == "[Kernels](glossary.md#kernel) read [nodes](glossary.md#node), a Node."
