"""Freezing of a session's fetches: its graph as a frozen function of placeholders."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import FeedError, TracingError
from ...graph import Graph
from ...graph.build import literal
from ...ir import Node
from ...nn import Module
from ...tensor import Tensor
from ..checking.rehearsal import Argument
from ..guards.surroundings import follows_training
from .frozen_graph import FrozenGraph, Signature


def frozen_fetches(
    graph: Graph,
    given: Sequence[Node | None],
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
        given: the placeholders that are its arguments; None for something that is no placeholder.
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
        if node is None or node in inputs:
            what = "no placeholder of this graph" if node is None else "there twice"
            raise FeedError(
                "MT301",
                f"argument {place} of the frozen function is {what}",
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
        node: literal(variables[node]._value, source=node.source) for node in graph.inputs if node in variables
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
