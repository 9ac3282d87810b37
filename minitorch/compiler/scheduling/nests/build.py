"""From a group of roots to loops: values that are read from memory, accumulated, kept in a scratch row, stored.

The members of a group are laid out in *levels*: a member that needs a reduction's result comes one level after it.
Members of one level with the same columns share a loop, and their common subexpressions are computed once. A value that
a later loop needs of an earlier one is kept in a scratch row if it is expensive and a row is short enough, and else
rematerialised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ....dtypes import DType, int8, uint8
from ....ir import Node
from ....primitives import constant
from ...fusion.cost_model import is_expensive
from ...fusion.fusion_groups import Group, Member
from ...fusion.roots import AGAIN, inlined, is_stored_already
from ...lengths import Length, Lengths, within_one
from ...loop_ir.expressions import ALWAYS, Expression, Inside, Load, Scratch, Total, computed_in, converted
from ...loop_ir.index import Division, Index, Variable, extent_of, linear, unravelled, variable
from ...loop_ir.loops import Bounds, Buffer, Keep, Loop, LoopKernel, Nest, Reduce, Statement, Write
from ...loop_ir.lower import At, Lowering, Reader
from ...target import Target
from ..contractions import product_of
from ..lanes import Layout

MOST_SCRATCH = 1 << 20  # bytes of a scratch row: it should stay in a cache that no other core uses


@dataclass
class _Place:
    """The place of a member in the nest."""

    member: Member
    at: At  # the loop variables of its space
    columns: tuple[Variable, ...]
    level: int
    slot: int  # of its accumulator or scratch row; -1 without one

    @property
    def key(self) -> tuple[int, bool, tuple[Variable, ...]]:
        """The loop that it belongs to; the one without columns comes first in its level."""
        return self.level, bool(self.columns), self.columns


class _Builder:
    """Builder of one group's nest. `stored` are the roots that have to end in memory."""

    def __init__(
        self,
        group: Group,
        roots: dict[Node, str],
        stored: set[Node],
        rows_joined: int,
        columns_joined: bool,
        most_scratch: int = MOST_SCRATCH,
    ) -> None:
        self.most_scratch = most_scratch
        self.group = group
        self.roots = roots
        self.stored = stored
        self.buffers: dict[Node, int] = {}
        self.places: dict[Node, _Place] = {}
        self.scratch: list[tuple[int, DType]] = []
        self.totals = 0
        lengths = group.rows if group.rows is not None else group.members[0].space
        self.row_indices = _joined(lengths, rows_joined, "i")
        self.columns_joined = columns_joined
        self.lowerings: dict[object, Lowering] = {}

    def build(self) -> Nest:
        """Return the nest."""
        for member in self.group.members:
            self._place(member)
        loops: dict[tuple[int, bool, tuple[Variable, ...]], list[Statement]] = {}
        for member in self.group.members:
            place = self.places[member.node]
            statements = loops.setdefault(place.key, [])
            if member.is_reduction:
                value = self._lowering(place).term(member.node, place.at)
                reduction = "reduce_sum" if member.is_contraction else member.node.primitive.name
                statements.append(Reduce(place.slot, reduction, value))
                if member.node in self.stored:
                    after = loops.setdefault((place.level + 1, False, ()), [])
                    after.append(self._store(member.node, self._row_of(member), self._total(place)))
                continue
            value = self._lowering(place).element(member.node, place.at)
            if member.node in self.stored:
                statements.append(self._store(member.node, place.at, value))
            if place.slot >= 0:
                statements.append(Keep(place.slot, self._within_row(member, place.at), value))
        return Nest(
            _variables_of(self.row_indices),
            tuple(
                Loop(key[2], tuple(statements))
                for key, statements in sorted(loops.items(), key=_loop_order)
                if statements
            ),
            tuple(self.scratch),
        )

    def _place(self, member: Member) -> None:
        at: list[Index] = [Index()] * len(member.space)
        for dim, index in zip(member.rows, self.row_indices, strict=True):
            at[dim] = index
        lengths = tuple(member.space[dim] for dim in member.columns)
        letter = "e" if member.is_outer else "j"  # its columns are those of a result, and share no loop with a sum
        column_indices = _joined(lengths, len(lengths) if self.columns_joined else 0, letter)
        for dim, index in zip(member.columns, column_indices, strict=True):
            at[dim] = index
        columns = _variables_of(column_indices)
        own = dict(zip(_names(member), at, strict=True))
        level = 0
        for root, where in member.reads:
            known = self.places.get(root)
            if known is None:
                continue
            if known.member.is_reduction:
                level = max(level, known.level + 1)
                continue
            moved = tuple(index.substitute({k: v for k, v in own.items() if k is not None}) for index in where)
            if moved == known.at or not known.columns:
                level = max(level, known.level)
            else:
                level = max(level, known.level + 1)
                self._keep(known)
        place = self.places[member.node] = _Place(member, tuple(at), columns, level, -1)
        for root, _ in member.reads:
            known = self.places.get(root)
            if known is not None and known.columns and not known.member.is_reduction and known.level < level:
                self._keep(known)
        if member.is_reduction:
            place.slot = self.totals
            self.totals += 1

    def _keep(self, place: _Place) -> None:
        """Give a row that a later loop reads a scratch row, if it is worth one."""
        length = extent_of(place.columns)
        node = place.member.node
        heavy = self.roots[node].startswith(AGAIN) or any(map(is_expensive, inlined(node, self.roots)))
        if place.slot < 0 and heavy and length * place.member.node.dtype.itemsize <= self.most_scratch:
            place.slot = len(self.scratch)
            self.scratch.append((length, place.member.node.dtype))

    def _total(self, place: _Place) -> Expression:
        """Return a reduction's result: contractions sum 16-bit floats in float32, and round once."""
        node = place.member.node
        dtype = computed_in(node.dtype) if place.member.is_contraction else node.dtype
        return converted(Total(dtype, place.slot), node.dtype)

    def _row_of(self, member: Member) -> At:
        axes = dict(zip(member.row_axes, self.row_indices, strict=True))
        return tuple(axes.get(axis, Index()) for axis in range(len(member.node.shape)))

    def _within_row(self, member: Member, at: At) -> Index:
        columns = member.columns
        return linear((at[dim] for dim in columns), tuple(member.space[dim] for dim in columns))

    def _store(self, node: Node, at: At, value: Expression) -> Write:
        return Write(self._buffer(node), linear(at, node.shape), value)

    def _buffer(self, node: Node) -> int:
        return self.buffers.setdefault(node, len(self.buffers))

    def _lowering(self, place: _Place) -> Lowering:
        """Return how the statements of one loop read stored values; they share it, and so their computations."""
        known = self.lowerings.get(place.key)
        if known is None:

            def read(node: Node) -> Reader | None:
                return self._reader(node, place)

            known = self.lowerings[place.key] = Lowering(read)
        return known

    def _within_kernel(self, place: _Place, reading: _Place) -> Reader | None:
        """Return how a loop reads another member; None if it is recomputed, being cheap or in the same loop."""
        node, slot = place.member.node, place.slot
        if place.member.is_reduction:

            def total(at: At, inside: Inside = ALWAYS) -> Expression:
                return self._total(place)

            return total
        if slot < 0 or place.key == reading.key:
            return None

        def kept(at: At, inside: Inside = ALWAYS) -> Expression:
            return Scratch(node.dtype, slot, self._within_row(place.member, at))

        return kept

    def _reader(self, node: Node, reading: _Place) -> Reader | None:
        known = self.places.get(node)
        if known is not None:
            return self._within_kernel(known, reading)
        if node in self.roots or is_stored_already(node):
            number = self._buffer(node)

            def load(at: At, inside: Inside = ALWAYS) -> Expression:
                return Load(node.dtype, number, linear(at, node.shape), inside)

            return load
        return None


def _names(member: Member) -> list[Variable | None]:
    return [variable(f"d{number}", length).as_variable for number, length in enumerate(member.space)]


def _loop_order(item: tuple[tuple[int, bool, tuple[Variable, ...]], list[Statement]]) -> tuple[int, bool]:
    return item[0][0], item[0][1]


def _joined(lengths: tuple[int, ...], count: int, letter: str) -> At:
    """Return loop variables for some dimensions, the first `count` of them run through by one variable."""
    if count < 2 or 0 in lengths or not within_one(lengths[:count]):
        return tuple(variable(f"{letter}{number}", length) for number, length in enumerate(lengths))
    together = unravelled(variable(f"{letter}0", math.prod(lengths[:count])), lengths[:count])
    return together + tuple(variable(f"{letter}{number}", lengths[number]) for number in range(count, len(lengths)))


def _variables_of(indices: At) -> tuple[Variable, ...]:
    """Return the variables in some indices, in order."""
    found: dict[Variable, None] = {}
    pending = list(indices)
    while pending:
        index = pending.pop(0)
        for atom, _ in index.terms:
            if isinstance(atom, Variable):
                found[atom] = None
            elif isinstance(atom, Division):
                pending.insert(0, atom.index)
    return tuple(found)


def _lengths(builder: _Builder, nest: Nest) -> Lengths | None:
    """Return the lengths that vary of the arrays and loops of a nest; None if none does."""
    columns = [column for loop in nest.loops for column in loop.columns]
    numbers = [each.extent for each in (*nest.rows, *columns)]
    numbers += [length for node in builder.buffers for length in node.shape]
    return next((each.lengths for each in numbers if isinstance(each, Length)), None)


def _is_affine(nest: Nest) -> bool:
    """Return whether no index needs a division."""
    for _, statement in nest.statements:
        indices = [] if isinstance(statement, Reduce) else [statement.index]
        for part in statement.value.all_parts:
            indices += [index for index in (getattr(part, "index", None),) if index is not None]
            indices += [index for _, index, _ in getattr(part, "inside", ALWAYS).bounds]
        if any(isinstance(atom, Division) for index in indices for atom, _ in index.terms):
            return False
    return True


def bounds_of(node: Node, roots: dict[Node, str]) -> Bounds | None:
    """Return the least and the largest number of an array of bytes, where the type has others."""
    if node.dtype not in (uint8, int8):
        return None
    from .bounds import known_bounds

    return known_bounds(node, roots)


def build_kernel(
    name: str, group: Group, roots: dict[Node, str], stored: set[Node], target: Target, cut_long: bool = True
) -> tuple[LoopKernel, list[Node]]:
    """Return the loops of a group, and the node of each buffer; a long reduction is cut into parts.

    One loop instead of several runs through neighbouring dimensions if that makes no index harder to compute.
    """
    rows = len(group.rows) if group.rows is not None else len(group.members[0].space)
    columns = max(len(member.columns) for member in group.members)
    choices = [(r, c) for r in dict.fromkeys((rows, rows - 1, 0)) for c in ((True, False) if columns > 1 else (False,))]
    most_scratch = 0 if group.tiles else MOST_SCRATCH  # in tiles, expensive values are computed once per tile
    for rows_joined, columns_joined in choices:
        builder = _Builder(group, roots, stored, rows_joined, columns_joined, most_scratch)
        nest = builder.build()
        if _is_affine(nest):
            break
    if nest.scratch and Layout(nest, target).scratch_bytes(nest) > MOST_SCRATCH:
        builder = _Builder(group, roots, stored, rows_joined, columns_joined, most_scratch=0)
        nest = builder.build()
    has_columns = any(loop.columns for loop in nest.loops)
    if has_columns and not group.tiles and product_of(nest) is None:
        from .unroll import written_out

        nest = written_out(nest)
    lengths = _lengths(builder, nest)
    if lengths is not None:
        builder.buffers.setdefault(lengths.node, len(builder.buffers))
    nodes = list(builder.buffers)
    # Of the stored values, not of the statements: a value without elements may have lost its statements.
    written = {builder.buffers[member.node] for member in group.members if member.node in stored}
    nests: tuple[Nest, ...] = (nest,)
    phases: tuple[int, ...] = (0,)
    if cut_long and has_columns and not group.tiles and lengths is None:
        from .split import split

        cut = split(nest, len(nodes), target)
        if cut is not None:
            nests, phases = (*cut.parts, cut.whole), (0,) * len(cut.parts) + (1,)
            written.update(range(len(nodes), len(nodes) + len(cut.partials)))
            nodes += cut.partials
    described = tuple(
        Buffer(
            node.shape,
            node.dtype,
            number in written,
            node.primitive is constant and is_stored_already(node),
            bounds_of(node, roots),
            lengths is not None and node is lengths.node,
        )
        for number, node in enumerate(nodes)
    )
    return LoopKernel(name, described, nests, (0,) * len(nests), phases), nodes
