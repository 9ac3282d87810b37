"""Shared rows: how the rows of a group run through a root, or the reason why the two do not share a kernel.

A root joins a group if every number that it reads of the group is of the root's own row. Two groups become one if their
rows agree and their loops over the columns are the same loops. Each reason is a sentence that the ledger prints.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ...ir import Node
from ..loop_ir.index import NOWHERE, Index, Variable
from ..loop_ir.lower import At
from .cost_model import is_expensive
from .fusion_groups import Group, Member, variables

# Rows run in parallel. A root joins no kernel of fewer rows than FEW if it has more columns than MANY (elements of a
# row): alone it has more parallelism. Raising FEW, or lowering MANY, makes more and smaller kernels. For reductions:
FEW_SUMS, MANY_SUMMED = 4, 1 << 15
# and for all other roots:
FEW_ROWS, MANY_COLUMNS = 16, 4096

OTHER_ROWS = "the kernels run over different rows"
OTHER_SHAPE = "the kernels run over different shapes, or read the elements in another order"
OTHER_COLUMNS = "the kernels run over different columns of the same rows"
FEW = "there are few rows of many columns: apart, the kernels run in more parallel parts"
NO_ROWS = "the reduction takes up all elements, so no rows are left that run in parallel"
OPERAND = "a contraction reads its operands from memory"
NO_EPILOGUE = "a contraction shares its kernel with its epilogue alone"
TILES = "one of them is computed from tiles of a contraction that is not stored"
CIRCLE = "another kernel has to run between the two"

# For each dimension of a group's rows (of its whole space, while every dimension is one) the dimension of a root's
# space that runs along it; None for some dimensions of length 1.
Fit = tuple[int | None, ...]


def fit(group: Group, member: Member, reads: Iterable[tuple[Node, At]]) -> Fit | str:
    """Return how the rows of a group run through a root that reads it, or why the root cannot join it."""
    nodes = group.nodes
    inside = [(root, at) for root, at in reads if root in nodes]
    if member.is_contraction:
        return OPERAND
    if group.is_contraction and (member.is_reduction or _is_wider(member, group)):
        return NO_EPILOGUE
    if (member.tiles or group.tiles) and not _fits_tiles(group, member, inside):
        return TILES
    return _fit_open(group, member, inside) if group.rows is None else _fit_rows(group, group.rows, member, inside)


def rows_of(member: Member, group: Group, found: Fit) -> tuple[int, ...] | None:
    """Return the dimensions of a root that are its rows in a group, in the group's order; None while all are."""
    if group.rows is None and not member.is_reduction:
        return None
    return tuple(dim for dim in found if dim is not None and (group.rows is not None or dim in member.rows))


def aligned(group: Group, found: Fit, rows: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the rows of a group's members, in the order of the dimensions of a root that run along them."""
    places = [found.index(dim) for dim in rows]
    return [tuple(known.rows[place] for place in places) for known in group.members]


def obstacle(one: Group, other: Group, fits: tuple[Fit, Fit], member: Member, rows: Sequence[int] | None) -> str:
    """Return why two groups that a root fits do not become one; empty if they can.

    Args:
        one, other: the groups.
        fits: how their rows run through the root.
        member: the root.
        rows: the dimensions of the root that would be the rows; None if all are.
    """
    if one.is_contraction or other.is_contraction:
        return NO_EPILOGUE
    if one.tiles or other.tiles or member.tiles:
        return TILES
    if rows is None:
        return ""
    for group, found in zip((one, other), fits, strict=True):
        if not set(rows) <= set(found) or (group.rows is not None and set(found) != set(rows)):
            return OTHER_ROWS
    members = [
        (known, own)
        for group, found in zip((one, other), fits, strict=True)
        for known, own in zip(group.members, aligned(group, found, rows), strict=True)
    ]
    return unlike(members)


def unlike(members: Iterable[tuple[Member, tuple[int, ...]]]) -> str:
    """Return why roots with given rows do not share loops over columns; empty if they do."""
    wide = [(known, rows) for known, rows in members if has_columns(known, rows)]
    if len({(known.space, rows) for known, rows in wide}) > 1:
        return OTHER_COLUMNS
    for known, rows in wide:
        height = math.prod(known.space[dim] for dim in rows)
        if height < FEW_ROWS and math.prod(known.space) > height * MANY_COLUMNS:
            return "" if is_one_pass(known for known, _ in wide) else FEW
    return ""


def has_columns(member: Member, rows: Sequence[int]) -> bool:
    """Return whether a root with given rows has more than one element in each."""
    return any(length != 1 for dim, length in enumerate(member.space) if dim not in rows)


def is_one_pass(members: Iterable[Member]) -> bool:
    """Return whether roots are reductions that do not need each other, so that one loop computes them all."""
    known = list(members)
    nodes = {member.node for member in known}
    return all(member.is_reduction and not any(root in nodes for root, _ in member.reads) for member in known)


def _fits_tiles(group: Group, member: Member, inside: list[tuple[Node, At]]) -> bool:
    """Return whether a root reads the tiles of a group, or only numbers of its rows that are cheap."""
    read = [known for known in group.members if known.node in dict(inside)]
    if member.tiles or member.is_reduction:
        numbers = (known for known in read if not known.is_reduction)
        are_cheap = not any(has_columns(known, known.rows) or is_expensive(known.node) for known in numbers)
        return are_cheap and bool(member.tiles & group.tiles)
    if member.node.spec.size not in {known.node.spec.size for known in read}:
        return False
    sums = {known.node for known in read if not known.is_reduction}  # at another place they would be summed up again
    places = {(root, at) for root, at in inside if root in sums}
    return len(places) == len(sums) and all(
        _plain(index, length) is not False for root, at in places for index, length in zip(at, root.shape, strict=True)
    )


def _is_wider(member: Member, group: Group) -> bool:
    """Return whether a root has more than one element for each row."""
    return math.prod(member.space) != math.prod(group.rows or ())


def _plain(index: Index, length: int) -> Any:
    """Return the variable that an index equals and that covers a dimension; None for length 1, else False."""
    if length == 1 and index == NOWHERE:
        return None
    found = index.as_variable
    return found if found is not None and found.extent == length else False


def _fit_open(group: Group, member: Member, inside: list[tuple[Node, At]]) -> Fit | str:
    """Return how a root runs over the elements of a group of pointwise roots."""
    shape = group.members[0].space
    orders = {tuple(_plain(index, length) for index, length in zip(at, shape, strict=True)) for _, at in inside}
    if len(orders) != 1:
        return OTHER_SHAPE
    (order,) = orders
    own = [index.as_variable for index in variables(member.space)]
    if False in order or {each for each in order if each} != {each for each in own if each}:
        return OTHER_SHAPE
    if not member.is_reduction:
        return tuple(range(len(shape))) if member.space == shape and list(order) == own else OTHER_SHAPE
    found = tuple(own.index(each) if each else None for each in order)
    rows = [dim for dim in found if dim in member.rows]
    return found if rows and len(rows) < len(shape) else NO_ROWS


def _fit_rows(group: Group, lengths: tuple[int, ...], member: Member, inside: list[tuple[Node, At]]) -> Fit | str:
    """Return how a root runs over the rows of a group, if all that it reads of the group is in the same row."""
    rows: dict[int, Variable] = {}
    for known in group.members:
        for root, at in inside:
            if root is not known.node:
                continue
            for number, (axis, length) in enumerate(zip(known.row_axes, lengths, strict=True)):
                place = _plain(at[axis], length)
                if place is False or (place is not None and rows.setdefault(number, place) != place):
                    return OTHER_ROWS
    own = [index.as_variable for index in variables(member.space)]
    long = [number for number, length in enumerate(lengths) if length != 1]
    if sorted(rows) != long or len(set(rows.values())) != len(rows):
        return OTHER_ROWS
    kept = {own[dim] for dim in member.rows if own[dim] is not None}
    if not set(rows.values()) <= kept or (member.is_reduction and kept != set(rows.values())):
        return OTHER_ROWS
    unit = [dim for dim, length in enumerate(member.space) if length == 1 and dim in member.rows]
    found: list[int] = []
    for number in range(len(lengths)):
        if number not in rows and not unit:
            return OTHER_ROWS
        found.append(own.index(rows[number]) if number in rows else unit.pop(0))
    columns = math.prod(length for dim, length in enumerate(member.space) if dim not in found)
    few, many = (FEW_SUMS, MANY_SUMMED) if member.is_reduction else (FEW_ROWS, MANY_COLUMNS)
    if math.prod(lengths) < few and columns > many:
        return FEW
    if (member.is_reduction or member.is_outer) and set(found) != set(member.rows):
        return OTHER_ROWS
    return tuple(found)
