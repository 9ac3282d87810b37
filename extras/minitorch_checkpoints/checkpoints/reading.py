"""`Checkpoint`: opened, checked, and read by name or by slice when something is asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from minitorch.errors import CheckpointError
from minitorch.functional.creation.data import from_numpy
from minitorch.ir import Spec
from minitorch.tensor import Tensor

from .. import safetensors
from . import index, pieces, regions, structure
from .writing import RESERVED, STRUCTURE, TIED

Array = np.ndarray[Any, Any]


class Checkpoint(Mapping[str, Tensor]):
    """The tensors of a checkpoint by name; opening it reads the headers, and each tensor is read when it is asked for.

    Files stay open until `close`: so a checkpoint that is replaced meanwhile is read as it was.

    Args:
        path: of a safetensors file, of an index, or of their folder.

    Attributes:
        metadata: its texts.
        bytes_read: how many bytes of tensors were read so far.

    Raises:
        CheckpointError: naming the file, and the rule that it breaks (``MT804``).
        OSError: if a file cannot be opened.

    Example:
        >>> import os, tempfile, minitorch as mt
        >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
        >>> mt.save({"w": mt.ones(2, 3), "b": mt.zeros(2)}, path)
        >>> with mt.export.Checkpoint(path) as checkpoint:
        ...     print(checkpoint.load_slice("w", [slice(0, 1)]), checkpoint.bytes_read)
        tensor([[1., 1., 1.]]) 12
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.bytes_read = 0
        self._files: list[BinaryIO] = []
        self._entries: dict[str, tuple[BinaryIO, int, safetensors.Entry, Path]] = {}
        self._known: dict[str, Tensor] = {}
        try:
            self.metadata = self._open()
            self._pieces = self._divided()
            apart = {pieces.name_of(name, box) for name, (_, boxes) in self._pieces.items() for box in boxes}
            names = dict.fromkeys([*[name for name in self._entries if name not in apart], *self._pieces])
            self._names = names
            self.tied = self._tied()
            self.structure = self._structure()
        except BaseException:
            self.close()
            raise

    def __reduce__(self) -> Any:
        """A copy has files of its own; it reads what is there when it is made."""
        return type(self), (self.path.absolute(),)

    def _open(self) -> dict[str, str]:
        """Open the files; once more, if the checkpoint was replaced meanwhile, which may have removed some of them."""
        while True:
            before = index.stamp(self.path)
            try:
                metadata = self._open_files()
                if before == index.stamp(self.path):
                    return metadata
            except (CheckpointError, OSError):
                if before == index.stamp(self.path):
                    raise
            self.close()
            self._entries.clear()

    def _open_files(self) -> dict[str, str]:
        start = index.found_at(self.path)
        if start.suffix != ".json":
            return dict(self._add(start, start == self.path).metadata)
        found = index.read(start, start == self.path)
        self._shards(start, found)
        self._entries = {name: self._entries[name] for name in found.files}
        return dict(found.metadata)

    def _shards(self, start: Path, found: index.Index) -> None:
        for name in sorted(set(found.files.values())):
            path = start.parent / name
            try:
                header = self._add(path, False)
            except FileNotFoundError:
                index.refuse(f"{start} names the file {name}, which is not there", fix="copy the whole folder again")
            except OSError as error:  # such as a name that is too long
                index.refuse(f"{start} names the file {name:.60}, which cannot be opened: {error.strerror}")
            for tensor in header.entries:
                if found.files.get(tensor) != name:
                    index.refuse(f"{path} has {tensor!r:.60}, which {start.name} does not say")
        missing = [name for name in found.files if name not in self._entries]
        if missing:
            index.refuse(f"{start} names {missing[0]!r:.60}, which is not in {found.files[missing[0]]}")

    def _add(self, path: Path, is_named: bool) -> safetensors.Header:
        file = index.opened(path, is_named)
        self._files.append(file)
        magic = file.read(4)
        if magic == b"PK\3\4" or (magic[:1] == b"\x80" and magic[1:2] in b"\2\3\4\5" and magic[2:] != b"\0\0"):
            index.refuse_pickle(path)
        file.seek(0)
        header = safetensors.read_header(file, os.fstat(file.fileno()).st_size, path)
        for name, entry in header.entries.items():
            self._entries[name] = (file, header.start, entry, path)
        return header

    def _divided(self) -> dict[str, pieces.Pieces]:
        try:
            found = pieces.read(self.metadata.get(pieces.PIECES, "{}"))
        except ValueError as error:
            index.refuse(f"{self.path} has parts of tensors that do not fit: {error!s:.200}")
        for name, (_, boxes) in found.items():
            kinds = set()
            for box in boxes:
                part = pieces.name_of(name, box)
                entry = self._entries[part][2] if part in self._entries else None
                if entry is None or entry.shape != regions.shape_of(box) or name in self._entries:
                    index.refuse(
                        f"{self.path} has parts of tensors that do not fit: {part!r:.100} is not there as such"
                    )
                kinds.add(entry.kind)
            if len(kinds) != 1:
                index.refuse(f"{self.path} has parts of {name!r:.60} that are of several types")
        return found

    def _tied(self) -> dict[str, str]:
        text = self.metadata.get(TIED, "{}")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not all(
            isinstance(saved, str) and saved in self._names and name not in self._names for name, saved in found.items()
        ):
            index.refuse(f"{self.path} has tied tensors that do not fit: {text:.60}")
        return found

    def _structure(self) -> Any:
        text = self.metadata.get(STRUCTURE)
        if text is None:
            return structure.flat(iter(self))
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            index.refuse(f"{self.path} has a structure that is no JSON: {error!s:.100}")
        problem = structure.problem(found)
        if problem:
            index.refuse(f"{self.path} has a structure that cannot be read: {problem}")
        names = set(structure.names_in(found))
        for name in names - set(self):
            if (saved := self.hint(name)) is not None:
                self.tied[name] = saved
        for name in sorted(names ^ set(self))[:1]:
            index.refuse(f"{self.path} has a tensor and a structure that do not fit: {name!r:.60} is in one of them")
        return found

    # Names ----------------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[str]:
        yield from self._names
        yield from self.tied

    def __len__(self) -> int:
        return len(self._names) + len(self.tied)

    def __contains__(self, name: object) -> bool:
        return name in self._names or name in self.tied

    def hint(self, name: str) -> str | None:
        """For a name that no tensor has: the one that Hugging Face's libraries call tied to it; None if they do not.

        They write it among other texts of the metadata, so it counts for a name that somebody asks for alone.
        """
        saved = None if name in self or name in RESERVED else self.metadata.get(name)
        return saved if saved in self._names else None

    def spec(self, name: str) -> Spec:
        """Shape and type of a tensor; nothing of it is read.

        Raises:
            KeyError: if there is no such tensor.
            CheckpointError: if it is of a type that tensors do not have (``MT804``).
        """
        name = self.tied.get(name, name)
        shape, boxes = self._pieces.get(name, (None, ()))
        _, _, entry, path = self._entries[pieces.name_of(name, boxes[0]) if boxes else name]
        spec = safetensors.of_ours(entry, name, path)
        return spec if shape is None else Spec(shape, spec.dtype)

    # Values ---------------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Tensor:
        own = self.tied.get(name, name)
        if own in self.tied.values():  # one tensor, by all of its names
            if own not in self._known:
                self._known[own] = self.load_slice(own)
            return self._known[own]
        return self.load_slice(own)

    def load_slice(self, name: str, slices: Sequence[slice] = ()) -> Tensor:
        """A part of a tensor; of the file, the bytes of this part are read, and what lies in less than 4 KiB between.

        Args:
            name: of the tensor.
            slices: without steps, one for each dimension; those that are left out are whole.
        """
        box = regions.box_of(slices, self.spec(name).shape)
        out = np.empty(regions.shape_of(box), self.spec(name).dtype.numpy)
        self.read(name, out, box)
        return from_numpy(out)

    def read(self, name: str, out: Array, box: regions.Box | None = None) -> None:
        """Read a tensor, or a box of it, into an array of its type and shape."""
        name = self.tied.get(name, name)
        if name not in self._pieces:
            self._read(name, out, box)
            return
        shape, boxes = self._pieces[name]
        wanted = box or regions.whole(shape)
        for part in boxes:
            common = pieces.overlap(part, wanted)
            if common:
                target = out[tuple([slice(*ends) for ends in pieces.within(common, wanted)])]
                self._read(pieces.name_of(name, part), target, pieces.within(common, part))

    def _read(self, name: str, out: Array, box: regions.Box | None) -> None:
        file, start, entry, path = self._entries[name]

        def fill(begin: int, memory: memoryview) -> None:
            file.seek(start + entry.begin + begin)
            done = 0
            while done < len(memory):
                count = file.readinto(memory[done:])  # type: ignore[attr-defined]
                if not count:
                    safetensors.refuse(path, "it has become shorter while it was read")
                done += count
            self.bytes_read += done

        if out.size:
            regions.read_box(fill, entry.shape, box or regions.whole(entry.shape), out)
        safetensors.as_read(out, name, path)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
        self._files.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
