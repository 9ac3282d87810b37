"""`Kernel`: one unit of work of a schedule, its reads and writes, and its texts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...errors import ScheduleWarning
from ...graph import cost
from ...graph.cost import in_units
from ...graph.values import bodies
from ...ir import Node, warn_user
from ...tables import Table, Tabular
from ..codegen import machine
from ..codegen.emit import emit
from ..loop_ir.expressions import Expression, Load
from ..loop_ir.loops import LoopKernel
from ..loop_ir.origins import kernel_at_origin
from ..loop_ir.tree import Block, Local, arrays_read, loaded, mapped
from ..scheduling import count
from ..scheduling.count import Packed
from ..scheduling.nests import PARTIAL
from ..scheduling.schedules.choice import Schedule, Scheduled, scheduled, units
from ..target import Target

if TYPE_CHECKING:
    from .steps import Listing, Steps


@dataclass(frozen=True)
class Filling:
    """The arrays of a nest that are filled once, when the program is loaded.

    Attributes:
        arrays: in the order in which the nest expects them.
        block: the statements that fill them; buffers are numbered as the constants are.
        constants: those that are read, each with the number of its first byte in use.
    """

    arrays: tuple[Local, ...]
    block: Block
    constants: tuple[tuple[Node, int], ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(each.size * each.dtype.itemsize for each in self.arrays)

    @property
    def key(self) -> Hashable:
        """The contents of the arrays: equal for any that are packed in the same way from the same memory."""
        return self.arrays, self.block, tuple((id(node.params["value"].array), first) for node, first in self.constants)


@dataclass(repr=False)
class Kernel(Tabular):
    """One unit of work.

    Attributes:
        name: short, with the operations it ends in.
        kind: ``"K1"`` pointwise, ``"K2"`` reduction, ``"K3"`` row-resident, ``"K4"`` contraction, ``"K5"`` side by
            side, ``"call"`` other calls.
        phases: for each phase the nodes that it computes, in program order.
        reads, writes: the nodes whose values it reads from memory, and those that it writes.
        target: the machine of its code.
        loops: its loops; None for a call.
        buffers: the node behind each buffer of the loops.
        own: the user's own schedule of each nest, or None; empty without any.
    """

    name: str
    kind: str
    phases: tuple[tuple[Node, ...], ...]
    reads: tuple[Node, ...]
    writes: tuple[Node, ...]
    target: Target
    loops: LoopKernel | None = None
    buffers: tuple[Node, ...] = ()
    own: tuple[Schedule | None, ...] = ()

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that it computes, in program order."""
        return tuple(dict.fromkeys(node for phase in self.phases for node in phase))

    @property
    def made(self) -> tuple[Node, ...]:
        """The values that need memory: those that it writes, and its partial results."""
        return self.writes + tuple(dict.fromkeys(node for node in self.buffers if node.primitive is PARTIAL))

    @property
    def bytes_read(self) -> int:
        """Bytes from memory: every needed element once."""
        return self._bytes[0]

    @property
    def bytes_written(self) -> int:
        """Bytes to memory."""
        return self._bytes[1]

    @cached_property
    def _bytes(self) -> tuple[int, int]:
        if self.loops is None:
            return sum(node.spec.nbytes for node in self.reads), sum(node.spec.nbytes for node in self.writes)
        read: dict[Node, int] = {}
        written: dict[Node, int] = {}
        for node, (reads, writes) in zip(self.buffers, count.elements(self.loops), strict=True):
            read[node] = min(node.spec.size, read.get(node, 0) + reads)
            written[node] = min(node.spec.size, written.get(node, 0) + writes)
        return (
            sum(size * node.dtype.itemsize for node, size in read.items()),
            sum(size * node.dtype.itemsize for node, size in written.items()),
        )

    @cached_property
    def operations(self) -> count.Operations:
        """Its operations as its loops are scheduled, with all that it computes repeatedly."""
        if self.loops is None:
            return count.Operations(cost.flops(self.nodes[0]), cost.transcendentals(self.nodes[0]))

        def packings(number: int) -> dict[str, Packed]:
            part = self.scheduled[number]
            return {each.name: each for each in count.packed(part.procedure, part.schedule)}

        return count.operations(self.compiled[0], packings)

    @property
    def flops(self) -> int:
        """Arithmetic operations on elements, transcendental functions not counted."""
        return self.operations.arithmetic

    @property
    def transcendentals(self) -> int:
        """Elements of exp, log and the like."""
        return self.operations.special

    @cached_property
    def source(self) -> str:
        """The definition of the kernel as Python that runs; of a library call its name, of a loop or branch its bodies.

        The last of the `steps` has the source in the order of execution.
        """
        from ..loop_ir.source import source

        if self.loops:
            return source(self.loops)
        node, graphs = self.nodes[0], bodies(self.nodes[0])
        if not graphs:
            return f"# {node.primitive.name}, run by NumPy\n"
        times = f", {node.params['length']} times" if "length" in node.params else ""
        return f"# {node.primitive.name}{times}\n" + "".join(f"# {name}\n{body}\n" for name, body in graphs.items())

    @cached_property
    def compiled(self) -> tuple[LoopKernel, tuple[int, ...]]:
        """The loops that are compiled, and the bytes by which the address of each of their buffers is moved.

        Buffers begin at their first element in use, so kernels that differ only in offsets share code.
        """
        assert self.loops is not None
        loops, origins = kernel_at_origin(self.loops)
        sizes = [buffer.dtype.itemsize for buffer in self.loops.buffers]
        return loops, tuple(first * size for first, size in zip(origins, sizes, strict=True))

    @cached_property
    def scheduled(self) -> tuple[Scheduled, ...]:
        """Its nests, and how each runs; none for a call."""
        return scheduled(self.compiled[0], self.target, self.own) if self.loops else ()

    @property
    def code(self) -> tuple[Hashable, ...]:
        """A key that kernels with the same machine code have in common."""
        return tuple((id(each.procedure), each.start, each.phase, *each.first.items()) for each in self.scheduled)

    @cached_property
    def llvm(self) -> str:
        """The kernel as LLVM IR, which counts buffers from their first element in use; empty for a call.

        The user is warned if a schedule of the engine's is not legal for it.
        """
        if self.refused and not any(each.gives_lengths for each in (self.loops.buffers if self.loops else ())):
            warn_user(
                f"a kernel is slow, since minitorch refuses a schedule of its own: {'; '.join(self.refused)}. "
                "Its results are right. Please report it, with the program",
                ScheduleWarning,
            )
        return emit(self.scheduled, self.target) if self.loops else ""

    @cached_property
    def filling(self) -> str:
        """LLVM IR of the procedures that fill the program's arrays when it is loaded; empty without arrays."""
        return emit(self.scheduled, self.target, once=True) if self.fillings else ""

    @cached_property
    def fillings(self) -> tuple[Filling, ...]:
        """The arrays of the program that are filled once, nest by nest."""
        found = []
        for part in self.scheduled:
            arrays, block, _ = loaded(part.procedure)
            if arrays:
                reads = sorted(each for each in arrays_read(block) if isinstance(each, int))
                constants = tuple(
                    (self.buffers[part.start + each], self.compiled[1][part.start + each]) for each in reads
                )

                def numbered(part: Expression, reads: list[int] = reads) -> Expression:
                    return replace(part, buffer=reads.index(part.buffer)) if isinstance(part, Load) else part

                found.append(Filling(tuple(arrays), mapped(block, numbered), constants))
        return tuple(found)

    @cached_property
    def packed(self) -> tuple[Packed, ...]:
        """The arrays that operands are packed into: their bytes, and how many of them are stored in every call.

        Example:
            >>> import minitorch as mt
            >>> layer, x = mt.nn.Linear(600, 500).eval(), mt.ones(64, 600)
            >>> for f in (mt.jit(layer), mt.freeze(layer, x)):
            ...     with mt.no_grad():
            ...         (kernel,) = f.ledger(x).for_target("avx2").kernels
            ...     [each.per_call > 0 for each in kernel.packed]
            [True]
            [False]
        """
        return tuple(each for part in self.scheduled for each in count.packed(part.procedure, part.schedule))

    @cached_property
    def assembly(self) -> str:
        """The kernel in the target's assembly language; empty for a call."""
        return machine.assembly(self.llvm, self.target) if self.loops else ""

    @cached_property
    def units(self) -> int:
        """The number of parts that can run in parallel."""
        return units(self.scheduled)

    @property
    def schedule(self) -> Listing:
        """The rewrites from the definition to the loops that are run, nest by nest."""
        from .steps import Listing

        return Listing([part.schedule for part in self.scheduled], [part.refused for part in self.scheduled])

    @property
    def refused(self) -> tuple[str, ...]:
        """Why schedules of the engine's own are not legal for it: of each such nest, the law that is broken."""
        return tuple(reason for part in self.scheduled for reason in part.refused)

    @cached_property
    def steps(self) -> Steps:
        """The kernel after each rewrite of its schedule; the first step is the definition.

        Example:
            >>> import minitorch as mt
            >>> a, b = mt.ones(8, 8), mt.ones(8, 8)
            >>> (kernel,) = mt.jit(lambda a, b: a @ b).ledger(a, b).kernels
            >>> definition, *rest = kernel.steps
            >>> definition.rewrite is None, definition(a, b)[0, 0].item(), rest[-1](a, b)[0, 0].item()
            (True, 8.0, 8.0)
        """
        from .steps import Steps

        return Steps(self)

    @property
    def cells(self) -> tuple[str, ...]:
        """The kernel as a row of a table of kernels."""
        where = ", ".join(dict.fromkeys(str(node.source) for node in self.nodes if node.source))
        where = where if len(where) <= 60 else f"{where[:57]}..."
        counts = in_units(self.bytes_read, "B"), in_units(self.bytes_written, "B"), in_units(self.flops)
        return self.name, self.kind, str(len(self.nodes)), *counts, where

    def _parts(self) -> list[Table]:
        return [table_of([self])]


def table_of(kernels: Sequence[Kernel], title: str = "kernel") -> Table:
    """Return a table of kernels.

    Args:
        kernels: in order.
        title: of the column with their names; empty for a table without a head.
    """
    head = (title, "kind", "nodes", "read", "written", "FLOPs", "asked for at") if title else ()
    return Table("{:<36} {:<5}{:>6}{:>10}{:>10}{:>9}  {}", [each.cells for each in kernels], head, (0, 6))
