"""Freezing of a session's fetches: its graph as a frozen function of placeholders."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from minitorch.errors import FeedError, TracingError
from minitorch.graph import Graph
from minitorch.graph.build import literal
from minitorch.interpreters import made_by
from minitorch.ir import Node
from minitorch.modes.guards.surroundings import follows_training
from minitorch.modes.objects.outcome import Argument
from minitorch.nn import Module
from minitorch.tensor import Tensor, fetched

from .frozen_graph import FrozenGraph, Signature


def placeholders_of(given: Any, find: Callable[[object], Node | None]) -> list[Node]:
    """The placeholders that a user names as the arguments of a frozen function.

    Args:
        given: what the user gave.
        find: the placeholder of this graph behind a tensor; None if there is none.

    Raises:
        FeedError: for something that is no list, and for what in it is no placeholder of this graph (``MT301``).
    """
    if isinstance(given, (str, bytes, Tensor, Mapping)) or not isinstance(given, Iterable):
        raise FeedError(
            "MT301",
            f"the arguments of the frozen function are {_described(given)}, and no list of placeholders",
            fix="give a list, also of a single one: session.freeze(y, [x])",
        )
    found: list[Node] = []
    for place, each in enumerate(given):
        node = find(each)
        if node is None:
            raise FeedError(
                "MT301",
                f"argument {place} of the frozen function is {_described(each)}, and no placeholder of this graph",
                fix="give the tensors that mt.placeholder(...) returned in this graph, not their names or values",
            )
        found.append(node)
    return found


def _described(given: Any) -> str:
    """What a user gave, in a message."""
    if not isinstance(given, Tensor):
        return f"{given!r:.60}" if isinstance(given, (str, bytes, int, float)) else f"a {type(given).__name__}"
    node = given._value
    return f"a tensor of a graph, {made_by(node)}" if isinstance(node, Node) else f"a tensor of numbers, {given.spec}"


def frozen_fetches(
    graph: Graph,
    given: Sequence[Node],
    needed: Sequence[Node],
    variables: Mapping[Node, Tensor],
    results: Any,
    is_pure: bool,
    training: Sequence[Module],
    backend: str,
) -> FrozenGraph:
    """A graph as a frozen function.

    Args:
        graph: of the fetches.
        given: the placeholders that are its arguments.
        needed: those that it reads.
        variables: the tensors that its other inputs stand for.
        results: `Output` in place of the fetches.
        is_pure: whether they write to nothing.
        training: the modules that were called in training mode.
        backend: what runs it.

    Raises:
        TracingError: for fetches with effects, or modules in training (``MT112``).
        FeedError: for other placeholders than those that are needed (``MT301``, ``MT304``).
    """
    if not is_pure:
        raise TracingError(
            "MT112",
            "these fetches cannot be frozen: they write to variables, or draw random numbers",
            why="a frozen program has results and no effects, so that it can be saved, and run anywhere",
            fix="fetch results alone, without updates and training steps; define the graph after model.eval()",
        )
    for module in training:
        if follows_training(module):
            raise TracingError(
                "MT112",
                f"these fetches cannot be frozen: they call a {type(module).__name__} in training mode",
                why="in training it does something else than in evaluation, and a frozen program is for evaluation",
                fix="define the graph after model.eval()",
            )
    inputs: list[Node] = []
    for place, node in enumerate(given):
        if node in inputs:
            raise FeedError(
                "MT301",
                f"argument {place} of the frozen function is there twice: `{node.params['name']}`",
                fix="give each placeholder of the graph once",
            )
        inputs.append(node)
    for node in needed:
        if node not in inputs:
            raise FeedError(
                "MT304",
                f"the placeholder `{node.params['name']}` ({node.spec}) is not among the arguments",
                why="a fetched value depends on it",
                fix="add it to the placeholders, or leave them out",
            )
    constants = {
        node: literal(fetched(variables[node]), source=node.source) for node in graph.inputs if node in variables
    }
    baked = graph.substitute(constants)
    whole = Graph(inputs, baked.outputs, baked.nodes, graph.name)
    names = [_as_parameter(str(node.params["name"])) for node in inputs]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    arguments = tuple(Argument(place) for place in range(len(inputs)))
    return FrozenGraph(graph.name, parameters, [Signature(whole, (arguments, {}), results)], backend)


def _as_parameter(name: str) -> str:
    plain = name.replace(".", "_")
    return plain if plain.isidentifier() else f"_{plain}"
