"""Tracing of a jitted function: recording it, and compiling the recorded graph.

The trace's results, the in-place writes and the gradients that were stored become the outputs of one graph. If a
gradient may flow through the call later, a second graph for it is traced at the same time, and the values that it needs
become further outputs of the first (`differentiable`).

    function ──record──► Recorded ──passes, backend──► Program ──with its guards──► Traced
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...graph import Graph
from ...interpreters import Captured, span
from ...ir import Shape
from ...nn import Module
from ...packages import load
from ...passes import Pass
from ...tensor import Tensor, fetched
from ...tree import Structure
from ..guards import surroundings
from ..guards.kinds import MOST_BYTES
from ..guards.leaks import leak, warn_of_leaks
from ..guards.naming import Names
from ..guards.observed import Observed
from ..guards.watch import Watch
from ..objects.outcome import Outcome
from ..objects.places import Places
from ..objects.roles import Argument
from .callbacks import Callbacks
from .constants import (
    Constants,
    refuse_changes,
    refuse_effects,
    refuse_leaks,
    refuse_outcome,
    refuse_results,
    refuse_training,
)
from .differentiable import Differentiable
from .effects import Effects
from .explain import SignatureReport
from .recorded import Recorded, record
from .recording import CallStaging, Program
from .traced import TakingTurns, Traced

if TYPE_CHECKING:
    from ...compiler.scheduling.schedules.choice import Own


def trace(
    function: Callable[..., Any],
    leaves: list[Any],
    structure: Structure,
    names: list[str],
    backend: str,
    passes: Sequence[Pass] | None,
    donated: Mapping[int, str],
    report: SignatureReport,
    check: bool | str | Path = False,
    own: Own | None = None,
    constants: Constants | None = None,
) -> Traced:
    """Run a function once with stand-ins for its tensors, and compile the recorded graph.

    Args:
        leaves, structure: the arguments ``(args, kwargs)``, taken apart.
        names: a name for each leaf.
        donated: the places of the tensors whose memory may be used for the results, with the names of the arguments.
        report: filled in.
        check: whether to run in shadow mode.
        own: the user's own schedules.
        constants: takes the place of all tensors from outside, and of the guards: the trace is of a frozen function.
    """
    start = time.perf_counter()
    name = surroundings.name(function)
    with span("trace", name):
        around = Observed(function, zip(names, leaves, strict=True), libraries=not check)  # which runs the function
        staging = CallStaging(name, around.names)
        staging.keeps_values = constants is not None
        reachable = Places(function, [leaf for leaf in leaves if isinstance(leaf, Module) or callable(leaf)])
        try:
            recorded = record(function, leaves, structure, names, staging, around, constants is not None, reachable)
            if constants is not None:
                refuse_leaks(name, leak(staging.made))
                refuse_outcome(name, recorded.assigned.names(), bool(recorded.outcome.changed))
            around.watches += [contents_of(item) for item in dict.fromkeys(staging.known)]
            leaked = warn_of_leaks(staging.made, name)
            changed = around.settle(name, warn=not leaked and constants is None)
            if constants is not None:
                refuse_changes(name, changed)
                _bake(recorded, staging, around, constants)
        except BaseException:
            reachable.changes()
            reachable.restore()
            raise
    report.trace_time = time.perf_counter() - start

    # The backward pass may read values that are overwritten or donated; then nothing is overwritten.
    updates = recorded.effects.updates if recorded.backward is None else {}
    returned = {leaf.position for leaf in recorded.outcome.leaves if isinstance(leaf, Argument)}
    spare = [] if recorded.backward else [place for place in donated if place not in returned]
    program = Program(recorded.graph, backend, passes, updates, spare, check, own)
    callbacks = None
    if recorded.callbacks:
        callbacks = Callbacks(
            recorded.graph.inputs, recorded.callbacks, name, lambda graph: Program(graph, backend, passes)
        )
    backward = None
    if recorded.backward is not None:
        untaped = frozenset(staging.untaped)
        backward = Differentiable(
            recorded.backward, program.graph, untaped, recorded.effects, backend, passes, check, own
        )
    captured = staging.captured.values()
    report.nodes_traced, report.nodes = program.graph.count().total(), program.pipeline.graph.count().total()
    report.program, report.backward = program, backward.program if backward else None
    report.constants = {
        name: leaf for name, leaf in zip(names, leaves, strict=True) if not isinstance(leaf, (Tensor, Module))
    }
    report.constants |= around.constants()
    places = dict.fromkeys(id(leaf) for leaf in leaves if isinstance(leaf, Tensor))
    arguments = {id(leaf): name for name, leaf in zip(names, leaves, strict=True)}
    report.layouts = {arguments[list(places)[place]]: seen for place, seen in recorded.layouts if seen is not None}
    written = set(recorded.effects.written_arguments())
    report.arguments_written = tuple(arguments[key] for place, key in enumerate(places) if place in written)
    report.captured = tuple(str(item.input.params["name"]) for item in captured)
    report.written = tuple(str(item.input.params["name"]) for item in captured if item.node is not item.input)
    report.written += tuple(recorded.assigned.names())
    kind = TakingTurns if program.takes_devices and updates else Traced
    traced = kind(staging, around, program, recorded, backward, donated, report, callbacks)
    if check:
        rehearsal = load("minitorch_checking.rehearsal")
        refused = rehearsal.changes(changed) if changed else ""
        if leaked:
            refused = "it keeps traced tensors outside of itself"
        if assigned := recorded.assigned.names():
            refused = f"it assigns a tensor to {assigned[0]}, which cannot be put back"
        names = [" of ".join(filter(None, outcome)) for outcome in traced.outcomes()]
        outside = [item.tensor for item in captured]
        watches = (*around.watches, *around.module_watches)
        traced.rehearsal = rehearsal.Rehearsal(
            function,
            leaves,
            structure,
            outside,
            recorded.effects,
            recorded.outcome,
            watches,
            names,
            refused,
        )
    return traced


def contents_of(item: Captured) -> Watch:
    """A watch on the values of a tensor from outside."""
    return Watch(str(item.input.params["name"]), _contents, item.tensor, "")


def _contents(tensor: Tensor, key: str, default: Any) -> Any:
    array = fetched(tensor)
    return array if array.nbytes <= MOST_BYTES else array.tobytes()


def of_graph(
    graph: Graph,
    results: Structure,
    leaves: list[Any],
    report: SignatureReport,
    backend: str,
    passes: Sequence[Pass],
    contiguous: Sequence[int],
) -> Traced:
    """A graph without effects as if it were the trace of a call.

    Args:
        graph: its inputs are the arguments.
        results, leaves: how the results are nested, with `Output` and `Argument` in place of tensors.
        report: filled in.
        backend, passes: as for `trace`.
        contiguous: positions of the arguments that have to be contiguous.
    """
    staging, around = CallStaging(graph.name, {}), Observed(None)
    program = Program(graph, backend, passes)
    report.program = program
    report.nodes_traced, report.nodes = graph.count().total(), program.pipeline.graph.count().total()
    layouts: list[tuple[int, Shape | None]] = [(place, None) for place in contiguous]
    effects = Effects(len(graph.outputs))
    recorded = Recorded(graph, Outcome(results, leaves), effects, None, [], [], layouts, [])
    return Traced(staging, around, program, recorded, None, {}, report, None)


def _bake(recorded: Recorded, staging: CallStaging, around: Observed, constants: Constants) -> None:
    """Put constants in the place of all tensors from outside, and no guards in that of guards."""
    captured, gradients = list(staging.captured.values()), any(owner is not None for owner in recorded.owners)
    names = {id(item.tensor): str(item.input.params["name"]) for item in captured}
    refuse_training(constants.name, staging.calls, around)
    refuse_results(constants.name, recorded.outcome.leaves)
    refuse_effects(constants.name, recorded.graph, recorded.effects, gradients, names)
    recorded.graph, recorded.callbacks = constants.bake(recorded.graph, captured, recorded.callbacks)
    recorded.owners, recorded.guards = [], []
    staging.captured.clear()
    constants.watch(around)


def names_of(
    function: Callable[..., Any], leaves: list[Any], structure: Structure, names: list[str], graph: Graph
) -> Names:
    """The variables of a function that hold the values of its graph, found by another trace.

    Args:
        leaves, structure, names: as for `trace`.
        graph: as it was traced before. If the new trace differs, nothing is known of the variables.
    """
    around = Observed(function, zip(names, leaves, strict=True))
    staging, reachable = CallStaging(surroundings.name(function), around.names), Places(function, leaves)
    found = Names()
    with found.collected(staging.trace):
        again = record(function, leaves, structure, names, staging, around, places=reachable).graph
    alike = again.key() == graph.key() and len(again.nodes) == len(graph.nodes)
    before, now = ((*each.inputs, *each.nodes) for each in (graph, again))
    return found.moved(dict(zip(now, before, strict=True)) if alike else {})
