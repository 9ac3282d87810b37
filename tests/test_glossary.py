"""The glossary says each word once, in one sentence, in an order in which it is found."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text()
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", TEXT, re.MULTILINE)
TERMS = [(term, meaning) for term, meaning in ROWS if term not in ("term", "---")]


def test_every_term_has_one_row() -> None:
    terms = [term.lower() for term, _ in TERMS]
    assert len(terms) > 40 and len(terms) == len(set(terms))


def test_every_meaning_is_one_sentence() -> None:
    wrong = [term for term, meaning in TERMS if not meaning.endswith(".") or re.search(r"\. [A-Z]", meaning)]
    assert not wrong


def test_terms_are_in_alphabetical_order() -> None:
    for section in TEXT.split("\n## ")[1:]:
        terms = [term.lower() for term, _ in re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)]
        terms = [term for term in terms if term not in ("term", "---")]
        assert terms == sorted(terms)
