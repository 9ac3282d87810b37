"""Importing Jupyter's formats and nbgrader in half the time.

`jsonschema`, on which both stand, builds a parser for internationalised addresses as soon as it is imported, if the
package `rfc3987_syntax` is there. That takes two seconds, as much as everything else together, and no notebook has a
field that is checked by it. Without the package it goes on without that check.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

SLOW = "rfc3987_syntax"


@contextmanager
def quick_imports() -> Iterator[None]:
    """While this lasts, what is imported does not find the slow package.

    Example:
        >>> with quick_imports():
        ...     import jsonschema  # doctest: +SKIP
    """
    if SLOW in sys.modules:  # somebody has it already: nothing can be saved
        yield
        return
    sys.modules[SLOW] = None  # type: ignore[assignment]  # for the import system: it is not there
    try:
        yield
    finally:
        del sys.modules[SLOW]
