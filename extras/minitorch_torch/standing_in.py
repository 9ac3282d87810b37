"""`as_torch`: minitorch in the place of PyTorch, for programs and libraries that import `torch`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType, TracebackType

from minitorch.packages import ENGINE, Finder

TORCH = "torch"


def _engines_name(name: str) -> str | None:
    """Return the name in minitorch of a module of PyTorch."""
    return ENGINE + name.removeprefix(TORCH) if name == TORCH or name.startswith(f"{TORCH}.") else None


def _imported() -> Iterator[str]:
    return (name for name in list(sys.modules) if _engines_name(name) is not None)


class StandingIn:
    """Handle of `as_torch`: `undo` takes minitorch out again; so does the end of a ``with`` block."""

    def __init__(self) -> None:
        self._finder = Finder(_engines_name)
        self._hidden: dict[str, ModuleType] = {name: sys.modules.pop(name) for name in _imported()}
        sys.meta_path.insert(0, self._finder)

    def undo(self) -> None:
        """Make `import torch` mean PyTorch again, as it was before; a second call does nothing."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
            for name in _imported():
                del sys.modules[name]
            sys.modules.update(self._hidden)

    def __enter__(self) -> StandingIn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()


def as_torch(hide: bool = False) -> StandingIn:
    """Make `import torch`, and imports of its modules, give minitorch, in this process, until it is undone.

    Args:
        hide: whether to do so although PyTorch is installed. What has imported PyTorch before keeps it.

    Returns:
        A handle with a method `undo`, which is also a context manager.

    Raises:
        ImportError: if PyTorch is installed, and `hide` is not given.

    Example:
        >>> import minitorch as mt
        >>> with mt.as_torch(hide=True):
        ...     import torch
        ...     import torch.nn.functional as F
        ...     F.relu(torch.tensor([-1.0, 1.0]))
        tensor([0., 1.])
    """
    if not hide and (TORCH in sys.modules or find_spec(TORCH) is not None):
        raise ImportError("PyTorch is installed here: mt.as_torch(hide=True) puts minitorch in its place nevertheless")
    return StandingIn()
