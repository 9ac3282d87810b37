"""`frozen.explain()`: the work that freezing does beforehand, by source line, and what that saves and costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from minitorch.graph import Graph
from minitorch.graph.cost import costs, in_units
from minitorch.graph.values import is_splat
from minitorch.ir import Node, Source
from minitorch.modes.tracing.explain import MOST_KERNELS, SignatureReport, counted
from minitorch.modes.tracing.program import Program
from minitorch.primitives import constant
from minitorch_amp.autocast_mode import Autocast

from .affine import AFFINE_FOLDING, fold_affine
from .affine.decisions import Decision
from .folding import folded


@dataclass(frozen=True)
class Line:
    """The operations of one source line that are carried out beforehand.

    Attributes:
        source: the line; None if it is not known.
        operations: the names of the primitives, in program order.
        bytes: that they read and write, one by one.
        flops: arithmetic and transcendental functions, by elements.
    """

    source: Source | None
    operations: tuple[str, ...]
    bytes: int
    flops: int

    def __str__(self) -> str:
        names = list(dict.fromkeys(self.operations))
        times = [f"{name} ({count} times)" if (count := self.operations.count(name)) > 1 else name for name in names]
        saved = f"{in_units(self.bytes, 'B'):>9}{in_units(self.flops, 'FLOPs'):>12}"
        return f"{self.source or 'unknown line'!s:<24}{saved}  {', '.join(times)}"


@dataclass(frozen=True)
class Beforehand:
    """The work that freezing a graph does beforehand: what a saved program keeps, since its graph does not show it.

    Attributes:
        lines: the operations that hang on constants alone, by source line.
        decisions: the scales and shifts that became part of weights, then those that did not, with the reason.
    """

    lines: tuple[Line, ...]
    decisions: tuple[Decision, ...]

    @classmethod
    def of(cls, program: Program) -> Beforehand:
        """That of a graph on its way to a backend."""
        cost = costs(program.graph)
        by_line: dict[Source | None, list[Node]] = {}
        for node in folded(program.graph):
            by_line.setdefault(node.source, []).append(node)
        lines = [
            Line(
                source,
                tuple(node.primitive.name for node in nodes),
                sum(cost[node][0] + cost[node][1] for node in nodes),
                sum(cost[node][2] + cost[node][3] for node in nodes),
            )
            for source, nodes in by_line.items()
        ]
        found = next((fold_affine(stage.before) for stage in program.pipeline if stage.applied is AFFINE_FOLDING), None)
        return cls(tuple(lines), (*found.folded, *found.refused) if found else ())


@dataclass(frozen=True)
class Folding:
    """The folding of one signature.

    Attributes:
        report: the signature.
        lines: the work that is done beforehand, by source line.
        decisions: the scales and shifts that became part of weights, then those that did not, with the reason.
        constant_bytes: of the constants that the compiled graph reads.
        packed_bytes: of the packed operands of products, which are packed once, and shared by products alike.
        packed_per_call: bytes of operands that every call packs.
    """

    report: SignatureReport
    lines: tuple[Line, ...]
    decisions: tuple[Decision, ...]
    constant_bytes: int
    packed_bytes: int
    packed_per_call: int

    @property
    def operations(self) -> int:
        """Operations that a call does without."""
        return sum(len(line.operations) for line in self.lines)

    @property
    def bytes(self) -> int:
        """Bytes that these would read and write in every call, one by one."""
        return sum(line.bytes for line in self.lines)

    @property
    def flops(self) -> int:
        """Elements that these would compute in every call."""
        return sum(line.flops for line in self.lines)

    @classmethod
    def of(cls, report: SignatureReport, work: Beforehand) -> Folding:
        """The folding of a signature that was traced, or loaded with what was done before it was saved."""
        assert report.program is not None
        packed = [each for kernel in report.kernels for each in kernel.packed]
        fillings = {each.key: each for kernel in report.kernels for each in kernel.fillings}
        once = sum(each.nbytes for each in fillings.values())
        in_calls = sum(each.per_call for each in packed)
        constants = constant_bytes(report.program.pipeline.graph)
        return cls(report, work.lines, work.decisions, constants, once, in_calls)

    def details(self) -> Iterator[str]:
        """The folding, line by line."""
        yield (
            f"{counted(self.operations, 'operation')} done beforehand; a call saves, as operations one by one, "
            f"{in_units(self.bytes, 'B')} and {in_units(self.flops, 'FLOPs')}"
        )
        yield from (f"  {line}" for line in self.lines[:MOST_KERNELS])
        if len(self.lines) > MOST_KERNELS:
            yield f"  and {counted(len(self.lines) - MOST_KERNELS, 'line')} more"
        if self.decisions:
            yield "scales and shifts by constants:"
            yield from (f"  {decision}" for decision in self.decisions[:MOST_KERNELS])
        yield f"constants of the compiled graph: {in_units(self.constant_bytes, 'B')}"
        if self.packed_bytes or self.packed_per_call:
            once, in_calls = in_units(self.packed_bytes, "B"), in_units(self.packed_per_call, "B")
            yield f"packed once: {once}; by every call: {in_calls}"

    def __str__(self) -> str:
        return "\n".join(self.details())


def constant_bytes(graph: Graph) -> int:
    """Bytes of the arrays among the constants of a graph."""
    return sum(node.spec.nbytes for node in graph.nodes if node.primitive is constant and not is_splat(node))


class Frozenness:
    """The work that a frozen function does not do in its calls; print it, or read its parts.

    Attributes:
        frozen_bytes: of the frozen copies of all tensors from outside.
        autocast: the mode of mixed precision that it was frozen in.
    """

    def __init__(
        self,
        name: str,
        backend: str,
        signatures: Sequence[tuple[SignatureReport, Beforehand]],
        frozen_bytes: int,
        autocast: Autocast | None,
    ) -> None:
        self.name, self.backend = name, backend
        self.frozen_bytes, self.autocast = frozen_bytes, autocast
        self._signatures = signatures

    @cached_property
    def signatures(self) -> tuple[Folding, ...]:
        """The folding of each signature, in the order in which they were traced."""
        return tuple(Folding.of(report, work) for report, work in self._signatures)

    def __str__(self) -> str:
        types = f" with {self.autocast}" if self.autocast else ""
        lines = [
            f"{self.name}, frozen{types}, on backend {self.backend!r}: {counted(len(self.signatures), 'signature')}, "
            f"{in_units(self.frozen_bytes, 'B')} of frozen tensors"
        ]
        for number, signature in enumerate(self.signatures, 1):
            lines.append(f"  {number}. ({signature.report}), {counted(signature.report.calls, 'call')}")
            lines += [f"     {line}" for line in signature.details()]
        return "\n".join(lines)

    __repr__ = __str__
