"""Noting what a part of a program reads from outside of itself, whether the tape records that or not."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..dtypes import DType
from ..ir import Primitive, Source, user_source
from ..tensor import Tensor
from .eager import Eager
from .state import Interpreter, current_staging, thread


class Reads:
    """The tensors that some operations read and neither made nor wrote to. They are not kept alive.

    Attributes:
        rehearses: whether what runs is undone when it is over, so that nobody may hear of it.
    """

    rehearses = False

    def __init__(self) -> None:
        self._read: dict[int, tuple[weakref.ref[Tensor], Source | None]] = {}  # roots, by id
        self._own: set[int] = set()  # roots that were made or written to, by id

    def note(self, tensors: Iterable[Tensor]) -> None:
        """These are read."""
        for tensor in tensors:
            root: Tensor = getattr(tensor, "_origin", tensor)._root
            known = self._read.get(id(root))
            if id(root) not in self._own and (known is None or known[0]() is not root):
                self._read[id(root)] = weakref.ref(root), user_source()

    def made(self, tensor: Tensor) -> None:
        """This one was not there before."""
        if tensor._view is None:
            self._own.add(id(tensor))

    def written(self, tensor: Tensor, value: Tensor) -> None:
        """A tensor is about to be given the value of another one."""
        self.note((value,))
        self._own.add(id(tensor._root))
        self._read.pop(id(tensor._root), None)

    def gradient(self, tensor: Tensor) -> None:
        """The gradient that is stored with a tensor is about to become another one."""

    def __iter__(self) -> Iterator[tuple[Tensor, Source | None]]:
        """Those that there still are, each with the line that read it first."""
        for reference, source in self._read.values():
            root = reference()
            if root is not None:
                yield root, source


class Noting(Eager):
    """Eager, noting what is read."""

    intercepts = True

    def __init__(self, plain: Interpreter, reads: Reads) -> None:
        self.plain: Interpreter = plain.plain if isinstance(plain, Noting) else plain
        self.reads = [*readers(plain), reads]
        self.run = thread.eager.run

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Evaluate now, and note."""
        output = self.plain.bind(primitive, inputs, params)
        note(self.reads, inputs, output)
        return output

    def number(self, value: bool | int | float, dtype: DType) -> Tensor:
        """A constant is made here."""
        output = self.plain.number(value, dtype)
        note(self.reads, (), output)
        return output

    def assign(self, tensor: Tensor, value: Tensor) -> None:
        """Write into the memory."""
        self.plain.assign(tensor, value)


def readers(interpreter: Interpreter) -> Iterable[Reads]:
    """Who wants to know what an interpreter reads."""
    return getattr(interpreter, "reads", ()) if interpreter.intercepts else ()


def note(reads: Iterable[Reads], inputs: Iterable[Tensor], output: Tensor | None = None) -> None:
    """An operation has read some tensors and made one."""
    for each in reads:
        each.note(inputs)
        if output is not None:
            each.made(output)


@contextmanager
def noting() -> Iterator[Reads]:
    """Note what this thread's operations read in a `with` block, in every mode."""
    found = Reads()
    staging = current_staging()
    if staging is not None:
        staging.reads.append(found)
        try:
            yield found
        finally:
            staging.reads.remove(found)
        return
    with _told(thread.interpreter, found):
        yield found


@contextmanager
def rehearsing(reads: Reads) -> Iterator[None]:
    """Run eagerly in a `with` block, whatever the mode, watched by nobody but `reads`."""
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
    """Whether what this thread runs is undone when it is over."""
    return any(each.rehearses for each in readers(thread.interpreter))
