"""What `explain()` shows: the signatures of a jitted function, and why each had to be traced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ir import Spec
from ..tensor import Tensor


@dataclass
class SignatureReport:
    """One signature of a jitted function.

    Attributes:
        arguments: name and kind of each argument: a `Spec` for a tensor, the value itself for anything else.
        reason: why it was traced.
        calls: how often it was called.
        trace_time, compile_time: seconds.
        nodes_traced, nodes: the size of the graph as traced, and after the passes.
        captured: names of the tensors from outside that are inputs of the graph.
        written: names of those that are written back.
    """

    arguments: dict[str, Any]
    grad_enabled: bool
    reason: str = ""
    calls: int = 0
    trace_time: float = 0.0
    compile_time: float = 0.0
    nodes_traced: int = 0
    nodes: int = 0
    captured: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    needs_grad: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of_call(cls, names: Sequence[str], leaves: Sequence[Any], grad_enabled: bool) -> SignatureReport:
        """The report of a call that is about to be traced."""
        arguments = {
            name: leaf.spec if isinstance(leaf, Tensor) else leaf for name, leaf in zip(names, leaves, strict=True)
        }
        needs = frozenset(
            name for name, leaf in zip(names, leaves, strict=True) if isinstance(leaf, Tensor) and leaf._requires_grad
        )
        return cls(arguments, grad_enabled, needs_grad=needs)

    def __str__(self) -> str:
        return ", ".join(
            f"{name}: {value}" if isinstance(value, Spec) else f"{name}={value!r:.40}"
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
            elif (name in new.needs_grad) != (name in old.needs_grad):
                now = "requires" if name in new.needs_grad else "does not require"
                found.append(f"`{name}` {now} a gradient now")
    if new.grad_enabled != old.grad_enabled:
        found.append(f"gradients are {'on' if new.grad_enabled else 'off'} now")
    return sorted(found)


def _short(value: Any) -> str:
    return str(value) if isinstance(value, Spec) else f"{value!r:.40}"


def difference(new: SignatureReport, known: Sequence[SignatureReport]) -> str:
    """How a signature differs from the nearest known one, by argument name."""
    nearest = min((_differences(new, old) for old in known), key=len)
    return "; ".join(nearest) or "the tensors that it uses from outside have changed"


def counted(number: int, what: str) -> str:
    """A number of things, in words.

    Example:
        >>> counted(1, "call"), counted(2, "call")
        ('1 call', '2 calls')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


class Explanation:
    """The history of a jitted function; print it, or look at `signatures`."""

    def __init__(self, name: str, backend: str, signatures: tuple[SignatureReport, ...]) -> None:
        self.name = name
        self.backend = backend
        self.signatures = signatures

    def __str__(self) -> str:
        calls = counted(sum(report.calls for report in self.signatures), "call")
        signatures = counted(len(self.signatures), "signature")
        lines = [f"{self.name} on backend {self.backend!r}: {signatures}, {calls}"]
        for number, report in enumerate(self.signatures, 1):
            lines += [
                f"  {number}. ({report})",
                f"     traced because: {report.reason}",
                f"     {counted(report.calls, 'call')}; traced in {report.trace_time * 1e3:.1f} ms, "
                f"compiled in {report.compile_time * 1e3:.1f} ms",
                f"     {report.nodes_traced} nodes, {report.nodes} after the passes",
            ]
            for label, names in (("from outside", report.captured), ("written back", report.written)):
                if names:
                    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
                    lines.append(f"     {label}: {shown}")
        return "\n".join(lines)

    __repr__ = __str__
