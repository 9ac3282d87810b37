"""The memory hierarchy: what is measured is what its name says, and the picture shows it."""

from __future__ import annotations

import io
import os
import struct
import sys
from dataclasses import replace

import numpy as np
import pytest

import minitorch as mt
from minitorch.compiler.codegen.host import host
from minitorch.compiler.runtime import memory_pool
from minitorch.compiler.runtime.memory_pool import address
from minitorch.compiler.target import TARGETS
from minitorch_inspect.plots import hierarchy as plots
from minitorch_inspect.plots.plot import MISSING
from minitorch_profiler import hierarchy
from minitorch_profiler.hierarchy import LINE, Level

LEVELS = (
    Level("registers", 512, 5e11, 0.0, 0),
    Level("L1", 32 << 10, 1.5e11, 1.4e-9, 16 << 10),
    Level("L2", 1 << 20, 8e10, 5e-9, 96 << 10),
    Level("L3", 32 << 20, 7e10, 2e-8, 3 << 20),
    Level("memory", 24 << 30, 3e10, 1.7e-7, 128 << 20),
)


@pytest.fixture
def measured(monkeypatch):
    """A machine of which everything is known."""
    monkeypatch.setattr(hierarchy, "_known", [LEVELS])
    return LEVELS


@pytest.mark.parametrize("size", [LINE, 3 * LINE, 1 << 12, 96 << 10])
def test_pointers_make_one_cycle_through_all_lines(size):
    words = hierarchy._aligned(size)
    hierarchy.link(words)
    place, seen = address(words), set()
    while place not in seen:
        seen.add(place)
        place = int(words[(place - address(words)) // words.itemsize])
    assert seen == set(range(address(words), address(words) + size, LINE))


def test_the_chase_follows_as_many_pointers_as_it_counts():
    words = hierarchy._aligned(64 * LINE)
    hierarchy.link(words)
    chase, table = hierarchy._function(hierarchy.CHASE), np.array([address(words)], np.int64)
    for hops in (1, 5, 58):
        expected = table[0]
        for _ in range(hops):
            expected = words[(expected - address(words)) // words.itemsize]
        chase(address(table), 0, hops)
        assert table[0] == expected
    assert table[0] == address(words)  # 64 hops: once around


@pytest.mark.parametrize("size", [1 << 10, 16 << 10, 3 << 20])
def test_an_array_is_read_to_its_end(size, monkeypatch):
    words = hierarchy._aligned(hierarchy._whole(size))
    words[:] = np.random.default_rng(0).integers(1 << 60, size=len(words))
    assert hierarchy._bandwidth(words, host(), 0) > 0
    text = hierarchy.read_text
    monkeypatch.setattr(hierarchy, "read_text", lambda target: text(target).replace("i64 %s1, %steps", "i64 %s1, 0"))
    if size > 1 << 10:
        with pytest.raises(RuntimeError, match="does not read all"):
            hierarchy._bandwidth(words, host(), 0)


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda each: each.name)
def test_an_array_is_whole_steps_of_the_kernel(target):
    for _, _, size in hierarchy.levels_of(target.caches):
        assert size % (hierarchy.ACCUMULATORS * target.vector_bytes) == 0 and size % LINE == 0


@pytest.mark.parametrize("caches", [each.caches for each in TARGETS.values()] + [(32 << 10, 32 << 10, 1 << 30)])
def test_each_level_is_measured_with_an_array_that_the_one_before_cannot_hold(caches):
    *found, (name, _, beyond) = hierarchy.levels_of(caches)
    before = 0
    for _, size, array in found:
        assert before < array < size
        before = size
    assert name == "memory" and min(hierarchy.MOST, 4 * before) <= beyond <= hierarchy.MOST


def test_measuring_finds_every_level():
    found = hierarchy.measure(seconds=0)
    assert found[0].name == "registers" and found[-1].name == "memory"
    assert found[0].bytes == host().vector_registers * host().vector_bytes
    assert all(level.bandwidth > 0 for level in found) and all(level.latency > 0 for level in found[1:])


def test_it_is_measured_once_and_better_numbers_are_kept(monkeypatch):
    rates = iter([1e9, 3e9, 2e9, 1e9])
    monkeypatch.setattr(hierarchy, "_known", [])
    monkeypatch.setattr(hierarchy, "measure", lambda: (Level("memory", 1, next(rates), 1.0, 1),))
    assert [hierarchy.hierarchy()[0].bandwidth for _ in range(2)] == [3e9, 3e9]
    assert hierarchy.hierarchy(again=True)[0].bandwidth == 3e9
    assert next(rates, None) is None


def test_a_container_may_have_less_memory_than_the_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sysconf", lambda name: 4096, raising=False)
    for limit, expected in (("1000", 1000), ("max", 4096**2), ("", 4096**2)):
        (tmp_path / "memory.max").write_text(limit)
        monkeypatch.setattr(memory_pool, "Path", lambda _: tmp_path / "memory.max")
        assert memory_pool.main_memory() == expected


def test_an_array_stands_at_the_smallest_level_that_holds_it(measured):
    arrays = {
        "a row": mt.zeros(1024),
        "exact": 32 << 10,
        "more": (32 << 10) + 1,
        "large": np.zeros(5 << 20),
        "huge": 1e15,
    }
    plot = mt.inspect.plot_hierarchy(arrays)
    held = {row.level.name: [each.rsplit(" (")[0] for each in row.holds] for row in plot.rows}
    assert held == {"registers": [], "L1": ["a row", "exact"], "L2": ["more"], "L3": [], "memory": ["large", "huge"]}
    assert all(name in plot.text for name in arrays)


def test_it_is_a_picture_and_a_text(measured, monkeypatch):
    for levels in (LEVELS, (*LEVELS[:2], LEVELS[-1]), (*LEVELS[:-1], Level("memory", 0, 3e10, 1e-7, 1))):
        hierarchy._known[0] = levels
        plot = mt.inspect.plot_hierarchy({"x": 1 << 20})
        width, height = struct.unpack(">II", plot.png[16:24])
        assert width == 1800 and 400 < height < 1000
        assert [line.split()[0] for line in plot.text.splitlines()[1 : len(levels) + 1]] == [
            each.name for each in levels
        ]
        assert max(map(len, str(plot).splitlines())) < 160
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    hierarchy._known[0] = LEVELS
    data, _ = mt.inspect.plot_hierarchy()._repr_mimebundle_()
    assert set(data) == {"text/plain"} and MISSING in data["text/plain"] and "170 ns" in data["text/plain"]


def test_labels_end_before_the_next_axis(monkeypatch):
    """Also a long one behind the longest bar."""
    fast = (replace(LEVELS[0], bandwidth=1.415e12), *LEVELS[1:])
    monkeypatch.setattr(hierarchy, "_known", [fast])
    figure = mt.inspect.plot_hierarchy().figure
    figure.savefig(io.BytesIO(), format="png")  # which lays it out
    _, rates, waits = figure.axes
    for axes, end in ((rates, waits.get_window_extent().x0), (waits, figure.bbox.x1)):
        assert all(text.get_window_extent().x1 < end - 0.05 * axes.bbox.width for text in axes.texts)
    assert "1415 GB/s" in {text.get_text() for text in rates.texts}


def test_numbers_are_those_of_the_levels(measured):
    lines = mt.inspect.plot_hierarchy().text.splitlines()
    assert lines[1].split()[:6] == ["registers", "512", "B", "500", "GB/s", "-"]
    assert lines[4].split()[:7] == ["L3", "32", "MB", "70", "GB/s", "20", "ns"]
    assert plots.size_of(LEVELS[4]) == "24 GB"
