"""`Pass`, and pipelines: lists of passes, run with a snapshot of the graph before and after each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..drawable import Drawable
from ..errors import GraphError
from ..graph.build import with_inputs
from ..graph.graph import Graph
from ..graph.values import bodies
from ..graph.verify import verify
from ..ir import Node
from ..named import by_name
from ..packages import is_own
from ..tables import Table, Tabular
from .rewrite import Rules, rewrite

STAGES = "{:<24}{:<14}{:>11}  {}"  # a pass, the nodes before and after it, its time, and what changed


@dataclass(frozen=True)
class Pass:
    """A named function from graph to graph.

    A pass returns a new graph, or the given one if there is nothing to do. It keeps inputs and
    outputs: their number, order, shapes and types. The outputs have the same bits, NaN counting as NaN, if sums are
    taken as of contiguous operands, and in the same order. The exceptions are `autocast`, which is for other numbers,
    and affine folding, which is for frozen graphs and states its bound.

    Attributes:
        name: its name in listings and pictures.
        function: from graph to graph.
        doc: its purpose, in a sentence.
        rules: its table of rules, if it has one.
        rearranges: whether it may give values another shape, and sums another order. Pictures then follow arithmetic
            by the line of the program that caused it.
    """

    name: str
    function: Callable[[Graph], Graph]
    doc: str
    rules: Rules | None = None
    rearranges: bool = False

    def __call__(self, graph: Graph) -> Graph:
        """Run the pass on the bodies of loops and branches, and then on the graph; verify the result.

        Raises:
            GraphError: if the result breaks a rule, or has other inputs or outputs (``MT601``).
        """
        result = self.function(inside(graph, self))
        if result is graph:
            return graph
        verify(result, trusted=graph)
        if result.inputs != graph.inputs or _specs(result) != _specs(graph):
            raise GraphError(
                "MT601",
                f"the pass '{self.name}' changed the inputs or outputs of {graph.name}",
                why="inputs and outputs are matched by position",
                fix="keep their number, order, shapes and types",
            )
        return result

    def __reduce__(self) -> Any:
        module = getattr(self.function, "__module__", None)  # of a package beside the engine, perhaps
        own = by_name(self, __package__, *([module] if is_own(module) else ()))
        return own or (Pass, (self.name, self.function, self.doc, self.rules, self.rearranges))

    def __repr__(self) -> str:
        return f"<pass {self.name}: {self.doc}>"


def inside(graph: Graph, function: Callable[[Graph], Graph]) -> Graph:
    """Return a graph in whose place of each body there is what a function makes of it; the graph itself if all stay."""
    if not any(node.primitive.together for node in graph.nodes):
        return graph
    made: dict[int, Graph] = {}  # siblings share their bodies
    now: dict[Node, Node] = {}
    for node in graph.nodes:
        new = with_inputs(node, tuple([now.get(operand, operand) for operand in node.inputs]))
        changed: dict[str, Graph] = {}
        for name, body in bodies(node).items():
            found = made[id(body)] if id(body) in made else made.setdefault(id(body), function(body))
            changed |= {name: found} if found is not body else {}
        now[node] = Node(new.primitive, new.inputs, {**new.params, **changed}, new.spec, new.source) if changed else new
    if all(new is node for node, new in now.items()):
        return graph
    return graph.with_nodes(now.values(), [now.get(node, node) for node in graph.outputs])


def _specs(graph: Graph) -> list[object]:
    return [node.spec for node in graph.outputs]


def table_pass(name: str, rules: Rules, doc: str) -> Pass:
    """Make a pass that applies a table of rules."""
    return Pass(name, lambda graph: rewrite(graph, rules), doc, rules)


@dataclass(frozen=True)
class Stage:
    """One pass of a run.

    Attributes:
        applied: the pass.
        before: the graph it was given.
        after: its result; the same object if it changed nothing.
        milliseconds: how long it took, checks included.
    """

    applied: Pass
    before: Graph
    after: Graph
    milliseconds: float

    @property
    def name(self) -> str:
        """The name of the pass."""
        return self.applied.name

    @property
    def removed(self) -> Counter[str]:
        """The number of nodes removed, by primitive."""
        return self.before.count() - self.after.count()

    @property
    def added(self) -> Counter[str]:
        """The number of nodes added, by primitive."""
        return self.after.count() - self.before.count()

    @property
    def cells(self) -> tuple[str, ...]:
        """The stage as a row of a table, of the form `STAGES`."""
        changes = [f"-{count} {name}" for name, count in sorted(self.removed.items())]
        changes += [f"+{count} {name}" for name, count in sorted(self.added.items())]
        size = f"{self.before.count().total():>5} -> {self.after.count().total():<5}"
        return self.name, size, f"{self.milliseconds:.2f} ms", ", ".join(changes)

    def __str__(self) -> str:
        return str(Table(STAGES, [self.cells]))


@dataclass(frozen=True, repr=False)
class Run(Tabular, Drawable):
    """The snapshots of a pipeline's run.

    Attributes:
        initial: the graph it was given.
        stages: one for each pass, in order.
    """

    initial: Graph
    stages: tuple[Stage, ...] = field(default=())

    @property
    def graph(self) -> Graph:
        """The graph after the last pass."""
        return self.stages[-1].after if self.stages else self.initial

    @property
    def milliseconds(self) -> float:
        """The time of all passes."""
        return sum(stage.milliseconds for stage in self.stages)

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    def _parts(self) -> list[Table]:
        return [
            Table(STAGES, [stage.cells for stage in self.stages], ("pass", "     nodes", "time", "changes"), (0, 1))
        ]


def run_pipeline(graph: Graph, passes: Iterable[Pass]) -> Run:
    """Apply passes one after another; the given graph stays unchanged.

    Raises:
        GraphError: naming the pass after which the graph breaks a rule (``MT601``).
    """
    initial = graph
    stages = []
    for each in passes:
        start = time.perf_counter()
        try:
            after = each(graph)
        except GraphError as error:
            error.add_note(f"  in the pass '{each.name}'")
            raise
        stages.append(Stage(each, graph, after, (time.perf_counter() - start) * 1e3))
        graph = after
    return Run(initial, tuple(stages))
