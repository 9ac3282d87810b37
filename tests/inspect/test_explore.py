"""`explore()`: a value keeps its place through all passes, and the browser is told what is true."""

from __future__ import annotations

import json
import re
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.errors import GraphError
from minitorch.graph import Graph
from minitorch.graph.values import is_splat
from minitorch.passes import (
    ALGEBRA,
    COMMON_SUBEXPRESSIONS,
    CONSTANT_FOLDING,
    DEFAULT,
    LOWERING,
    Pass,
    Stage,
    run_pipeline,
)
from minitorch_inspect.drawings.subjects import setting_of
from minitorch_inspect.exploring import boxes, explorer
from minitorch_inspect.exploring.correspondence import ADDED, REMOVED, REWRITTEN, Snapshot, follow
from minitorch_inspect.exploring.explorer import MARK, STATIC, payload
from minitorch_inspect.exploring.journey import journey
from tests.passes.test_passes import rounds
from tests.support.graphs import arrays_for, evaluate_graph, graphs, same_bits


def through(graph: Graph, *passes: Pass) -> list[Snapshot]:
    run = run_pipeline(graph, passes)
    return follow(run.initial, run)


def changes(text: str, *passes: Pass) -> list[dict[str, str]]:
    """What each pass did, by the name that the listing before (or, for what was added, after it) has for the node."""
    snapshots = through(Graph.parse(text), *passes)
    found = []
    for before, now in pairwise(snapshots):
        names = {place: node.primitive.name for each in (now, before) for node, place in each.places.items()}
        found.append({names[place]: change for place, change in now.changes.items()})
    return found


# --- places --------------------------------------------------------------------------------------------------


@given(graphs(max_nodes=12), st.integers(0, 99))
@settings(max_examples=100)
def test_a_place_holds_the_same_value_after_every_pass(graph, seed):
    if rounds(graph):  # two laws are better than what they replace
        return
    arrays = arrays_for(graph, seed)
    values: dict[int, np.ndarray] = {}
    for snapshot in through(graph, *DEFAULT):
        nodes = [node for node in snapshot.places if node in set(snapshot.graph.nodes)]
        every = Graph(snapshot.graph.inputs, nodes, snapshot.graph.nodes, verify=False)
        for node, value in zip(nodes, evaluate_graph(every, arrays), strict=True):
            assert same_bits(values.setdefault(snapshot.places[node], value), value), f"{node} in\n{snapshot.graph}"


@given(graphs(max_nodes=12))
@settings(max_examples=50)
def test_every_node_has_one_place_and_what_is_still_there_keeps_its_own(graph):
    snapshots = [*through(graph, *DEFAULT)]
    for before, now in pairwise(snapshots):
        everything = [node for node in (*now.graph.inputs, *now.graph.nodes) if not is_splat(node)]
        assert sorted(now.places.values()) == sorted(set(now.places.values()))
        assert list(now.places) == everything
        assert all(now.places[node] == place for node, place in before.places.items() if node in now.places)
        gone = set(before.places.values()) - set(now.places.values())
        assert gone == {place for place, change in now.changes.items() if change == REMOVED}


def test_what_is_copied_for_a_change_further_up_is_not_rewritten():
    text = "graph(x: f32[2]): %0 = mul(x, 1.0) %1 = neg(%0) %2 = exp(%1) %3 = sin(%2) return %3"
    assert changes(text, ALGEBRA) == [{"mul": REMOVED, "neg": REWRITTEN}]


def test_an_operation_that_replaces_another_stands_in_its_place():
    before, after = through(
        Graph.parse("graph(x: f32[2], y: f32[2]): %0 = neg(y) %1 = add(x, %0) %2 = exp(%1) return %2"),
        ALGEBRA,
    )
    (add, place), (sub, now) = (
        next((node, place) for node, place in each.places.items() if node.primitive.name == name)
        for each, name in ((before, "add"), (after, "sub"))
    )
    assert place == now and after.changes[now] == REWRITTEN and add.spec == sub.spec


def test_of_two_that_are_one_the_second_goes_and_says_what_is_read_instead():
    _, now = through(
        Graph.parse("graph(x: f32[2]): %0 = exp(x) %1 = exp(x) %2 = add(%0, %1) return %2"), COMMON_SUBEXPRESSIONS
    )
    (gone,) = (place for place, change in now.changes.items() if change == REMOVED)
    assert now.instead[gone] is now.graph.nodes[0]


def test_a_node_that_becomes_a_number_is_read_as_that_number():
    text = "graph(x: f32[2]): %0 = add(1.0:f32[2], 2.0:f32[2]) %1 = mul(x, %0) return %1"
    _, now = through(Graph.parse(text), CONSTANT_FOLDING)
    (gone,) = (place for place, change in now.changes.items() if change == REMOVED)
    assert is_splat(now.instead[gone]) and now.instead[gone].params["value"] == 3.0


def test_a_pass_of_ones_own_may_add_and_may_refuse_to_be_asked():
    def negated_twice(graph: Graph) -> Graph:
        if len(graph.outputs) > 1:
            raise GraphError("MT601", "only for graphs with one output")
        return Graph.parse("graph(x: f32[2]): %0 = exp(x) %1 = neg(%0) %2 = neg(%1) return %2").substitute({})

    graph = Graph.parse("graph(x: f32[2]): %0 = exp(x) return %0")
    made = negated_twice(graph)
    made = Graph(graph.inputs, made.outputs, made.nodes, verify=False)
    _, now = follow(graph, [Stage(Pass("twice", negated_twice, ""), graph, made, 0.0)])
    assert sorted(now.changes.values()) == [ADDED, ADDED, ADDED, REMOVED]  # nothing was told, so nothing is claimed


@given(graphs(max_nodes=8))
@settings(max_examples=50)
def test_lowering_can_be_followed(graph):
    for now in through(graph, *LOWERING):
        assert len(set(now.places.values())) == len(now.places)


def test_a_convolution_stays_where_it_is_when_it_becomes_a_contraction():
    def layer(x, w, b):
        return F.relu(F.conv2d(x, w) + b)

    stages = mt.jit(layer).stages(mt.ones(2, 3, 8, 8), mt.ones(4, 3, 3, 3), mt.ones(4, 1, 1))
    first, *_, last = snapshots = follow(stages.initial, stages)
    places = [
        {node.primitive.name: place for node, place in each.places.items() if node.primitive.name != "reshape"}
        for each in (first, last)
    ]
    assert places[0]["dot"] == places[1]["contract"]
    (became,) = (each for each in snapshots if each.title == "contraction dimensions")
    assert became.changes[places[0]["dot"]] == REWRITTEN
    both = places[0].keys() & places[1].keys()
    assert "add" in both and all(places[0][name] == places[1][name] for name in both)


# --- what the browser is told -----------------------------------------------------------------------------------


def program(x, w):
    h = F.gelu(x @ w) * 1.0
    return h.softmax(1), h.sum(0)


def two_ways(x, w):
    y = x * 1.0 * w
    return y.sum(0), y.sum(1)


@pytest.fixture(scope="module", params=[program, two_ways], ids=lambda function: function.__name__)
def stages(request):
    x, w = {program: ((8, 4), (4, 4)), two_ways: ((300, 200), (300, 200))}[request.param]
    return mt.jit(request.param).stages(mt.ones(*x), mt.ones(*w))


@pytest.fixture(scope="module")
def told(stages):
    pytest.importorskip("pygraphviz", reason="the layout needs pygraphviz")
    return payload(journey(stages))


def items(told, group=0):
    return told["groups"][group]["items"]


def form(told, position):
    return told["forms"][position["form"]]


def test_positions_are_the_passes_that_did_something_then_the_kernels(told, stages):
    titles = [position["title"] for position in told["positions"]]
    kernels = [kernel.name for kernel in stages.kernels]
    working = [stage.name for stage in stages if str(stage.after) != str(stage.before)]
    assert titles[0] == "traced" and titles[1 : 1 + len(working)] == working
    assert titles[-len(kernels) - 1 :] == ["kernels", *kernels]
    assert [position["source"] for position in told["positions"][-len(kernels) :]] == [
        kernel.source for kernel in stages.kernels
    ]
    assert "algebra" in titles


def test_a_place_has_one_box_for_all_positions(told):
    assert all(set(item) == {"place", "x", "y", "w", "h"} for item in items(told)) and len(told["groups"]) == 1
    assert [item["place"] for item in items(told)] == list(range(len(items(told))))
    for position in told["positions"]:
        marks, edges = form(told, position)["marks"], form(told, position)["edges"]
        assert len(marks) == len(items(told))
        assert len(edges) == told["edges"] == len(told["groups"][0]["edges"])
        assert all(mark is None or 0 <= mark < len(told["marks"]) for mark in marks)


def test_boxes_do_not_overlap(told):
    for group in told["groups"]:
        for number, one in enumerate(group["items"]):
            for other in group["items"][:number]:
                apart = abs(one["x"] - other["x"]) * 2 >= one["w"] + other["w"] - 0.1
                assert apart or abs(one["y"] - other["y"]) * 2 >= one["h"] + other["h"] - 0.1


def test_what_a_pass_removed_is_seen_once_more_and_then_no_longer(told):
    positions = [
        [mark if mark is None else told["marks"][mark] for mark in form(told, each)["marks"]]
        for each in told["positions"]
    ]
    removed = [
        (number, place)
        for number, marks in enumerate(positions)
        for place, mark in enumerate(marks)
        if mark and mark["change"] == REMOVED
    ]
    assert removed
    for number, place in removed:
        assert positions[number - 1][place]["change"] != REMOVED
        assert all(marks[place] is None for marks in positions[number + 1 :])


def test_nodes_of_a_kernel_lie_in_its_frame_and_no_others(told):
    position = next(each for each in told["positions"] if each["title"] == "kernels")
    for place, mark in zip(items(told), form(told, position)["marks"], strict=True):
        if mark is None:
            continue
        inside = [
            number
            for number, frame in enumerate(told["kernels"])
            if abs(place["x"] - frame["x"]) * 2 < frame["w"] and abs(place["y"] - frame["y"]) * 2 < frame["h"]
        ]
        own = told["marks"][mark]["kernel"]
        assert inside == ([] if own is None else [own])


def test_details_say_what_there_is_to_know(told):
    titles = [mark["title"] for mark in told["marks"] if mark["label"].startswith("reduce_sum")]
    assert titles
    for title in titles:
        for wanted in ("shape: ", "dtype: float32", "FLOPs: ", "bytes: ", "line: test_explore.py:"):
            assert wanted in title, title


def test_it_is_plain_data_and_the_same_every_time(told, stages):
    assert json.loads(json.dumps(told)) == told
    assert payload(journey(stages)) == told
    assert all(set(mark) == set(MARK) for mark in told["marks"])


def test_without_kernels_it_ends_with_the_passes(stages):
    stops = journey(stages, fused=False)
    assert stops[-1].title == "algebra" and stops[-1].kernel is None


def test_what_several_kernels_compute_is_drawn_in_each():
    stages = mt.jit(two_ways).stages(mt.ones(300, 200), mt.ones(300, 200))
    stop = next(stop for stop in journey(stages) if stop.title == "kernels")
    homes = [mark.cluster for mark in stop.drawing.marks if stop.labels.get(mark.id) == "mul"]
    assert homes == ["k0", "k1"]
    assert len({mark.id for mark in stop.drawing.marks}) == len(stop.drawing.marks)


def test_a_training_step_keeps_parameters_and_their_updates_apart():
    layer = mt.nn.Linear(4, 3)
    optimizer = mt.optim.SGD(layer.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(layer(x), y)
        loss.backward()
        optimizer.step()
        return loss

    pytest.importorskip("pygraphviz", reason="the layout needs pygraphviz")
    widget = mt.jit(step).stages(mt.ones(8, 4), mt.zeros(8, dtype=mt.int64)).explore()
    assert {"input", "parameter", "update", "output"} <= {mark["kind"] for mark in widget.data["marks"]}


def test_a_function_is_explored_as_its_stages_are():
    pytest.importorskip("pygraphviz", reason="the layout needs pygraphviz")
    f = mt.jit(lambda x, n: (x * n + 2).sum(1))
    x = mt.ones(4, 8)
    assert f.explore(x, 1).data == f.stages(x, 1).explore().data
    assert len(f.explore(x, 1, fused=False).data["positions"]) < len(f.explore(x, 1).data["positions"])


def test_what_cannot_be_explored_is_told_what_can():
    with pytest.raises(TypeError, match=r"f\.explore\(x\).*not function; trace a plain function first: mt\.jit\(f\)"):
        mt.inspect.explore(lambda x: x, mt.ones(2))
    with pytest.raises(TypeError, match=r"not Tensor$"):
        mt.inspect.explore(mt.ones(2))


def test_a_program_too_large_to_be_looked_at_is_refused_in_words(monkeypatch):
    def long(x):
        for _ in range(1100):
            x = x.exp()
        return x

    monkeypatch.setattr(explorer, "MOST_PLACES", 1000)
    with pytest.raises(ValueError, match="1,102 operations and values on its way; the slider shows 1,000 at most"):
        payload(journey(mt.jit(long, passes=()).stages(mt.ones(2)), fused=False))


# --- boxes that open -------------------------------------------------------------------------------------------


class Block(mt.nn.Module):
    """A layer with two parts, the second of which it calls twice."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.inner = mt.nn.LayerNorm(width), mt.nn.Linear(width, width)

    def forward(self, x):
        return x + self.inner(F.gelu(self.inner(self.norm(x))))


def training_step():
    model = mt.nn.Sequential(Block(4), Block(4), mt.nn.Linear(4, 3))
    optimiser = mt.optim.Adam(model.parameters(), lr=1e-3)

    @mt.jit
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss

    return step.stages(mt.ones(2, 4), mt.zeros(2, dtype=mt.int64))


@pytest.fixture(scope="module")
def large():
    pytest.importorskip("pygraphviz", reason="the layout needs pygraphviz")
    stages = training_step()
    return payload(journey(stages, setting=setting_of(stages.traced)))


def test_a_large_program_is_folded_into_modules_backward_pass_and_lines(large):
    labels = [large["groups"][item["group"]]["label"] for item in items(large) if "group" in item]
    assert len(items(large)) < 20
    assert {"Sequential", "backward pass", "optimiser.step()"} <= set(labels)
    every = {group["label"] for group in large["groups"]}
    assert {"0 · Block", "1 · Block", "0.norm · LayerNorm", "0.inner · Linear", "2 · Linear"} <= every
    assert any(label.startswith("new 2.weight") or "2.weight" in label for label in every), "boxes of the optimiser"


def test_every_place_lies_in_one_box_and_no_box_is_too_full(large):
    places = [item["place"] for group in large["groups"] for item in group["items"] if "place" in item]
    assert sorted(places) == list(range(len(large["forms"][0]["marks"])))
    inner = [item["group"] for group in large["groups"] for item in group["items"] if "group" in item]
    assert sorted(inner) == list(range(1, len(large["groups"])))
    for number, group in enumerate(large["groups"]):
        assert all(large["groups"][item["group"]]["parent"] == number for item in group["items"] if "group" in item)
        assert len(group["items"]) <= boxes.MOST_MEMBERS + 2 * boxes.MOST_PORTS
        assert group["size"][0] < boxes.WIDE + 100
    test_boxes_do_not_overlap(large)


def test_every_edge_is_seen_wherever_its_ends_are(large):
    """Where both ends are in a box, between them; in boxes further inside, between one end and a port."""
    groups = large["groups"]
    within = [[edge["of"] for edge in group["edges"]] for group in groups]
    seen = [set().union(*map(set, each)) if each else set() for each in within]
    assert set().union(*seen) == set(range(large["edges"]))
    for number, group in enumerate(groups):
        assert all(len(edge["points"]) % 6 == 4 for edge in group["edges"])  # Bézier curves and a tip
        if group["parent"] is None:
            assert not any("port" in item for item in group["items"])
            continue
        ports = {at for at, item in enumerate(group["items"]) if "port" in item}
        outward = {edge for way in group["edges"] if {way["tail"], way["head"]} & ports for edge in way["of"]}
        here = groups[group["parent"]]["items"].index(
            next(item for item in groups[group["parent"]]["items"] if item.get("group") == number)
        )
        outside = {
            edge for way in groups[group["parent"]]["edges"] if here in (way["tail"], way["head"]) for edge in way["of"]
        }
        assert outward == outside, "what enters or leaves a box is the same from inside and outside"


def test_boxes_count_what_is_in_them(large):
    def places(number):
        for item in items(large, number):
            yield from [item["place"]] if "place" in item else places(item["group"]) if "group" in item else []

    for position in large["positions"]:
        found = form(large, position)
        for number, box in enumerate(found["groups"]):
            marks = [large["marks"][found["marks"][at]] for at in places(number) if found["marks"][at] is not None]
            if number and marks:
                shown = large["boxes"][box]
                changed = {mark["change"] for mark in marks} - {"kept"}
                assert bool(changed) == bool(shown["badge"]) and (shown["change"] == "kept") == (not changed)
            elif number:
                assert box is None


def test_a_loop_is_a_box_of_its_body():
    pytest.importorskip("pygraphviz", reason="the layout needs pygraphviz")

    def f(xs, w):
        return mt.scan(lambda h, x: ((h @ w + x).tanh(), h.sum() * 1.0), mt.zeros(1, 2), xs)

    found = payload(journey(mt.jit(f).stages(mt.ones(9, 1, 2), mt.ones(2, 2))))
    assert [group["label"] for group in found["groups"]] == ["", "scan ×9"]
    inside = [item["place"] for item in found["groups"][1]["items"] if "place" in item]
    first, last = found["forms"][0]["marks"], found["forms"][-1]["marks"]
    labels = [found["marks"][first[place]]["label"] for place in inside if first[place] is not None]
    assert {label.partition("(")[0].partition(" = ")[2] or label for label in labels} >= {"dot", "carried", "scan ×9"}
    assert [found["marks"][last[place]]["label"] for place in inside if last[place] is not None][:1] == ["scan ×9"]
    seen = {(edge["tail"], edge["head"]) for edge in found["groups"][0]["edges"]}
    assert len(seen) == 4  # two arguments go into the box, and two results come out of it
    assert [position["title"] for position in found["positions"]][:2] == ["traced", "algebra"]


def test_kernels_share_what_is_seen():
    """Of many kernels, each a position, the marks are sent once."""
    pytest.importorskip("pygraphviz", reason="the layout needs pygraphviz")

    def program(x):
        for _ in range(90):
            x = (x @ x).relu()
        return x

    large = payload(journey(mt.jit(program).stages(mt.ones(64, 64))))
    kernels = [position for position in large["positions"] if position["selected"] is not None]
    assert len(large["groups"]) > 1 and len(kernels) > 5 and len({position["form"] for position in kernels}) == 1
    assert len(large["forms"]) < len(large["positions"]) - len(kernels) + 2
    chosen = {large["marks"][mark]["kernel"] for mark in form(large, kernels[0])["marks"] if mark is not None}
    assert {position["selected"] for position in kernels} <= chosen


def test_a_gradient_lies_where_its_operation_does(large):
    """Both passes have a box for each module."""
    (backward,) = (number for number, group in enumerate(large["groups"]) if group["label"] == "backward pass")

    def labels(number):
        for item in items(large, number):
            if "group" in item:
                yield large["groups"][item["group"]]["label"]
                yield from labels(item["group"])

    assert {"0 · Block", "1 · Block", "2 · Linear", "0.norm · LayerNorm"} <= set(labels(backward))


# --- without, and within ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["anywidget", "pygraphviz"])
def test_what_is_missing_is_named_with_its_package(name, stages, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{name}, which is not installed: pip install {name}"):
        stages.explore()


@pytest.mark.parametrize("path", sorted(filter(Path.is_file, STATIC.glob("*.*s"))), ids=lambda path: path.name)
def test_the_browser_is_sent_nowhere(path: Path):
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert re.findall(r"https?:|//\w+\.|@import|\bimport\b|url\((?!#)", text.replace("// ", "")) == []


def test_the_module_is_small():
    assert {path.name for path in STATIC.iterdir() if path.is_file()} == {"explore.css", "explore.js"}
    assert len((STATIC / "explore.js").read_text().splitlines()) < 700
