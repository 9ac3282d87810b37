"""Frozen functions that are graphs alone: those of a `Session`, and those that `load_frozen` reads from a folder.

There is no Python behind them to trace, so they take the signatures that they have, and no others.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import backends
from minitorch.errors import ShapeError
from minitorch.graph import Graph
from minitorch.ir import Spec
from minitorch.modes.objects.outcome import Argument
from minitorch.modes.tracing.explain import SignatureReport
from minitorch.modes.tracing.options import Request
from minitorch.modes.tracing.trace import of_graph
from minitorch.modes.tracing.traced import Traced
from minitorch.passes import Pass
from minitorch.tensor import Tensor, with_value
from minitorch.tree import flatten, unflatten
from minitorch_amp.autocast_mode import Autocast
from minitorch_inference.beforehand import Beforehand, constant_bytes

from .files import layouts, origins, programs
from .frozen import Frozen, passes_for
from .pipeline import FREEZING

if TYPE_CHECKING:
    from minitorch_checking.ablation import Ablation


@dataclass(frozen=True)
class Signature:
    """One signature: how the arguments and results of a graph are nested.

    Attributes:
        graph: its inputs are the tensors among the arguments, in order.
        arguments: `Argument` in place of each tensor, in the structure ``(args, kwargs)``.
        results: `Output` and `Argument` in place of tensors.
        contiguous: positions of the arguments that have to be contiguous.
        work: what was done before it was saved; None for a graph that is frozen now.
    """

    graph: Graph
    arguments: Any
    results: Any
    contiguous: tuple[int, ...] = ()
    work: Beforehand | None = None


class FrozenGraph(Frozen[..., Any]):
    """A frozen function without Python behind it. Call it with arguments of one of its signatures."""

    def __init__(
        self,
        name: str,
        parameters: inspect.Signature | None,
        signatures: Sequence[Signature],
        backend: str,
        passes: Sequence[Pass] | None = None,
        autocast: Autocast | None = None,
        frozen_bytes: int | None = None,
    ) -> None:
        def function(*args: Any, **kwargs: Any) -> Any:
            raise AssertionError("the graph of a frozen function is run in its place")

        function.__name__ = name
        if parameters is not None:
            function.__signature__ = parameters  # type: ignore[attr-defined]
        super().__init__(function, backend, autocast)
        self._signatures.has_own_parameters = True  # behind it is nothing that could take a call otherwise
        self._parts = name, parameters, tuple(signatures), backend, passes, autocast, frozen_bytes
        self._passes = passes_for(backend) if passes is None else tuple(passes)
        self.passes = self._passes
        self._saved_bytes = frozen_bytes
        self._work: dict[int, Beforehand] = {}  # of saved signatures, by `id` of the report
        for each in signatures:
            self._add(each)

    def __reduce__(self) -> Any:
        return type(self), self._parts

    def _add(self, signature: Signature) -> None:
        leaves, structure = flatten(signature.arguments)
        specs = [node.spec for node in signature.graph.inputs]
        stand_ins = [_of_no_memory(spec) for spec in specs]
        given = [stand_ins[leaf.position] if isinstance(leaf, Argument) else leaf for leaf in leaves]
        args, kwargs = unflatten(structure, given)
        call = self._signature(args, kwargs)
        report = SignatureReport.of_call(self._request(call), False)
        report.mode, report.reason = self.autocast, "it was frozen"
        results, nesting = flatten(signature.results)
        traced = of_graph(signature.graph, nesting, results, report, self._options, signature.contiguous)
        self._traced.setdefault(call.key, []).append(traced)
        self._reports.append(report)
        self._traces += 1
        if signature.work is not None:
            self._work[id(report)] = signature.work

    def _beforehand(self, report: SignatureReport) -> Beforehand:
        return self._work.get(id(report)) or super()._beforehand(report)

    def _frozen_bytes(self) -> int:
        if self._saved_bytes is not None:
            return self._saved_bytes
        return sum(constant_bytes(report.program.graph) for report in self._reports if report.program is not None)

    def _made(self, request: Request, report: SignatureReport) -> Traced:
        known = ", or ".join(f"({each})" for each in self._reports)
        raise ShapeError(
            "MT201",
            f"{self.__name__} is called with ({report}), and is frozen for {known}",
            why="it is a graph alone: there is no function that could be traced for other arguments",
            fix="pass contiguous arguments of these shapes and types, or freeze the function for others, too",
        )

    def ablate(self, *args: Any, seconds: float = 1.0, **kwargs: Any) -> Ablation:
        """As that of a jitted function, of a signature that there is."""
        self.traced(*args, **kwargs)
        return super().ablate(*args, seconds=seconds, **kwargs)

    def request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Return None: there is nothing to trace."""


def _of_no_memory(spec: Spec) -> Tensor:
    """A tensor that has a shape and a type, and one element of memory."""
    return with_value(np.broadcast_to(np.zeros((), spec.dtype.numpy), spec.shape))


def load_frozen(folder: str | os.PathLike[str], backend: str = backends.DEFAULT) -> FrozenGraph:
    """Read a frozen function that ``frozen.save(folder)`` has written; the code that made it is not needed.

    Nothing in the folder is executed: it holds graphs as text, and arrays as safetensors. Both are checked, and have to
    fit. On the same kind of machine the results have the same bits as before.

    Args:
        folder: as it was given to ``save``.
        backend: what runs the graphs.

    Returns:
        A frozen function with the signatures that were saved. Others are errors (``MT201``).

    Raises:
        FrozenError: for a folder that is damaged, incomplete, or holds something else (``MT114``).

    Example:
        >>> import minitorch as mt, tempfile
        >>> model, x = mt.nn.Linear(4, 2).eval(), mt.ones(3, 4)
        >>> frozen = mt.freeze(model, x)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     frozen.save(folder)
        ...     loaded = mt.load_frozen(folder)
        >>> loaded(x).tolist() == frozen(x).tolist()
        True
    """
    backends.check(backend)
    about, rows = programs.load(folder)
    try:
        name, parameters = layouts.head_of(about)
        signatures = [
            Signature(row.graph, *layouts.body_of(row.graph, row.layout), origins.decode(row.layout.get("beforehand")))
            for row in rows
        ]
        passes = passes_for(backend)[len(FREEZING) :]
        return FrozenGraph(name, parameters, signatures, backend, passes, *origins.head_of(about))
    except layouts.LayoutError as error:
        programs.refuse(folder, f"{programs.MANIFEST}: {error}", error)
