"""Ways out: what turns a graph into something that runs. One small interface, one row per backend.

A backend is a function ``compile(graph) -> Executable``; an executable takes one array per input of the graph and
returns one per output. The arrays that come back are the caller's own: they share no memory with the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph import Graph
from . import interpret

Array = np.ndarray[Any, Any]
Executable = Callable[[Sequence[Array]], list[Array]]
Compile = Callable[[Graph], Executable]

BACKENDS: dict[str, Compile] = {"interpret": interpret.compile}

DEFAULT = "interpret"


def get(name: str) -> Compile:
    """The backend of a name.

    Raises:
        ValueError: naming those that there are.
    """
    if name not in BACKENDS:
        raise ValueError(f"there is no backend {name!r}; there is {', '.join(map(repr, BACKENDS))}")
    return BACKENDS[name]
