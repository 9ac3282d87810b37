"""Kernel fusion: roots that run over the same rows share a kernel.

Every root starts as its own kernel: a reduction loops over its operand, anything else over itself. It joins the
kernel of a root that it reads if both run over the same *rows*. Then the values that one row needs are in an
accumulator (a reduction of the row) or in a scratch row. Softmax becomes one kernel in this way: its maximum, its
exponentials, their sum and the quotient all run over the same rows. No operation is known by name.

A root that reads several kernels over the same rows makes them one: ``x.amax(1) - x.amin(1)`` reads ``x`` once. So do
independent kernels that go over one array in the same loops.

A group of pointwise roots has no rows yet (`rows` is None). The first reduction that joins decides.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Set

from ...ir import Node
from ..loop_ir.lower import At
from . import EPILOGUES, ROWS, SIBLINGS
from .fusion_groups import Group, Member, member_of, reads_of, tiles_of
from .roots import LONG, base_of, is_call
from .rows import CIRCLE, Fit, aligned, fit, has_columns, is_one_pass, obstacle, rows_of, unlike


class Home(dict[Node, Group | Node]):
    """The kernel of each root so far: a group, or the root itself if it is a library call.

    Attributes:
        place: the positions of roots in the order in which they came.
        seams: positions that no group lies across, ascending. All that a group before a seam needs lies before it,
            too, so a search for something behind the seam ends there. In an unrolled loop, each step searches
            a few steps, not all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.place: dict[Node, int] = {}
        self.seams: list[int] = []

    def begin(self, node: Node) -> None:
        """Give the next root a position."""
        self.seams.append(len(self.place))
        self.place[node] = len(self.place)

    def span(self, group: Group, first: int, last: int) -> None:
        """Widen a group to the positions from `first` to `last`."""
        group.first, group.last = min(group.first, first), max(group.last, last)
        del self.seams[bisect_right(self.seams, group.first) : bisect_right(self.seams, group.last)]

    def is_before(self, at: Group | Node, group: Group) -> bool:
        """Return whether a kernel lies before a seam that a group lies behind."""
        seam = self.seams[bisect_right(self.seams, group.first) - 1]
        return (at.last if isinstance(at, Group) else self.place[at]) < seam


SWITCHED_OFF = "this class of fusion is switched off"


def fuse(roots: dict[Node, str], transient: Collection[Node], without: Set[str]) -> list[Group | Node]:
    """Return the kernels in an order in which they can run: groups, and nodes that are library calls.

    The classes of fusion `without` are switched off.
    """
    home = Home()
    for node in roots:
        home.begin(node)
        if is_call(node):
            home[node] = node
            continue
        member = member_of(node, transient)
        member.tiles = tiles_of(member, roots, transient)
        member.reads = reads_of(member, roots)
        reads = [(root, at) for root, at in member.reads if root in home]
        near = [read for read in reads if roots[read[0]] != LONG]
        group = _join(member, reads, _candidates(near, home), home, without)
        group.reads |= {root for root, _ in reads if home[root] is not group}
    if SIBLINGS not in without:
        _merge_siblings(home)
    return _ordered(roots, home)


def _candidates(reads: list[tuple[Node, At]], home: Home) -> list[Group]:
    """Return the groups of the roots that are read, those with most bytes first, then the latest."""
    found: dict[Group, int] = {}
    for root in dict.fromkeys(root for root, _ in reversed(reads)):
        group = home[root]
        if isinstance(group, Group):
            found[group] = found.get(group, 0) + root.spec.nbytes
    return sorted(found, key=found.__getitem__, reverse=True)


def _join(
    member: Member, reads: list[tuple[Node, At]], candidates: list[Group], home: Home, without: Set[str]
) -> Group:
    """Make a root a member of the first group that it fits, and others that it fits a part of that group.

    If it fits none, the root begins a new group.
    """
    joined: Group | None = None
    rows: tuple[int, ...] | None = None
    apart: dict[Node, str] = {}
    for group in candidates:
        found = SWITCHED_OFF if _is_off(group, without) else fit(group, member, reads)
        if isinstance(found, str):
            why = found
        elif joined is None:
            why = CIRCLE * _closes_a_circle(group, reads, home)
            if not why:
                joined, rows = group, rows_of(member, group, found)
                _place(group, found, rows, member)
        else:
            own: Fit = tuple(range(len(member.space))) if rows is None else rows
            wanted = rows_of(member, group, found) if rows is None else rows
            why = SWITCHED_OFF if SIBLINGS in without else obstacle(joined, group, (own, found), member, wanted)
            why = why or _between(joined, group, home) or CIRCLE * _closes_a_circle(group, reads, home)
            if not why:
                rows = wanted
                _place(joined, own, rows, member)
                _place(group, found, rows, member)
                _absorb(joined, group, home)
        if why:
            apart |= {root: why for root, _ in reads if home[root] is group}
    if joined is None:
        is_open = not (member.is_reduction or member.is_outer)
        position = home.place[member.node]
        lengths = None if is_open else tuple(member.space[dim] for dim in member.rows)
        joined = Group([], lengths, position, position)
    elif rows is not None:
        member.rows = rows
    for root, why in apart.items():
        joined.apart.setdefault(root, _why(joined, home[root], home) or why)
    joined.members.append(member)
    home[member.node] = joined
    home.span(joined, home.place[member.node], home.place[member.node])
    return joined


def _is_off(group: Group, without: Set[str]) -> bool:
    return (EPILOGUES if group.is_contraction else ROWS) in without


def _place(group: Group, found: Fit, rows: tuple[int, ...] | None, member: Member) -> None:
    """Give a group the rows of a root that joins it."""
    if rows is None:
        return
    for known, own in zip(group.members, aligned(group, found, rows), strict=True):
        known.rows = own
    group.rows = tuple(member.space[dim] for dim in rows)


def _absorb(group: Group, other: Group, home: Home) -> None:
    """Make the members of another group members of a group."""
    group.members += other.members
    group.reads |= other.reads
    group.apart |= other.apart
    for member in other.members:
        home[member.node] = group
    other.members = []
    home.span(group, other.first, other.last)


def _depends_on(start: Iterable[Node], group: Group, home: Home) -> bool:
    """Return whether some roots depend on a group by a path through other kernels."""
    pending = [home[root] for root in start if home[root] is not group]
    seen: set[int] = set()
    while pending:
        at = pending.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if at is group:
            return True
        if home.is_before(at, group):
            continue
        below = at.reads if isinstance(at, Group) else _call_reads(at, home)
        pending += [home[root] for root in below]
    return False


def _call_reads(node: Node, home: Home) -> list[Node]:
    return [base for operand in node.inputs if (base := base_of(operand)) in home]


def _closes_a_circle(group: Group, reads: list[tuple[Node, At]], home: Home) -> bool:
    return _depends_on((root for root, _ in reads), group, home)


def _between(one: Group, other: Group, home: Home) -> str:
    """Return the reason why one of two groups needs the other one to be complete; empty if neither does."""
    for group, read in ((one, other), (other, one)):
        if group.reads & read.nodes:
            return _why(group, read, home) or CIRCLE
        if _depends_on(group.reads, read, home):
            return CIRCLE
    return ""


def _why(group: Group, read: Group | Node, home: Home) -> str:
    """Return why a group that another group reads is not part of it; empty if nothing prevents it."""
    return next((why for root, why in group.apart.items() if home[root] is read), "")


def _merge_siblings(home: Home) -> None:
    """Make one group of independent ones over the same rows and columns.

    Reductions then read them in one pass. Other groups are merged if they read an array in common.
    """
    groups = dict.fromkeys(group for group in home.values() if isinstance(group, Group))
    alike: dict[object, list[Group]] = {}
    for group in groups:
        kind = _kind(group)
        others = alike.setdefault(kind, []) if kind is not None else []
        for other in others:
            if _are_siblings(other, group) and not _between(other, group, home):
                _absorb(other, group, home)
                break
        else:
            others.append(group)


def _kind(group: Group) -> object:
    """Return a key that is equal for groups of equal rows and columns, or with equal tiles; None for other groups."""
    if group.tiles:
        return "tiles", group.rows
    if group.is_contraction or group.rows is None:
        return None
    kinds = {(member.space, member.rows) for member in group.members if has_columns(member, member.rows)}
    return kinds.pop() if len(kinds) == 1 else None


def _are_siblings(one: Group, other: Group) -> bool:
    """Return whether one pass computes two groups of one kind, or both read an array in common."""
    if one.tiles or other.tiles:
        return bool(one.tiles & other.tiles)
    members = one.members + other.members
    if is_one_pass(members):
        return True
    return bool(_arrays(one) & _arrays(other)) and not unlike((member, member.rows) for member in members)


def _arrays(group: Group) -> set[Node]:
    """Return the stored values that a group reads, with more than one element for each row."""
    read = {root for member in group.members for root, _ in member.reads} - group.nodes
    return {root for root in read if root.spec.size > math.prod(group.rows or ())}


def _ordered(roots: dict[Node, str], home: Home) -> list[Group | Node]:
    """Return the kernels in topological order."""
    order: list[Group | Node] = []
    place = {root: number for number, root in enumerate(roots)}
    state: dict[int, int] = {}  # 1 while waiting for its operands, 2 when done
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
