"""The switches of the tape: `no_grad`, `enable_grad` and `set_grad_enabled`, each a context manager and a decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from .. import interpreters
from ..interpreters import decorated

F = TypeVar("F", bound=Callable[..., Any])


class _GradMode:
    """The base of the three switches, which belong to a thread; an open one may be entered again."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self._previous: list[bool] = []

    def __call__(self, function: F) -> F:
        return decorated(lambda: _GradMode(self.enabled), function)  # type: ignore[no-any-return]

    def __enter__(self) -> None:
        self._previous.append(interpreters.set_grad_enabled(self.enabled))

    def __exit__(self, *exception: object) -> None:
        interpreters.set_grad_enabled(self._previous.pop())


@overload
def no_grad() -> _GradMode: ...
@overload
def no_grad(function: F) -> F: ...
def no_grad(function: F | None = None) -> _GradMode | F:
    """Do not record operations in the `with` block for `backward`; also a decorator, with or without parentheses.

    Example:
        >>> import minitorch as mt
        >>> w = mt.tensor([1.0], requires_grad=True)
        >>> with mt.no_grad():
        ...     print((w * 2).requires_grad)
        False
    """
    return _GradMode(False) if function is None else _GradMode(False)(function)


@overload
def enable_grad() -> _GradMode: ...
@overload
def enable_grad(function: F) -> F: ...
def enable_grad(function: F | None = None) -> _GradMode | F:
    """Record operations in the `with` block or the decorated function, also inside `no_grad`.

    Example:
        >>> import minitorch as mt
        >>> w = mt.tensor([1.0], requires_grad=True)
        >>> with mt.no_grad(), mt.enable_grad():
        ...     print((w * 2).requires_grad)
        True
    """
    return _GradMode(True) if function is None else _GradMode(True)(function)


class set_grad_enabled(_GradMode):  # noqa: N801 (PyTorch's name)
    """A switch that turns recording on or off from here on; as a context manager, until the end of the `with` block.

    Args:
        mode: whether operations are recorded for `backward`.

    Example:
        >>> import minitorch as mt
        >>> w = mt.tensor([1.0], requires_grad=True)
        >>> training = False
        >>> with mt.set_grad_enabled(training):
        ...     print((w * 2).requires_grad)
        False
        >>> mt.is_grad_enabled()
        True
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._before: bool | None = interpreters.set_grad_enabled(self.enabled)

    def __enter__(self) -> None:
        before = self._before
        if before is None:
            super().__enter__()
        else:
            self._before = None
            interpreters.set_grad_enabled(self.enabled)
            self._previous.append(before)

    def __call__(self, function: F) -> F:
        """Decorate a function; the switch changes nothing until the function is called."""
        if self._before is not None:
            interpreters.set_grad_enabled(self._before)
            self._before = None
        return super().__call__(function)
