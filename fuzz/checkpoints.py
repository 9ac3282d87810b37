"""`python -m fuzz.checkpoints`: mutated safetensors files, indices and structures are read, or refused by name.

Each file is made from a good checkpoint and a seed. `mt.load` has to give a value or a `CheckpointError`, has to open
nothing outside of the folder, and may take memory in proportion to the bytes of the files alone.
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import minitorch as mt
from minitorch.errors import CheckpointError
from minitorch_checkpoints import safetensors
from minitorch_checkpoints.checkpoints import pieces

from .files import Files, Watch, command, put

MEMORY = 1 << 20, 100  # bytes that a load may take, and bytes for each byte of the files
NUMBERS = [
    b"0",
    b"1",
    b"-1",
    b"8",
    b"1e9",
    b"4294967296",
    b"9223372036854775808",
    b"1" * 5000,
    b"NaN",
    b"null",
    b"[]",
    b"{}",
]
TEXTS = [
    b'"F64"',
    b'"U16"',
    b'"F4"',
    b'"BOOL"',
    b'"../x"',
    b'"/etc/passwd"',
    b'"' + b"x" * 300 + b'"',
    b'"\\ud800"',
    b'"a"',
]
FILE = re.compile(rb'"model[^"\\]*\.safetensors"')
TOKEN = re.compile(rb'"[^"\\]*"|-?\d+|[\[\]{},:]')


def good() -> list[Files]:
    """The files of some checkpoints."""
    model = mt.nn.Sequential(mt.nn.Linear(3, 2), mt.nn.BatchNorm1d(2))
    training = {"model": model, "optimizer": mt.optim.Adam(model.parameters()), "epoch": 3, "random": mt.Generator(0)}
    flags = {"a": mt.tensor([True, False]), "b": mt.ones(2, 3).bfloat16(), "c": mt.zeros(0, 2)}
    found = []
    cases: list[tuple[Any, int | str]] = [(model, "5GB"), (training, "5GB"), (flags, "5GB"), (training, 40), (flags, 4)]
    for value, limit in cases:
        with tempfile.TemporaryDirectory() as folder:
            mt.save(value, folder, max_shard_size=limit)
            found.append({path.name: path.read_bytes() for path in Path(folder).iterdir()})
    parts = {f"w[{start}:{start + 2}, 0:3]": np.ones((2, 3), np.float32) for start in (0, 2)}
    shapes = {"w": ((4, 3), [((0, 2), (0, 3)), ((2, 4), (0, 3))])}
    found.append({"model.safetensors": safetensors.encode(parts, {pieces.PIECES: pieces.written(shapes)})})
    return found


def mutated(content: bytes, chance: random.Random) -> bytes:
    """The bytes with a few changes, most of them in the header."""
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        place = chance.randrange(min(len(content), chance.choice([8, 600, 1 << 20])) or 1)
        tokens = list(TOKEN.finditer(content))
        kind = chance.randrange(8)
        if kind == 0:
            content = content[:place] + bytes([chance.randrange(256)]) + content[place + 1 :]
        elif kind == 1:
            content = content[:place] + content[place + chance.randrange(1, 20) :]
        elif kind == 2:
            content = content[:place] + chance.randbytes(chance.randrange(1, 9)) + content[place:]
        elif kind == 3:
            content = content[:place]
        elif tokens:
            token, other = chance.choice(tokens), chance.choice(tokens)
            new = chance.choice([other[0], chance.choice(NUMBERS), chance.choice(TEXTS), b"", token[0] * 2])
            if kind == 7 and (named := list(FILE.finditer(content))):
                token, new = chance.choice(named), chance.choice([*TEXTS, chance.choice(named)[0]])
            changed = content[: token.start()] + new + content[token.end() :]
            length = int.from_bytes(content[:8], "little")
            if kind > 4 and 8 < token.end() <= 8 + length <= len(content):  # the header's length, kept true
                changed = (length + len(changed) - len(content)).to_bytes(8, "little") + changed[8:]
            content = changed
    return content


def campaign(
    seeds: Iterator[int], load: Callable[[Path], Any] = mt.load, memory: tuple[int, int] = MEMORY
) -> Iterator[tuple[int, str]]:
    """How each seed ends: "read", "refused", or the finding."""
    checkpoints, watch = good(), Watch()
    with tempfile.TemporaryDirectory(prefix="minitorch-fuzz-") as place:
        folder = Path(os.path.realpath(place))
        for seed in seeds:
            chance = random.Random(seed)
            files = dict(chance.choice(checkpoints))
            names = sorted(files)
            name = names[-1] if chance.random() < 0.4 else chance.choice(names)
            files[name] = mutated(files[name], chance)
            put(folder, files)
            try:
                with watch.watching():
                    load(folder)
                result = "read"
            except CheckpointError as error:
                result = "refused" if error.code == "MT804" else f"{error}"
            except Exception as error:
                result = f"{type(error).__name__}: {error}"
            if outside := watch.outside(folder):
                result = f"it opened {outside}"
            if watch.peak > memory[0] + memory[1] * sum(map(len, files.values())):
                result = f"it took {watch.peak} bytes"
            yield seed, result


if __name__ == "__main__":
    sys.exit(command("python -m fuzz.checkpoints", __doc__, campaign, ("read", "refused")))
