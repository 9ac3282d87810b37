"""Traces for many sizes: arguments have symbolic sizes, and one trace is right for all lengths that keep its guards.

A backend that can, compiles such a trace once, for all sizes up to a bound; others compile it for each.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import backends
from ...errors import GraphError, ShapeError, TracingError
from ...graph import Graph
from ...interpreters.state import thread
from ...ir import Node, Shape, Source, Spec
from ...passes import Run, run_pipeline
from ...passes.lowering.at_sizes import at_sizes
from ...passes.pipeline import Stage
from ...sizes import Guard, Guards, Size, UndecidedError, is_symbolic, value_at
from ..objects.outcome import New
from .call_staging import CallStaging

if TYPE_CHECKING:
    from ..guards.observed import Observed
    from .options import Options
    from .recording import Recorded

Array = np.ndarray[Any, Any]
Symbols = Mapping[str, Mapping[int, str]]  # of arguments' dimensions, by their names

LEAST_BOUND = 64  # below it, columns would be written out
MOST_SIZES = 1024  # sizes whose arrays of lengths are kept


class SizedStaging(CallStaging):
    """The recording of a call whose arguments have symbolic sizes.

    Args:
        name, names: as for a `CallStaging`.
        symbols: of the arguments' dimensions, by the names of the arguments.
        guards: the questions about them.
        least: the smallest length for which comparisons are decided.
    """

    def __init__(self, name: str, names: dict[int, str], symbols: Symbols, guards: Guards, least: int = 1) -> None:
        super().__init__(name, names)
        self.symbols, self.guards_of_sizes, self.least = dict(symbols), guards, least

    def input(self, spec: Spec, name: str, source: Source | None = None) -> Node:
        """Add an input to the graph; the dynamic lengths of an argument are symbols."""
        symbols = self.symbols.pop(name, {})  # arguments come first
        shape = [
            self.guards_of_sizes.symbol(symbols[axis], length, min(length, self.least)) if axis in symbols else length
            for axis, length in enumerate(spec.shape)
        ]
        node = super().input(Spec(tuple(shape), spec.dtype), name, source)
        self.sized_inputs += [node] if symbols else []
        return node

    def settled_guards(self, recorded: Recorded, around: Observed) -> tuple[Guard, ...]:
        """Return the guards of a recording that is over.

        Raises:
            TracingError: if the program is right for one length alone (``MT118``).
        """
        for leaf in recorded.outcome.leaves:
            value = leaf.value if isinstance(leaf, New) else leaf
            if is_symbolic(value):
                raise _of_one_size(f"{value} is returned", None)
        for watch in around.seen:
            if is_symbolic(value := watch.look()):
                raise _of_one_size(f"`{watch.name}` is set to {value}", None)
        found = tuple(self.guards_of_sizes.found.values())
        for guard in found:
            if (
                guard.kind == "=="
                and guard.outcome
                and type(guard.right) in (int, float)
                and not _has_parts(guard.left)
            ):
                raise _of_one_size(f"{guard.left} is taken for a plain number", guard.source)
        return found


def _has_parts(size: Any) -> bool:
    """Return whether a formula has a quotient or the like, so that many lengths give one number, as of ``n % 2``."""
    return type(size) is Size and any(atom.sides for monomial, _ in size.polynomial for atom in monomial)


def _of_one_size(what: str, source: Source | None) -> TracingError:
    return TracingError(
        "MT118",
        f"the function depends on a dynamic size: {what}",
        where=str(source) if source else None,
        why="what it computes is another program for each length, so that one trace is not right for all of them",
        fix="compute with tensors and shapes, or leave this dimension out of dynamic_shapes",
    )


def settled_pipeline(graph: Graph, passes: Sequence[Any], guards: Guards) -> Run:
    """Apply passes, but for those that would decide by a size."""
    stages: list[Stage] = []
    with guards.settled():
        for each in passes:
            with suppress(UndecidedError, ShapeError, GraphError):
                stages += run_pipeline(stages[-1].after if stages else graph, (each,)).stages
    return Run(graph, tuple(stages))


def at_shapes(graph: Graph, shapes: Sequence[Shape], nodes: Container[Node] = ()) -> tuple[Graph, Container[Node]]:
    """Return a graph, and some of its nodes, with the sizes of inputs of these shapes in place of symbols."""
    sizes = {name: (shapes[place][axis] - added) // by for name, (place, axis, by, added) in _sources(graph)}
    found = at_sizes(graph, lambda each: value_at(each, sizes))
    return found, {now for now, then in zip(found.nodes, graph.nodes, strict=True) if then in nodes}


class Sized:
    """Executable of a graph with symbolic sizes.

    Args:
        graph: as recorded.
        passed: the graph after the passes.
        options: the backend and its passes.
        updates, donated: as of a `Program`.

    Attributes:
        compilations: how many programs were compiled so far.
        refused: why one program cannot be for all sizes; empty if it can.
    """

    def __init__(
        self,
        graph: Graph,
        passed: Graph,
        options: Options,
        updates: Mapping[int, int],
        donated: Collection[int],
    ) -> None:
        self._graph, self._passed, self._options = graph, passed, options
        self._updates, self._donated = updates, donated
        self._lock = threading.RLock()
        self._sources = dict(_sources(graph))
        self._by_sizes: dict[tuple[int, ...], backends.Executable] = {}
        self._bounded: Any = None
        self._latest: Any = None
        self._bound = backends.bounding(options.backend) if options.passes is None and not options.own else None
        self.compilations = 0
        self.refused = "" if self._bound else f"the backend {options.backend!r} compiles each size by itself"

    @property
    def ledger(self) -> Any:
        """The kernels of the latest program."""
        return getattr(self._bounded or self._latest, "ledger", None)

    def __call__(self, arrays: Sequence[Array], overwrite: bool = True) -> list[Array]:
        """Run the program for the sizes of these arrays, compiling it if there is none."""
        sizes = tuple([arrays[place].shape[axis] for place, axis, *_ in self._sources.values()])
        run = self._by_sizes.get(sizes)
        if run is None or thread.eager.watcher is not None:
            run = self._for(sizes)
        return run(arrays, overwrite)

    def _for(self, lengths: tuple[int, ...]) -> backends.Executable:
        with self._lock:
            sizes = {
                name: (length - added) // factor
                for (name, (_, _, factor, added)), length in zip(self._sources.items(), lengths, strict=True)
            }
            if thread.eager.watcher is not None:  # which runs the kernels one by one, on arrays of their shapes
                return self._alone(sizes)
            made = self._within_bounds(sizes) or self._alone(sizes)
            if len(self._by_sizes) >= MOST_SIZES:
                self._by_sizes.clear()
            return self._by_sizes.setdefault(lengths, made)

    def _within_bounds(self, sizes: dict[str, int]) -> backends.Executable | None:
        """Return the program for all sizes up to a bound, at these sizes; None if there is none."""
        if self._bound is None:
            return None
        if self._bounded is None or any(length > self._bounded.most[name] for name, length in sizes.items()):
            from ...compiler.lengths import UnboundedError

            before = self._bounded.most if self._bounded is not None else {}
            most = {name: max(before.get(name, 0), bound_of(length)) for name, length in sizes.items()}
            try:
                self._bounded = self._bound(self._passed, most, self._updates, self._donated)
            except UnboundedError as error:
                self._bound, self.refused = None, str(error)
                return None
            self.compilations += 1
        found: backends.Executable = self._bounded.at(sizes)
        return found

    def _alone(self, sizes: Mapping[str, int]) -> backends.Executable:
        """Return a program for these sizes alone."""
        options = self._options
        passes = backends.passes_for(options.backend) if options.passes is None else options.passes
        graph = run_pipeline(at_sizes(self._graph, lambda each: value_at(each, sizes)), passes).graph
        own = {"own": options.own} if options.own else {}
        made = self._latest = backends.get(options.backend)(graph, self._updates, self._donated, **own)
        self.compilations += 1
        return made


def bound_of(length: int) -> int:
    """Return the bound that a program is compiled for when a length is met that is not within its bound.

    Example:
        >>> bound_of(3), bound_of(16), bound_of(17)
        (64, 64, 128)
    """
    return max(LEAST_BOUND, 1 << (4 * length - 1).bit_length())


def _sources(graph: Graph) -> Iterator[tuple[str, tuple[int, int, int, int]]]:
    """Yield where the value of each symbol is found: in an input's dimension, times a factor, plus a number."""
    found: set[str] = set()
    for place, node in enumerate(graph.inputs):
        lengths: tuple[Any, ...] = node.shape
        for axis, length in enumerate(lengths):
            if not is_symbolic(length):
                continue
            terms = dict(length.polynomial)
            added = terms.pop((), 0)
            if len(terms) == 1 and len(monomial := next(iter(terms))) == 1 and not monomial[0].sides:
                name = monomial[0].kind
                if name not in found:
                    found.add(name)
                    yield name, (place, axis, int(terms[monomial]), int(added))
