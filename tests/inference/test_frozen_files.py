"""Frozen functions on disk, and those of a session: the same bits, or an error that names the file and the rule."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.errors import ArgumentError, FeedError, FrozenError, MinitorchError, ShapeError, TracingError
from minitorch_checkpoints import safetensors
from minitorch_inference.files import programs


def model() -> nn.Module:
    mt.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)).eval()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    frozen = mt.freeze(model(), mt.ones(2, 2, 6, 6))
    frozen(mt.ones(1, 2, 6, 6))
    frozen.save(tmp_path / "model")
    return tmp_path / "model"


def manifest_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / programs.MANIFEST).read_text())
    return found


def rewrite_manifest(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a manifest, and give it the checksum that fits."""
    found = manifest_of(folder)
    del found["checksum"]
    change(found)
    found["checksum"] = programs._checksum(found)
    (folder / programs.MANIFEST).write_text(json.dumps(found))


def replace_file(folder: Path, entry: dict[str, str], content: bytes) -> None:
    """Other contents for a file, with the checksum that fits."""
    (folder / entry["file"]).write_bytes(content)
    entry["sha256"] = hashlib.sha256(content).hexdigest()


# Round trips ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["interpret", "llvm"])
def test_a_loaded_program_has_the_same_bits(backend: str, tmp_path: Path) -> None:
    frozen = mt.freeze(model(), mt.ones(2, 2, 6, 6), backend=backend)
    inputs = [mt.randn(rows, 2, 6, 6) for rows in (2, 5)]
    expected = [frozen(x).numpy() for x in inputs]
    frozen.save(tmp_path)
    loaded = mt.load_frozen(tmp_path, backend)
    for x, wanted in zip(inputs, expected, strict=True):
        assert np.array_equal(loaded(x).numpy(), wanted)
        assert np.array_equal(loaded(input=x).numpy(), wanted)
    again = tmp_path / "again"
    loaded.save(again)
    assert np.array_equal(mt.load_frozen(again, backend)(inputs[0]).numpy(), expected[0])
    assert {path.name for path in again.iterdir()} == {path.name for path in tmp_path.iterdir() if path != again}


def test_structures_types_and_plain_values(tmp_path: Path) -> None:
    table = mt.tensor(np.arange(12, dtype=np.float32).reshape(4, 3)).bfloat16()

    def f(batch: dict[str, Any], scale: float = 2.0, *, flip: bool = False) -> Any:
        rows = table.float()[batch["rows"]] * scale
        return {"rows": rows.flip(0) if flip else rows, "same": batch["x"][1], "n": [3, "three", None]}

    x, rows = mt.randn(2), mt.tensor([1, 3])
    batch: dict[str, Any] = {"rows": rows, "x": (x, mt.ones(2))}
    frozen = mt.freeze(f, batch, flip=True)
    expected = frozen(batch, flip=True)
    frozen.save(tmp_path)
    loaded = mt.load_frozen(tmp_path)
    found = loaded(batch, 2.0, flip=True)
    assert found["rows"].tolist() == expected["rows"].tolist() == [[18, 20, 22], [6, 8, 10]]
    assert found["same"] is batch["x"][1] and found["n"] == [3, "three", None]
    with pytest.raises(ShapeError, match="MT201"):
        loaded(batch, 3.0, flip=True)


def test_other_signatures_are_errors(saved: Path) -> None:
    loaded = mt.load_frozen(saved)
    with pytest.raises(
        ShapeError, match=r"is called with \(input: f32\[3,2,6,6\]\), and is frozen for \(input: f32\[2,"
    ):
        loaded(mt.ones(3, 2, 6, 6))
    assert mt.freeze(loaded) is loaded and len(loaded.explain().signatures) == 2


def test_what_json_does_not_have_is_not_saved(tmp_path: Path) -> None:
    frozen = mt.freeze(lambda x, kind: x.to(kind), mt.ones(2), mt.float64)
    with pytest.raises(ArgumentError, match="a frozen function with a DType among its arguments"):
        frozen.save(tmp_path)
    assert not (tmp_path / programs.MANIFEST).exists()


def test_a_program_is_replaced_in_one_step(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is interrupted, the folder holds a complete program; what is left over goes with the next one."""
    x = mt.ones(2, 2, 6, 6)
    before = mt.load_frozen(saved)(x).tolist()
    other = mt.freeze(nn.Sequential(nn.Flatten(), nn.Linear(72, 3)).eval(), x)
    for stop in range(3):
        count = iter(range(9))
        real = os.replace

        def failing(source: Any, target: Any, count: Any = count, stop: int = stop, real: Any = real) -> None:
            if next(count) == stop:
                raise OSError("interrupted")
            real(source, target)

        monkeypatch.setattr(os, "replace", failing)
        with pytest.raises(OSError, match="interrupted"):
            other.save(saved)
        monkeypatch.undo()
        assert mt.load_frozen(saved)(x).tolist() == before
    other.save(saved)
    assert mt.load_frozen(saved)(x).tolist() == other(x).tolist()
    assert len(list(saved.iterdir())) == 3


SAVE = """
import os, signal, sys
import minitorch as mt
weight, calls, real = mt.full((3,), 9.0), [], os.replace

def stopped(source, target):
    calls.append(target)
    if len(calls) == int(sys.argv[2]):
        print("here", flush=True)
        sys.stdin.read() if sys.argv[3] == "waits" else os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)

os.replace = stopped
mt.freeze(lambda x: x * weight, mt.ones(3)).save(sys.argv[1])
"""


def saving(place: Path, stop: int, how: str) -> subprocess.Popen[str]:
    """A process that saves a program, and is killed, or waits, before it gives the n-th of three files its name."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    arguments = [sys.executable, "-c", SAVE, str(place), str(stop), how]
    child = subprocess.Popen(arguments, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == "here\n"
    return child


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system kills otherwise")
def test_what_a_killed_save_leaves_goes_with_the_next(tmp_path: Path) -> None:
    """Of whatever moment. The program before stays, and so does what is not ours."""
    scaled(2.0).save(tmp_path)
    for stop in (1, 2, 3):
        with saving(tmp_path, stop, "dies") as child:
            assert child.wait() == -signal.SIGKILL
        assert mt.load_frozen(tmp_path)(mt.ones(3)).tolist() == [2.0] * 3
        (left,) = tmp_path.glob(".new-*")
    (left / "mine.txt").write_text("mine")
    (tmp_path / ".new-link").symlink_to(left)
    scaled(3.0).save(tmp_path)
    assert mt.load_frozen(tmp_path)(mt.ones(3)).tolist() == [3.0] * 3
    assert {path.name for path in tmp_path.glob(".new-*")} == {left.name, ".new-link"}
    assert [path.name for path in left.iterdir()] == ["mine.txt"]
    (left / "mine.txt").unlink()
    scaled(2.0).save(tmp_path)
    assert {path.name for path in tmp_path.glob(".new-*")} == {".new-link"}


def test_a_save_waits_for_one_that_lives(tmp_path: Path) -> None:
    """And does not take its files for leftovers."""
    pytest.importorskip("fcntl")
    with saving(tmp_path, 2, "waits") as child:
        (mine,) = tmp_path.glob(".new-*")
        other = threading.Thread(target=scaled(3.0).save, args=(tmp_path,))
        other.start()
        other.join(0.3)
        assert other.is_alive() and len(list(mine.iterdir())) == 1
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait() == 0
        other.join()
    assert mt.load_frozen(tmp_path)(mt.ones(3)).tolist() == [3.0] * 3 and len(list(tmp_path.iterdir())) == 3


# Beside others --------------------------------------------------------------------------------------------------


def test_explain_is_kept(saved: Path, tmp_path: Path) -> None:
    """Operations, bytes, FLOPs, source lines, scales and shifts are as they were, also after the second time."""
    frozen = mt.freeze(model(), mt.ones(2, 2, 6, 6))
    frozen.save(tmp_path / "one")
    loaded = mt.load_frozen(tmp_path / "one")
    assert str(loaded.explain()) == str(frozen.explain())
    (before,), (after,) = frozen.explain().signatures, loaded.explain().signatures
    assert (before.operations, before.bytes, before.flops) == (after.operations, after.bytes, after.flops)
    assert before.operations > 0 and before.decisions == after.decisions != () and "test_frozen_files.py:" in str(after)
    loaded.save(tmp_path / "two")
    assert str(mt.load_frozen(tmp_path / "two").explain()) == str(frozen.explain())


def scaled(factor: float) -> Any:
    weight = mt.full((3,), factor)
    return mt.freeze(lambda x: x * weight, mt.ones(3))


@pytest.mark.parametrize("when", ["_graph", "_constants", "_content"])
def test_a_program_that_is_replaced_while_it_is_read_is_read_again(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled(2.0).save(tmp_path)
    real, others = getattr(programs, when), iter([scaled(3.0), scaled(4.0)])

    def late(*args: Any) -> Any:
        other = next(others, None)
        if other is not None:
            other.save(tmp_path)
        return real(*args)

    monkeypatch.setattr(programs, when, late)
    assert mt.load_frozen(tmp_path)(mt.ones(3)).tolist() == [4.0] * 3


def test_reading_and_saving_at_once(tmp_path: Path) -> None:
    """Of three threads that save, and three that load: each load is one of the programs, and one is left."""
    versions = {factor: scaled(factor) for factor in (1.0, 2.0, 3.0)}
    versions[1.0].save(tmp_path)
    found: list[list[float]] = []
    errors: list[BaseException] = []

    def run(work: Callable[[], Any]) -> None:
        try:
            for _ in range(12):
                work()
        except BaseException as error:
            errors.append(error)

    jobs: list[Callable[[], Any]] = [partial(each.save, tmp_path) for each in versions.values()]
    jobs += [lambda: found.append(mt.load_frozen(tmp_path, "interpret")(mt.ones(3)).tolist())] * 3
    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert len(found) == 36 and all(each in ([1.0] * 3, [2.0] * 3, [3.0] * 3) for each in found)
    assert len(list(tmp_path.iterdir())) == 3


def test_what_else_is_in_the_folder_stays(tmp_path: Path) -> None:
    """Other files, links, and folders with names like ours; what a link points to is not written to."""
    place, away = tmp_path / "program", tmp_path / "away"
    first, second = scaled(2.0), scaled(3.0)
    first.save(place)
    old = {path.name for path in place.iterdir()}
    constants = next(name for name in old if name.startswith("constants-"))
    (place / "README.md").write_text("mine")
    (place / "graph-notes.txt").write_text("mine, too")
    (place / "graph-0123456789abcdef.txt").mkdir()
    away.write_bytes((place / constants).read_bytes())
    (place / constants).unlink()
    (place / constants).symlink_to(away)
    with pytest.raises(FrozenError, match="there is no file constants-"):
        mt.load_frozen(place)
    content = away.read_bytes()
    first.save(place)  # a file takes the place of the link
    assert mt.load_frozen(place)(mt.ones(3)).tolist() == [2.0] * 3
    (place / programs.MANIFEST).rename(tmp_path / "manifest")
    (place / programs.MANIFEST).symlink_to(tmp_path / "manifest")
    second.save(place)
    assert mt.load_frozen(place)(mt.ones(3)).tolist() == [3.0] * 3
    assert away.read_bytes() == content and "2" not in mt.load_frozen(place)(mt.ones(3)).tolist()
    assert (place / "README.md").read_text() == "mine" and (place / "graph-notes.txt").read_text() == "mine, too"
    assert (place / "graph-0123456789abcdef.txt").is_dir()
    assert len(list(place.iterdir())) == 6


def test_arguments_may_have_the_names_of_constants(tmp_path: Path) -> None:
    weight = mt.tensor([1.0, 2.0])
    frozen = mt.freeze(
        lambda constant, argument: constant["0"] - argument["constant.0"] * weight,
        *({"0": mt.ones(2)}, {"constant.0": mt.ones(2)}),
    )
    frozen.save(tmp_path)
    given = {"0": mt.tensor([5.0, 5.0])}, {"constant.0": mt.tensor([1.0, 2.0])}
    assert mt.load_frozen(tmp_path)(*given).tolist() == frozen(*given).tolist() == [4.0, 1.0]


@pytest.mark.parametrize("name", ["../graph-0123456789abcdef.txt", "/etc/passwd", "graph-0123456789abcdef.txt\n", "."])
def test_names_that_climb_out_are_refused(name: str, saved: Path) -> None:
    rewrite_manifest(saved, lambda found: found["signatures"][0]["graph"].update(file=name))
    with pytest.raises(FrozenError, match="where a file is wanted"):
        mt.load_frozen(saved)


# Damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["program.json", "graph-", "constants-"])
def test_every_damaged_byte_is_found(saved: Path, which: str) -> None:
    """Flipped bits, cut ends, added bytes, a missing file."""
    path = next(path for path in saved.iterdir() if path.name.startswith(which))
    whole, source = path.read_bytes(), random.Random(0)
    damaged: list[bytes] = [whole[:-1], whole[: len(whole) // 2], b"", whole + b"\0"]
    for _ in range(25):
        place = source.randrange(len(whole))
        damaged.append(whole[:place] + bytes([whole[place] ^ 1 << source.randrange(8)]) + whole[place + 1 :])
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(FrozenError, match="MT114"):
            mt.load_frozen(saved)
    path.unlink()
    with pytest.raises(FrozenError, match="there is no file"):
        mt.load_frozen(saved)


def without_a_tensor(folder: Path, found: dict[str, Any]) -> None:
    arrays, _ = safetensors.load(folder / found["constants"]["file"])
    arrays.pop(sorted(arrays)[0])
    rewrite_arrays(folder, found, arrays)


def rewrite_arrays(folder: Path, found: dict[str, Any], arrays: dict[str, Any]) -> None:
    safetensors.save(folder / "x", arrays)
    replace_file(folder, found["constants"], (folder / "x").read_bytes())


def with_a_tensor(folder: Path, found: dict[str, Any]) -> None:
    arrays, _ = safetensors.load(folder / found["constants"]["file"])
    rewrite_arrays(folder, found, arrays | {"constant.99": np.ones(3, np.float32)})


def with_another_shape(folder: Path, found: dict[str, Any]) -> None:
    arrays, _ = safetensors.load(folder / found["constants"]["file"])
    rewrite_arrays(folder, found, {name: array.reshape(-1) for name, array in arrays.items()})


def with_another_type(folder: Path, found: dict[str, Any]) -> None:
    arrays, _ = safetensors.load(folder / found["constants"]["file"])
    rewrite_arrays(folder, found, {name: array.astype(np.int32) for name, array in arrays.items()})


def of_all_memory(folder: Path, found: dict[str, Any]) -> None:
    """A header that announces more than there is memory."""
    header = json.dumps({"constant.0": {"dtype": "F32", "shape": [1 << 50], "data_offsets": [0, 1 << 52]}}).encode()
    replace_file(folder, found["constants"], len(header).to_bytes(8, "little") + header + b"\0" * 16)


def of_a_graph_with_all_memory(folder: Path, found: dict[str, Any]) -> None:
    entry = found["signatures"][0]["graph"]
    text = (folder / entry["file"]).read_text().replace("constant.0: f32[", "constant.0: f32[1000000000000,", 1)
    replace_file(folder, entry, text.encode())


def of_another_graph(folder: Path, found: dict[str, Any]) -> None:
    replace_file(folder, found["signatures"][0]["graph"], b"graph(x: f32[2]): %0 = neg(x) return %0, %0")


def of_no_graph(folder: Path, found: dict[str, Any]) -> None:
    replace_file(folder, found["signatures"][0]["graph"], b"import os; os.system('true')")


LIES: dict[str, tuple[Callable[[Path, dict[str, Any]], Any], str]] = {
    "missing tensor": (without_a_tensor, r"has no constant\.\d, which a graph reads"),
    "surplus tensor": (with_a_tensor, r"has constant\.99, which no graph reads"),
    "another shape": (with_another_shape, r"constant\.\d is float32\[\d+\] in constants-"),
    "another type": (with_another_type, r"constant\.\d is int32\["),
    "a header of all memory": (of_all_memory, "is not a good safetensors file"),
    "a graph of all memory": (of_a_graph_with_all_memory, r"constant\.0|no listing"),
    "another graph": (of_another_graph, "and the graph"),
    "no graph": (of_no_graph, "is no listing of a graph: MT602"),
    "another format": (lambda folder, found: found.update(format="pickle"), "does not say that it is a minitorch"),
    "another version": (lambda folder, found: found.update(version=2), "it is of version 2, and this is read: 1"),
    "no signatures": (lambda folder, found: found.update(signatures=[]), "names no signatures"),
    "a signature that is none": (lambda folder, found: found.update(signatures=[1]), "names no signatures"),
    "a file elsewhere": (
        lambda folder, found: found["constants"].update(file="../model/x"),
        "names .* where a file is wanted",
    ),
    "no name": (lambda folder, found: found.update(name=3), "does not say the name"),
    "parameters of nothing": (lambda folder, found: found.update(parameters=[3]), "3 is no parameter"),
    "a parameter of no name": (
        lambda folder, found: found["parameters"][0].update(name="a b"),
        "is no parameter: 'a b' is not a valid parameter name",
    ),
    "parameters twice": (lambda folder, found: found.update(parameters=found["parameters"] * 2), "not those of a"),
    "too many arguments": (
        lambda folder, found: found["signatures"][0].update(arguments={"tuple": [{"tuple": []}, {"dict": []}]}),
        "the arguments have 0 tensors, and the graph 1 inputs",
    ),
    "no call": (lambda folder, found: found["signatures"][0].update(arguments={"list": []}), "not those of a call"),
    "results from nowhere": (
        lambda folder, found: found["signatures"][0].update(results={"output": 7}),
        "the results have 1 tensors, and the graph 1 outputs",
    ),
    "results that are none": (lambda folder, found: found["signatures"][0].update(results={"code": "x"}), "is neither"),
    "layouts": (lambda folder, found: found["signatures"][0].update(contiguous=[9]), "no positions of arguments"),
    "an autocast that is none": (
        lambda folder, found: found.update(autocast="float64"),
        "it does not say the autocast",
    ),
    "less than nothing": (
        lambda folder, found: found.update(frozen_bytes=-1),
        "it does not say the autocast and the bytes",
    ),
    "no work": (lambda folder, found: found["signatures"][0].pop("beforehand"), "says nothing of what was done"),
    "work of no operations": (
        lambda folder, found: found["signatures"][0]["beforehand"]["lines"].append(["x.py", 1, 3, 4, 5]),
        "says nothing of what was done beforehand",
    ),
    "work that is none": (
        lambda folder, found: found["signatures"][0]["beforehand"]["decisions"].append(["", "", 3, 0]),
        "says nothing of what was done beforehand",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_found(name: str, saved: Path) -> None:
    """Files whose checksums fit, and that say something else."""
    change, said = LIES[name]
    rewrite_manifest(saved, lambda found: change(saved, found))
    with pytest.raises(FrozenError, match=f"(?s)MT114.*{said}"):
        mt.load_frozen(saved)


def test_random_manifests_are_errors_or_programs(saved: Path) -> None:
    """Values of the manifest exchanged at random: a named error, or a program that runs."""
    whole = (saved / programs.MANIFEST).read_text()

    def places(found: Any) -> list[tuple[Any, Any]]:
        pairs = list(found.items()) if isinstance(found, dict) else list(enumerate(found))
        inner = [place for _, value in pairs if isinstance(value, (dict, list)) for place in places(value)]
        return [*((found, key) for key, _ in pairs), *inner]

    source = random.Random(1)
    for _ in range(60):
        (saved / programs.MANIFEST).write_text(whole)

        def change(found: dict[str, Any]) -> None:
            holder, key = source.choice(places(found))
            holder[key] = source.choice([None, 0, -1, 1 << 70, "", "x", [], {}, [[]], {"tuple": []}, 0.5, True])

        rewrite_manifest(saved, change)
        try:
            loaded = mt.load_frozen(saved)
        except FrozenError:
            continue
        try:
            loaded(mt.ones(2, 2, 6, 6))
        except (MinitorchError, TypeError):
            continue


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(FrozenError, match=r"there is no file program\.json"):
        mt.load_frozen(tmp_path)
    with pytest.raises(FrozenError, match=r"there is no file program\.json"):
        mt.load_frozen(tmp_path / "nothing")


# Sessions -------------------------------------------------------------------------------------------------------


def test_a_session_freezes_its_fetches(tmp_path: Path) -> None:
    layer, unused = nn.Linear(4, 3).eval(), mt.ones(3)
    with mt.Graph() as g:
        x = mt.placeholder((2, 4), name="x")
        shift = mt.placeholder((3,), name="in.shift")
        y = layer(x) * 2 + shift
        step = unused.add_(1)
    session = mt.Session(g)
    frozen = session.freeze({"y": y, "all": [y]})
    values = mt.randn(2, 4), mt.randn(3)
    expected = session.run(y, {x: values[0], shift: values[1]}).numpy()
    assert np.allclose(frozen(*values)["y"].numpy(), expected, rtol=1e-6, atol=1e-6)
    assert np.array_equal(frozen(in_shift=values[1], x=values[0])["all"][0].numpy(), frozen(*values)["y"].numpy())
    turned = session.freeze(y, [shift, x])
    assert np.array_equal(turned(values[1], values[0]).numpy(), frozen(*values)["y"].numpy())
    with mt.no_grad():
        layer.weight.zero_()
    assert np.allclose(frozen(*values)["y"].numpy(), expected, rtol=1e-6, atol=1e-6)
    frozen.save(tmp_path)
    assert np.array_equal(mt.load_frozen(tmp_path)(*values)["y"].numpy(), frozen(*values)["y"].numpy())
    with pytest.raises(TracingError, match=r"MT112.*they write to variables"):
        session.freeze(step)
    with pytest.raises(FeedError, match=r"MT304.*`in\.shift`"):
        session.freeze(y, [x])
    with pytest.raises(FeedError, match="MT301"):
        session.freeze(y, [x, x])
    with pytest.raises(ShapeError, match="MT201"):
        frozen(mt.ones(3, 4), values[1])


def test_arguments_that_are_no_placeholders_are_named() -> None:
    with mt.Graph():
        other = mt.placeholder((3,), name="other")
    with mt.Graph() as g:
        x = mt.placeholder((3,), name="x")
        y = x * 2
    session = mt.Session(g)
    wrong: list[tuple[Any, str]] = [
        (["x"], "argument 0 of the frozen function is 'x', and no placeholder"),
        ([x, y], "argument 1 of the frozen function is a tensor of a graph, made by mul at test_frozen_files"),
        ([other], "is a tensor of a graph, the input `other`, given at .*, and no placeholder of this graph"),
        ([mt.ones(3)], r"is a tensor of numbers, f32\[3\], and no"),
        ([None], "argument 0 of the frozen function is a NoneType"),
        ("x", "the arguments of the frozen function are 'x', and no list of placeholders"),
        (x, "the arguments of the frozen function are a tensor of a graph, the input `x`"),
        ({x: 3}, "are a dict, and no list"),
        (3, "are 3, and no list"),
        ([x, x], "argument 1 of the frozen function is there twice: `x`"),
    ]
    for given, said in wrong:
        with pytest.raises(FeedError, match=f"MT301: .*{said}"):
            session.freeze(y, given)
    assert session.freeze(y, (x,))(mt.ones(3)).tolist() == [2.0] * 3


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(3), nn.Dropout()])
def test_a_session_refuses_training(layer: nn.Module) -> None:
    with mt.Graph() as g:
        y = layer.train()(mt.placeholder((4, 3)))
    with pytest.raises(TracingError, match="MT112"):
        mt.Session(g).freeze(y)
