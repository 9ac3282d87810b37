"""Names of recorded values: the variables of the user's function that hold them, found by a second trace.

An ordinary recording knows the line of each operation and no variable. Here Python's trace function reads the local
variables of the user's frames after every line. That is slow, so it is done on request only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from minitorch.graph import Graph
from minitorch.interpreters import Trace
from minitorch.ir import Node, is_ours
from minitorch.modes.guards.observed import Observed
from minitorch.modes.objects.places import Places
from minitorch.modes.tracing.call_staging import CallStaging
from minitorch.modes.tracing.options import Request
from minitorch.modes.tracing.recording import record
from minitorch.tensor import Tensor


class Names:
    """The variables that held each value, and the functions that the lines are in.

    Attributes:
        of: for each node the variables, with the code of the function that has them.
        scopes: for each line of a file the code of the function that it is in, and its global names.
    """

    def __init__(self) -> None:
        self.of: dict[Node, dict[tuple[CodeType, str], None]] = {}
        self.scopes: dict[tuple[str, int], tuple[CodeType, dict[str, Any]]] = {}

    @contextmanager
    def collected(self, trace: Trace) -> Iterator[None]:
        """Note the variables of everything that runs inside the block.

        Args:
            trace: the recording whose values are wanted.
        """

        def look(frame: FrameType, event: str, argument: Any) -> Any:
            code = frame.f_code
            if is_ours(code.co_filename):
                return None
            if event != "call":
                for name, value in frame.f_locals.items():
                    if isinstance(value, Tensor) and isinstance(value._value, Node) and value._value.trace is trace:
                        self.of.setdefault(value._value, {})[code, name] = None
            self.scopes.setdefault((code.co_filename, frame.f_lineno), (code, frame.f_globals))
            return look

        before = sys.gettrace()
        sys.settrace(look)
        try:
            yield
        finally:
            sys.settrace(before)

    def moved(self, nodes: Mapping[Node, Node]) -> Names:
        """The names for another recording of the same program, node by node."""
        result = Names()
        result.scopes = self.scopes
        result.of = {nodes[node]: names for node, names in self.of.items() if node in nodes}
        return result


def names_of(request: Request, graph: Graph) -> Names:
    """Return the variables that hold the values of a graph, found by another trace of its function.

    Args:
        graph: as it was traced before. If the new trace differs, nothing is known of the variables.
    """
    function, leaves, structure, names, *_ = request
    around = Observed(function, zip(names, leaves, strict=True))
    staging, reachable = CallStaging(request.name, around.names), Places(function, leaves)
    found = Names()
    with found.collected(staging.trace):
        again = record(function, leaves, structure, names, staging, around, places=reachable).graph
    alike = again.key() == graph.key() and len(again.nodes) == len(graph.nodes)
    before, now = ((*each.inputs, *each.nodes) for each in (graph, again))
    return found.moved(dict(zip(now, before, strict=True)) if alike else {})
