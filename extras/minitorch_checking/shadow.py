"""Shadow mode: the traced graph runs node by node beside the compiled program, and outputs are compared.

The compiled program gets copies of the inputs, so whatever it overwrites, the caller's tensors are as they were until
the comparison is over. It runs in a child process, on arrays between guard zones, so a crash is a verdict like a wrong
number. If it fails, the call changes nothing.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.backends import Executable, interpret, row_of
from minitorch.dtypes import BY_NUMPY
from minitorch.errors import MismatchError
from minitorch.graph import Graph
from minitorch.interpreters import current_watcher
from minitorch.ir import Node, Spec
from minitorch.modes.tracing.options import Policy, Request
from minitorch.tensor import Tensor
from minitorch_checkpoints import safetensors

from .bisect import Culprit, bisect
from .isolation import ChildDiedError, isolated
from .rehearsal import Rehearsal, Rehearsed
from .rounding_errors.difference import Difference, are_equal, difference
from .rounding_errors.sampling import Decision
from .rounding_errors.stochastic import Judgement, judge

if TYPE_CHECKING:
    from minitorch.modes.tracing.program import Program
    from minitorch.modes.tracing.recording import Recorded
    from minitorch.modes.tracing.traced import Traced

Array = np.ndarray[Any, Any]

# The time limit of a compiled program: seconds, and a multiple of the time of its nodes one by one.
PATIENCE, PATIENCE_TIMES = 60.0, 100

GRAPH, INPUTS, REPORT = "graph.txt", "inputs.safetensors", "report.txt"


@dataclass(frozen=True)
class Report:
    """The findings of one call in shadow mode.

    Attributes:
        name: of the graph.
        outputs: the difference of each output: results first, then in-place writes.
        culprit: the first faulty part, if an output differs by more than rounding and a part is at fault.
        folder: the reproducer, if one was written.
        refused: the reason why the function itself was not run, if there was one.
        fault: a crash of the compiled program, or a write outside of its arrays.
        decisions: comparisons and the like that rounding can turn, and that account for differences.
    """

    name: str
    outputs: tuple[Difference, ...]
    culprit: Culprit | None = None
    folder: Path | None = None
    refused: str = ""
    fault: str = ""
    decisions: tuple[Decision, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the program ran, and all outputs agree up to rounding."""
        return not self.fault and all(each.within for each in self.outputs)

    def __str__(self) -> str:
        lines = [f"{self.name}: {'as in eager mode' if self.ok else 'not as in eager mode'}"]
        lines += [f"  {each}" for each in self.outputs]
        lines += [f"  fault: {self.fault}"] * bool(self.fault)
        lines += [f"  {each}" for each in self.decisions]
        if self.culprit is not None:
            lines.append(f"  wrong: {self.culprit}")
        elif not self.ok:
            lines.append("  every pass and every kernel is right by itself: rounding errors have added up")
        if self.refused:
            lines.append(f"  the function itself was not run: {self.refused}")
        return "\n".join(lines)


class Shadow(Policy):
    """Shadow mode, ``jit(..., check=True)``: programs have a shadow, and calls a rehearsal.

    Args:
        folder: for a reproducer; True for a temporary one.
    """

    sees_libraries = False  # a rehearsal runs the function, and so changes what libraries remember

    def __init__(self, folder: bool | str | Path) -> None:
        self._folder = None if isinstance(folder, bool) else folder

    def executable(self, program: Program) -> Executable:
        """Return the program with its shadow."""
        return Shadowed(program, self._folder)

    def finish(self, request: Request, recorded: Recorded, traced: Traced) -> None:
        """Have the function itself run before each call of a trace."""
        rehearsal = Rehearsal(request, recorded, traced)
        shadowed: Any = traced.program.execute

        def before(tensors: Sequence[Tensor]) -> Executable:
            rehearsed = rehearsal(tensors)
            return lambda arrays, overwrite: shadowed(arrays, overwrite, rehearsed, rehearsal.refused)

        traced.before = before


class Shadowed:
    """A compiled program with its shadow; call it with one array per input, like the program.

    Attributes:
        report: of the last call, or None.
    """

    def __init__(self, program: Program, folder: str | Path | None) -> None:
        self.program = program
        self.report: Report | None = None
        self._folder = folder
        self._shadow = interpret.compile(program.graph)

    def __call__(
        self, arrays: Sequence[Array], overwrite: bool = True, rehearsed: Rehearsed | None = None, refused: str = ""
    ) -> list[Array]:
        """Run both.

        Args:
            rehearsed: the results of the traced function itself.
            refused: the reason why it was not run.

        Raises:
            MismatchError: if the graph does not do what the function does (``MT504``); if an output differs by
                more than rounding, and a part of the compiler is to blame (``MT502``).
        """
        begin = time.monotonic()
        expected = self._shadow(arrays)
        patience = PATIENCE + PATIENCE_TIMES * (time.monotonic() - begin)
        if rehearsed is not None and rehearsed.error is None:
            self._compare_with_function(rehearsed, arrays, expected)
        found, fault = self._compiled(arrays, overwrite, patience)
        graph = self.program.graph
        judgement = Judgement()
        if found is not None and not all(map(are_equal, expected, found)):
            known = dict(zip(graph.inputs, arrays, strict=True))
            judgement = judge(graph.nodes, known, graph.outputs, found, row_of(self.program.backend).keeps_bits)
        outputs = tuple(
            difference(self._name(place), node.spec, expected[place], found[place], place not in judgement.beyond)
            for place, node in enumerate(graph.outputs)
            if found is not None
        )
        culprit = bisect(self.program, arrays, found, fault) if judgement.beyond or fault else None
        self.report = Report(graph.name, outputs, culprit, None, refused, fault, judgement.decisions)
        if culprit is not None:
            self._raise(arrays, self.report)
        assert found is not None
        if rehearsed is not None and rehearsed.error is not None:
            raise _parted(graph, f"it raises {type(rehearsed.error).__name__}") from rehearsed.error
        return found

    def _compiled(self, arrays: Sequence[Array], overwrite: bool, patience: float) -> tuple[list[Array] | None, str]:
        """The compiled program's outputs from copies of the inputs, if any, and its fault, if there is one."""
        compiled = self.program.compiled

        def run() -> tuple[list[Array], bool]:
            if not hasattr(compiled, "allocate"):
                return compiled([np.array(array, order="K") for array in arrays], overwrite), False
            from minitorch.compiler.runtime.memory_pool import Guards, pool  # it is loaded already

            guards = Guards()
            compiled.allocate(guards.array)
            try:
                found = compiled([guards.copy(array) for array in arrays], overwrite)
            finally:
                compiled.allocate(pool.array)
            return found, guards.broken()

        try:
            # A watcher has to be called in this process.
            is_apart = hasattr(compiled, "allocate") and current_watcher() is None
            found, broken = isolated(run, patience) if is_apart else run()
        except ChildDiedError as error:
            return None, str(error)
        except Exception as error:  # node by node there is none
            if not is_apart:
                raise
            return None, f"it raises {type(error).__name__}: {error}"
        return found, "something is written outside of its arrays" if broken else ""

    def _compare_with_function(self, rehearsed: Rehearsed, arrays: Sequence[Array], expected: Sequence[Array]) -> None:
        graph = self.program.graph
        if rehearsed.parted is not None:
            raise _parted(graph, rehearsed.parted)
        for place, array in rehearsed.outputs.items():
            if (array.shape, array.dtype) != (expected[place].shape, expected[place].dtype):
                now, traced = Spec(array.shape, BY_NUMPY[array.dtype]), graph.outputs[place].spec
                raise _parted(graph, f"{self._name(place)} is {now}, and {traced} in the trace", graph.outputs[place])
        places = [place for place, array in rehearsed.outputs.items() if not are_equal(expected[place], array)]
        wanted, found = [graph.outputs[place] for place in places], [rehearsed.outputs[place] for place in places]
        for number in judge(graph.nodes, dict(zip(graph.inputs, arrays, strict=True)), wanted, found).beyond:
            node = wanted[number]
            far = difference(self._name(places[number]), node.spec, expected[places[number]], found[number], False)
            where = f"{far.name} {far.spec} at {list(far.index or ())}"
            raise _parted(graph, f"{where} is {far.found}, and {far.expected} in the trace", node)

    def _name(self, place: int) -> str:
        """An output as text; an in-place write has the name of the input."""
        if place not in self.program.updates:
            return f"output {place}"
        return f"new value of {self.program.graph.inputs[self.program.updates[place]].params['name']}"

    def _raise(self, arrays: Sequence[Array], report: Report) -> None:
        import tempfile  # loads a good deal

        folder = Path(self._folder or tempfile.mkdtemp(prefix="minitorch-mismatch-"))
        write(folder, self.program, arrays, report)
        self.report = dataclasses.replace(report, folder=folder)
        wrong = [each for each in report.outputs if not each.within]
        how = report.fault or max(wrong, key=lambda each: each.ulp)
        raise MismatchError(
            "MT502",
            f"{report.name} compiled by {self.program.backend!r} is not what it is in eager mode: {how}",
            where=f"the first that goes wrong is {report.culprit}",
            why="the traced graph, run node by node on the same inputs, gives other numbers: a bug of this backend",
            fix=f"report it, with this, which runs it again: python -m minitorch reproduce {folder}",
        )


def _parted(graph: Graph, how: str, node: Node | None = None) -> MismatchError:
    """The error for a function that does something else than the graph that was traced from it."""
    return MismatchError(
        "MT504",
        f"run by itself, {graph.name} does something else than what was traced: {how}",
        where=None if node is None else f"the trace computes it at {node.source}",
        why="either the function depends on something that is not a tensor and not the same each time, such as "
        "Python's or NumPy's random numbers, the clock or a file; or minitorch has traced it wrongly",
        fix="pass what changes as an argument, draw random numbers with mt.rand; if there is nothing of the kind, "
        "report it",
    )


def write(folder: Path, program: Program, arrays: Sequence[Array], report: Report) -> None:
    """Write a reproducer: the traced graph as a listing, its inputs, the options, and the findings."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / GRAPH).write_text(f"{program.graph}\n", encoding="utf-8")
    inputs = {str(node.params["name"]): array for node, array in zip(program.graph.inputs, arrays, strict=True)}
    metadata = {
        "backend": program.backend,
        "passes": json.dumps([stage.name for stage in program.pipeline]),
        "updates": json.dumps(list(program.updates.items())),
        "donated": json.dumps(sorted(program.donated)),
    }
    safetensors.save(folder / INPUTS, inputs, metadata)
    source = f"\n\n{report.culprit.source}" if report.culprit else ""
    (folder / REPORT).write_text(f"{report}{source}\n", encoding="utf-8")
