"""`typed`: commands for Python's debugger, written down beforehand, so that a notebook runs from top to bottom."""

from __future__ import annotations

import io
import pdb
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _Typed(pdb.Pdb):
    """Python's debugger, with commands in place of a keyboard."""

    def __init__(self, commands: tuple[str, ...]) -> None:
        super().__init__(stdin=io.StringIO("".join(f"{each}\n" for each in commands)), stdout=sys.stdout, nosigint=True)

    def precmd(self, line: str) -> str:
        if not line.startswith("_pdbcmd"):  # Python 3.13 prints the place by a command of its own
            print(line)
        return super().precmd(line)


@contextmanager
def typed(*commands: str) -> Iterator[None]:
    """Inside this block a breakpoint opens the debugger, and these commands are typed there.

    Args:
        commands: of `pdb`, such as ``"p x"``; the last one should be ``"c"``, which goes on. At each breakpoint they
            are typed anew.

    Example:
        >>> def halve(x):
        ...     breakpoint()
        ...     return x / 2
        >>> with typed("p x + 1", "c"):
        ...     halve(6)  # doctest: +ELLIPSIS
        > ...
        (Pdb) p x + 1
        7
        (Pdb) c
        3.0
    """
    before = sys.breakpointhook
    sys.breakpointhook = lambda *_, **__: _Typed(commands).set_trace(sys._getframe(1))
    try:
        yield
    finally:
        sys.breakpointhook = before
