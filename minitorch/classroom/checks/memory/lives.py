"""Live ranges of buffers in a graph with views, and which operation may write over an operand."""

from __future__ import annotations

from random import Random
from typing import Any

from .... import primitives as P
from ....dtypes import float32
from ....graph import Graph, apply, input_node
from ....graph.text import node_names
from ....ir import Node, Spec
from ...asks import memory as asks
from ...asks.memory import ELEMENTWISE, is_buffer, is_view
from ...asks.plain import described
from ..smaller import indented
from ..task import Task, cases_with

Cases = list[tuple[str, str]]


def text_of(*lines: str) -> str:
    """A graph of some lines, the last of which are its outputs."""
    return "\n".join(["graph(x: f32[2,3], y: f32[2,3]):", *lines[:-1], f"return {lines[-1]}"])


def random_memory(random: Random, size: int, views: bool = True) -> Graph:
    """A graph of elementwise operations, sums, and views of what was made before, if there may be any."""
    whole = Spec((2, 3), float32)
    inputs = [input_node(name, whole) for name in "xy"]
    pool: list[Node] = [*inputs, apply(P.neg, inputs[0])]
    for _ in range(size):
        a = random.choice(pool[-4:])
        choice = random.random()
        if choice < 0.3 and views:
            pool.append(apply(P.reshape, a, shape=(6,) if a.spec == whole else (2, 3)))
        elif choice < 0.5:
            pool.append(apply(random.choice((P.exp, P.neg, P.absolute)), a))
        else:
            b = random.choice([node for node in pool if node.spec == a.spec])
            pool.append(apply(random.choice((P.add, P.mul)), a, b))
    last = apply(P.reduce_sum, pool[-1], dims=(0,))
    return Graph(inputs, [last, random.choice(pool[3:])])


def roots(graph: Graph) -> dict[Node, Node]:
    """Of every value the one whose memory it is seen in: its own, or that of what it is a view of."""
    found: dict[Node, Node] = {}
    for node in (*graph.inputs, *graph.nodes):
        found[node] = found[node.inputs[0]] if is_view(node) else node
    return found


def lives(graph: Graph) -> dict[Node, tuple[int, int]]:
    """The first and the last step of every buffer; that of an output is one after the last step."""
    root = roots(graph)
    found = {node: (step, step) for step, node in enumerate(graph.nodes) if is_buffer(node)}
    for step, node in enumerate(graph.nodes):
        for operand in node.inputs:
            if root[operand] in found:
                found[root[operand]] = found[root[operand]][0], step
    for node in graph.outputs:
        if root[node] in found:
            found[root[node]] = found[root[node]][0], len(graph.nodes)
    return found


# --- live_ranges ------------------------------------------------------------------------------------------------

RANGES = {"values that are read": 5, "outputs": 4, "views": 6}

READ = text_of("%0 = neg(x)", "%1 = exp(%0)", "%2 = abs(%1)", "%3 = add(%2, %0)", "%3")
UNREAD = text_of("%0 = neg(x)", "%1 = exp(y)", "%2 = mul(%0, y)", "%2")
EARLY = text_of("%0 = neg(x)", "%1 = exp(%0)", "%2 = add(%1, y)", "%2, %0")
VIEWED = text_of("%0 = exp(x)", "%1 = reshape(%0, shape=[6])", "%2 = neg(y)", "%3 = abs(%1)", "%4 = exp(%3)", "%4, %2")
TWICE = text_of(
    "%0 = exp(x)",
    "%1 = reshape(%0, shape=[6])",
    "%2 = reshape(%1, shape=[3,2])",
    "%3 = neg(%0)",
    "%4 = abs(%2)",
    "%5 = exp(%4)",
    "%5, %3",
)
RETURNED = text_of("%0 = exp(x)", "%1 = reshape(%0, shape=[6])", "%2 = neg(y)", "%1, %2")


def _about(text: str) -> str:
    return " ".join(text.split())


def _ranges(seed: int) -> Cases:
    random = Random(seed)
    return [
        ("values that are read", READ),
        ("values that are read", UNREAD),
        ("values that are read", str(random_memory(random, 8, views=False))),
        ("outputs", EARLY),
        ("outputs", str(random_memory(random, 6, views=False))),
        ("views", VIEWED),
        ("views", TWICE),
        ("views", RETURNED),
        ("views", str(random_memory(random, 8))),
    ]


def _wrong_ranges(text: str, answer: Any) -> str | None:
    graph = Graph.parse(text)
    listing = f"\n{indented(str(graph))}"
    names, everything, right = node_names(graph), [*graph.inputs, *graph.nodes], lives(graph)
    if type(answer) is not list:
        return f"a dict was expected, from nodes to pairs (first, last), and it is {answer}{listing}"
    found = {}
    for place, pair in answer:
        if not (type(place) is int and 0 <= place < len(everything)):
            return f"a key is no node of the graph{listing}"
        if type(pair) is not tuple or len(pair) != 2 or not all(type(each) is int for each in pair):
            return f"a tuple (first, last) of two steps was expected, and it is {described(pair)}{listing}"
        found[everything[place]] = pair
    for node in found:
        if node not in right:
            kind = "a view: it has no memory of its own" if is_view(node) else "no buffer of the run"
            kind = "an input, whose memory is the caller's" if node in graph.inputs else kind
            return f"{names.get(node, 'a number')} is {kind}{listing}"
    for node, pair in right.items():
        if node not in found:
            return f"{names[node]} is a buffer and has no live range{listing}"
        if found[node] != pair:
            why = _why(graph, node, found[node])
            return f"{names[node]} lives from step {pair[0]} to {pair[1]}, and not {found[node]}{why}{listing}"
    return None


def _why(graph: Graph, node: Node, given: tuple[int, int]) -> str:
    """The misconception behind a live range, where it is known."""
    root = roots(graph)
    users = [step for step, each in enumerate(graph.nodes) if node in each.inputs]
    if given[0] != graph.nodes.index(node):
        return "; it begins with the step that makes it"
    if any(root[each] is node for each in graph.outputs) and given[1] < len(graph.nodes):
        seen = "" if node in graph.outputs else ", seen through a view,"
        return f"; it is an output{seen} and is needed when all steps are done: {len(graph.nodes)}"
    if given[1] == max(users, default=given[0]):
        return "; what reads a view of it reads its memory"
    return "; it ends with the last step that reads it"


live_ranges = Task(asks.live_ranges, RANGES, _ranges, cases_with(RANGES, _wrong_ranges, about=_about))

# --- may_overwrite ----------------------------------------------------------------------------------------------

OVERWRITE = {"who reads it later": 5, "whose memory it is": 5, "element by element": 5}

CHAIN = text_of("%0 = neg(x)", "%1 = exp(%0)", "%2 = add(%1, %0)", "%3 = mul(%2, y)", "%3")
SQUARE = text_of("%0 = neg(x)", "%1 = mul(%0, %0)", "%2 = exp(%1)", "%3 = add(%2, %1)", "%3")
OWNERS = text_of("%0 = neg(x)", "%1 = exp(%0)", "%2 = add(%1, y)", "%3 = mul(%2, 2.0)", "%3, %0")
SHAPES = text_of(
    "%0 = exp(x)",
    "%1 = reduce_sum(%0, dims=[0])",
    "%2 = expand(%1, shape=[2,3])",
    "%3 = neg(y)",
    "%4 = mul(%3, %2)",
    "%4",
)
SEEN = text_of("%0 = exp(x)", "%1 = reshape(%0, shape=[6])", "%2 = neg(%0)", "%3 = abs(%1)", "%3, %2")
KEPT = text_of("%0 = exp(x)", "%1 = reshape(%0, shape=[6])", "%2 = neg(%0)", "%1, %2")
TURNED = "graph(x: f32[3,3]):\n%0 = exp(x)\n%1 = permute(%0, dims=[1,0])\n%2 = add(%0, %1)\n%3 = neg(%2)\nreturn %3"


def overwritable(graph: Graph) -> set[tuple[Node, Node]]:
    """All pairs of an operation and an operand that it may write over."""
    root, living = roots(graph), lives(graph)
    found = set()
    for step, node in enumerate(graph.nodes):
        if node.primitive not in ELEMENTWISE:
            continue
        for operand in dict.fromkeys(node.inputs):
            alone = all(root[each] is not operand for each in node.inputs if each is not operand)
            if operand in living and living[operand][1] == step and operand.spec == node.spec and alone:
                found.add((node, operand))
    return found


def _overwrites(seed: int) -> Cases:
    random = Random(seed)
    return [
        ("who reads it later", CHAIN),
        ("who reads it later", SQUARE),
        ("who reads it later", SEEN),
        ("whose memory it is", OWNERS),
        ("whose memory it is", KEPT),
        ("whose memory it is", str(random_memory(random, 6, views=False))),
        ("element by element", SHAPES),
        ("element by element", TURNED),
        ("who reads it later", str(random_memory(random, 7))),
    ]


def _wrong_overwrites(text: str, answer: Any) -> str | None:
    graph = Graph.parse(text)
    listing = f"\n{indented(str(graph))}"
    names, everything = node_names(graph), [*graph.inputs, *graph.nodes]
    if type(answer) is not list or not all(type(pair) is list and len(pair) == 2 for pair in answer):
        given = answer if type(answer) is str else described(answer)
        return f"a list of pairs (operation, operand) was expected, and it is {given}{listing}"
    if not all(type(place) is int and 0 <= place < len(everything) for pair in answer for place in pair):
        return f"something in a pair is no node of the graph{listing}"
    found = {(everything[one], everything[other]) for one, other in answer}
    right = overwritable(graph)
    for node, operand in found - right:
        over = f"{names.get(node, 'a number')} may not write over {names.get(operand, 'a number')}"
        return f"{over}: {_why_not(graph, node, operand)}{listing}"
    for node, operand in right - found:
        return f"{names[node]} may write over {names[operand]}, which nobody needs afterwards{listing}"
    return None


def _why_not(graph: Graph, node: Node, operand: Node) -> str:
    root, living = roots(graph), lives(graph)
    if operand not in node.inputs:
        return "it does not read it"
    if operand in graph.inputs or operand.primitive is P.constant:
        return "that is memory of the caller's" if operand in graph.inputs else "that is a number of the program"
    if node.primitive not in ELEMENTWISE:
        return "an element of the result needs other elements than the one in its place"
    if is_view(operand):
        return "that is a view, and the memory belongs to another value"
    if operand.spec != node.spec:
        return "their sizes differ"
    if any(root[each] is operand for each in graph.outputs):
        return "it is an output"
    if living[operand][1] > graph.nodes.index(node):
        return "it is read again later, itself or through a view"
    return "it reads the same memory through a view as well, in another order"


may_overwrite = Task(asks.may_overwrite, OVERWRITE, _overwrites, cases_with(OVERWRITE, _wrong_overwrites, about=_about))
