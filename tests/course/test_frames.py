"""Frames: the pictures that move of notebooks 08, 09 and 16 are one mechanism, and show what the engine's loops do."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

import minitorch as mt
from minitorch import course
from minitorch.compiler.scheduling.rewrites import distribute, lift, reorder, split
from minitorch_course.animations.frames import Frames
from tools.clone import ROOT

SIZE = 8
INTERCHANGED = [lift("total0", "i1"), distribute("i1"), reorder("j0", "i1")]
TILED = [
    split("i0", 4, "it", "r"),
    split("i1", 4, "jt", "c"),
    reorder("it", "jt", "r", "c"),
    lift("total0", "r", "c"),
    distribute("r", "c"),
    reorder("j0", "r", "c"),
]


def steps():
    """Three orders, and each step of the schedule that the engine chooses for avx2."""
    a, b = mt.ones(SIZE, SIZE), mt.ones(SIZE, SIZE)
    product = mt.jit(lambda a, b: a @ b)
    (kernel,) = product.ledger(a, b).kernels
    found = {"plain": kernel.steps[0]}
    for name, schedule in (("interchanged", INTERCHANGED), ("tiled", TILED)):
        found[name] = product.with_schedule(kernel, schedule).ledger(a, b).kernels[0].steps[-1]
    (engines,) = product.ledger(a, b).for_target("avx2").kernels
    return found | {f"step {step.number}": step for step in engines.steps}


STEPS = steps()
THREE = {name: STEPS[name] for name in ("plain", "interchanged", "tiled")}
STATES = [([1.0, 2.0], 2.0, 0.0, 1.37, [0.5]), ([3.0, 1.0], 3.0, 0.37, 1.64, [1.2])]
FRAMES: dict[str, Any] = {
    "ring": course.rounds([[(0, 1, 0, "add")], [(1, 0, 0, "copy")]], 2),
    "traversal": course.traversal(THREE),
    "sweep": course.sweep(STATES),
}


@pytest.mark.parametrize("name", STEPS)
def test_every_order_makes_the_same_multiply_adds_and_keeps_the_order_of_each_sum(name):
    visits = course.traversal({name: STEPS[name]}).orders[name].visits
    places = [(a // SIZE, b % SIZE, a % SIZE, b // SIZE, c) for a, b, c in visits]
    assert len(set(places)) == len(places) == SIZE**3
    assert all(inner == other and c == SIZE * row + column for row, column, inner, other, c in places)
    of_one = [inner for *_, inner, _, c in places if c == SIZE + 1]
    assert of_one == sorted(of_one)


@pytest.mark.parametrize("name", THREE)
@pytest.mark.parametrize("line", [1, 2, 4, 8])
def test_a_cache_fetches_each_line_at_least_once_and_a_large_one_not_twice(name, line):
    least = 2 * SIZE * SIZE // line
    fetched = [course.traversal({name: STEPS[name]}, lines, line).fetched[name] for lines in (1, 2, 8, 16, least)]
    assert fetched == sorted(fetched, reverse=True) and fetched[-1] == least
    assert all(len(held) <= 8 for held in course.traversal({name: STEPS[name]}, 8, line).orders[name].held)


def test_tiles_fetch_fewer_lines_than_rows_and_rows_fewer_than_columns():
    assert FRAMES["traversal"].fetched == {"plain": 528, "interchanged": 144, "tiled": 64}


def test_a_traversal_is_of_one_product():
    (kernel,) = mt.jit(lambda x: x.exp()).ledger(mt.ones(8, 8)).kernels
    with pytest.raises(ValueError, match=r"'exp'\] are not of kernels for one product"):
        course.traversal({"exp": kernel.steps[0]})
    with pytest.raises(ValueError, match="and a line has 3"):
        course.traversal(THREE, line=3)
    with pytest.raises(ValueError, match="at least one block"):
        course.sweep([])


@pytest.mark.parametrize("name", FRAMES)
def test_without_widgets_there_is_a_still_picture_and_a_text(name):
    shown = FRAMES[name]
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/plain"} and bundle["text/plain"] == str(shown)
    frames: Frames = shown.frames
    root = ET.fromstring(bundle["image/svg+xml"])
    assert root[0].text == str(shown)  # a text alternative
    assert sum(child.tag.endswith("}g") for child in root) == len(frames.still)
    for number in range(frames.count):
        ET.fromstring(frames.svg(number))


@pytest.mark.parametrize("name", FRAMES)
def test_in_an_open_notebook_the_slider_changes_the_picture(name, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "/somewhere/a.ipynb")
    frames = FRAMES[name].frames
    assert "application/vnd.jupyter.widget-view+json" in frames._repr_mimebundle_()
    controls, picture, side = frames.widget().children
    play, step = controls.children
    assert picture.value == frames.svg(0) and play.max == step.max == frames.count - 1
    step.value = play.max
    assert picture.value == frames.svg(play.max) != frames.svg(0) and frames.svg() in side.value


def test_no_graded_notebook_shows_frames_or_panels():
    for path in ROOT.glob("solutions/*/*.ipynb"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"course\.(panel|rounds|sweep|traversal)\(|ipywidgets|\.explore\(", text), path.name
