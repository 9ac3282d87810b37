"""`Stateful`: objects with tensors that are not modules, such as optimizers, for the guards of jit."""

from __future__ import annotations

from collections.abc import Iterator

from ..tensor import Tensor


class Stateful:
    """Object that holds tensors under names, for programs to read and write.

    A class may have a method ``under_way() -> bool``, which returns whether an unfinished step has begun. A compiled
    function calls it before each call.
    """

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the tensors by their names."""
        raise NotImplementedError
