"""A training for `test_sharding`, written as for one process: FOLDER SHAPE STEPS [STEP AT WHICH ONE IS KILLED]."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import jax
import numpy as np

import minitorch as mt
from minitorch.errors import ShardingError


def main() -> None:
    """Train, save after each step, and try what is refused."""
    mt.sharding.use_virtual_devices(8)
    folder, shape, steps = Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
    killed_at = int(sys.argv[4]) if len(sys.argv) > 4 else None
    place, last = jax.process_index(), jax.process_count() - 1

    mesh = mt.sharding.Mesh(shape, ("data", "model"))
    mt.manual_seed(0)
    model = mt.nn.Sequential(mt.nn.Linear(32, 64), mt.nn.ReLU(), mt.nn.Linear(64, 10))
    axes = {"0.weight": ("model", "data"), "0.bias": ("data",), "2.weight": (None, "model")}
    mt.sharding.shard_module(model, mesh, axes)
    optimizer = mt.optim.Adam(model.parameters(), lr=1e-2)
    draw = np.random.default_rng(0)
    x = mt.sharding.shard(mt.tensor(draw.standard_normal((64, 32)).astype(np.float32)), mesh, ("data", None))
    y = mt.sharding.shard(mt.tensor(draw.integers(0, 10, 64)), mesh, ("data",))

    @mt.jit(backend="xla")
    def step(x, y):
        optimizer.zero_grad()
        loss = mt.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    begun = 0
    if folder.exists():
        begun = mt.load(folder, into={"model": model, "optimizer": optimizer})["steps"]
        with mt.export.Checkpoint(folder) as checkpoint:
            assert list(checkpoint) and checkpoint["model.0.weight"].shape == (64, 32)
    print("begins at", begun, flush=True)
    for number in range(begun, steps):
        loss = step(x, y).item()
        if number == killed_at and place == last and begun == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        print(number, repr(loss), flush=True)
        mt.save({"model": model, "optimizer": optimizer, "steps": number + 1}, folder)

    if last:
        try:
            step(x, mt.full((64,), 10))
        except IndexError as error:
            print(error)
        try:
            x.numpy()
        except ShardingError as error:
            print(error.code)
        whole = mt.sharding.shard(x, mesh, ())
        assert float(whole.numpy().sum()) != 0
        try:
            mt.save(model, folder / "one.safetensors")
        except mt.errors.CheckpointError as error:
            print(error.code)


if __name__ == "__main__":
    main()
