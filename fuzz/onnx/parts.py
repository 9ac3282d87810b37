"""Parts of a model that mutations change: its graphs, nodes, arrays and declarations; and how lists are edited."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

INT64 = (-(2**63), 2**63 - 1)
INTS = [0, 1, -1, 2, 3, -3, 5, 31, 33, 1000, 2**16, 2**20, 2**31 - 1, 2**31, 2**33, 2**40, 2**62, *INT64]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, math.inf, -math.inf, math.nan, 0.5, 2.0**31, 2.0**62]


def graphs(model: Any) -> Iterator[Any]:
    """The graph and the bodies in it."""
    pending = [model.graph]
    while pending:
        graph = pending.pop()
        yield graph
        for node in graph.node:
            pending += [each.g for each in node.attribute if each.HasField("g")]


def nodes(model: Any) -> list[Any]:
    """The nodes, also those of bodies and functions."""
    found = [node for graph in graphs(model) for node in graph.node]
    return found + [node for function in model.functions for node in function.node]


def tensors(model: Any) -> list[Any]:
    """The arrays: initializers and attributes."""
    found = [tensor for graph in graphs(model) for tensor in graph.initializer]
    found += [each.t for node in nodes(model) for each in node.attribute if each.HasField("t")]
    for graph in graphs(model):
        found += [part for each in graph.sparse_initializer for part in (each.values, each.indices)]
    return found


def values(model: Any) -> list[Any]:
    """The declarations of inputs and results."""
    return [each for graph in graphs(model) for each in (*graph.input, *graph.output)]


def names(model: Any) -> list[str]:
    """The names of all values, and two that nothing has."""
    found = [name for node in nodes(model) for name in (*node.input, *node.output)]
    return [*found, *(tensor.name for tensor in tensors(model)), "", "nobody"]


def one(chance: random.Random, found: Sequence[Any]) -> Any:
    """One of several; None if there are none."""
    return chance.choice(found) if found else None


def copy(message: Any) -> Any:
    """A message of its own, whatever it was a part of."""
    return type(message).FromString(message.SerializeToString())


def edit(chance: random.Random, items: Any, new: Any) -> None:
    """Change a repeated field of numbers or texts: replace, insert, delete, clear, turn around, repeat."""
    found, kind = list(items), chance.randrange(7)
    place = chance.randrange(len(found) or 1)
    if kind < 3:
        found[place : place + 1] = [new]
    elif kind == 3:
        found.insert(place, new)
    elif kind == 4:
        del found[place : place + 1]
    elif kind == 5:
        found = found[::-1] if chance.random() < 0.5 else []
    else:
        found = found * chance.choice([2, 40])
    del items[:]
    items.extend(found)
