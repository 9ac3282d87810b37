"""Sharding, on eight virtual devices in a process of their own: JAX decides once how many there are."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import CheckpointError
from minitorch_checkpoints import safetensors
from minitorch_checkpoints.checkpoints import pieces
from minitorch_xla.sharding.launch import has_address

pytest.importorskip("jax")

ROOT = Path(__file__).parents[2]


def test_programs_on_eight_devices(sweep):
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "tests/xla/eight_devices.py"]
    command += ["--sweep"] if sweep else []
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout.splitlines()[-1]


def trained(*arguments, processes=0, restarts=0):
    """How the training ends, what it prints, and what it says besides."""
    launch = ["-m", "minitorch.sharding.launch", "--processes", processes, "--devices", 4, "--restarts", restarts]
    program = [str(each) for each in ("tests/xla/train_on_mesh.py", *arguments)]
    command = [sys.executable, *(map(str, launch) if processes else ["-m", "tests.xla.train_on_mesh"])]
    command += program if processes else program[1:]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


def losses(lines, prefix=""):
    return [float(line.split()[-1]) for line in lines if re.fullmatch(rf"{re.escape(prefix)}\d+ [-\d.e]+", line)]


@pytest.mark.skipif(not has_address(), reason="the name of this machine has no address")
def test_two_processes_train_as_one_and_go_on_after_one_is_killed(tmp_path):
    status, alone, _ = trained(tmp_path / "alone", "[4, 2]", 6)
    assert status == 0 and len(losses(alone)) == 6

    folder = tmp_path / "together"
    status, lines, errors = trained(folder, "[4, 2]", 4, 2, processes=2, restarts=1)
    assert status == 0, errors[-4000:]
    # The other process ends with 1 when its connection breaks; which of the two is seen first is left to the machine.
    assert re.search(r"launch: a process ended with (137|1); all begin again, 1 restarts are left", errors)
    for place in ("[0] ", "[1] "):
        assert lines.count(f"{place}begins at 0") == 1 and lines.count(f"{place}begins at 2") == 1
        np.testing.assert_allclose(losses(lines, place)[-2:], losses(alone)[2:4], rtol=1e-5)
        assert f"{place}MT204" in lines and f"{place}MT806" in lines
        said = rf"{re.escape(place)}an index is out of bounds, recorded at .*train_on_mesh.py:\d+"
        assert any(re.fullmatch(said, line) for line in lines)
    assert not any("Gloo" in line for line in lines)

    # Each process has written its own parts, and the index names them all.
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    files = sorted(path.name for path in folder.glob("*.safetensors"))
    assert sorted(set(index["weight_map"].values())) == files and len(files) == 2
    divided = json.loads(index["metadata"][pieces.PIECES])
    assert len(divided["model.0.weight"]["boxes"]) == 8
    for file in files:
        arrays, _ = safetensors.load(folder / file)
        assert "model.0.weight" not in arrays
        assert sum(array.size for name, array in arrays.items() if name.startswith("model.0.weight[")) == 64 * 32 // 2

    # It is read as any other: here, whole or in part; and by one process, onto another mesh.
    with mt.export.Checkpoint(folder) as checkpoint:
        whole = checkpoint["model.0.weight"].numpy()
        checkpoint.bytes_read = 0
        part = checkpoint.load_slice("model.0.weight", [slice(5, 40), slice(10, 20)])
        assert (part.numpy() == whole[5:40, 10:20]).all() and whole.shape == (64, 32)
        assert checkpoint.bytes_read <= 64 * 32 * 4
    status, lines, errors = trained(folder, "[2, 4]", 6)
    assert status == 0 and lines[0] == "begins at 4", errors[-2000:]
    np.testing.assert_allclose(losses(lines), losses(alone)[4:], rtol=1e-5)


BOXES = [[[0, 1], [0, 2]], [[1, 3], [0, 2]]]


def divided(folder, boxes=BOXES, shape=(3, 2), kind=np.float32, **more):
    """A checkpoint of parts, written by hand."""
    whole = np.arange(6, dtype=np.float32).reshape(3, 2)
    parts = {"w[0:1, 0:2]": whole[:1], "w[1:3, 0:2]": whole[1:].astype(kind)}
    text = json.dumps({"w": {"shape": list(shape), "boxes": boxes}, **more})
    safetensors.save(folder / "model.safetensors", parts, {pieces.PIECES: text})
    return whole


def test_a_checkpoint_of_parts_has_wholes(tmp_path):
    whole = divided(tmp_path)
    with mt.export.Checkpoint(tmp_path) as checkpoint:
        assert list(checkpoint) == ["w"] and len(checkpoint) == 1 and "w[0:1, 0:2]" not in checkpoint
        assert (checkpoint["w"].numpy() == whole).all()
        assert (checkpoint.load_slice("w", [slice(0, 2), slice(1, 2)]).numpy() == whole[:2, 1:]).all()
        assert checkpoint.load_slice("w", [slice(1, 1)]).shape == (0, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"boxes": BOXES[:1]},
        {"boxes": [*BOXES, BOXES[0]]},
        {"boxes": [[[0, 2], [0, 2]], [[1, 3], [0, 2]]]},
        {"boxes": [[[0, 1], [0, 1]], [[1, 3], [1, 2]]]},
        {"boxes": []},
        {"boxes": [[[0, 1], [0, -2]], BOXES[1]]},
        {"boxes": [[[0, 1]], [[1, 3]]]},
        {"shape": (4, 2)},
        {"shape": (1 << 62, 1 << 62)},
        {"kind": np.float64},
        {"v": {"shape": [1], "boxes": [[[0, 1]]]}},
        {"v": 3},
    ],
    ids=str,
)
def test_parts_that_do_not_fit_are_refused(wrong, tmp_path):
    divided(tmp_path, **wrong)
    with pytest.raises(CheckpointError, match="parts of") as refused:
        mt.load(tmp_path)
    assert refused.value.code == "MT804"
