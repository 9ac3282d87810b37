"""Recording of one run of a function: its graph, its results, and the conditions its trace depends on."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...dtypes import BY_NUMPY
from ...errors import compose
from ...graph import Graph
from ...interpreters import ArgumentLayout, Callback, interpreting, layout_text, visible_strides
from ...ir import Node, Shape, Spec, warn_user
from ...tensor import Remote, Tensor, forget_writes, up_to_date, with_value
from ...tree import Structure, Whole, flatten
from ..guards.observed import Observed
from ..objects.assigned import Assigned
from ..objects.outcome import Argument, Held, New, Outcome, Output, contents, outcome_of
from ..objects.places import Change, Places
from .call_staging import CallStaging
from .effects import Effects, Where

if TYPE_CHECKING:
    from .differentiable import Backward

Kind = tuple[Shape, Any, Shape | None]
"""Shape, type and visible strides."""


def kind_of(array: Any) -> Kind:
    """Return the properties of a captured tensor that a trace depends on; on a device all values are contiguous."""
    if isinstance(array, Remote):
        return array.shape, array.dtype.numpy, None
    return array.shape, array.dtype, None if array.flags.c_contiguous else visible_strides(array)


def kind_text(kind: Kind | None) -> str:
    """Return the same for a message; None is a missing tensor."""
    if kind is None:
        return "None"
    shape, dtype, layout = kind
    return f"{Spec(shape, BY_NUMPY[dtype])}" + ("" if layout is None else f" {layout_text(layout)}")


@dataclass(frozen=True)
class Made:
    """Output that is a leaf, or of its own class: a parameter that the function has made, for instance.

    Attributes:
        position: among the outputs.
        kind: its class.
        requires_grad: whether it is a leaf that requires a gradient.
        grad: the output that is its gradient.
    """

    position: int
    kind: type[Tensor]
    requires_grad: bool
    grad: int | None

    def put(self, outputs: list[Tensor]) -> None:
        """Give the output its eager properties."""
        tensor = self.kind.__new__(self.kind)
        tensor._hold(outputs[self.position]._value, self.requires_grad)
        outputs[self.position] = tensor
        tensor._grad = None if self.grad is None else outputs[self.grad]


@dataclass
class Recorded:
    """Result of one recording: the graph, and the roles of its inputs and outputs."""

    graph: Graph
    outcome: Outcome  # `Output` and `Argument` in place of tensors, `New` in that of arrays made inside
    effects: Effects
    backward: Backward | None
    owners: list[Where | None]  # for each captured tensor: the owner, if it is a gradient
    guards: list[tuple[Where, Kind | None]]  # the gradients that were read, with their values
    layouts: list[tuple[int, Shape | None]]  # the arguments whose strides decided something, with their visible strides
    callbacks: list[Callback]
    made: list[Made] = field(default_factory=list)  # the outputs with more than a value
    assigned: Assigned = field(default_factory=Assigned)  # the tensors that are looked up at each call
    leaked: bool = False  # whether the function keeps traced tensors
    changed: list[str] = field(default_factory=list)  # the names of the values it has changed outside


def record(
    function: Callable[..., Any],
    given: list[Any],
    structure: Structure,
    names: list[str],
    staging: CallStaging,
    around: Observed,
    copies: bool = False,
    places: Places | None = None,
) -> Recorded:
    """Run the function under a recording. No traced tensor outlives this call, unless it leaked.

    Args:
        around: the observer of the function's reads.
        copies: whether a tensor from outside that is returned is an output of the graph, or itself.
        places: places that the function can reach; its assignments to them are undone, and a part of the outcome.
    """
    tracers: dict[int, Tensor] = {}  # by id of the argument: a tensor that is given twice is one input
    stand_ins = list(given)
    for index, leaf in enumerate(given):
        if isinstance(leaf, Tensor):
            if id(leaf) not in tracers:
                tracers[id(leaf)] = _stand_in(leaf, names[index], staging)
            stand_ins[index] = tracers[id(leaf)]
    arguments = list(tracers.values())
    inputs: list[Node] = [tracer._value for tracer in arguments]
    positions = {id(tracer): position for position, tracer in enumerate(arguments)}
    try:
        with interpreting(staging):
            whole = Whole(stand_ins)
            args, kwargs = whole.build(structure)
            before = contents(whole.containers)
            with around.running() as staging.observer:
                holder = [function(*args, **kwargs)]
            for owner, state in staging.states.items():
                owner.require_settled(state, staging.trace.name)
            assigned = Assigned()
            if places is not None:
                changes = places.changes()
                places.restore()
                _warn_of_views(staging.trace.name, changes, positions)
                holder += [change.now for change in changes]
                changes = [change._replace(now=None) for change in changes]
                assigned = Assigned(places, changes)
            outputs: dict[int, Tensor] = {}

            def noted(leaf: Any, is_inside: bool) -> Any:
                if id(leaf) in positions:
                    return Argument(positions[id(leaf)])
                if isinstance(leaf, Tensor) and (copies or isinstance(leaf._value, Node)):
                    outputs.setdefault(id(leaf), leaf)
                    return Output(list(outputs).index(id(leaf)))
                if isinstance(leaf, Tensor):
                    number = assigned.number(leaf)
                    return leaf if number is None else Held(number)
                return New(leaf) if is_inside else leaf

            outcome = outcome_of(staging.trace.name, holder, whole.containers, before, noted)
            made = [] if copies else _made(outputs)
            returned = list(map(up_to_date, outputs.values()))
            nodes = [staging.node_of(output) for output in returned]
            effects = Effects(len(outputs))
            effects.collect(staging, arguments, inputs)
            forward, callbacks = list(staging.nodes), list(staging.callbacks)
            backward = None
            if any(output._requires_grad for output in returned):
                from .differentiable import record_backward

                leaves = [each.position for each in made if each.requires_grad]
                backward = record_backward(staging, arguments, returned, leaves)
    finally:
        for item in staging.captured.values():
            forget_writes(item.tensor, item.version)
    assigned.close([item.tensor for item in staging.captured.values()])
    owners = [staging.grad_owners.get(id(item.tensor)) for item in staging.captured.values()]
    recorded_owners = [owner if owner is None else positions.get(id(owner), owner) for owner in owners]
    guards = [
        (positions.get(id(tensor), tensor), None if grad is None else kind_of(grad._value))
        for tensor, grad in staging.guards
    ]
    lying = [(position, tracer._layout) for position, tracer in enumerate(arguments)]
    layouts = [(position, layout.visible) for position, layout in lying if layout.matters]
    staging.grads, staging.grad_owners, staging.guards = {}, {}, []
    everything = (*inputs, *(item.input for item in staging.captured.values()))
    residuals = backward.computed if backward else []
    graph = staging.graph(everything, (*nodes, *effects.nodes, *residuals), forward)
    return Recorded(graph, outcome, effects, backward, recorded_owners, guards, layouts, callbacks, made, assigned)


def _warn_of_views(name: str, changes: Iterable[Change], arguments: Container[int]) -> None:
    """Warn of state that is a view of an argument or a tensor from outside: the graph has a value, and no memory."""
    for place, _, now in changes:
        for leaf in flatten(now)[0]:
            root = leaf._view.root if isinstance(leaf, Tensor) and leaf._view is not None else None
            if root is not None and (id(root) in arguments or not isinstance(root._value, Node)):
                warn_user(
                    compose(
                        "MT109",
                        f"{name} assigns a view, {leaf.spec}, to {place}",
                        why="eagerly it shares its memory with what it is a view of; a graph assigns a copy, so that a "
                        "later write to one of the two is not seen in the other",
                        fix="take the view where it is used, or assign a .clone() of it, which is a copy in every mode",
                    )
                )


def _made(outputs: dict[int, Tensor]) -> list[Made]:
    """Return the outputs that are more than a tensor with a value; their gradients become outputs, too."""
    found = []
    for position, tensor in enumerate(list(outputs.values())):
        is_leaf = tensor._requires_grad and tensor._entry is None
        if type(tensor) is not Tensor or is_leaf:
            grad = tensor._grad if is_leaf else None
            if grad is not None:
                outputs.setdefault(id(grad), grad)
            place = None if grad is None else list(outputs).index(id(grad))
            found.append(Made(position, type(tensor), is_leaf, place))
    return found


def _stand_in(argument: Tensor, name: str, staging: CallStaging) -> Tensor:
    """Return the traced tensor that the function sees in place of an argument."""
    tracer = with_value(staging.input(argument.spec, name))
    tracer._layout = ArgumentLayout(argument._value)
    tracer._requires_grad = argument._requires_grad
    staging.made.append(weakref.ref(tracer))
    if argument._entry is None:  # the gradient of a recorded result is passed on to its tape
        staging.arguments[id(tracer)] = argument
    return tracer
