"""Groups: the roots that share a kernel, each with its iteration space and the dimensions of it that are rows."""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from ...graph.values import params_key
from ...ir import Node
from ...passes.lowering.contract import space_of
from ...primitives import constant
from ..loop_ir.expressions import ALWAYS, Expression, Inside, Load
from ..loop_ir.index import linear, variable
from ..loop_ir.lower import At, Lowering, Reader
from .roots import AGAIN, is_stored_already

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


@dataclass(eq=False)
class Group:
    """Roots that share a kernel."""

    members: list[Member]
    rows: tuple[int, ...] | None  # lengths; None while every dimension is one
    first: int  # the positions of its first and of its last member among the roots
    last: int
    reads: set[Node] = field(default_factory=set)  # roots of other groups
    apart: dict[Node, str] = field(default_factory=dict)  # for roots of other groups: why those are no members

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


def is_outer(node: Node, transient: Collection[Node]) -> bool:
    """Return whether a contraction sums over transient values."""
    return node.primitive.kind == "contraction" and any(operand in transient for operand in node.inputs)


def outer_axes(node: Node, transient: Collection[Node]) -> tuple[int, ...]:
    """Return the axes of a contraction over transient values that are theirs; one remains, the other operand's."""
    last = len(node.shape) - 1
    return (*range(last - 1), last - 1 if node.inputs[0] in transient else last)


def member_of(node: Node, transient: Collection[Node] = ()) -> Member:
    """Return a root as a member."""
    if is_outer(node, transient):
        return Member(node, node.shape, outer_axes(node, transient), is_outer=True)
    if node.primitive.kind == "reduction":
        space = node.inputs[0].shape
        return Member(node, space, tuple(dim for dim in range(len(space)) if dim not in node.params["dims"]))
    space = space_of(node) if node.primitive.kind == "contraction" else node.shape
    return Member(node, space, tuple(range(len(node.shape))))


def variables(space: Iterable[int], letter: str = "d") -> At:
    """Return a loop variable for each dimension."""
    return tuple(variable(f"{letter}{number}", length) for number, length in enumerate(space))


def reads_of(member: Member, roots: Iterable[Node]) -> tuple[tuple[Node, At], ...]:
    """Return the roots that a root reads; see `Member`."""
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


def tiles_of(member: Member, roots: Iterable[Node], transient: Collection[Node]) -> frozenset[TransientRead]:
    """Return the transient contractions that a member reads."""
    inner = {node for node in transient if node.primitive.kind == "contraction"}
    if not inner or not (member.is_outer or (member.is_reduction and member.node.inputs[0] in transient)):
        return frozenset()
    names = [variables(member.space)[dim].as_variable for dim in member.rows]
    number = {name: number for number, name in enumerate(names) if name is not None}
    return frozenset(
        (node, tuple(number.get(index.as_variable) for index in at))  # type: ignore[arg-type]
        for node, at in reads_of(member, {*roots, *inner})
        if node in inner
    )


def structure(
    group: Group, nodes: Iterable[Node], roots: Mapping[Node, str], stored: Container[Node]
) -> tuple[Hashable, dict[Node, int]]:
    """Return a key that is equal for groups of equal loops, such as layers that a network repeats.

    It has primitives, parameters, types and shapes, which value is an operand of which, and where values are in memory;
    not their names, the numbers in them, or lines of the program.

    Args:
        group: the group.
        nodes: that it computes, in program order.
        roots: the values that are stored, each with the reason.
        stored: the roots that end in memory.

    Returns:
        The key, and the number in it of each node that the group computes or reads.
    """
    numbers, key = dict[Node, int](), list[Hashable]([group.rows, bool(group.tiles)])
    for node in nodes:
        for operand in node.inputs:
            if operand not in numbers:  # a division by an expanded value is cheap
                numbers[operand] = len(numbers)
                key.append((operand.spec, operand.primitive is constant, operand.primitive.name == "expand"))
        number = numbers.setdefault(node, len(numbers))
        operands = [numbers[operand] for operand in node.inputs]
        key.append((number, node.spec, node.primitive, params_key(node.params), *operands))
    for each in group.members:
        is_again = roots[each.node].startswith(AGAIN)
        key.append((numbers[each.node], each.space, each.rows, each.is_outer, each.node in stored, is_again))
    return tuple(key), numbers
