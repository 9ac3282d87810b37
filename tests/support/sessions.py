"""Functions run by a `mt.Session`, in a file without tables of cases.

A graph looks for the names of tensors in all variables around the block that defines it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import minitorch as mt
from minitorch.tree import flatten, unflatten


def session(function: Callable[..., Any], tensors: Sequence[mt.Tensor], backend: str = "interpret") -> Any:
    """What a function returns for tensors, by way of placeholders for them."""
    with mt.Graph() as g:
        inputs = [mt.placeholder(x.shape, x.dtype, name=f"x{number}") for number, x in enumerate(tensors)]
        leaves, structure = flatten(function(*inputs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, mt.Tensor)]
    values = mt.Session(g, backend=backend).run([leaves[p] for p in places], dict(zip(inputs, tensors, strict=True)))
    for place, value in zip(places, values, strict=True):
        leaves[place] = value
    return unflatten(structure, leaves)


def in_a_session(function: Callable[[mt.Tensor], Any], x: mt.Tensor) -> Any:
    """What a function returns for a tensor that the graph captures."""
    with mt.Graph() as graph:
        results = function(x)
    return mt.Session(graph, "interpret").run(results)
