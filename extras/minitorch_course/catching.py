"""`caught`: a cell that is meant to fail shows the whole message, and goes on."""

from __future__ import annotations

import html
import re
import sys
import textwrap
import warnings
from types import TracebackType
from typing import Self

from minitorch.ir import Source

WIDTH = 100  # letters of a line; a longer one is broken, since a notebook would not
# A line of a file that stands for a cell of a notebook, in the two ways that messages have.
CELL = re.compile(r'"?([^\s"]*ipykernel_\d+[^\s"]*\.py)"?(?::|, line )(\d+)')


class caught:  # noqa: N801  it is used like a function, as `contextlib.suppress` is
    """Show the message of the error, and of the warnings, that a block ends with.

    Args:
        who: a heading, for two messages one under the other.
        kind: the error that has to come. Another one is raised as always.
        show: print what comes.
        fold: in a notebook, show the first line only, and the whole message when somebody clicks on it.

    Files that stand for a cell of a notebook are named as the notebook names the cell, such as ``In[5]:2``.

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

    def __init__(
        self, who: str = "", kind: type[Exception] | None = None, show: bool = True, fold: bool = False
    ) -> None:
        self.who, self.kind, self.show, self.fold = who, kind, show, fold
        self.error: BaseException | None = None
        self.warnings: list[str] = []

    def __enter__(self) -> Self:
        self._recording = warnings.catch_warnings(record=True)
        self._found = self._recording.__enter__()
        warnings.simplefilter("always")
        if self.who and self.show and not self.fold:
            print(_heading(self.who))
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
        messages = [in_cells(message) for message in (*told, *self.warnings)]
        if self.fold:
            if messages:
                display(Folded(self.who, messages))
            return
        for message in messages:
            print(wrapped(message))
        if self.who:
            print()


class Folded:
    """Messages of which a notebook shows the first line; printed, they are whole."""

    def __init__(self, who: str, messages: list[str]) -> None:
        self.who, self.messages = who, messages

    def __repr__(self) -> str:
        heading = [_heading(self.who)] if self.who else []
        return "\n".join([*heading, *map(wrapped, self.messages)])

    def _repr_html_(self) -> str:
        first = textwrap.shorten(self.messages[0].strip().splitlines()[0], WIDTH, placeholder=" …")
        summary = f"<b>{html.escape(self.who)}:</b> {html.escape(first)}" if self.who else html.escape(first)
        whole = "\n\n".join(map(wrapped, self.messages))
        return f"<details><summary>{summary}</summary><pre>{html.escape(whole)}</pre></details>"


def _heading(who: str) -> str:
    return f"── {who} ──"


def display(shown: object) -> None:
    """Show an object in a notebook, or print it."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        print(shown)
        return
    from IPython.display import display as in_notebook

    in_notebook(shown)  # type: ignore[no-untyped-call]


def box(kind: str, inside: str) -> str:
    """HTML with a bar at its left in one of JupyterLab's colours: ``"info"``, ``"warn"`` or ``"success"``."""
    return f"<div style='border-left:4px solid var(--jp-{kind}-color1, #888);padding-left:0.7em'>{inside}</div>"


def in_cells(message: str) -> str:
    """A message in which a notebook's cells are named as the notebook names them.

    Example:
        >>> in_cells("in model.py:3")
        'in model.py:3'
    """
    return CELL.sub(lambda found: str(Source(found[1], int(found[2]))), message)


def wrapped(message: str) -> str:
    """A message whose long lines are broken; a line that is continued keeps its indentation."""
    lines = []
    for line in message.splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        lines += textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_long_words=False) or [""]
    return "\n".join(lines)


def plain(text: str) -> str:
    """A text without the backticks around code, where nothing shows code as code.

    Example:
        >>> plain("How many `print`?")
        'How many print?'
    """
    return re.sub(r"`([^`]+)`", r"\1", text)
