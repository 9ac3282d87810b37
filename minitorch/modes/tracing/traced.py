"""Trace of a jitted function: its guards, and the runs of its compiled graph."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

from ...autograd.tape import LeafHooks, hooks_of
from ...backends import Executable
from ...interpreters import layout_text, visible_strides
from ...nn import Module
from ...tensor import Remote, Tensor, fetched, up_to_date, with_value
from ...tree import LEAF, Structure
from ..guards.donation import give_away
from ..guards.observed import Observed
from ..guards.signature import Given
from ..guards.watch import Watch
from ..objects.outcome import Argument, Held, New, Output
from .call_staging import CallStaging
from .effects import tensor_at
from .explain import SignatureReport
from .program import Callbacks, Program, are_apart, replay
from .recording import Recorded, kind_of, kind_text

if TYPE_CHECKING:
    from .differentiable import Differentiable

_needs_of, _value_of = attrgetter("_requires_grad"), attrgetter("_value")  # faster than a comprehension


class Traced:
    """Traced and compiled call: its inputs, results and effects, and the guards of the trace."""

    def __init__(
        self,
        staging: CallStaging,
        around: Observed,
        program: Program,
        recorded: Recorded,
        differentiable: Differentiable | None,
        donated: Mapping[int, str],
        report: SignatureReport,
        callbacks: Callbacks | None,
    ) -> None:
        self.program = program
        self._callbacks = callbacks
        self.recorded = staging.nodes, staging.calls, staging.rules  # for pictures: the calls of modules
        self._donated = donated
        self.report = report
        self._captured = list(staging.captured.values())
        self._gradients = [(place, owner) for place, owner in enumerate(recorded.owners) if owner is not None]
        self._items = [item for item, owner in zip(self._captured, recorded.owners, strict=True) if owner is None]
        self._outside = [item.tensor for item in self._items]
        self._views = [tensor for tensor in self._outside if tensor._view is not None]
        self._kinds = [kind_of(tensor._value) for tensor in self._outside]
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
        self._outcome = recorded.outcome
        self._made = recorded.made
        self._assigned = recorded.assigned
        self._assigns = bool(recorded.assigned.slots)
        self._differentiable = differentiable
        self._acts = bool(self._effects or self._made) or differentiable is not None
        # The common case: one result, computed by the graph.
        leaves = self._outcome.leaves
        is_one = self._outcome.result is LEAF and len(leaves) == 1 and type(leaves[0]) is Output
        self._returns_one = is_one and not (self._assigns or self._outcome.changed)
        is_plain = self.has_results_alone and not (self._gradients or program.takes_devices)
        self._is_function = self._returns_one and is_plain
        self._seen: list[Any] = []  # the arrays of the captured tensors at the last check
        self._seen_there: list[ref[Any]] = []  # the same on a device, where a step takes the memory of old values
        self._may_overwrite = False  # whether targets may be overwritten while the graph runs
        program.keep(self._outside)
        self._look_at(program.values(self._outside))
        self.before: Callable[[Sequence[Tensor]], Executable] | None = None  # called before a call, gives the runner

    # Whether the graph still describes the function -----------------------------------------------------------

    def is_current(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether all guards besides the signature hold."""
        if self._assigns and not self._assigned.is_settled() and not self._follow():
            return False
        if self._watches and not self._watches.hold() and not self._follow():
            return False
        if self._module_changes != Module.changes + LeafHooks.changes and not self._modules_are_current():
            return False
        if self._hook_changes != LeafHooks.changes and not self._hooks_are_current():
            return False
        if self._outside:
            for view in self._views:
                up_to_date(view)
            if list(map(_needs_of, self._outside)) != self._needs:
                return False
            if not self._are_seen(list(map(_value_of, self._outside))):
                self.program.keep(self._outside)
                if not self._look_at(self.program.values(self._outside)):
                    return False
        for place, layout in self._layouts:
            if visible_strides(tensors[place]._value) != layout:
                return False
        for where, kind in self._guards:
            grad = tensor_at(where, tensors)._grad
            if grad is not None and isinstance(grad._value, Remote) and not self.program.takes_devices:
                fetched(grad)
            if (None if grad is None else kind_of(grad._value)) != kind:
                return False
        return True

    def _are_seen(self, arrays: list[Any]) -> bool:
        """Return whether these are the arrays of the last look, or those that the last call put in their place."""
        if self._seen_there:
            return all(map(is_, arrays, [reference() for reference in self._seen_there]))
        return len(self._seen) == len(arrays) and all(map(is_, arrays, self._seen))

    def _look_at(self, arrays: list[Any]) -> bool:
        """Return whether the captured tensors are of the same kinds; checked when they have new arrays."""
        if list(map(kind_of, arrays)) != self._kinds:
            return False
        self._effects.forget_memories()
        self._may_overwrite = bool(self.program.updates) and self._effects.are_apart()
        self._seen, self._seen_there = arrays, []
        if self.program.takes_devices and self.program.updates:
            self._see_there()
        return True

    def _see_there(self) -> None:
        """Remember the values on the device, which only their tensors hold: a step takes the memory of the old ones.

        The values that a step has put there are of the same kinds, and share no memory.
        """
        arrays = [tensor._value for tensor in self._outside]
        self._seen = []
        self._seen_there = list(map(ref, arrays)) if all(isinstance(array, Remote) for array in arrays) else []

    def _modules_are_current(self) -> bool:
        """Return whether all modules are unchanged; checked only after a new hook, or an assignment to a module."""
        changes = Module.changes + LeafHooks.changes
        for module, training in self._modules:
            if module.training is not training:
                return False
        if not self._module_watches.hold() and not self._follow():
            return False
        self._module_changes = changes
        return True

    def _follow(self) -> bool:
        """Return whether only the tensors at places have changed outside; take these from now on."""
        return self._move(self._assigned.followed(self.watches))

    def _move(self, moved: Mapping[int, Tensor] | None) -> bool:
        """Take other tensors from outside, given by the `id` of those in their place."""
        if moved is None:
            return False

        def now(where: Any) -> Any:
            return moved.get(id(where), where)

        for item in self._captured:
            item.tensor = now(item.tensor)
        self._outside = list(map(now, self._outside))
        self._views = list(map(now, self._views))
        self._hooks = [(now(tensor), hooks) for tensor, hooks in self._hooks]
        self._guards = [(now(where), kind) for where, kind in self._guards]
        self._gradients = [(place, now(owner)) for place, owner in self._gradients]
        self._effects.move(moved)
        return True

    def _hooks_are_current(self) -> bool:
        """Return whether the hooks of captured leaves are unchanged; checked only after some leaf's changed."""
        changes = LeafHooks.changes
        if any(hooks_of(tensor) != hooks for tensor, hooks in self._hooks):
            return False
        self._hook_changes = changes
        return True

    @property
    def watches(self) -> tuple[Watch, ...]:
        """Watches on the values from outside that are constants of the graph."""
        return *self._watches, *self._module_watches

    def constants_changed(self) -> list[Watch]:
        """Return the watches on constants that have changed."""
        return [watch for watch in self.watches if not watch.holds() and not self._assigned.is_stirred(watch)]

    def changed(self, tensors: Sequence[Tensor]) -> list[str]:
        """Return the guards that fail, as text, the name first."""
        found = list(map(str, self.constants_changed()))
        found += filter(None, [self._assigned.change()])
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
            if kind_of(tensor._value) != kind:
                found.append(f"{name} was {kind_text(kind)} and is {kind_text(kind_of(tensor._value))}")
            if tensor._requires_grad is not needs:
                found.append(f"{name} {'requires' if needs is False else 'does not require'} a gradient now")
        if not self._hooks_are_current():
            found.append("a tensor from outside has other hooks")
        for where, before in self._guards:
            tensor = tensor_at(where, tensors)
            after = None if tensor._grad is None else kind_of(tensor._grad._value)
            if after != before:
                found.append(f"grad of a {tensor.spec} was {kind_text(before)} and is {kind_text(after)}")
        return found

    @property
    def results(self) -> tuple[Structure, list[Any]]:
        """Structure of the results, with `Output` and `Argument` in place of tensors."""
        return self._outcome.result, self._outcome.leaves

    @property
    def contiguous(self) -> list[int] | None:
        """Positions of the arguments that have to be contiguous; None if one needs another layout."""
        return None if any(seen is not None for _, seen in self._layouts) else [place for place, _ in self._layouts]

    @property
    def captured(self) -> list[Tensor]:
        """Inputs of the graph that are tensors from outside; they follow the arguments."""
        return [item.tensor for item in self._captured]

    def outcomes(self) -> list[tuple[str, str]]:
        """Return the role of each output, ``"result"``, ``"update"``, ``"gradient"`` or ``"kept"``, and its tensor.

        An update is the new value of a tensor that is written in place; a gradient later needs the kept values.
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

    # Running ----------------------------------------------------------------------------------------------------

    def __call__(self, tensors: Sequence[Tensor], execute: Executable | None = None) -> Any:
        """Run the graph with these arguments.

        Args:
            execute: runs instead of the compiled program.
        """
        if self.before is not None and execute is None:
            execute = self.before(tensors)
        if self._is_function and execute is None:
            return with_value(self.program.run([*map(_value_of, tensors), *map(_value_of, self._outside)], False)[0])
        effects = self._effects
        if self._acts:
            effects.check_aliases(tensors, self.program.graph.name)
        inputs = self.inputs(tensors)
        arrays = list(map(_value_of if execute is None else fetched, inputs))
        if self._callbacks is not None:
            self._callbacks(arrays)
        overwrites = (self._donated or self._may_overwrite) and self._overwrites(tensors, arrays)
        if self.program.takes_devices:
            effects.forget_memories()  # their owners hold memory that the call may take
        values = (execute or self.program.run)(arrays, overwrites)
        outputs = list(map(with_value, values[: effects.results]))
        if self._acts:
            for each in self._made:
                each.put(outputs)
            effects.ask_for_gradients(tensors)
            if self._differentiable is not None:
                self._differentiable.connect(inputs, arrays, outputs, values)
            if self.program.takes_devices:
                self._seen = arrays = []  # memory is held by tensors alone, so that a new value can take its place
                effects.forget_memories()
            effects.carry_out(tensors, values)
            if self._seen_there:
                self._see_there()
        given = tensors
        if self._donated:
            tensors = self._take(tensors)
        return outputs[0] if self._returns_one else self._returned(outputs, tensors, given)

    def replayed(self, tensors: Sequence[Tensor]) -> Any:
        """Return the results in the current mode, operation by operation, of a trace without effects and gradients."""
        return self._returned(replay(self.program.graph, self.inputs(tensors)), tensors, tensors)

    def _returned(self, outputs: Sequence[Tensor], tensors: Sequence[Tensor], given: Sequence[Tensor]) -> Any:
        """Return the results of the function, after changing the containers of the call."""
        leaves = list(self._outcome.leaves)
        containers, arrays = (given.containers, given.arrays) if isinstance(given, Given) else ((), {})
        for index, leaf in enumerate(leaves):
            if type(leaf) is Output:
                leaves[index] = outputs[leaf.position]
            elif type(leaf) is Argument:
                now = tensors[leaf.position]
                leaves[index] = now if index < self._outcome.results else arrays.get(leaf.position, now)
            elif type(leaf) is New:
                leaves[index] = leaf.made()
            elif type(leaf) is Held:
                leaves[index] = self._assigned.tensors()[leaf.position]
        result, values = self._outcome.carried_out(leaves, containers)
        if self._assigns:
            is_current = self._module_changes == Module.changes
            self._move(self._assigned.put(values, self.watches))
            self._module_changes = Module.changes if is_current else -1
        return result

    @property
    def has_results_alone(self) -> bool:
        """Whether calls compute results and do nothing else."""
        acts = self._acts or self._donated or self._callbacks is not None
        return not (acts or self._assigns or self._outcome.changed)

    def inputs(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the inputs of the graph: the arguments, and the present values of captured tensors."""
        return [*tensors, *(self._captured_now(tensors) if self._gradients else self._outside)]

    def _take(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the arguments, with new tensors in place of donated ones, which become unusable."""
        result = list(tensors)
        for place, argument in self._donated.items():
            result[place] = with_value(tensors[place]._value)
            give_away(tensors[place], argument, self.program.graph.name)
        return result

    def _captured_now(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the captured tensors; of captured gradients, the present ones."""
        found = self.captured
        for place, owner in self._gradients:
            found[place] = cast(Tensor, tensor_at(owner, tensors)._grad)  # there is one: a guard has found it
        return found

    def _overwrites(self, tensors: Sequence[Tensor], arrays: Sequence[Any]) -> bool:
        """Return whether targets may be overwritten while the graph runs: no other input shares their memory."""
        if self._donated:
            places = {*self._donated, *self.program.updates.values()}
            return all(tensors[place]._view is None for place in self._donated) and are_apart(arrays, places)
        return self._effects.is_apart_from([arrays[len(tensors) + place] for place, _ in self._gradients])


class TakingTurns(Traced):
    """Traced call whose updates stay on a device: of several threads that call it, one does at a time.

    An update there is a new value, which its tensor has when the call is over: a concurrent call would lose it.
    """

    def __init__(self, *parts: Any) -> None:
        self._turn = threading.RLock()
        super().__init__(*parts)

    def is_current(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether all guards besides the signature hold. Values from outside move to the device now."""
        with self._turn:
            return super().is_current(tensors)

    def __call__(self, tensors: Sequence[Tensor], execute: Executable | None = None) -> Any:
        """Run the graph with these arguments."""
        with self._turn:
            return super().__call__(tensors, execute)
