"""The folder of a checkpoint: how its files are called, and the index that says which tensor is in which of them.

The layout is that of Hugging Face's libraries (`huggingface_hub.save_torch_state_dict`): one file, `model.safetensors`,
or shards `model-00001-of-00003.safetensors` and their index, `model.safetensors.index.json`:

    {"metadata": {"total_size": bytes, ...}, "weight_map": {"name of a tensor": "name of a file", ...}}
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from minitorch.errors import CheckpointError

from .. import opening, safetensors

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
OURS = re.compile(r"model(\.next)?(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?")
MOST_SHARDS = 10_000  # files of a checkpoint; raising it accepts more of them
PICKLES = {".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"}
TO_CONVERT = (
    "convert it where it was made: "
    "safetensors.torch.save_file(torch.load(path, weights_only=True), 'model.safetensors')"
)


@dataclass(frozen=True)
class Index:
    """What an index says.

    Attributes:
        files: the name of a file for each tensor.
        metadata: its texts.
    """

    files: Mapping[str, str]
    metadata: Mapping[str, str]


def refuse(what: str, *, why: str | None = None, fix: str | None = None) -> NoReturn:
    """Raise the error for a checkpoint that cannot be read (``MT804``)."""
    raise CheckpointError("MT804", what, why=why, fix=fix)


def found_at(path: Path) -> Path:
    """The file to begin with: a safetensors file or an index, for a path to one of them or to their folder.

    Raises:
        CheckpointError: for a folder without a checkpoint, and for a pickle (``MT804``).
    """
    if not path.is_dir():
        return path
    for name in (SINGLE, INDEX):
        if os.path.lexists(path / name):
            return path / name
    others = sorted(each for suffix in ("safetensors.index.json", "safetensors") for each in path.glob(f"*.{suffix}"))
    indices = [each for each in others if each.suffix == ".json"]
    if len(indices or others) == 1:
        return (indices or others)[0]
    if others:
        refuse(
            f"{path} has several checkpoints: {', '.join(each.name for each in others[:8])}",
            fix="give the path of one of these files",
        )
    pickles = sorted(each.name for each in path.iterdir() if each.suffix in PICKLES)
    if pickles:
        refuse_pickle(path / pickles[0])
    refuse(f"{path} has neither {SINGLE} nor {INDEX}", fix="give the folder that mt.save was given")


def refuse_pickle(path: Path) -> NoReturn:
    """Raise the error for a file of torch.save, or another pickle."""
    refuse(
        f"{path} is a pickle or an archive, such as torch.save and np.savez write, and no safetensors file",
        why="a pickle can run any code while it is read, so none is read here",
        fix=TO_CONVERT,
    )


def opened(path: Path, is_named: bool = True) -> BinaryIO:
    """A file, opened to be read: a regular one.

    Args:
        path: of the file.
        is_named: whether the user gave it; else something in the folder did, and a link is followed only into the store
            of Hugging Face's cache, where ``snapshots/*/model.safetensors`` links to ``blobs/*``.

    Raises:
        CheckpointError: for anything else (``MT804``).
        OSError: if it cannot be opened.
    """
    if not is_named and path.is_symlink():
        target = Path(os.path.realpath(path))
        snapshot = Path(os.path.realpath(path.parent))
        if snapshot.parent.name != "snapshots" or target.parent != snapshot.parent.parent / "blobs":
            refuse(f"{path} is a link to another place", fix="copy the file in its place")
        path = target
    try:
        return opening.regular(path, is_named)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        refuse(f"{path} is not a file")


def stamp(path: Path) -> object:
    """The state of the files of a checkpoint, which differs when it is replaced: which there are, and since when."""
    if not path.is_dir():
        if path.suffix != ".json":
            return None  # one file, which is opened in one step
        path = path.parent
    found = []
    for entry in os.scandir(path):
        with suppress(OSError):  # it is gone, and by that the stamp another one
            if entry.name.endswith((".safetensors", ".safetensors.index.json")):
                state = entry.stat(follow_symlinks=False)
                found.append((entry.name, state.st_ino, state.st_mtime_ns, state.st_size))
    return sorted(found)


def read(path: Path, is_named: bool = True) -> Index:
    """An index, checked: every tensor is in a file of the same folder, with a plain name.

    Raises:
        CheckpointError: naming the rule that it breaks (``MT804``).
        OSError: if it cannot be opened.
    """
    with opened(path, is_named) as file:
        size = os.fstat(file.fileno()).st_size
        if size > safetensors.MOST_HEADER:
            refuse(f"{path} has {size} bytes, and an index has {safetensors.MOST_HEADER} at most")
        text = file.read(size)
    found = safetensors.parsed(text.lstrip(), path)
    files, metadata = found.get("weight_map"), found.get("metadata", {})
    if not isinstance(files, dict) or not all(isinstance(each, str) for each in files.values()):
        refuse(f"{path} has no weight_map, from names of tensors to names of files")
    if not isinstance(metadata, dict):
        refuse(f"{path} has metadata that is no object")
    names = set(files.values())
    if len(names) > MOST_SHARDS:
        refuse(f"{path} names {len(names)} files, and {MOST_SHARDS} are the most")
    for name in sorted(names):
        if not name or name in (".", "..") or set(name) & set("/\\:\0") or not name.isprintable():
            refuse(
                f"{path} names the file {name!r:.60}",
                why="the files of a checkpoint lie in one folder, and nothing outside of it is read",
            )
    return Index(files, {key: value for key, value in metadata.items() if isinstance(value, str)})


def written(files: Mapping[str, str], total_size: int, metadata: Mapping[str, str]) -> bytes:
    """The bytes of an index, as `huggingface_hub` writes it."""
    index = {"metadata": {"total_size": total_size, **metadata}, "weight_map": dict(files)}
    return json.dumps(index, indent=2).encode()


def shard_names(folder: Path, count: int) -> list[str]:
    """Names for the shards of a new checkpoint: none of them is used by the one that is there, if one is.

    That stays complete until the new index takes the place of its own. So where one is replaced by another one of as
    many shards, the files are called ``model.next-…``, and the next time ``model-…`` again.
    """
    used: set[str] = set()
    if (folder / INDEX).exists():
        try:
            used = set(read(folder / INDEX, is_named=False).files.values())
        except CheckpointError:  # damaged: nothing is kept
            used = set()
    for stem in ("model", "model.next"):
        names = [f"{stem}-{number:05d}-of-{count:05d}.safetensors" for number in range(1, count + 1)]
        if not used & set(names):
            return names
    return names  # an index by another program


def remove_others(folder: Path, kept: Iterable[str]) -> None:
    """Remove the files of earlier checkpoints, as `huggingface_hub` does."""
    names = set(kept)
    for path in folder.iterdir():
        if OURS.fullmatch(path.name) and path.name not in names and (path.is_symlink() or path.is_file()):
            path.unlink()


def text_of(value: Any) -> str:
    """Data in JSON, on one line."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
