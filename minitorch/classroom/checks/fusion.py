"""Exercise 07, operator fusion: what a kernel moves, which operations share one, and how one is written."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from ... import primitives as P
from ...dtypes import float32, float64
from ...graph import Graph, apply, input_node, literal
from ...graph.text import node_names
from ...ir import Node, Spec
from ..asks import fusion as asks
from ..asks.fusion import REDUCTIONS, operations
from ..asks.plain import Fault, described
from .machines.kernel_source import MOST_TEXT, Array, Machine, NotRunError
from .machines.kernels import bytes_of, illegal, joined_to_the_last, reference, traffic
from .reasons import hint, in_context, indented, wrong_form
from .samples import evaluate, graph_text, in_parts, listing, unforeseen
from .task import Cases, Task, Verdict, by_case


def text_of(program: str) -> str:
    """A graph of two matrices."""
    return graph_text("f32[4,8]", program)


CHAIN = text_of("%0 = neg(x); %1 = exp(%0); %2 = add(%1, y); %2")
DIAMOND = text_of("%0 = exp(x); %1 = neg(%0); %2 = mul(%0, y); %3 = add(%1, %2); %3")
SOFTMAX = text_of(  # over the first dimension
    "%0 = reduce_max(x, dims=[0]); %1 = expand(%0, shape=[4,8]); %2 = sub(x, %1); %3 = exp(%2); "
    "%4 = reduce_sum(%3, dims=[0]); %5 = expand(%4, shape=[4,8]); %6 = div(%3, %5); %6"
)
SIBLINGS = text_of("%0 = neg(x); %1 = reduce_sum(x, dims=[0]); %2 = exp(x); %3 = neg(%1); %0, %2, %3")
ZIGZAG = text_of("%0 = exp(x); %1 = reduce_sum(%0, dims=[0]); %2 = expand(%1, shape=[4,8]); %3 = mul(%0, %2); %3")
TURNS = text_of(  # two chains of different shapes that take turns
    "%0 = exp(x); %1 = reduce_sum(y, dims=[0]); %2 = neg(%1); %3 = mul(%0, x); %4 = exp(%2); %5 = abs(%3); "
    "%6 = add(%4, %2); %7 = add(%5, %3); %6, %7"
)


def random_kernels(random: Random, size: int) -> Graph:
    """A graph of elementwise operations, sums over the first dimension, and what expands them again."""
    whole, row = Spec((4, 8), float32), Spec((8,), float32)
    inputs = [input_node(name, whole) for name in "xy"]
    pool: list[Node] = list(inputs)
    for _ in range(size):
        a, choice = random.choice(pool[-4:]), random.random()
        if a.spec == whole and choice < 0.2:
            pool.append(apply(random.choice(REDUCTIONS), a, dims=(0,)))
        elif a.spec == row and choice < 0.5:
            pool.append(apply(P.expand, a, shape=whole.shape))
        elif choice < 0.6:
            pool.append(apply(random.choice((P.neg, P.exp, P.absolute)), a))
        else:
            b = random.choice([node for node in pool if node.spec == a.spec])
            b = literal(2.0, a.spec) if random.random() < 0.2 else b
            pool.append(apply(random.choice((P.add, P.mul, P.sub)), a, b))
    outputs = [pool[-1]] + [random.choice(pool[2:])] * (random.random() < 0.5)
    return Graph(inputs, outputs)


# --- kernel_bytes -------------------------------------------------------------------------------------------------

READ, WRITTEN, REST = "what is read", "what is written", "numbers and reductions"
BYTES = {READ: 8, WRITTEN: 8, REST: 4}
NUMBERS = text_of("%0 = mul(x, 2.0); %1 = add(%0, 1.0); %2 = reduce_sum(%1, dims=[0]); %3 = neg(%2); %3")


def _kernels(seed: int) -> Cases:
    """The text of a graph, and the places of a kernel's nodes among its operations."""
    random = Random(seed)
    cases: Cases = [
        (READ, (CHAIN, [0, 1, 2])),
        (READ, (DIAMOND, [1, 2, 3])),
        (READ, (text_of("%0 = mul(x, x); %1 = add(%0, x); %1"), [0, 1])),
        (WRITTEN, (DIAMOND, [0, 1])),
        (WRITTEN, (text_of("%0 = exp(x); %1 = neg(%0); %1, %0"), [0, 1])),
        (WRITTEN, (SOFTMAX, [2, 3, 4])),
        (REST, (NUMBERS, [0, 1, 2])),
        (REST, (NUMBERS, [0])),
    ]
    for part in (READ, WRITTEN):
        graph = random_kernels(random, 8)
        kernel = random.choice([each for each in reference(graph) if len(each) > 1] or [operations(graph)[:1]])
        cases.append((part, (str(graph), [operations(graph).index(node) for node in kernel])))
    return cases


def _kernel_of(case: tuple[str, list[int]]) -> tuple[Graph, list[Node]]:
    graph = Graph.parse(case[0])
    return graph, [operations(graph)[place] for place in case[1]]


def _about_kernel(case: tuple[str, list[int]]) -> str:
    graph, kernel = _kernel_of(case)
    return f"the kernel of {', '.join(node_names(graph)[node] for node in kernel)}{listing(case[0])}"


def _wrong_bytes(part: str, case: tuple[str, list[int]], answer: Any) -> str | None:
    graph, kernel = _kernel_of(case)
    read, written = bytes_of(graph, kernel)
    if type(answer) is not int:
        return f"a whole number was expected, and it is {described(answer)}"
    if answer == read + written:
        return None

    def size(nodes: Sequence[Node] | set[Node]) -> int:
        return sum(node.spec.nbytes for node in nodes)

    inputs = [each for node in kernel for each in node.inputs]
    numbers = size({each for each in inputs if each.primitive is P.constant})
    inside = size([node for node in kernel if node in graph.outputs and node in inputs])
    return f"{answer} instead of {read + written} bytes" + hint(
        answer == traffic(graph, [[node] for node in kernel]),
        "those are the bytes of one kernel for each operation; inside a kernel a value stays in a register",
        answer == read + numbers + written,
        "a number in the program is part of the instruction, and is not read",
        answer == size([each for each in inputs if each not in set(kernel)]) + written,
        "a value that is read by two operations is loaded once, and a number is not loaded at all",
        answer == read + size(kernel),
        "a value that nobody outside reads is never written",
        answer == read + written - inside,
        "an output is written even if it is read inside",
        answer == read,
        "what others read, and what the graph returns, has to be written",
        answer == written,
        "what comes from outside has to be read",
        answer == (read + written) // 4,
        "those are elements; an element of float32 is 4 bytes",
        True,
        f"{read} are read and {written} written",
    )


kernel_bytes = by_case(asks.kernel_bytes, BYTES, _kernels, _wrong_bytes, about=_about_kernel)

# --- partition: graded by kernels and bytes -----------------------------------------------------------------------

RUNS, FEW_KERNELS, FEW_BYTES = "kernels that can run", "few kernels", "few bytes"
PARTITION = {RUNS: 8, FEW_KERNELS: 11, FEW_BYTES: 11}
SIZES = (6, 9, 12, 15)
EASY = 0.1  # of a graph's points: what joining each operation to the kernel before it gains, where more can be gained
HARD = 3  # such a graph counts as so many others
Kernels = list[list[Node]]


def _graphs(seed: int) -> Cases:
    random = Random(seed)
    texts = [CHAIN, DIAMOND, ZIGZAG, SIBLINGS, SOFTMAX, TURNS, *(_drawn(random, size) for size in SIZES)]
    return [("", text) for text in texts]  # every graph is for all parts


def _drawn(random: Random, size: int) -> str:
    """A graph in which more can be gained than by joining each operation to the kernel before it."""
    while True:
        graph = random_kernels(random, size)
        easy, best = joined_to_the_last(graph), reference(graph)
        if traffic(graph, easy) > traffic(graph, best) and len(easy) > len(best):
            return str(graph)


def _read(graph: Graph, answer: Any) -> tuple[Kernels, str]:
    """The kernels, and why they cannot run."""
    nodes = operations(graph)
    if type(answer) is not list or not all(type(kernel) is list for kernel in answer):
        return [], f"a list of lists of nodes was expected, and it is {described(answer)}"
    if not all(type(place) is int and 0 <= place < len(nodes) for kernel in answer for place in kernel):
        return [], "something in a kernel is no operation of the graph; constants belong to none"
    kernels = [[nodes[place] for place in kernel] for kernel in answer]
    return kernels, illegal(graph, kernels) or ("" if all(kernels) else "a kernel is empty")


def _reasons(text: str, answer: Any) -> tuple[str, str, str]:
    """The fault: it cannot run, it has too many kernels, it moves too many bytes."""
    graph = Graph.parse(text)
    kernels, wrong = _read(graph, answer)
    if wrong:
        return in_context(wrong, listing(text)), "", ""
    best = reference(graph)
    mine, least = traffic(graph, kernels), traffic(graph, best)
    shown, better = (
        " | ".join(" ".join(node_names(graph)[node] for node in kernel) for kernel in each) for each in (kernels, best)
    )
    many = f"{len(kernels)} kernels ({shown}) where {len(best)} can do ({better})"
    much = f"{mine} bytes with {shown}, {least} with {better}"
    found = (many if len(kernels) > len(best) else "", much if mine > least else "")
    return "", *(each and in_context(each, listing(text)) for each in found)  # type: ignore[return-value]


def _wrong_partition(part: str, text: str, answer: Any) -> str | None:
    """The first thing that is wrong with a partition, legality first."""
    return next((reason for reason in _reasons(text, answer) if reason), None)


def _gain(have: int, best: int, easy: int, worst: int) -> float:
    """How much of what can be gained has been; the share that is easy to gain counts little."""
    if have <= best:
        return 1.0
    if have < easy:
        return EASY + (1 - EASY) * (easy - have) / (easy - best)
    most, start = (EASY, easy) if easy > best else (1.0, best)
    return most * max(0.0, (worst - have) / (worst - start)) if worst > start else 0.0


def _judge_partition(cases: Cases, answers: Any) -> dict[str, Verdict]:
    if type(answers) is not list:
        raise ValueError("the answers are a list")
    rows = [(text, *attempt) for (_, text), attempt in zip(cases, answers, strict=True)]
    if faults := [answer for _, answer, _ in rows if isinstance(answer, Fault)]:
        return dict.fromkeys(PARTITION, str(faults[0]))
    gains: list[tuple[float, float]] = []
    reasons: list[tuple[str, ...]] = []
    joined = False
    for text, answer, small in rows:
        graph = Graph.parse(text)
        kernels, wrong = _read(graph, answer)
        alone, easy, best = [[node] for node in operations(graph)], joined_to_the_last(graph), reference(graph)
        joined |= not wrong and len(kernels) < len(alone)
        choices = (kernels, best, easy, alone)
        gain = (_gain(*map(len, choices)), _gain(*(traffic(graph, each) for each in choices)))
        gains += [(0.0, 0.0) if wrong else gain] * (HARD if len(easy) > len(best) else 1)
        reasons.append(_told(text, answer, small))
    first = [next(filter(None, column), "") for column in zip(*reasons, strict=True)]
    missing = f"kernels that cannot run save nothing: {first[0].partition(chr(10))[0]}" if first[0] else ""
    shares = [sum(column) / len(gains) for column in zip(*gains, strict=True)]
    runs = first[0] or ("" if joined else "every operation has a kernel of its own: nothing is fused")
    return {RUNS: runs or None} | {
        part: None if share >= 1 else (share, reason or missing)
        for part, share, reason in zip((FEW_KERNELS, FEW_BYTES), shares, first[1:], strict=True)
    }


def _told(text: str, answer: Any, small: Any) -> tuple[str, ...]:
    """The reasons, told of the smaller graph where that has the same kind of fault."""
    whole = _reasons(text, answer)
    if small is None or isinstance(small[1], Fault) or not any(whole):
        return whole
    return tuple(short if long and short else long for long, short in zip(whole, _reasons(*small), strict=True))


partition = Task(asks.partition, PARTITION, _graphs, _judge_partition, shrinks=_wrong_partition)

# --- generate: a source is run, its loads and operations are counted, and so are the loops of its text -------------

RIGHT, ONE_LOOP, ONCE = "the right numbers", "one loop", "each value once"
GENERATE = {RIGHT: 10, ONE_LOOP: 7, ONCE: 8}
LENGTH = 5
GENERATED = {
    RIGHT: (
        "%0 = add(x, y); %0",
        "%0 = neg(x); %1 = exp(%0); %2 = mul(%1, 0.5); %2",
        "%0 = sub(x, y); %1 = sub(y, %0); %2 = maximum(%1, 0.0); %2",
    ),
    ONE_LOOP: ("%0 = neg(x); %1 = add(%0, y); %1",),
    ONCE: (
        "%0 = add(x, y); %1 = mul(%0, %0); %1",
        "%0 = exp(x); %1 = neg(%0); %2 = mul(%1, %0); %3 = add(%2, %0); %3",
        "%0 = mul(x, x); %1 = add(%0, x); %1",
    ),
}


def _random_loop(random: Random, size: int) -> str:
    spec = Spec((LENGTH,), float64)
    inputs = [input_node(name, spec) for name in "xy"]
    pool: list[Node] = list(inputs)
    for _ in range(size):
        a, b = random.choice(pool[-3:]), random.choice(pool)
        if random.random() < 0.3:
            # exp of what is not positive, so that no number grows beyond all bounds
            pool.append(apply(P.exp, apply(P.neg, apply(P.maximum, a, literal(0.0, spec)))))
        else:
            b = literal(random.choice((2.0, 0.5, -1.0)), spec) if random.random() < 0.3 else b
            pool.append(apply(random.choice((P.add, P.sub, P.mul, P.maximum)), a, b))
    return str(Graph(inputs, pool[-1:]))


def _loops(seed: int) -> Cases:
    random = Random(seed)
    texts = in_parts(GENERATED, lambda program: graph_text(f"f64[{LENGTH}]", program))
    return [*texts, (RIGHT, _random_loop(random, 6)), (ONE_LOOP, _random_loop(random, 5))]


def _wrong_source(part: str, text: str, source: Any) -> str | None:
    if type(source) is not str:
        return f"a text was expected, the source of a function `kernel`, and it is {described(source)}"
    reason = _wrong_kernel(part, Graph.parse(text), source)
    return reason and f"{reason}\nit wrote\n{indented(source[:MOST_TEXT])}\nfor"


def _wrong_kernel(part: str, graph: Graph, source: str) -> str | None:
    numbers = [unforeseen().uniform(-2, 2, LENGTH).tolist() for _ in graph.inputs]
    arrays = [Array(list(each)) for each in (*numbers, [math.nan] * LENGTH)]
    machine = Machine()
    try:
        machine.run(source, arrays)
    except NotRunError as error:
        return str(error)
    out, right = np.array(arrays[-1].numbers), evaluate(graph, [np.array(each) for each in numbers])[0]
    near = np.isclose(out, right, rtol=1e-12, atol=1e-12)
    if not near.all():
        at = int(np.argmin(near))
        swapped = hint(graph.count()["sub"], "mind the order of the operands")
        return f"element {at} is {out[at]:.6g} and should be {right[at]:.6g}{swapped}"
    loops = sum(isinstance(node, (ast.For, ast.While, ast.comprehension)) for node in ast.walk(ast.parse(source)))
    if part == ONE_LOOP and loops != 1:
        why = "a loop for each operation puts every value into memory; that is what fusion is to avoid"
        return f"there are {loops} loops: {why}"
    if part != ONCE:
        return None
    for node, array in zip(graph.inputs, arrays, strict=False):
        if (most := max(array.loads.values(), default=0)) > 1:
            return f"{node.params['name']} is read {most} times for each element: keep it in a variable"
    computed = sum(node.primitive.kind == "binary" or node.primitive is P.exp for node in graph.nodes)
    if machine.operations > computed * LENGTH:
        done = f"{machine.operations} operations on {LENGTH} elements for a graph of {computed}"
        return f"{done}: a value that is used twice is computed twice"
    return None


generate = by_case(asks.generate, GENERATE, _loops, _wrong_source, about=listing, shrinks=True)

# --- merge, online_softmax: two partial results become one, and a block is added to a partial result ---------------
# The row is never there as a whole: a case has the result so far, which is the judge's, and a block. So one pass, and
# memory for a block, is all that a right answer can take.

Partial = tuple[float, float]  # the largest number so far, and the sum of exp(number - largest)
NOTHING: Partial = (-math.inf, 0.0)
LARGE = "large numbers"


def statistics(numbers: list[float]) -> Partial:
    """The partial result of some numbers, in two passes."""
    largest = max(numbers)
    return largest, math.fsum(math.exp(number - largest) for number in numbers)


def _wrong_partial(part: str, case: tuple[Any, Any], answer: Any) -> str | None:
    """Why an answer is not the partial result of two parts of a row; each is such a result, or a list of numbers."""
    if reason := wrong_form(answer, tuple, float, 2, "(largest, total)"):
        return reason
    if any(map(math.isnan, answer)):
        return "NaN: infinity minus infinity is none; where there is nothing yet, there is nothing to rescale"
    a, b = (statistics(each) if isinstance(each, list) else each for each in case)
    largest = max(a[0], b[0])
    right = largest, sum(total * math.exp(top - largest) for top, total in (a, b) if total)
    for name, have, wanted in zip(("largest", "total"), answer, right, strict=True):
        if have != wanted and not math.isclose(have, wanted, rel_tol=1e-9, abs_tol=1e-12):
            added = math.isclose(answer[1], a[1] + b[1])
            return f"{name} is {have:.6g} and should be {wanted:.6g}" + hint(
                added and isinstance(case[1], list),
                "when the largest number rises, the total so far has to be scaled down to it",
                added,
                "the totals were added as they are, but each has a scale of its own",
            )
    return None


def _shown(part: Any) -> str:
    if isinstance(part, list):
        return f"the block {[round(number, 3) for number in part]}"
    return f"({part[0]:.4g}, {part[1]:.4g})"


def _about_parts(case: tuple[Any, Any]) -> str:
    return f"merging {' and '.join(map(_shown, case))}"


def _pairs(seed: int) -> Cases:
    random = Random(seed)
    a, b = ([random.uniform(-2, 2) for _ in range(random.randint(1, 5))] for _ in range(2))
    one, other, high = statistics(a), statistics(b), statistics([1000.0 + number for number in a])
    return [
        ("two blocks", (one, other)),
        ("two blocks", (other, statistics([number + 1 for number in a]))),
        ("two blocks", (statistics([number + 3 for number in b]), one)),
        (LARGE, (high, other)),
        (LARGE, (other, high)),
        ("nothing so far", (NOTHING, one)),
        ("nothing so far", (other, NOTHING)),
        ("nothing so far", (NOTHING, NOTHING)),
    ]


def _blocks(seed: int) -> Cases:
    """The result so far, and the next block."""
    random = Random(seed)

    def block(center: float = 0.0) -> list[float]:
        return [random.gauss(center, 2) for _ in range(random.randint(2, 6))]

    return [
        ("the first block", (NOTHING, block())),
        ("the first block", (NOTHING, [-1000.0, -1001.0])),
        ("the next block", (statistics(block()), block(-6))),
        ("the next block", (statistics(block()), block(6))),
        ("the next block", (statistics(block(-9)), [1.0, 2.0, 3.0])),
        (LARGE, (statistics(block(1000)), block(990))),
        (LARGE, (statistics(block()), block(1000))),
        (LARGE, (statistics(block(1000)), block())),
    ]


MERGE = {"two blocks": 4, LARGE: 3, "nothing so far": 3}
merge = by_case(asks.merge, MERGE, _pairs, _wrong_partial, about=_about_parts)

ONLINE = {"the first block": 4, "the next block": 7, LARGE: 4}
online_softmax = by_case(asks.online_softmax, ONLINE, _blocks, _wrong_partial, about=_about_parts)

TASKS = (kernel_bytes, partition, generate, merge, online_softmax)
