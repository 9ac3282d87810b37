"""Deferred execution: inside `lazy()` operations are recorded, and run when a value is needed.

Pending operations run as one graph: all tensors that are still referenced become its outputs. Graphs of the same
structure are compiled once, so a training loop pays for recording at every step and for compiling at the first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from ... import backends
from ...drawable import Drawable
from ...errors import TracingError
from ...graph import Graph
from ...interpreters import Staging, Trace, block, current_staging, interpreting
from ...ir import Node, user_source
from ...tensor import Tensor, fetched
from ..tracing.options import Options
from ..tracing.program import Callbacks, Program, are_apart, put, written
from .history import History

_PROGRAMS_KEPT = 128


AT_THE_END = "the end of the block"


class LazyStaging(Staging, Drawable):
    """Recording that runs its pending operations when a value is needed, and goes on; made by `lazy`.

    Example:
        >>> import minitorch as mt
        >>> x = mt.arange(4.0)
        >>> with mt.lazy() as recording:
        ...     y = (x * 2).sum()
        ...     print(recording.pending())
        ...     number = y.item()
        ...     recording.pending().count().total(), recording.explain().runs
        graph pending(captured0: f32[4]):
          %0 = mul(captured0, 2.0)      : f32[4]  # ...
          %1 = reduce_sum(%0, dims=[0]) : f32[]   # ...
          return %1
        (0, 1)
    """

    defers = True
    called = None  # type: ignore[assignment]
    remedy = "compute it before the lazy block is left by an exception"

    def __init__(self, backend: str) -> None:
        super().__init__("the lazy block")
        self.backend = backend
        self._history = History(backend)

    def explain(self) -> History:
        """Return the history: each program, the request that ran it, its runs, and whether it was compiled."""
        return self._history

    def pending(self) -> Graph:
        """Return the pending operations as a graph; nothing is run."""
        captured = list(self.captured.values())
        owners, _ = self._held()
        outputs = [self.node_of(tensor) for tensor in owners] + [node for _, node in written(captured)]
        graph = Graph([], outputs, name="pending", verify=False)
        used = {operand for node in graph.nodes for operand in node.inputs} | set(outputs)
        inputs = [item.input for item in captured if item.input in used]
        return Graph(inputs, outputs, graph.nodes, name="pending", verify=False)

    def concrete(self, tensor: Tensor, what: str, code: str = "MT102", fix: str | None = None) -> np.ndarray[Any, Any]:
        """Return the value of a tensor, after running the pending operations; in the body of a loop there is none."""
        if self.regions:
            return super().concrete(tensor, what, code, fix)
        if isinstance(tensor._value, Node):
            self.node_of(tensor)  # refuses values of other recordings
            self.flush(what)
        elif self._is_used(tensor._root):
            self.flush(what)
        array: np.ndarray[Any, Any] = fetched(tensor)
        return array

    def _is_used(self, root: Tensor) -> bool:
        """Return whether pending operations read or write memory that its owner may change meanwhile."""
        return any(item.tensor._root is root for item in self.captured.values())

    def _held(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return the referenced tensors without a value: those with memory of their own, and views."""
        held = [tensor for reference in self.made if (tensor := reference()) is not None]
        views = [tensor for tensor in held if tensor._view is not None and isinstance(tensor._value, Node)]
        owners = [tensor for tensor in held if tensor._view is None and isinstance(tensor._value, Node)]
        known = {id(tensor) for tensor in held}
        for view in views:  # a held view holds its base; the list grows during the loop
            assert view._view is not None
            base = view._view.base
            if isinstance(base._value, Node) and id(base) not in known:
                known.add(id(base))
                (owners if base._view is None else views).append(base)
        return owners, views

    def flush(self, cause: str = AT_THE_END) -> None:
        """Run the pending operations: every tensor of this recording that is still referenced gets its value.

        Args:
            cause: the request of a value.
        """
        owners, views = self._held()
        captured = list(self.captured.values())
        writes = written(captured)
        outputs = [self.node_of(tensor) for tensor in owners] + [node for _, node in writes]
        grads, callbacks = list(self.grads.values()), self.callbacks
        self._start_again()  # also if something fails: pending values are lost then, and the recording goes on
        if callbacks:
            inputs = [item.input for item in captured]
            called = Callbacks(inputs, callbacks, "lazy", lambda graph: _program(graph, self.backend, {})[0])
            called([fetched(item.tensor) for item in captured])
        if outputs:
            self._compute(captured, owners, writes, outputs, cause)
        for view in views:
            _show(view)
        for tensor, grad in grads:
            tensor._grad = grad

    def _compute(
        self, captured: list[Any], owners: list[Tensor], writes: list[Any], outputs: list[Node], cause: str
    ) -> None:
        graph = Graph([item.input for item in captured], outputs, name="lazy", verify=False)
        places = {id(item): place for place, item in enumerate(captured)}
        updates = {len(owners) + number: places[id(item)] for number, (item, _) in enumerate(writes)}
        program, is_new = _program(graph, self.backend, updates)
        self._history.add(program, is_new, cause, None if cause == AT_THE_END else user_source())
        inputs = program.values([item.tensor for item in captured])
        arrays = program.run(inputs, are_apart(inputs, updates.values()))
        del inputs
        for tensor, array in zip(owners, arrays, strict=False):
            tensor._value = array
        for (item, _), array in zip(writes, arrays[len(owners) :], strict=True):
            put(item.tensor, array)  # the write was counted when it was recorded

    def _start_again(self) -> None:
        ended, self.trace = self.trace, Trace(self.trace.name, defers=True)
        self.trace.thread, ended.thread = ended.thread, None
        self.nodes, self.captured, self.memory, self.renewed, self.made = [], {}, {}, {}, []
        self.callbacks = []
        self.taken_names = set()
        self.grads, self.guards, self.grad_owners = {}, [], {}


def _show(view: Tensor) -> None:
    """Make a deferred view a view of its base's memory, now that the base has memory."""
    chain = []
    at = view
    while isinstance(at._value, Node) and at._view is not None:
        chain.append(at)
        at = at._view.base
    for tensor in reversed(chain):
        assert tensor._view is not None
        tensor._value = tensor._view.primitive.evaluate(fetched(tensor._view.base), **tensor._view.params)


_programs: OrderedDict[Any, Program] = OrderedDict()


def _program(graph: Graph, backend: str, updates: dict[int, int]) -> tuple[Program, bool]:
    """Return the compiled form of a graph, and whether it is new; graphs with equal listings share one."""
    key = (backend, graph.key(), tuple(updates.items()))
    found, is_new = _programs.pop(key, None), False
    if found is None:
        graph.verify()
        found, is_new = Program(graph, Options(backend), updates), True
    _programs[key] = found
    while len(_programs) > _PROGRAMS_KEPT:
        _programs.popitem(last=False)
    return found, is_new


@block
def lazy(backend: str = backends.DEFAULT, device: str | None = None) -> Iterator[LazyStaging | None]:
    """Record operations inside the `with` block, and run them when a value is needed.

    A value is needed by ``item``, ``numpy``, ``print``, ``bool`` and the like, and at the end of the block, where
    everything that is still held is computed. Shapes and types are checked at once; errors that depend on data (an
    index out of range) are raised where the value is needed, and name the line that asked for it.

    Inside another recording (a jitted function) the block has no effect: everything there is deferred already.

    The block gives its recording, ``with mt.lazy() as recording``: ``recording.pending()`` is the graph of pending
    operations, ``recording.explain()`` lists the programs that ran, the requests for them, and which were compiled.

    Args:
        backend: the backend that runs the graphs.
        device: where, for a backend that has a choice.

    Raises:
        TracingError: ``MT110`` inside the definition of a Session's graph.

    Example:
        >>> import minitorch as mt
        >>> with mt.lazy():
        ...     x = mt.arange(4.0)
        ...     y = (x * 2 + 1).sum()     # nothing is computed yet
        ...     print(y.item())           # now it is
        16.0
    """
    backend = backends.placed(backend, device)
    staging = current_staging()
    if staging is not None:
        if staging.is_definition:
            raise TracingError(
                "MT110",
                "a lazy block inside the definition of a graph",
                why="a graph that is being defined has no values, so nothing could ever be computed",
                fix="use lazy outside of `with mt.Graph()`, or leave it out",
            )
        yield staging if isinstance(staging, LazyStaging) else None
        return
    recording = LazyStaging(backend)
    with interpreting(recording):
        try:
            yield recording
        except Exception:
            with suppress(Exception):  # operations before the error take effect, as in eager mode
                recording.flush()
            raise
        recording.flush()
