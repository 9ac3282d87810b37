"""`save`: tensors and structure into one safetensors file, or shards and their index."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from minitorch.errors import CheckpointError
from minitorch.interpreters import concrete
from minitorch.ir import Spec
from minitorch.tensor import Tensor

from .. import publishing, pytorch_files, safetensors
from . import index, pieces, regions, structure

Array = np.ndarray[Any, Any]

STRUCTURE = "minitorch"  # the metadata's name of the structure
TIED = "minitorch.tied"  # and of tied tensors: {"name": "the name that it is saved under", ...}
RESERVED = (STRUCTURE, TIED, pieces.PIECES, "format", "total_size")
_SIZES = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


@dataclass(frozen=True)
class _Entry:
    """A tensor of a file, the process that writes it, and in that process what gives its elements."""

    spec: Spec
    process: int
    read: Callable[[], Array]


def save(
    value: Any,
    path: str | os.PathLike[str] | IO[bytes],
    *,
    max_shard_size: int | str = "5GB",
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a module, a state dict, or nested dicts of what a training needs to go on.

    What is there already is replaced in one step: a save that is killed, or runs out of disk, leaves the old one. The
    new files have its permissions. A path that is a link stays one, and the file is written to where it leads.

    Tensors that are one in memory (tied weights) are written once, under the first of their names, as
    `safetensors.torch.save_model` does it, and the metadata has the others.

    Under `minitorch.sharding.launch`, where several processes have parts of a tensor, all of them call this with the
    same folder: each writes its own parts, and nothing whole is made. Such a checkpoint is read as any other, by any
    number of processes and onto any mesh.

    Args:
        value: tensors, arrays (which come back as tensors), numbers, texts and None, in dicts, lists and tuples; and
            modules, optimisers, schedulers, a `GradScaler` and generators, whose state is written.
        path: a file that ends in ``.safetensors``; one that ends in ``.pt``, ``.pth`` or the like, or an open file,
            which is written as `torch.save` does, without modules and other objects; otherwise a folder, made if it is
            not there, in which the files have the names that Hugging Face gives them.
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
    if not isinstance(path, (str, os.PathLike)):
        pytorch_files.write(value, path)
        return
    place = Path(path)
    is_file = place.suffix == ".safetensors"
    if place.suffix in index.PICKLES:
        place = Path(os.path.realpath(place))
        with publishing.beside(place.parent, _own(place.name)) as new:
            pytorch_files.write(value, new / place.name)
            publishing.publish(new / place.name, place.parent, publishing.mode_of(place))
        return
    if is_file and place.is_symlink():
        place = Path(os.path.realpath(place))
    limit = _bytes(max_shard_size)
    tensors, found = structure.apart(value)
    divided = {name: parts for name, tensor in tensors.items() if (parts := pieces.parts_of(tensor))}
    arrays = {name: _array(name, tensor) for name, tensor in tensors.items() if name not in divided}
    tied = _tied(arrays, {name: id(tensor._value) for name, tensor in tensors.items() if pieces.is_on_device(tensor)})
    entries: dict[str, _Entry] = {}
    boxes: dict[str, pieces.Pieces] = {}
    for name, tensor in tensors.items():
        if name in tied:
            continue
        if name not in divided:
            entries[name] = _Entry(safetensors.spec_of(name, arrays[name]), 0, partial(arrays.__getitem__, name))
            continue
        boxes[name] = tensor.shape, [part.box for part in divided[name]]
        for part in divided[name]:
            spec = Spec(regions.shape_of(part.box), tensor.dtype)
            own = pieces.name_of(name, part.box)
            if own in tensors:
                raise CheckpointError("MT806", f"{own!r} is the name of a part of {name!r}", fix="rename the tensor")
            entries[own] = _Entry(spec, part.process, part.read)
    texts = _checked(metadata or {}, tensors)
    if tied:
        texts[TIED] = index.text_of(tied)
    if boxes:
        texts[pieces.PIECES] = pieces.written(boxes)
        if is_file:
            raise CheckpointError(
                "MT806",
                f"{place} is one file, and several processes have parts of {next(iter(boxes))}",
                why="each process writes its own files",
                fix="give a folder, that all of them see",
            )

    shards: list[list[str]] = [[]]
    size = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].process):
        is_other = bool(shards[-1]) and entry.process != entries[shards[-1][0]].process
        if is_other or (size + entry.spec.nbytes > limit and shards[-1] and not is_file):
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += entry.spec.nbytes
    undivided = [name for shard in shards for name in shard if name in arrays]
    if not structure.is_flat(found) or list(tensors) != [*undivided, *boxes, *tied]:  # the order of reading
        texts[STRUCTURE] = index.text_of(found)
    if len(shards) > index.MOST_SHARDS:
        raise CheckpointError(
            "MT806", f"{len(shards)} files, more than {index.MOST_SHARDS}", fix="raise max_shard_size"
        )

    folder = place.parent if is_file else place
    if not is_file:
        folder.mkdir(parents=True, exist_ok=True)
    if boxes:
        _save_together(folder, shards, entries, texts)
        return
    single = place.name if is_file else index.SINGLE
    with publishing.beside(folder, _own(single if is_file else None)) as new:
        mode = _mode(folder, single)
        names = [single] if len(shards) == 1 else index.shard_names(folder, len(shards))
        for file, shard in zip(names, shards, strict=True):
            _write(new / file, shard, entries, texts if len(shards) == 1 else {})
        if len(shards) > 1:
            _write_index(new, names, shards, entries, texts)
            names = [*names, index.INDEX]  # the last: from then on the new files are the checkpoint
        for file in names:
            publishing.publish(new / file, folder, mode)
        if not is_file:
            index.remove_others(folder, names)


def _save_together(
    folder: Path, shards: list[list[str]], entries: Mapping[str, _Entry], texts: Mapping[str, str]
) -> None:
    """Each process writes the files with its parts; when all are there, the first one writes the index."""
    processes = pieces.processes()
    own, _ = processes.place()
    problem: BaseException | None = None
    processes.agreed(True)  # all have come, so nobody changes the index that names are chosen by
    mode = _mode(folder, index.SINGLE)
    names = index.shard_names(folder, len(shards))
    try:
        with publishing.apart(folder) as new:
            for file, shard in zip(names, shards, strict=True):
                if shard and entries[shard[0]].process == own:
                    _write(Path(new) / file, shard, entries, {})
                    publishing.publish(Path(new) / file, folder, mode)
    except Exception as error:
        problem = error
    is_well = processes.agreed(problem is None)
    if is_well and own == 0:
        try:
            with publishing.beside(folder, _own(None)) as beside:
                _write_index(beside, names, shards, entries, texts)
                publishing.publish(beside / index.INDEX, folder, mode)
                index.remove_others(folder, [*names, index.INDEX])
        except Exception as error:
            problem = error
    is_well = is_well and processes.agreed(problem is None)
    if problem is not None:
        raise problem
    if not is_well:
        raise CheckpointError("MT806", f"{folder} was not saved: another process could not write its part")


def _mode(folder: Path, single: str) -> int | None:
    """The permissions of the checkpoint that is there; None if none is."""
    mode = publishing.mode_of(folder / single)
    return publishing.mode_of(folder / index.INDEX) if mode is None and single == index.SINGLE else mode


def _own(single: str | None) -> Callable[[str], bool]:
    """Whether a file of a name is one that a save writes: this one, or all those of a folder."""
    own = re.compile(re.escape(single)) if single else index.OURS
    return lambda name: bool(own.fullmatch(name))


def _write(path: Path, names: list[str], entries: Mapping[str, _Entry], texts: Mapping[str, str]) -> None:
    start, order = safetensors.header_of({name: entries[name].spec for name in names}, {"format": "pt", **texts})
    publishing.write(path, chain([start], (safetensors.elements(entries[name].read()) for name in order)))


def _write_index(
    new: Path, names: list[str], shards: list[list[str]], entries: Mapping[str, _Entry], texts: Mapping[str, str]
) -> None:
    files = {name: file for file, shard in zip(names, shards, strict=True) for name in shard}
    total = sum(entry.spec.nbytes for entry in entries.values())
    publishing.write(new / index.INDEX, [index.written(files, total, texts)])


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


def _tied(arrays: Mapping[str, Array], on_device: Mapping[str, int]) -> dict[str, str]:
    """For each name of a tensor that is the same memory as another one, the name that it is saved under."""
    groups: dict[Any, list[str]] = {}
    for name, value in on_device.items():
        groups.setdefault(value, []).append(name)
    for name, array in arrays.items():
        if array.size and name not in on_device:
            key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
            groups.setdefault(key, []).append(name)
    return {name: min(group) for group in groups.values() for name in group if name != min(group)}


def _checked(metadata: Mapping[Any, Any], names: Collection[str]) -> dict[str, str]:
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise CheckpointError("MT806", f"the metadata has {key!r:.60}: {value!r:.60}", fix="give texts by texts")
        if key in RESERVED or value in names:
            raise CheckpointError(
                "MT806",
                f"the metadata has {key!r:.60}: {value!r:.60}, which has a meaning already",
                why="Hugging Face's libraries name tied tensors so",
                fix="use another key or text",
            )
    return dict(metadata)
