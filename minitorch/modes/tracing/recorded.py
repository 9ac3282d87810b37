"""One run of a function under a recording: its graph, its results, and what its trace depends on."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...dtypes import BY_NUMPY
from ...graph import Graph
from ...interpreters import ArgumentLayout, Callback, interpreting, layout_text, visible_strides
from ...ir import Node, Shape, Spec
from ...tensor import OnDevice, Tensor, forget_writes
from ...tree import Structure, flatten, unflatten
from ..checking.rehearsal import Argument, Output
from .differentiable import Backward, record_backward
from .effects import Effects, Where
from .recording import CallStaging

Kind = tuple[Shape, Any, Shape | None]
"""Shape, type and visible strides."""


def kind_of(array: Any) -> Kind:
    """The properties of a captured tensor that a trace depends on; on a device all values are contiguous."""
    if type(array) is OnDevice:
        return array.shape, array.dtype.numpy, None
    return array.shape, array.dtype, None if array.flags.c_contiguous else visible_strides(array)


def kind_text(kind: Kind | None) -> str:
    """The same for a message; None is a tensor that is not there."""
    if kind is None:
        return "None"
    shape, dtype, layout = kind
    return f"{Spec(shape, BY_NUMPY[dtype])}" + ("" if layout is None else f" {layout_text(layout)}")


@dataclass
class Recorded:
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


def record(
    function: Callable[..., Any],
    leaves: list[Any],
    structure: Structure,
    names: list[str],
    staging: CallStaging,
    copies: bool = False,
) -> Recorded:
    """Run the function under a recording. No traced tensor outlives this call, unless it leaked.

    Args:
        copies: whether a tensor from outside that is returned is an output of the graph, or itself.
    """
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
            for owner, state in staging.states.items():
                owner.require_settled(state, staging.trace.name)
            outputs: dict[int, Tensor] = {}
            for index, leaf in enumerate(found):
                if id(leaf) in positions:
                    found[index] = Argument(positions[id(leaf)])
                elif isinstance(leaf, Tensor) and (copies or isinstance(leaf._value, Node)):
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
        (positions.get(id(tensor), tensor), None if grad is None else kind_of(grad._value))
        for tensor, grad in staging.guards
    ]
    lying = [(position, tracer._layout) for position, tracer in enumerate(arguments)]
    layouts = [(position, layout.visible) for position, layout in lying if layout.matters]
    staging.grads, staging.grad_owners, staging.guards = {}, {}, []
    everything = (*inputs, *(item.input for item in staging.captured.values()))
    residuals = backward.computed if backward else []
    graph = staging.graph(everything, (*nodes, *effects.nodes, *residuals), forward)
    return Recorded(graph, results, found, effects, backward, recorded_owners, guards, layouts, callbacks)


def _stand_in(argument: Tensor, name: str, staging: CallStaging) -> Tensor:
    """The traced tensor that the function sees in place of an argument."""
    tracer = Tensor(staging.input(argument.spec, name))
    tracer._layout = ArgumentLayout(argument._value)
    tracer._requires_grad = argument._requires_grad
    staging.made.append(weakref.ref(tracer))
    if argument._entry is None:  # the gradient of a recorded result is passed on to its tape
        staging.arguments[id(tracer)] = argument
    return tracer
