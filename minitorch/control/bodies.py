"""Bodies: functions as they are recorded for loops and branches, with their gradients."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import numpy as np

from ..autograd import tape
from ..errors import AutogradError, TracingError
from ..functional.creation.data import as_tensor
from ..functional.pointwise.casting import clone
from ..graph.graph import Graph
from ..graph.regions import Region, closed, refused
from ..interpreters import Staging, current, current_staging, is_grad_enabled, run_silently
from ..ir import INPUT, POINTWISE, Node, Primitive, Spec, user_source
from ..primitives import check, constant, reshape
from ..tensor import TapeEntry, Tensor, fetched, next_serial, with_value
from ..tree import flatten, unflatten

ONE_KIND = "each repetition begins with what the one before returns, and each branch stands for the other"
CONVERT = "return the same containers of the same shapes and types: x.to(y.dtype), x.reshape(y.shape)"

HOISTED = (*POINTWISE, "movement", "source", "reduction", "contraction")  # kinds of operations that cannot fail

Python = Callable[..., Any]


class Values:
    """Nested tensors as a flat list; numbers and arrays become tensors, and None stays."""

    def __init__(self, value: Any, what: str, like: Sequence[Tensor] = ()) -> None:
        self.leaves, self.structure = flatten(value)
        self.tensors: list[Tensor] = []
        for leaf in self.leaves:
            if isinstance(leaf, (bool, int, float)) and len(self.tensors) < len(like):
                self.tensors.append(as_tensor(leaf, dtype=like[len(self.tensors)].dtype))
            elif isinstance(leaf, (bool, int, float, np.ndarray, np.generic, Tensor)):
                self.tensors.append(as_tensor(leaf))
            elif leaf is not None:
                raise TypeError(f"{what}: tensors and numbers are needed, not {type(leaf).__name__}")

    @property
    def specs(self) -> list[Spec]:
        """Shapes and types of the tensors."""
        return [tensor.spec for tensor in self.tensors]

    def of(self, tensors: Iterable[Tensor]) -> Any:
        """Return the same containers around other tensors."""
        given = iter(tensors)
        return unflatten(self.structure, [None if leaf is None else next(given) for leaf in self.leaves])

    def require(self, other: Values, what: str) -> None:
        """Refuse values of another structure, shape or type.

        Raises:
            TracingError: naming the first that differs (``MT116``).
        """
        if len(self.tensors) != len(other.tensors) or str(self.structure) != str(other.structure):
            raise refused(f"{what} {other.structure}, where {self.structure} is needed", ONE_KIND, CONVERT)
        for mine, found in zip(self.specs, other.specs, strict=True):
            if mine != found:
                raise refused(f"{what} {found}, where {mine} is needed", ONE_KIND, CONVERT)


def recording() -> Staging | None:
    """Return the recording that a loop becomes a node of; None where it runs as Python."""
    interpreter = current()
    return interpreter if isinstance(interpreter, Staging) and interpreter.has_loops else None


def is_mapped() -> bool:
    """Return whether a layer of `func.vmap` is on top of a recording."""
    interpreter = current()
    return interpreter.recording is not None and interpreter.mapped is not None


def applied(primitive: Primitive, operands: Sequence[Tensor], params: dict[str, Any], results: int) -> list[Tensor]:
    """Return the first results of a loop or branch; eagerly they are computed together."""
    if current_staging() is not None:  # below the tape, which notes all results together
        given, below = tuple(operands), current()
        return [below.bind(primitive, given, {**params, "result": place}) for place in range(results)]
    arrays, together = list(map(fetched, operands)), primitive.together
    assert together is not None
    return [with_value(value) for value in run_silently(lambda: together(*arrays, **params))[:results]]


def copied(value: Any) -> Any:
    """Return nested values with copies of the tensors: a result shares no memory with what was given, or read."""
    leaves, structure = flatten(value)
    return unflatten(structure, [clone(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves])


def zeros_of(spec: Spec) -> Tensor:
    """Return zeros of a kind."""
    return constant(value=0, shape=spec.shape, dtype=spec.dtype)


def cotangent_at(parts: dict[int, Tensor], place: int, spec: Spec) -> Tensor:
    """Return the cotangent at a position: zeros if the loss does not depend on that result."""
    return parts[place] if place in parts else zeros_of(spec)


def writes_to_argument(name: str, tensor: Tensor) -> TracingError:
    """Return the error for a body that writes in place to what it is called with, or what that is taken from."""
    return refused(
        f"{name}: the body writes in place to its argument, {tensor.spec}",
        "carried values and slices belong to the loop, and eagerly the caller's tensors would change",
        "write to a .clone() of it, and return that",
    )


def unwritten(name: str, tensors: Sequence[Tensor], body: Python, *arguments: Any) -> Any:
    """Return what a body returns, and refuse one that writes in place to what it is called with."""
    versions = [each._root._version for each in tensors]
    found = body(*arguments)
    for each, version in zip(tensors, versions, strict=True):
        if each._root._version != version:
            raise writes_to_argument(name, each)
    return found


class Kept:
    """A value of a recording that a gradient reads: later in it, in another one, or eagerly."""

    def __init__(self, staging: Staging, node: Node) -> None:
        inputs = (item.tensor for item in staging.captured.values() if item.input is node)
        captured = next(inputs, None)
        self.node, self.tensor = node, staging.tensor_of(node) if captured is None else captured
        self.version = self.tensor._root._version

    def again(self) -> Tensor:
        """Return the value as a tensor without history."""
        staging = current_staging()
        if staging is not None and staging.trace is self.node.trace:
            return staging.tensor_of(self.node)
        if self.tensor._root._version != self.version:
            raise tape.overwritten("loop", "an operand", self.tensor)
        return with_value(self.tensor._value)


class Body:
    """A function as it was recorded, with its gradient.

    Attributes:
        inputs: the nodes that it was called with in place of values.
        outputs: the nodes of its results.
        region: its nodes: first its own, then those of its gradient.
        outside: the tensors from outside that require a gradient, by key (see `autograd.tape.key_of`).
        cotangents: the nodes that stand for the cotangents of its results, by position.
        refusal: why it has no gradient, if it has none.
    """

    def __init__(
        self,
        staging: Staging,
        what: str,
        function: Python,
        specs: Sequence[Spec] = (),
        asked: Sequence[bool] = (),
        wanted: bool = False,
    ) -> None:
        self.staging, self.what = staging, what
        stand_ins = [self.stand_in(spec) for spec in specs]
        for tensor, each in zip(stand_ins, asked, strict=True):
            tensor._requires_grad = each and tensor.dtype.is_floating_point and is_grad_enabled()
        self.keys = [tape.key_of(tensor) for tensor in stand_ins]
        self.inputs: list[Node] = [tensor._value for tensor in stand_ins]
        self.outside: dict[int, Tensor] = {}
        self.cotangents: dict[int, Node] = {}
        self._gradients: dict[int, Node] = {}
        self.first = next_serial()
        self.refusal: AutogradError | None = None
        self.region = Region(staging, what)
        self.region.record(lambda: self._record(function, stand_ins, wanted))
        for write in self.region.writes:
            if write.tensor._requires_grad:
                self._forget_histories()
                raise refused(
                    f"{what}: the body writes in place to {write.tensor.spec} from outside, which requires a gradient",
                    "all repetitions are one operation for the tape, whose operands do not change",
                    "carry it from one repetition to the next, and return its new value",
                )

    @classmethod
    def carrying(
        cls,
        staging: Staging,
        what: str,
        function: Python,
        specs: Sequence[Spec],
        given: Sequence[Tensor],
        count: int,
        has_gradient: bool,
    ) -> Body:
        """Record the body of a loop.

        What is carried may come to require a gradient in the first repetition, so the first `count` inputs do. A body
        that writes what is carried is recorded again without: it may be that nothing there requires one.
        """
        asked = [tensor._requires_grad for tensor in given]
        try:
            body = cls(staging, what, function, specs, [True] * count + asked[count:], has_gradient and any(asked))
        except (AutogradError, TracingError):
            if any(asked) or not is_grad_enabled():
                raise
            body = cls(staging, what, function, specs, asked)
            if body.outside:
                raise
        roots = {id(tensor._root) for tensor in given}
        for write in body.region.writes:
            if id(write.tensor._root) in roots:
                raise writes_to_argument(what, write.tensor)
        return body

    def stand_in(self, spec: Spec) -> Tensor:
        """Return a tensor that stands for values of a kind."""
        return with_value(Node(INPUT, (), {"name": "value"}, spec, user_source(), self.staging.trace))

    def _forget_histories(self) -> None:
        """Give what the body has written its history from before."""
        for tensor in [write.tensor for write in self.region.writes]:
            while tensor._entry is not None and tensor._entry.serial > self.first:
                _, tensor._requires_grad, tensor._entry = tensor._past.pop()

    def _record(self, function: Python, stand_ins: list[Tensor], wanted: bool) -> None:
        staging, begin, made = self.staging, len(self.staging.nodes), len(self.staging.made)
        outputs: list[Tensor] = function(stand_ins)
        self.outputs = [staging.node_of(tensor) for tensor in outputs]
        self.ahead = len(staging.nodes) - begin
        for tensor, node in zip(stand_ins, self.inputs, strict=True):
            if tensor._value is not node:
                raise writes_to_argument(self.what, tensor)
        roots = [place for place, each in enumerate(outputs) if each._requires_grad and is_grad_enabled()]
        inside = {id(tensor) for tensor in stand_ins} | {id(each()) for each in staging.made[made:]}
        older = boundary([outputs[place] for place in roots], self.first)
        self.outside = {tape.key_of(each): each for each in older if id(each) not in inside}
        if not roots or not (wanted or self.outside):
            return
        cotangents = {place: self.stand_in(outputs[place].spec) for place in roots}
        self.cotangents = {place: tensor._value for place, tensor in cotangents.items()}
        try:
            found = tape.propagate(
                [outputs[place] for place in roots],
                list(cotangents.values()),
                retain_graph=True,
                create_graph=False,
                wanted={*self.outside, *self.keys},
                stop_at_wanted=True,
                outside_hooks=False,
            )
        except AutogradError as error:  # for `backward`, which may not be called
            self.refusal = error.again()
            return
        self._gradients = {key: staging.node_of(gradient) for key, (_, gradient) in found.items()}
        self.outside = {key: tensor for key, tensor in self.outside.items() if key in found}

    def gradient(self, key: int, spec: Spec) -> Node:
        """Return the node of the gradient of an input or a tensor outside: zeros if no result depends on it."""
        zeros = Node(constant, (), {"value": 0.0, "shape": spec.shape, "dtype": spec.dtype}, spec)
        return self._gradients.get(key, zeros)

    def refuse(self, *_: Any) -> Any:
        """Raise the error for the gradient that there is none of."""
        assert self.refusal is not None
        raise self.refusal.again()

    def settle(self, kept: Container[int] = ()) -> None:
        """Put the nodes of the recording in place of the aliases of tensors, but for those of some `id`."""
        now = self.region.settle(kept)
        self.outputs = [now.get(node, node) for node in self.outputs]
        self._gradients = {key: now.get(node, node) for key, node in self._gradients.items()}

    @property
    def own(self) -> list[Node]:
        """The nodes of the function itself."""
        return self.region.nodes[: self.ahead]

    def hoist(self, carried: Iterable[Node]) -> None:
        """Put what is the same in all repetitions back into the recording, ahead of the loop.

        Args:
            carried: the nodes of tensors from outside that change.
        """
        moving = {*self.inputs, *self.cotangents.values(), *carried}
        for node in self.region.nodes:  # a loop may have no repetition, and then nothing of its body may fail
            if node.primitive.kind not in HOISTED or node.primitive is check or not moving.isdisjoint(node.inputs):
                moving.add(node)
        ahead = [node for node in self.region.nodes if node not in moving]
        self.region.ahead = set(ahead)
        read = {operand for node in ahead for operand in node.inputs}
        self.staging.nodes += [node for node in ahead if node.primitive is not constant or node in read]
        self.ahead = sum(node in moving for node in self.own)
        self.region.nodes = [node for node in self.region.nodes if node in moving]


def boundary(outputs: Iterable[Tensor], first: int) -> list[Tensor]:
    """Return the tensors that require a gradient and are older than an entry of the tape, or leaves."""
    found, seen, pending = [], set(), list(outputs)
    while pending:
        tensor = pending.pop()
        entry: TapeEntry | None = tensor._entry
        if not tensor._requires_grad:
            continue
        if entry is None or entry.serial < first:
            found.append(tensor)
        elif entry.serial not in seen:
            seen.add(entry.serial)
            pending += entry.inputs or ()
    return found


def program_of(inputs: Sequence[Node], outputs: Sequence[Node], nodes: Sequence[Node]) -> Graph:
    """Return a program of its own, with inputs named by their numbers."""
    begins, ends, made = closed([(f"x{place}", node) for place, node in enumerate(inputs)], outputs, nodes)
    return Graph(begins, ends, made, name="body")


def variables(value: Any) -> list[Tensor]:
    """Return the tensors of a value, those of a float type as tensors to differentiate by."""
    tensors = [reshape(each, shape=each.shape) for each in Values(value, "scan").tensors]
    for tensor in tensors:
        tensor._requires_grad = tensor.dtype.is_floating_point
    return tensors


def gradients_of(outputs: Sequence[Tensor], cotangents: Sequence[Tensor], wanted: Sequence[Tensor]) -> list[Tensor]:
    """Return gradients on the tape: zeros where the outputs do not depend on a wanted tensor.

    What a wanted tensor was itself made of is behind it: it does not count for another wanted one.
    """
    pairs = [pair for pair in zip(outputs, cotangents, strict=True) if pair[0].requires_grad]
    found = tape.propagate(
        [output for output, _ in pairs],
        [cotangent for _, cotangent in pairs],
        retain_graph=True,
        create_graph=True,
        wanted=set(map(tape.key_of, wanted)),
        stop_at_wanted=True,
        outside_hooks=False,
    )
    keys = [tape.key_of(tensor) for tensor in wanted]
    return [found[key][1] if key in found else zeros_of(tensor.spec) for key, tensor in zip(keys, wanted, strict=True)]


def not_again(name: str) -> AutogradError:
    """Return the error for a second derivative for which a body cannot run again."""
    return AutogradError(
        "MT405",
        f"a second derivative through a {name} whose body changes something outside",
        why="for a second derivative the body runs again, and would see another state",
        fix="carry the state, or draw random numbers outside, and give them as arguments",
    )
