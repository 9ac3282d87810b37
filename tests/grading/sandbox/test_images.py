"""What is in the sandbox of an exercise: what it needs of the engine, and by no way anything that does its tasks."""

from __future__ import annotations

import ast
import inspect
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from minitorch_grading import dependencies
from minitorch_grading.checks import EXERCISES, TASKS
from minitorch_grading.grading.sandbox import shown
from minitorch_grading.grading.sandbox.image import Contents, contents, image
from minitorch_grading.grading.submission.preflight import released
from minitorch_grading.harness import Needs
from tests.grading import classes
from tests.grading.classes import ROOT, added, hand_in
from tools.clone import RELEASED

every = pytest.mark.parametrize("name", EXERCISES)


def contents_of(name: str) -> Contents:
    return contents(part.task for part in released(RELEASED / name / f"{name}.ipynb"))


def opened(name: str) -> dict[str, bytes]:
    """The files of an image."""
    with zipfile.ZipFile(io.BytesIO(image(contents_of(name), "/course/image.zip"))) as packed:
        return {each: packed.read(each) for each in packed.namelist()}


def is_stub(content: bytes) -> bool:
    return b"__getattr__ = names_of(__name__)" in content


# Of the engine; the numbers, graphs and eager operations that every exercise but the last is about are in all of them.
ROOMS = {
    "01-eager": {"autograd", "functional", "tree"},
    "02-autograd": set(),
    "03-graph": {"graph"},
    "04-tracing": set(),
    "05-deferred": set(),
    "06-rewriting": {"graph", "passes", "tables"},
    "07-fusion": {"graph"},
    "08-schedules": {"compiler", "graph", "passes"},
    "09-reductions": set(),
    "10-primitives": {"graph"},
    "11-memory": {"graph"},
    "12-inference": {"graph"},
    "13-quantization": set(),
    "14-export": {"graph"},
    "15-compilers": {"graph"},
    "16-devices": {"autograd", "functional", "tree"},
    "17-transformer": {"graph"},
}
GROUND = {
    "drawable", "dtypes", "errors", "interpreters", "ir", "methods", "named", "packages", "polynomials", "primitives",
    "sizes", "tensor",
}  # fmt: skip


@every
def test_an_image_has_the_rooms_that_the_exercise_needs(name: str) -> None:
    whole = [path for path, content in opened(name).items() if path.endswith(".py") and not is_stub(content)]
    rooms = {re.split(r"[/.]", path)[1] for path in whole if path.startswith("minitorch/")} - {"__init__"}
    assert rooms == ROOMS[name] | GROUND
    if name == "06-rewriting":
        modules = ("patterns", "pipeline", "rewrite")  # none of the passes
        assert [path for path in whole if "/passes/" in path] == [f"minitorch/passes/{name}.py" for name in modules]


@every
def test_an_image_has_drivers_and_no_judge(name: str) -> None:
    exercises = {task.name.partition(".")[0] for task in EXERCISES[name]}
    files = {path for path in opened(name) if path.startswith("minitorch_grading/") and path.endswith(".py")}
    always = ("__init__", "withheld", "checks/__init__", "harness/__init__")
    modules = ("driver", "garbage", "limit", "needs", "nodes", "plain", "recording", *exercises)
    assert files == {f"minitorch_grading/{each}.py" for each in (*always, *(f"harness/{a}" for a in modules))}
    content = opened(name)["minitorch_grading/checks/__init__.py"].decode()
    assert content == f"from minitorch_grading.harness import {', '.join(sorted(exercises))}\n"


@every
def test_what_is_withheld_is_neither_source_nor_code_in_an_image(name: str) -> None:
    files = opened(name)
    for module, names in dependencies.withheld_names(contents_of(name).needs).items():
        tree = dependencies.modules()[module]
        place = dependencies.place_of(tree).as_posix()
        for each in names:
            found = dependencies.definition(ast.parse(tree.read_text()), each)
            assert found is not None
            body = "\n".join(tree.read_text().splitlines()[found.body[0].lineno : found.end_lineno])
            source = files[place].decode()
            assert body in tree.read_text() and body not in source
            assert len(source.splitlines()) >= len(tree.read_text().splitlines()) - 1, "other lines stay where they are"
            doc = inspect.cleandoc(found.body[0].value.value).splitlines()[0]  # type: ignore[attr-defined]
            assert doc.encode() in tree.read_bytes() and doc.encode() not in files[f"{place}c"]


@every
def test_an_image_is_the_same_bytes_for_the_same_exercise(name: str) -> None:
    assert image(contents_of(name), "/a.zip") == image(contents_of(name), "/a.zip")


@every
def test_no_path_of_this_machine_is_in_an_image(name: str) -> None:
    for path, content in opened(name).items():
        assert str(ROOT).encode() not in content, path


def test_an_exercise_says_what_it_needs_by_names_that_are_there() -> None:
    for needs in (Needs(engine=("grahp",)), Needs(without=("graph.build.topological_odrer",))):
        with pytest.raises(ValueError, match=r"minitorch\.\S+ is no module of the package"):
            dependencies.kept(needs)


def test_an_exercise_that_declares_nothing_has_the_whole_engine() -> None:
    engine = {name for name in dependencies.modules() if not name.startswith("minitorch_grading")}
    assert dependencies.kept(Needs()) == engine
    assert dependencies.kept(Needs(without=("passes",))) == {
        name for name in engine if not name.startswith("minitorch.passes")
    }


def test_a_function_that_has_the_name_of_a_module_is_withheld_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "image.zip"
    path.write_bytes(image(contents_of("03-graph"), str(path)))
    program = "import minitorch as mt\ntry: mt.tensor(1.0)\nexcept RuntimeError as error: print(error, mt.tensor)"
    environment = {"PYTHONPATH": str(path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-P", "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout.startswith("minitorch.tensor is no part of this exercise"), done.stderr


def test_frameworks_that_could_do_a_task_are_not_shown() -> None:
    names = {path.name for path in shown.packages(Needs().packages)}
    assert {"numpy", "IPython", "matplotlib"} <= names
    assert not names & {"jax", "jaxlib", "torch", "networkx", "sklearn", "scipy", "minitorch", "nbgrader"}


# Tried in the sandbox ---------------------------------------------------------------------------------------------

# One call, or nearly, that does a task, for whoever has the whole engine.
ONE_CALL = {
    "01-eager": {
        "unbroadcast": """
def unbroadcast(gradient, shape):
    before = mt.zeros(*shape, requires_grad=True)
    before.expand(gradient.shape).backward(gradient)
    return before.grad
""",
        "mean-squared-error": """
def mean_squared_error(prediction, target):
    return mt.nn.functional.mse_loss(prediction, target)
""",
        "first-bad": "first_bad = mt.debug.first_nonfinite",
        "observe": "observe = mt.profile",
    },
    "02-autograd": {
        "shares": """
def shares(name, g, operands, result):
    import minitorch as mt
    function = getattr(mt, name)
    return mt.grad(lambda *args: g * function(*args))(*map(mt.tensor, operands or (result,)))
""",
        "difference": """
def difference(f, x):
    from minitorch.autograd.finite_differences import gradcheck
    return gradcheck(f, x)
""",
        "train": """
def train(points, labels, weights, steps):
    from minitorch.optim import SGD
    return [SGD(weights, lr=0.3).step() for _ in range(steps)]
""",
        "backward-pass": """
def backward_pass(tape, end):
    from minitorch.autograd.tape import propagate
    return propagate(end)
""",
        "saved": "def saved(program, sizes): return checks.autograd.BYTES.best",
    },
    "03-graph": {
        "order": """
def order(outputs):
    from minitorch.graph import topological_order
    return topological_order(outputs)
""",
        "run": """
def run(graph, fetches, feeds, compute):
    part = graph.subgraph(fetches)
    values = {node: feeds.get(node.params["name"]) for node in graph.inputs}
    for node in part.nodes:
        values[node] = compute(node, [values[each] for each in node.inputs])
    return [values[node] for node in fetches]
""",
        "release": """
def release(graph):
    graph.cost()
    return mt.backends.interpret.last_uses(graph)
""",
        "backward": """
def backward(graph, pull):
    return mt.grad(graph)
""",
    },
    "04-tracing": {
        "train": """
def train(jit, x, rates):
    import minitorch as mt
    step = mt.jit(lambda x, rate: x - rate * x)
    for rate in rates:
        x = step(mt.tensor(x), mt.tensor(rate))
    return x
""",
        "trace": """
def trace(function, count):
    import minitorch as mt
    graph = mt.jit(function).graph(*[mt.tensor(1.0)] * count)
    rows = [(str(node), node.primitive.name, list(map(str, node.inputs))) for node in graph.nodes]
    return rows, str(graph.outputs[0])
""",
        "signature": """
def signature(args):
    from minitorch.modes.guards.signature import Signatures
    return Signatures(lambda *args: None, (), ()).of(args, {})[3]
""",
        "clipped": """
def clipped(x, limit):
    from minitorch.nn.utils import clip_grad_norm_
    return x, clip_grad_norm_(x, limit)
""",
        "buckets": "def buckets(lengths, cost): return checks.tracing.ELEMENTS.best",
    },
    "05-deferred": {
        "seen": "def seen(lines): return checks.deferred._shown(lines)",
        "lazy": """
def lazy(run):
    import minitorch as mt
    recording = mt.lazy().__enter__()
    return mt.tensor
""",
        "key": """
def key(rows, inputs, held):
    from minitorch.graph import Graph
    lines = [f"{name} = {operation}({', '.join(map(str, operands))})" for name, operation, operands in rows]
    given = ", ".join(f"{name}: {dtype}{list(shape)}" for name, (shape, dtype, _) in inputs.items())
    return Graph.parse("\\n".join([f"graph({given}):", *lines, f"return {', '.join(held)}"])).key()
""",
        "descend": """
def descend(tensor, start, rates, every):
    import minitorch as mt
    step = mt.jit(lambda x, rate: x - rate * x)
    losses, x = [], mt.tensor(start)
    for rate in rates:
        x = step(x, mt.tensor(rate))
        losses.append((x * x).item())
    return losses
""",
        "runs": "def runs(costs, requests): return checks.deferred.BYTES.best",
    },
    "06-rewriting": {
        "dead-code": "def dead_code(graph): return Graph(graph.inputs, graph.outputs)",
        "fold-constants": """
def fold_constants(graph):
    from minitorch.passes import CONSTANT_FOLDING
    return CONSTANT_FOLDING(graph)
""",
        "merge": """
def merge(graph):
    from minitorch.passes.common_subexpressions import COMMON_SUBEXPRESSIONS
    return COMMON_SUBEXPRESSIONS.run(graph)
""",
        "laws": """
def laws():
    from minitorch.passes.algebra import ALGEBRA
    return ALGEBRA.rules
""",
    },
    "07-fusion": {
        "kernel-bytes": "def kernel_bytes(graph, kernel): return graph.subgraph(kernel).cost().bytes",
        "partition": """
def partition(graph):
    from minitorch.compiler.fusion.fuse import partition
    return partition(graph)
""",
        "generate": "def generate(graph): return mt.jit(graph).ledger().kernels[0].source",
        "roofline": "def roofline(): return checks.fusion.READINGS",
        "measure": "def measure(run, wait, clock, rounds): return mt.profiler.measure(run, rounds)",
    },
    "08-schedules": {
        "address": "def address(*where): return checks.schedules._wrong_address('any tile', where, 0)",
        "chain-schedule": """
def chain_schedule(length):
    import minitorch as mt
    chain = mt.jit(lambda x, y: x * x + y)
    return chain.ledger(mt.ones(length), mt.ones(length)).kernels[0].schedule
""",
        "pack-rows": "def pack_rows(matrix, height): return checks.schedules.panels(matrix, height)",
        "vector-schedule": """
def vector_schedule(rows, columns, inner):
    from minitorch.compiler.scheduling.schedules import products
    return products.product_schedule(product(rows, columns, inner))
""",
        "product-schedule": """
def product_schedule(rows, columns, inner):
    import minitorch as mt
    a, b = mt.ones(rows, inner), mt.ones(inner, columns)
    return mt.jit(lambda a, b: a @ b).ledger(a, b).kernels[0].schedule
""",
    },
    "09-reductions": {
        "softmax": """
def softmax(x, out):
    import minitorch as mt
    mt.nn.functional.softmax(mt.tensor([1.0]), dim=0)
""",
        "largest-and-total": "def largest_and_total(x, out): out[0] = checks.reductions._TOTAL.right({'x': x})",
        "merge-moments": "def merge_moments(a, b): return checks.reductions.moments([a[1], b[1]])",
        "logsumexp": """
def logsumexp(x, out):
    import minitorch as mt
    out[0] = mt.logsumexp(x, dim=0)
""",
        "variance": """
def variance(x, out):
    import numpy as np
    out[0] = np.var(list(x))
""",
        "attention-row": """
def attention_row(q, keys, values, scratch, out):
    from minitorch.nn.functional import scaled_dot_product_attention
    out[0] = scaled_dot_product_attention(q, keys, values)
""",
    },
    "10-primitives": {
        "hard-swish": """
def hard_swish(x):
    import minitorch as mt
    return mt.nn.functional.hardswish(x)
""",
        "asinh": """
def asinh(x):
    from minitorch.functional.pointwise.elementwise import asinh
    return asinh(x.node)
""",
        "layer-norm": """
def layer_norm(x):
    import minitorch as mt
    return mt.nn.functional.layer_norm(x, (x.shape[-1],))
""",
        "lengths": """
def lengths(x):
    import minitorch as mt
    return mt.linalg.vector_norm(x, dim=-1)
""",
        "mish": """
def mish(x):
    from minitorch.nn.functional.activations import mish
    return mish(x)
""",
    },
    "11-memory": {
        "live-ranges": "def live_ranges(graph): return checks.memory.lives(graph)",
        "best-fit": "def best_fit(buffers): return checks.memory.in_gaps(buffers)",
        "may-overwrite": """
def may_overwrite(graph):
    from minitorch.backends.interpret import last_uses
    return last_uses(graph)
""",
        "plan": "def plan(buffers): return checks.memory.best_fit(buffers)",
        "checkpoints": "def checkpoints(sizes, costs, budget): return checks.memory.least(sizes)",
    },
    "12-inference": {
        "fold-layer": """
def fold_layer(*arrays):
    return checks.inference.layers.folded(checks.inference.layers.Layer(*arrays))
""",
        "convincing": "def convincing(eps): return checks.inference.layers.random_layer(np.random, (2, 2))",
        "fold": """
def fold(graph):
    from minitorch.passes.affine import fold_affine
    return fold_affine(graph).graph
""",
        "error-bound": "def error_bound(*arrays): return checks.inference.layers.derived(arrays[:7], arrays[7])",
        "serve": "def serve(*counts): return checks.inference.serving.best(checks.inference.serving.plans(counts))",
    },
    "13-quantization": {
        "per-channel": """
def per_channel(weight):
    from minitorch.quantization import PerChannelMinMaxObserver
    return PerChannelMinMaxObserver()(weight)
""",
        "round-trip": "def round_trip(x, low, high): return checks.quantization.affine(low, high)",
        "calibrate": "def calibrate(batches, share): return checks.quantization.extremes(batches, share)",
        "product": "def product(*arguments): return checks.quantization.computed(*arguments)",
        "scaler-step": """
def scaler_step(scale, good, gradients, interval):
    import minitorch as mt
    return mt.amp.GradScaler(init_scale=scale)
""",
    },
    "14-export": {
        "hard-swish": """
def hard_swish(x, y):
    import minitorch as mt
    model = mt.export.onnx(mt.nn.functional.hardswish, mt.ones(2, 3), opset_version=13)
    return [(node.op_type, list(node.input), list(node.output), {}) for node in model.graph.node]
""",
        "masked-softmax": """
def masked_softmax(scores, mask, shares):
    import onnx
    return [(node.op_type, list(node.input), list(node.output), {}) for node in onnx.load(scores).graph.node]
""",
        "formulas": "def formulas(exports): return checks.export.tables.computed(exports)",
        "name-table": "def name_table(wanted, found): return checks.export.tables.matched(wanted, found)",
        "lower": """
def lower(operator, operands, attributes):
    from minitorch_onnx.reading.rows import ROWS
    return ROWS[operator](*operands, **attributes)
""",
    },
    "15-compilers": {
        "language": "def language(listing): return checks.compilers._written_in(listing), listing[:9]",
        "partners": "def partners(ours, theirs): return checks.compilers.meanings(ours, {})",
        "kernels": """
def kernels(rows, epilogues):
    from minitorch.compiler.fusion.fuse import fuse
    return fuse(rows)
""",
        "retraces": """
def retraces(policy, calls):
    import minitorch as mt
    return mt.jit(policy).explain().misses
""",
    },
    "16-devices": {
        "all-gather": """
def all_gather(group):
    from minitorch.course import rounds
    return rounds([], len(group))
""",
        "train": "def train(w, batches, rate): return checks.devices.trained(w, batches, rate)",
        "messages": "def messages(*given): return [], checks.devices.least(given)",
        "all-reduce": "def all_reduce(group): return checks.devices.all_reduce.make(0)",
    },
    "17-transformer": {
        "mask": "def mask(texts): return checks.transformer.visible(texts)",
        "cached-step": """
def cached_step(query, key, value, keys, values, place):
    from minitorch.nn.functional import scaled_dot_product_attention
    return scaled_dot_product_attention(query, keys, values), keys, values
""",
        "call-arguments": "def call_arguments(text, context): return checks.transformer.signature((text, context))",
        "cheaper": "def cheaper(*matrices): return checks.transformer.linear_attention(*matrices)",
    },
}

# Ways to an object by its name, each of which says REACHED and how, if it gets there.
WAYS = """
import ctypes, gc, importlib, os, pickle, pydoc, subprocess, sys, zipimport
MODULE, NAME = {module!r}, {name!r}
def found():
    yield "sys.modules", lambda: getattr(sys.modules[MODULE], NAME)
    yield "importlib", lambda: getattr(importlib.import_module(MODULE), NAME)
    yield "reload", lambda: getattr(importlib.reload(importlib.import_module(MODULE)), NAME)
    yield "pydoc", lambda: pydoc.locate(MODULE + "." + NAME)
    yield "pickle", lambda: pickle.loads(b"c" + MODULE.encode() + b"\\n" + NAME.encode() + b"\\n.")
    yield "globals", lambda: sys.modules["minitorch.graph.graph"].Graph.parse.__globals__[NAME]
    yield "chain", lambda: eval("mt" + MODULE.removeprefix("minitorch") + "." + NAME)
    yield "run_cell", lambda: get_ipython().run_cell(f"from {{MODULE}} import {{NAME}}; {{NAME}}").result
    yield "collector", lambda: next(each for each in gc.get_objects() if getattr(each, "__name__", "") == NAME)
    yield "subclasses", lambda: next(each for each in object.__subclasses__() if each.__name__ == NAME)
    yield "the archive", lambda: zipimport.zipimporter(sys.path[0]).load_module(MODULE).__dict__[NAME]
    yield "another process", lambda: subprocess.run(
        [sys.executable, "-c", f"import {{MODULE}} as m, inspect; print(inspect.getsource(m.{{NAME}}))"],
        capture_output=True, text=True, check=True).stdout
def tells(thing):
    "Whether it is, or is written in, more than a line that refuses."
    import inspect
    if isinstance(thing, str):
        return "refuse" not in thing and "names_of" not in thing
    if type(type(thing)) is not type and type(thing) is not type(found):
        return False
    try:
        return "refuse" not in inspect.getsource(thing) and "names_of" not in inspect.getsource(thing)
    except (OSError, TypeError):
        return type(thing).__name__ != "Withheld"
for way, reach in found():
    try:
        if tells(reach()):
            print("REACHED", way)
    except BaseException as error:
        print(way, type(error).__name__)
for folder, inner, names in os.walk("/"):
    inner[:] = [each for each in inner if each not in ("proc", "sys")]
    for each in names:
        if "minitorch" in os.path.join(folder, each) and not folder.endswith("/bin"):
            print("REACHED", os.path.join(folder, each))
for package in ("jax", "torch", "networkx", "scipy", "sklearn", "nbgrader"):
    try:
        print("REACHED", importlib.import_module(package))
    except ImportError:
        pass
print("tried all")
"""
AIMS = {
    "01-eager": ("minitorch.primitives.movement", "_expand_rule"),
    "02-autograd": ("minitorch.autograd.tape", "propagate"),
    "03-graph": ("minitorch.graph.build", "topological_order"),
    "04-tracing": ("minitorch.modes.guards.signature", "Signatures"),
    "05-deferred": ("minitorch.modes.ways_in.lazy", "LazyStaging"),
    "06-rewriting": ("minitorch.passes.dead_code", "remove_dead_code"),
    "07-fusion": ("minitorch.compiler.fusion.fuse", "fuse"),
    "08-schedules": ("minitorch.compiler.scheduling.schedules.products", "product_schedule"),
    "09-reductions": ("minitorch.compiler.scheduling.rewrites.one_pass", "online"),
    "10-primitives": ("minitorch.nn.functional.activations", "mish"),
    "11-memory": ("minitorch.backends.interpret", "_last_uses"),
    "12-inference": ("minitorch.passes.affine", "fold_affine"),
    "13-quantization": ("minitorch.quantization.schemes", "choose_qparams"),
    "14-export": ("minitorch_onnx.writing.model", "model_of"),
    "15-compilers": ("minitorch.compiler.fusion.fuse", "fuse"),
    "16-devices": ("minitorch_course.animations.simulating", "rounds"),
    "17-transformer": ("minitorch.nn.functional.attention", "scaled_dot_product_attention"),
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """One student for each exercise, who does all tasks by one call, and tries all ways to what is withheld."""
    classes.needs_bubblewrap()
    root = tmp_path_factory.mktemp("course")
    for name, answers in ONE_CALL.items():
        release = json.loads((RELEASED / name / f"{name}.ipynb").read_text())
        path = root / "exercises" / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(release))
        for cell in release["cells"]:
            about = cell["metadata"].get("nbgrader", {})
            if about.get("solution") and not about["grade"]:
                cell["source"] = answers[about["grade_id"]].strip()
        module, aim = AIMS[name]
        release["cells"].append(added(WAYS.format(module=module, name=aim)))
        hand_in(root, f"student{name[:2]}", json.dumps(release), exercise=name)
    return root, classes.grade(root)


@every
def test_no_call_of_the_engine_earns_a_point(name: str, graded: tuple[Path, dict[str, Any]]) -> None:
    row = graded[1][f"student{name[:2]}"]
    assert classes.points(row).keys() >= ONE_CALL[name].keys() and not any(classes.points(row).values())
    assert "withheld" in {each["kind"] for each in row["incidents"]}


@every
def test_there_is_no_way_to_what_is_withheld(name: str, graded: tuple[Path, dict[str, Any]]) -> None:
    page = graded[0] / "autograded" / f"student{name[:2]}" / name / f"{name}.ipynb"
    cells = json.loads(page.read_text())["cells"]
    said = "".join("".join(each.get("text", "")) for each in cells[-1]["outputs"])
    assert "tried all" in said, cells[-1]["outputs"]
    assert "REACHED" not in said, said


def test_all_tasks_are_tried() -> None:
    tried = {name.replace("-", "_") for answers in ONE_CALL.values() for name in answers}
    assert tried == {name.partition(".")[2] for name in TASKS}
