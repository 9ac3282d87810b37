"""The program that a backend made of a graph, lined up with our own kernels by the user's lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minitorch.errors import ArgumentError
from minitorch.modes.tracing.explain import MOST_KERNELS, counted
from minitorch.modes.tracing.program import Program


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


def summary(program: Program) -> Iterator[str]:
    """Yield the lines of a report on XLA's kernels."""
    found = listing_of(program, "the function")
    yield f"XLA runs {counted(len(found.kernels), 'kernel')}, we would run {len(found.ours_in_order())}"
    yield from (f"  {kernel} for {', '.join(kernel.lines)}" for kernel in found.kernels[:MOST_KERNELS])
    if len(found.kernels) > MOST_KERNELS:
        yield f"  and {len(found.kernels) - MOST_KERNELS} more"
