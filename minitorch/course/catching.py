"""`caught`: a cell that is meant to fail shows the whole message, and goes on."""

from __future__ import annotations

import textwrap
import warnings
from types import TracebackType
from typing import Self

WIDTH = 100  # letters of a line; a longer one is broken, since a notebook would not


class caught:  # noqa: N801  it is used like a function, as `contextlib.suppress` is
    """Show the message of the error, and of the warnings, that a block ends with.

    Args:
        who: a heading, for two messages one under the other.
        kind: the error that has to come. Another one is raised as always.
        show: print what comes.

    Attributes:
        error: the error, after the block; None if there was none.
        warnings: the messages of the warnings.

    Raises:
        AssertionError: if `kind` was given and nothing was raised.

    Example:
        >>> with caught(kind=ZeroDivisionError) as found:
        ...     1 / 0
        ZeroDivisionError: division by zero
        >>> type(found.error)
        <class 'ZeroDivisionError'>
    """

    def __init__(self, who: str = "", kind: type[Exception] | None = None, show: bool = True) -> None:
        self.who, self.kind, self.show = who, kind, show
        self.error: BaseException | None = None
        self.warnings: list[str] = []

    def __enter__(self) -> Self:
        self._recording = warnings.catch_warnings(record=True)
        self._found = self._recording.__enter__()
        warnings.simplefilter("always")
        if self.who and self.show:
            print(f"── {self.who} ──")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self._recording.__exit__(kind, error, traceback)
        self.warnings = [f"{each.category.__name__}: {each.message}" for each in self._found or ()]
        if error is None and self.kind is not None:
            raise AssertionError(f"{self.kind.__name__} was expected here, and nothing was raised")
        if error is not None and not isinstance(error, self.kind or Exception):
            return False
        self.error = error
        if self.show:
            self._print()
        return True

    def _print(self) -> None:
        told = [f"{type(self.error).__name__}: {self.error}"] if self.error is not None else []
        for message in (*told, *self.warnings):
            print(wrapped(message))
        if self.who:
            print()


def wrapped(message: str) -> str:
    """A message whose long lines are broken; a line that is continued keeps its indentation."""
    lines = []
    for line in message.splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        lines += textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_long_words=False) or [""]
    return "\n".join(lines)
