"""Reverse-mode differentiation: `propagate` walks the tape, `record_many` records functions of several outputs.

The tape is the chain of `TapeEntry` objects that hangs on each result. The walk visits an entry only after all entries
that use its output, in reverse topological order. Every entry is younger than its inputs, so the order of serial
numbers is topological. There is no recursion, and apart from the sort the time is linear in the program's length.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, TypeVar

import numpy as np

from ..dtypes import DType, float32
from ..errors import AutogradError
from ..interpreters import Span, current_staging, for_one_line, set_grad_enabled, set_handler, twin
from ..ir import Node, Primitive, Shape, Source, Spec, user_source
from ..primitives import add, mul
from ..tensor import Batched, TapeEntry, Tensor, as_of, fetched, ghost, with_value

Function = TypeVar("Function", bound=Callable[..., Any])


def _reachable(roots: Sequence[Tensor]) -> list[TapeEntry]:
    """Return all entries that the roots depend on, youngest first."""
    seen: dict[int, TapeEntry] = {}
    pending = [root._entry for root in roots if root._entry is not None]
    while pending:
        entry = pending.pop()
        if entry.serial in seen:
            continue
        seen[entry.serial] = entry
        if entry.inputs is None:
            raise AutogradError(
                "MT403",
                f"the recorded {entry.primitive.name} was freed by an earlier backward",
                why="a backward drops the saved values as it goes, to give the memory back",
                fix="compute the result again, or call the first backward with retain_graph=True",
            )
        refuse_overwritten(entry)
        for tensor in entry.inputs:
            if tensor._entry is not None:
                pending.append(tensor._entry)
    return [seen[serial] for serial in sorted(seen, reverse=True)]


class Overwritten(Tensor):
    """In place of a saved value that was overwritten: its history, and an error for a rule that reads the value.

    Attributes:
        leaf: the overwritten tensor itself if it is a leaf, which the gradient is for; else None.
    """

    __slots__ = ("_error", "_spec", "leaf")
    leaf: Tensor | None

    def __init__(self, entry: TapeEntry, what: str, tensor: Tensor, version: int) -> None:
        self._spec, self._error = tensor.spec, overwritten(entry.primitive.name, what, tensor)
        self._view, self._version = None, version
        self._requires_grad, self._entry = as_of(tensor, version)
        known = tensor.leaf if isinstance(tensor, Overwritten) else tensor
        self.leaf = known if self._requires_grad and self._entry is None else None

    @property
    def _value(self) -> Any:
        raise self._error.again()

    @property
    def shape(self) -> Shape:
        """The length of each dimension."""
        return self._spec.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._spec.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._spec.shape)


def refuse_overwritten(entry: TapeEntry) -> None:
    """Put errors in place of values that were overwritten since the operation read them."""
    primitive, inputs = entry.primitive, entry.inputs
    if primitive.saves and inputs is not None:
        for index, (tensor, version) in enumerate(zip(inputs, entry.versions, strict=True)):
            if index in primitive.saves and tensor._root._version != version:
                changed = Overwritten(entry, f"input {index}", tensor, version)
                entry.inputs = inputs = (*inputs[:index], changed, *inputs[index + 1 :])
    if primitive.saves_output and entry.output._root._version != entry.output_version:
        entry.output = Overwritten(entry, "the output", entry.output, entry.output_version)


def keep_read(entry: TapeEntry, root: Tensor) -> None:
    """Copy what an operation read of a memory that is about to be overwritten, for its gradient."""
    assert entry.inputs is not None
    inputs, versions = list(entry.inputs), list(entry.versions)
    for index, tensor in enumerate(inputs):
        if index not in entry.primitive.saves or tensor._root is not root:
            continue
        others = [each for place, each in enumerate(inputs) if place != index]
        if entry.primitive is mul and not others[0]._requires_grad:
            continue  # of a product with a constant, only the constant is read
        inputs[index], versions[index] = copied(tensor), 0
    entry.inputs, entry.versions = tuple(inputs), tuple(versions)


def copied(tensor: Tensor) -> Tensor:
    """Return a tensor with the same value and history that owns its memory."""
    own = twin(tensor)
    staging = current_staging()
    own._view = None
    if hasattr(own, "_layout"):
        del own._layout
    if isinstance(tensor._value, Batched):
        own._value = Batched(copied(tensor._value.tensor), tensor._value.layer)
    else:
        own._value = np.array(fetched(tensor), order="C") if staging is None else staging.node_of(tensor)
    own._requires_grad, own._entry = tensor._requires_grad, tensor._entry
    return own


def overwritten(name: str, what: str, tensor: Tensor, read_at: Source | None = None) -> AutogradError:
    """Return the error for a saved value that was overwritten."""
    return AutogradError(
        "MT402",
        f"{what} of the recorded {name}, {tensor.spec}, was overwritten by an in-place operation",
        where=str(user_source()) + (f"; it was read at {read_at}" if read_at else ""),
        why="the gradient has to be computed with the value that the operation saw",
        fix="write to a copy (x.clone()), or do the in-place write after backward",
    )


def _rewrap(entry: TapeEntry) -> Tensor:
    """Return an entry's output as a tensor that continues the tape, for rules that differentiate through it."""
    output = entry.output if isinstance(entry.output, Overwritten) else twin(entry.output)
    output._requires_grad = True
    output._entry = entry
    return output


def _by_custom(entry: TapeEntry, cotangent: Tensor, asked: list[bool]) -> Sequence[Tensor | None]:
    """Return the wanted cotangents of an entry's inputs, by a hand-written rule."""
    assert entry.primitive.gradient is not None and entry.inputs is not None
    custom: Any = entry.primitive.gradient[0]  # gives all gradients at once
    gradients: Sequence[Tensor | None] = custom(cotangent, _rewrap(entry), *entry.inputs, asked=asked)
    return gradients


def _by_rules(entry: TapeEntry, cotangent: Tensor, asked: list[bool]) -> Sequence[Tensor | None]:
    """Return the wanted cotangents of an entry's inputs, by the primitive's rules."""
    primitive, inputs, rules = entry.primitive, entry.inputs, entry.primitive.gradient
    assert rules is not None and inputs is not None
    output = _rewrap(entry)
    by_position = primitive.variadic and len(rules) == 1  # one rule for all inputs, called with the index
    found: list[Tensor | None] = []
    for index, wanted in enumerate(asked):
        rule = rules[min(index, len(rules) - 1)] if wanted else None
        extra = {"index": index} if by_position else {}
        found.append(None if rule is None else rule(cotangent, output, *inputs, **entry.params, **extra))
    return found


class Cotangents(Tensor):
    """The cotangents of a function's outputs by position, gathered in the backward pass."""

    __slots__ = ("parts",)

    def __init__(self, parts: dict[int, Tensor]) -> None:
        self._hold(_NO_VALUE)
        self.parts = parts

    def merged(self, other: Cotangents) -> Cotangents:
        """Merge both; cotangents of the same output are added."""
        parts = dict(self.parts)
        for position, part in other.parts.items():
            parts[position] = _accumulate(parts.get(position), part)
        return Cotangents(parts)


_NO_VALUE = Spec((), float32)

# For a function of several outputs: the cotangents of those that the loss depends on, the outputs whose values were
# saved, and the wanted inputs -> the gradients of the inputs.
ManyRule = Callable[[dict[int, Tensor], dict[int, Tensor], list[bool]], Sequence[Tensor | None]]


def record_many(
    name: str,
    inputs: tuple[Tensor, ...],
    outputs: Sequence[Any],
    backward: ManyRule,
    saved_outputs: Container[int] = (),
    without: Container[int] = (),
) -> None:
    """Put a function with any number of outputs on the tape: an entry for the whole, and one per output.

    Args:
        name: for messages.
        inputs: the tensors that `backward` returns gradients for.
        outputs: its results; those of a float type are connected to the tape.
        backward: called once per walk.
        saved_outputs: positions of the outputs whose values `backward` reads.
        without: the `id` of outputs that have no gradient.
    """
    saved: dict[int, Tensor] = {}

    def rule(cotangents: Cotangents, bundle: Tensor, *inputs: Tensor, asked: list[bool]) -> Any:
        again = {position: twin(value) for position, value in saved.items()}
        for position, output in again.items():
            if saved[position]._root._version != versions[position]:
                raise overwritten(name, f"output {position}", saved[position])
            _connect(name, position, output, bundle, saved[position], True)
        return backward(cotangents.parts, again, asked)

    whole = Primitive(name, "custom", no_primitive, no_primitive, gradient=(rule,))
    bundle = with_value(_NO_VALUE)
    bundle._requires_grad = True
    bundle._entry = TapeEntry(whole, inputs, {}, with_value(_NO_VALUE))
    for position, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            continue  # a function may return anything beside its tensors
        value = twin(output) if position in saved_outputs else ghost(output)
        if position in saved_outputs:
            saved[position] = value
        if id(output) not in without:
            _connect(name, position, output, bundle, value, position in saved_outputs)
    versions = {position: value._root._version for position, value in saved.items()}


def _connect(name: str, position: int, output: Tensor, bundle: Tensor, value: Tensor, saved: bool) -> None:
    """Make a tensor the output at a position; `value` represents it on the tape, which never points to its results."""
    if not output.dtype.is_floating_point:
        return

    def rule(cotangent: Tensor, output: Tensor, bundle: Tensor, asked: list[bool]) -> Any:
        return [Cotangents({position: cotangent})]

    part = Primitive(name, "custom", no_primitive, no_primitive, gradient=(rule,), saves_output=saved)
    output._requires_grad = value._requires_grad = True
    output._entry = TapeEntry(part, (bundle,), {}, value)


def no_primitive(*arguments: Any, **params: Any) -> Any:
    """Refuse to be called: in place of a shape rule and a definition, of what is on the tape alone."""
    raise TypeError("a custom function is not a primitive: it is on the tape, and in no graph")


def _accumulate(previous: Tensor | None, gradient: Tensor) -> Tensor:
    if previous is None:
        return gradient
    if isinstance(previous, Cotangents):
        assert isinstance(gradient, Cotangents)
        return previous.merged(gradient)
    return add(previous, gradient)


def _run_hooks(hooks: Sequence[Any] | None, gradient: Tensor) -> Tensor:
    for hook in tuple(hooks or ()):
        changed = hook(gradient)
        gradient = gradient if changed is None else changed
    return gradient


class LeafHooks(list[Any]):
    """The hooks of a leaf, in the order of their calls.

    Attributes:
        changes: how often any leaf's hooks have changed, so that guards need not compare them at every call.
    """

    changes = 0


def hooks_of(leaf: Tensor) -> tuple[Any, ...]:
    """Return the present hooks of a leaf."""
    return tuple(getattr(leaf, "_hooks", ()))


def _leaf_hooks(leaf: Tensor, outside: bool) -> tuple[Any, ...]:
    """Return the hooks to run for a leaf: for a recording's stand-in for an argument, the argument's and its own."""
    staging = current_staging()
    if staging is None:
        return hooks_of(leaf)
    argument = staging.arguments.get(id(leaf))
    if argument is not None:
        return (*hooks_of(argument), *hooks_of(leaf)) if outside else hooks_of(leaf)
    return hooks_of(leaf) if outside or isinstance(leaf._value, Node) else ()


def _arrived(entry: TapeEntry, cotangent: Tensor) -> Tensor:
    """Run the hooks of an output whose gradient is complete, and keep it as ``grad``."""
    cotangent = _run_hooks(entry.hooks, cotangent)
    if entry.retain is not None:
        entry.retain(cotangent)
    return cotangent


def propagate(
    roots: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    *,
    retain_graph: bool,
    create_graph: bool,
    wanted: set[int] | None = None,
    stop_at_wanted: bool = False,
    outside_hooks: bool = True,
) -> dict[int, tuple[Tensor, Tensor]]:
    """Walk the tape from the roots, and collect the gradients of the leaves, or of the wanted tensors.

    Args:
        wanted: keys (see `key_of`) of the tensors whose gradients are wanted; None means all leaves. Only
            entries on a way to them are visited.
        stop_at_wanted: do not look for other wanted tensors behind a wanted one.
        outside_hooks: run the hooks of leaves from outside the recording under way; off where the walk is the
            inner part of a longer one.

    Returns:
        The tensor and its gradient, by key.
    """
    pending: dict[int, Tensor] = {}  # by serial of the entry
    leaves: dict[int, tuple[Tensor, Tensor]] = {}
    result: dict[int, tuple[Tensor, Tensor]] = {}

    def give(tensor: Tensor, gradient: Tensor) -> None:
        if tensor._entry is not None:
            serial = tensor._entry.serial
            pending[serial] = _accumulate(pending.get(serial), gradient)
        elif tensor._requires_grad:
            leaf = leaf_of(tensor)
            known = leaves.get(id(leaf))
            leaves[id(leaf)] = (leaf, _accumulate(known and known[1], gradient))

    by_rules, staging = for_one_line(_by_rules), current_staging()
    previous, handler = set_grad_enabled(create_graph), set_handler(None)  # the tape is below handlers
    try:
        order = _reachable(roots)
        useful = None if wanted is None else _on_the_way(order, wanted)
        for root, cotangent in zip(roots, cotangents, strict=True):
            give(root, cotangent)
        for entry in order:
            if entry.serial not in pending:
                continue
            begin, key = len(staging.nodes) if staging else 0, -1 - entry.serial
            cotangent = pending.pop(entry.serial)
            if outside_hooks or wanted is None or key not in wanted:  # else the outer walk arrives there later
                cotangent = _arrived(entry, cotangent)
            if wanted is not None and key in wanted:
                result[key] = (entry.output, cotangent)
            if useful is not None and (entry.serial not in useful or (stop_at_wanted and key in result)):
                continue
            if entry.recompute is not None:
                entry.recompute()
            refuse_overwritten(entry)
            assert entry.inputs is not None
            asked = [
                tensor._requires_grad and (useful is None or _leads(tensor, useful, wanted)) for tensor in entry.inputs
            ]
            gradients_of = _by_custom if entry.primitive.kind == "custom" else by_rules
            for tensor, gradient in zip(entry.inputs, gradients_of(entry, cotangent, asked), strict=True):
                if gradient is not None:
                    give(tensor, gradient)
            if staging and not staging.defers:
                staging.rules.append(Span(entry.serial, begin, len(staging.nodes), entry.serial, entry.serial))
            if not retain_graph:
                entry.inputs = None
                entry.output = None  # type: ignore[assignment]
        for key, (leaf, gradient) in leaves.items():
            result[key] = leaf, _run_hooks(_leaf_hooks(leaf, outside_hooks), gradient)
        return result
    finally:
        set_grad_enabled(previous)
        set_handler(handler)


def key_of(tensor: Tensor) -> int:
    """Return the key of a tensor during a walk: the ``id`` of a leaf, ``-1 - serial`` of a recorded result."""
    return id(leaf_of(tensor)) if tensor._entry is None else -1 - tensor._entry.serial


def leaf_of(tensor: Tensor) -> Tensor:
    """Return the tensor itself, or the leaf that an overwritten value stands for."""
    return tensor.leaf if isinstance(tensor, Overwritten) and tensor.leaf is not None else tensor


def _leads(tensor: Tensor, useful: set[int], wanted: set[int] | None) -> bool:
    """Return whether a gradient given to a tensor reaches a wanted one."""
    assert wanted is not None
    return key_of(tensor) in wanted or (tensor._entry is not None and tensor._entry.serial in useful)


def _on_the_way(order: Sequence[TapeEntry], wanted: set[int]) -> set[int]:
    """Return the serials of the entries from which a wanted tensor is reached through an input."""
    useful: set[int] = set()
    for entry in reversed(order):
        assert entry.inputs is not None
        if any(_leads(tensor, useful, wanted) for tensor in entry.inputs):
            useful.add(entry.serial)
    return useful
