"""Exercise 11, memory: live ranges, writing in place, plans of an arena, and what to keep for the way back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import gcd
from random import Random
from typing import Any

from minitorch import primitives as P
from minitorch.dtypes import float32
from minitorch.graph import Graph, apply, input_node
from minitorch.graph.text import node_names
from minitorch.ir import Node, Spec

from ..harness import memory as harness
from ..harness.memory import ELEMENTWISE, is_buffer, is_view
from ..harness.nodes import everything_in
from .golf import Golf
from .reasons import expect, hint
from .samples import graph_text, in_parts, listing
from .task import Cases, Table, Task


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split()]


def text_of(program: str) -> str:
    """A graph of two matrices."""
    return graph_text("f32[2,3]", program)


def random_memory(random: Random, size: int, views: bool = True) -> str:
    """A graph of elementwise operations, sums, and views of what was made before, if there may be any."""
    whole = Spec((2, 3), float32)
    inputs = [input_node(name, whole) for name in "xy"]
    pool: list[Node] = [*inputs, apply(P.neg, inputs[0])]
    for _ in range(size):
        a, choice = random.choice(pool[-4:]), random.random()
        if choice < 0.3 and views:
            pool.append(apply(P.reshape, a, shape=(6,) if a.spec == whole else (2, 3)))
        elif choice < 0.5:
            pool.append(apply(random.choice((P.exp, P.neg, P.absolute)), a))
        else:
            b = random.choice([node for node in pool if node.spec == a.spec])
            pool.append(apply(random.choice((P.add, P.mul)), a, b))
    last = apply(P.reduce_sum, pool[-1], dims=(0,))
    return str(Graph(inputs, [last, random.choice(pool[3:])]))


def roots(graph: Graph) -> dict[Node, Node]:
    """Of every value the one whose memory it is seen in: its own, or that of what it is a view of."""
    found: dict[Node, Node] = {}
    for node in everything_in(graph):
        found[node] = found[node.inputs[0]] if is_view(node) else node
    return found


def lives(graph: Graph) -> dict[Node, tuple[int, int]]:
    """The first and the last step of every buffer; that of an output is one after the last step."""
    root = roots(graph)
    found = {node: (step, step) for step, node in enumerate(graph.nodes) if is_buffer(node)}
    reads = [(operand, step) for step, node in enumerate(graph.nodes) for operand in node.inputs]
    for node, step in (*reads, *((node, len(graph.nodes)) for node in graph.outputs)):
        if root[node] in found:
            found[root[node]] = found[root[node]][0], step
    return found


# --- live_ranges --------------------------------------------------------------------------------------------------

READ, OUTPUTS, VIEWS = "values that are read", "outputs", "views"
RANGES = {READ: 5, OUTPUTS: 4, VIEWS: 6}
RANGED = {
    READ: (
        "%0 = neg(x); %1 = exp(%0); %2 = abs(%1); %3 = add(%2, %0); %3",
        "%0 = neg(x); %1 = exp(y); %2 = mul(%0, y); %2",
    ),
    OUTPUTS: ("%0 = neg(x); %1 = exp(%0); %2 = add(%1, y); %2, %0",),
    VIEWS: (
        "%0 = exp(x); %1 = reshape(%0, shape=[6]); %2 = neg(y); %3 = abs(%1); %4 = exp(%3); %4, %2",
        "%0 = exp(x); %1 = reshape(%0, shape=[6]); %2 = reshape(%1, shape=[3,2]); %3 = neg(%0); %4 = abs(%2); "
        "%5 = exp(%4); %5, %3",
        "%0 = exp(x); %1 = reshape(%0, shape=[6]); %2 = neg(y); %1, %2",
    ),
}


def _ranges(random: Random) -> Cases:
    return [
        *in_parts(RANGED, text_of),
        (READ, random_memory(random, 8, views=False)),
        (OUTPUTS, random_memory(random, 6, views=False)),
        (VIEWS, random_memory(random, 8)),
    ]


def _wrong_ranges(part: str, text: str, answer: Any) -> str | None:
    graph = Graph.parse(text)
    names, everything, right = node_names(graph), everything_in(graph), lives(graph)
    expect(answer, dict, "a dict", "from nodes to pairs (first, last)")
    found = {}
    for place, pair in answer.items():
        if not (type(place) is int and 0 <= place < len(everything)):
            return "a key is no node of the graph"
        expect(pair, tuple[int, int], more="the first and the last step")
        found[everything[place]] = pair
    for node in found:
        if node not in right:
            kind = "a view: it has no memory of its own" if is_view(node) else "no buffer of the run"
            kind = "an input, whose memory is the caller's" if node in graph.inputs else kind
            return f"{names.get(node, 'a number')} is {kind}"
    for node, pair in right.items():
        if node not in found:
            return f"{names[node]} is a buffer and has no live range"
        if found[node] != pair:
            why = _why_range(graph, node, found[node])
            return f"{names[node]} lives from step {pair[0]} to {pair[1]}, and not {found[node]}{why}"
    return None


def _why_range(graph: Graph, node: Node, given: tuple[int, int]) -> str:
    """The misconception behind a live range, where it is known."""
    root, last = roots(graph), len(graph.nodes)
    users = [step for step, each in enumerate(graph.nodes) if node in each.inputs]
    seen = "" if node in graph.outputs else ", seen through a view,"
    return hint(
        given[0] != graph.nodes.index(node),
        "it begins with the step that makes it",
        any(root[each] is node for each in graph.outputs) and given[1] < last,
        f"it is an output{seen} and is needed when all steps are done: {last}",
        given[1] == max(users, default=given[0]),
        "what reads a view of it reads its memory",
        True,
        "it ends with the last step that reads it",
    )


live_ranges = Task(harness.live_ranges, RANGES, _ranges, _wrong_ranges, about=listing)

# --- may_overwrite ------------------------------------------------------------------------------------------------

LATER, OWNERS, ELEMENTS = "who reads it later", "whose memory it is", "element by element"
OVERWRITE = {LATER: 5, OWNERS: 5, ELEMENTS: 5}
OVERWRITTEN = {
    LATER: (
        "%0 = neg(x); %1 = exp(%0); %2 = add(%1, %0); %3 = mul(%2, y); %3",
        "%0 = neg(x); %1 = mul(%0, %0); %2 = exp(%1); %3 = add(%2, %1); %3",
        "%0 = exp(x); %1 = reshape(%0, shape=[6]); %2 = neg(%0); %3 = abs(%1); %3, %2",
    ),
    OWNERS: (
        "%0 = neg(x); %1 = exp(%0); %2 = add(%1, y); %3 = mul(%2, 2.0); %3, %0",
        "%0 = exp(x); %1 = reshape(%0, shape=[6]); %2 = neg(%0); %1, %2",
    ),
    ELEMENTS: (
        "%0 = exp(x); %1 = reduce_sum(%0, dims=[0]); %2 = expand(%1, shape=[2,3]); %3 = neg(y); %4 = mul(%3, %2); %4",
    ),
}
# A product has the shape of its operands here, and reads all of a row.
SQUARE = graph_text("f32[3,3]", "%0 = exp(x); %1 = dot(%0, y, dtype=f32); %2 = neg(%1); %2")
TURNED = graph_text("f32[3,3]", "%0 = exp(x); %1 = permute(%0, dims=[1,0]); %2 = add(%0, %1); %3 = neg(%2); %3")


def overwritable(graph: Graph) -> set[tuple[Node, Node]]:
    """All pairs of an operation and an operand that it may write over."""
    root, living = roots(graph), lives(graph)
    found = set()
    for step, node in enumerate(graph.nodes):
        for operand in dict.fromkeys(node.inputs if node.primitive in ELEMENTWISE else ()):
            alone = all(root[each] is not operand for each in node.inputs if each is not operand)
            if operand in living and living[operand][1] == step and operand.spec == node.spec and alone:
                found.add((node, operand))
    return found


def _overwrites(random: Random) -> Cases:
    return [
        *in_parts(OVERWRITTEN, text_of),
        (ELEMENTS, TURNED),
        (ELEMENTS, SQUARE),
        (OWNERS, random_memory(random, 6, views=False)),
        (LATER, random_memory(random, 7)),
    ]


def _wrong_overwrites(part: str, text: str, answer: Any) -> str | None:
    graph = Graph.parse(text)
    names, everything = node_names(graph), everything_in(graph)
    expect(answer, list[list[int]], "a list of pairs (operation, operand)")
    if not all(len(pair) == 2 and 0 <= place < len(everything) for pair in answer for place in pair):
        return "something in a pair is no node of the graph, or a pair is none"
    found = {(everything[one], everything[other]) for one, other in answer}
    right = overwritable(graph)
    for node, operand in found - right:
        over = f"{names.get(node, 'a number')} may not write over {names.get(operand, 'a number')}"
        return f"{over}: {_why_not(graph, node, operand)}"
    for node, operand in right - found:
        return f"{names[node]} may write over {names[operand]}, which nobody needs afterwards"
    return None


def _why_not(graph: Graph, node: Node, operand: Node) -> str:
    root, living = roots(graph), lives(graph)
    return hint(
        operand not in node.inputs,
        "it does not read it",
        operand in graph.inputs,
        "that is memory of the caller's",
        operand.primitive is P.constant,
        "that is a number of the program",
        node.primitive not in ELEMENTWISE,
        "an element of the result needs other elements than the one in its place",
        is_view(operand),
        "that is a view, and the memory belongs to another value",
        operand.spec != node.spec,
        "their sizes differ",
        any(root[each] is operand for each in graph.outputs),
        "it is an output",
        operand in living and living[operand][1] > graph.nodes.index(node),
        "it is read again later, itself or through a view",
        True,
        "it reads the same memory through a view as well, in another order",
    ).removeprefix("; ")


may_overwrite = Task(harness.may_overwrite, OVERWRITE, _overwrites, _wrong_overwrites, about=listing)

# --- plans of an arena: an offset for each buffer, so that no two that live at the same time overlap ---------------

Buffer = tuple[int, int, int]  # KiB, the first step and the last in which it lives
Buffers = tuple[list[Buffer]]


def meet(one: Buffer, other: Buffer) -> bool:
    """Whether two buffers live in the same step."""
    return one[1] <= other[2] and other[1] <= one[2]


def peak(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """The size of the arena."""
    return max((offset + size for offset, (size, _, _) in zip(offsets, buffers, strict=True)), default=0)


def in_gaps(buffers: Sequence[Buffer]) -> list[int]:
    """Offsets by best fit: one buffer after the other, each in the smallest gap that is large enough."""
    offsets: list[int] = []
    for buffer in buffers:
        busy = sorted(
            (offset, offset + other[0]) for offset, other in zip(offsets, buffers, strict=False) if meet(buffer, other)
        )
        at, gaps = 0, []
        for start, end in busy:
            if at + buffer[0] <= start:
                gaps.append((start - at, at))
            at = max(at, end)
        offsets.append(min(gaps)[1] if gaps else at)
    return offsets


def drawn(random: Random, count: int, steps: int) -> list[Buffer]:
    """Buffers in the order in which they begin."""
    found = []
    for _ in range(count):
        first = random.randrange(steps)
        last = min(steps - 1, first + random.choice((0, 1, 1, 2, 2, 3, 5)))
        found.append((random.choice((4, 6, 8, 10, 12, 16, 20, 24, 32)), first, last))
    return sorted(found, key=lambda buffer: buffer[1])


def _about_buffers(case: Buffers) -> str:
    return f"buffers {case[0]}"


def _wrong_plan(part: str, case: Buffers, answer: Any) -> str | None:
    (buffers,) = case
    expect(answer, list[int], more="an offset for each buffer", count=len(buffers))
    if min(answer, default=0) < 0:
        return f"buffer {answer.index(min(answer))} begins before the arena, at {min(answer)}"
    for i, one in enumerate(buffers):
        for j, other in enumerate(buffers[:i]):
            if meet(one, other) and answer[i] < answer[j] + other[0] and answer[j] < answer[i] + one[0]:
                return f"{_placed(j, other, answer[j])} and {_placed(i, one, answer[i])} overlap{_when(one, other)}"
    return None


def _placed(number: int, buffer: Buffer, offset: int) -> str:
    size, first, last = buffer
    return f"buffer {number} (steps {first} to {last}, KiB {offset} to {offset + size})"


def _when(one: Buffer, other: Buffer) -> str:
    early, late = sorted((one, other), key=lambda buffer: buffer[1])
    if early[2] == late[1]:
        return f": step {late[1]} reads one for the last time while it writes the other, so both live in it"
    return f" in step {late[1]}"


# --- best_fit -----------------------------------------------------------------------------------------------------

ONE_STEP, ANY_ORDER, SMALLEST = "a read and a write in one step", "in any order", "the smallest gap"
BEST_FIT = {ONE_STEP: 5, ANY_ORDER: 5, SMALLEST: 5}
CHAIN: list[Buffer] = [(8, step, step + 1) for step in range(6)]
GAPS: list[Buffer] = [(8, 0, 1), (4, 0, 9), (4, 0, 1), (4, 0, 9), (4, 2, 3), (8, 2, 3)]
LATE_FIRST: list[Buffer] = [(8, 4, 6), (16, 0, 5), (4, 2, 3), (8, 1, 1), (16, 6, 7), (4, 0, 7)]


def _fits(random: Random) -> Table:
    return {
        ONE_STEP: [(CHAIN,), (drawn(random, 8, 6),)],
        ANY_ORDER: [(LATE_FIRST,), (random.sample(drawn(random, 10, 7), 10),)],
        SMALLEST: [(GAPS,), (drawn(random, 10, 8),)],
    }


def _wrong_fit(part: str, case: Buffers, answer: Any) -> str | None:
    (buffers,), right = case, in_gaps(case[0])
    if (reason := _wrong_plan(part, case, answer)) or answer == right:
        return reason
    if peak(buffers, answer) >= sum(size for size, _, _ in buffers) > peak(buffers, right):
        return f"the arena has {peak(buffers, answer)} KiB: nothing is used twice"
    number = next(number for number, mine in enumerate(answer) if mine != right[number])
    mine, best = answer[number], right[number]
    return f"buffer {number} begins at {mine}, and best fit puts it at {best}" + hint(
        mine < best,
        "the gap there is larger, and best fit takes the smallest that is large enough",
        True,
        "another buffer is in the way only if both live in one step, and the smallest gap that fits is taken",
    )


best_fit = Task(harness.best_fit, BEST_FIT, _fits, _wrong_fit, about=_about_buffers)

# --- plan ---------------------------------------------------------------------------------------------------------

NO_OVERLAP, SMALL = "no overlap", "a small arena"
PLAN = {NO_OVERLAP: 10, SMALL: 15}
ARENAS: list[list[Buffer]] = [
    [(size, first, last) for size, first, last in map(_numbers, arena.split(", "))]
    for arena in (
        "24 0 1, 10 0 2, 32 0 0, 16 1 3, 16 2 4, 10 2 3, 4 3 5, 20 3 3, 24 4 7, 20 5 6, 6 6 8, 32 7 8",
        "12 0 0, 32 1 3, 16 1 1, 32 2 3, 12 3 4, 6 4 7, 16 4 5, 4 4 5, 12 5 8, 32 5 8, 6 6 8, 24 7 8",
        "10 0 1, 16 2 2, 24 2 4, 4 2 3, 4 3 6, 10 3 3, 16 4 7, 6 6 8, 8 6 7, 6 6 7, 10 7 8, 24 8 8",
    )
]
# Of the three arenas together. Start: nothing is used twice. Par: first fit in the order of the steps. Best: 66 and 80,
# the most that lives at once, and 48 for the third, of which 46 live at once; a search
# through all orders shows that no plan has 46.
ARENA = Golf("KiB", start=556, par=232, best=194)


def _plans(random: Random) -> Cases:
    found: Cases = [(NO_OVERLAP, (drawn(random, count, 8),)) for count in (1, 6, 10, 14, 0)]
    for arena in ARENAS:  # in another unit and later, so that no table of answers fits
        unit, later = random.randint(1, 4), random.randint(0, 3)
        found.append((SMALL, ([(unit * size, first + later, last + later) for size, first, last in arena],)))
    return found


def _kib(part: str, case: Buffers, answer: list[int]) -> int:
    """The peak in the unit of the arenas above, in which the sizes have no common divisor but 2."""
    return -(-2 * peak(case[0], answer) // gcd(*(size for size, _, _ in case[0])))


plan = Task(harness.plan, PLAN, _plans, _wrong_plan, about=_about_buffers, golf={SMALL: ARENA}, count=_kib)

# --- checkpoints: which activations are kept, and which are computed again on the way back ------------------------

WITHIN, AGAIN = "within the budget", "little is computed again"
CHECKPOINTS = {WITHIN: 12, AGAIN: 18}
Layers = tuple[list[int], list[int], int]  # sizes, costs, the budget


CHAINS: tuple[Layers, ...] = (
    (
        _numbers("6 6 2 4 8 6 6 4 6 4 8 4 8 4 4 4 2 8 4 8 8 4 4 2 2 4 6 8 2 4 6 4 8 4 8 6 6 8 4 2"),
        _numbers("9 1 2 7 1 8 6 4 6 2 4 4 4 3 9 8 2 2 6 9 8 2 5 9 5 2 9 6 9 4 9 5 8 2 7 6 4 5 3 4"),
        82,
    ),
    (
        [16 - 2 * (layer // 5) for layer in range(40)],
        _numbers("3 1 5 1 9 9 9 9 3 1 9 1 9 9 1 9 5 3 1 5 1 1 1 1 9 3 9 1 3 9 9 3 5 3 3 9 5 1 9 1"),
        144,
    ),
    (
        [4, 4, 4, 12] * 10,
        _numbers("1 2 2 14 3 5 5 12 1 3 7 15 9 6 9 16 9 5 1 9 6 8 6 15 7 9 3 17 3 4 4 9 3 6 3 11 9 9 6 17"),
        96,
    ),
)
# Of the three chains together. Start: every sixth layer is kept, about the root of their number. Par: layers at the
# best even distance, 131, 132 and 192. Best: 105, 83 and 160, by two searches through what of each
# beginning matters for the rest; the 2 ** 40 choices themselves are too many.
GFLOP = Golf("GFLOP", start=566, par=455, best=348)


def needed(sizes: Sequence[int], kept: Collection[int]) -> tuple[int, int]:
    """What the kept activations take, and the largest run of activations between two of them."""
    total = run = most = 0
    for layer, size in enumerate(sizes):
        if layer in kept:
            total, run = total + size, 0
        else:
            run += size
            most = max(most, run)
    return total, most


def least(sizes: Sequence[int]) -> int:
    """The smallest peak that any choice has."""
    choices = range(1 << len(sizes))
    return min(sum(needed(sizes, [i for i in range(len(sizes)) if bits >> i & 1])) for bits in choices)


def _chains(random: Random) -> Cases:
    found: Cases = []
    for count in (1, 4, 7, 9):
        sizes = random.choices((2, 4, 6, 8, 12, 16), k=count)
        costs = [random.randint(1, 9) for _ in range(count)]
        found.append((WITHIN, (sizes, costs, least(sizes) + random.randint(0, 4))))
    for sizes, costs, budget in CHAINS:  # in other units, so that no table of answers fits
        unit, price = random.randint(1, 4), random.randint(1, 4)
        found.append((AGAIN, ([unit * size for size in sizes], [price * cost for cost in costs], unit * budget)))
    return found


def _about_chain(case: Layers) -> str:
    return f"sizes {case[0]}, budget {case[2]}"


def _wrong_checkpoints(part: str, case: Layers, answer: Any) -> str | None:
    sizes, _, budget = case
    expect(answer, list[int], "a list of layers")
    if strange := [layer for layer in answer if not 0 <= layer < len(sizes)]:
        return f"{strange[0]} is no layer of {len(sizes)}"
    if len(set(answer)) < len(answer):
        return f"a layer is in the list twice: {answer}"
    total, most = needed(sizes, answer)
    if total + most <= budget:
        return None
    why = ": what is computed again is in memory, too, until the next kept activation" if total <= budget else ""
    return f"keeping {answer} takes {total}, and the largest run between them {most}: {total + most} MiB{why}"


def _gflop(part: str, case: Layers, kept: list[int]) -> int:
    """What is computed again, in the price of the chains above, in which the costs have no common divisor."""
    return sum(cost for layer, cost in enumerate(case[1]) if layer not in kept) // gcd(*case[1])


checkpoints = Task(
    harness.checkpoints, CHECKPOINTS, _chains, _wrong_checkpoints, about=_about_chain, golf={AGAIN: GFLOP}, count=_gflop
)

TASKS = (live_ranges, best_fit, may_overwrite, plan, checkpoints)
