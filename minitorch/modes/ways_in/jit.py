"""`jit`: run a function once to write it down, then run what was written.

A call is described by its *signature* (`signature`): the structure of its arguments, the shapes and types of the
tensors among them, the values of everything else; where it decides what is a view, how they lie in memory, too. The
first call of each signature traces the function; later ones run the compiled graph (`calling`). Tensors that the
function reaches from outside (parameters, optimiser state, the random state) are inputs of the graph, read at every
call; what it writes in place becomes outputs, written back after every call. So a whole training step is one graph.
What became of it can be looked at (`looking`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, overload

from ... import backends
from ...nn import Module
from ...passes import Pass
from ..guards.donation import Names as Donations
from ..tracing.explain import counted
from .calling import P, R
from .looking import Looking

MAX_SIGNATURES = 32


class Jitted(Looking[P, R]):
    """A function that is traced once per signature. Made by `jit`; call it like the function.

    It can be a method, too: it is then jitted for each instance. A module gives a `JittedModule`.

    Attributes:
        function: the function itself.
        backend: what runs its graphs.
    """

    def __repr__(self) -> str:
        return f"<jit of {self.__name__} on backend {self.backend!r}, {counted(len(self._reports), 'signature')}>"

    def __get__(self, instance: Any, owner: Any = None) -> Jitted[..., R]:
        """A jitted method: one compiled function per instance, kept with the instance."""
        if instance is None:
            return self
        key = f"_jit_{self.__name__}"
        bound: Jitted[..., R] | None = instance.__dict__.get(key)
        if bound is None:
            method = self.function.__get__(instance, owner)
            bound = instance.__dict__[key] = self._of(method)
        return bound

    def __deepcopy__(self, memo: dict[int, Any]) -> Jitted[..., Any]:
        """A copy of a jitted method goes with a copy of its instance, and traces anew."""
        function = copy.deepcopy(self.function, memo)
        return self._of(function)

    def _of(self, function: Callable[..., Any]) -> Jitted[..., Any]:
        """Another function, jitted in the same way."""
        names, most = self.static_argnames, self.max_signatures
        return _kind_of(function)(function, self.backend, self.passes, names, most, self.donate, self.check)


class JittedModule(Jitted[..., Any]):
    """A jitted module, which has what the module has: ``jitted.eval()``, ``jitted.parameters()``."""

    def __getattr__(self, name: str) -> Any:
        """What the module has by this name."""
        if "function" not in self.__dict__:  # while it is copied
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.function, name)


def _kind_of(function: Callable[..., Any]) -> type[Jitted[..., Any]]:
    return JittedModule if isinstance(function, Module) else Jitted


@overload
def jit(
    function: Module,
    *,
    backend: str = ...,
    passes: Sequence[Pass] | None = ...,
    static_argnames: str | Iterable[str] = ...,
    max_signatures: int = ...,
    donate: Donations = ...,
    check: bool | str | Path = ...,
) -> JittedModule: ...


@overload
def jit(
    function: Callable[P, R],
    *,
    backend: str = ...,
    passes: Sequence[Pass] | None = ...,
    static_argnames: str | Iterable[str] = ...,
    max_signatures: int = ...,
    donate: Donations = ...,
    check: bool | str | Path = ...,
) -> Jitted[P, R]: ...


@overload
def jit(
    function: None = None,
    *,
    backend: str = ...,
    passes: Sequence[Pass] | None = ...,
    static_argnames: str | Iterable[str] = ...,
    max_signatures: int = ...,
    donate: Donations = ...,
    check: bool | str | Path = ...,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


def jit(
    function: Callable[..., Any] | None = None,
    *,
    backend: str = backends.DEFAULT,
    passes: Sequence[Pass] | None = None,
    static_argnames: str | Iterable[str] = (),
    max_signatures: int = MAX_SIGNATURES,
    donate: Donations = (),
    check: bool | str | Path = False,
) -> Jitted[..., Any] | Callable[[Callable[..., Any]], Jitted[..., Any]]:
    """Compile a function: trace it once per signature, then run the graph.

    Args:
        function: takes and returns tensors, plain values, and nested tuples, lists and dicts of them. It may use
            modules and tensors from outside, write to them in place, draw random numbers, and call `backward`. A method
            or a module can be given as well. Without it, `jit` is a decorator with options.
        backend: what runs the graph.
        passes: all passes, in order; by default `minitorch.passes.DEFAULT`, and for a backend that compiles
            `minitorch.passes.LOWERING` after it.
        static_argnames: arguments of any hashable type, whose value is part of the signature.
        max_signatures: how many are kept; beyond that the least used one is forgotten, with a warning.
        donate: names or numbers of arguments whose memory may be used for results of the same size and type. The
            caller gives them up: the tensors raise ``MT111`` when they are used after the call, and views of them, or
            NumPy arrays that share their memory, may show anything.
        check: shadow mode, for those who mistrust the compiler: every call also runs the function itself, whose effects
            on tensors are undone, and the traced graph node by node, on the same random numbers, and compares. If the
            function does something else than its graph, that is ``MT504``. ``checked()`` gives the largest difference
            of each output, in units in the last place. One beyond what rounding does to this program is ``MT502``, and
            so is a crash, for the program runs in a child process (not on Windows and macOS): the call changes nothing,
            the error names the pass, or the kernel and the node, that is to blame, and a folder is written with which
            it can be run again (a temporary one, or the one that is given here). If every part is right by itself,
            rounding errors have added up: that is no error, ``checked()`` says so.

    Returns:
        A `Jitted`, which is called like the function. Plain numbers among the arguments are part of the signature:
        another number is another graph. ``explain()`` tells what was traced and why, ``graph(*args)`` shows it. An
        argument or a tensor from outside that is returned is that tensor itself, as in eager mode; all other results
        are contiguous, with memory of their own, also those that are views in eager mode.

    Gradients through a call are those of the function, and can be differentiated again. For second derivatives a hook
    is constant, and what a `minitorch.autograd.Function` saved has the derivatives of the operations in its `forward`.

    Raises:
        TracedValueError: where the function needs the value of a traced tensor (``MT101`` to ``MT103``).
        ArgumentError: for an argument that is neither tensor nor plain (``MT108``).
        AutogradError: for a donated argument that requires a gradient (``MT401``).
        MismatchError: in shadow mode, if compiled code gives other numbers (``MT502``), or the graph is not what the
            function does (``MT504``).

    Example:
        >>> import minitorch as mt
        >>> @mt.jit
        ... def f(x, y):
        ...     return (x * y).sum()
        >>> f(mt.ones(3), mt.ones(3)).item()
        3.0
        >>> print(f.graph(mt.ones(3), mt.ones(3)).nodes[0].primitive.name)
        mul
    """

    def compiled(function: Callable[..., Any]) -> Jitted[..., Any]:
        return _kind_of(function)(function, backend, passes, static_argnames, max_signatures, donate, check)

    return compiled if function is None else compiled(function)
