"""Comparing a class: copies are found whatever they are called, what everybody has is not, and no notebook ends it."""

from __future__ import annotations

import csv
import heapq
import html
import io
import json
import random
import re
import textwrap
import tokenize
from inspect import getsource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minitorch.__main__ import main
from minitorch.classroom.grading.course.folders import Course
from minitorch.classroom.grading.similarity import tokens as lexical
from minitorch.classroom.grading.similarity.fingerprints import WINDOW, K, fingerprints, kgrams
from minitorch.classroom.grading.similarity.page import page
from minitorch.classroom.grading.similarity.similar import similar
from minitorch.classroom.grading.similarity.table import SAYING, Comparison, as_csv, side_by_side
from minitorch.classroom.grading.similarity.tokens import LARGEST, Text, Tokens, cut, folded, tokens_of
from minitorch.graph import Graph, topological_order
from tests.classes import EXERCISE, added, course, hand_in, notebook, sample

NOTHING = np.zeros(0, np.uint64)

# Functions that different people wrote for different ends: a class that has nothing in common.
HONEST = [
    textwrap.TextWrapper._wrap_chunks,
    textwrap.dedent,
    heapq.merge,
    heapq.nsmallest,
    vars(csv.Sniffer)["_guess_delimiter"],
    csv.Sniffer.has_header,
    json.JSONEncoder.iterencode,
    random.Random.sample,
    random.Random.shuffle,
    html.unescape,
]


def text_of(function: object) -> str:
    return textwrap.dedent(getsource(function))  # type: ignore[arg-type]


def disguised(source: str) -> str:
    """The same program with other names, numbers, texts, comments and white space."""
    renamed: dict[str, str] = {}
    pairs: list[tuple[int, str]] = []
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        text = token.string
        if token.type == tokenize.NAME and text not in {*lexical._KEPT, "self"} and before != ".":
            text = renamed.setdefault(text, f"other_{len(renamed)}")
        elif token.type == tokenize.NUMBER:
            text = "12345"
        elif token.type == tokenize.COMMENT:
            text = "# mine"
        pairs.append((token.type, text))
        before = token.string
    return tokenize.untokenize(pairs)


def filled(source: str) -> str:
    """A submission in which one task is filled in."""
    return notebook(sample(first=source))


def compared(root: Path, at_least: float = 0.3, common: float = 1 / 3) -> Comparison:
    return similar(Course(root / "submitted", root / "exercises"), EXERCISE, common, at_least, 50)


@pytest.fixture
def honest(tmp_path: Path) -> Path:
    root = course(tmp_path)
    for number, function in enumerate(HONEST):
        hand_in(root, f"student{number}", filled(text_of(function)))
    return root


def test_different_work_is_not_listed(honest: Path) -> None:
    assert compared(honest).pairs == []


@pytest.mark.parametrize("function", HONEST, ids=lambda function: function.__name__)
def test_a_disguised_copy_is_found(function: object, honest: Path) -> None:
    hand_in(honest, "copy", filled(disguised(text_of(function))))
    (pair,) = compared(honest).pairs
    assert {pair.one, pair.other} == {"copy", f"student{HONEST.index(function)}"}
    assert min(pair.share_of_one, pair.share_of_other) > 0.9
    assert pair.matches[0].one.place.startswith("cell ")


def test_a_part_that_was_copied_shows_as_a_part(honest: Path) -> None:
    both = f"{text_of(HONEST[3])}\n\n{disguised(text_of(HONEST[5]))}"
    hand_in(honest, "student3", filled(both))
    (pair,) = compared(honest).pairs
    assert (pair.one, pair.other) == ("student3", "student5")
    assert pair.share_of_one < 0.9 < pair.share_of_other


def test_code_from_the_engine_shows_with_its_file(honest: Path) -> None:
    hand_in(
        honest,
        "reader",
        filled(disguised(text_of(Graph.__init__) + text_of(topological_order))),
    )
    (pair,) = compared(honest).pairs
    assert (pair.one, pair.other) == ("reader", "minitorch")
    assert pair.share_of_one > 0.5 and pair.share_of_other == 0
    assert "minitorch/graph/graph.py" in {match.other.place for match in pair.matches}


def test_code_that_was_handed_out_does_not_count(tmp_path: Path) -> None:
    long = text_of(HONEST[0])
    root = course(tmp_path, release=notebook([*sample(), added(long)]))
    for number in range(3):  # all of them hand in the stubs and the long cell, in which one number was changed
        cells = [*sample(first=text_of(HONEST[number + 1])), added(long.replace("0", str(number)))]
        hand_in(root, f"student{number}", notebook(cells))
    assert compared(root).pairs == []


def test_code_that_many_have_does_not_count(honest: Path) -> None:
    for number in range(10):
        hand_in(honest, f"student{number}", filled(text_of(HONEST[number]) + "\n\n" + text_of(textwrap.indent)))
    assert compared(honest).pairs == []
    everyone = {(pair.one, pair.other) for pair in compared(honest, at_least=0, common=1).pairs}
    assert sum("minitorch" not in pair for pair in everyone) == 45


def test_the_order_of_names_changes_nothing(honest: Path) -> None:
    hand_in(honest, "a", filled(text_of(HONEST[0])))
    assert str(compared(honest)) == str(compared(honest))
    (pair,) = compared(honest).pairs
    assert (pair.one, pair.other) == ("a", "student0")


# The mechanism ---------------------------------------------------------------------------------------------------


@given(st.text(alphabet=st.sampled_from(list("ab1.'\"\\#\n()[ =;:é\r\t\0")), max_size=60))
def test_any_text_has_tokens(source: str) -> None:
    lines = [line for _, line in folded(source)]
    assert lines == sorted(lines)
    assert not lines or lines[-1] <= source.count("\n")


@pytest.mark.parametrize("function", HONEST, ids=lambda function: function.__name__)
def test_disguise_changes_no_token(function: object) -> None:
    source = text_of(function)
    assert [token for token, _ in folded(source)] == [token for token, _ in folded(disguised(source))]


@pytest.mark.parametrize("seed", range(20))
def test_a_long_enough_run_in_common_has_a_fingerprint_in_common(seed: int) -> None:
    """The guarantee of winnowing, for all places of the run."""
    rng = np.random.default_rng(seed)
    run = rng.integers(0, 2**63, K + WINDOW - 1, np.uint64)

    def party() -> Tokens:
        around = [rng.integers(0, 2**63, rng.integers(0, 40), np.uint64) for _ in range(2)]
        codes = np.concatenate([around[0], run, around[1]])
        return Tokens(codes, np.zeros(len(codes), np.int32), np.zeros(len(codes), np.int32))

    one, other = (fingerprints(party(), NOTHING) for _ in range(2))
    assert len(np.intersect1d(one.hashes, other.hashes)) >= 1


def test_fingerprints_are_a_fraction_of_the_kgrams() -> None:
    """2 / (WINDOW + 1) of them, as the paper says."""
    codes = np.random.default_rng(0).integers(0, 2**63, 20_000, np.uint64)
    tokens = Tokens(codes, np.zeros(len(codes), np.int32), np.zeros(len(codes), np.int32))
    density = len(fingerprints(tokens, NOTHING).hashes) / len(kgrams(tokens))
    assert density == pytest.approx(2 / (WINDOW + 1), rel=0.05)


def test_no_kgram_goes_over_the_end_of_a_cell() -> None:
    source = text_of(HONEST[0]).splitlines()
    halves = "\n".join(source[:9]), "\n".join(source[9:])
    apart = fingerprints(tokens_of(tuple(Text("cell", half) for half in halves)), NOTHING).hashes
    swapped = fingerprints(tokens_of(tuple(Text("cell", half) for half in reversed(halves))), NOTHING).hashes
    assert len(np.intersect1d(apart, swapped)) > 0.8 * len(apart)


# Hostile notebooks -----------------------------------------------------------------------------------------------

HOSTILE = {
    "one cell of 4.9 MB": filled("x = " + "1 + " * 1_200_000 + "1"),
    "40,000 imports": filled("import a.b\n" * 40_000),
    "no Python": filled("def f(:\n  '''never ends \\\n" * 5000),
    "quotes": filled("'''\\'\"\"\"\\\"" * 20_000),
    "brackets": filled("(" * 100_000),
    "no words": filled("\0\ud800\u202e" * 1000),
    "no JSON": "not a notebook",
    "nested": "[" * 100_000,
    "a list": "[1, 2, 3]",
    "no cells": json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}),
    "nothing": "",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_notebook_is_one_party(content: str, honest: Path) -> None:
    hand_in(honest, "copy", filled(disguised(text_of(HONEST[4]))))
    hand_in(honest, "hostile", content)
    hand_in(honest, "hostile2", content)
    found = compared(honest)
    assert ("copy", "student4") in {(pair.one, pair.other) for pair in found.pairs}
    assert found.students == len(HONEST) + 3
    assert len(page(found)) < 1_000_000


def test_as_much_is_read_as_a_person_writes() -> None:
    pieces = cut(tuple(Text("cell", "x" * 70_000) for _ in range(10)))
    assert sum(len(piece.source) for piece in pieces) == LARGEST


def test_links_are_not_followed(honest: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.ipynb"
    secret.write_text(filled(text_of(HONEST[0])))
    folder = honest / "submitted" / "linked" / EXERCISE
    folder.mkdir(parents=True)
    (folder / f"{EXERCISE}.ipynb").symlink_to(secret)
    found = compared(honest)
    assert not found.pairs and any(note.startswith("linked: ") for note in found.notes)


# What is shown ---------------------------------------------------------------------------------------------------


@pytest.fixture
def shown(honest: Path) -> Comparison:
    evil = text_of(HONEST[0]).replace("lines = []", "lines = [] # <script>alert(1)</script>\x1b[31m", 1)
    hand_in(honest, "=cmd()", filled(evil))
    return compared(honest)


def test_the_page_runs_nothing_and_accuses_nobody(shown: Comparison) -> None:
    text = page(shown)
    assert "default-src &#x27;none&#x27;" in text or "default-src 'none'" in text
    assert "<script" not in text and "&lt;script&gt;" in text
    assert "This accuses nobody" in html.unescape(text) and not re.search(r"plagiar|cheat|guilt", text)
    assert not re.search(r"https?://|src=|@import|url\(", text)


def test_the_lines_stand_side_by_side(shown: Comparison) -> None:
    text = side_by_side(shown.pairs)
    assert "\x1b" not in text
    line = next(line for line in text.splitlines() if "cur_line.append" in line)
    assert line.count("cur_line.append") == 2 and " | " in line


def test_the_csv_holds_no_formula(shown: Comparison) -> None:
    rows = list(csv.reader(io.StringIO(as_csv(shown))))
    assert rows[1][0] == "'=cmd()" and rows[1][1] == "student0"
    assert len(rows) == len(shown.pairs) + 1


def test_the_command(honest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hand_in(honest, "copy", filled(disguised(text_of(HONEST[4]))))
    assert main(["similar", EXERCISE, "--course", str(honest), "--lines"]) == 0
    text = capsys.readouterr().out
    assert SAYING in text and "student4" in text
    assert {path.name for path in (honest / "similar").iterdir()} == {f"{EXERCISE}.html", f"{EXERCISE}.csv"}
    assert main(["similar", EXERCISE, "--course", str(honest), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [(pair["one"], pair["other"]) for pair in data["pairs"]] == [("copy", "student4")]
    assert main(["similar", "99-nothing", "--course", str(honest)]) == 2
    assert "0 submissions of 99-nothing" in capsys.readouterr().err
