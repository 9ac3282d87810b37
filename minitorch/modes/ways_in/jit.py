"""`jit`: trace a function once per signature, then run the compiled graph.

A call is described by its *signature* (`signature`): the structure of its arguments, the shapes and types of the
tensors among them, the values of everything else; and the memory layout where it decides between view and copy. The
first call of each signature traces the function; later ones run the compiled graph (`calling`). Tensors that the
function uses from outside (parameters, optimiser state, the random state) are inputs of the graph, read at every call;
in-place writes become outputs, written back after every call. So a whole training step is one graph. Its forms can be
inspected (`inspection`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from ... import backends
from ...errors import ArgumentError
from ...nn import Module
from ...nn.module import Forwarding
from ...passes import Pass
from ..guards.donation import Names as Donations
from ..tracing.explain import counted
from .calling import P, R
from .inspection import Inspectable

if TYPE_CHECKING:
    from ...compiler.kernels.kernel import Kernel
    from ...compiler.scheduling.rewrites import Rewrite
    from .many_sizes import Given

MAX_SIGNATURES = 32


class Jitted(Inspectable[P, R]):
    """Function that is traced once per signature. Made by `jit`; call it like the function.

    It can be a method, too: it is then jitted for each instance. A module gives a `JittedModule`.

    Attributes:
        function: the function itself.
        backend: the backend that runs the graph.
    """

    def __repr__(self) -> str:
        return f"<jit of {self.__name__} on backend {self.backend!r}, {counted(len(self._reports), 'signature')}>"

    def __get__(self, instance: Any, owner: Any = None) -> Jitted[..., R]:
        """Return a jitted method: one compiled function per instance, kept with the instance."""
        if instance is None:
            return self
        key = f"_jit_{self.__name__}"
        bound: Jitted[..., R] | None = instance.__dict__.get(key)
        if bound is None or getattr(bound.function, "__self__", None) is not instance:  # copied from another instance
            method = self.function.__get__(instance, owner)
            bound = instance.__dict__[key] = self._of(method)
        return bound

    def __reduce__(self) -> Any:
        """Reduce to the function and the options, to trace anew in a copy; a name in a module stands for itself.

        A jitted method goes with its instance.
        """
        if _named(self) is self:
            return self.__qualname__
        function: Any = self.function
        instance = getattr(function, "__self__", None)
        method = getattr(type(instance), self.__name__, None)
        if isinstance(method, Jitted) and method.function is function.__func__:
            return getattr, (instance, self.__name__)
        return _of, (function, *self._settings)

    @property
    def _settings(self) -> tuple[Any, ...]:
        names, most = self.static_argnames, self.max_signatures
        return self.backend, self.passes, names, most, self.donate, self.check, self.schedules, self.dynamic_shapes

    def _of(self, function: Callable[..., Any]) -> Jitted[..., Any]:
        """Return another function, jitted in the same way."""
        return _of(function, *self._settings)

    def with_schedule(self, kernel: Kernel, rewrites: Iterable[Rewrite], nest: int = 0) -> Jitted[..., Any]:
        """Return the same function, with a schedule of yours for a kernel.

        It applies to all kernels with the same loops over arrays of the same shapes and types.

        Args:
            kernel: one of those in ``ledger(...)``.
            rewrites: the steps from the definition of the kernel to the loops that are run, such as
                ``minitorch.compiler.scheduling.rewrites.split("i0", 8, "it", "r")``.
            nest: the number of the nest, of a kernel that has several.

        Returns:
            A function to call, and to look into, like this one; its `ledger` has the kernel with the schedule.

        Raises:
            ScheduleError: if a step would change the result, or cannot be carried out (``MT603``): the message
                names the step, and the law it breaks.

        Example:
            >>> import minitorch as mt
            >>> from minitorch.compiler.scheduling.rewrites import parallelise, split, vectorise
            >>> f, x = mt.jit(lambda x: x * 2), mt.ones(64)
            >>> (kernel,) = f.ledger(x).kernels
            >>> g = f.with_schedule(kernel, [split("i0", 8, "i", "lane"), vectorise("lane"), parallelise("i")])
            >>> g(x).sum().item()
            128.0
            >>> g.ledger(x).kernels[0].schedule
            split('i0', 8, 'i', 'lane')
            vectorise('lane')
            parallelise('i')
        """
        from ...compiler.kernels.own import own_schedule

        made = self._of(self.function)
        made.schedules = {**self.schedules, **own_schedule(kernel, tuple(rewrites), nest)}
        if self.backend == "interpret":
            raise ArgumentError(
                "MT108", "the interpret backend has no kernels, so it takes no schedule", fix="backend='llvm'"
            )
        return made


class JittedModule(Jitted[P, R]):
    """Jitted module with the module's attributes: ``jitted.eval()``, ``jitted.parameters()``."""

    def __getattr__(self, name: str) -> Any:
        """Return the module's attribute of this name."""
        if "function" not in self.__dict__ or name.startswith("__"):  # asked for by copies
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.function, name)


def _of(function: Callable[..., Any], *options: Any) -> Jitted[..., Any]:
    return (JittedModule if isinstance(function, Module) else Jitted)(function, *options)


def _named(jitted: Jitted[..., Any]) -> Any:
    """Return the value under the name of a jitted function in its module."""
    found: Any = sys.modules.get(getattr(jitted, "__module__", ""))
    for name in getattr(jitted, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return found


class JitOptions(TypedDict, total=False):
    """Options of `jit`, for type checkers."""

    backend: str
    passes: Sequence[Pass] | None
    static_argnames: str | Iterable[str]
    max_signatures: int
    donate: Donations
    check: bool | str | Path
    dynamic_shapes: Given | bool
    device: str | None


@overload
def jit(function: Forwarding[P, R], **options: Unpack[JitOptions]) -> JittedModule[P, R]: ...


@overload
def jit(function: Callable[P, R], **options: Unpack[JitOptions]) -> Jitted[P, R]: ...


@overload
def jit(function: None = None, **options: Unpack[JitOptions]) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


def jit(
    function: Any = None,
    *,
    backend: str = backends.DEFAULT,
    passes: Sequence[Pass] | None = None,
    static_argnames: str | Iterable[str] = (),
    max_signatures: int = MAX_SIGNATURES,
    donate: Donations = (),
    check: bool | str | Path = False,
    dynamic_shapes: Given | bool = False,
    device: str | None = None,
) -> Jitted[..., Any] | Callable[[Callable[..., Any]], Jitted[..., Any]]:
    """Compile a function: trace it once per signature, then run the graph.

    Args:
        function: takes and returns tensors, plain values, and nested tuples, lists and dicts of them. It may use
            modules and tensors from outside, write to them in place, draw random numbers, and call `backward`. A method
            or a module can be given as well. Without it, `jit` is a decorator with options.
        backend: the backend that runs the graph.
        passes: all passes, in order; by default `minitorch.passes.DEFAULT`, and for a backend that compiles
            `minitorch.passes.LOWERING` after it.
        static_argnames: arguments of any hashable type, whose value is part of the signature.
        max_signatures: how many are kept; beyond that the least used one is forgotten, with a warning.
        donate: names or numbers of arguments whose memory may be used for results of the same size and type. Using
            such a tensor after the call raises ``MT111``; the contents of its views, and of NumPy arrays that share its
            memory, are undefined.
        check: shadow mode. Every call also runs the function itself, whose effects on tensors are undone, and the
            traced graph node by node, on the same random numbers, and compares them. A difference between function and
            graph is ``MT504``. A difference between graph and compiled program beyond rounding is ``MT502``, and so is
            a crash, since the program runs in a child process (not on Windows and macOS). Then the call changes
            nothing, the error names the faulty pass, or the kernel and the node, and a reproducer is written (to a
            temporary folder, or to the one given here). ``checked()`` gives the largest difference of each output, in
            units in the last place. If every part is right, rounding errors have added up, and nothing is raised.
        dynamic_shapes: dimensions whose length may be another one in every call, with a name for each:
            ``{"x": {0: "batch"}}``. Dimensions of one name have one length. There is one trace for all lengths from 2
            on that keep its guards, which ``explain()`` lists; the backend ``llvm`` compiles it once, for all lengths
            up to a bound (four times the first, at least 64), and again if one is beyond that. With True, dimensions
            whose length differs among three calls are found and treated in this way. Without, every size has a trace
            of its own, as in shadow mode.
        device: where the graph runs, for a backend that has a choice: with ``backend="xla"`` JAX's devices, ``"cpu"``,
            ``"cuda"``, ``"tpu"`` or ``"cuda:1"``. Results stay there until Python asks for their numbers.

    Returns:
        A `Jitted`, which is called like the function. Plain numbers among the arguments are part of the signature:
        another number is another graph. ``explain()`` tells the traces and their reasons, ``graph(*args)`` shows it. An
        argument or a tensor from outside that is returned is that tensor itself, as in eager mode; all other results
        are contiguous, with memory of their own, also those that are views in eager mode.

    Gradients through a call are those of the function, and can be differentiated again. For second derivatives a hook
    is constant, and values saved by a `minitorch.autograd.Function` have the derivatives of its `forward`'s operations.

    Raises:
        TracedValueError: where the function needs the value of a traced tensor (``MT101`` to ``MT103``).
        ArgumentError: for an argument that is neither tensor nor plain (``MT108``).
        TracingError: if the function branches on a dimension of `dynamic_shapes`, or takes its length for a plain
            number (``MT118``).
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

    backend = backends.placed(backend, device)

    def compiled(function: Callable[..., Any]) -> Jitted[..., Any]:
        return _of(function, backend, passes, static_argnames, max_signatures, donate, check, None, dynamic_shapes)

    return compiled if function is None else compiled(function)
