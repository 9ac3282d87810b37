"""Ways out: what turns a graph into something that runs. One small interface, one row per backend.

A backend is a function ``compile(graph, updates, donated) -> Executable``; an executable takes one array per input of
the graph and returns one per output. The arrays that come back are the caller's own: they share no memory with the
inputs.

Two things allow a backend to be sparing with memory. `updates` has for outputs that replace an input (a parameter's new
value, say) the position of that input: such an output may be written into the input's memory, and then the input's own
array comes back. And the memory of the inputs in `donated` may be used for any output. Neither is done in a call with
``overwrite=False``, and an input is overwritten only if nothing can fail any more.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ..passes import DEFAULT as OPTIMISATIONS
from ..passes import LOWERING, Pass

Array = np.ndarray[Any, Any]
Executable = Callable[..., list[Array]]  # of (arrays, overwrite=True)
Compile = Callable[..., Executable]  # of (graph, updates=None, donated=())

# The module of each backend; it is loaded when it is first used, and with it whatever it needs (LLVM, for one).
BACKENDS = {"interpret": "interpret", "llvm": "llvm", "loops": "loops"}

DEFAULT = "llvm"

# The backends that make loops of a graph.
COMPILING = frozenset(("llvm", "loops"))


def check(name: str) -> None:
    """Refuse the name of a backend that there is not.

    Raises:
        ValueError: naming those that there are.
    """
    if name not in BACKENDS:
        raise ValueError(f"there is no backend {name!r}; there is {', '.join(map(repr, BACKENDS))}")


def get(name: str) -> Compile:
    """The backend of a name.

    Raises:
        ValueError: naming those that there are.
    """
    check(name)
    compiler: Compile = import_module(f"{__name__}.{BACKENDS[name]}").compile
    return compiler


def passes_for(name: str) -> tuple[Pass, ...]:
    """The passes that a graph goes through on its way to a backend, unless others are asked for.

    Example:
        >>> [each.name for each in passes_for("llvm") if each not in passes_for("interpret")]
        ['scatter to select', 'contraction dimensions', 'sink reshapes']
    """
    return (*OPTIMISATIONS, *LOWERING) if name in COMPILING else OPTIMISATIONS


def set_num_threads(number: int) -> None:
    """Let compiled kernels run on up to so many threads, the caller's own among them. Results do not depend on it.

    Raises:
        ValueError: for less than one.

    Example:
        >>> import minitorch as mt
        >>> mt.set_num_threads(1)
        >>> mt.get_num_threads()
        1
    """
    from ..compiler.runtime import threads

    threads.set_num_threads(number)


def get_num_threads() -> int:
    """On how many threads compiled kernels may run: by default one for each core that this process may use."""
    from ..compiler.runtime import threads

    return threads.get_num_threads()
