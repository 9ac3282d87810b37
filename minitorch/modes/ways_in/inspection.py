"""Inspection of a jitted function: its graph, stages, kernels, cost, values, and the gain of compiling.

Nothing here runs when the function is called, and its imports are deferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...drawable import Explorable
from ...graph import Graph
from ...interpreters import is_grad_enabled
from ...packages import load
from ...tensor import Tensor, fetched
from ..tracing.explain import Explanation, SignatureReport
from ..tracing.options import Request
from ..tracing.program import Program
from ..tracing.traced import Traced
from .calling import Calling, P, R

if TYPE_CHECKING:
    from minitorch_checking.ablation import Ablation
    from minitorch_checking.shadow import Report
    from minitorch_checking.stepping import Values
    from minitorch_profiler.breakeven import BreakEven
    from minitorch_xla.backend.collectives import Collectives
    from minitorch_xla.backend.hlo import Hlo

    from ...compiler.kernels.cost import FusedCost
    from ...compiler.kernels.ledger import Ledger
    from .stages import Stages


class Inspectable(Calling[P, R], Explorable):
    """Function that can be inspected: every method takes the arguments of a call."""

    def looked_up(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Traced, Sequence[Tensor]]:
        """Return the trace of a call, made now if there was none, and the tensors of the call.

        In place of a trace for many sizes it is one for those of the call, which calls do not use.
        """
        call = self._signature(args, kwargs)
        traced = self._traced_once(call)
        return (self._of_one_size(call) if traced.report.is_for_many else traced), call.tensors

    def request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Request | None:
        """Return a call as something to trace; None if there is nothing but a graph."""
        return self._request(self._signature(args, kwargs))

    def traced(self, *args: Any, **kwargs: Any) -> Traced:
        """Return the trace for these arguments, made now if there was none."""
        return self.looked_up(args, kwargs)[0]

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """Return the graph as traced for these arguments; nothing but tracing is run."""
        return self._traced_once(self._signature(args, kwargs)).program.graph

    def stages(self, *args: Any, **kwargs: Any) -> Stages:
        """Return the traced graph, the graph after each pass with statistics, then kernels, loops, LLVM, assembly."""
        from .stages import Stages

        traced = self.traced(*args, **kwargs)
        run = traced.program.pipeline
        return Stages(run.initial, run.stages, traced=traced)

    def values(self, *args: Any, **kwargs: Any) -> Values:
        """Return every intermediate value of a call with these arguments, by source line; nothing is written in place.

        The values are those of eager mode, also inside a kernel or where optimised away. Each has the name of the
        variable that held it, if any, and the kernels that its line has become a part of.

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
        values: Values = load("minitorch_checking.stepping").values(self, args, kwargs)
        return values

    def debug(self, *args: Any, break_at: str | None = None, **kwargs: Any) -> Any:
        """Call the function line by line, and stop in Python's debugger.

        The lines are those of the graph, and run in its order; backward runs where `backward` is called. All values are
        those of eager mode, also inside of kernels, and of operations that were optimised away. A value has the name of
        its variable; ``%3`` of ``graph()`` is ``v3``. ``kernels`` names the kernels that the line is now a part of;
        ``n`` goes to the next line. The result and the in-place writes are those of an ordinary call.

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
        return load("minitorch_checking.stepping").stepped(self, args, kwargs, break_at)

    def hlo(self, *args: Any, **kwargs: Any) -> Hlo:
        """Return XLA's program for the call, beside ours: for functions on the backend ``"xla"``.

        Returns:
            An `Hlo`: ``before`` and ``after`` are the program's text before and after XLA's passes, ``kernels`` is what
            it runs. Printed, it is a table: for each line of yours, the operations, our kernels and XLA's.

        Raises:
            ArgumentError: on another backend (``MT108``).

        Example:
            >>> import minitorch as mt
            >>> f = mt.jit(lambda x: (x * 2).sum(), backend="xla")
            >>> found = f.hlo(mt.ones(8))
            >>> len(found.kernels), "multiply" in found.before
            (1, True)
        """
        traced, tensors = self.looked_up(args, kwargs)
        values = [tensor._value for tensor in traced.inputs(tensors)]
        found: Hlo = load("minitorch_xla.listing").listing_of(traced.program, self.__name__, values)
        return found

    def collectives(self, *args: Any, **kwargs: Any) -> Collectives:
        """Return the transfers between devices in a call with these arguments, on the backend ``"xla"``.

        Returns:
            `Collective`s in the order in which they run, each with its bytes and the lines of yours that cause it;
            ``.moved`` is the bytes of all. Empty, if nothing is sharded.

        Raises:
            ArgumentError: on another backend (``MT108``).

        Example:
            >>> import minitorch as mt
            >>> f = mt.jit(lambda x: (x * 2).sum(), backend="xla")
            >>> f.collectives(mt.ones(8))
            0 collectives, 0 bytes
        """
        return self.hlo(*args, **kwargs).collectives()

    def cost(self, *args: Any, **kwargs: Any) -> FusedCost:
        """Return kernels, bytes, FLOPs and peak memory of the fused program, beside those of its operations one by one.

        The latter are counted as traced, as eager mode runs them, so the difference includes the work of the passes.

        Example:
            >>> import minitorch as mt
            >>> f = mt.jit(lambda x: x.softmax(1))
            >>> cost = f.cost(mt.ones(256, 1000))
            >>> cost.kernels, cost.bytes, cost.unfused.nodes, cost.unfused.bytes
            (1, 2048000, 9, 8196096)
        """
        from ...compiler.kernels.cost import fused_cost

        program = self.traced(*args, **kwargs).program
        return fused_cost(program.ledger, program.graph, program.updates, program.donated)

    def ledger(self, *args: Any, **kwargs: Any) -> Ledger:
        """Return the kernels that the graph for these arguments is fused into, and why each edge was fused or was not.

        Example:
            >>> import minitorch as mt
            >>> f = mt.jit(lambda x: (x * 2 + 1).sum(1), backend="llvm")
            >>> (kernel,) = f.ledger(mt.ones(4, 8)).kernels
            >>> kernel.kind, kernel.bytes_read, kernel.bytes_written
            ('K2', 128, 16)
        """
        return self.traced(*args, **kwargs).program.ledger

    def program(self, *args: Any, **kwargs: Any) -> tuple[Program, list[np.ndarray[Any, Any]]]:
        """Return the program for these arguments, and copies of its inputs: arguments, and tensors from outside.

        It can be run on the copies without any effect on the function.

        Example:
            >>> import minitorch as mt
            >>> program, arrays = mt.jit(lambda x: x * 2).program(mt.ones(2))
            >>> program.compiled(arrays)
            [array([2., 2.], dtype=float32)]
        """
        traced, tensors = self.looked_up(args, kwargs)
        return traced.program, [np.array(fetched(tensor)) for tensor in traced.inputs(tensors)]

    def break_even(self, *args: Any, **kwargs: Any) -> BreakEven:
        """Return after how many calls with these arguments compiling has paid, measured on copies of the inputs.

        See `BreakEven` for the costs that are counted.

        Example:
            >>> import minitorch as mt
            >>> found = mt.jit(lambda x: x * 2).break_even(mt.ones(2))
            >>> found.eager > 0 and found.spent > 0
            True
        """
        found: BreakEven = load("minitorch_profiler.breakeven").of_call(self, args, kwargs)
        return found

    def ablate(self, *args: Any, seconds: float = 1.0, **kwargs: Any) -> Ablation:
        """Measure time, kernels, bytes and peak memory for these arguments, without each pass and class of fusion.

        The program is compiled again for each, and run on copies of its inputs for so many `seconds`, all variants in
        turns. The function's compiled code is not touched; a new signature is traced, and forgotten.

        Example:
            >>> import minitorch as mt
            >>> f = mt.jit(lambda x: x.softmax(1))
            >>> rows = {row.without: row for row in f.ablate(mt.ones(64, 500), seconds=0).variants}
            >>> rows["nothing"].kernels, rows["fusion: shared rows"].kernels, rows["all fusion"].kernels
            (1, 4, 5)
        """
        call = self._signature(args, kwargs)
        traced = self._known(call)
        if traced is None:
            request = self._request(call)
            traced = self._made(request, SignatureReport.of_call(request, is_grad_enabled()))
        elif traced.report.is_for_many:
            traced = self._of_one_size(call)
        arrays = [fetched(tensor) for tensor in traced.inputs(call.tensors)]
        ablation: Ablation = load("minitorch_checking.ablation").ablate(traced.program, arrays, seconds)
        return ablation

    @property
    def compile_time(self) -> float:
        """Seconds that tracing, passes and code generation took so far, over all signatures."""
        return sum(report.trace_time + report.compile_time for report in self._reports)

    def checked(self) -> list[Report]:
        """Return, with ``check=True``, the findings of the last call of each signature, and of its backward pass.

        Example:
            >>> import minitorch as mt
            >>> f = mt.jit(lambda x: x.softmax(1), check=True)
            >>> y = f(mt.ones(2, 4))
            >>> print(f.checked()[0])
            <lambda>: as in eager mode
              output 0 f32[2,4]: equal
        """
        traces = [traced for variants in self._traced.values() for traced in variants]
        programs = [program for traced in traces for program in (traced.program, traced.report.backward) if program]
        reports = [getattr(program.execute, "report", None) for program in programs]
        return [report for report in reports if report is not None]

    def explain(self) -> Explanation:
        """Return every signature that was traced, the reason, the number of calls, and the result.

        Printed are: the difference from the nearest signature before, by argument name; the tensors that the graph
        captured, writes and has baked in; the effect of each pass; the kernels; the times of tracing and compiling, and
        after how many calls they have paid. For the last one, the graph is run on zeros, eagerly and compiled, when
        it is first printed.

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
            report.function = self
        return Explanation(self.__name__, self.backend, tuple(self._reports), self._traces)
