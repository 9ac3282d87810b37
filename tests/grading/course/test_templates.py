"""The pages of grading: nothing of a submission, a name or a reason becomes HTML or steers a browser."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup

from minitorch_grading.grading import pages
from minitorch_grading.grading.course.report import Row
from minitorch_grading.grading.exporting.export import exported_page
from minitorch_grading.grading.incidents import Incident
from minitorch_grading.grading.overview import Overview
from minitorch_grading.grading.overview import page as report
from minitorch_grading.grading.results import Graded, Result
from minitorch_grading.grading.similar import Comparison, write
from minitorch_grading.grading.submission.autograded import verbatim
from minitorch_grading.grading.submission.feedback import notebook
from minitorch_grading.grading.submission.feedback import page as feedback

EVIL = "</td></pre></style>--><script src='https://example.org/'>\"'&{{ 7*7 }}\x1b[2J\x00\u202e"
STEERING = set("\x1b\x00\u202e")


def hostile(kind: Any) -> Any:
    """An object of a type in which every text is evil."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind is Row:
        return Row(EVIL, EVIL, Result(), {})
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{each.name: hostile(hints[each.name]) for each in dataclasses.fields(kind)})  # type: ignore[operator]
    if origin is tuple:
        return tuple(map(hostile, parts[:1] * 2 if ... in parts else parts))
    if origin in (list, Sequence):
        return [hostile(parts[0])]
    if origin in (dict, Mapping):
        return {hostile(parts[0]): hostile(parts[1])}
    if origin in (types.UnionType, typing.Union):
        return hostile(parts[0])
    return {str: EVIL, int: 3, float: 2.5, bool: True, type(None): None}.get(kind, EVIL)


def of_report(_: Path) -> str:
    found = hostile(Overview)
    changes = tuple(
        dataclasses.replace(each, changes=(dataclasses.replace(each.changes[0], field="person"),))
        for each in found.changes
    )
    return report(dataclasses.replace(found, changes=changes))


def of_similar(folder: Path) -> str:
    return write(dataclasses.replace(hostile(Comparison), exercise="x"), folder)[0].read_text()


def of_feedback(_: Path) -> str:
    outputs = [
        {"output_type": "display_data", "data": {"text/html": EVIL, "text/plain": EVIL, "image/svg+xml": EVIL}},
        {"output_type": "display_data", "data": {"image/png": f"'>{EVIL}"}},
        {"output_type": "stream", "name": "stdout", "text": EVIL},
        {"output_type": "error", "traceback": [EVIL]},
    ]
    about = {"nbgrader": {"grade_id": EVIL}}
    cells = [
        {"cell_type": "code", "metadata": about, "source": EVIL, "outputs": outputs},
        {"cell_type": "markdown", "metadata": {}, "source": verbatim(EVIL)},
        {"cell_type": "markdown", "metadata": {}, "source": EVIL},
    ]
    part = {"name": EVIL, "points": 0, "of": 1, "reason": f"{EVIL}\n{EVIL}"}
    counted = {**part, "reason": "", "count": {"unit": EVIL, "yours": 2, "best": 1, "fraction": 0.5}}
    graded = [
        Graded(EVIL, 0, 10, f"{EVIL}\n{EVIL}"),
        Graded(EVIL, 0, 10, EVIL, {"task": EVIL, "parts": [part, counted]}, True),
    ]
    result = Result(graded, [Incident("outside", EVIL, EVIL)], {"cells": cells})
    shown = dataclasses.replace(result, shown=notebook(result))
    return feedback(Row(EVIL, EVIL, shown, comments={EVIL: EVIL}))


PAGES: dict[str, Callable[[Path], str]] = {"report": of_report, "similar": of_similar, "feedback": of_feedback}
TEMPLATES = Path(pages.__file__).parent


class Tags(HTMLParser):
    """The tags of a page, what it would ask for, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes.update(attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", PAGES)
def test_nothing_that_a_page_is_given_becomes_html(name: str, tmp_path: Path) -> None:
    page = PAGES[name](tmp_path)
    tags = Tags(page)
    assert not tags.names & {"script", "img", "link", "iframe", "object", "svg", "form"}
    names = {attribute for attribute, _ in tags.attributes}
    assert names <= {"charset", "class", "content", "href", "http-equiv", "id", "lang", "name", "style"}
    assert all(str(value).startswith("#pair") for attribute, value in tags.attributes if attribute == "href")
    assert not STEERING & set(page) and "{{ 7*7 }}" in tags.text and "\\x1b" in page
    assert tags.text.count("<script src='https://example.org/'>") > 5, "it is there, as text"
    assert "default-src 'none'" in page and page.endswith("</body></html>\n")


def test_every_template_is_escaped_and_tested() -> None:
    assert pages.environment().autoescape is True
    sources = {path.stem: path.read_text() for path in TEMPLATES.glob("*.html")}
    assert sources.keys() - {"base", "notebook"} == PAGES.keys()
    for text in sources.values():
        assert "|safe" not in text.replace(" ", "") and "autoescape" not in text


def test_what_is_added_to_a_page_is_escaped_too(tmp_path: Path) -> None:
    from minitorch_grading.grading.course.folders import Course
    from minitorch_grading.grading.course.report import Row
    from minitorch_grading.grading.enrolment.deadlines import Penalty

    class Said(Penalty):
        def __str__(self) -> str:
            return EVIL

    course = Course(tmp_path / "submitted", tmp_path / "exercises")
    path = course.feedback("ana", "x")
    path.parent.mkdir(parents=True)
    path.write_text(feedback(Row("ana", "x", Result())))
    page = exported_page(course, Row("ana", "x", Result(), penalty=Said(points=1.0, days=2)), ())
    assert page and "script" not in Tags(page).names and Markup.escape("<script src=") in page
