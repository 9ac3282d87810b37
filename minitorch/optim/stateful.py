"""`Stateful`: objects with tensors that are not modules, such as optimizers, for the guards of jit."""

from __future__ import annotations

from collections.abc import Iterator

from ..tensor import Tensor


class Stateful:
    """An object that holds tensors under names, for programs to read and write.

    A class may have a method ``under_way() -> bool``: whether a step has begun that is not finished. A compiled
    function asks it before each call.
    """

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the tensors by their names."""
        raise NotImplementedError
