"""Traces of calls with a module among the arguments, which do not keep that module alive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

from ...nn import Module
from .explain import SignatureReport
from .traced import Traced


class Variants(list[Traced]):
    """Traces of one signature."""

    __slots__ = ("__weakref__",)


class Lent:
    """Traces of a signature with a module among the arguments: the module owns them, and they live as long as it does.

    Args:
        module: the module.
        forget: called with the reports of the traces when these are gone.
    """

    def __init__(self, module: Module, forget: Callable[[list[SignatureReport]], object]) -> None:
        kept: Kept = vars(module).setdefault("_traces", Kept())
        variants, reports = Variants(), list[SignatureReport]()
        self._reports = reports
        kept.all.append(variants)
        self._kept, self._variants = ref(kept), ref(variants, lambda _: forget(reports))

    def __iter__(self) -> Iterator[Traced]:
        return iter(self._variants() or ())

    def append(self, traced: Traced) -> None:
        """Add a trace."""
        if (variants := self._variants()) is not None:
            variants.append(traced)
            self._reports.append(traced.report)

    def remove(self, traced: Traced) -> None:
        """Take a trace out; the last one takes the signature with it."""
        variants, kept = self._variants(), self._kept()
        if variants is not None and kept is not None:
            variants.remove(traced)
            self._reports.remove(traced.report)
            if not variants:
                kept.all = [each for each in kept.all if each is not variants]


class Kept:
    """Traces that a module keeps; a copy of the module has none."""

    def __init__(self) -> None:
        self.all: list[Variants] = []

    def __reduce__(self) -> Any:
        return Kept, ()
