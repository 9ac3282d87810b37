"""Drawings of the eager tape: the operations that `backward` would visit, and the values kept for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from minitorch.autograd.tape import key_of
from minitorch.graph.cost import FLOPS, flops, transcendentals
from minitorch.graph.text import value_text
from minitorch.ir import Node, Spec
from minitorch.tensor import TapeEntry, Tensor

from ..colours import INPUT, OUTPUT, PARAMETER, family_of
from .drawing import NO_WORK, Arrow, Drawing, Mark, Work
from .graphs import IMPLIED, described, value

UNKNOWN, FREED = "·", "…"  # operands that the tape does not know, or has freed
BUNDLE = "custom"  # the kind of marks for functions with a hand-written gradient


def _entries(roots: Sequence[Tensor]) -> list[TapeEntry]:
    """All entries that some tensors depend on, the oldest first."""
    seen: dict[int, TapeEntry] = {}
    pending = [root._entry for root in roots if root._entry is not None]
    while pending:
        entry = pending.pop()
        if entry.serial not in seen:
            seen[entry.serial] = entry
            pending += [tensor._entry for tensor in _operands(entry) if tensor._entry is not None]
    return [seen[serial] for serial in sorted(seen)]


def _operands(entry: TapeEntry) -> tuple[Tensor, ...]:
    """The operands of an entry.

    A function with a hand-written gradient has an entry for each output, and one for the whole, which is left out.
    """
    inputs = entry.inputs or ()
    if entry.primitive.kind == BUNDLE and len(inputs) == 1:
        whole = inputs[0]._entry
        if whole is not None and whole.primitive.kind == BUNDLE and whole.primitive.name == entry.primitive.name:
            return whole.inputs or ()
    return inputs


def _kept(entry: TapeEntry) -> str:
    """The values that the tape keeps for an operation's gradient, as text."""
    held = [
        f"input {place} ({tensor.nbytes:,} bytes)" for place, tensor in enumerate(_operands(entry)) if _is_held(tensor)
    ]
    if entry.primitive.saves_output:
        held.append(f"the output ({entry.output.nbytes:,} bytes)")
    return ", ".join(held) or "nothing"


def _spec_of(entry: TapeEntry, known: Mapping[int, Spec]) -> Spec | None:
    """Shape and type of an entry's result; unknown once backward has freed it."""
    output: Tensor | None = entry.output
    return known.get(entry.serial) if output is None else output.spec


def _label(entry: TapeEntry, operands: Sequence[str]) -> str:
    """An entry as a listing writes a node, without shape and type."""
    params = [f"{name}={value_text(value)}" for name, value in entry.params.items() if name not in IMPLIED]
    known = [*operands, *params] if entry.inputs is not None else [FREED]
    return f"{entry.primitive.name}({', '.join(known)})"


def _is_held(tensor: Tensor) -> bool:
    return not isinstance(tensor._value, Spec)


def _counted(entry: TapeEntry, inputs: Sequence[Tensor], spec: Spec | None) -> Work:
    """The work of an entry; none of custom functions and freed entries."""
    primitive = entry.primitive
    if entry.inputs is None or spec is None or primitive.kind not in FLOPS:
        return NO_WORK
    node = Node(primitive, tuple(Node(primitive, (), {}, each.spec) for each in inputs), entry.params, spec)
    different = {} if primitive.is_view else {key_of(each): each.nbytes for each in inputs}
    written = 0 if primitive.is_view else spec.nbytes
    return Work(flops(node), transcendentals(node), sum(different.values()), written)


class _Sketch:
    """A drawing of the tape under construction."""

    def __init__(self, roots: Mapping[str, Tensor], names: Mapping[int, str]) -> None:
        self.names = names
        self.entries = _entries(list(roots.values()))
        self.numbers = {entry.serial: number for number, entry in enumerate(self.entries)}
        self.specs = {root._entry.serial: root.spec for root in roots.values() if root._entry is not None}
        self.leaves: dict[int, Mark] = {}
        self.unnamed = {"leaf": count(), "data": count()}
        self.marks: list[Mark] = []
        self.arrows: list[Arrow] = []

    def operand(self, tensor: Tensor) -> tuple[str, str | None]:
        """The name of an operand, and the id of its mark, if it has one."""
        if tensor._entry is not None:
            number = self.numbers[tensor._entry.serial]
            return f"%{number}", f"n{number}"
        if not (tensor._requires_grad or _is_held(tensor)):
            return UNKNOWN, None
        if id(tensor) not in self.leaves:
            role, word = (PARAMETER, "leaf") if tensor._requires_grad else (INPUT, "data")
            name = self.names.get(id(tensor), "") or f"{word}{next(self.unnamed[word])}"
            self.leaves[id(tensor)] = value(role, name, name, tensor.spec, f"i{len(self.leaves)}")
            self.marks.append(self.leaves[id(tensor)])
        mark = self.leaves[id(tensor)]
        return mark.name, mark.id

    def operation(self, entry: TapeEntry) -> None:
        """Draw an entry."""
        found = [self.operand(tensor) for tensor in _operands(entry)]
        spec, id = _spec_of(entry, self.specs), f"n{self.numbers[entry.serial]}"
        work = _counted(entry, _operands(entry), spec)
        details = (
            *(described(spec) if spec is not None else ()),
            *work.details,
            ("kept for backward", _kept(entry) if entry.inputs is not None else "nothing any more"),
            ("line", "not known: eager mode notes none"),
        )
        self.marks.append(
            Mark(
                id,
                family_of(entry.primitive.kind).name,
                f"%{self.numbers[entry.serial]}",
                _label(entry, [text for text, _ in found]),
                "freed" if spec is None else str(spec),
                details,
                work=work,
            )
        )
        self.arrows += [Arrow(tail, id) for tail in dict.fromkeys(tail for _, tail in found) if tail is not None]

    def result(self, place: int, name: str, root: Tensor) -> None:
        """Draw a tensor whose tape it is."""
        _, tail = self.operand(root)
        self.marks.append(value(OUTPUT, name, name, root.spec, f"o{place}"))
        if tail is not None:
            self.arrows.append(Arrow(tail, f"o{place}"))

    def notes(self) -> tuple[str, ...]:
        """The notes under the picture."""
        found = ["the arrows show the way forward; backward goes the other way"]
        if not self.entries:
            found = ["there is nothing on the tape: nothing that this was computed from requires a gradient"]
        if any(UNKNOWN in mark.label for mark in self.marks):
            found.append(f"{UNKNOWN} is an operand that needs no gradient, and whose value the tape does not keep")
        if any(entry.inputs is None for entry in self.entries):
            found.append(f"{FREED}: an earlier backward has freed its operands")
        return tuple(found)


def of_tape(roots: Mapping[str, Tensor], names: Mapping[int, str] | None = None) -> Drawing:
    """The drawing of the tape behind some tensors.

    Args:
        roots: the tensors, by name.
        names: names of leaves, by `id`.

    An operation is there if its result requires a gradient. Operands that do not are drawn if the tape holds their
    value, and stand as ``·`` otherwise: the tape does not know them any more.

    Example:
        >>> import minitorch as mt
        >>> w = mt.ones(3, requires_grad=True)
        >>> drawing = of_tape({"loss": (w * w).exp()}, {id(w): "w"})
        >>> [(mark.kind, mark.heading) for mark in drawing.marks]
        [('parameter', 'w'), ('pointwise', '%0 = mul(w, w)'), ('pointwise', '%1 = exp(%0)'), ('output', 'loss')]
        >>> print(dict(drawing.marks[1].details)["kept for backward"])
        input 0 (12 bytes), input 1 (12 bytes)
    """
    sketch = _Sketch(roots, names or {})
    for entry in sketch.entries:
        sketch.operation(entry)
    for place, (name, root) in enumerate(roots.items()):
        sketch.result(place, name, root)
    length = len(sketch.entries)
    title = f"the tape of {', '.join(roots)}: {length} operation{'s' if length != 1 else ''}"
    return Drawing(title, tuple(sketch.marks), tuple(sketch.arrows), notes=sketch.notes())
