"""`explain()`: the signatures of a jitted function, and the reason for each trace."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import ref

from ...interpreters import current_handler, layout_text
from ...ir import Shape, Spec
from ...nn import Module
from ...packages import is_installed, load
from ...passes import Stage
from ...sizes import Guard
from ...tensor import Tensor
from ...tree import LEAF, Structure
from .program import Program

if TYPE_CHECKING:
    from minitorch_profiler.breakeven import BreakEven

    from ...compiler.kernels.kernel import Kernel
    from ..ways_in.inspection import Inspectable
    from .options import Request

MOST_NAMES, MOST_KERNELS = 6, 20  # in a listing
WIDTH = 100  # characters in a line; a notebook breaks longer ones within words


class Argued:
    """Module that was an argument, which the report does not keep alive."""

    def __init__(self, module: Module) -> None:
        self.module = ref(module)
        self._text = repr(module)

    def __repr__(self) -> str:
        return self._text


@dataclass
class SignatureReport:
    """Signature of a jitted function, as reported.

    Attributes:
        arguments: name and kind of each argument: a `Spec` for a tensor, an `Argued` for a module, the value itself for
            anything else.
        reason: why it was traced.
        calls: how often it was called.
        trace_time: seconds.
        nodes_traced, nodes: the size of the graph as traced, and after the passes.
        captured: names of the tensors from outside that are inputs of the graph.
        written: names of those that are written back.
        arguments_written: names of the arguments that are written in place.
        needs_grad: names of the arguments that require a gradient.
        leaves: names of those among them that were not computed from anything.
        layouts: the visible strides of the arguments that are not contiguous, where the trace depends on that.
        same: names of tensors that are given a second time, and the names of the first.
        structure: of the arguments.
        constants: values from outside that are constants of the graph, by name; a change leads to a new trace.
        guards: what other lengths have to keep for the trace to be right for them; empty for a trace of one size.
        mode: the key of the handler that the call was made under, such as that of autocast.
        called: whether it was traced for a call, and not for inspection.
        program: the graph, before and after the passes, and its executable.
        backward: the same of the backward pass, if there is one.
        function: the jitted one, once it is explained.
    """

    arguments: dict[str, Any]
    grad_enabled: bool
    reason: str = ""
    calls: int = 0
    trace_time: float = 0.0
    nodes_traced: int = 0
    nodes: int = 0
    captured: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    needs_grad: frozenset[str] = field(default_factory=frozenset)
    leaves: frozenset[str] = field(default_factory=frozenset)
    layouts: dict[str, Shape] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)
    structure: Structure = LEAF
    arguments_written: tuple[str, ...] = ()
    constants: dict[str, Any] = field(default_factory=dict)
    guards: tuple[Guard, ...] = ()
    mode: Any = None
    called: bool = False
    program: Program | None = None
    backward: Program | None = None
    function: Inspectable[..., Any] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of_call(cls, request: Request, grad_enabled: bool) -> SignatureReport:
        """Return the report of a call that is about to be traced."""
        pairs = list(zip(request.names, request.leaves, strict=True))
        arguments = {name: leaf.spec if isinstance(leaf, Tensor) else leaf for name, leaf in pairs}
        arguments |= {name: Argued(leaf) for name, leaf in pairs if isinstance(leaf, Module)}
        tensors = [(name, leaf) for name, leaf in pairs if isinstance(leaf, Tensor)]
        needs = frozenset(name for name, leaf in tensors if leaf._requires_grad)
        first: dict[int, str] = {}
        same = {name: first[id(leaf)] for name, leaf in tensors if first.setdefault(id(leaf), name) != name}
        own = frozenset(name for name, leaf in tensors if leaf._requires_grad and leaf._entry is None)
        handler = current_handler()
        return cls(
            arguments,
            grad_enabled,
            needs_grad=needs,
            leaves=own,
            same=same,
            structure=request.structure,
            mode=None if handler is None else handler.key,
        )

    @property
    def is_for_many(self) -> bool:
        """Whether the trace is for many sizes."""
        return self.program is not None and self.program.is_for_many

    @property
    def hits(self) -> int:
        """The number of calls that found it compiled."""
        return self.calls - self.called

    @property
    def compile_time(self) -> float:
        """Seconds."""
        return sum(program.compile_time for program in (self.program, self.backward) if program is not None)

    @property
    def passes(self) -> tuple[Stage, ...]:
        """The name of each pass, the graph before and after it, its time."""
        return self.program.pipeline.stages if self.program else ()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that it was fused into; none if the backend does not fuse."""
        ledger = getattr(self.program.compiled, "ledger", None) if self.program else None
        return ledger.kernels if ledger else ()

    @cached_property
    def break_even(self) -> BreakEven | None:
        """The number of calls after which compiling has paid; measured on zeros when first asked for."""
        if self.program is None or self.function is None:
            return None
        found: BreakEven | None = load("minitorch_profiler.breakeven").of_signature(self.function, self, self.program)
        return found

    def details(self) -> Iterator[str]:
        """Yield the complete report, line by line."""
        yield f"traced because: {self.reason}"
        yield (
            f"{counted(self.calls, 'call')}, {counted(self.hits, 'hit')}; traced in {self.trace_time * 1e3:.1f} ms, "
            f"compiled in {self.compile_time * 1e3:.1f} ms"
        )
        if is_installed("minitorch_profiler") and (paid := self.break_even) is not None:
            yield f"{paid} (measured on zeros)"
        compiled: Any = self.program.compiled if self.program else None
        if self.is_for_many:
            how = f"each by itself, since {compiled.refused}" if compiled.refused else "once for all up to a bound"
            yield f"for many sizes, compiled {how}: {counted(compiled.compilations, 'compilation')}"
        for guard in self.guards:
            yield f"guard: {guard.condition}" + (f", asked at {guard.source}" if guard.source else "")
        lists = {
            "from outside": self.captured,
            "written back": (*self.arguments_written, *self.written),
            "baked in": tuple(f"{name} = {value!r:.40}" for name, value in self.constants.items()),
        }
        for label, names in lists.items():
            if names:
                more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
                yield f"{label}: {', '.join(names[:MOST_NAMES])}{more}"
        yield f"{counted(self.nodes_traced, 'node')}, {self.nodes} after the passes"
        yield from (f"  {stage}" for stage in self.passes if stage.before is not stage.after)
        idle = [stage.name for stage in self.passes if stage.before is stage.after]
        if idle:
            yield f"  nothing to do for: {', '.join(dict.fromkeys(idle))}"
        if self.program is not None and hasattr(self.program.compiled, "listing"):
            yield from load("minitorch_xla.listing").summary(self.program)
        if self.kernels:
            from ...compiler.kernels.kernel import table_of  # loads LLVM, as finding them did

            yield counted(len(self.kernels), "kernel")
            yield from (f"  {line}" for line in str(table_of(self.kernels[:MOST_KERNELS], "")).splitlines())
            if len(self.kernels) > MOST_KERNELS:
                yield f"  and {len(self.kernels) - MOST_KERNELS} more"
            for kernel in self.kernels:
                yield from (f"{kernel.name}: a schedule is refused: {reason}" for reason in kernel.refused)

    def __str__(self) -> str:
        return ", ".join(
            f"{name}: {value}" + (f" {layout_text(self.layouts[name])}" if name in self.layouts else "")
            if isinstance(value, Spec)
            else f"{name}={value!r:.40}"
            for name, value in self.arguments.items()
        )


def _differences(new: SignatureReport, old: SignatureReport) -> list[str]:
    found = []
    for name in new.arguments.keys() | old.arguments.keys():
        if name not in old.arguments:
            found.append(f"`{name}` was not there before")
        elif name not in new.arguments:
            found.append(f"`{name}` is missing")
        else:
            a, b = old.arguments[name], new.arguments[name]
            if type(a) is not type(b) or str(a) != str(b):
                found.append(f"`{name}` was {_short(a)} and is {_short(b)}")
            if not (isinstance(a, Spec) and isinstance(b, Spec)):
                continue
            if (name in new.needs_grad) != (name in old.needs_grad):
                now = "requires" if name in new.needs_grad else "does not require"
                found.append(f"`{name}` {now} a gradient now")
            elif (name in new.leaves) != (name in old.leaves):
                found.append(f"`{name}` is {'a leaf' if name in new.leaves else 'computed from something'} now")
            if new.same.get(name) != old.same.get(name):
                other = new.same.get(name) or old.same.get(name)
                found.append(f"`{name}` {'is' if name in new.same else 'is no longer'} the same tensor as `{other}`")
    if not found and (kinds := _containers(old.structure, new.structure)) is not None:
        found.append(f"{kinds[1]} is where {kinds[0]} was among the arguments")
    if new.grad_enabled != old.grad_enabled:
        found.append(f"gradients are {'on' if new.grad_enabled else 'off'} now")
    if new.mode != old.mode:
        found.append(f"{new.mode or old.mode} is {'on' if new.mode else 'off'} now")
    return sorted(found)


def _containers(old: Structure, new: Structure) -> tuple[str, str] | None:
    """Return the first two containers that differ, as text."""
    pairs = [(old, new)]
    while pairs:
        a, b = pairs.pop()
        if (a.kind, a.keys, len(a.children)) != (b.kind, b.keys, len(b.children)):
            return _container(a), _container(b)
        pairs += reversed(list(zip(a.children, b.children, strict=True)))
    return None


def _container(structure: Structure) -> str:
    if structure.kind is None:
        return "no container"
    keys = f" with the keys {', '.join(map(repr, structure.keys))}" if structure.keys else ""
    return f"a {structure.kind.__name__} of {len(structure.children)}{keys}"


def _short(value: Any) -> str:
    return str(value) if isinstance(value, Spec) else f"{value!r:.40}"


def difference(new: SignatureReport, known: Sequence[SignatureReport]) -> str:
    """Return the difference of a signature from the nearest known one, of several the latest, by argument name."""
    nearest = min((_differences(new, old) for old in reversed(known)), key=len)
    return "; ".join(nearest) or "the tensors that it uses from outside have changed"


def counted(number: int, what: str) -> str:
    """Return a number and a noun as text.

    Example:
        >>> counted(1, "call"), counted(2, "call")
        ('1 call', '2 calls')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


class Explanation:
    """The history of a jitted function; print it, or read its parts.

    Attributes:
        signatures: those that are kept, in the order in which they were traced.
        traced: the number of all traces; some may have been forgotten since.
    """

    def __init__(self, name: str, backend: str, signatures: tuple[SignatureReport, ...], traced: int) -> None:
        self.name = name
        self.backend = backend
        self.signatures = signatures
        self.traced = traced

    @property
    def hits(self) -> int:
        """The number of calls that found a compiled graph."""
        return sum(report.hits for report in self.signatures)

    @property
    def misses(self) -> tuple[str, ...]:
        """The reason for each trace: its difference from the nearest signature before, by argument name."""
        return tuple(report.reason for report in self.signatures)

    def __str__(self) -> str:
        calls = counted(sum(report.calls for report in self.signatures), "call")
        signatures = counted(len(self.signatures), "signature")
        lines = [
            f"{self.name} on backend {self.backend!r}: {signatures}, {calls}, "
            f"{counted(self.hits, 'hit')}, {counted(self.traced, 'trace')}"
        ]
        for number, report in enumerate(self.signatures, 1):
            lines.append(f"  {number}. ({report})")
            for line in report.details():
                lines += textwrap.wrap(
                    f"     {line}", WIDTH, subsequent_indent=" " * 7, break_long_words=False, break_on_hyphens=False
                )
        return "\n".join(lines)

    __repr__ = __str__
