"""Recording with dynamic dimensions: the arguments have symbolic sizes, and what is asked about these is judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from minitorch.errors import TranslationError
from minitorch.graph import Graph
from minitorch.ir import Node, Primitive
from minitorch.modes.tracing.sized import SizedStaging
from minitorch.sizes import Guard, Guards, is_symbolic
from minitorch_operators import size

Array = np.ndarray[Any, Any]

LEAST = 3  # the smallest length of a dynamic dimension that comparisons are decided for; one of 1 would be repeated


@dataclass(frozen=True)
class Traced:
    """The trace of a function.

    Attributes:
        graph: as recorded.
        parameters: the arrays of the tensors from outside, by the names of the graph's inputs.
        trained: the names of those that are parameters of a module.
        paths: the names that tensors have in the module, by those of the inputs.
        outputs: the names of the results.
        guards: what was asked about sizes.
    """

    graph: Graph
    parameters: dict[str, Array]
    trained: list[str]
    paths: dict[str, str]
    outputs: list[str]
    guards: Guards

    @property
    def arguments(self) -> list[str]:
        """The names of the graph's inputs that are arguments."""
        names = [str(node.params["name"]) for node in self.graph.inputs]
        return [name for name in names if name not in self.parameters]


class ExportStaging(SizedStaging):
    """The recording of a call to export: numbers that are computed from sizes are nodes, and loops are written out."""

    few = 0  # a layer of any length is a loop, of which `lifting` makes an operator

    def _append(self, primitive: Primitive, nodes: tuple[Node, ...], params: Mapping[str, Any]) -> Node:
        if primitive.name == "constant" and is_symbolic(params["value"]):
            primitive = size
        return super()._append(primitive, nodes, params)


def require_same_program(guards: Iterable[Guard]) -> None:
    """Require that a program is the same for all lengths, as far as it has asked about them.

    A rule of shapes may ask whether lengths agree: what it raises for others is raised by the program, too.

    Raises:
        TranslationError: with the user's line, if the program branches on a size, or fits one length alone (``MT803``).
    """
    for guard in guards:
        is_one = guard.kind == "==" and guard.outcome and type(guard.right) in (int, float)
        who = {"user": "the program", "engine": "a function", "rule": "an operation"}.get(guard.asker)
        if guard.asker == "rule" and is_one:
            raise _refused(guard, f"{who} fits only where `{guard}`")
        if guard.asker in ("user", "engine"):
            takes = f"takes the dynamic size `{guard.left}` for a plain number"
            raise _refused(guard, f"{who} {takes if is_one else f'decides by `{guard}`'}")


def _refused(guard: Guard, what: str) -> TranslationError:
    return TranslationError(
        "MT803",
        what,
        where=str(guard.source) if guard.source else None,
        why="a dynamic dimension is a symbol: the operations of a model are the same for all of its lengths, and "
        "a branch, a loop or a table that goes by a length is recorded for the example's alone",
        fix="write it without the branch, or leave this dimension out of dynamic_axes and export a model for each size",
    )
