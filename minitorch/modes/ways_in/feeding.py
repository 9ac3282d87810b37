"""Feeding of a session: arrays for placeholders, checked against their declared shapes and types."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import FeedError
from ...interpreters import made_by
from ...ir import Node, Spec
from ...tensor import Tensor, fetched


def as_fed(value: Any, node: Node) -> np.ndarray[Any, Any]:
    """Return the array to feed for a placeholder."""
    name, spec = node.params["name"], node.spec
    made = f"the placeholder `{name}` is {spec}, made at {node.source}"
    if isinstance(value, Tensor):
        array = fetched(value)
        if isinstance(array, Node):
            raise FeedError(
                "MT301",
                f"`{name}` is fed a tensor of a graph, {made_by(array)}",
                where=made,
                why="it has no value: it stands for one that is computed when its graph is run",
                fix="feed numbers: run its graph first, and feed the result",
            )
    elif isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
    else:
        array = _converted(value, name, spec, made)
    if array.dtype != spec.dtype.numpy:
        raise FeedError(
            "MT303",
            f"`{name}` is fed an array of type {array.dtype}",
            where=made,
            why="types are fixed when the graph is defined",
            fix=f"convert it: value.astype('{spec.dtype.name}'), or x.to(mt.{spec.dtype.name})",
        )
    if array.shape != spec.shape:
        raise FeedError(
            "MT302",
            f"`{name}` is fed an array of shape {list(array.shape)}",
            where=made,
            why="shapes are fixed when the graph is defined",
            fix="feed an array of that shape, or define a graph for this one",
        )
    fed: np.ndarray[Any, Any] = array
    return fed


def _converted(value: Any, name: str, spec: Spec, made: str) -> np.ndarray[Any, Any]:
    """Return Python numbers, in lists or not, as an array of the placeholder's type."""
    try:
        plain = np.asarray(value)
    except ValueError:
        raise FeedError(
            "MT302",
            f"`{name}` is fed {value!r:.60}, whose parts have different lengths",
            where=made,
            why="a tensor has rows of one length",
            fix="pad the shorter ones to one length",
        ) from None
    kinds = "biuf" if spec.dtype.is_floating_point else "biu"
    try:
        if plain.size and plain.dtype.kind not in kinds:
            raise TypeError
        return plain.astype(spec.dtype.numpy) if not plain.size else np.asarray(value, dtype=spec.dtype.numpy)
    except (ValueError, TypeError, OverflowError):
        raise FeedError(
            "MT303",
            f"`{name}` is fed {value!r:.60}, which {spec.dtype.name} cannot hold",
            where=made,
            why="plain numbers are converted to the placeholder's type, but nothing is cut off",
            fix="feed such numbers, or define the placeholder with another type",
        ) from None
