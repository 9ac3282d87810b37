"""Free tensors of a part of a program: noted as they are read, whether the tape records that or not."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..dtypes import DType
from ..interpreters import Handle, Layer, interpreting
from ..ir import Primitive, Source, user_source
from ..tensor import Tensor


class Reads(Layer):
    """Tensors that some operations read, and neither made nor wrote to. They are not kept alive."""

    def __init__(self) -> None:
        self._read: dict[int, tuple[weakref.ref[Tensor], Source | None]] = {}  # roots, by id
        self._own: set[int] = set()  # roots that were made or written to, by id

    def note(self, tensors: Iterable[Tensor]) -> None:
        """Note that tensors are read."""
        for tensor in tensors:
            root: Tensor = getattr(tensor, "_origin", tensor)._root
            known = self._read.get(id(root))
            if id(root) not in self._own and (known is None or known[0]() is not root):
                self._read[id(root)] = weakref.ref(root), user_source()

    def _made(self, tensor: Tensor) -> Tensor:
        if tensor._view is None:
            self._own.add(id(tensor))
        return tensor

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Apply a primitive, and note its inputs."""
        output = self.below.bind(primitive, inputs, params)
        self.note(inputs)
        return self._made(output)

    def number(self, value: bool | int | float, dtype: DType) -> Tensor:
        """Return a constant."""
        return self._made(self.below.number(value, dtype))

    def assign(self, tensor: Tensor, value: Tensor) -> Handle | None:
        """Write into a tensor, which is this program's own from now on."""
        self.note((value,))
        self._own.add(id(tensor._root))
        self._read.pop(id(tensor._root), None)
        return self.below.assign(tensor, value)

    def concrete(self, tensor: Tensor, what: str, code: str = "MT102", fix: str | None = None) -> np.ndarray[Any, Any]:
        """Return the array of a tensor, which is read."""
        self.note((tensor,))
        return self.below.concrete(tensor, what, code, fix)

    def callback(self, function: Callable[[list[np.ndarray[Any, Any]]], None], tensors: Sequence[Tensor]) -> None:
        """Call a function with the values of tensors, which are read."""
        self.note(tensors)
        self.below.callback(function, tensors)

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a compiled function, and note the inputs of its graph; in a recording it is a part of that."""
        if self.recording is not None:
            return self.recording.call(function, args, kwargs)
        with interpreting(self.below):
            result = function(*args, **kwargs)
        self.note(function.inputs(args, kwargs))
        return result

    def __iter__(self) -> Iterator[tuple[Tensor, Source | None]]:
        """Yield the tensors that still exist, each with the line that read it first."""
        for reference, source in self._read.values():
            root = reference()
            if root is not None:
                yield root, source
