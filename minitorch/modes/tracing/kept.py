"""Traces of calls with a module among the arguments, which do not keep that module alive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

from ...nn import Module
from .traced import Traced


class Variants(list[Traced]):
    """The traces of one signature."""

    __slots__ = ("__weakref__",)


class Lent:
    """The traces of a signature with a module among the arguments: they live as long as the module, which has them."""

    def __init__(self, module: Module, forget: Callable[[], object]) -> None:
        kept = vars(module).setdefault("_traces", Kept())
        variants = Variants()
        kept.all.append(variants)
        self._variants = ref(variants, lambda _: forget())

    def __iter__(self) -> Iterator[Traced]:
        return iter(self._variants() or ())

    def append(self, traced: Traced) -> None:
        """Add a trace."""
        if (variants := self._variants()) is not None:
            variants.append(traced)

    def remove(self, traced: Traced) -> None:
        """Take a trace out."""
        if (variants := self._variants()) is not None:
            variants.remove(traced)


class Kept:
    """The traces that a module keeps; a copy of the module has none."""

    def __init__(self) -> None:
        self.all: list[Variants] = []

    def __reduce__(self) -> Any:
        return Kept, ()
