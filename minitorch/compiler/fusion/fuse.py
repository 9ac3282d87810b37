"""Kernel fusion: roots that run over the same rows share a kernel.

Every root starts as a kernel of its own: a reduction loops over its operand, anything else over itself. It joins the
kernel of a root that it reads if both run over the same *rows*. Then the values that one row needs are in an
accumulator (a reduction of the row) or in a scratch row. Softmax becomes one kernel in this way: its maximum, its
exponentials, their sum and the quotient all run over the same rows. No operation is known by name.

A group of pointwise roots has no rows yet (`rows` is None). The first reduction that joins decides.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass, field
from typing import Any

from ...ir import Node
from ...primitives.contract import space_of
from ..loop_ir.expressions import ALWAYS, Expression, Inside, Load
from ..loop_ir.index import NOWHERE, Index, Variable, linear, variable
from ..loop_ir.lower import At, Lowering, Reader
from .fusions import ALL_ON, EPILOGUES, ROWS, SIBLINGS
from .roots import LONG, base_of, is_stored_already
from .transient import is_outer, outer_axes

# Rows run in parallel. A root joins no kernel of fewer rows than FEW if it has more columns than MANY (elements of a
# row): alone it has more parallelism. Raising FEW, or lowering MANY, makes more and smaller kernels. For reductions:
FEW_SUMS, MANY_SUMMED = 4, 1 << 15
# and for all other roots:
FEW_ROWS, MANY_COLUMNS = 16, 4096


# A transient contraction that a root is computed from, and for each of its axes the number of the root's row, or None.
TransientRead = tuple[Node, tuple[int | None, ...]]


@dataclass
class Member:
    """A root inside a group.

    Attributes:
        node: the root.
        space: the iteration space: the operand's shape for a reduction, the node's own and the shared dimensions for
            a contraction, else the node's own.
        rows: which dimensions of the space are the rows, in the group's order; all of them while that is open.
        is_outer: whether it is a contraction over transient values. It is computed on the spot, as if it were
            pointwise; its columns are those of its other operand.
        tiles: the contractions that are not stored which it is computed from, and how its rows run through each: for
            every axis the number of the row, or None.
        reads: the roots that it reads, with the indices in its own loop variables ``d0, d1, ...``.
    """

    node: Node
    space: tuple[int, ...]
    rows: tuple[int, ...]
    is_outer: bool = False
    tiles: frozenset[TransientRead] = frozenset()
    reads: tuple[tuple[Node, At], ...] = ()

    @property
    def is_reduction(self) -> bool:
        """Whether the columns are reduced."""
        return self.node.primitive.kind == "reduction" or self.is_contraction

    @property
    def is_contraction(self) -> bool:
        """Whether the columns are the shared dimension of two operands."""
        return self.node.primitive.kind == "contraction" and not self.is_outer

    @property
    def columns(self) -> tuple[int, ...]:
        """The dimensions of the space that are not rows."""
        return tuple(dim for dim in range(len(self.space)) if dim not in self.rows)

    @property
    def row_axes(self) -> tuple[int, ...]:
        """The rows as axes of the node's own shape."""
        if not self.is_reduction or self.is_contraction:
            return self.rows
        kept = [dim for dim in range(len(self.space)) if dim not in self.node.params["dims"]]
        return tuple(kept.index(dim) for dim in self.rows)


@dataclass
class Group:
    """Roots that share a kernel."""

    members: list[Member]
    rows: tuple[int, ...] | None  # lengths; None while every dimension is one
    reads: set[Node] = field(default_factory=set)  # roots of other groups

    @property
    def nodes(self) -> set[Node]:
        """The roots."""
        return {member.node for member in self.members}

    @property
    def is_contraction(self) -> bool:
        """Whether it begins with a contraction; the members that joined are its epilogue."""
        return self.members[0].is_contraction

    @property
    def tiles(self) -> frozenset[TransientRead]:
        """The transient contractions that its members read."""
        return frozenset().union(*(member.tiles for member in self.members))


def member_of(node: Node, transient: Collection[Node] = ()) -> Member:
    """A root by itself."""
    if is_outer(node, transient):
        return Member(node, node.shape, outer_axes(node, transient), is_outer=True)
    if node.primitive.kind == "reduction":
        space = node.inputs[0].shape
        return Member(node, space, tuple(dim for dim in range(len(space)) if dim not in node.params["dims"]))
    space = space_of(node) if node.primitive.kind == "contraction" else node.shape
    return Member(node, space, tuple(range(len(node.shape))))


def variables(space: Iterable[int], letter: str = "d") -> At:
    """A loop variable for each dimension."""
    return tuple(variable(f"{letter}{number}", length) for number, length in enumerate(space))


def _reads(member: Member, roots: Iterable[Node]) -> tuple[tuple[Node, At], ...]:
    """The roots that a root reads; see `Member`."""
    found: list[tuple[Node, At]] = []

    def read(node: Node) -> Reader | None:
        if node is member.node or not (node in roots or is_stored_already(node)):
            return None

        def reader(at: At, inside: Inside = ALWAYS) -> Expression:
            found.append((node, at))
            return Load(node.dtype, id(node), linear(at, node.shape), inside)

        return reader

    lowering = Lowering(read)
    at = variables(member.space)
    if member.is_reduction:
        lowering.term(member.node, at)
    else:
        lowering.computed(member.node, at)
    return tuple(dict.fromkeys(found))


def _tiles(member: Member, roots: Iterable[Node], transient: Collection[Node]) -> frozenset[TransientRead]:
    """The transient contractions that a member reads."""
    inner = {node for node in transient if node.primitive.kind == "contraction"}
    if not inner or not (member.is_outer or (member.is_reduction and member.node.inputs[0] in transient)):
        return frozenset()
    names = [variables(member.space)[dim].as_variable for dim in member.rows]
    number = {name: number for number, name in enumerate(names) if name is not None}
    return frozenset(
        (node, tuple(number.get(index.as_variable) for index in at))  # type: ignore[arg-type]
        for node, at in _reads(member, {*roots, *inner})
        if node in inner
    )


def fuse(
    roots: dict[Node, str], is_call: dict[Node, bool], transient: Collection[Node] = (), without: Set[str] = ALL_ON
) -> list[Group | Node]:
    """The kernels in an order in which they can run: groups, and nodes that are library calls.

    The classes of fusion `without` are switched off.
    """
    groups: list[Group] = []
    home: dict[Node, Group | Node] = {}
    for node in roots:
        if is_call[node]:
            home[node] = node
            continue
        member = member_of(node, transient)
        member.tiles = _tiles(member, roots, transient)
        member.reads = _reads(member, roots)
        reads = [(root, at) for root, at in member.reads if root in home]
        for group in _candidates([read for read in reads if roots[read[0]] != LONG], home):
            if (EPILOGUES if group.is_contraction else ROWS) in without:
                continue
            if not _closes_a_circle(group, reads, home) and _join(group, member, reads):
                break
        else:
            group = Group([member], _lengths(member) if member.is_reduction or member.is_outer else None)
            groups.append(group)
        group.reads |= {root for root, _ in reads if home[root] is not group}
        home[node] = group
    if SIBLINGS not in without:
        _merge_siblings(groups, home)
    return _ordered(roots, home)


def _lengths(member: Member) -> tuple[int, ...]:
    return tuple(member.space[dim] for dim in member.rows)


def _candidates(reads: list[tuple[Node, At]], home: dict[Node, Group | Node]) -> list[Group]:
    """The groups of the roots that are read, latest first."""
    found: list[Group] = []
    for root, _ in reversed(reads):
        group = home[root]
        if isinstance(group, Group) and group not in found:
            found.append(group)
    return found


def _depends_on(start: Iterable[Node], group: Group, home: dict[Node, Group | Node]) -> bool:
    """Whether some roots depend on a group by a path through other kernels."""
    pending = [home[root] for root in start if home[root] is not group]
    seen: set[int] = set()
    while pending:
        at = pending.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if at is group:
            return True
        below = at.reads if isinstance(at, Group) else _call_reads(at, home)
        pending += [home[root] for root in below]
    return False


def _call_reads(node: Node, home: dict[Node, Group | Node]) -> list[Node]:
    return [base for operand in node.inputs if (base := base_of(operand)) in home]


def _closes_a_circle(group: Group, reads: list[tuple[Node, At]], home: dict[Node, Group | Node]) -> bool:
    return _depends_on((root for root, _ in reads), group, home)


def _join(group: Group, member: Member, reads: list[tuple[Node, At]]) -> bool:
    """Make a root a member of a group if their rows agree."""
    inside = [(root, at) for root, at in reads if root in group.nodes]
    if member.is_contraction or (group.is_contraction and (member.is_reduction or _is_wider(member, group))):
        return False
    if (member.tiles or group.tiles) and not _fits_tiles(group, member, inside):
        return False
    if group.rows is None:
        return _join_pointwise(group, member, inside)
    return _join_rows(group, member, inside)


def _fits_tiles(group: Group, member: Member, inside: list[tuple[Node, At]]) -> bool:
    """Whether a root reads the tiles of a group, or only results of its reductions."""
    read = [known for known in group.members if known.node in dict(inside)]
    if member.tiles or member.is_reduction:
        return bool(member.tiles & group.tiles) and all(known.is_reduction for known in read)
    return member.node.spec.size in {known.node.spec.size for known in read}


def _is_wider(member: Member, group: Group) -> bool:
    """Whether a root has more than one element for each row."""
    return math.prod(member.space) != math.prod(group.rows or ())


def _plain(index: Index, length: int) -> Any:
    """The variable that an index equals and that covers a dimension, None for a dimension of length 1, else False."""
    if length == 1 and index == NOWHERE:
        return None
    found = index.as_variable
    return found if found is not None and found.extent == length else False


def _join_pointwise(group: Group, member: Member, inside: list[tuple[Node, At]]) -> bool:
    """Join a group of pointwise roots, as a further one over the same elements, or as a reduction that defines rows."""
    shape = group.members[0].space
    orders = {tuple(_plain(index, length) for index, length in zip(at, shape, strict=True)) for _, at in inside}
    if len(orders) != 1:
        return False
    (order,) = orders
    own = [index.as_variable for index in variables(member.space)]
    if False in order or {each for each in order if each} != {each for each in own if each}:
        return False
    if not member.is_reduction:
        if member.space != shape or list(order) != own:
            return False
        group.members.append(member)
        return True
    kept = {own[dim] for dim in member.rows if own[dim] is not None}
    rows = tuple(dim for dim, each in enumerate(order) if each in kept)
    if not rows or len(rows) == len(shape):
        return False
    for known in group.members:
        known.rows = rows
    member.rows = tuple(own.index(order[dim]) for dim in rows)
    group.rows = tuple(shape[dim] for dim in rows)
    group.members.append(member)
    return True


def _join_rows(group: Group, member: Member, inside: list[tuple[Node, At]]) -> bool:
    """Join a group over rows, if all that is read of the group is of the same row."""
    assert group.rows is not None
    rows: dict[int, Variable] = {}
    for known in group.members:
        for root, at in inside:
            if root is not known.node:
                continue
            for number, (axis, length) in enumerate(zip(known.row_axes, group.rows, strict=True)):
                place = _plain(at[axis], length)
                if place is False or (place is not None and rows.setdefault(number, place) != place):
                    return False
    own = [index.as_variable for index in variables(member.space)]
    long = [number for number, length in enumerate(group.rows) if length != 1]
    if sorted(rows) != long or len(set(rows.values())) != len(rows):
        return False
    kept = {own[dim] for dim in member.rows if own[dim] is not None}
    if member.is_reduction and kept != set(rows.values()):
        return False
    if not set(rows.values()) <= kept:
        return False
    unit = [dim for dim, length in enumerate(member.space) if length == 1 and dim in member.rows]
    found = []
    for number in range(len(group.rows)):
        if number in rows:
            found.append(own.index(rows[number]))
        elif unit:
            found.append(unit.pop(0))
        else:
            return False
    columns = math.prod(length for dim, length in enumerate(member.space) if dim not in found)
    few, many = (FEW_SUMS, MANY_SUMMED) if member.is_reduction else (FEW_ROWS, MANY_COLUMNS)
    if math.prod(group.rows) < few and columns > many:
        return False
    if (member.is_reduction or member.is_outer) and set(found) != set(member.rows):
        return False
    member.rows = tuple(found)
    group.members.append(member)
    return True


def _merge_siblings(groups: list[Group], home: dict[Node, Group | Node]) -> None:
    """Join independent groups of reductions over the same rows and columns, which read them in one pass."""
    kept: list[Group] = []
    alike: dict[object, list[Group]] = {}
    for group in groups:
        kind = _kind_of_sums(group)
        others = alike.setdefault(kind, []) if kind is not None else []
        for other in others:
            if (
                (group.tiles & other.tiles or not group.tiles)
                and not _depends_on(group.reads, other, home)
                and not _depends_on(other.reads, group, home)
                and not group.reads & other.nodes
                and not other.reads & group.nodes
            ):
                other.members += group.members
                other.reads |= group.reads
                for member in group.members:
                    home[member.node] = other
                break
        else:
            kept.append(group)
            others.append(group)
    groups[:] = kept


def _kind_of_sums(group: Group) -> object:
    """A key that is equal for groups of reductions of one space over the same dimensions, or with equal tiles.

    None for any other group.
    """
    if group.tiles:
        return "tiles", group.rows
    spaces = {(member.space, member.rows) for member in group.members}
    sums = len(spaces) == 1 and all(member.is_reduction for member in group.members) and not group.is_contraction
    return spaces.pop() if sums else None


def _ordered(roots: dict[Node, str], home: dict[Node, Group | Node]) -> list[Group | Node]:
    """Kernels in topological order."""
    order: list[Group | Node] = []
    place = {root: number for number, root in enumerate(roots)}
    state: dict[int, int] = {}  # 1 while waiting for what it reads, 2 when done
    for root in roots:
        pending = [home[root]]
        while pending:
            at = pending[-1]
            below = sorted(at.reads, key=place.__getitem__) if isinstance(at, Group) else _call_reads(at, home)
            missing = [home[read] for read in below if state.get(id(home[read]), 0) == 0]
            if state.get(id(at)) is None and missing:
                state[id(at)] = 1
                pending += missing
                continue
            pending.pop()
            if state.get(id(at)) != 2:
                state[id(at)] = 2
                order.append(at)
    return order
