"""`save`: tensors and structure into one safetensors file, or shards and their index."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import CheckpointError
from ...interpreters import concrete
from ...tensor import Tensor
from .. import publishing, safetensors
from . import index, structure

Array = np.ndarray[Any, Any]

STRUCTURE = "minitorch"  # the metadata's name of the structure
_SIZES = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def save(
    value: Any,
    path: str | os.PathLike[str],
    *,
    max_shard_size: int | str = "5GB",
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a module, a state dict, or nested dicts of what a training needs to go on.

    What is there already is replaced in one step: a save that is killed, or runs out of disk, leaves the old one.
    Tensors that are one in memory (tied weights) are written once, under the first of their names, and the metadata has
    the others, as `safetensors.torch.save_model` does it.

    Args:
        value: tensors, arrays (which come back as tensors), numbers, texts and None, in dicts, lists and tuples; and
            modules, optimisers, schedulers, a `GradScaler` and generators, whose state is written.
        path: a file that ends in ``.safetensors``; otherwise a folder, made if it is not there, in which the files have
            the names that Hugging Face gives them.
        max_shard_size: in a folder, the bytes of tensors in a file, as a number or as in ``"5GB"``. A larger tensor has
            a file of its own.
        metadata: texts to go with it.

    Raises:
        CheckpointError: for what cannot be saved (``MT806``).
        OSError: if it cannot be written.

    Example:
        >>> import os, tempfile, minitorch as mt
        >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
        >>> mt.save({"model": mt.nn.Linear(2, 1), "epoch": 3}, path)
        >>> mt.load(path)["epoch"]
        3
    """
    place = Path(path)
    is_file = place.suffix == ".safetensors"
    if place.suffix in index.PICKLES:
        raise CheckpointError(
            "MT806",
            f"{place} would be taken for a pickle, and a checkpoint is none",
            fix=f"mt.save(value, {place.with_suffix('.safetensors').name!r})",
        )
    limit = _bytes(max_shard_size)
    tensors, found = structure.apart(value)
    arrays = {name: _array(name, tensor) for name, tensor in tensors.items()}
    tied = _tied(arrays)
    kept = {name: array for name, array in arrays.items() if name not in tied}
    specs = {name: safetensors.spec_of(name, array) for name, array in kept.items()}
    texts = {**_checked(metadata or {}, arrays), **tied}
    if not structure.is_flat(found):
        texts[STRUCTURE] = index.text_of(found)

    shards: list[list[str]] = [[]]
    size = 0
    for name, spec in specs.items():
        if size + spec.nbytes > limit and shards[-1] and not is_file:
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += spec.nbytes
    if len(shards) > index.MOST_SHARDS:
        raise CheckpointError(
            "MT806", f"{len(shards)} files, more than {index.MOST_SHARDS}", fix="raise max_shard_size"
        )

    folder = place.parent if is_file else place
    if not is_file:
        folder.mkdir(parents=True, exist_ok=True)
    single = place.name if is_file else index.SINGLE
    own = re.compile(re.escape(single)) if is_file else index.OURS
    with publishing.beside(folder, lambda name: bool(own.fullmatch(name))) as new:
        names = [single] if len(shards) == 1 else index.shard_names(folder, len(shards))
        for file, shard in zip(names, shards, strict=True):
            header = {"format": "pt"} | (texts if len(shards) == 1 else {})
            start, order = safetensors.header_of({name: specs[name] for name in shard}, header)
            publishing.write(new / file, [start])
            with open(new / file, "ab") as stream:
                for name in order:
                    stream.write(safetensors.elements(kept[name]))
                stream.flush()
                os.fsync(stream.fileno())
        if len(shards) > 1:
            files = {name: file for file, shard in zip(names, shards, strict=True) for name in shard}
            total = sum(spec.nbytes for spec in specs.values())
            publishing.write(new / index.INDEX, [index.written(files, total, texts)])
            names = [*names, index.INDEX]  # the last: from then on the new files are the checkpoint
        for file in names:
            publishing.publish(new / file, folder)
        if not is_file:
            index.remove_others(folder, names)


def _bytes(size: int | str) -> int:
    if isinstance(size, str):
        match = re.fullmatch(r"(\d+) *([A-Z]*)", size.strip().upper())
        if match and match[2] in _SIZES:
            size = int(match[1]) * _SIZES[match[2]]
    if type(size) is not int or size < 1:
        raise ValueError(f'max_shard_size is a number of bytes, or a text such as "5GB", not {size!r}')
    return size


def _array(name: str, value: Any) -> Array:
    return concrete(value, f"saving {name}") if isinstance(value, Tensor) else value


def _tied(arrays: Mapping[str, Array]) -> dict[str, str]:
    """For each name of a tensor that is the same memory as another one, the name that it is saved under."""
    groups: dict[Any, list[str]] = {}
    for name, array in arrays.items():
        if array.size:
            key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
            groups.setdefault(key, []).append(name)
    return {name: min(group) for group in groups.values() for name in group if name != min(group)}


def _checked(metadata: Mapping[Any, Any], arrays: Mapping[str, Array]) -> dict[str, str]:
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise CheckpointError("MT806", f"the metadata has {key!r:.60}: {value!r:.60}", fix="give texts by texts")
        if key in (STRUCTURE, "format", "total_size") or key in arrays or value in arrays:
            raise CheckpointError(
                "MT806",
                f"the metadata has {key!r:.60}: {value!r:.60}, which has a meaning already",
                why="names of tensors there are those of tied tensors",
                fix="use another key or text",
            )
    return dict(metadata)
