"""Rematerialisation (gradient checkpointing): saved values are dropped, and recomputed when `backward` needs them.

Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174; the technique is that of PyTorch's
`checkpoint`. The tape of a function is recorded as always and then *stripped*: every value saved by an entry becomes
a ghost, which has only shape and type. When `backward` arrives at one of the entries, the function runs again
and records the same entries. Their values are put into the first ones, whose place in the history is unchanged. In a
graph the second run starts from `barrier`s, views of the arguments that keep common subexpressions from undoing it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence

from ..autograd.tape import Overwritten, leaf_of, overwritten, refuse_overwritten
from ..errors import AutogradError
from ..interpreters import set_grad_enabled, twin
from ..ir import Primitive, Source
from ..tensor import TapeEntry, Tensor, ghost, with_value


class Recomputation:
    """The data needed to recompute the values of some entries.

    Args:
        name: of the function, for messages.
        again: runs the function, and returns its entries as `recorded_since` does.
        entries: of the first run; their values are dropped.
        reads: the free tensors that its operations read, each with the line that did; recorded or not, because
            everything computed from them is recomputed.
    """

    def __init__(
        self,
        name: str,
        again: Callable[[], list[TapeEntry]],
        entries: list[TapeEntry],
        reads: Iterable[tuple[Tensor, Source | None]],
    ) -> None:
        self.name, self.again, self.entries = name, again, entries
        self.primitives = [entry.primitive for entry in entries]
        self.reads = [(weakref.ref(tensor), tensor._version, source) for tensor, source in reads]
        for entry in entries:
            _strip(entry)
            entry.recompute = self.restore

    def restore(self) -> None:
        """Give the entries their values."""
        for reference, version, source in self.reads:
            tensor = reference()
            if tensor is not None and tensor._version != version:
                raise overwritten(self.name, "something that it reads", tensor, source)
        previous = set_grad_enabled(True)
        try:
            made = self.again()
        finally:
            set_grad_enabled(previous)
        if [entry.primitive.name for entry in made] != [primitive.name for primitive in self.primitives]:
            raise AutogradError(
                "MT406",
                f"the checkpointed {self.name} recorded other operations when it ran again",
                why=f"its {len(self.primitives)} recorded operations and the {len(made)} of now differ, so "
                "the present values are not those that the gradient needs",
                fix="let it depend on its arguments alone, not on what may change between forward and backward",
            )
        for entry, again in zip(self.entries, made, strict=True):
            entry.recompute = None
            if entry.inputs is not None:
                _refill(entry, again)


def recorded_since(outputs: Sequence[Tensor], serial: int) -> list[TapeEntry]:
    """Return the entries behind some results that are no older than a serial number, in program order."""
    found: dict[int, TapeEntry] = {}
    pending = [output._entry for output in outputs]
    while pending:
        entry = pending.pop()
        if entry is not None and entry.serial >= serial and entry.serial not in found:
            found[entry.serial] = entry
            refuse_overwritten(entry)  # each input has its history of then
            pending += [tensor._entry for tensor in entry.inputs or ()]
    return [found[serial] for serial in sorted(found)]


def _strip(entry: TapeEntry) -> None:
    assert entry.inputs is not None
    leaves = [leaf_of(each) for each in entry.inputs]
    entry.inputs = tuple(map(ghost, leaves))
    kept = zip(leaves, entry.inputs, entry.versions, strict=True)
    entry.versions = tuple([version if own is leaf else 0 for leaf, own, version in kept])
    shade = with_value(entry.output.spec)  # a saved output has no entry: `ghost` would take it for a leaf
    shade._requires_grad = True
    entry.output, entry.output_version = shade, shade._version
    if entry.primitive.kind == "custom":  # its rule may keep values alive
        entry.primitive = Primitive(entry.primitive.name, "custom", entry.primitive.infer, entry.primitive.evaluate)


def _refill(entry: TapeEntry, again: TapeEntry) -> None:
    """Move the values of one entry into another; both have recorded the same operation."""
    if again.recompute is not None:  # of a checkpoint within the checkpoint
        again.recompute()
    assert entry.inputs is not None and again.inputs is not None
    entry.primitive = again.primitive
    inputs, versions = list(entry.inputs), list(entry.versions)
    for index, (old, new) in enumerate(zip(entry.inputs, again.inputs, strict=True)):
        is_leaf = old._entry is None and old._requires_grad
        if not is_leaf and index in entry.primitive.saves:
            inputs[index] = _with_history(new, old)
            versions[index] = inputs[index]._root._version
    entry.inputs, entry.versions = tuple(inputs), tuple(versions)
    if entry.primitive.saves_output:
        entry.output = _with_history(again.output, entry.output)
        entry.output_version = entry.output._root._version


def _with_history(value: Tensor, history: Tensor) -> Tensor:
    result = value if isinstance(value, Overwritten) else twin(value)
    result._requires_grad, result._entry = history._requires_grad, history._entry
    return result
