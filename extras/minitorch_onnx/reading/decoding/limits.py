"""Bounds of the ONNX files that are read and run, so that a hostile one is refused before memory is allocated for it.

An array is never larger than its bytes in a file, so these bounds are about what small files can ask for: many messages
of two bytes each (protobuf takes about a hundred bytes for one), bodies within bodies, and shapes that are numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NoReturn

from minitorch.compiler.runtime.memory_pool import main_memory
from minitorch.errors import OnnxError
from minitorch.sizes import hint_of, is_symbolic

MOST_BYTES = 2**31 - 1
"""Bytes of a file without external data: protobuf's own bound of a message."""

MOST_FIELDS = 4_000_000
"""Fields in all messages of a file; a node has about fifteen. At a hundred bytes each, they take 400 MB."""

MOST_DEPTH = 64
"""Messages within messages. A body in a body in a body is at a depth of 14; protobuf itself stops at 100."""

MOST_NODES = 100_000
"""Nodes of a model, with those of each call of a function; reading one takes some 50 µs. Raising it accepts larger
models, and functions of functions that multiply."""

MOST_BODIES = 16
"""Bodies within bodies (of If, Loop and Scan), and functions that call functions."""

MOST_NUMBERS = 1_000_000
"""Numbers in the list of an attribute, which becomes a list of Python's ints or floats of 32 bytes each."""

MOST_DIMS = 32
"""Dimensions of an array."""

MOST_STEPS = 1_000_000
"""Nodes that one call runs, with all turns of its loops and recurrences, and the parts of sequences that it makes."""


@cache
def most_held() -> int:
    """Bytes that the values of a call may take together: those of the machine, or of the container that it is in.

    An array that a model computes can be far larger than the file, and be meant; one that no memory holds is not.
    """
    return main_memory() or 2**63


def check_numbers(what: str, count: int) -> None:
    """Refuse to look at numbers one by one that do not fit into the memory, at 8 bytes each: of a large view of few.

    Raises:
        OnnxError: if they do not (``MT801``).
    """
    require(8 * count <= most_held(), "{} is {} numbers, more than there is memory for", what, count)


def refuse(what: str, why: str | None = None, fix: str | None = None) -> NoReturn:
    """Raise the error for a model that cannot be read (``MT801``)."""
    raise OnnxError("MT801", what, why=why, fix=fix)


def require(condition: object, what: str, *values: object) -> None:
    """Require something of a model.

    Args:
        condition: whether it holds.
        what: what is wrong otherwise, with braces for the values.
        values: written into the message only when there is one.

    Raises:
        OnnxError: if it does not hold (``MT801``).
    """
    if not condition:
        refuse(what.format(*values))


def shape_of(lengths: Sequence[int]) -> tuple[int, ...]:
    """Return a shape that a model's numbers ask for.

    Raises:
        OnnxError: if it is negative somewhere, or has more elements than the machine has bytes (``MT801``).

    Example:
        >>> shape_of([2, 3])
        (2, 3)
        >>> shape_of([2**62])
        Traceback (most recent call last):
        minitorch.errors.OnnxError: MT801: a result of the shape [4611686018427387904], larger than the memory
          more: minitorch explain MT801
    """
    shape = tuple([length if is_symbolic(length) else int(length) for length in lengths])
    require(len(shape) <= MOST_DIMS, "a result of {} dimensions, more than {}", len(shape), MOST_DIMS)
    require(all(length >= 0 for length in shape), "a result of the shape {}", list(shape))
    size = math.prod([length or 1 for length in hint_of(shape)])
    require(size <= most_held(), "a result of the shape {}, larger than the memory", list(shape))
    return shape
