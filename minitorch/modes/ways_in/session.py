"""Execution, the second of two phases, after TensorFlow 1: `Session.run` computes the fetches, and only their needs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import backends
from ...drawable import Drawable
from ...errors import FeedError, FetchError, TracingError, compose
from ...graph import Graph as BaseGraph
from ...graph import topological_order
from ...interpreters import Captured, current_staging, made_by
from ...ir import Node, warn_user
from ...nn import Module
from ...packages import load
from ...tensor import Tensor, fetched, with_value
from ...tree import flatten, unflatten
from ..objects.outcome import Output
from ..tracing.options import Options
from ..tracing.program import Callbacks, Program, are_apart, write
from .definition import Graph, GraphStaging, Operation, Update, Write
from .feeding import as_fed
from .lazy import LazyStaging

if TYPE_CHECKING:
    from minitorch_inference.frozen_graph import FrozenGraph

_PROGRAMS_KEPT = 64


class Session(Drawable):
    """Runner of parts of a graph: it computes the fetches, and only their dependencies.

    Args:
        graph: defined with ``with mt.Graph() as graph:``.
        backend: the backend that runs it.
        device: where, for a backend that has a choice.

    Each set of fetches is optimised and compiled once. An in-place write is carried out when it is fetched, by itself
    or as a part of ``optimizer.minimize(loss)``; that has also the writes of the modules that the loss was computed
    with to their buffers, such as running statistics. Fetching the loss alone changes nothing.

    The graph has its modules as they were when it was defined, in training or not: for evaluation, define another one
    after ``model.eval()``.

    Example:
        >>> import minitorch as mt
        >>> counter = mt.zeros(())
        >>> with mt.Graph() as g:
        ...     increment = counter.add_(1)
        >>> session = mt.Session(g)
        >>> [session.run(increment).item() for _ in range(3)], counter.item()
        ([1.0, 2.0, 3.0], 3.0)
    """

    def __init__(self, graph: Graph, backend: str = backends.DEFAULT, device: str | None = None) -> None:
        backend = backends.placed(backend, device)
        if not isinstance(graph, BaseGraph):
            raise TypeError(f"a session is made of a graph, mt.Graph(), not of {type(graph).__name__}")
        if getattr(graph, "_staging", None) is None:
            raise FetchError(
                "MT305",
                "a session of a graph that was not defined in a `with` block",
                why="a parsed or rewritten graph has no tensors to fetch or feed",
                fix="run it with mt.backends.get('interpret')(graph)(arrays)",
            )
        self.graph = graph
        self.backend = backend
        assert graph._staging is not None
        self._staging = graph._staging
        self._programs: OrderedDict[Any, _Compiled] = OrderedDict()
        self._callbacks: dict[Any, Callbacks] = {}  # by recorded operations and fed placeholders
        self._module_changes = Module.changes - 1
        self._warned = False

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Compute the fetches.

        Args:
            fetches: a tensor of the graph, a variable, an update, an `Operation` such as ``optimizer.minimize(loss)``,
                or a nested structure of them.
            feed_dict: a value for every placeholder that is needed, by placeholder or by name. Arrays and tensors must
                have its shape and type; plain numbers and lists are converted.

        Returns:
            Tensors in the structure of `fetches`; None in place of an `Operation`.

        Raises:
            FeedError: ``MT301`` to ``MT304``, naming the placeholder.
            FetchError: ``MT305`` for a fetch that is not in this graph.
            TracingError: ``MT110`` while a function is traced or another graph is defined.
        """
        staging = current_staging()
        if isinstance(staging, LazyStaging):
            staging.flush("Session.run")  # placeholders and variables get their values
        elif staging is not None:
            raise TracingError(
                "MT110",
                f"a session is run while {staging.trace.name} is being recorded",
                why="it would run once, now, and the recorded program would only have its numbers, as constants",
                fix="run the session outside, and pass the result on as an argument",
            )
        if self._module_changes != Module.changes and not self._warned:
            self._look_at_modes()
        leaves, structure = flatten(fetches)
        program = self._compiled(leaves)
        fed = self._fed(feed_dict or {}, program)
        arrays = program.arguments(fed)
        if self._staging.callbacks:
            self._call_back(fed)
        values = program.program.run(arrays, are_apart(arrays, program.program.updates.values()))
        del arrays  # memory is held by tensors alone, so that a new value can take its place
        results = [None if position is None else with_value(values[position]) for position in program.positions]
        for captured, array in zip(program.written, values[program.fetched :], strict=True):
            write(captured.tensor, array)
        return unflatten(structure, results)

    def program_for(self, *fetches: Any) -> tuple[Program, int, tuple[str, ...]]:
        """Return the program of some fetches, the number of its outputs that are fetched, and the variables it writes.

        Raises:
            FetchError: ``MT305`` for a fetch that is not in this graph.
        """
        found = self._compiled(flatten(fetches)[0])
        return found.program, found.fetched, tuple([str(item.input.params["name"]) for item in found.written])

    def subgraph(self, fetches: Any) -> BaseGraph:
        """Return the graph that `run` would compute for these fetches; nothing is run.

        It is the graph before any pass. Its inputs are the placeholders and variables that are needed, its outputs the
        fetches, and after that the new values of the variables that are written.

        Raises:
            FetchError: ``MT305`` for a fetch that is not in this graph.

        Example:
            >>> import minitorch as mt
            >>> with mt.Graph() as g:
            ...     x, y = mt.placeholder(3, name="x"), mt.placeholder(3, name="y")
            ...     total, product = (x + y).sum(), x * y
            >>> print(mt.Session(g).subgraph(product))
            graph(x: f32[3], y: f32[3]):
              %0 = mul(x, y) : f32[3]  # ...
              return %0
        """
        return self._compiled(flatten(fetches)[0]).graph

    def freeze(self, fetches: Any, placeholders: Sequence[Any] | None = None) -> FrozenGraph:
        """Freeze some fetches into a function of placeholders, in which the variables are constants.

        As TensorFlow 1's ``convert_variables_to_constants``: it contains only the dependencies of the fetches.

        Args:
            fetches: as for `run`, but nothing that writes.
            placeholders: the arguments of the function, in order; by default all that are needed, as they were defined.

        Returns:
            A `Frozen` function of the placeholders, which have to have the shapes and types that they were defined
            with. It can be saved, and its results are those of `run`.

        Raises:
            TracingError: for fetches that write to variables, draw random numbers or need a module in training
                (``MT112``).
            FetchError: for a fetch that is not in this graph (``MT305``).
            FeedError: for placeholders that are not those that are needed, and for their names (``MT301``, ``MT304``).

        Example:
            >>> import minitorch as mt
            >>> layer = mt.nn.Linear(2, 2).eval()
            >>> with mt.Graph() as g:
            ...     x = mt.placeholder((3, 2), name="x")
            ...     y = layer(x)
            >>> frozen = mt.Session(g).freeze(y)
            >>> frozen(mt.ones(3, 2)).shape, frozen
            ((3, 2), <frozen graph on backend 'llvm', 1 signature>)
        """
        freezing = load("minitorch_inference.freezing")
        leaves, structure = flatten(fetches)
        found = self._compiled(leaves)
        given = found.placeholders
        if placeholders is not None:
            given = freezing.placeholders_of(placeholders, self._staging.placeholder_of)
        results = unflatten(structure, [None if place is None else Output(place) for place in found.positions])
        variables = {each.input: each.tensor for each in self._staging.captured.values()}
        calls = self._staging.module_calls
        training = [each.module for each in calls if each.training and not found.nodes.isdisjoint(each.results)]
        is_pure = not found.written and None not in found.positions
        frozen: FrozenGraph = freezing.frozen_fetches(
            found.graph, given, found.placeholders, variables, results, is_pure, training, self.backend
        )
        return frozen

    def _call_back(self, fed: dict[int, np.ndarray[Any, Any]]) -> None:
        """Call the graph's callbacks whose placeholders are all fed."""
        staging = self._staging
        key = (len(staging.callbacks), len(staging.captured), frozenset(fed))
        if key not in self._callbacks:
            absent = {node for node in staging.placeholders if id(node) not in fed}
            possible = [each for each in staging.callbacks if absent.isdisjoint(topological_order(each.nodes))]
            inputs = [node for node in staging.placeholders if node not in absent]
            inputs += [item.input for item in staging.captured.values()]
            self._callbacks[key] = Callbacks(inputs, possible, self.graph.name, Options(self.backend).unwatched)
        arrays = [fed[id(node)] for node in staging.placeholders if id(node) in fed]
        self._callbacks[key]([*arrays, *(fetched(item.tensor) for item in staging.captured.values())])

    def _look_at_modes(self) -> None:
        """Warn once of a module that was switched between training and evaluation after the definition."""
        self._module_changes = Module.changes
        module = self.graph.other_mode()
        if module is None:
            return
        self._warned = True
        kind, now = type(module).__name__, "train" if module.training else "eval"
        warn_user(
            compose(
                "MT106",
                f"`training` of a {kind} was {not module.training} when this graph was defined and is "
                f"{module.training} now; the graph goes on as it was",
                why="train() and eval() say what is recorded, and a finished graph is not recorded again",
                fix=f"define a graph for {'training' if module.training else 'evaluation'} after model.{now}(), "
                "with the same parameters, and run that in a session of its own",
            )
        )

    def _fed(self, feed_dict: Mapping[Any, Any], program: _Compiled) -> dict[int, np.ndarray[Any, Any]]:
        by_name = {str(node.params["name"]): node for node in self._staging.placeholders}
        fed = {}
        for key, value in feed_dict.items():
            node = by_name.get(key) if isinstance(key, str) else self._staging.placeholder_of(key)
            if node is None:
                names = ", ".join(f"`{name}`" for name in by_name)
                raise FeedError(
                    "MT301",
                    f"{self._described(key)} is fed, and is not a placeholder of this graph",
                    why=f"its placeholders are {names}; other tensors are computed, and variables have their own values"
                    if names
                    else "it has no placeholders",
                    fix="feed placeholders; give a variable another value in place, w.copy_(...)",
                )
            fed[id(node)] = as_fed(value, node)
        for node in program.placeholders:
            if id(node) not in fed:
                raise FeedError(
                    "MT304",
                    f"the placeholder `{node.params['name']}` ({node.spec}) has no value",
                    where=f"it was made at {node.source}",
                    why="a fetched value depends on it, and a placeholder has no value of its own",
                    fix=f"add it: feed_dict={{{node.params['name']}: ...}}",
                )
        return fed

    def _described(self, key: Any) -> str:
        if not isinstance(key, Tensor):
            return f"{key!r:.60}"
        if isinstance(key._value, Node):
            return f"a tensor {key.spec}, {made_by(key._value)},"
        return f"a tensor {key.spec} from outside, `{self._staging.name_of(key)}`,"

    def _compiled(self, leaves: list[Any]) -> _Compiled:
        for leaf in leaves:
            if type(leaf) is Tensor and isinstance(leaf._value, Node) and leaf._value.trace is self._staging.trace:
                self._staging.renew(leaf)
        key = tuple([id(leaf._value) if type(leaf) is Tensor else id(leaf) for leaf in leaves])
        found = self._programs.pop(key, None)
        if found is None:
            found = _Compiled(self._staging, leaves, self.backend)
        self._programs[key] = found
        while len(self._programs) > _PROGRAMS_KEPT:
            self._programs.popitem(last=False)
        return found


class _Compiled:
    """Set of fetches: their program, and the writes that go with them."""

    def __init__(self, staging: GraphStaging, leaves: list[Any], backend: str) -> None:
        self.leaves = leaves  # kept alive, so that their ids stay unique
        nodes: list[Node] = []
        self.positions: list[int | None] = []
        writes: list[Write] = []
        for leaf in leaves:
            if isinstance(leaf, Operation):
                self.positions.append(None)
                writes += leaf.writes
                continue
            self.positions.append(len(nodes))
            nodes.append(_fetched(staging, leaf))
            if isinstance(leaf, Update):
                writes.append(leaf.write)
        last = _last_writes(staging, nodes, writes)
        self.fetched = len(nodes)
        self.written = [item.variable for item in last]
        outputs = nodes + [item.after for item in last]
        everything = BaseGraph(
            (*staging.placeholders, *(item.input for item in staging.captured.values())),
            outputs,
            staging.nodes,
            verify=False,
        )
        graph = everything.subgraph(outputs, keep_inputs=False)
        variables = {id(item.input): item for item in staging.captured.values()}
        needed = graph.inputs
        places = {id(variables[id(node)]): place for place, node in enumerate(needed) if id(node) in variables}
        updates = {
            self.fetched + number: places[id(item)] for number, item in enumerate(self.written) if id(item) in places
        }
        self.graph, self._backend, self._updates = graph, backend, updates
        self.placeholders = [node for node in needed if id(node) not in variables]
        self._inputs = [variables.get(id(node), node) for node in needed]

    @cached_property
    def nodes(self) -> set[Node]:
        """The nodes of the graph."""
        return {*self.graph.inputs, *self.graph.nodes}

    @cached_property
    def program(self) -> Program:
        """The optimised and compiled graph, made for the first run."""
        return Program(self.graph, Options(self._backend), self._updates)

    def arguments(self, fed: dict[int, np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Return the program's inputs: present values of variables, fed arrays of placeholders."""
        variables = iter(self.program.values([item.tensor for item in self._inputs if isinstance(item, Captured)]))
        return [next(variables) if isinstance(item, Captured) else fed[id(item)] for item in self._inputs]


def _last_writes(staging: GraphStaging, nodes: list[Node], asked: list[Write]) -> list[Write]:
    """Return the writes to carry out: the last one of each variable, and the advance of the random state.

    A draw of random numbers advances its generator whenever it is computed, fetched or not.
    """
    drawn_from = {
        id(node.inputs[0])
        for node in topological_order([*nodes, *(item.after for item in asked)])
        if node.primitive.name == "random_bits"
    }
    asked = [*asked, *(item for item in staging.writes if id(item.before) in drawn_from)]
    last: dict[int, Write] = {}
    for item in sorted(asked, key=lambda item: item.position):
        last[id(item.variable)] = item
    return list(last.values())


def _fetched(staging: GraphStaging, leaf: Any) -> Node:
    """Return the node of a fetch."""
    if isinstance(leaf, Tensor):
        node = leaf._value
        if isinstance(node, Node):
            if node.trace is staging.trace:
                return node
        elif (known := staging.captured.get(id(leaf))) is not None:
            return known.input
    raise _not_in_graph(leaf)


def _not_in_graph(leaf: Any) -> FetchError:
    if isinstance(leaf, Tensor):
        made = f", {made_by(leaf._value)}," if isinstance(leaf._value, Node) else ""
        what, why = f"a tensor {leaf.spec}{made}", "it was made outside of its `with` block, or in another graph"
    else:
        what, why = f"{leaf!r:.60}, a {type(leaf).__name__},", "what can be fetched are tensors and operations"
    return FetchError(
        "MT305",
        f"{what} is fetched, and is not in this session's graph",
        why=why,
        fix="fetch tensors made inside `with graph:`, variables that the graph uses, or the result of minimize",
    )
