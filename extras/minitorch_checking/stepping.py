"""Stepping through a compiled call line by line, with the value of every node, also inside kernels.

`values` computes them all, for a table; `Stepper` runs them line by line, and stops in Python's debugger. Both go
through the graph as it was traced, which has every operation of the function, and name the kernel that each line has
become a part of. Neither costs anything before: the function is traced again for the names of its variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import CodeType
from typing import Any

import numpy as np

from minitorch.graph import Graph
from minitorch.graph.evaluation import value_of
from minitorch.graph.text import node_names
from minitorch.graph.values import is_splat
from minitorch.ir import Node, Source
from minitorch.modes.tracing.traced import Traced
from minitorch.modes.ways_in.inspection import Inspectable
from minitorch.tables import Table, Tabular
from minitorch.tensor import Tensor, fetched, with_value

from .naming import Names, names_of

Array = np.ndarray[Any, Any]

VALUES = "  {:<12} {:<32} {}"
MOST_KERNELS = 2  # named with a line; raising it names more of those that the line is a part of


@dataclass(frozen=True)
class Value:
    """One intermediate value of a call.

    Attributes:
        name: of the variable that held it, or as in the listing of the graph: ``%3``.
        node: what computed it.
        tensor: the value.
        kernels: the kernels that its line is a part of.
    """

    name: str
    node: Node
    tensor: Tensor
    kernels: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """The value as a row of a table: name, operation and specification, and its first numbers."""
        first = [
            f"{each:.4g}" if isinstance(each, float) else str(each) for each in self.tensor._value.flat[:4].tolist()
        ]
        more = ["..."] if self.tensor._value.size > 4 else []
        return self.name, f"{self.node.primitive.name}: {self.node.spec}", f"[{', '.join(first + more)}]"

    @property
    def place(self) -> str:
        """The line, and the kernels that it is a part of."""
        kernels = ", ".join(self.kernels[:MOST_KERNELS])
        more = f" and {len(self.kernels) - MOST_KERNELS} more" if len(self.kernels) > MOST_KERNELS else ""
        return f"{self.node.source}, in {kernels}{more}" if kernels else str(self.node.source)

    def __str__(self) -> str:
        return str(Table(VALUES, [self.place, self.cells]))


class Values(Tabular, Mapping[str, tuple[Value, ...]]):
    """The intermediate values of a call by source line, ``"train.py:12"``; printing gives a table.

    Attributes:
        rows: all of them, in program order.
    """

    def __init__(self, rows: Sequence[Value]) -> None:
        self.rows = tuple(rows)
        self._lines: dict[str, list[Value]] = {}
        for row in rows:
            self._lines.setdefault(str(row.node.source), []).append(row)

    def __getitem__(self, line: str) -> tuple[Value, ...]:
        return tuple(self._lines[line])

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def named(self, name: str) -> Tensor:
        """The last value of a variable.

        Raises:
            KeyError: if there is no such variable.
        """
        for row in reversed(self.rows):
            if row.name == name:
                return row.tensor
        raise KeyError(name)

    def _parts(self) -> list[Table]:
        rows = [row for line in self for row in (self[line][0].place, *(value.cells for value in self[line]))]
        return [Table(VALUES, rows, ("name", "value", "numbers"), range(3))]


def values(f: Inspectable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Values:
    """Return the value of every node of a call's graph, without inputs and literals."""
    traced, tensors = f.looked_up(args, kwargs)
    arrays = list(map(fetched, traced.inputs(tensors)))
    graph, names, kernels = traced.program.graph, _names(f, args, kwargs, traced), _kernels(traced)
    listed = node_names(graph)
    known = {node: np.array(array) for node, array in zip(graph.inputs, arrays, strict=True)}
    rows = []
    for node in graph.nodes:
        known[node] = value_of(node, [known[operand] for operand in node.inputs])
        if not is_splat(node):
            variables = [name for code, name in names.of.get(node, ()) if _is_in(code, node.source)]
            here = kernels.get(node.source, ()) if node.source else ()
            rows.append(Value(variables[0] if variables else listed[node], node, with_value(known[node]), here))
    return Values(rows)


def stepped(f: Inspectable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], break_at: str | None) -> Any:
    """Call a function line by line, and stop in the debugger."""
    traced, tensors = f.looked_up(args, kwargs)
    graph, names = traced.program.graph, _names(f, args, kwargs, traced)
    return traced(tensors, Stepper(graph, names, _kernels(traced), break_at))


def _names(f: Inspectable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], traced: Traced) -> Names:
    request = f.request(args, kwargs)
    return Names() if request is None else names_of(request, traced.program.graph)


def _kernels(traced: Traced) -> dict[Source, tuple[str, ...]]:
    """The kernels that each line is a part of, on backends with kernels."""
    ledger = getattr(traced.program.compiled, "ledger", None)
    return {} if ledger is None else ledger.by_source()


def _is_in(code: CodeType, source: Source | None) -> bool:
    """Whether a function is in the file of a line."""
    return source is not None and code.co_filename == source.file


def _source(node: Node) -> Source | None:
    return node.source


class Stepper:
    """A graph to be run in the debugger; call it with one array per input.

    Args:
        break_at: the line to stop at, such as ``train.py:12``; the first one, if it is None.

    Raises:
        ValueError: if nothing is computed on that line.
    """

    def __init__(
        self, graph: Graph, names: Names, kernels: Mapping[Source, tuple[str, ...]], break_at: str | None = None
    ) -> None:
        self.graph = graph
        self.names = names
        self.kernels = kernels
        # Made in advance: an active debugger steps through whatever runs.
        self._lines = [self._line(source, list(nodes)) for source, nodes in groupby(graph.nodes, key=_source)]
        nodes = [node for node in graph.nodes if not is_splat(node)]
        sources = list(dict.fromkeys(node.source for node in nodes if node.source is not None))
        self.stops = {source for source in sources if break_at is not None and _is_at(source, break_at)}
        if break_at is None:
            self.stops = set(sources[:1])
        elif not self.stops:
            raise ValueError(f"nothing is computed at {break_at}, but at {', '.join(map(str, sources)) or 'no line'}")

    def _line(self, source: Source | None, nodes: list[Node]) -> tuple[Source | None, list[Node], CodeType | None]:
        """Nodes of one source line, and the code that stands for it; none if nothing is computed there."""
        from .debugger import line  # loads pdb

        if source is None or all(map(is_splat, nodes)):
            return source, nodes, None
        code, _ = self.names.scopes.get((source.file, source.line), (None, {}))
        return source, nodes, line(source, code.co_name if code else self.graph.name)

    def __call__(self, arrays: Sequence[Array], overwrite: bool = True) -> list[Array]:
        """Run the graph, line by line."""
        from .debugger import DO, Debugger

        known: dict[Node, Array] = dict(zip(self.graph.inputs, arrays, strict=True))
        variables = _Variables(self.graph, self.names)
        variables.add(self.graph.inputs, known)
        debugger = Debugger()
        with debugger.attached():
            for source, nodes, code in self._lines:

                def run(nodes: list[Node] = nodes) -> None:
                    for node in nodes:
                        known[node] = value_of(node, [known[operand] for operand in node.inputs])

                if source is None or code is None:
                    run()
                else:
                    outside, names = variables.at(source)
                    if source in self.stops:
                        debugger.stop_next()
                    exec(code, outside, {**names, "kernels": self.kernels.get(source, ()), DO: run})
                variables.add(nodes, known)
        return [np.array(known[node], order="C") for node in self.graph.outputs]


class _Variables:
    """The variables that have a value so far; equal names in several functions are kept apart."""

    def __init__(self, graph: Graph, names: Names) -> None:
        self._names = names
        self._listed = node_names(graph)
        self._all: dict[str, Tensor] = {}
        self._own: dict[CodeType, dict[str, Tensor]] = {}

    def add(self, nodes: Sequence[Node], known: Mapping[Node, Array]) -> None:
        """Some variables get values."""
        for node in nodes:
            if not is_splat(node):
                tensor = self._all[_identifier(self._listed[node])] = with_value(known[node])
                for code, name in self._names.of.get(node, ()):
                    self._all[name] = self._own.setdefault(code, {})[name] = tensor

    def at(self, source: Source) -> tuple[dict[str, Any], dict[str, Any]]:
        """The globals and the variables that a line sees."""
        code, outside = self._names.scopes.get((source.file, source.line), (None, {}))
        return dict(outside), {**self._all, **(self._own.get(code, {}) if code else {})}


def _identifier(name: str) -> str:
    """A name of a listing as a Python identifier: ``v3`` for ``%3``."""
    return f"v{name[1:]}" if name.startswith("%") else name.replace(".", "_")


def _is_at(source: Source, place: str) -> bool:
    full = f"{source.file}:{source.line}".replace("\\", "/")
    return place in (str(source), full) or full.endswith("/" + place)
