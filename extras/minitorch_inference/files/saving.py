"""Traces of frozen functions, as they are saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minitorch.errors import ArgumentError
from minitorch.ir import Spec
from minitorch.modes.objects.outcome import Argument
from minitorch.modes.tracing.traced import Traced
from minitorch.passes import Stage

from ..beforehand import Beforehand
from . import layouts, origins, programs


def stored(name: str, traced: Traced, before: Sequence[Stage], work: Beforehand) -> programs.Stored:
    """A trace of a frozen function as it is saved: after freezing, before what depends on the backend.

    Args:
        name: of the function.
        traced: the trace.
        before: the stages of freezing; none, if it was frozen before.
        work: what these, or those of then, have done beforehand.

    Raises:
        ArgumentError: for arguments or results that JSON does not have, or that are not contiguous (``MT108``).
    """
    report = traced.report
    graph = before[-1].after if before else traced.program.pipeline.initial
    if traced.contiguous is None:
        raise ArgumentError(
            "MT108",
            f"{name}({report}) cannot be saved",
            why="it was frozen for an argument that is not contiguous, where that decides what is a view",
            fix="freeze it for x.contiguous()",
        )
    places: dict[str, Argument] = {}
    leaves: list[Any] = []
    for argument, value in report.arguments.items():
        if isinstance(value, Spec):
            first = report.same.get(argument, argument)
            leaves.append(places.setdefault(first, Argument(len(places))))
        else:
            leaves.append(value)
    return programs.Stored(
        graph,
        {
            "inputs": len(graph.inputs),
            "arguments": layouts.encode(report.structure, leaves),
            "results": layouts.encode(*traced.results),
            "contiguous": traced.contiguous,
            "beforehand": origins.encode(work),
        },
    )
