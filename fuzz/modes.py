"""The ways to run one program. The source of each is part of a finding's file: a few lines of plain minitorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import minitorch as mt

Way = Callable[[Callable[..., Any]], Callable[..., Any]]


def eager(program: Callable[..., Any]) -> Callable[..., Any]:
    """As it stands."""
    return program


def interpret(program: Callable[..., Any]) -> Callable[..., Any]:
    """Traced, run node by node."""
    return mt.jit(program, backend="interpret", passes=())


def passes(program: Callable[..., Any]) -> Callable[..., Any]:
    """Traced and rewritten, run node by node."""
    return mt.jit(program, backend="interpret")


def loops(program: Callable[..., Any]) -> Callable[..., Any]:
    """Traced and fused, run as loops in Python."""
    return mt.jit(program, backend="loops")


def jit(program: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled."""
    return mt.jit(program)


def sizes(program: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled for all sizes of its arguments up to a bound, each dimension with a symbol, where it is one program."""

    def call(*arguments: Any) -> Any:
        names = program.__code__.co_varnames
        given = {
            name: {axis: f"{name}{axis}" for axis, length in enumerate(x.shape) if length > 1}
            for name, x in zip(names, arguments, strict=False)
        }
        given = {name: axes for name, axes in given.items() if axes}
        try:
            return mt.jit(program, dynamic_shapes=given)(*arguments)
        except mt.errors.TracingError as error:
            if "MT118" not in str(error):
                raise
        return mt.jit(program)(*arguments)

    return call


def lazy(program: Callable[..., Any]) -> Callable[..., Any]:
    """Recorded, and run at the end of the block."""

    def call(*arguments: Any) -> Any:
        with mt.lazy():
            return program(*arguments)

    return call


def session(program: Callable[..., Any]) -> Callable[..., Any]:
    """As an explicit graph."""

    def call(*arguments: Any) -> Any:
        with mt.Graph() as graph:
            inputs = [mt.placeholder(x.shape, x.dtype, name=f"x{place}") for place, x in enumerate(arguments)]
            results = program(*inputs)
        return mt.Session(graph).run(results, dict(zip(inputs, arguments, strict=True)))

    return call


def xla(program: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled by XLA."""
    return mt.jit(program, backend="xla")


MODES: dict[str, Way] = {
    each.__name__: each for each in (eager, interpret, passes, loops, jit, sizes, lazy, session, xla)
}
TORCH, XLA = "torch", "xla"
COMPILED = ("jit", "sizes", "lazy", "session", "loops", "passes", XLA)  # sums may be taken in another order
FOREIGN = (TORCH, XLA)  # every operation may be rounded in another way
