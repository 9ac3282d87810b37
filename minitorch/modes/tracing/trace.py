"""One trace of a jitted function: recording it, and running the compiled graph.

The trace's results, the in-place writes and the gradients that were stored become the outputs of one graph. If a
gradient may flow through the call later, a second graph for it is traced at the same time, and the values that it needs
become further outputs of the first (`differentiable`).
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...autograd.tape import LeafHooks, hooks_of
from ...backends import Executable
from ...dtypes import BY_NUMPY
from ...graph import Graph
from ...interpreters import ArgumentLayout, Callback, current_recorder, interpreting, layout_text, visible_strides
from ...ir import Node, Shape, Spec
from ...nn import Module
from ...passes import Pass
from ...tensor import Tensor, forget_writes
from ...tree import LEAF, Structure, flatten, unflatten
from ..checking.rehearsal import Argument, Output, Rehearsal, changes
from ..guards import surroundings
from ..guards.donation import give_away
from ..guards.leaks import warn_of_leaks
from ..guards.naming import Names
from ..guards.watch import Watch
from .callbacks import Callbacks
from .constants import Constants, refuse_effects, refuse_training
from .differentiable import Backward, Differentiable, record_backward
from .effects import Effects, Where
from .explain import SignatureReport
from .recording import CallStaging, Program, are_apart, grad_of, replay

if TYPE_CHECKING:
    from ...compiler.scheduling.schedules.choice import Own
    from ..checking.shadow import Report
    from .scopes import Nesting

Kind = tuple[Shape, Any, Shape | None]
"""Shape, type and visible strides."""


class Traced:
    """A traced and compiled call: its inputs, results and effects, and the guards of the trace."""

    def __init__(
        self,
        staging: CallStaging,
        around: surroundings.Surroundings,
        program: Program,
        recorded: _Recorded,
        differentiable: Differentiable | None,
        donated: Mapping[int, str],
        report: SignatureReport,
        callbacks: Callbacks | None,
    ) -> None:
        self.program = program
        self._callbacks = callbacks
        self._recorded = staging.nodes, staging.calls, staging.rules
        self._donated = donated
        self.report = report
        self._captured = list(staging.captured.values())
        self._gradients = [(place, owner) for place, owner in enumerate(recorded.owners) if owner is not None]
        self._items = [item for item, owner in zip(self._captured, recorded.owners, strict=True) if owner is None]
        self._outside = [item.tensor for item in self._items]
        self._kinds = [_kind(tensor._value) for tensor in self._outside]
        self._needs = [tensor._requires_grad for tensor in self._outside]
        self._layouts = recorded.layouts
        self._guards = recorded.guards
        self._hooks = [(item.tensor, hooks_of(item.tensor)) for item in self._captured if item.tensor._requires_grad]
        self._hook_changes = LeafHooks.changes
        self._watches = around.watches
        self._modules = around.modules
        self._module_watches = around.module_watches
        self._module_changes = -1
        self._effects = recorded.effects
        self._results = recorded.results
        self._leaves = recorded.leaves
        self._differentiable = differentiable
        self._acts = bool(self._effects) or differentiable is not None
        # The common case: one result, computed by the graph.
        self._returns_one = self._results is LEAF and type(self._leaves[0]) is Output
        self._seen: list[Any] = []  # the arrays of the captured tensors at the last check
        self._may_overwrite = False  # whether targets may be overwritten while the graph runs
        self._look_at([tensor._value for tensor in self._outside])
        self.rehearsal: Rehearsal | None = None  # in shadow mode

    # Whether the graph still describes the function -----------------------------------------------------------

    def is_current(self, tensors: Sequence[Tensor]) -> bool:
        """Whether all guards besides the signature hold."""
        for watch in self._watches:
            if not watch.holds():
                return False
        if self._module_changes != Module.changes and not self._modules_are_current():
            return False
        if self._hook_changes != LeafHooks.changes and not self._hooks_are_current():
            return False
        if [tensor._requires_grad for tensor in self._outside] != self._needs:
            return False
        arrays = [tensor._value for tensor in self._outside]
        if not all(map(is_, arrays, self._seen)) and not self._look_at(arrays):
            return False
        for place, layout in self._layouts:
            if visible_strides(tensors[place]._value) != layout:
                return False
        for where, kind in self._guards:
            grad = (tensors[where] if isinstance(where, int) else where)._grad
            if (None if grad is None else _kind(grad._value)) != kind:
                return False
        return True

    def _look_at(self, arrays: list[Any]) -> bool:
        """Whether the captured tensors are of the same kinds; checked when they have new arrays."""
        if list(map(_kind, arrays)) != self._kinds:
            return False
        self._effects.forget_memories()
        self._may_overwrite = bool(self.program.updates) and self._effects.are_apart()
        self._seen = arrays
        return True

    def _modules_are_current(self) -> bool:
        """Whether all modules are unchanged. Checked only after an attribute of some module was assigned."""
        changes = Module.changes
        for module, training in self._modules:
            if module.training is not training:
                return False
        if not all(watch.holds() for watch in self._module_watches):
            return False
        self._module_changes = changes
        return True

    def _hooks_are_current(self) -> bool:
        """Whether the hooks of captured leaves are unchanged. Checked only after some leaf's changed."""
        changes = LeafHooks.changes
        if any(hooks_of(tensor) != hooks for tensor, hooks in self._hooks):
            return False
        self._hook_changes = changes
        return True

    def constants_changed(self) -> list[Watch]:
        """The values from outside that are constants of the graph and have changed."""
        return [watch for watch in (*self._watches, *self._module_watches) if not watch.holds()]

    def changed(self, tensors: Sequence[Tensor]) -> list[str]:
        """The guards that fail, as text, the name first."""
        found = list(map(str, self.constants_changed()))
        for module, training in self._modules:
            if module.training is not training:
                found.append(f"training of {type(module).__name__} was {training} and is {module.training}")
                break
        inputs = self.program.graph.inputs
        for place, layout in self._layouts:
            if (now := visible_strides(tensors[place]._value)) != layout:
                name = inputs[place].params["name"]
                found.append(f"`{name}` was {layout_text(layout)} and is {layout_text(now)}")
        for item, kind, needs in zip(self._items, self._kinds, self._needs, strict=True):
            name, tensor = item.input.params["name"], item.tensor
            if _kind(tensor._value) != kind:
                found.append(f"{name} was {_kind_text(kind)} and is {_kind_text(_kind(tensor._value))}")
            if tensor._requires_grad is not needs:
                found.append(f"{name} {'requires' if needs is False else 'does not require'} a gradient now")
        if not self._hooks_are_current():
            found.append("a tensor from outside has other hooks")
        for where, before in self._guards:
            tensor = _at(where, tensors)
            after = None if tensor._grad is None else _kind(tensor._grad._value)
            if after != before:
                found.append(f"grad of a {tensor.spec} was {_kind_text(before)} and is {_kind_text(after)}")
        return found

    def checked(self) -> list[Report]:
        """The findings of shadow mode in the last call, and in its last backward pass."""
        from ..checking.shadow import Shadowed

        programs = [self.program, *([self._differentiable.program] if self._differentiable else ())]
        executed = [program.execute for program in programs if isinstance(program.execute, Shadowed)]
        return [each.report for each in executed if each.report is not None]

    @property
    def results(self) -> tuple[Structure, list[Any]]:
        """How the results are nested, with `Output` and `Argument` in place of tensors."""
        return self._results, self._leaves

    @property
    def contiguous(self) -> list[int] | None:
        """The positions of the arguments that have to be contiguous; None if one has to be something else."""
        return None if any(seen is not None for _, seen in self._layouts) else [place for place, _ in self._layouts]

    @property
    def captured(self) -> int:
        """The number of graph inputs that are tensors from outside; they follow the arguments."""
        return len(self._captured)

    def outcomes(self) -> list[tuple[str, str]]:
        """The role of each output: ``"result"``, ``"update"``, ``"gradient"`` or ``"kept"``; and its tensor.

        An update is the new value of a tensor that is written in place; what is kept, a gradient needs later.
        """
        inputs, effects = self.program.graph.inputs, self._effects
        names = {id(item.tensor): str(item.input.params["name"]) for item in self._captured}
        found = [("result", str(place) if effects.results > 1 else "") for place in range(effects.results)]
        targets = effects.writes() | {place: (where, True) for place, where in effects.gradients().items()}
        for place in range(effects.results, effects.results + len(effects.nodes)):
            where, is_grad = targets[place]
            name = str(inputs[where].params["name"]) if isinstance(where, int) else names.get(id(where), "a tensor")
            found.append(("gradient", f"{name}.grad") if is_grad else ("update", name))
        return found + [("kept", "")] * (len(self.program.graph.outputs) - len(found))

    @cached_property
    def scopes(self) -> dict[Node, Nesting]:
        """The calls of modules that each node of the graph is a part of, as far as it is part of one."""
        from .scopes import scopes

        return scopes(*self._recorded)

    # Running ----------------------------------------------------------------------------------------------------

    def __call__(self, tensors: Sequence[Tensor], execute: Executable | None = None) -> Any:
        """Run the graph with these arguments.

        Args:
            execute: runs instead of the compiled program.
        """
        if self.rehearsal is not None and execute is None:
            execute = self._beside(self.rehearsal, tensors)
        effects = self._effects
        if self._acts:
            effects.check_aliases(tensors, self.program.graph.name)
        inputs = self.inputs(tensors)
        arrays = [tensor._value for tensor in inputs]
        if self._callbacks is not None:
            self._callbacks(arrays)
        values = (execute or self.program.execute)(arrays, self._overwrites(tensors, arrays))
        outputs = [Tensor(value) for value in values[: effects.results]]
        if self._acts:
            effects.ask_for_gradients(tensors)
            if self._differentiable is not None:
                self._differentiable.connect(inputs, arrays, outputs, values)
            effects.carry_out(tensors, values)
        if self._donated:
            tensors = self._take(tensors)
        return outputs[0] if self._returns_one else self._returned(outputs, tensors)

    def replayed(self, tensors: Sequence[Tensor]) -> Any:
        """The same in the current mode, operation by operation, of a trace without effects and gradients."""
        return self._returned(replay(self.program.graph, self.inputs(tensors)), tensors)

    def _returned(self, outputs: Sequence[Tensor], tensors: Sequence[Tensor]) -> Any:
        """The results of the function."""
        leaves = list(self._leaves)
        for index, leaf in enumerate(leaves):
            if type(leaf) is Output:
                leaves[index] = outputs[leaf.position]
            elif type(leaf) is Argument:
                leaves[index] = tensors[leaf.position]
        return unflatten(self._results, leaves)

    def _beside(self, rehearsal: Rehearsal, tensors: Sequence[Tensor]) -> Executable:
        """An executable that compares the compiled program with the function itself, which runs now."""
        shadowed, rehearsed = self.program.execute, rehearsal(tensors)
        return lambda arrays, overwrite: shadowed(arrays, overwrite, rehearsed, rehearsal.refused)

    def idle(self, tensors: Sequence[Tensor]) -> Callable[[], Any] | None:
        """A function that does everything of a call except the graph; None if a call has effects."""
        if self._acts or self._donated or self._callbacks is not None:
            return None
        values = self.program.compiled([tensor._value for tensor in self.inputs(tensors)])
        return lambda: self(tensors, lambda arrays, overwrites: values)

    def inputs(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The inputs of the graph: the arguments, and the present values of captured tensors."""
        return [*tensors, *(self._captured_now(tensors) if self._gradients else self._outside)]

    def _take(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The arguments, with new tensors in place of donated ones, which become unusable."""
        result = list(tensors)
        for place, argument in self._donated.items():
            result[place] = Tensor(tensors[place]._value)
            give_away(tensors[place], argument, self.program.graph.name)
        return result

    def _captured_now(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The captured tensors; of captured gradients, the present ones."""
        found = [item.tensor for item in self._captured]
        for place, owner in self._gradients:
            found[place] = grad_of(_at(owner, tensors))
        return found

    def _overwrites(self, tensors: Sequence[Tensor], arrays: Sequence[Any]) -> bool:
        """Whether targets may be overwritten while the graph runs: no other input shares their memory."""
        if self._donated:
            places = {*self._donated, *self.program.updates.values()}
            return all(tensors[place]._view is None for place in self._donated) and are_apart(arrays, places)
        if not self._may_overwrite:
            return False
        return self._effects.is_apart_from([arrays[len(tensors) + place] for place, _ in self._gradients])


def _at(where: Where | None, tensors: Sequence[Tensor]) -> Tensor:
    assert where is not None
    return tensors[where] if isinstance(where, int) else where


def _kind(array: Any) -> Kind:
    """The properties of a captured tensor that a trace depends on."""
    return array.shape, array.dtype, None if array.flags.c_contiguous else visible_strides(array)


def _kind_text(kind: Kind | None) -> str:
    if kind is None:
        return "None"
    shape, dtype, layout = kind
    return f"{Spec(shape, BY_NUMPY[dtype])}" + ("" if layout is None else f" {layout_text(layout)}")


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
    recorder = current_recorder()
    with recorder.span("trace", name) if recorder else nullcontext():
        around = surroundings.Surroundings(function, list(zip(names, leaves, strict=True)))
        staging = CallStaging(name, around.names)
        recorded = _record(function, leaves, structure, names, staging)
        leaked = warn_of_leaks(staging.made, name)
        changed = around.settle(name, warn=not leaked)
        if constants is not None:
            _bake(recorded, staging, around, constants)
    report.trace_time = time.perf_counter() - start

    # The backward pass may read values that are overwritten or donated; then nothing is overwritten.
    updates = recorded.effects.updates if recorded.backward is None else {}
    returned = {leaf.position for leaf in recorded.leaves if isinstance(leaf, Argument)}
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
    report.compile_time = program.compile_time + (backward.program.compile_time if backward else 0.0)
    report.nodes_traced, report.nodes = program.graph.count().total(), program.pipeline.graph.count().total()
    report.program = program
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
    traced = Traced(staging, around, program, recorded, backward, donated, report, callbacks)
    if check:
        refused = "it keeps traced tensors outside of itself" if leaked else changes(changed) if changed else ""
        names = [" of ".join(filter(None, outcome)) for outcome in traced.outcomes()]
        outside = [item.tensor for item in captured]
        watches = (*around.watches, *around.module_watches)
        traced.rehearsal = Rehearsal(
            function,
            leaves,
            structure,
            outside,
            recorded.effects,
            recorded.results,
            recorded.leaves,
            watches,
            names,
            refused,
        )
    return traced


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
    staging, around = CallStaging(graph.name, {}), surroundings.Surroundings(None, [])
    program = Program(graph, backend, passes)
    report.compile_time, report.program = program.compile_time, program
    report.nodes_traced, report.nodes = graph.count().total(), program.pipeline.graph.count().total()
    layouts: list[tuple[int, Shape | None]] = [(place, None) for place in contiguous]
    effects = Effects(len(graph.outputs))
    recorded = _Recorded(graph, results, leaves, effects, None, [], [], layouts, [])
    return Traced(staging, around, program, recorded, None, {}, report, None)


def _bake(recorded: _Recorded, staging: CallStaging, around: surroundings.Surroundings, constants: Constants) -> None:
    """Put constants in the place of all tensors from outside, and no guards in that of guards."""
    captured, gradients = list(staging.captured.values()), any(owner is not None for owner in recorded.owners)
    names = {id(item.tensor): str(item.input.params["name"]) for item in captured}
    refuse_training(constants.name, staging.calls, around)
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
    around = surroundings.Surroundings(function, list(zip(names, leaves, strict=True)))
    staging = CallStaging(surroundings.name(function), around.names)
    found = Names()
    with found.collected(staging.trace):
        again = _record(function, leaves, structure, names, staging).graph
    alike = again.key() == graph.key() and len(again.nodes) == len(graph.nodes)
    before, now = ((*each.inputs, *each.nodes) for each in (graph, again))
    return found.moved(dict(zip(now, before, strict=True)) if alike else {})


@dataclass
class _Recorded:
    """The result of one recording: the graph, and the roles of its inputs and outputs."""

    graph: Graph
    results: Structure
    leaves: list[Any]  # `Output` and `Argument` in place of tensors, everything else unchanged
    effects: Effects
    backward: Backward | None
    owners: list[Where | None]  # for each captured tensor: the owner, if it is a gradient
    guards: list[tuple[Where, Kind | None]]  # the gradients that were read, with their values
    layouts: list[tuple[int, Shape | None]]  # the arguments whose strides decided something, with their visible strides
    callbacks: list[Callback]


def _record(
    function: Callable[..., Any], leaves: list[Any], structure: Structure, names: list[str], staging: CallStaging
) -> _Recorded:
    """Run the function under a recording. No traced tensor outlives this call, unless it leaked."""
    tracers: dict[int, Tensor] = {}  # by id of the argument: a tensor that is given twice is one input
    stand_ins = list(leaves)
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            if id(leaf) not in tracers:
                tracers[id(leaf)] = _stand_in(leaf, names[index], staging)
            stand_ins[index] = tracers[id(leaf)]
    arguments = list(tracers.values())
    inputs: list[Node] = [tracer._value for tracer in arguments]
    positions = {id(tracer): position for position, tracer in enumerate(arguments)}
    try:
        with interpreting(staging):
            args, kwargs = unflatten(structure, stand_ins)
            found, results = flatten(function(*args, **kwargs))
            outputs: dict[int, Tensor] = {}
            for index, leaf in enumerate(found):
                if id(leaf) in positions:
                    found[index] = Argument(positions[id(leaf)])
                elif isinstance(leaf, Tensor) and isinstance(leaf._value, Node):
                    outputs.setdefault(id(leaf), leaf)
                    found[index] = Output(list(outputs).index(id(leaf)))
            returned = list(outputs.values())
            nodes = [staging.node_of(output) for output in returned]
            effects = Effects(len(outputs))
            effects.collect(staging, arguments, inputs)
            forward, callbacks = list(staging.nodes), list(staging.callbacks)
            backward = record_backward(staging, arguments, returned)
    finally:
        for item in staging.captured.values():
            forget_writes(item.tensor, item.version)
    owners = [staging.grad_owners.get(id(item.tensor)) for item in staging.captured.values()]
    recorded_owners = [owner if owner is None else positions.get(id(owner), owner) for owner in owners]
    guards = [
        (positions.get(id(tensor), tensor), None if grad is None else _kind(grad._value))
        for tensor, grad in staging.guards
    ]
    lying = [(position, tracer._layout) for position, tracer in enumerate(arguments)]
    layouts = [(position, layout.visible) for position, layout in lying if layout.matters]
    staging.grads, staging.grad_owners, staging.guards = {}, {}, []
    everything = (*inputs, *(item.input for item in staging.captured.values()))
    residuals = backward.computed if backward else []
    graph = Graph(everything, (*nodes, *effects.nodes, *residuals), forward, name=staging.trace.name)
    return _Recorded(graph, results, found, effects, backward, recorded_owners, guards, layouts, callbacks)


def _stand_in(argument: Tensor, name: str, staging: CallStaging) -> Tensor:
    """The traced tensor that the function sees in place of an argument."""
    tracer = Tensor(staging.input(argument.spec, name))
    tracer._layout = ArgumentLayout(argument._value)
    tracer._requires_grad = argument._requires_grad
    staging.made.append(weakref.ref(tracer))
    if argument._entry is None:  # the gradient of a recorded result is passed on to its tape
        staging.arguments[id(tracer)] = argument
    return tracer
