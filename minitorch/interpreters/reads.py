"""The free tensors of a part of a program: noted as they are read, whether the tape records that or not."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..dtypes import DType
from ..ir import Primitive, Source, user_source
from ..tensor import Tensor
from .eager import Eager
from .state import Interpreter, current_recording, thread


class Reads:
    """The tensors that some operations read, and neither made nor wrote to. They are not kept alive.

    Attributes:
        rehearses: whether the run will be undone afterwards, so that no observer may hear of it.
    """

    rehearses = False

    def __init__(self) -> None:
        self._read: dict[int, tuple[weakref.ref[Tensor], Source | None]] = {}  # roots, by id
        self._own: set[int] = set()  # roots that were made or written to, by id

    def note(self, tensors: Iterable[Tensor]) -> None:
        """Tensors are read."""
        for tensor in tensors:
            root: Tensor = getattr(tensor, "_origin", tensor)._root
            known = self._read.get(id(root))
            if id(root) not in self._own and (known is None or known[0]() is not root):
                self._read[id(root)] = weakref.ref(root), user_source()

    def made(self, tensor: Tensor) -> None:
        """A tensor is made."""
        if tensor._view is None:
            self._own.add(id(tensor))

    def written(self, tensor: Tensor, value: Tensor) -> None:
        """A tensor is about to be overwritten."""
        self.note((value,))
        self._own.add(id(tensor._root))
        self._read.pop(id(tensor._root), None)

    def gradient(self, tensor: Tensor) -> None:
        """The gradient stored with a tensor is about to be replaced."""

    def __iter__(self) -> Iterator[tuple[Tensor, Source | None]]:
        """The tensors that still exist, each with the line that read it first."""
        for reference, source in self._read.values():
            root = reference()
            if root is not None:
                yield root, source


class Noting(Eager):
    """Eager mode, with the tensors that are read noted."""

    intercepts = True

    def __init__(self, plain: Interpreter, reads: Reads) -> None:
        self.plain: Interpreter = plain.plain if isinstance(plain, Noting) else plain
        self.reads = [*readers(plain), reads]
        self.run = thread.eager.run

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Evaluate the primitive now, and note its inputs."""
        output = self.plain.bind(primitive, inputs, params)
        note(self.reads, inputs, output)
        return output

    def number(self, value: bool | int | float, dtype: DType) -> Tensor:
        """A constant is made."""
        output = self.plain.number(value, dtype)
        note(self.reads, (), output)
        return output

    def assign(self, tensor: Tensor, value: Tensor) -> None:
        """Write into the memory."""
        self.plain.assign(tensor, value)


def readers(interpreter: Interpreter) -> Iterable[Reads]:
    """The objects that note the reads of an interpreter."""
    return getattr(interpreter, "reads", ()) if interpreter.intercepts else ()


def note(reads: Iterable[Reads], inputs: Iterable[Tensor], output: Tensor | None = None) -> None:
    """Tell the readers that an operation has read some tensors and made one."""
    for each in reads:
        each.note(inputs)
        if output is not None:
            each.made(output)


@contextmanager
def noting() -> Iterator[Reads]:
    """Note the reads of this thread's operations in a `with` block, in every mode."""
    found = Reads()
    recording = current_recording()
    if recording is not None:
        recording.reads.append(found)
        try:
            yield found
        finally:
            recording.reads.remove(found)
        return
    with _told(thread.interpreter, found):
        yield found


@contextmanager
def rehearsing(reads: Reads) -> Iterator[None]:
    """Run eagerly in a `with` block, whatever the mode, observed by `reads` alone."""
    with _told(Eager(), reads):
        yield


@contextmanager
def _told(interpreter: Interpreter, reads: Reads) -> Iterator[None]:
    state = thread
    previous = state.interpreter, state.eager
    state.interpreter = state.eager = Noting(interpreter, reads)
    try:
        yield
    finally:
        state.interpreter, state.eager = previous


def is_rehearsal() -> bool:
    """Whether the run of this thread will be undone afterwards."""
    return any(each.rehearses for each in readers(thread.interpreter))
