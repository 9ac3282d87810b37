"""The program that a backend made of a graph, lined up with our own kernels by the user's lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ArgumentError
from .program import Program


def listing_of(program: Program, name: str, inputs: Sequence[Any] = ()) -> Any:
    """Return the listing of a backend's own program.

    Args:
        program: compiled.
        name: of the function, for messages.
        inputs: the values of a call, if they may be divided among devices.

    Raises:
        ArgumentError: on a backend whose programs have no `listing` (``MT108``).
    """
    listing = getattr(program.compiled, "listing", None)
    if listing is None:
        raise ArgumentError(
            "MT108",
            f"{name} runs on the backend {program.backend!r}, which has no program of XLA's",
            fix="mt.jit(f, backend='xla').hlo(...)",
        )
    ours = {str(source): names for source, names in program.ledger.by_source().items()}
    return listing(program.pipeline.graph, ours, inputs)
