"""Which operations share a kernel: graded by kernels and bytes."""

from __future__ import annotations

from random import Random
from typing import Any

from ....graph import Graph
from ....graph.text import node_names
from ....ir import Node
from ...asks import fusion as asks
from ...asks.fusion import operations
from ...asks.plain import Fault
from ..smaller import believed, indented
from ..task import Task, Verdict
from .graphs import CHAIN, DIAMOND, SIBLINGS, SOFTMAX, TURNS, ZIGZAG, random_kernels
from .measure import illegal, joined_to_the_last, reference, traffic

PARTITION = {"kernels that can run": 8, "few kernels": 11, "few bytes": 11}
SIZES = (6, 9, 12, 15)
EASY = 0.1  # of a graph's points: what joining each operation to the kernel before it gains, where more can be gained
HARD = 3  # such a graph counts as so many others


def _graphs(seed: int) -> list[tuple[str, str]]:
    random = Random(seed)
    texts = [CHAIN, DIAMOND, ZIGZAG, SIBLINGS, SOFTMAX, TURNS, *(_drawn(random, size) for size in SIZES)]
    return [("", text) for text in texts]  # every graph is for all parts


def _drawn(random: Random, size: int) -> str:
    """A graph in which more can be gained than by joining each operation to the kernel before it."""
    while True:
        graph = random_kernels(random, size)
        easy, best = (traffic(graph, rule(graph)) for rule in (joined_to_the_last, reference))
        if easy > best and len(joined_to_the_last(graph)) > len(reference(graph)):
            return str(graph)


def _read(text: str, answer: Any) -> tuple[Graph, list[list[Node]], str | None]:
    """The graph, the kernels, and why they cannot run."""
    graph = Graph.parse(text)
    nodes = operations(graph)
    if type(answer) is not list:
        return graph, [], f"a list of lists of nodes was expected, and it is {answer}"
    if not all(type(place) is int and 0 <= place < len(nodes) for kernel in answer for place in kernel):
        return graph, [], "something in a kernel is no operation of the graph; constants belong to none"
    kernels = [[nodes[place] for place in kernel] for kernel in answer]
    return graph, kernels, illegal(graph, kernels) or (None if all(kernels) else "a kernel is empty")


def _wrong_partition(text: str, answer: Any) -> str | None:
    """The first thing that is wrong with a partition, legality first."""
    return next((reason for reason in _reasons(text, answer) if reason), None)


def _reasons(text: str, answer: Any) -> tuple[str, str, str]:
    """The fault: it cannot run, it has too many kernels, it moves too many bytes."""
    graph, kernels, wrong = _read(text, answer)
    listing = f" in\n{indented(str(graph))}"
    if wrong:
        return f"{wrong}{listing}", "", ""
    best = reference(graph)
    mine, least = traffic(graph, kernels), traffic(graph, best)
    shown = " | ".join(" ".join(node_names(graph)[node] for node in kernel) for kernel in kernels)
    better = " | ".join(" ".join(node_names(graph)[node] for node in kernel) for kernel in best)
    many = f"{len(kernels)} kernels ({shown}) where {len(best)} can do ({better}){listing}"
    much = f"{mine} bytes with {shown}, {least} with {better}{listing}"
    return "", many if len(kernels) > len(best) else "", much if mine > least else ""


def _gain(have: int, best: int, easy: int, worst: int) -> float:
    """How much of what can be gained has been; the share that is easy to gain counts little."""
    if have <= best:
        return 1.0
    if have < easy:
        return EASY + (1 - EASY) * (easy - have) / (easy - best)
    most, start = (EASY, easy) if easy > best else (1.0, best)
    return most * max(0.0, (worst - have) / (worst - start)) if worst > start else 0.0


def _judge_partition(cases: list[tuple[str, str]], answers: Any) -> dict[str, Verdict]:
    if type(answers) is not list:
        raise ValueError("the answers are a list")
    pairs = [(text, attempted) for (_, text), attempted in zip(cases, answers, strict=True)]
    faults = [answer for _, (answer, _) in pairs if isinstance(answer, Fault)]
    if faults:
        return dict.fromkeys(PARTITION, str(faults[0]))
    counts, sizes, reasons = [], [], [["", "", ""]]
    joined = False
    for text, (answer, smaller) in pairs:
        graph, kernels, wrong = _read(text, answer)
        nodes, best = operations(graph), reference(graph)
        alone, easy = [[node] for node in nodes], joined_to_the_last(graph)
        joined |= not wrong and len(kernels) < len(nodes)
        gain = [0.0, 0.0]
        if not wrong:
            gain = [
                _gain(len(kernels), len(best), len(easy), len(nodes)),
                _gain(*(traffic(graph, k) for k in (kernels, best, easy, alone))),
            ]
        weight = HARD if len(easy) > len(best) else 1
        counts += [gain[0]] * weight
        sizes += [gain[1]] * weight
        reasons.append(list(_told(text, (answer, smaller))))
    first = [next((reason for reason in column if reason), "") for column in zip(*reasons, strict=True)]
    runs = first[0] or ("" if joined else "every operation has a kernel of its own: nothing is fused")
    missing = "kernels that cannot run save nothing: " + first[0].split(" in\n")[0] if first[0] else ""
    return {
        "kernels that can run": runs or None,
        "few kernels": _share(counts, first[1] or missing),
        "few bytes": _share(sizes, first[2] or missing),
    }


def _told(text: str, attempted: Any) -> tuple[str, ...]:
    """The reasons, told of the smaller graph where that has the same kind of fault."""
    small, given = believed(text, attempted, _wrong_partition)
    if isinstance(given, Fault):
        return _reasons(text, attempted[0])
    both = zip(_reasons(text, attempted[0]), _reasons(small, given), strict=True)
    return tuple(short if whole and short else whole for whole, short in both)


def _share(gains: list[float], reason: str) -> Verdict:
    fraction = sum(gains) / len(gains)
    return None if fraction >= 1 else (fraction, reason)


partition = Task(
    asks.partition,
    PARTITION,
    _graphs,
    _judge_partition,
    shrinks=lambda part, text, answer: _wrong_partition(text, answer),
)
