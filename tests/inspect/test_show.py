"""Pictures: what is in them, that they are the same everywhere, and what is said where there can be none."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from inspect import signature
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch import nn
from minitorch.drawable import Drawable, Explorable
from minitorch.graph import Graph
from minitorch.primitives import PRIMITIVES
from minitorch_inspect.colours import BLACK, FAMILIES, INK, KERNELS, ROLES, WHITE
from minitorch_inspect.drawings.drawing import INSIDE, MEMORY, Drawing
from minitorch_inspect.drawings.summary import MOST_GROUPS
from minitorch_inspect.painting import layout
from minitorch_inspect.picture import NOTEBOOK_WIDTH, Picture

SVG = "{http://www.w3.org/2000/svg}"

needs_graphviz = pytest.mark.skipif(find_spec("pygraphviz") is None, reason="pygraphviz is not installed")


def diamond() -> Graph:
    return Graph.parse(
        "graph(x: f32[2,3]): %0 = mul(x, 2.0) %1 = exp(%0) %2 = constant([1.0, 2.0, 3.0]) : f32[3]"
        " %3 = expand(%2, shape=[2,3]) %4 = add(%0, %1) %5 = mul(%4, %3) return %5"
    )


def chain(length: int) -> Graph:
    nodes = " ".join(f"%{n + 1} = neg(%{n})" for n in range(length - 1))
    return Graph.parse(f"graph(x: f32[2]): %0 = exp(x) {nodes} return %{length - 1}")


@pytest.fixture
def model() -> nn.Module:
    mt.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))


def looped(xs: mt.Tensor) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = (h @ xs[0, :, :2].t() + x).tanh()
        return h, h.sum()

    last, sums = mt.scan(step, mt.zeros(2, 2), xs)
    return last * 2, sums.exp()


def branched(x: mt.Tensor) -> Any:
    return mt.cond(x.sum() > 0, lambda: x + 1, lambda: mt.while_loop(lambda y: y.sum() < 5, lambda y: y * 2, x))


def training_step(model: nn.Module) -> Any:
    optimizer = mt.optim.Adam(model.parameters(), lr=0.01)

    @mt.jit
    def step(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def titles(picture: Picture) -> dict[str, str]:
    """The text that is shown for each group of the SVG, by id."""
    found = {}
    for group in ET.fromstring(picture.svg).iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        found[group.attrib["data-id"]] = "" if title is None else str(title.text)
    return found


def headings(drawing: Drawing) -> list[str]:
    return [mark.heading for mark in drawing.marks]


# What is in a picture ----------------------------------------------------------------------------------------------


@needs_graphviz
@pytest.mark.parametrize("fused", [False, True])
def test_every_mark_says_what_it_is(model: nn.Module, fused: bool) -> None:
    picture = training_step(model).show(mt.ones(4, 6), mt.zeros(4, dtype=mt.int64), fused=fused, limit=None)
    shown = titles(picture)
    operations = {family.name for family in FAMILIES}
    assert len(picture.drawing.marks) > 100
    for mark in picture.drawing.marks:
        assert shown[mark.id] == mark.title
        for fact in ("shape: ", "dtype: ", "FLOPs: ", "bytes: "):
            assert f"\n{fact}" in mark.title, mark.title
        if mark.kind in operations and not fused:  # a pass may have made it
            assert re.search(r"\nline: test_show.py:\d+  \w+", mark.title), mark.title


def test_titles_have_the_costs_of_the_graph() -> None:
    graph = diamond()
    marks = {mark.name: mark for mark in graph.show(limit=None).drawing.marks}
    cost = graph.cost()
    assert sum(mark.work.flops for mark in marks.values()) == cost.flops == 18
    assert sum(mark.work.transcendentals for mark in marks.values()) == cost.transcendentals == 6
    assert sum(mark.work.read for mark in marks.values()) == cost.bytes_read
    assert sum(mark.work.written for mark in marks.values()) == cost.bytes_written
    assert marks["%0"].title.splitlines() == [
        "%0 = mul(x, 2.0)", "shape: (2, 3)", "dtype: float32", "FLOPs: 6", "bytes: 24 read, 24 written"
    ]  # fmt: skip


@needs_graphviz
def test_kinds_differ_in_shape_and_not_only_in_colour(model: nn.Module) -> None:
    assert len({role.shape for role in ROLES}) == len(ROLES)
    assert {primitive.kind for primitive in PRIMITIVES.values()} == {kind for each in FAMILIES for kind in each.kinds}
    assert len({each.colour for each in FAMILIES}) == len(FAMILIES)
    picture = model.show(mt.ones(4, 6))
    drawing = picture.drawing
    assert [mark.name for mark in drawing.marks if mark.kind == "input"] == ["input"]
    assert {mark.name for mark in drawing.marks if mark.kind == "parameter"} == {
        "0.weight", "0.bias", "2.weight", "2.bias"
    }  # fmt: skip
    paths: dict[str, set[str]] = {}  # the commands of the outlines of each kind
    groups = {group.attrib["data-id"]: group for group in ET.fromstring(picture.svg).iter(f"{SVG}g")}
    for mark in (*drawing.marks, *diamond().show().drawing.marks):
        if mark.id in groups and mark in drawing.marks:
            outline = "".join(path.attrib["d"] for path in groups[mark.id].iter(f"{SVG}path"))
            paths.setdefault(mark.kind, set()).add(re.sub(r"[^A-Z]", "", outline))
    shapes = [paths[kind] for kind in ("input", "parameter", "output", "pointwise")]
    assert all(len(shape) == 1 for shape in shapes) and len(set.union(*shapes)) == 4


@needs_graphviz
def test_the_legend_has_what_occurs() -> None:
    shown = {name for name in titles(diamond().show()) if name.startswith("legend-")}
    assert shown == {f"legend-{name}" for name in ("pointwise", "movement", "input", "constant", "output")}


@needs_graphviz
def test_arrows_are_the_uses_of_values() -> None:
    drawing = diamond().show().drawing
    names = {mark.id: mark.name for mark in drawing.marks}
    assert {(names[arrow.tail], names[arrow.head]) for arrow in drawing.arrows} == {
        ("x", "%0"), ("%0", "%1"), ("%0", "%4"), ("%1", "%4"), ("%2", "%3"), ("%4", "%5"), ("%3", "%5"),
        ("%5", "output"),
    }  # fmt: skip


# Kernels -----------------------------------------------------------------------------------------------------------


def test_clusters_are_the_kernels_of_the_ledger(model: nn.Module) -> None:
    step, x, y = training_step(model), mt.ones(4, 6), mt.zeros(4, dtype=mt.int64)
    ledger = step.ledger(x, y)
    drawing = step.show(x, y, fused=True, limit=None).drawing
    assert [cluster.kind for cluster in drawing.clusters] == [kernel.kind for kernel in ledger.kernels]
    for cluster, kernel in zip(drawing.clusters, ledger.kernels, strict=True):
        assert cluster.title == f"{kernel.name} · {kernel.kind} {KERNELS[kernel.kind][0]}"
        inside = [mark for mark in drawing.marks if mark.cluster == cluster.id]
        kinds = sorted(mark.label.split("(")[0] for mark in inside)
        assert kinds == sorted(node.primitive.name for node in kernel.nodes if node.primitive.name != "constant")
        assert dict(cluster.details)["bytes"] == f"{kernel.bytes_read:,} read, {kernel.bytes_written:,} written"


def test_within_a_kernel_nothing_goes_through_memory() -> None:
    attention = mt.jit(lambda q, k, v: (q @ k.transpose(-1, -2)).softmax(-1) @ v)
    q = mt.ones(2, 8, 4)
    drawing = attention.show(q, q + 1, q + 2, fused=True).drawing
    home = {mark.id: mark.cluster for mark in drawing.marks}
    assert len(drawing.clusters) == len(attention.ledger(q, q + 1, q + 2).kernels)
    assert {arrow.kind for arrow in drawing.arrows} == {INSIDE, MEMORY}
    for arrow in drawing.arrows:
        assert (arrow.kind == INSIDE) == (home[arrow.tail] == home[arrow.head] is not None)


# The same everywhere -----------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
PROGRAM = """
import hashlib, json, sys
import minitorch as mt
import minitorch.nn.functional as F
from tests.support.programs import classifier
model, step = classifier(6, 5, 3)
step = mt.jit(step, backend="interpret")
x, y = mt.ones(4, 6), mt.zeros(4, dtype=mt.int64)
loss = F.cross_entropy(model(x), y)
pictures = [step.show(x, y), step.show(x, y, fused=True), model.show(x), loss.show(),
            mt.jit(lambda x: x.softmax(1), backend="interpret").show(x, fused=True)]
parts = [part for p in pictures for part in (p.svg.encode(), p.png, p.text.encode())]
print(json.dumps([hashlib.sha256(part).hexdigest() for part in parts]))
"""


@needs_graphviz
def test_the_bytes_are_the_same_in_every_process() -> None:
    processes = []
    for changes in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", "FONTCONFIG_FILE": os.devnull}):  # without fonts
        environment = {**os.environ, **changes}
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
            )
        )
    first, second = (json.loads(process.communicate()[0]) for process in processes)
    assert first == second
    assert len(set(first)) == 15


@needs_graphviz
def test_a_picture_is_legible_on_light_and_dark_pages() -> None:
    """It has no ground of its own, and its letters are ink, or black within a coloured shape."""
    from matplotlib.image import imread

    f = mt.jit(lambda x: x.softmax(1).sum(0))
    for picture in (diamond().show(), f.show(mt.ones(2048, 1024), fused=True), nn.Linear(2, 3).show(mt.ones(1, 2))):
        assert not imread(BytesIO(picture.png))[0, 0, 3], "there is no ground"
        root = ET.fromstring(picture.svg)
        assert root.find(f"{SVG}rect") is None
        for group in root.iter(f"{SVG}g"):
            filled = [path.get("fill") for path in group.iter(f"{SVG}path") if len(path.get("fill", "")) == len(WHITE)]
            inside = bool(filled) and not group.get("data-id", "").startswith(("a", "legend"))
            assert {text.get("fill") for text in group.iter(f"{SVG}text")} <= {BLACK if inside else INK}


@needs_graphviz
def test_the_style_of_a_notebook_does_not_change_a_picture() -> None:
    import matplotlib

    plain = diamond().show().png
    with matplotlib.rc_context({"font.size": 30.0, "path.simplify": False, "text.antialiased": False}):
        assert diamond().show().png == plain


# Large graphs ------------------------------------------------------------------------------------------------------


@needs_graphviz
def test_two_thousand_nodes_are_summarised_first(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = chain(2000)
    asked = []
    monkeypatch.setattr(layout, "_graphviz", lambda text, run=layout._graphviz: asked.append(text) or run(text))
    picture = graph.show()
    assert len(picture.svg) < 40_000
    assert sum(text.count(" -> ") for text in asked) < 200  # Graphviz never sees the rest
    operations = [mark for mark in picture.drawing.marks if mark.count > 1]
    assert sum(mark.count for mark in operations) == 2000
    assert len(operations) <= MOST_GROUPS
    assert sum(mark.work.flops for mark in operations) == graph.cost().flops
    (note,) = picture.drawing.notes
    assert "summarised" in note and "limit=None" in note and note in picture.text
    assert note.split()[0] in "".join(ET.fromstring(picture.svg).itertext())


def test_summaries_go_by_line_of_the_program(model: nn.Module) -> None:
    step, x, y = training_step(model), mt.ones(4, 6), mt.zeros(4, dtype=mt.int64)
    picture = step.show(x, y)
    groups = [mark.heading for mark in picture.drawing.marks if mark.kind in {family.name for family in FAMILIES}]
    assert groups == ["logits = model(x)", "loss = F.cross_entropy(logits, y)", "loss.backward()", "optimizer.step()"]
    fused = step.show(x, y, fused=True).drawing
    kernels = step.ledger(x, y).kernels
    assert [mark.heading for mark in fused.marks if mark.kind in KERNELS] == [kernel.name for kernel in kernels]


def test_summaries_go_by_module() -> None:
    layers = nn.Sequential(*[nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4)) for _ in range(6)])
    drawing = layers.show(mt.ones(2, 4)).drawing
    assert [mark.heading for mark in drawing.marks if mark.count > 1 and mark.kind != "parameter"] == [
        f"{layer}.{part}" for layer in range(6) for part in ("0 · LayerNorm", "1 · Linear")
    ]


@needs_graphviz
def test_many_kernels_are_drawn_without_their_parameters() -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(32, 32) for _ in range(3)])
            self.out = nn.Linear(32, 32)

        def forward(self, x: mt.Tensor) -> mt.Tensor:
            q, k, v = (layer(x) for layer in self.layers)
            return x + self.out((q @ k.transpose(-1, -2)).softmax(-1) @ v)

    step, x = mt.jit(nn.Sequential(*[Residual() for _ in range(3)])), mt.ones(2, 6, 32)
    picture = step.show(x, fused=True)
    kinds = [mark.kind for mark in picture.drawing.marks]
    assert sum(kind in KERNELS for kind in kinds) == len(step.ledger(x).kernels)
    assert (kinds.count("input"), kinds.count("parameter"), kinds.count("output")) == (1, 0, 1)
    assert "left out" in picture.drawing.notes[-1] and "left out" in picture.text
    assert {mark.kind for mark in step.show(x, fused=True, limit=None).drawing.marks} >= {"parameter"}


def test_small_graphs_are_drawn_whole() -> None:
    graph = chain(60)
    assert len(graph.show().drawing.marks) == 62
    assert graph.show().drawing.notes == ()
    assert len(graph.show(limit=20).drawing.marks) < 20
    assert len(chain(300).show(limit=None).drawing.marks) == 302


@needs_graphviz
def test_letters_can_be_read_on_a_page(model: nn.Module) -> None:
    x, y = mt.ones(4, 6), mt.zeros(4, dtype=mt.int64)
    step = training_step(model)
    for picture in (step.show(x, y), step.show(x, y, fused=True), model.show(x), F.cross_entropy(model(x), y).show()):
        root = ET.fromstring(picture.svg)
        shown = min(float(root.attrib["width"]), NOTEBOOK_WIDTH) / float(root.attrib["viewBox"].split()[2])
        smallest = min(float(text.attrib["font-size"]) for text in root.iter(f"{SVG}text"))
        assert smallest * shown >= 9, picture


# Everything that there is a picture of -----------------------------------------------------------------------------


def test_a_graph_after_its_passes() -> None:
    f = mt.jit(lambda x: (x * 1) + 2)
    stages = f.stages(mt.ones(3))
    assert stages.show().drawing.marks == stages.graph.show().drawing.marks
    assert len(stages.show().drawing.marks) < len(f.show(mt.ones(3)).drawing.marks)
    assert mt.inspect.show(f.ledger(mt.ones(3))).drawing.clusters[0].kind == "K1"


def test_a_jitted_function_tells_its_outputs_apart() -> None:
    weight = mt.ones(3, requires_grad=True)
    running = mt.zeros(3)

    @mt.jit
    def f(x: mt.Tensor) -> mt.Tensor:
        y = x * weight
        running.add_(1)
        y.sum().backward()
        return y * 2

    marks = {mark.name: mark.kind for mark in f.show(mt.ones(3)).drawing.marks}
    assert marks["x"] == "input" and marks["weight"] == marks["running"] == "parameter"
    assert marks["new running"] == marks["new weight.grad"] == "update"
    assert marks["result"] == "output"
    kept = mt.jit(lambda x: (x * weight).exp()).show(mt.ones(3)).drawing
    assert "kept for backward" in headings(kept)


def test_a_session_and_its_graph(model: nn.Module) -> None:
    with mt.Graph() as graph:
        x, y = mt.placeholder((4, 6), name="x"), mt.placeholder((4,), mt.int64, name="y")
        loss = F.cross_entropy(model(x), y)
        train = mt.optim.SGD(model.parameters(), lr=0.1).minimize(loss)
    session = mt.Session(graph)
    whole = graph.show(limit=None).drawing
    kinds = {mark.name: mark.kind for mark in whole.marks}
    assert kinds["x"] == kinds["y"] == "input" and kinds["loss"] == "output"
    assert kinds["model.0.weight"] == "parameter" and kinds["new model.0.weight"] == "update"
    assert session.show(limit=None).drawing == whole
    part = session.show(loss).drawing
    assert headings(part)[-1] == "fetched" and not any(mark.kind == "update" for mark in part.marks)
    trained = session.show([loss, train], fused=True, limit=None).drawing
    assert sum(mark.kind == "update" for mark in trained.marks) == 4 and trained.clusters
    before = model.state_dict()["0.weight"].numpy().copy()
    assert (model.state_dict()["0.weight"].numpy() == before).all()


def test_what_is_pending_stays_pending() -> None:
    x = mt.arange(4.0)
    with mt.lazy() as pending:
        doubled = x * 2
        total = (doubled + 1).sum()
        picture = total.show()
        assert headings(picture.drawing) == [
            "x", "%0 = mul(x, 2.0)", "%1 = add(%0, 1.0)", "%2 = reduce_sum(%1, dims=[0])", "total"
        ]  # fmt: skip
        assert total.show(fused=True).drawing.clusters[0].kind in KERNELS
        assert {mark.name for mark in pending.show().drawing.marks if mark.kind == "output"} == {"doubled", "total"}
        assert headings(mt.inspect.show([doubled, total]).drawing)[-2:] == ["doubled", "total"]
        assert repr(type(total._value)) != repr(type(x._value))  # nothing was computed
        assert total.item() == 16.0


def test_parts_of_recordings() -> None:
    w = mt.ones(3, requires_grad=True)
    inside = []

    @mt.jit
    def f(x: mt.Tensor) -> mt.Tensor:
        y = (x * w).exp()
        inside.append(y.show())
        return y

    with pytest.warns(mt.errors.TracingWarning, match="MT105"):  # a picture got out
        f(mt.ones(3))
    assert headings(inside[0].drawing) == ["x", "w", "%0 = mul(x, w)", "%1 = exp(%0)", "y"]
    with mt.Graph() as graph:
        x = mt.placeholder((3,), name="x")
        y = (x * w).sum()
    marks = {mark.name: mark.kind for mark in y.show().drawing.marks}  # the graph is defined, and left
    assert (marks["x"], marks["w"], marks["y"]) == ("input", "parameter", "output")
    assert graph.show().drawing.marks[:2] == y.show().drawing.marks[:2]


@needs_graphviz
def test_nothing_at_all() -> None:
    with mt.lazy() as pending:
        assert pending.show().drawing.marks == ()
        assert pending.show().svg.endswith("</svg>\n")
    assert "nothing on the tape" in mt.ones(2).show().text


def test_the_tape_and_what_it_keeps() -> None:
    x, w = mt.ones(2, 3), mt.ones(3, 2, requires_grad=True)
    loss = ((x @ w) * 2).exp().sum()
    picture = loss.show()
    marks = {mark.name: mark for mark in picture.drawing.marks}
    assert marks["w"].kind == "parameter" and marks["x"].kind == "input" and marks["loss"].kind == "output"
    assert marks["%0"].heading == "%0 = dot(x, w)"
    assert headings(mt.inspect.show({"a": loss, "b": loss * 2}).drawing)[-2:] == ["a", "b"]
    assert marks["%0"].work.flops == 2 * 2 * 3 * 2
    assert dict(marks["%2"].details)["kept for backward"] == "the output (16 bytes)"
    loss.backward()
    freed = loss.show().drawing
    assert [mark.heading for mark in freed.marks] == ["%0 = reduce_sum(…)", "loss"]
    assert "freed" in freed.notes[-1]


def test_the_tape_has_functions_with_gradients_of_their_own() -> None:
    class Cube(mt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    w = mt.ones(3, requires_grad=True)
    cubed = Cube.apply(w)
    assert headings(cubed.show().drawing) == ["w", "%0 = Cube(w)", "cubed"]


def test_a_long_tape_is_no_trouble() -> None:
    x = mt.ones(1, requires_grad=True)
    y = x
    for _ in range(5000):
        y = y + 1
    assert sum(mark.count for mark in y.show().drawing.marks if mark.kind == "pointwise") == 5000


def test_a_module_is_drawn_by_its_parts(model: nn.Sequential) -> None:
    picture = model.show(mt.ones(4, 6))
    assert [cluster.title for cluster in picture.drawing.clusters] == ["0 · Linear", "1 · ReLU", "2 · Linear"]
    twice = nn.Sequential(model[0], nn.Linear(5, 6), model[0])
    assert len(twice.show(mt.ones(4, 6)).drawing.clusters) == 3
    norm = nn.BatchNorm1d(6)
    assert "new running_mean" in headings(norm.show(mt.ones(4, 6)).drawing)
    assert norm.running_mean.numpy().any() == False  # noqa: E712  # drawn, not run
    assert not model[0]._hooks["before"] and not model[0]._hooks["after"]


def test_other_things_have_no_picture() -> None:
    with pytest.raises(TypeError, match=r"no picture of this int.*Graph, a jitted function"):
        mt.inspect.show(3)
    with pytest.raises(TypeError, match=r"no picture of this function.*show\(mt.jit\(f\), \*args\)"):
        mt.inspect.show(lambda x: x)
    with pytest.raises(TypeError, match="takes tensors, and there is something of type int among them"):
        mt.inspect.show([mt.ones(2), 3])
    with pytest.raises(ValueError, match="no kernels to show"):
        mt.ones(2, requires_grad=True).show(fused=True)


# Output ------------------------------------------------------------------------------------------------------------


@needs_graphviz
def test_a_notebook_gets_all_three(tmp_path: Any) -> None:
    picture = diamond().show()
    bundle, metadata = picture._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "image/png", "text/plain"}
    assert bundle["image/png"].startswith(b"\x89PNG") and metadata["image/png"]["width"] <= NOTEBOOK_WIDTH
    for name in ("picture.svg", "picture.pdf", "picture.png", "picture.txt"):
        assert picture.save(tmp_path / name).read_bytes() == {
            "svg": picture.svg.encode(), "pdf": picture.pdf, "png": picture.png, "txt": picture.text.encode()
        }[name[-3:]]  # fmt: skip
    with pytest.raises(ValueError, match=r"\.svg, \.pdf, \.png, \.txt, by its ending, not as 'picture\.jpg'"):
        picture.save(tmp_path / "picture.jpg")
    assert picture.pdf.startswith(b"%PDF") and picture.pdf == diamond().show().pdf
    assert "http" not in picture.svg.replace("http://www.w3.org/2000/svg", "")  # no request to anywhere


def test_without_pygraphviz_there_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    picture = diamond().show()
    bundle, _ = picture._repr_mimebundle_()
    assert set(bundle) == {"text/plain"}
    assert (
        bundle["text/plain"].startswith("the picture needs pygraphviz")
        and "pip install pygraphviz" in bundle["text/plain"]
    )
    assert bundle["text/plain"].endswith(picture.text)
    with pytest.raises(ModuleNotFoundError, match=r"pip install pygraphviz"):
        _ = picture.svg


@needs_graphviz
def test_without_matplotlib_there_is_no_png(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    bundle, _ = diamond().show()._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/plain"}
    assert (
        bundle["text/plain"].startswith("a PNG needs matplotlib") and "pip install matplotlib" in bundle["text/plain"]
    )
    with pytest.raises(ModuleNotFoundError, match=r"a PDF needs matplotlib.*pip install matplotlib"):
        _ = diamond().show().pdf


def test_text_is_a_tree_and_does_not_recurse() -> None:
    assert diamond().show().text.splitlines() == [
        "graph: 5 operations",
        "output: f32[2,3]",
        "%5 = mul(%4, %3)        f32[2,3]",
        "├─%4 = add(%0, %1)      f32[2,3]",
        "│ ├─%0 = mul(x, 2.0)    f32[2,3]",
        "│ │ x                   f32[2,3], input",
        "│ └─%1 = exp(%0)        f32[2,3]",
        "│   %0, see above",
        "└─%3 = expand(%2)       f32[2,3]",
        "  %2 = [1.0, 2.0, 3.0]  f32[3], constant",
    ]
    assert len(chain(5000).show(limit=None).text.splitlines()) == 5003


def test_importing_minitorch_loads_nothing_that_draws() -> None:
    code = "import sys, minitorch; print('minitorch_inspect' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert output == "False\n"


def test_methods_and_functions_take_the_same_arguments() -> None:
    for method, function in ((Drawable.show, mt.inspect.show), (Explorable.explore, mt.inspect.explore)):
        assert list(signature(method).parameters.values())[1:] == list(signature(function).parameters.values())[1:]


# --- loops --------------------------------------------------------------------------------------------------------


def test_a_loop_is_one_operation_with_its_body_in_a_frame() -> None:
    f, xs = mt.jit(looped), mt.ones(64, 2, 2)
    drawing = f.show(xs).drawing
    (loop,) = (mark for mark in drawing.marks if mark.label == "scan ×64")
    assert loop.caption == "f32[2,2], f32[64]" and "reduce_sum" in loop.title
    assert [cluster.title for cluster in drawing.clusters] == ["scan ×64"]
    inside = sorted(mark.label.partition("(")[0] for mark in drawing.marks if mark.cluster)
    assert inside == ["add", "carried", "dot", "reduce_sum", "slice", "tanh"]
    order = {mark.id: place for place, mark in enumerate(drawing.marks)}
    assert all(order[arrow.tail] < order[arrow.head] for arrow in drawing.arrows)


def test_work_of_a_body_is_counted_times_its_repetitions() -> None:
    f, xs = mt.jit(looped), mt.ones(64, 2, 2)
    drawing = f.show(xs).drawing
    (loop,) = (mark for mark in drawing.marks if mark.label == "scan ×64")
    assert loop.work[:2] == (64 * (2 * 8 + 4 + 4), 64 * 4)  # a product, a sum of matrices, one of elements; tanh
    assert sum(mark.work.flops for mark in drawing.marks) == f.graph(xs).cost().flops
    (kernel,) = (each for each in f.ledger(xs).kernels if "scan" in each.name)
    assert (kernel.flops, kernel.transcendentals) == loop.work[:2]


def test_bodies_are_left_out_before_a_picture_is_summarised() -> None:
    picture = mt.jit(looped).show(mt.ones(64, 2, 2), limit=12)
    labels = [mark.label.partition("(")[0] for mark in picture.drawing.marks]
    assert not picture.drawing.clusters and "limit=None" in picture.text
    assert {"scan ×64", "mul", "exp"} <= set(labels) and "tanh" not in labels


def test_branches_and_conditions_have_frames_of_their_own() -> None:
    drawing = mt.jit(branched).show(mt.ones(2)).drawing
    assert [cluster.title for cluster in drawing.clusters] == ["cond: then", "cond: otherwise"]
    (inner,) = (mark for mark in drawing.marks if mark.label == "while_loop")
    assert inner.cluster == drawing.clusters[1].id and "less" in inner.title


@needs_graphviz
def test_kernels_of_loops_are_drawn_with_the_numbers_that_they_begin_with() -> None:
    drawing = mt.jit(looped).show(mt.ones(64, 2, 2), fused=True).drawing
    assert {mark.cluster for mark in drawing.marks} >= {cluster.id for cluster in drawing.clusters}
    assert [mark.label for mark in drawing.marks].count("scan ×64") == 1
    assert Picture(drawing).svg
