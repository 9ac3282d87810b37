"""Results that a cell ends with: a short text, and HTML with the same words, for a training step of a CNN."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

import minitorch as mt
from minitorch import course, nn
from minitorch.nn import functional as F
from minitorch.tables import MOST_LINES, Table, Tabular


def small_cnn() -> nn.Sequential:
    convolution = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)
    return nn.Sequential(*convolution, nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))


@pytest.fixture(scope="module")
def results() -> list[Any]:
    """One of each kind, and those of the course that have a text alone."""
    model = small_cnn()
    optimiser = mt.optim.Adam(model.parameters(), lr=1e-3)

    def train(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        loss = F.cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss

    step, args = mt.jit(train), (mt.rand(32, 1, 8, 8), mt.randint(0, 10, (32,)))
    with mt.profile() as compiled:
        step(*args)
    with mt.profile() as eager:
        train(*args)
    ledger = step.ledger(*args)
    named = mt.jit(lambda x: (x @ x).relu())  # a name that is no HTML
    square = mt.ones(8, 8)
    found = [ledger, ledger.kernels[0], compiled, eager, mt.machine(), step.stages(*args), step.values(*args)]
    found += [step.cost(*args), step.break_even(*args), step.ablate(*args, seconds=0.01), step.explain()]
    found += [named.ablate(square, seconds=0.01), named.ledger(square).kernels[0].steps]
    return [*found, course.stacks(), mt.quantization.report(model.eval(), [args[0]])]


def words(page: str) -> list[str]:
    """The text of HTML, word by word; a tag parts words."""
    return unescape(re.sub(r"<[^>]*>", " ", page)).split()


def test_a_result_is_short_without_print_and_whole_as_html(results: list[Any]) -> None:
    for result in results:
        shown, printed = repr(result).splitlines(), str(result).splitlines()
        kind = type(result)
        assert len(shown) <= MOST_LINES and max(map(len, shown)) <= 150, kind
        assert shown == printed or (len(printed) > MOST_LINES and shown[:-1] == printed[: MOST_LINES - 1]), kind
        if isinstance(result, Tabular):
            page = result._repr_html_()
            assert words(page) == str(result).split(), kind
            assert "color" not in page and "background" not in page, "the theme's"


def test_every_kind_of_result_is_among_them(results: list[Any]) -> None:
    kinds = list(Tabular.__subclasses__())
    assert [kind for kind in kinds if not any(isinstance(each, kind) for each in results)] == []


def test_what_is_too_long_is_cut_and_said_to_be(results: list[Any]) -> None:
    (values,) = [each for each in results if type(each).__name__ == "Values"]
    more = len(str(values).splitlines()) - MOST_LINES + 1
    assert repr(values).endswith(f"and {more} more lines, which print shows")


def test_numbers_are_to_the_right_and_names_in_a_fixed_width() -> None:
    page = Table("{:<4}{:>4}", ["a <b> heading", ("<i>", " 2")], ("name", "MB")).html
    assert "<th colspan='2' style='text-align:left'>a &lt;b&gt; heading</th>" in page
    name, number = re.findall(r"<td style='([^']*)'>", page)
    assert "monospace" in name and "text-align:left" in name
    assert "monospace" not in number and "text-align:right" in number
