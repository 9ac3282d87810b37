"""Backends: functions that turn a graph into something that runs. One interface, one row per backend.

A backend is a function ``compile(graph, updates, donated) -> Executable``; an executable takes one array per input of
the graph and returns one per output. The arrays that come back are the caller's own: they share no memory with the
inputs.

Two arguments let a backend reuse memory. `updates` maps outputs that replace an input (such as a parameter's new value)
to the position of that input. After the call such an output is the new value, wherever it lies; it may be written into
the input's memory, and then the input's own array comes back. The memory of the inputs in `donated` may be used for any
output. Neither is done in a call with ``overwrite=False``, and an input is overwritten only once the call can no longer
fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..packages import load, names_from

if TYPE_CHECKING:
    from ..passes import Pass

Array = np.ndarray[Any, Any]
Executable = Callable[..., list[Array]]  # of (arrays, overwrite=True)
Compile = Callable[..., Executable]  # of (graph, updates=None, donated=())


@dataclass(frozen=True)
class Backend:
    """A row of `BACKENDS`.

    Attributes:
        module: where its function ``compile`` is; loaded with its dependencies (such as LLVM) when it is first used.
        lowers: whether it lowers a graph to loops, which the passes `LOWERING` prepare.
        has_device: whether its values are in separate memory, and are copied when Python reads them.
        bounds_sizes: whether its module has a function ``compile_bounded``: of graphs with symbolic sizes.
        keeps_bits: whether it rounds every sum, product, quotient and root as eager mode does.
        needs: a package beyond those of the engine.
        missing: what to do without that package.
    """

    module: str
    lowers: bool = False
    has_device: bool = False
    bounds_sizes: bool = False
    keeps_bits: bool = True
    needs: str = ""
    missing: str = ""


__getattr__, __dir__ = names_from(__name__, {name: f"{__name__}.{name}" for name in ("cudnn", "mps")})

BACKENDS = {
    "interpret": Backend("minitorch.backends.interpret"),
    "llvm": Backend("minitorch.backends.llvm", lowers=True, bounds_sizes=True),
    "loops": Backend("minitorch.backends.loops", lowers=True),
    # XLA fuses products with sums, and multiplies by a reciprocal where it divides by one number.
    "xla": Backend(
        "minitorch_xla.backend",
        has_device=True,
        keeps_bits=False,
        needs="jax",
        missing="JAX, which is not installed: pip install jax",
    ),
}
"""The table of backends, by name. A further row is all that another one needs:

Example:
    >>> BACKENDS["mine"] = Backend("minitorch.backends.interpret")
    >>> import minitorch as mt
    >>> mt.jit(lambda x: x + 1, backend="mine")(mt.ones(2))
    tensor([2., 2.])
    >>> del BACKENDS["mine"]
"""

DEFAULT = "llvm"


def row_of(name: str) -> Backend:
    """Return the row of a backend; a name may include a device (``"xla:cuda"``)."""
    return BACKENDS[name.partition(":")[0]]


def check(name: str) -> None:
    """Refuse an unknown backend's name.

    Raises:
        ValueError: naming those that there are.
    """
    kind, _, device = name.partition(":")
    if kind not in BACKENDS or (device and not has_device(kind)):
        raise ValueError(f"there is no backend {name!r}; there is {', '.join(map(repr, BACKENDS))}")


def get(name: str) -> Compile:
    """Return the backend of a name.

    Raises:
        ValueError: naming those that there are.
    """
    check(name)
    kind, _, device = name.partition(":")
    row = row_of(name)
    try:
        compiler: Compile = load(row.module).compile
    except ModuleNotFoundError as error:
        if not row.needs or error.name != row.needs:
            raise
        raise ModuleNotFoundError(f"the backend {kind!r} needs {row.missing}", name=error.name) from None
    return partial(compiler, device=device) if device else compiler


def bounding(name: str) -> Callable[..., Executable] | None:
    """Return how a backend compiles a graph with symbolic sizes for all of them up to a bound; None if it cannot."""
    row = row_of(name)
    return load(row.module).compile_bounded if row.bounds_sizes else None


def placed(name: str, device: str | None) -> str:
    """Join a backend and a device in one name, by which programs are cached.

    Raises:
        ValueError: for an unknown backend, or for a device other than the CPU with a backend of the CPU alone.

    Example:
        >>> placed("xla", "cuda"), placed("llvm", None), placed("llvm", "cpu")
        ('xla:cuda', 'llvm', 'llvm')
    """
    check(name)
    if device is None:
        return name
    if not device:
        raise ValueError(f"device={device!r} names no device; write 'cpu', 'cuda' or 'cuda:1', or leave it out")
    if not has_device(name):
        if device == "cpu":
            return name
        raise ValueError(f"the backend {name!r} computes on the CPU; device={device!r} is for backend='xla'")
    return f"{name.partition(':')[0]}:{device}"


def passes_for(name: str) -> tuple[Pass, ...]:
    """Return the default passes of a graph on its way to a backend.

    Example:
        >>> [each.name for each in passes_for("llvm") if each not in passes_for("interpret")][:3]
        ['branch to select', 'identities', 'early quantisation']
    """
    from ..passes import DEFAULT, LOWERING

    return (*DEFAULT, *LOWERING) if row_of(name).lowers else DEFAULT


def has_device(name: str) -> bool:
    """Return whether a backend keeps values in separate memory, and copies them when Python reads them."""
    return row_of(name).has_device


def clear_caches() -> None:
    """Forget the code that this process has compiled, so that later compilations do not find it, as `jax.clear_caches`.

    Compiled programs keep their code, and files on the disk stay.

    Example:
        >>> import minitorch as mt
        >>> mt.backends.clear_caches()
    """
    from ..compiler.runtime import cache

    cache.forget()


def set_num_threads(number: int) -> None:
    """Limit the threads of compiled kernels, the caller's included. Results do not depend on the number.

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
    """Return how many threads compiled kernels may use: by default one per core available to this process."""
    from ..compiler.runtime import threads

    return threads.get_num_threads()
