"""Tracing of a jitted function: recording it, and compiling the recorded graph.

The trace's results, the in-place writes and the gradients that were stored become the outputs of one graph. If a
gradient may flow through the call later, a second graph for it is traced at the same time, and the values that it needs
become further outputs of the first (`differentiable`).

    function ──record──► Recorded ──passes, backend──► Program ──with its guards──► Traced
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ...graph import Graph
from ...interpreters import Captured, span
from ...ir import Shape, as_input_name
from ...nn import Module
from ...sizes import Guards
from ...tensor import Tensor, fetched
from ...tree import Structure
from ..guards.kinds import MOST_BYTES
from ..guards.observed import Observed
from ..guards.watch import Watch
from ..objects.outcome import Argument, Outcome
from ..objects.places import Places
from .call_staging import CallStaging
from .effects import Effects
from .explain import SignatureReport
from .options import Options, Request
from .program import Callbacks, Program
from .recording import Recorded, record
from .traced import TakingTurns, Traced


def trace(request: Request, options: Options, report: SignatureReport) -> Traced:
    """Run a function once with stand-ins for its tensors, compile the recorded graph, and fill in the report."""
    function, leaves, structure, names, donated, symbols = request
    policy, name, start = options.policy, request.name, time.perf_counter()
    with span("trace", name):
        around = Observed(function, zip(names, leaves, strict=True), policy.sees_libraries)
        staging = _staging(name, around, symbols)
        staging.keeps_values = policy.is_frozen
        reachable = Places(function, [leaf for leaf in leaves if isinstance(leaf, Module) or callable(leaf)])
        try:
            recorded = record(function, leaves, structure, names, staging, around, policy.is_frozen, reachable)
            report.guards = staging.settled_guards(recorded, around)
            around.watches += [contents_of(item) for item in dict.fromkeys(staging.known)]
            policy.accept(request, recorded, staging, around)
        except BaseException:
            reachable.changes()
            reachable.restore()
            raise
    report.trace_time = time.perf_counter() - start

    # The backward pass may read values that are overwritten or donated; then nothing is overwritten.
    updates = recorded.effects.updates if recorded.backward is None else {}
    returned = {leaf.position for leaf in recorded.outcome.leaves if isinstance(leaf, Argument)}
    spare = [] if recorded.backward else [place for place in donated if place not in returned]
    program = Program(recorded.graph, options, updates, spare)
    callbacks = backward = None
    if recorded.callbacks:
        callbacks = Callbacks(recorded.graph.inputs, recorded.callbacks, name, options.unwatched)
    if recorded.backward is not None:
        from .differentiable import Differentiable

        untaped = frozenset(staging.untaped)
        backward = Differentiable(recorded.backward, program.graph, untaped, recorded.effects, options)
    captured = staging.captured.values()
    report.nodes_traced, report.nodes = program.graph.count().total(), program.pipeline.graph.count().total()
    report.program, report.backward = program, backward.program if backward else None
    if symbols:
        specs = {str(node.params["name"]): node.spec for node in recorded.graph.inputs}
        report.arguments |= {each: specs[as_input_name(each)] for each in symbols}
    named = list(zip(names, leaves, strict=True))
    plain = {name: leaf for name, leaf in named if not isinstance(leaf, (Tensor, Module))}
    report.constants = plain | around.constants()
    given = list({id(leaf): name for name, leaf in named if isinstance(leaf, Tensor)}.values())
    report.layouts = {given[place]: seen for place, seen in recorded.layouts if seen is not None}
    report.arguments_written = tuple(given[place] for place in recorded.effects.arguments)
    report.captured = tuple(str(item.input.params["name"]) for item in captured)
    report.written = tuple(str(item.input.params["name"]) for item in captured if item.node is not item.input)
    report.written += tuple(recorded.assigned.names())
    kind = TakingTurns if program.takes_devices and updates else Traced
    traced = kind(staging, around, program, recorded, backward, donated, report, callbacks)
    policy.finish(request, recorded, traced)
    return traced


def _staging(name: str, around: Observed, symbols: Mapping[str, Mapping[int, str]]) -> CallStaging:
    if not symbols:
        return CallStaging(name, around.names)
    from .sized import SizedStaging

    return SizedStaging(name, around.names, symbols, Guards())


def contents_of(item: Captured) -> Watch:
    """Return a watch on the values of a tensor from outside."""
    return Watch(str(item.input.params["name"]), _contents, item.tensor, "")


def _contents(tensor: Tensor, key: str, default: Any) -> Any:
    array = fetched(tensor)
    return array if array.nbytes <= MOST_BYTES else array.tobytes()


def of_graph(
    graph: Graph,
    results: Structure,
    leaves: list[Any],
    report: SignatureReport,
    options: Options,
    contiguous: Sequence[int],
) -> Traced:
    """Wrap a graph without effects as the trace of a call.

    Args:
        graph: its inputs are the arguments.
        results, leaves: how the results are nested, with `Output` and `Argument` in place of tensors.
        report: filled in.
        contiguous: positions of the arguments that have to be contiguous.
    """
    staging, around = CallStaging(graph.name, {}), Observed(None)
    program = Program(graph, options)
    report.program = program
    report.nodes_traced, report.nodes = graph.count().total(), program.pipeline.graph.count().total()
    layouts: list[tuple[int, Shape | None]] = [(place, None) for place in contiguous]
    effects = Effects(len(graph.outputs))
    recorded = Recorded(graph, Outcome(results, leaves), effects, None, [], [], layouts, [])
    return Traced(staging, around, program, recorded, None, {}, report, None)
