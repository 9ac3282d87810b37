"""Gradients through a traced call: the backward pass is traced with the call, and each call goes on the tape."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd import tape
from ...dtypes import DType
from ...errors import AutogradError
from ...functional.options import is_traced
from ...graph import Graph
from ...interpreters import Callback, concrete, is_grad_enabled
from ...ir import INPUT, Node, Shape, Spec, user_source
from ...primitives import constant, reshape
from ...sizes import key_of
from ...tensor import Remote, Tensor, with_value
from .call_staging import CallStaging
from .effects import Effects
from .program import Callbacks, Program, replay

if TYPE_CHECKING:
    from .options import Options

Array = np.ndarray[Any, Any]


@dataclass
class Backward:
    """Traced backward pass: from values of the forward graph and cotangents of its results to gradients.

    Attributes:
        outputs: the results that it starts from.
        leaves: the results that are leaves made inside, and require a gradient.
        wanted: the inputs of the forward graph that get gradients; after these, the `leaves`.
        read: inputs of the forward graph whose values it reads, and `sizes`.
        computed: nodes of the forward graph whose values it reads; they become further outputs of that graph.
        cotangents: its inputs for the cotangents.
        gradients: its outputs; None where the results do not depend on the input.
        nodes: its computation, in program order.
        callbacks: the callbacks of hooks.
        refused: the reason why there are no gradients, which is raised on request, as in eager mode.
        sizes: inputs of the forward graph that only give the lengths of dimensions.
        overwritten: a tensor on the tape that the function wrote to under `no_grad`, if there is one.
    """

    outputs: list[int]
    wanted: list[int]
    read: list[Node]
    computed: list[Node]
    cotangents: list[Node]
    gradients: list[Node | None]
    nodes: list[Node]
    callbacks: list[Callback]
    refused: AutogradError | None = None
    overwritten: Spec | None = None
    leaves: Sequence[int] = ()
    sizes: Sequence[Node] = ()


def record_backward(
    staging: CallStaging, tracers: list[Tensor], outputs: list[Tensor], leaves: Sequence[int] = ()
) -> Backward | None:
    """Trace the gradients of the results, if any may be asked for later."""
    starts = [
        position
        for position, output in enumerate(outputs)
        if output._requires_grad and output._entry is not None and output._entry.inputs is not None
    ]
    if not starts or not is_grad_enabled():
        return None
    inputs = [*tracers, *(item.tensor for item in staging.captured.values()), *(outputs[place] for place in leaves)]
    wanted = [place for place, tensor in enumerate(inputs) if tensor._requires_grad]
    before, called_before = len(staging.nodes), len(staging.callbacks)
    sources = [inputs[place] for place in wanted]
    cotangents = [staging.input(outputs[position].spec, f"cotangent.{position}") for position in starts]
    keys = [tape.key_of(tensor) for tensor in sources]
    try:
        found = tape.propagate(
            [outputs[position] for position in starts],
            [with_value(node) for node in cotangents],
            retain_graph=True,
            create_graph=False,
            wanted=set(keys),
            stop_at_wanted=True,
            outside_hooks=False,  # they run when the outer walk arrives at the leaf
        )
    except AutogradError as error:
        if error.code == "MT403":  # backward was called inside, and has freed the tape, as in eager mode
            return None
        if error.code != "MT402":
            raise
        return Backward(
            starts, wanted, [], [], cotangents, [None] * len(wanted), [], [], refused=error.again(), leaves=leaves
        )
    gradients = [staging.node_of(found[key][1]) if key in found else None for key in keys]
    nodes, callbacks = staging.nodes[before:], staging.callbacks[called_before:]
    own = {id(node) for node in (*nodes, *cotangents)}
    used = [operand for node in nodes for operand in node.inputs] + [node for node in gradients if node is not None]
    used += [node for each in callbacks for node in each.nodes]
    outside, views = _bases({id(node): node for node in used if id(node) not in own}, staging.untaped)
    nodes = [*(node for node in staging.nodes[:before] if id(node) in views), *nodes]
    read = [node for node in outside if node.primitive is INPUT]
    sizes = _sources_of_sizes((*outside, *cotangents), staging)
    return Backward(
        outputs=starts,
        wanted=wanted,
        read=[*read, *sizes],
        computed=[node for node in outside if node.primitive is not INPUT],
        cotangents=cotangents,
        gradients=gradients,
        nodes=nodes,
        callbacks=callbacks,
        overwritten=staging.overwritten,
        leaves=leaves,
        sizes=sizes,
    )


def _sources_of_sizes(known: Sequence[Node], staging: CallStaging) -> list[Node]:
    """Return the inputs whose shapes have symbols that no known value has."""
    symbols, found = {key_of(length) for node in known for length in node.shape}, []
    for node in staging.sized_inputs:
        own = {key_of(length) for length in node.shape}
        found += [node] if not own <= symbols else []
        symbols |= own
    return found


def _bases(outside: dict[int, Node], untaped: Container[Node]) -> tuple[list[Node], set[int]]:
    """Return the values that the backward pass reads, and the views of them that it takes again by itself.

    A view kept instead would be an output of the forward graph, and so a copy, with other strides: of every weight
    matrix that is transposed, for instance. A part of a larger computed value is kept all the same, and so is a view
    unseen by the tape, such as that of `detach`: it is constant for second derivatives.
    """
    kept: dict[int, Node] = {}
    views: set[int] = set()
    pending = list(outside.values())
    for node in pending:
        base = node.inputs[0] if node.primitive.is_view and node not in untaped else None
        if base is None or (base.primitive is not INPUT and base.spec.size > node.spec.size):
            kept[id(node)] = node
        elif id(node) not in views:
            views.add(id(node))
            pending.append(base)  # its turn comes
    return list(kept.values()), views


class Differentiable:
    """Compiled backward pass of a traced function; puts the results of each call on the tape."""

    def __init__(
        self,
        recorded: Backward,
        forward: Graph,
        untaped: Container[Node],
        effects: Effects,
        options: Options,
    ) -> None:
        self.recorded = recorded
        self.forward = forward
        self.untaped = untaped
        graph, callbacks = _detached(recorded, forward.name)
        self.program = Program(graph, options)
        self.callbacks = Callbacks(graph.inputs, callbacks, graph.name, options.unwatched) if callbacks else None
        places = {id(node): place for place, node in enumerate(forward.inputs)}
        self._read = [places[id(node)] for node in recorded.read]
        self._effects = effects

    def connect(
        self, inputs: Sequence[Tensor], arrays: Sequence[Array], outputs: Sequence[Tensor], values: Sequence[Array]
    ) -> None:
        """Put one call on the tape, before its in-place writes are carried out.

        Args:
            inputs, arrays: of the forward graph, in this call.
            outputs: the results of the call.
            values: all outputs of the graph.
        """
        call = _Call(self, [*inputs, *(outputs[position] for position in self.recorded.leaves)], arrays, values)
        results = [outputs[position] for position in self.recorded.outputs]
        tape.record_many(self.forward.name, call.sources, results, call.backward)

    def overwritten(self, inputs: Sequence[Tensor]) -> list[int]:
        """Return the inputs that the call itself writes to."""
        written = self._effects.written
        places = [place for place, tensor in enumerate(inputs) if id(tensor) in written]
        return [*self._effects.arguments, *places]


def _kept(value: Any) -> Any:
    """Return a value that later writes do not change: on a device none does."""
    return value if isinstance(value, Remote) else np.array(value)


class _Call:
    """Call on the tape: its inputs and saved values, and its gradients."""

    def __init__(
        self, of: Differentiable, inputs: Sequence[Tensor], arrays: Sequence[Array], values: Sequence[Array]
    ) -> None:
        recorded = of.recorded
        self.of = of
        self.inputs = inputs
        self.sources = tuple([inputs[place] for place in recorded.wanted])
        computed = values[len(values) - len(recorded.computed) :]
        self.saved = [*[arrays[place] for place in of._read], *computed]
        self.shapes = [values[position].shape for position in recorded.outputs]
        self.versions = [tensor._root._version for tensor in inputs]
        # A random generator's state, a running mean: a replay starts from their earlier values.
        self.before = {place: _kept(arrays[place]) for place in of.overwritten(inputs)}

    def backward(
        self, cotangents: dict[int, Tensor], saved: dict[int, Tensor], asked: list[bool]
    ) -> list[Tensor | None]:
        """Return the gradients of the sources."""
        forward, recorded = self.of.forward, self.of.recorded
        if recorded.refused is not None:
            raise recorded.refused.again()
        filled = [
            cotangents.get(place, _zeros(shape, forward.outputs[position].dtype))
            for place, (position, shape) in enumerate(zip(recorded.outputs, self.shapes, strict=True))
        ]
        if is_grad_enabled():
            gradients = iter(self._replayed(filled))
        else:
            self._check(self.of._read[: len(recorded.read) - len(recorded.sizes)])
            gradients = iter(self._gradients(filled))
        return [None if node is None else next(gradients) for node in recorded.gradients]

    def _check(self, places: Sequence[int]) -> None:
        for place in places:
            tensor = self.inputs[place]
            if tensor._root._version != self.versions[place]:
                raise AutogradError(
                    "MT402",
                    f"{tensor.spec}, an input of the compiled {self.of.forward.name}, was overwritten before backward",
                    where=str(user_source()),
                    why="the gradient has to be computed with the value that the call saw",
                    fix="do the in-place write after backward",
                )

    def _gradients(self, cotangents: list[Tensor]) -> list[Tensor]:
        """Run the compiled backward pass; inside another recording, record it there, and inside vmap do it there."""
        program = self.of.program
        if not any(map(is_traced, cotangents)):
            arrays = [concrete(cotangent, "a cotangent") for cotangent in cotangents]
            values = [*self.saved, *arrays]
            if self.of.callbacks is not None:
                self.of.callbacks(values)
            return [with_value(value) for value in program.run(values)]
        return self._recorded([*map(with_value, self.saved), *cotangents])

    def _recorded(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the backward pass, operation by operation."""
        if self.of.callbacks is not None:
            self.of.callbacks.recorded(tensors)
        return replay(self.of.program.graph, tensors)

    def _replayed(self, cotangents: list[Tensor]) -> list[Tensor]:
        """Return the gradients as operations on the tape, so that they can be differentiated again.

        The recorded backward pass is replayed on the tape, with the values that it reads recomputed from the inputs, so
        the gradients are those of `_gradients`. For their derivatives everything outside of the recorded operations is
        constant: of a hook, or of the backward of a `Function`, the tape sees the recorded operations alone, and values
        that a `Function` saved have the derivatives of the operations in its forward.
        """
        if self.of.recorded.overwritten is not None:
            raise AutogradError(
                "MT402",
                f"{self.of.forward.name} is compiled, and has overwritten {self.of.recorded.overwritten}, which is on "
                "the tape, under no_grad",
                why="for second derivatives the function's operations are recorded again, and the write is not one",
                fix="write to a copy (x.clone()), or call the function without mt.jit",
            )
        places = range(len(self.inputs))
        self._check([place for place in places if place not in self.before or self.inputs[place]._requires_grad])
        aliases = [
            with_value(self.before[place]) if place in self.before else reshape(tensor, shape=tensor.shape)
            for place, tensor in enumerate(self.inputs[: len(self.of.forward.inputs)])
        ]
        values = replay(self.of.forward, aliases, self.of.untaped)
        computed = values[len(values) - len(self.of.recorded.computed) :]
        return self._recorded([*[aliases[place] for place in self.of._read], *computed, *cotangents])


def _detached(recorded: Backward, name: str) -> tuple[Graph, list[Callback]]:
    """Return the backward pass as a separate graph with its callbacks; values of the forward graph become inputs."""
    stand_ins = {
        node: Node(INPUT, (), {"name": f"saved.{position}"}, node.spec, node.source)
        for position, node in enumerate(recorded.computed)
    }
    moved: dict[Node, Node] = dict(stand_ins)
    for node in recorded.nodes:
        operands = tuple(moved.get(operand, operand) for operand in node.inputs)
        moved[node] = Node(node.primitive, operands, node.params, node.spec, node.source)
    inputs = [*recorded.read, *stand_ins.values(), *recorded.cotangents]
    outputs = [moved.get(node, node) for node in recorded.gradients if node is not None]
    graph = Graph(inputs, outputs, [moved[node] for node in recorded.nodes], name=f"{name}.backward")
    return graph, [
        Callback(each.function, tuple([moved.get(node, node) for node in each.nodes])) for each in recorded.callbacks
    ]


def _zeros(shape: Shape, dtype: DType) -> Tensor:
    return constant(value=0, shape=shape, dtype=dtype)
