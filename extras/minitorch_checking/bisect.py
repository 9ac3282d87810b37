"""Bisection of a compiler bug: the first faulty pass, else the first faulty kernel, and the node.

Each step takes values that are known to be right, computed node by node, and asks of one part of the compiler whether
it makes the right thing of them:

1. passes: the graph after each pass, run node by node, against the traced graph;
2. kernels: each by itself, on right values;
3. nodes: each node of the wrong kernel as a program of its own; if all are right, each beginning of the kernel. If the
   loops of that program, run in Python, are wrong as well, the *scheduler* has made wrong loops, otherwise *code
   generation* wrong code of right ones;
4. running: if all kernels are right by themselves, and one after another they give other bits than the compiled
   program, that has put values in the wrong place, or run kernels in the wrong order.

A backend that has no kernels of ours, such as XLA's, is at fault if no pass is; each node as a program of its own then.

Machine code runs in child processes: a crash is a fault like a wrong number.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import backends
from minitorch.graph import Graph, topological_order
from minitorch.graph.evaluation import values_of
from minitorch.graph.values import is_splat
from minitorch.interpreters import Watcher, watching
from minitorch.ir import INPUT, Node

from .isolation import ChildDiedError, isolated
from .rounding_errors.difference import ulps
from .rounding_errors.stochastic import judge

if TYPE_CHECKING:
    from minitorch.compiler.kernels.kernel import Kernel
    from minitorch.compiler.kernels.ledger import Ledger
    from minitorch.compiler.runtime.isolated import Runner
    from minitorch.compiler.target import Target
    from minitorch.modes.tracing.program import Program

Array = np.ndarray[Any, Any]
Arrays = dict[Node, Array]

MOST_ROUNDS = 100_000  # iterations of loops that are run in Python; raising it tells more faults apart

MOST_SECONDS = 60.0  # seconds for one kernel; a slower one is taken for an endless loop

PASS, SCHEDULE, CODE, RUNNING, BACKEND = "pass", "schedule", "code generation", "running", "backend"
EITHER = "schedule or code generation"


@dataclass(frozen=True)
class Culprit:
    """The first faulty part of a compiled program.

    Attributes:
        stage: ``"pass"``, ``"schedule"``, ``"code generation"`` (``"schedule or code generation"`` if that would take
            too long to tell) or ``"running"``; ``"backend"`` for one that has no kernels of ours.
        name: of the pass, the kernel, or the backend.
        node: the first node with a wrong value, if there is one.
        source: the loops of the kernel, as Python; or the graph after the pass.
        how: the fault, if it is not a wrong number: a crash, a write outside of the arrays.
    """

    stage: str
    name: str
    node: Node | None
    source: str
    how: str = ""

    def __str__(self) -> str:
        what = {
            PASS: f"the pass '{self.name}'",
            SCHEDULE: f"the scheduler, in the loops of kernel {self.name}",
            EITHER: f"the scheduler or code generation (too long to be run in Python), in kernel {self.name}",
            CODE: f"code generation, in kernel {self.name}",
            RUNNING: f"running the kernels{self.name and f', in {self.name}'}: each is right by itself",
            BACKEND: f"the backend {self.name!r}",
        }[self.stage]
        what += f" ({self.how})" if self.how else ""
        if self.node is None:
            return what
        return f"{what}, first in {self.node.primitive.name}: {self.node.spec}, recorded at {self.node.source}"


def bisect(program: Program, arrays: Sequence[Array], found: Sequence[Array] | None, fault: str = "") -> Culprit | None:
    """The first faulty part of a compiled program; None if all are right, and rounding errors have added up.

    Args:
        arrays: the inputs.
        found: the outputs of the program, if it ended normally.
        fault: a crash or the like.
    """
    culprit = _first_wrong_pass(program, arrays)
    ledger: Ledger | None = getattr(program.compiled, "ledger", None)
    if culprit is None and ledger is not None:
        culprit = _first_wrong_kernel(ledger, arrays, program.backend)
        culprit = culprit or _running(program, ledger, arrays, found, fault)
    if culprit is None and ledger is None:
        culprit = Culprit(BACKEND, program.backend, _first_alone(program, arrays), str(program.pipeline.graph), fault)
    return culprit


def _first_alone(program: Program, arrays: Sequence[Array]) -> Node | None:
    """The first node that the backend computes wrongly as a program of its own; None if only the whole is wrong."""
    graph = program.pipeline.graph
    values = values_of(graph.nodes, dict(zip(graph.inputs, arrays, strict=True)))
    for node in graph.nodes:
        if node.inputs:
            alone, inputs = cut([node], [node])
            given = [values[each] for each in inputs]
            known = dict(zip(alone.inputs, given, strict=True))
            made = backends.get(program.backend)(alone)(given)
            if judge(alone.nodes, known, alone.outputs, made, backends.row_of(program.backend).keeps_bits).beyond:
                return node
    return None


def wrong(
    nodes: Sequence[Node], known: Mapping[Node, Array], wanted: Sequence[Node], found: Sequence[Array]
) -> Sequence[int]:
    """The results that differ from the known values by more than rounding (see `judge`)."""
    return judge(nodes, known, wanted, found).beyond


# Passes -------------------------------------------------------------------------------------------------------


def _first_wrong_pass(program: Program, arrays: Sequence[Array]) -> Culprit | None:
    initial = program.pipeline.initial
    for stage in program.pipeline:
        if stage.after is not stage.before and (node := _changed(initial, stage.before, stage.after, arrays)):
            return Culprit(PASS, stage.name, node, str(stage.after))
    return None


def _changed(initial: Graph, before: Graph, after: Graph, arrays: Sequence[Array]) -> Node | None:
    """The first node of a graph that goes wrong; None if its outputs are those of the initial graph."""
    values = values_of(after.nodes, dict(zip(after.inputs, arrays, strict=True)))
    known = dict(zip(initial.inputs, arrays, strict=True))
    places = wrong(initial.nodes, known, initial.outputs, [values[node] for node in after.outputs])
    if not places:
        return None
    # Values of the graph before are right. The first value on the way to the output that is not among them is wrong.
    old = values_of(before.nodes, dict(zip(before.inputs, arrays, strict=True)))
    there = {_bits(value) for node, value in old.items() if not is_splat(node)}
    way = set(topological_order([after.outputs[places[0]]]))
    news = (node for node in after.nodes if node in way and not is_splat(node) and _bits(values[node]) not in there)
    return next(news, after.outputs[places[0]])


def _bits(array: Array) -> tuple[Any, ...]:
    return array.shape, array.dtype.name, array.tobytes()


# Kernels ------------------------------------------------------------------------------------------------------


def _first_wrong_kernel(ledger: Ledger, arrays: Sequence[Array], backend: str) -> Culprit | None:
    from minitorch.compiler.runtime.isolated import by_machine, by_python, given

    nodes, known = ledger.graph.nodes, given(ledger.graph, arrays)
    values = values_of(nodes, known)
    there = set(known)
    run: Runner = by_python if backend == "loops" else _apart(by_machine)
    for kernel in ledger.kernels:
        early = next((node for node in kernel.reads if node not in there), None)
        if early is not None:  # it is read before it is written
            return Culprit(SCHEDULE, kernel.name, early, str(ledger))
        there.update(kernel.writes)
        fault = _fault(kernel, nodes, values, run)
        if fault is not None:
            found = _first_wrong_node(kernel, nodes, values, run)
            stage = SCHEDULE if run is by_python else _stage(kernel, found, nodes, values)
            return Culprit(stage, kernel.name, found[0] if found else None, kernel.source, fault)
    return None


def _apart(run: Runner) -> Runner:
    """The same in a child process, which may crash."""

    def isolate(kernel: Kernel, known: Arrays) -> None:
        def inside() -> list[Array]:
            run(kernel, known)
            return [known[node] for node in kernel.writes]

        known |= zip(kernel.writes, isolated(inside, MOST_SECONDS), strict=True)

    return isolate


def _stage(kernel: Kernel, found: tuple[Node, set[Node]] | None, nodes: Sequence[Node], values: Arrays) -> str:
    """Whether a kernel's loops are wrong, or only their machine code.

    Args:
        found: a node that is computed wrongly from known values: then its loops are run.
    """
    from minitorch.compiler.kernels.ledger import ledger_of
    from minitorch.compiler.runtime.isolated import by_python

    if found is None:
        kernels: tuple[Kernel, ...] = (kernel,)
    else:
        node, known = found
        kernels = ledger_of(cut(topological_order([node], known), [node])[0], kernel.target).kernels
    if sum(map(_rounds, kernels)) > MOST_ROUNDS:
        return EITHER
    if found is None:
        is_right = _fault(kernel, nodes, values, by_python) is None
    else:
        is_right = _is_right_alone(*found, values, by_python, kernel.target)
    return CODE if is_right else SCHEDULE


def _rounds(kernel: Kernel) -> int:
    """The number of iterations of a kernel's loops, sums in expressions included."""
    from minitorch.compiler.loop_ir.expressions import Sum

    if kernel.loops is None:
        return 0
    values = [statement.value for nest in kernel.loops.nests for _, statement in nest.statements]
    sums = [part.variable.extent for value in values for part in value.all_parts if isinstance(part, Sum)]
    return kernel.loops.rounds * max(1, sum(sums))


def _fault(kernel: Kernel, nodes: Sequence[Node], values: Arrays, run: Runner) -> str | None:
    """The fault of a kernel on right values: empty for wrong numbers, None if there is none."""
    from minitorch.compiler.runtime.isolated import OutOfBoundsError

    made = {node: np.asarray(values[node], order="C") for node in kernel.reads}
    try:
        run(kernel, made)
    except (ChildDiedError, IndexError, OutOfBoundsError) as error:
        return str(error)
    own = set(topological_order(kernel.writes, kernel.reads))
    inside = [node for node in nodes if node in own]
    inputs = {node: values[node] for node in _operands(inside) if node not in own}
    return "" if wrong(inside, inputs, kernel.writes, [made[node] for node in kernel.writes]) else None


def _operands(nodes: Iterable[Node]) -> Iterator[Node]:
    return (operand for node in nodes for operand in node.inputs)


def _first_wrong_node(
    kernel: Kernel, nodes: Sequence[Node], values: Arrays, run: Runner
) -> tuple[Node, set[Node]] | None:
    """The first node of a kernel that is wrong as a program of its own, else the first beginning of it that is.

    Returns:
        The node, and the values from which it is computed wrongly; None if only the whole kernel is wrong.
    """
    inside = set(topological_order(kernel.writes, kernel.reads))
    program = [node for node in nodes if node in inside and not is_splat(node)]
    around = {node for node in _operands(program) if node not in inside}
    for node in program:
        operands = {operand for operand in node.inputs if not is_splat(operand)}
        if not _is_right_alone(node, operands, values, run, kernel.target):
            return node, operands
    for node in program:
        if not _is_right_alone(node, around, values, run, kernel.target):
            return node, around
    return None


def _is_right_alone(node: Node, known: set[Node], values: Arrays, run: Runner, target: Target) -> bool:
    """Whether a program of this node alone computes it rightly from the known values."""
    from minitorch.compiler.kernels.ledger import ledger_of
    from minitorch.compiler.runtime.isolated import OutOfBoundsError, run_alone

    graph, inputs = cut(topological_order([node], known), [node])
    arrays = [values[each] for each in inputs]
    try:
        found = run_alone(ledger_of(graph, target), arrays, run)
    except (ChildDiedError, IndexError, OutOfBoundsError):
        return False
    return not wrong(graph.nodes, dict(zip(graph.inputs, arrays, strict=True)), graph.outputs, found)


def cut(nodes: Sequence[Node], outputs: Sequence[Node]) -> tuple[Graph, list[Node]]:
    """Some nodes as a graph of their own, and the nodes that its inputs stand for."""
    own = set(nodes)
    around = list(dict.fromkeys(each for each in _operands(nodes) if each not in own))
    moved = {node: Node(INPUT, (), {"name": f"x{place}"}, node.spec, node.source) for place, node in enumerate(around)}
    inputs = list(moved.values())
    for node in nodes:
        operands = tuple([moved[operand] for operand in node.inputs])
        moved[node] = Node(node.primitive, operands, node.params, node.spec, node.source)
    return Graph(inputs, [moved[node] for node in outputs], [moved[node] for node in nodes], verify=False), around


def _running(
    program: Program, ledger: Ledger, arrays: Sequence[Array], found: Sequence[Array] | None, fault: str
) -> Culprit | None:
    """Whether the kernels one by one give other bits than the compiled program."""
    from minitorch.compiler.runtime.isolated import by_machine, by_python, run_alone

    if found is None:
        return Culprit(RUNNING, _last_kernel(program, ledger, arrays), None, str(ledger), fault)
    alone = run_alone(ledger, arrays, by_python if program.backend == "loops" else _apart(by_machine))
    for node, one, other in zip(ledger.graph.outputs, alone, found, strict=True):
        if ulps(one, other).any():
            return Culprit(RUNNING, "", node, str(ledger), fault)
    return Culprit(RUNNING, "", None, str(ledger), fault) if fault else None


def _last_kernel(program: Program, ledger: Ledger, arrays: Sequence[Array]) -> str:
    """The kernel in which a crashing program ends, when it is run kernel by kernel."""
    with tempfile.TemporaryFile() as file:
        file.truncate(8)
        done = mmap.mmap(file.fileno(), 8)  # shared with the child

    class Trail(Watcher):
        times = True

        def ran(self, begin: int, kind: str, what: Any) -> None:
            if kind == "kernel":
                done[:] = (int.from_bytes(done[:], "little") + 1).to_bytes(8, "little")

    def run() -> None:
        with watching(Trail()):
            program.compiled([np.array(array) for array in arrays])

    try:
        isolated(run, MOST_SECONDS)
    except ChildDiedError:
        kernels = [kernel.name for kernel in ledger.kernels if kernel.loops is None or kernel.units]
        return kernels[min(int.from_bytes(done[:], "little"), len(kernels) - 1)]
    return ""
