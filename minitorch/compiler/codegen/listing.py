"""The innermost loops of an assembly listing: natural loops of its control-flow graph that contain no other loop.

A back edge leads from a block to one that is still being visited by a depth-first search; the natural loop of that edge
is all that reaches its tail without passing its head (Aho, Lam, Sethi and Ullman, "Compilers", 2006, section 9.6).
"""

from __future__ import annotations

import re
from collections import defaultdict

LABEL = re.compile(r"^([\w.$]+):")
JUMP = re.compile(r"^\s+(\w[\w.]*)\s+(?:.*[\s,])?(\.?LBB\d+_\d+)\s*$")
ENDS = ("jmp", "b", "j", "ret", "retq")  # after these, the next instruction is not reached


def inner_loops(listing: str) -> list[str]:
    """Return the innermost loops of a listing.

    Args:
        listing: as `minitorch.compiler.codegen.machine.assembly` makes it.

    Returns:
        The instructions of each, one in a line, in the order of the listing.

    Example:
        >>> inner_loops("f:\\n.LBB0_1:\\n\\tdecq %rax\\n\\tjne .LBB0_1\\n\\tretq\\n")
        ['decq %rax\\njne .LBB0_1']
    """
    blocks, follows = _blocks(listing)
    loops = _natural_loops(follows)
    inner = [loop for loop in loops if not any(other < loop for other in loops)]
    return ["\n".join(line for block in sorted(loop) for line in blocks[block]) for loop in inner]


def _blocks(listing: str) -> tuple[list[list[str]], list[list[int]]]:
    """Return instructions in blocks entered at the top and left at the end, and the blocks that may follow each."""
    blocks: list[list[str]] = [[]]
    labels: dict[str, int] = {}
    jumps: list[tuple[int, str]] = []
    open_ends: set[int] = set()
    for line in listing.splitlines():
        if label := LABEL.match(line):
            open_ends.add(len(blocks) - 1)
            blocks.append([])
            labels[label[1]] = len(blocks) - 1
        elif line.startswith("\t") and not line.startswith("\t."):
            blocks[-1].append(line.strip().expandtabs(16))  # wider than any name
            jump, ends = JUMP.match(line), line.split()[0] in ENDS
            if jump:
                jumps.append((len(blocks) - 1, jump[2]))
            if jump or ends:
                if not ends:
                    open_ends.add(len(blocks) - 1)
                blocks.append([])
    follows: list[list[int]] = [[each + 1] if each in open_ends else [] for each in range(len(blocks))]
    for block, label_name in jumps:
        if label_name in labels:
            follows[block].append(labels[label_name])
    return blocks, follows


def _natural_loops(follows: list[list[int]]) -> list[frozenset[int]]:
    before: dict[int, list[int]] = defaultdict(list)
    for block, after in enumerate(follows):
        for each in after:
            before[each].append(block)
    bodies: dict[int, set[int]] = {}  # by head: several edges back to one block make one loop
    for tail, head in _back_edges(follows):
        body, waiting = bodies.setdefault(head, {head}), [tail]
        while waiting:
            block = waiting.pop()
            if block not in body:
                body.add(block)
                waiting += before[block]
    return [frozenset(body) for _, body in sorted(bodies.items())]


def _back_edges(follows: list[list[int]]) -> list[tuple[int, int]]:
    found, visiting, done = [], set(), set()
    for root in range(len(follows)):
        path = [(root, iter(follows[root]))] if root not in done else []
        visiting |= {block for block, _ in path}
        while path:
            block, rest = path[-1]
            following = next(rest, None)
            if following is None:
                path.pop()
                visiting.discard(block)
                done.add(block)
            elif following in visiting:
                found.append((block, following))
            elif following not in done:
                visiting.add(following)
                path.append((following, iter(follows[following])))
    return found
