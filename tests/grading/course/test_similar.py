"""Comparing a class: copies are found whatever they are called, what everybody has is not, and no notebook ends it."""

from __future__ import annotations

import builtins
import csv
import heapq
import html
import io
import json
import keyword
import random
import re
import textwrap
import tokenize
from inspect import getsource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minitorch.__main__ import main
from minitorch.graph import Graph, topological_order
from minitorch_grading.grading.course.folders import Course
from minitorch_grading.grading.similar import (
    LARGEST,
    SAYING,
    Comparison,
    K,
    Piece,
    common_lines,
    compare,
    folded,
    party,
    similar,
    write,
)
from tests.grading.classes import EXERCISE, added, course, hand_in, notebook, sample

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
        if token.type == tokenize.NAME and text not in {*keyword.kwlist, *dir(builtins), "self"} and before != ".":
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


def test_what_a_third_of_a_small_class_has_counts(honest: Path) -> None:
    for number in range(10, 15):
        hand_in(honest, f"copy{number}", filled(disguised(text_of(textwrap.indent))))
    assert len(compared(honest).pairs) == 10, "five of fifteen, each with each"
    hand_in(honest, "copy15", filled(disguised(text_of(textwrap.indent))))
    assert compared(honest).pairs == [], "six of sixteen are more than a third"


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
    assert not lines or lines[-1] <= source.count("\n") + source.count("\r")


@pytest.mark.parametrize("function", HONEST, ids=lambda function: function.__name__)
def test_disguise_changes_no_token(function: object) -> None:
    source = text_of(function)
    assert [token for token, _ in folded(source)] == [token for token, _ in folded(disguised(source))]


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 2**31))
def test_a_run_of_k_tokens_in_common_is_found_wherever_it_is(before: int, after: int, seed: int) -> None:
    run, *around = (random.Random(f"{seed} {part}") for part in range(3))
    common = ";".join(f"x.a{run.randrange(10**6)}" for _ in range(K // 3))
    texts = [
        ";".join([*(f"y.b{rng.randrange(10**6)}" for _ in range(count)), common])
        for rng, count in zip(around, (before, after), strict=True)
    ]
    one, other = (party("", [Piece("cell", text)]) for text in texts)
    assert one.runs.keys() & other.runs.keys()


def test_no_fingerprint_goes_over_the_end_of_a_cell() -> None:
    source = text_of(HONEST[0]).splitlines()
    halves = [Piece("cell", "\n".join(source[:9])), Piece("cell", "\n".join(source[9:]))]
    one, other = party("", halves), party("", halves[::-1])
    assert one.runs and one.runs.keys() == other.runs.keys()
    assert not party("", [Piece("cell", "a b c")] * 20).runs


def test_each_line_and_token_of_a_pair_counts_once() -> None:
    """A run of tokens that occurs twice cuts the match in two, and these overlap."""
    twice = "a = b[0] + c(1) - d\n"
    source = f"{twice}for x in y:\n    print(x)\n{twice}while z:\n    z -= 1\n    assert z not in y, z.w\n"
    one, other = (party(name, [Piece("cell 1", source)]) for name in "ab")
    ((pair,), _) = compare([one, other], (), 1.0, 0.1, 1)
    assert len(pair.matches) > 1, "the case that is meant"
    assert pair.lines == source.count("\n") and pair.tokens == len(one.at)


def test_what_is_left_out_is_said_and_equal_notebooks_are_named(honest: Path) -> None:
    assert "byte for byte" not in str(compared(honest))
    for name in ("a", "b", "c", "d", "e"):
        hand_in(honest, f"copy-{name}", filled(text_of(HONEST[4])))
    found = compared(honest)
    assert "The same notebook, byte for byte: copy-a, copy-b, copy-c, copy-d, copy-e" in str(found)
    assert found.common >= 5 and f"in the work of {found.common} of {found.students}; `--common 100`" in str(found)


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
    assert write(found, honest / "similar")[0].stat().st_size < 1_000_000


def test_as_much_is_read_as_a_person_writes(honest: Path) -> None:
    hand_in(honest, "long", notebook([*sample(), *(added("x = 1\n" * (LARGEST // 10)) for _ in range(3))]))
    assert [note for note in compared(honest).notes if str(LARGEST) in note] == [
        f"long: only the first {LARGEST} characters were compared"
    ]


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
def shown(honest: Path) -> tuple[Comparison, str, list[list[str]]]:
    """A comparison, its page, and the rows of its CSV."""
    evil = text_of(HONEST[0]).replace("lines = []", "lines = [] # <script>alert(1)</script>\x1b[31m", 1)
    hand_in(honest, "copy", filled(evil))
    found = compared(honest)
    page, sheet = write(found, honest / "similar")
    return found, page.read_text(), list(csv.reader(io.StringIO(sheet.read_text())))


def test_the_page_runs_nothing_and_accuses_nobody(shown: tuple[Comparison, str, list[list[str]]]) -> None:
    _, text, _ = shown
    assert "default-src 'none'" in text
    assert "<script" not in text and "&lt;script&gt;" in text and "\x1b" not in text
    assert "This accuses nobody" in html.unescape(text) and not re.search(r"plagiar|cheat|guilt", text)
    assert not re.search(r"https?://|src=|@import|url\(", text)


def test_lines_and_rows_say_the_same(shown: tuple[Comparison, str, list[list[str]]]) -> None:
    found, _, rows = shown
    assert "\x1b" not in common_lines(found.pairs) and "cur_line.append" in common_lines(found.pairs)
    assert [row[:2] for row in rows] == [["one", "other"], ["copy", "student0"]]


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
    assert "99-nothing" in capsys.readouterr().err
