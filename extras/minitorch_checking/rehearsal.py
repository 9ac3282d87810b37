"""Rehearsal: the traced function runs eagerly on the very objects of a call, and its changes are undone.

Shadow mode compares this with what the trace of the function makes of the same call. Copies would not do: whether two
tensors are views of one memory, how it lies, and which parameter a closure means is what a trace may have wrong. So the
function gets the objects themselves. Before the first write to a memory, or to a gradient, its content is put aside,
and afterwards it is restored, whatever happens in between. Effects on anything but tensors (printing, files, lists)
happen twice; see `Rehearsal.refused`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.dtypes import DType
from minitorch.interpreters import Eager, Handle, Layer, on_top
from minitorch.ir import Primitive
from minitorch.modes.guards.kinds import How, kind_of
from minitorch.modes.objects.outcome import Argument, Held, New, Outcome, Output, contents, outcome_of
from minitorch.modes.tracing.effects import tensor_at
from minitorch.modes.tracing.options import Request
from minitorch.tensor import Tensor, fetched, forget_writes
from minitorch.tree import Whole

if TYPE_CHECKING:
    from minitorch.modes.tracing.recording import Recorded
    from minitorch.modes.tracing.traced import Traced

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Rehearsed:
    """The results of a rehearsal.

    Attributes:
        outputs: by output of the graph of its trace, the array that it should be.
        parted: the difference between the function and a graph with these outputs, as text; None if there is none.
        error: the exception of the function; nothing else is known then.
    """

    outputs: Mapping[int, Array]
    parted: str | None = None
    error: Exception | None = None


class _Before(Layer):
    """The values of tensors before operations changed them; of written memory, the tensor that owns it."""

    def __init__(self) -> None:
        self.values: dict[int, tuple[weakref.ref[Tensor], Array, int]] = {}
        self.gradients: dict[int, tuple[weakref.ref[Tensor], Tensor | None]] = {}
        self._new: dict[int, weakref.ref[Tensor]] = {}

    def _made(self, tensor: Tensor) -> Tensor:
        """A new tensor has no earlier value."""
        if tensor._view is None:
            self._new[id(tensor)] = weakref.ref(tensor)
        return tensor

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Apply a primitive."""
        return self._made(self.below.bind(primitive, inputs, params))

    def number(self, value: bool | int | float, dtype: DType) -> Tensor:
        """Return a constant."""
        return self._made(self.below.number(value, dtype))

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a compiled function as what it was compiled from."""
        return function.inlined(args, kwargs)

    def callback(self, function: Callable[[list[Array]], None], tensors: Sequence[Tensor]) -> None:
        """Do nothing: what is printed, for example, cannot be undone."""

    def _knows(self, tensor: Tensor, known: Mapping[int, tuple[weakref.ref[Tensor], Any]] | Mapping[int, Any]) -> bool:
        new, found = self._new.get(id(tensor)), known.get(id(tensor))
        return (new is not None and new() is tensor) or (found is not None and found[0]() is tensor)

    def assign(self, tensor: Tensor, value: Tensor) -> Handle | None:
        """Put a value aside, and write into the tensor."""
        root = tensor._root
        if not self._knows(root, self.values):
            self.values[id(root)] = weakref.ref(root), np.array(fetched(root), order="K"), root._version
        return self.below.assign(tensor, value)

    def set_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        """Put a gradient aside, and assign another one."""
        if not self._knows(tensor, self.gradients):
            self.gradients[id(tensor)] = weakref.ref(tensor), tensor._grad
        self.below.set_grad(tensor, grad)

    def gradient_of(self, tensor: Tensor) -> Tensor | None:
        """The gradient that a tensor had before."""
        return self.gradients[id(tensor)][1] if id(tensor) in self.gradients else tensor._grad

    def written_to(self) -> Iterator[tuple[Tensor, Array]]:
        """The tensors whose memory was written, if they still exist, with its earlier content."""
        return ((root, value) for reference, value, _ in self.values.values() if (root := reference()) is not None)

    def put_back(self) -> None:
        """Restore everything."""
        for reference, value, version in self.values.values():
            if (root := reference()) is not None:
                if root._value.flags.writeable:  # otherwise the write was refused
                    np.copyto(root._value, value)
                forget_writes(root, version)
        for other, gradient in self.gradients.values():
            if (tensor := other()) is not None:
                tensor._grad = gradient


class Rehearsal:
    """A function with the arguments of one signature.

    Args:
        request: the call that was traced.
        recorded, traced: its trace.

    Attributes:
        refused: the reason for not running the function, if there is one.
    """

    def __init__(self, request: Request, recorded: Recorded, traced: Traced) -> None:
        leaves = request.leaves
        positions: dict[int, int] = {}
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                positions.setdefault(id(leaf), len(positions))
        self._leaves = [Argument(positions[id(leaf)]) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self._function, self._structure = request.function, request.structure
        self._outside = traced.captured
        self._effects, self._traced = recorded.effects, recorded.outcome
        self._watches = list(traced.watches)
        self._names = [" of ".join(filter(None, each)) for each in traced.outcomes()]
        self.refused = changes(recorded.changed) if recorded.changed else ""
        if recorded.leaked:
            self.refused = "it keeps traced tensors outside of itself"
        for place in recorded.assigned.names():
            self.refused = f"it assigns a tensor to {place}, which cannot be put back"
        if not self.refused and any(tensor._entry is not None for tensor in self._outside):
            self.refused = "it uses a recorded result from outside, whose tape a backward would use up"

    def __call__(self, tensors: Sequence[Tensor]) -> Rehearsed | None:
        """Run the function, and undo its changes; None if it is refused."""
        if self.refused:
            return None
        before = _Before()
        with _as_they_were([*tensors, *self._outside]):
            try:
                with on_top(before, Eager()):
                    leaves = [tensors[leaf.position] if type(leaf) is Argument else leaf for leaf in self._leaves]
                    whole = Whole(leaves)
                    args, kwargs = whole.build(self._structure)
                    was = contents(whole.containers)
                    results = [self._function(*args, **kwargs)]
                    found = outcome_of("the function", results, whole.containers, was, lambda leaf, is_inside: leaf)
                outcome = self._outcome(tensors, found, before)
            except Exception as error:
                outcome = Rehearsed({}, error=error)
            finally:
                before.put_back()
        changed = [watch.name for watch in self._watches if not watch.holds()]
        if changed:
            for watch in self._watches:
                watch.settle()
            self.refused = changes(changed)
        return outcome

    def _outcome(self, tensors: Sequence[Tensor], outcome: Outcome, before: _Before) -> Rehearsed:
        outputs: dict[int, Array] = {}
        found = outcome.leaves
        if (outcome.result, outcome.changed) != (self._traced.result, self._traced.changed):
            return Rehearsed({}, "it returns another structure")
        for place, (own, leaf) in enumerate(zip(found, self._traced.leaves, strict=True)):
            traced = leaf.value if type(leaf) is New else leaf
            if type(traced) is Output:
                if not isinstance(own, Tensor):
                    return Rehearsed({}, f"result {place} is {own!r:.40}, and not a tensor")
                outputs[traced.position] = np.array(fetched(own))
            elif type(traced) is Argument:
                if own is not tensors[traced.position]:
                    return Rehearsed({}, f"result {place} is not the argument that the trace takes it for")
            elif type(traced) is Held and isinstance(own, Tensor):
                continue  # which tensor it is, is looked up at each call
            elif type(own) is not type(traced) or (kind_of(own) is How.VALUE and not _equal(own, traced)):
                return Rehearsed({}, f"result {place} is {own!r:.40}, and {traced!r:.40} in the trace")
        targets: dict[int, Tensor | None] = {}
        for place, (where, is_grad) in self._effects.writes().items():
            owner = tensor_at(where, tensors)
            targets[place] = before.gradient_of(owner) if is_grad else owner
        new = {place: tensor_at(where, tensors) for place, where in self._effects.gradients().items()}
        targets |= {place: owner._grad for place, owner in new.items()}
        written: list[tuple[Tensor, Array]] = []
        for place, target in targets.items():
            if target is None:
                return Rehearsed({}, f"it stores no {self._names[place]}")
            outputs[place] = np.array(fetched(target))
            written.append((target, outputs[place]))
        with_gradient = {id(owner) for owner in new.values()}
        outside = {id(tensor._root) for tensor in (*tensors, *self._outside)}
        own = {id(leaf._root) for leaf in found if isinstance(leaf, Tensor)} - outside
        cleared = {id(tensor_at(where, tensors)) for where in self._effects.cleared()}
        for reference, gradient in before.gradients.values():
            tensor = reference()
            if tensor is None or id(tensor._root) in own or id(tensor) in with_gradient:
                continue
            if tensor._grad is not gradient and not (id(tensor) in cleared and tensor._grad is None):
                return Rehearsed(outputs, f"it stores a gradient of a {tensor.spec}, and the trace does not")
        return Rehearsed(outputs, _unwritten(written, own, before))


def _unwritten(written: list[tuple[Tensor, Array]], own: set[int], before: _Before) -> str | None:
    """Memory that the function has written, and its graph would not, as text.

    Args:
        written: the targets of the graph's writes, with the new values.
        own: the roots that the function has made itself.
    """
    after = [(root, np.array(fetched(root), order="K")) for root, _ in before.written_to()]
    before.put_back()
    for target, value in written:
        if not target._value.flags.writeable:
            return f"it cannot write to a {target.spec}, and the trace does"
        np.copyto(target._value, value)
    for root, value in after:
        if id(root) not in own and root._value.tobytes() != value.tobytes():
            return f"it writes to the memory of a {root.spec}, and the trace does not, or elsewhere"
    return None


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) or (a != a and b != b)


def changes(names: Sequence[str]) -> str:
    """The reason for refusing a function that changes variables."""
    return f"it changes {', '.join(f'`{name}`' for name in names)}, which cannot be put back"


@contextmanager
def _as_they_were(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Restore the place of tensors on the tape, their hooks, and whether they require gradients.

    In the `with` block, a recorded result is a leaf: its tape is not used up by a backward in it.
    """
    saved = [
        (tensor, tensor._entry, tensor._grad, tensor._requires_grad, list(getattr(tensor, "_hooks", ())))
        for tensor in tensors
    ]
    try:
        for tensor, entry, *_ in saved:
            if entry is not None:
                tensor._entry = tensor._grad = None
        yield
    finally:
        for tensor, entry, gradient, needs, hooks in saved:
            tensor._requires_grad = needs
            if entry is not None:
                tensor._entry, tensor._grad = entry, gradient
            if hasattr(tensor, "_hooks"):
                tensor._hooks[:] = hooks
