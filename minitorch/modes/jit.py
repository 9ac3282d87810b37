"""`jit`: run a function once to write it down, then run what was written.

A call is described by its *signature*: the structure of its arguments, the shapes and types of the tensors among them,
the values of everything else. The first call of each signature traces the function; later ones run the compiled graph.
Tensors that the function reaches from outside (parameters, optimiser state, the random state) are inputs of the graph,
read at every call; what it writes in place becomes outputs, written back after every call. So a whole training step is
one graph.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import backends
from ..autograd.tape import hooks_of
from ..dtypes import DType
from ..errors import ArgumentError, compose
from ..functional.operands import from_array
from ..graph import Graph
from ..interpreters import Interpreter, Timed, current, interpreting, is_grad_enabled, leaked
from ..ir import Node, Source, Spec, warn_user
from ..nn import Module
from ..passes import Pass
from ..tensor import Tensor
from ..tree import LEAF, Structure, flatten, unflatten
from . import donation, surroundings
from .ablation import Ablation, ablate
from .breakeven import BreakEven, measure, shortest
from .donation import Names as ArgumentNames
from .explain import Explanation, SignatureReport, counted, difference
from .naming import Names
from .recording import Program
from .shadow import Report
from .stages import Stages
from .stepping import Stepper, Values, kernels_of, values
from .trace import Traced, names_of, trace

if TYPE_CHECKING:
    from ..compiler.cost import FusedCost
    from ..compiler.schedule import Schedule

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), DType, np.dtype, range)

MAX_SIGNATURES = 32


def _parts(bounds: slice) -> tuple[Any, Any, Any]:
    """What a slice is made of: before Python 3.12 a slice itself has no hash."""
    return bounds.start, bounds.stop, bounds.step


def _key_of_tensors(args: tuple[Any, ...]) -> Any:
    """The key of the commonest kind of call: some tensors that require no gradient, none of them given twice.

    None for other calls: `Jitted._signature` looks at them more closely, and has the same keys for these.
    """
    kinds: list[Any] = [len(args)]
    for leaf in args:
        if type(leaf) is not Tensor or leaf._requires_grad:
            return None
        value = leaf._value
        kinds.append((value.shape, value.dtype, False))
    if len(args) > 1 and len(set(map(id, args))) < len(args):
        return None
    kinds.append(is_grad_enabled())
    return tuple(kinds)


class _Static:
    """An argument named in `static_argnames`: compared by equality, of any hashable type."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _values(leaves: Iterable[Any]) -> list[Any]:
    """The leaves of a call as the function gets them."""
    return [leaf.value if isinstance(leaf, _Static) else leaf for leaf in leaves]


class Jitted:
    """A function that is traced once per signature. Made by `jit`; call it like the function.

    Attributes:
        function: the function itself.
        backend: what runs its graphs.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        backend: str,
        passes: Sequence[Pass] | None,
        static_argnames: str | Iterable[str],
        max_signatures: int,
        donate: ArgumentNames = (),
        check: bool | str | Path = False,
    ) -> None:
        backends.check(backend)
        if not callable(function):
            raise ArgumentError(
                "MT108", f"jit takes a function, not {type(function).__name__}", fix="mt.jit(f), not mt.jit(f(x))"
            )
        self.function = function
        self.backend = backend
        self.passes = passes
        self.max_signatures = max_signatures
        self.check = check
        self.static_argnames = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
        self.signature = surroundings.parameters(function, self.static_argnames)
        self.donate = donate if isinstance(donate, (str, int)) else tuple(donate)
        self._donated = donation.parameters(self.donate, self.signature, surroundings.name(function))
        self._usual_length = surroundings.usual_length(self.signature, self.static_argnames)
        self._defaults = surroundings.defaults(self.signature)
        self._traced: dict[Any, list[Traced]] = {}
        self._reports: list[SignatureReport] = []
        self._traces = 0
        self._warned = False
        self._lock = threading.RLock()
        functools.update_wrapper(self, function, updated=())
        self.__name__ = surroundings.name(function)

    def __repr__(self) -> str:
        return f"<jit of {self.__name__} on backend {self.backend!r}, {counted(len(self._reports), 'signature')}>"

    def __getattr__(self, name: str) -> Any:
        """Of a jitted module, what the module has: ``jitted.eval()``, ``jitted.parameters()``."""
        function = self.__dict__.get("function")
        if isinstance(function, Module):
            return getattr(function, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A jitted method: one compiled function per instance, kept with the instance."""
        if instance is None:
            return self
        key = f"_jit_{self.__name__}"
        bound = instance.__dict__.get(key)
        if bound is None:
            method = self.function.__get__(instance, owner)
            bound = instance.__dict__[key] = self._of(method)
        return bound

    def __deepcopy__(self, memo: dict[int, Any]) -> Jitted:
        """A copy of a jitted method goes with a copy of its instance, and traces anew."""
        function = copy.deepcopy(self.function, memo)
        return self._of(function)

    def _of(self, function: Callable[..., Any]) -> Jitted:
        """Another function, jitted in the same way."""
        names, most = self.static_argnames, self.max_signatures
        return Jitted(function, self.backend, self.passes, names, most, self.donate, self.check)

    # Calling --------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the compiled graph of this signature, tracing first if there is none."""
        interpreter = current()
        if interpreter.intercepts:  # a recording, or a profile
            return self._intercepted(interpreter, args, kwargs)
        traced, tensors = self._find(args, kwargs)
        if traced is None:
            leaves, structure, found, key = self._signature(args, kwargs)
            traced, tensors = self._traced_once(leaves, structure, found, key), found
            traced.report.called = True
        traced.report.calls += 1
        return traced(tensors)

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Traced | None, Sequence[Tensor]]:
        """What was traced for such a call, if it was, and the call's tensors."""
        if not kwargs and len(args) == self._usual_length:
            for known in self._traced.get(_key_of_tensors(args), ()):
                if known.is_current(args):
                    return known, args
        _, _, tensors, key = self._signature(args, kwargs)
        return self._known(key, tensors), tensors

    def _intercepted(self, interpreter: Interpreter, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(interpreter, Timed):  # the same call as without, in a span
            with interpreter.recorder.span("call", self.__name__), interpreting(interpreter.plain):
                return self(*args, **kwargs)
        return self.function(*args, **kwargs)  # inside another recording the operations belong to that

    def _known(self, key: Any, tensors: Sequence[Tensor]) -> Traced | None:
        for traced in self._traced.get(key, ()):
            if traced.is_current(tensors):
                return traced
        return None

    def _traced_once(self, leaves: list[Any], structure: Structure, tensors: list[Tensor], key: Any) -> Traced:
        """The trace of a signature; of several threads that want it at once, one makes it."""
        with self._lock:
            return self._known(key, tensors) or self._trace(leaves, structure, tensors, key)

    def _signature(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], Structure, list[Tensor], Any]:
        """The leaves of a call, their structure, the tensors among them, and the key that alike calls share."""
        missing = self._usual_length - len(args)
        if not kwargs and 0 < missing <= len(self._defaults):
            args += self._defaults[-missing:]
        elif kwargs or missing:
            args, kwargs = self._normal_form(args, kwargs)
        leaves, structure = flatten((args, kwargs))
        tensors: dict[int, Tensor] = {}  # by id: one that is given twice is one input of the graph
        simple = not kwargs and all(child is LEAF for child in structure.children[0].children)
        kinds: list[Any] = [len(leaves) if simple else structure]
        for index, leaf in enumerate(leaves):
            if isinstance(leaf, (np.ndarray, np.generic)):
                leaf = leaves[index] = from_array(np.array(leaf) if self._donated else np.asarray(leaf))
            if isinstance(leaf, Tensor):
                if id(leaf) in tensors:
                    kinds.append(list(tensors).index(id(leaf)))
                    continue
                tensors[id(leaf)] = leaf
                needs = leaf._requires_grad and (2 if leaf._entry is None else 1)
                kinds.append((leaf._value.shape, leaf._value.dtype, needs))
                if needs == 2 and (hooks := hooks_of(leaf)):  # a backward inside runs them
                    kinds.append(hooks)
            elif isinstance(leaf, _Static):
                kinds.append((type(leaf.value), leaf.value))
            elif isinstance(leaf, PLAIN):
                kinds.append((type(leaf), repr(leaf) if type(leaf) in (float, range) else leaf))
            elif isinstance(leaf, slice) and all(type(part) in (int, type(None)) for part in _parts(leaf)):
                kinds.append((slice, *_parts(leaf)))
            elif isinstance(leaf, Module) or callable(leaf):
                kinds.append((_Static, leaf))
            else:
                raise self._not_plain(leaf, self._leaf_names(structure)[index])
        kinds.append(is_grad_enabled())
        return leaves, structure, list(tensors.values()), tuple(kinds)

    def _normal_form(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same call with arguments by position where possible, defaults filled in, static ones wrapped."""
        if self.signature is None:
            return args, kwargs
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}{self.signature}: {error}") from None
        bound.apply_defaults()
        for name in self.static_argnames:
            if name in bound.arguments:
                bound.arguments[name] = self._static(name, bound.arguments[name])
        return bound.args, dict(sorted(bound.kwargs.items()))

    def _static(self, name: str, value: Any) -> _Static:
        try:
            hash(value)
        except TypeError:
            raise ArgumentError(
                "MT108",
                f"the static argument `{name}` of {self.__name__} is a {type(value).__name__}, which is not hashable",
                why="the compiled graphs are looked up by the values of the static arguments",
                fix="pass something hashable, such as a tuple or a frozen dataclass",
            ) from None
        return _Static(value)

    def _not_plain(self, leaf: Any, name: str) -> ArgumentError:
        return ArgumentError(
            "MT108",
            f"the argument `{name}` of {self.__name__} is of type {type(leaf).__name__}",
            why="a traced function takes tensors, plain values (numbers, strings, types, slices, None), modules, and "
            "nested tuples, lists and dicts of these",
            fix=f"pass its tensors, or, if it is hashable and never changes, make it static: "
            f"mt.jit(f, static_argnames='{name.split('.')[0]}')",
        )

    def _leaf_names(self, structure: Structure) -> list[str]:
        return surroundings.leaf_names(self.signature, structure)

    # Tracing --------------------------------------------------------------------------------------------

    def _trace(self, leaves: list[Any], structure: Structure, tensors: list[Tensor], key: Any) -> Traced:
        names = self._leaf_names(structure)
        for leaf in leaves:
            if isinstance(leaf, Tensor) and isinstance(leaf._value, Node):  # no compiled call has a key like its
                raise leaked(leaf)
        plain = _values(leaves)
        report = SignatureReport.of_call(names, plain, structure, is_grad_enabled())
        report.reason = self._reason(report, tensors, key)
        donated = donation.donated(self._donated, self.signature, structure, leaves) if self._donated else {}
        traced = trace(self.function, plain, structure, names, self.backend, self.passes, donated, report, self.check)
        variants = self._traced.setdefault(key, [])
        variants.append(traced)
        self._reports.append(report)
        self._traces += 1
        if len(self._reports) > self.max_signatures:
            self._make_room(report)
        return traced

    def _reason(self, report: SignatureReport, tensors: list[Tensor], key: Any) -> str:
        """Why this call has to be traced, in words."""
        if not self._reports:
            return "the first call"
        known = self._traced.get(key)
        if not known:
            return difference(report, self._reports)
        nearest = min(reversed(known), key=lambda traced: len(traced.changed(tensors)))
        for watch in nearest.constants_changed():
            warn_user(
                compose(
                    "MT106",
                    f"`{watch.name}`, which {self.__name__} uses from outside, {watch.change()}",
                    why="it is a part of the compiled graph, so the function is traced again at every change",
                    fix=watch.remedy(),
                )
            )
        return "; ".join(nearest.changed(tensors)) or difference(report, self._reports)

    def _make_room(self, latest: SignatureReport) -> None:
        """Forget the signature that was used least, and say once that there are too many."""
        if not self._warned:
            self._warned = True
            warn_user(
                compose(
                    "MT107",
                    f"{self.__name__} was traced for {len(self._reports)} signatures, and keeps {self.max_signatures}",
                    why=f"each is traced and compiled by itself; the latest because {latest.reason}",
                    fix="pass changing numbers as tensors, pad batches to one shape, or raise max_signatures=; "
                    f"{self.__name__}.explain() lists them all",
                )
            )
        victim = min((report for report in self._reports if report is not latest), key=lambda report: report.calls)
        self._reports.remove(victim)
        for key, variants in list(self._traced.items()):
            self._traced[key] = [traced for traced in variants if traced.report is not victim]
            if not self._traced[key]:
                del self._traced[key]

    # Looking --------------------------------------------------------------------------------------------

    def traced(self, *args: Any, **kwargs: Any) -> Traced:
        """What was traced and compiled for these arguments; it is now, if it was not before."""
        leaves, structure, tensors, key = self._signature(args, kwargs)
        return self._known(key, tensors) or self._traced_once(leaves, structure, tensors, key)

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph as it was traced for these arguments; nothing is run, tracing apart."""
        return self.traced(*args, **kwargs).program.graph

    def stages(self, *args: Any, **kwargs: Any) -> Stages:
        """The traced graph, the graph after each pass with statistics, then kernels, loops, LLVM and assembly."""
        traced = self.traced(*args, **kwargs)
        run = traced.program.pipeline
        return Stages(run.initial, run.stages, traced)

    def values(self, *args: Any, **kwargs: Any) -> Values:
        """Every intermediate value of a call with these arguments, by source line; nothing is written in place.

        The values are those of eager mode, also of what is inside a kernel or was optimised away. Each has the name of
        the variable that held it, as far as there was one, and the kernels that its line has become a part of.

        Example:
            >>> import minitorch as mt
            >>> @mt.jit
            ... def f(x):
            ...     e = (x - 1).exp()
            ...     return e / e.sum()
            >>> found = f.values(mt.ones(2))
            >>> found.named("e")
            tensor([1., 1.])
            >>> [value.node.primitive.name for value in found.rows]
            ['sub', 'exp', 'reduce_sum', 'expand', 'div']
        """
        traced, tensors, names = self._looked_at(args, kwargs)
        arrays = [tensor._value for tensor in traced.inputs(tensors)]
        return values(traced.program.graph, arrays, names, self._kernels(traced))

    def debug(self, *args: Any, break_at: str | None = None, **kwargs: Any) -> Any:
        """Call the function line by line, and stop in Python's debugger.

        The lines are those of the graph, and run in its order; backward runs where `backward` is called. What has been
        computed has its value as in eager mode, also if it is inside a kernel or was optimised away, under the name of
        its variable, and as ``v3`` what is ``%3`` in ``graph()``. ``kernels`` names the kernels that the line is now a
        part of; ``n`` goes to the next line. The result, and what is written in place, are those of an ordinary call.

        Args:
            break_at: where to stop, such as ``"train.py:12"``; without it, at the first line.

        Raises:
            ValueError: if nothing is computed on that line.

        Example:
            >>> import minitorch as mt
            >>> f = mt.jit(lambda x: x.exp())
            >>> f.debug(mt.zeros(2), break_at="train.py:12")
            Traceback (most recent call last):
            ValueError: nothing is computed at train.py:12, but at ...
        """
        traced, tensors, names = self._looked_at(args, kwargs)
        return traced(tensors, Stepper(traced.program.graph, names, self._kernels(traced), break_at))

    def _looked_at(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Traced, list[Tensor], Names]:
        """The trace for a call, its tensors, and the names of the variables in it."""
        leaves, structure, tensors, key = self._signature(args, kwargs)
        traced = self._known(key, tensors) or self._traced_once(leaves, structure, tensors, key)
        plain = [leaf.value if isinstance(leaf, _Static) else leaf for leaf in leaves]
        names = names_of(self.function, plain, structure, self._leaf_names(structure), traced.program.graph)
        return traced, tensors, names

    def _kernels(self, traced: Traced) -> dict[Source, tuple[str, ...]]:
        """The kernels that each line has become a part of, on backends that have kernels."""
        schedule = getattr(traced.program.compiled, "schedule", None)
        return {} if schedule is None else kernels_of(schedule)

    def cost(self, *args: Any, **kwargs: Any) -> FusedCost:
        """Kernels, bytes, FLOPs and peak memory of the fused program, beside those of its graph run node by node.

        Example:
            >>> import minitorch as mt
            >>> f = mt.jit(lambda x: x.softmax(1))
            >>> cost = f.cost(mt.ones(256, 1000))
            >>> cost.kernels, cost.bytes, cost.unfused.nodes, cost.unfused.bytes
            (1, 2048000, 9, 8196096)
        """
        from ..compiler.cost import fused_cost

        program = self.traced(*args, **kwargs).program
        return fused_cost(self.ledger(*args, **kwargs), program.updates, program.donated)

    def ledger(self, *args: Any, **kwargs: Any) -> Schedule:
        """The kernels that the graph for these arguments is fused into, and why each edge was fused or was not.

        Example:
            >>> import minitorch as mt
            >>> f = mt.jit(lambda x: (x * 2 + 1).sum(1), backend="llvm")
            >>> (kernel,) = f.ledger(mt.ones(4, 8)).kernels
            >>> kernel.kind, kernel.bytes_read, kernel.bytes_written
            ('K2', 128, 16)
        """
        from ..compiler.schedule import schedule  # loads LLVM

        return schedule(self.traced(*args, **kwargs).program.pipeline.graph)

    def program(self, *args: Any, **kwargs: Any) -> tuple[Program, list[np.ndarray[Any, Any]]]:
        """What runs for these arguments, and copies of what it would be given: arguments, and tensors from outside.

        For those who want to run it apart from the function: whatever is done with the copies, nothing else changes.

        Example:
            >>> import minitorch as mt
            >>> program, arrays = mt.jit(lambda x: x * 2).program(mt.ones(2))
            >>> program.compiled(arrays)
            [array([2., 2.], dtype=float32)]
        """
        leaves, structure, tensors, key = self._signature(args, kwargs)
        traced = self._known(key, tensors) or self._traced_once(leaves, structure, tensors, key)
        return traced.program, [np.array(tensor._value) for tensor in traced.inputs(tensors)]

    def break_even(self, *args: Any, **kwargs: Any) -> BreakEven:
        """After how many calls with these arguments compiling has paid; measured on copies of what the graph reads.

        `BreakEven` says what is counted, and what is not.

        Example:
            >>> import minitorch as mt
            >>> found = mt.jit(lambda x: x * 2).break_even(mt.ones(2))
            >>> found.eager > 0 and found.spent > 0
            True
        """
        report = self.traced(*args, **kwargs).report
        program, arrays = self.program(*args, **kwargs)
        return measure(program, report.trace_time + report.compile_time, arrays, self._around(args, kwargs))

    def _around(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
        """Seconds that a call with these arguments takes around its compiled graph, as far as that has no effects."""
        traced, tensors = self._find(args, kwargs)
        idle = traced and traced.idle(tensors)
        return shortest(lambda: self._find(args, kwargs)) + (shortest(idle) if idle else 0.0)

    def _around_zeros(self, report: SignatureReport) -> float:
        """The same for a signature, with zeros in place of its tensors."""
        first: dict[str, Any] = {}
        for name, value in report.arguments.items():
            if name in report.same:
                first[name] = first[report.same[name]]
            elif isinstance(value, Spec):
                array = np.zeros(value.shape, value.dtype.numpy)
                first[name] = Tensor(array, name in report.needs_grad)
            else:
                first[name] = value
        args, kwargs = unflatten(report.structure, list(first.values()))
        return self._around(args, kwargs)

    def ablate(self, *args: Any, seconds: float = 1.0, **kwargs: Any) -> Ablation:
        """Time, kernels, bytes and peak memory for these arguments, without each pass and each class of fusion in turn.

        The program is compiled again for each, and run on copies of its inputs for so many `seconds`, all variants in
        turns. Nothing of what the function has compiled is touched; a signature that is new is traced, and forgotten.

        Example:
            >>> import minitorch as mt
            >>> f = mt.jit(lambda x: x.softmax(1))
            >>> rows = {row.without: row for row in f.ablate(mt.ones(256, 1000), seconds=0).variants}
            >>> rows["nothing"].kernels, rows["fusion: shared rows"].kernels, rows["all fusion"].kernels
            (1, 4, 5)
        """
        leaves, structure, tensors, key = self._signature(args, kwargs)
        traced = self._known(key, tensors)
        if traced is None:
            names, plain = self._leaf_names(structure), _values(leaves)
            report = SignatureReport.of_call(names, plain, structure, is_grad_enabled())
            traced = trace(self.function, plain, structure, names, self.backend, self.passes, {}, report)
        arrays = [tensor._value for tensor in traced.inputs(tensors)]
        return ablate(traced.program, self.passes, arrays, seconds)

    @property
    def compile_time(self) -> float:
        """Seconds that tracing, passes and code generation took so far, over all signatures."""
        return sum(report.trace_time + report.compile_time for report in self._reports)

    def checked(self) -> list[Report]:
        """With ``check=True``: what the last call of each signature found, of a gradient's way back too.

        Example:
            >>> import minitorch as mt
            >>> f = mt.jit(lambda x: x.softmax(1), check=True)
            >>> y = f(mt.ones(2, 4))
            >>> print(f.checked()[0])
            <lambda>: as in eager mode
              output 0 f32[2,4]: equal
        """
        return [report for variants in self._traced.values() for traced in variants for report in traced.checked()]

    def explain(self) -> Explanation:
        """Every signature that was traced, why, how often it was called, and what became of it.

        Printed are: the difference from the nearest signature before, by argument name; what the graph captured, writes
        and has baked in; what each pass did; the kernels; what tracing and compiling took, and after how many calls
        that has paid. For the last one, the graph is run on zeros, eagerly and compiled, when it is first printed.

        Example:
            >>> import minitorch as mt
            >>> f = mt.jit(lambda x, n: x * n)
            >>> for n in (2, 2, 3):
            ...     y = f(mt.ones(4), n)
            >>> found = f.explain()
            >>> found.hits, found.misses
            (1, ('the first call', '`n` was 2 and is 3'))
            >>> found.signatures[1].constants
            {'n': 3}
        """
        for report in self._reports:
            report.around = functools.partial(self._around_zeros, report)
        return Explanation(self.__name__, self.backend, tuple(self._reports), self._traces)


def jit(
    function: Callable[..., Any] | None = None,
    *,
    backend: str = backends.DEFAULT,
    passes: Sequence[Pass] | None = None,
    static_argnames: str | Iterable[str] = (),
    max_signatures: int = MAX_SIGNATURES,
    donate: ArgumentNames = (),
    check: bool | str | Path = False,
) -> Any:
    """Compile a function: trace it once per signature, then run the graph.

    Args:
        function: takes and returns tensors, plain values, and nested tuples, lists and dicts of them. It may use
            modules and tensors from outside, write to them in place, draw random numbers, and call `backward`. A method
            or a module can be given as well. Without it, `jit` is a decorator with options.
        backend: what runs the graph.
        passes: the optimisation passes; by default `minitorch.passes.DEFAULT`.
        static_argnames: arguments of any hashable type, whose value is part of the signature.
        max_signatures: how many are kept; beyond that the least used one is forgotten, with a warning.
        donate: names or numbers of arguments whose memory may be used for results of the same size and type. The
            caller gives them up: the tensors raise ``MT111`` when they are used after the call, and views of them, or
            NumPy arrays that share their memory, may show anything.
        check: shadow mode, for those who mistrust the compiler: every call also runs the traced graph node by node, on
            the same random numbers, and compares. ``checked()`` gives the largest difference of each output, in units
            in the last place. One beyond the tolerance of its type, and beyond what rounding does to this program, is
            ``MT502``: the call changes nothing, the error names the pass, or the kernel and the node, that is to blame,
            and a folder is written with which it can be run again (a temporary one, or the one that is given here).
            If every part is right by itself, rounding errors have added up: that is no error, ``checked()`` says so.

    Returns:
        A `Jitted`, which is called like the function. Plain numbers among the arguments are part of the signature:
        another number is another graph. ``explain()`` tells what was traced and why, ``graph(*args)`` shows it.

    Gradients through a call are those of the function, and can be differentiated again. For second derivatives a hook
    is constant, and what a `minitorch.autograd.Function` saved has the derivatives of the operations in its `forward`.

    Raises:
        TracedValueError: where the function needs the value of a traced tensor (``MT101`` to ``MT103``).
        ArgumentError: for an argument that is neither tensor nor plain (``MT108``).
        AutogradError: for a donated argument that requires a gradient (``MT401``).
        MismatchError: in shadow mode, if compiled code gives other numbers (``MT502``).

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

    def compiled(function: Callable[..., Any]) -> Jitted:
        return Jitted(function, backend, passes, static_argnames, max_signatures, donate, check)

    return compiled if function is None else compiled(function)
