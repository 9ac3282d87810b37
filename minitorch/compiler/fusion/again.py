"""Recompute or keep: expensive values that several kernels need, and that cost less to compute again than to store.

`roots` lets every reader compute a cheap value for itself, and stores an expensive one that is read more than once. For
a value that stays in a cache that is right. One that does not has to go to memory and come back for every reader, and a
core does about ten vector instructions in the time in which it moves one vector. So a training step, which keeps what
its backward pass reads, does better to keep the argument of a `tanh`, which it needs anyhow, and not the `tanh`.

This is decided when it is known which kernels there are. A value is computed again if all that it is computed from is
in memory in any case, and if the arithmetic takes less time than the traffic that is saved.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence

from ...ir import POINTWISE, Node
from ..target import Target
from .fuse import Group, Member, reads_of
from .roots import HEAVY, SHARED, is_stored_already

# Of one core, in round figures: seconds for a byte to or from memory, and for an operation on one element.
SECONDS_PER_BYTE = 1e-10
SECONDS_PER_OPERATION = {"light": 0.02e-9, "heavy": 0.4e-9, "random_bits": 2e-9}
MOST_OPERATIONS = 40


def cheaper_again(
    order: Sequence[Group | Node], roots: dict[Node, str], needed: Container[Node], target: Target
) -> set[Node]:
    """The roots that had better not be stored, given the kernels and what these need in memory."""
    groups = [item for item in order if isinstance(item, Group)]
    called = {operand for item in order if isinstance(item, Node) for operand in item.inputs}
    home = {member.node: (group, member) for group in groups for member in group.members}
    found: set[Node] = set()
    for node, reason in roots.items():
        if reason != SHARED or node not in needed or node.spec.nbytes <= target.caches[1] or node in called:
            continue
        group, member = home[node]
        sources = {root for root, _ in reads_of(member, roots)}
        there = all(is_stored_already(each) or (each in needed and each not in found) for each in sources)
        if there and _goes_once(group, node, roots) and _saves(node, sources, groups, group, roots):
            found.add(node)
    return found


def _goes_once(group: Group, node: Node, roots: dict[Node, str]) -> bool:
    """Whether what reads a value in its own kernel does so in the loop in which it is computed."""
    sums = {member.node for member in group.members if member.is_reduction}
    return group.is_contraction or not any(
        root in sums for member in group.members for root, _ in reads_of(member, roots)
    )


def _saves(node: Node, sources: set[Node], groups: list[Group], own: Group, roots: dict[Node, str]) -> bool:
    """Whether the traffic of storing a value takes longer than computing it for every reader."""
    readers = [(group, member) for group in groups if group is not own for member in _readers(group, node, roots)]
    if not all(_reads_each_once(member, node, roots) for _, member in readers):
        return False
    saved = node.spec.nbytes * (1 + len({id(group) for group, _ in readers}))
    for group in {id(group): group for group, _ in readers}.values():
        known = {root for member in group.members for root, _ in reads_of(member, roots)}
        saved -= sum(source.spec.nbytes for source in sources - known)
    work = list(operations(node, roots))
    seconds = sum(SECONDS_PER_OPERATION[kind] for kind in work) * node.spec.size * len(readers)
    return bool(readers) and len(work) <= MOST_OPERATIONS and seconds < saved * SECONDS_PER_BYTE


def _readers(group: Group, node: Node, roots: dict[Node, str]) -> list[Member]:
    return [member for member in group.members if any(root is node for root, _ in reads_of(member, roots))]


def _reads_each_once(member: Member, node: Node, roots: dict[Node, str]) -> bool:
    """Whether a root reads every element of a value once: a contraction does not, nor does what repeats it."""
    times = sum(root is node for root, _ in reads_of(member, roots))
    return not member.is_contraction and times == 1 and math.prod(member.space) == node.spec.size


def operations(node: Node, roots: dict[Node, str]) -> Iterator[str]:
    """The kinds of operations that an element takes, from what is stored on."""
    pending, seen = [node], {node}
    while pending:
        at = pending.pop()
        name = at.primitive.name
        if name == "random_bits":
            yield name
        elif at.primitive.kind in POINTWISE:
            yield "heavy" if name in HEAVY else "light"
        for operand in at.inputs:
            if operand not in seen and operand not in roots and not is_stored_already(operand):
                seen.add(operand)
                pending.append(operand)
