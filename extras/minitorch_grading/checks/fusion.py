"""Exercise 07, operator fusion: what a kernel moves, which operations share one, how one is written and measured."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from statistics import mean, median
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.dtypes import float32, float64
from minitorch.graph import Graph, apply, evaluate, input_node, literal
from minitorch.graph.text import node_names
from minitorch.ir import Node, Spec

from ..harness import fusion as harness
from ..harness.fusion import REDUCTIONS, operations
from ..harness.plain import Fault, described
from .compare import off
from .machines.kernel_source import MOST_TEXT, Array, Machine, NotRunError
from .machines.kernels import bytes_of, illegal, joined_to_the_last, reference, traffic
from .reasons import expect, hint, in_context, indented, recognised
from .samples import graph_text, in_parts, listing, unforeseen
from .task import Cases, Task, Verdict


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


def _kernels(random: Random) -> Cases:
    """The text of a graph, and the places of a kernel's nodes among its operations."""
    doubles = graph_text("f64[4,8]", "%0 = neg(x); %1 = add(%0, y); %1")
    squares, both = text_of("%0 = mul(x, x); %1 = add(%0, x); %1"), text_of("%0 = exp(x); %1 = neg(%0); %1, %0")
    table = {
        READ: [(CHAIN, [0, 1, 2]), (DIAMOND, [1, 2, 3]), (doubles, [0, 1]), (squares, [0, 1])],
        WRITTEN: [(DIAMOND, [0, 1]), (both, [0, 1]), (SOFTMAX, [2, 3, 4])],
        REST: [(NUMBERS, [0, 1, 2]), (NUMBERS, [0])],
    }
    cases = in_parts(table)
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
    expect(answer, int, "a whole number")
    if answer == read + written:
        return None

    def size(nodes: Sequence[Node] | set[Node]) -> int:
        return sum(node.spec.nbytes for node in nodes)

    inputs = [each for node in kernel for each in node.inputs]
    numbers = size({each for each in inputs if each.primitive is P.constant})
    inside = [node for node in kernel if node in inputs]
    outside = {*graph.outputs, *(each for node in graph.nodes if node not in kernel for each in node.inputs)}
    return f"{answer} instead of {read + written} bytes" + hint(
        answer == traffic(graph, [[node] for node in kernel]),
        "those are the bytes of one kernel for each operation; inside a kernel a value stays in a register",
        answer == read + numbers + written,
        "a number in the program is part of the instruction, and is not read",
        answer == size([each for each in inputs if each not in set(kernel)]) + written,
        "a value that is read by two operations is loaded once, and a number is not loaded at all",
        answer == read + size(kernel),
        "a value that nobody outside reads is never written",
        answer
        in [read + written - size([each for each in inside if each in some]) for some in (graph.outputs, outside)],
        "an output is written even if it is read inside, and so is what a node outside reads",
        answer == read,
        "what others read, and what the graph returns, has to be written",
        answer == written,
        "what comes from outside has to be read",
        answer == (read + written) // 4,
        "those are elements; an element of float32 is 4 bytes",
        2 * answer == read + written and "f64" in case[0],
        "an element of float64 is 8 bytes: node.spec.nbytes knows the type",
        True,
        f"{read} are read and {written} written",
    )


kernel_bytes = Task(harness.kernel_bytes, BYTES, _kernels, _wrong_bytes, about=_about_kernel)

# --- partition: graded by kernels and bytes -----------------------------------------------------------------------

RUNS, FEW_KERNELS, FEW_BYTES = "kernels that can run", "few kernels", "few bytes"
PARTITION = {RUNS: 8, FEW_KERNELS: 11, FEW_BYTES: 11}
SIZES = (6, 9, 12, 15)
EASY = 0.1  # of a graph's points: what joining each operation to the kernel before it gains, where more can be gained
HARD = 3  # such a graph counts as so many others
Kernels = list[list[Node]]


def _graphs(random: Random) -> Cases:
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


partition = Task(harness.partition, PARTITION, _graphs, _wrong_partition, shrinks=True, judges=_judge_partition)

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


def _loops(random: Random) -> Cases:
    texts = in_parts(GENERATED, lambda program: graph_text(f"f64[{LENGTH}]", program))
    return [*texts, (RIGHT, _random_loop(random, 6)), (ONE_LOOP, _random_loop(random, 5))]


def _wrong_source(part: str, text: str, source: Any) -> str | None:
    expect(source, str, "a text", "the source of a function `kernel`")
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
    if said := off(out, right, lambda out, right: np.isclose(out, right, 1e-12, 1e-12)):
        return said + hint(graph.count()["sub"], "mind the order of the operands")
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


generate = Task(harness.generate, GENERATE, _loops, _wrong_source, about=listing, shrinks=True)

# --- roofline: a picture is read, the same by everybody, so that no reason says what is right ---------------------

PEAK, BANDWIDTH = 64, 16  # billions of operations and of bytes in a second
# Of each kernel: billions of operations and of bytes, and milliseconds. `a` and `b` are one program.
DRAWN = {"a": (1, 4, 250), "b": (1, 0.5, 125), "c": (4, 4, 250)}
DRAWN |= {"d": (16, 1, 250), "e": (2, 0.25, 250), "f": (4, 8, 125)}
ROOFLINE = {"the ridge": 3, "at the roof": 5, "below and above it": 4, "what fusion did": 3}
SWAPPED = "the slope is memory, and the flat roof arithmetic"
SIDE = "a roof says how fast a kernel can be at most: only where a mark touches it is it the limit"
LOGARITHMIC = "both axes are logarithmic: equal lengths are equal factors"
HEIGHT = "that is the height of the flat roof: the ridge is a place on the other axis"
LOW = "a low mark is not yet below the roof: compare it with the roof straight above"
CACHED = "nothing is faster than the flat roof, but the slope is that of main memory alone"
FULL = "the bytes would say so if both marks were at the roof"
# Of each key: its part, what is right (names of kernels, or a number), and what is read by mistake.
READINGS: dict[str, tuple[str, str | float, dict[str, Any]]] = {
    "ridge": ("the ridge", 4.0, {HEIGHT: PEAK}),
    "memory": ("at the roof", "ac", {SWAPPED: "d", SIDE: "abcf"}),
    "arithmetic": ("at the roof", "d", {SWAPPED: "ac", SIDE: "de"}),
    "below": ("below and above it", "be", {LOW: "abe"}),
    "above": ("below and above it", "f", {CACHED: ""}),
    "bytes": ("what fusion did", 8.0, {}),
    "time": ("what fusion did", 2.0, {FULL: 8.0}),
}


def picture() -> Any:
    """Draw the roofline of six kernels on a machine that does not exist."""
    from minitorch_inspect.plots.roofline import RooflineRow, roofline_of
    from minitorch_profiler import Machine

    rows = []
    for name, (done, moved, took) in DRAWN.items():
        of_roofs = 1e3 * moved / took / BANDWIDTH, 1e3 * done / took / PEAK
        rows.append(RooflineRow(name, "", 1, took / 1e3, int(moved * 1e9), int(done * 1e9), *of_roofs))
    caches = 32 << 10, 1 << 20, 8 << 20
    roofs = Machine("an invented processor", 32, 1, caches, BANDWIDTH * 1e9, {"float32": PEAK * 1e9})
    return roofline_of(tuple(rows), roofs, "Roofline: six kernels on an invented machine")


def _wrong_reading(part: str, key: str, answer: Any) -> str | None:
    expect(answer, dict, "a dict with this key")
    have, (_, right, mistakes) = answer.get(key), READINGS[key]
    if isinstance(right, str):
        expect(have, list[str])
        is_given: Callable[[Any], bool] = "".join(sorted(set(have))).__eq__
        otherwise = ""
    elif type(have) in (int, float):
        is_given, otherwise = partial(math.isclose, have, rel_tol=0.1), f"; {LOGARITHMIC}"
    else:
        return f"a number was expected, and it is {described(have)}"
    return None if is_given(right) else f"it is not {have}{recognised(mistakes.items(), is_given) or otherwise}"


def _keys(random: Random) -> Cases:
    """The keys in an order that is drawn: nothing else can differ."""
    return [(READINGS[key][0], key) for key in random.sample(list(READINGS), len(READINGS))]


roofline = Task(harness.roofline, ROOFLINE, _keys, _wrong_reading, about=repr)

# --- measure: the program and the clock are the judge's -----------------------------------------------------------

FIRST, DISTURBED, LATER = "the first call", "disturbed calls", "a call that returns early"
MEASURE = {FIRST: 3, DISTURBED: 4, LATER: 3}
LAUNCH = 1e-5  # seconds until a call returns that is not waited for


class Device:
    """A program whose calls take the seconds of a case, and a clock; of it is seen how long, and how many calls."""

    def __init__(self, case: tuple[str, int, tuple[list[float], bool]]) -> None:
        self._took, self._returns_early = case[2]
        self._now, self._done = 1000.0, 0.0  # seconds on the clock, and when the last call is done
        self.seen: tuple[list[float], int] = self._took, 0

    def reply(self, question: Any) -> float | None:
        """Run the program, wait for it, or tell the time."""
        if question == "clock":
            return self._now
        if question == "run":
            if self.seen[1] == len(self._took):
                raise ValueError(f"the program was run more than {len(self._took)} times")
            self._done = max(self._now, self._done) + self._took[self.seen[1]]
            self._now += LAUNCH
            self.seen = self._took, self.seen[1] + 1
        if question == "wait" or not self._returns_early:
            self._now = max(self._now, self._done)
        return None


def _calls(random: Random) -> list[tuple[str, int, tuple[list[float], bool]]]:
    """The rounds; not sent are the seconds of each call, and whether calls return early."""
    found = []
    for part, rounds in ((FIRST, 1), (FIRST, 2), (DISTURBED, 7), (DISTURBED, 8), (LATER, 2), (LATER, 6)):
        usual = random.uniform(0.001, 0.002)
        spread = 0.05 if part == DISTURBED else 0.0002  # of it are the steps from a call to the next longer one
        took = [usual * (1 + spread * place) for place in range(rounds)]
        if part == DISTURBED:
            took[-2:] = usual * random.uniform(9, 12), usual * random.uniform(20, 30)
        random.shuffle(took)
        found.append((part, rounds, ([usual * random.uniform(60, 90), *took], part == LATER)))
    return found


def _wrong_measure(part: str, rounds: int, answer: Any) -> str | None:
    seconds, ((first, *took), runs) = answer
    expect(seconds, float, "a float")

    def near(other: float) -> bool:
        return math.isclose(seconds, other, rel_tol=0.01)

    if near(right := median(took)):
        return None
    listed = ", ".join(f"{1e3 * each:.3g}" for each in (first, *took))
    why = hint(
        runs < rounds + 1,
        f"the program was run {runs} times: once before, and then as often as there are rounds",
        near(sorted(took)[rounds // 2]) or near(sorted(took)[(rounds - 1) // 2]),
        "of an even number of times the median is the mean of the two in the middle",
        near(median((first, *took))) or near(mean((first, *took))),
        "the first call is in it, which compiles, and comes once",
        seconds < min(took) / 2,
        "a call returns before its work is done: wait for it before you look at the clock again",
        near(median((first + took[0], *took[1:]))),
        "the first call was not yet done when the clock was looked at: wait for it, too",
        near(1e3 * right),
        "it is in milliseconds",
        near(mean(took)),
        "it is the mean, which one disturbed call moves; the median stays",
        near(min(took)),
        "it is the shortest call, and no typical one",
    )
    return f"it is {1e3 * seconds:.4g} ms and should be {1e3 * right:.4g} ms{why}; the calls took {listed} ms"


measure = Task(harness.measure, MEASURE, _calls, _wrong_measure, about="rounds: {}".format, oracle=Device)

TASKS = (kernel_bytes, partition, generate, roofline, measure)
