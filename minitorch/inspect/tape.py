"""From the eager tape to a drawing: what `backward` would walk over, and what is kept in memory for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph.cost import FLOPS, flops, transcendentals
from ..graph.text import value_text
from ..ir import Node, Primitive, Spec
from ..tensor import TapeEntry, Tensor
from .colours import INPUT, OUTPUT, PARAMETER, family_of
from .drawing import Arrow, Drawing, Mark
from .graphs import IMPLIED, described, value, work

BUNDLE = "custom"  # the kind of what stands for a function with a gradient of its own


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
    """What an entry was computed from. A function with a gradient of its own has an entry for each of its outputs,
    which all lead to one for the whole; that one is left out."""
    inputs = entry.inputs or ()
    if entry.primitive.kind == BUNDLE and len(inputs) == 1:
        whole = inputs[0]._entry
        if whole is not None and whole.primitive.kind == BUNDLE and whole.primitive.name == entry.primitive.name:
            return whole.inputs or ()
    return inputs


def _kept(entry: TapeEntry) -> str:
    """What the tape holds for the gradient of an operation, in words."""
    held = [
        f"input {place} ({tensor.nbytes:,} bytes)" for place, tensor in enumerate(_operands(entry)) if _is_held(tensor)
    ]
    if entry.primitive.saves_output:
        held.append(f"the output ({entry.output.nbytes:,} bytes)")
    return ", ".join(held) or "nothing"


def _spec_of(entry: TapeEntry, known: Mapping[int, Spec]) -> Spec | None:
    """Shape and type of what an entry computed; not known any more once backward has freed it."""
    output: Tensor | None = entry.output
    return known.get(entry.serial) if output is None else output.spec


def _label(entry: TapeEntry, operands: Sequence[str]) -> str:
    """An entry as listings write a node, without what its shape and type say already."""
    params = [f"{name}={value_text(value)}" for name, value in entry.params.items() if name not in IMPLIED]
    return f"{entry.primitive.name}({', '.join([*operands, *params])})"


def _is_held(tensor: Tensor) -> bool:
    return not isinstance(tensor._value, Spec)


def _counted(
    primitive: Primitive, inputs: Sequence[Tensor], spec: Spec, params: Mapping[str, object]
) -> tuple[int, ...]:
    """FLOPs, exp and the like, bytes read and written; nothing is known of custom functions."""
    if primitive.kind not in FLOPS:
        return 0, 0, 0, 0
    node = Node(primitive, tuple(Node(primitive, (), {}, each.spec) for each in inputs), params, spec)
    moved = (0, 0) if primitive.is_view else (sum(each.nbytes for each in inputs), spec.nbytes)
    return flops(node), transcendentals(node), *moved


def of_tape(roots: Mapping[str, Tensor], names: Mapping[int, str] | None = None) -> Drawing:
    """The tape behind some tensors as a drawing.

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
    names, marks, arrows = names or {}, [], []
    leaves: dict[int, Mark] = {}
    entries = _entries(list(roots.values()))
    numbers = {entry.serial: f"%{number}" for number, entry in enumerate(entries)}
    specs = {root._entry.serial: root.spec for root in roots.values() if root._entry is not None}

    def leaf(tensor: Tensor) -> Mark | None:
        """The mark of a tensor without history, if the tape holds it."""
        if id(tensor) in leaves:
            return leaves[id(tensor)]
        if not (tensor._requires_grad or _is_held(tensor)):
            return None
        role = PARAMETER if tensor._requires_grad else INPUT
        number = sum(mark.kind == role.name for mark in leaves.values())
        name = names.get(id(tensor), f"{'leaf' if tensor._requires_grad else 'data'}{number}")
        mark = value(role, name, name, tensor.spec, f"i{len(leaves)}")
        leaves[id(tensor)] = mark
        marks.append(mark)
        return mark

    for entry in entries:
        operands, number = _operands(entry), numbers[entry.serial]
        texts: list[str] = []
        tails: dict[str, None] = {}
        for tensor in operands:
            if tensor._entry is not None:
                texts.append(numbers[tensor._entry.serial])
                tails[f"n{texts[-1][1:]}"] = None
            elif (found := leaf(tensor)) is not None:
                texts.append(found.name)
                tails[found.id] = None
            else:
                texts.append("·")
        spec = _spec_of(entry, specs)
        freed = entry.inputs is None
        counted = (0, 0, 0, 0) if freed or spec is None else _counted(entry.primitive, operands, spec, entry.params)
        note = "freed by an earlier backward" if freed else _kept(entry)
        marks.append(
            Mark(
                f"n{number[1:]}",
                family_of(entry.primitive.kind).name,
                number,
                _label(entry, texts),
                "freed by backward" if spec is None else str(spec),
                (
                    *(described(spec) if spec is not None else ()),
                    *work(*counted),
                    ("kept for backward", note),
                    ("line", "not known: eager mode notes none"),
                ),
                flops=counted[0],
                transcendentals=counted[1],
                read=counted[2],
                written=counted[3],
            )
        )
        arrows += [Arrow(tail, marks[-1].id) for tail in tails]
    for place, (name, root) in enumerate(roots.items()):
        tail = leaf(root) if root._entry is None else None
        marks.append(value(OUTPUT, name, name, root.spec, f"o{place}"))
        if root._entry is not None:
            arrows.append(Arrow(f"n{numbers[root._entry.serial][1:]}", marks[-1].id))
        elif tail is not None:
            arrows.append(Arrow(tail.id, marks[-1].id))
    title = f"the tape of {', '.join(roots)}: {len(entries)} operation{'s' if len(entries) != 1 else ''}"
    return Drawing(
        title, tuple(marks), tuple(arrows), notes=("the arrows show the way forward; backward goes the other way",)
    )
