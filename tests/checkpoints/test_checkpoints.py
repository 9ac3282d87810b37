"""`mt.save` and `mt.load`: what is saved comes back, in one step or not at all; files of others are not trusted."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from fuzz import checkpoints as fuzzing
from minitorch import dtypes
from minitorch.errors import CheckpointError
from minitorch_checkpoints import safetensors
from minitorch_checkpoints.checkpoints import index, regions


def bits(value: Any) -> Any:
    """Data with the bits of tensors in their places, so that two can be compared."""
    if isinstance(value, dict):
        return {key: bits(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(bits, value))
    if isinstance(value, mt.Tensor):
        return (value.dtype.name, value.shape, value._value.tobytes())
    return repr(value)


def network() -> mt.nn.Module:
    return mt.nn.Sequential(mt.nn.Linear(4, 8), mt.nn.BatchNorm1d(8), mt.nn.Dropout(0.5), mt.nn.Linear(8, 2))


NESTED: list[Any] = [
    {"epoch": 3, "best": float("-inf"), "lost": float("nan"), "names": ["a", "b"], "pair": (1, 0.1, None, True)},
    {0: {"x": mt.arange(3)}, "1": [mt.ones(2), ()], "empty": {}},
    {"state": {"w": mt.zeros(2, 0)}, "large": 2**100, "text": '"ü\n'},
    [mt.tensor(1.5), {"a": mt.tensor([True, False])}],
    random.Random(0).getstate(),
]


@pytest.mark.parametrize("value", NESTED, ids=range(len(NESTED)))
@pytest.mark.parametrize("path", ["x.safetensors", "folder"])
def test_nested_data_comes_back(value: Any, path: str, tmp_path: Path) -> None:
    mt.save(value, tmp_path / path)
    assert bits(mt.load(tmp_path / path)) == bits(value)


def test_every_type_comes_back(tmp_path: Path) -> None:
    value = {dtype.name: mt.tensor([[0, 1], [1, 1]]).to(dtype).T for dtype in dtypes.ALL}
    mt.save(value, tmp_path / "x.safetensors")
    assert bits(mt.load(tmp_path / "x.safetensors")) == bits(value)


def test_a_plain_state_is_a_plain_file(tmp_path: Path) -> None:
    """Nothing but what Hugging Face writes: transformers asks for the format."""
    model = network()
    mt.save(model, tmp_path / "x.safetensors", metadata={"license": "mit"})
    arrays, metadata = safetensors.load(tmp_path / "x.safetensors")
    assert metadata == {"format": "pt", "license": "mit"}
    assert arrays.keys() == model.state_dict().keys()


def test_shards_are_cut_as_hugging_face_cuts_them(tmp_path: Path) -> None:
    """The example in `split_state_dict_into_shards_factory`, and a tensor that is over the limit."""
    sizes = {"a": 6, "b": 6, "c": 2, "d": 6, "e": 2, "f": 2, "g": 11}
    value = {name: mt.full((size,), ord(name), dtype=mt.uint8) for name, size in sizes.items()}
    mt.save(value, tmp_path, max_shard_size=10)
    found = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    name = "model-{:05d}-of-00004.safetensors".format
    files = {"a": 1, "b": 2, "c": 2, "d": 3, "e": 3, "f": 3, "g": 4}
    assert found == {"metadata": {"total_size": 35}, "weight_map": {key: name(file) for key, file in files.items()}}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *map(name, (1, 2, 3, 4)),
        "model.safetensors.index.json",
    ]
    assert safetensors.load(tmp_path / name(2))[1] == {"format": "pt"}
    for path in (tmp_path, tmp_path / "model.safetensors.index.json"):
        assert bits(mt.load(path)) == bits(value)
    mt.save({"a": mt.ones(1)}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("limit", [4, "1KB", "5GB"])
def test_tied_tensors_are_written_once(limit: Any, tmp_path: Path) -> None:
    class Tied(mt.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = mt.nn.Embedding(5, 3)
            self.head = mt.nn.Linear(3, 5, bias=False)
            self.head.weight = self.embedding.weight

    model, other = Tied(), Tied()
    mt.save(model, tmp_path, max_shard_size=limit)
    with mt.export.Checkpoint(tmp_path) as checkpoint:
        assert checkpoint.tied == {"head.weight": "embedding.weight"}
        assert checkpoint["head.weight"] is checkpoint["embedding.weight"]
    mt.load(tmp_path, into=other)
    assert bits(other.state_dict()) == bits(model.state_dict()) and other.head.weight is other.embedding.weight
    mt.save({"embedding.weight": model.embedding.weight}, tmp_path / "one.safetensors")  # without the metadata
    assert mt.load(tmp_path / "one.safetensors", into=other) == (["head.weight"], [])


# One step or none -----------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The end of the process."""


@pytest.mark.parametrize("was", [1, 4, None])
@pytest.mark.parametrize("will", [1, 4, None])
def test_a_save_that_is_killed_anywhere_leaves_the_old_or_the_new(
    was: int | None, will: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends before any of its calls of the system: nothing is cleaned up, as nothing is by a killed process."""
    old, new = ({name: mt.full((4,), number) for name in "abc"} for number in (1.0, 2.0))

    def saved(value: Any, files: int | None) -> None:
        mt.save(value, tmp_path / "c", max_shard_size="5GB" if files is None else 16 * files)

    steps = 0
    for stop in range(1000):
        saved(old, was)
        left = stop

        def counted(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                if left <= 0:
                    raise Killed
                left -= 1
                return real(*arguments, **options)

            return call

        with monkeypatch.context() as patch:
            for name in ("replace", "fsync", "unlink", "rmdir", "mkdir", "open"):
                patch.setattr(os, name, counted(getattr(os, name)))
            try:
                saved(new, will)
            except Killed:
                steps += 1
            else:
                break
        assert bits(mt.load(tmp_path / "c")) in (bits(old), bits(new))
    saved(new, will)
    assert bits(mt.load(tmp_path / "c")) == bits(new)
    assert not [path for path in (tmp_path / "c").iterdir() if not index.OURS.fullmatch(path.name)]
    assert steps >= 4


TRAINING = """
import sys
import minitorch as mt
import minitorch.nn.functional as F

path, end, log = sys.argv[1], int(sys.argv[2]), sys.argv[3]
mt.manual_seed(int(sys.argv[4]))
model = mt.nn.Sequential(mt.nn.Linear(4, 8), mt.nn.BatchNorm1d(8), mt.nn.Dropout(0.5), mt.nn.Linear(8, 2))
optimizer = mt.optim.AdamW(model.parameters(), lr=0.1)
scheduler = mt.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
scaler = mt.amp.GradScaler("cpu", growth_interval=3)
training = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler,
            "random": mt.default_generator, "epoch": 0}
objects = {name: each for name, each in training.items() if name != "epoch"}
try:
    begin = mt.load(path, into=objects)["epoch"]
except FileNotFoundError:
    begin = 0
for epoch in range(begin, end):
    x = mt.randn(16, 4)
    loss = F.cross_entropy(model(x), (x.sum(dim=1) > 0).long())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    with open(log, "a") as file:
        print(epoch, loss.item().hex(), file=file)
    mt.save(training | {"epoch": epoch + 1}, path)
    if "die" in sys.argv and epoch == begin + 2:
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_training_goes_on_with_the_same_losses(tmp_path: Path) -> None:
    def run(name: str, seed: int, *more: str) -> int:
        arguments = [str(tmp_path / f"{name}.safetensors"), "8", str(tmp_path / f"{name}.log"), str(seed), *more]
        return subprocess.run([sys.executable, "-c", TRAINING, *arguments], check=False).returncode

    assert run("whole", 1) == 0
    assert run("parts", 1, "die") < 0
    assert run("parts", 99, "die") < 0
    assert run("parts", 98) == 0
    lines = (tmp_path / "whole.log").read_text().splitlines()
    assert (tmp_path / "parts.log").read_text().splitlines() == lines and len(lines) == 8


# Loading into what is there -------------------------------------------------------------------------------------------


def test_all_that_does_not_fit_is_listed_and_nothing_is_loaded(tmp_path: Path) -> None:
    model = mt.nn.Sequential(mt.nn.Linear(2, 3), mt.nn.Linear(3, 1))
    before = bits(model.state_dict())
    wrong = {"0.weight": mt.zeros(3, 2), "0.bias": mt.zeros(3).half(), "1.weight": mt.zeros(3), "x": mt.zeros(1)}
    mt.save({"net": wrong}, tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError) as caught:
        mt.load(tmp_path / "x.safetensors", into={"net": model, "other": model})
    assert caught.value.code == "MT805" and caught.value.what.splitlines()[1:] == [
        "    missing: net.1.bias",
        "    unexpected: net.x",
        "    net.0.bias is f32[3] in the module and f16[3] in the checkpoint",
        "    net.1.weight is f32[1,3] in the module and f32[3] in the checkpoint",
        "    missing: other",
    ]
    assert bits(model.state_dict()) == before


def test_types_are_converted_if_asked(tmp_path: Path) -> None:
    model = mt.nn.Linear(2, 1)
    mt.save({"weight": mt.ones(1, 2).bfloat16(), "bias": mt.ones(1)}, tmp_path / "x.safetensors")
    mt.load(tmp_path / "x.safetensors", into=model, cast=True)
    assert model.weight.tolist() == [[1.0, 1.0]] and model.weight.dtype is mt.float32


def test_loading_notices_that_backward_needs_the_old_values(tmp_path: Path) -> None:
    model = mt.nn.Linear(2, 2)
    loss = model(mt.ones(1, 2).requires_grad_()).sum()
    mt.save(model, tmp_path / "x.safetensors")
    mt.load(tmp_path / "x.safetensors", into=model)
    with pytest.raises(mt.errors.AutogradError, match="MT402"):
        loss.backward()


PEAK = """
import resource, sys
import minitorch as mt
class Model(mt.nn.Module):
    def __init__(self):
        super().__init__()
        for number in range(4):
            setattr(self, f"w{number}", mt.nn.Parameter(mt.zeros(1 << 22)))
model = Model()
for name, each in model.named_parameters():
    each._value[:] = 1.0  # so that the pages are there
mt.load(sys.argv[1] + "x", into=mt.nn.Linear(1, 1))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
mt.load(sys.argv[1], into=model)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
def test_loading_into_a_module_takes_no_more_memory(tmp_path: Path) -> None:
    """A model of 64 MiB: the memory of the process does not even grow by a quarter of it, one tensor."""
    mt.save({f"w{number}": mt.ones(1 << 22) for number in range(4)}, tmp_path / "c")
    mt.save(mt.nn.Linear(1, 1), tmp_path / "cx")
    command = [sys.executable, "-c", PEAK, str(tmp_path / "c")]
    grown = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert grown < 16 << 10


# Parts ----------------------------------------------------------------------------------------------------------------


def boxes(count: int) -> Iterator[tuple[Any, list[slice]]]:
    chance = random.Random(3)
    for _ in range(count):
        shape = tuple(chance.choice([0, 1, 2, 3, 5, 17]) for _ in range(chance.randrange(5)))
        given = [sorted((chance.randint(0, length), chance.randint(0, length))) for length in shape]
        yield shape, [slice(*each) for each in given][: chance.randint(0, len(shape))]


def test_a_part_is_what_the_slice_of_the_whole_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = list(boxes(300))
    whole = {f"{place}": mt.arange(int(np.prod(shape))).reshape(shape) for place, (shape, _) in enumerate(cases)}
    mt.save(whole, tmp_path / "x.safetensors")
    for gap, scratch in [(4096, 1 << 20), (1, 1 << 20), (64, 64), (4096, 100)]:
        monkeypatch.setattr(regions, "GAP", gap)
        monkeypatch.setattr(regions, "MOST_SCRATCH", scratch)
        with mt.export.Checkpoint(tmp_path / "x.safetensors") as checkpoint:
            for place, (_, slices) in enumerate(cases):
                before = checkpoint.bytes_read
                found = checkpoint.load_slice(str(place), slices)
                wanted = whole[str(place)].numpy()[tuple(slices)]
                assert found.shape == wanted.shape and (found.numpy() == wanted).all(), (gap, scratch, place)
                assert gap > 1 or checkpoint.bytes_read - before == wanted.nbytes
                assert checkpoint.bytes_read - before <= whole[str(place)].nbytes


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    mt.save({"a": mt.zeros(1000, 1024), "b": mt.ones(3)}, tmp_path / "x.safetensors")
    with mt.export.Checkpoint(tmp_path / "x.safetensors") as checkpoint:
        assert sorted(checkpoint) == ["a", "b"] and checkpoint.spec("a").shape == (1000, 1024)
        assert checkpoint.bytes_read == 0
        assert checkpoint["b"].tolist() == [1, 1, 1] and checkpoint.bytes_read == 12
        assert checkpoint.load_slice("a", [slice(7, 9)]).shape == (2, 1024) and checkpoint.bytes_read == 12 + 8192
        assert checkpoint.load_slice("a", [slice(None), slice(0, 1)]).shape == (1000, 1)
        wrongs: list[tuple[Any, type[Exception]]] = [
            ([slice(0, 2, 2)], TypeError),
            ([0], TypeError),
            ([slice(1)] * 3, IndexError),
        ]
        for wrong, error in wrongs:
            with pytest.raises(error):
                checkpoint.load_slice("a", wrong)


# Files from elsewhere -------------------------------------------------------------------------------------------------


def spoil(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    found = json.loads((folder / index.INDEX).read_text())
    change(found)
    (folder / index.INDEX).write_text(json.dumps(found))


def linked(folder: Path) -> None:
    (folder / "model-00001-of-00002.safetensors").rename(folder.parent / "elsewhere")
    (folder / "model-00001-of-00002.safetensors").symlink_to(folder.parent / "elsewhere")


def structured(text: str) -> Callable[[Path], None]:
    return lambda folder: spoil(folder, lambda found: found["metadata"].update(minitorch=text))


SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "out of the folder": (lambda f: spoil(f, lambda i: i["weight_map"].update(a="../x")), "names the file '../x'"),
    "an absolute path": (lambda f: spoil(f, lambda i: i["weight_map"].update(a="/etc/passwd")), "nothing outside"),
    "the folder itself": (lambda f: spoil(f, lambda i: i["weight_map"].update(a="..")), "names the file"),
    "a link": (linked, "is a link to another place"),
    "a file that is not there": (lambda f: spoil(f, lambda i: i["weight_map"].update(a="b")), "which is not there"),
    "another file": (
        lambda f: spoil(f, lambda i: i["weight_map"].update(a=i["weight_map"]["b"], b=i["weight_map"]["a"])),
        "which model.safetensors.index.json does not say",
    ),
    "a name too many": (lambda f: spoil(f, lambda i: i["weight_map"].update(c=i["weight_map"]["b"])), "is not in"),
    "a name too few": (lambda f: spoil(f, lambda i: i["weight_map"].pop("b")), ""),
    "a name twice": (
        lambda f: (f / index.INDEX).write_text('{"weight_map": {"a": "x", "a": "y"}}'),
        "a name is there twice",
    ),
    "no map": (lambda f: (f / index.INDEX).write_text("{}"), "has no weight_map"),
    "no object": (lambda f: (f / index.INDEX).write_text("[]"), "begin with"),
    "a pipe": (lambda f: (os.unlink(f / index.INDEX), os.mkfifo(f / index.INDEX)), "is not a file"),
    "a structure of other names": (structured('{"dict": [["a", {"tensor": "a"}]]}'), "do not fit"),
    "a structure of nothing known": (structured('{"code": "import os"}'), "is nothing known"),
    "a key twice": (structured('{"dict": [["a", 1], ["a", 2]]}'), "twice"),
    "a deep structure": (structured("[" * 300 + "]" * 300), "too deep"),
    "a deeper structure": (structured("[" * 100_000), "no JSON"),
    "a number of digits": (structured("1" * 10_000), "no JSON"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes")
@pytest.mark.parametrize("name", SPOILT)
def test_spoilt_folders_are_refused(name: str, tmp_path: Path) -> None:
    change, words = SPOILT[name]
    mt.save({"a": mt.ones(4), "b": mt.zeros(4)}, tmp_path / "c", max_shard_size=16)
    change(tmp_path / "c")
    if name == "a name too few":
        assert list(mt.load(tmp_path / "c")) == ["a"]  # the other file is none of the checkpoint's
        return
    with pytest.raises(CheckpointError, match=words) as caught:
        mt.load(tmp_path / "c")
    assert caught.value.code == "MT804"


def test_links_into_the_store_of_hugging_faces_cache_are_followed(tmp_path: Path) -> None:
    snapshot, store = tmp_path / "models--x" / "snapshots" / "abc", tmp_path / "models--x" / "blobs"
    mt.save({"a": mt.ones(4), "b": mt.zeros(4)}, snapshot, max_shard_size=16)
    store.mkdir()
    for number, path in enumerate(list(snapshot.iterdir())):
        path.rename(store / str(number))
        path.symlink_to(Path("..", "..", "blobs", str(number)))
    assert mt.load(snapshot)["a"].tolist() == [1.0] * 4


@pytest.mark.parametrize("content", [b"\x80\x02}q\x00.", b"\x80\x04\x95" + bytes(10)])
def test_pickles_are_refused_with_what_to_do(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(content)
    for path in (tmp_path, tmp_path / "pytorch_model.bin"):
        with pytest.raises(CheckpointError, match=r"(?s)MT804.*run any code.*save_file"):
            mt.load(path)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"f": print}, "f is of type builtin"),
        ({"a.b": mt.ones(1), "a": {"b": mt.ones(1)}}, "two tensors would have the name 'a.b'"),
        ({(1, 2): mt.ones(1)}, "a key of the dict"),
        ({"x": np.zeros(1, np.complex64)}, "complex64"),
    ],
)
def test_what_cannot_be_saved(value: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=words) as caught:
        mt.save(value, tmp_path / "x.safetensors")
    assert caught.value.code == "MT806" and not list(tmp_path.iterdir())


def test_what_other_threads_open_is_not_held_against_loading() -> None:
    done = threading.Event()

    def looking() -> None:
        while not done.is_set():
            Path(__file__).read_bytes()

    beside = threading.Thread(target=looking)
    beside.start()
    try:
        assert {result for _, result in fuzzing.campaign(islice(count(7), 40))} <= {"read", "refused"}
    finally:
        done.set()
        beside.join()


def test_mutated_files_are_read_or_refused() -> None:
    """A part of `python -m fuzz.checkpoints`; and what it looks for, it finds."""
    results = [result for _, result in fuzzing.campaign(islice(count(7), 400))]
    assert set(results) == {"read", "refused"}, [each for each in results if each not in ("read", "refused")]

    def careless(path: Path) -> Any:
        if (path / index.INDEX).exists():
            for name in json.loads((path / index.INDEX).read_bytes())["weight_map"].values():
                (path / name).read_bytes()
        return bytes(1 << 22)

    found = " ".join(result for _, result in fuzzing.campaign(islice(count(7), 400), careless))
    assert "it took" in found and "JSONDecodeError" in found and "it opened " in found
