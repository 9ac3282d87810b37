"""Who takes part: one row each, in the order of the table's columns."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .libraries import JAX, Library, Minitorch, NumExpr, NumPy, Torch

BASELINE = "jax.jit"


@dataclass(frozen=True)
class Contender:
    """A row: its name, the package it needs, its library, and how the picture shows it."""

    name: str
    package: str
    make: Callable[[], Library]
    colour: str
    marker: str
    backend: str | None = None  # of minitorch
    compiles: bool = False
    rival: bool = False  # no case may be slower than this one

    def installed(self) -> bool:
        """Whether it can take part here."""
        if importlib.util.find_spec(self.package) is None:
            return False
        if self.backend is None:
            return True
        from minitorch.backends import BACKENDS

        return self.backend in BACKENDS


TABLE = (
    Contender("numpy", "numpy", NumPy, "#4d77cf", "s"),
    Contender("eager", "minitorch", Minitorch, "#e8a87c", "o"),
    Contender(
        "interpret", "minitorch", partial(Minitorch, "interpret"), "#c97b4a", "o", backend="interpret", compiles=True
    ),
    Contender("llvm", "minitorch", partial(Minitorch, "llvm"), "#d62839", "o", backend="llvm", compiles=True),
    Contender(BASELINE, "jax", JAX, "#222222", "|", compiles=True, rival=True),
    Contender("torch", "torch", Torch, "#8d6cab", "^", rival=True),
    Contender("torch.compile", "torch", partial(Torch, compiled=True), "#5b3a8c", "v", compiles=True, rival=True),
    Contender("numexpr", "numexpr", NumExpr, "#5a9e6f", "D"),
)

CONTENDERS = {contender.name: contender for contender in TABLE}


def ours(names: list[str]) -> str | None:
    """The one of minitorch's ways that is measured against the baseline: the fastest that takes part."""
    for name in ("llvm", "interpret", "eager"):
        if name in names:
            return name
    return None
