"""Recurrent layers: steps that repeat the same subgraph with the same weights become one operator.

    x ──product──► [T, N, gates * H] ──slices──► x_0     x_1             x_T-1
                                                  ▼       ▼                ▼
                              first state ────► step ─► step ─► ... ──► step ──► last state
                                                  └───────┴───── h ────────┴──► [T, N, H]

Steps that follow one another are a chain if they take the slices of one product, all of them, forwards or backwards.
Two chains over the same x whose hidden states are joined are the two directions of one operator. The pass goes by what
lifting has found before it, and gives layers of float32 alone: other runtimes have them in no other type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import minitorch_operators as O
from minitorch import dtypes
from minitorch import primitives as P
from minitorch.graph import Graph
from minitorch.graph.build import apply, literal, topological_order, with_inputs
from minitorch.ir import INPUT, Node, Spec
from minitorch.passes.dead_code import DEAD_CODE
from minitorch.passes.movement import MOVEMENT
from minitorch.passes.pipeline import Pass

from .matching import Found, before_expand, either, is_number, operands
from .recurrent_steps import Step, steps_of


@dataclass(frozen=True)
class Chain:
    """The steps of a layer in one direction, in the order in which they are taken; its sequence and parameters."""

    steps: Sequence[Step]
    reverse: bool
    x: Node
    weight: Node
    bias: Found

    @property
    def states(self) -> list[Node]:
        """The hidden states in the order of the sequence."""
        found = [step.state[0] for step in self.steps]
        return found[::-1] if self.reverse else found

    @property
    def operands(self) -> tuple[Node, ...]:
        """The parameters of a direction, as the operators have them."""
        first, zero = self.steps[0], literal(0, Spec(self.weight.shape[:1], dtypes.float32))
        return self.weight, first.weight, self.bias or zero, first.bias or zero

    @property
    def starts_at_zero(self) -> bool:
        """Whether the state before the first step is zero."""
        return all(is_number(before_expand(each), 0) for each in self.steps[0].before)


def chains_of(graph: Graph) -> list[Chain]:
    """The layers of a graph, each in one direction."""
    reads = Counter(operand for node in graph.nodes for operand in node.inputs)
    reads.update(graph.outputs)
    places = {step.state[0]: (step, *place) for step, place in _placed(graph)}
    found: dict[Node, list[Step]] = {}  # by the last hidden state
    for h, (step, product, _) in places.items():
        known = places.get(step.before[0])
        goes_on = known is not None and known[1] is product and step.follows(known[0]) and step.before[0] in found
        found[h] = steps = found.pop(step.before[0]) if goes_on else []
        steps.append(step)
    chains = []
    for steps in found.values():
        product, times = places[steps[0].state[0]][1], [places[step.state[0]][2] for step in steps]
        order, given = list(range(product.shape[0])), _product(product)
        cells = [each for step in steps[:-1] for each in step.state[1:]]  # each is read by its step, and by the next
        if times in (order, order[::-1]) and given is not None and all(reads[each] == 2 for each in cells):
            chains.append(Chain(steps, times != order, *given))
    return chains


def _placed(graph: Graph) -> list[tuple[Step, tuple[Node, int]]]:
    """The steps of float32 whose x is a slice of a longer product; the product, and the place of the slice."""
    found = ((step, _place(step.x)) for node in graph.nodes for step in steps_of(node))
    return [(step, place) for step, place in found if place is not None and step.x.dtype is dtypes.float32]


def _place(x: Node) -> tuple[Node, int] | None:
    """The sequence [T, N, features] that a value is a row of, and the row's number."""
    given = operands(x, P.reshape)
    if not given or len(given[0].shape) != 3 or given[0].shape != (1, *x.shape):
        return None
    (row,) = given
    if row.primitive is not P.slice_:
        return row, 0
    (whole,), at = row.inputs, row.params["start"][0]
    fits = row.params["start"][1:] == (0, 0) and whole.shape[1:] == x.shape and set(row.params["step"]) == {1}
    return (whole, at) if fits else None


def _product(node: Node) -> tuple[Node, Node, Found] | None:
    """A sequence, its weight and its bias, of which a node is the product."""
    bias: Found = None
    for one, other in either(node, P.add):
        small = before_expand(other)
        if small is not other and small.shape == node.shape[-1:]:
            node, bias = one, small
            break
    if node.primitive is O.matmul and len(node.inputs[0].shape) == 3:
        x, matrix = node.inputs
        turned = operands(matrix, P.permute)
        return x, turned[0] if turned else apply(P.permute, matrix, dims=(1, 0)), bias
    rows = operands(node, P.reshape)
    if rows and rows[0].primitive is O.gemm and rows[0].params["transposed"]:
        x, weight, *more = rows[0].inputs
        x = apply(P.reshape, x, shape=(*node.shape[:-1], x.shape[-1]), source=x.source)
        return (x, weight, more[0] if more else bias) if not more or bias is None else None
    return None


# From chains to operators ---------------------------------------------------------------------------------


def recurrences(graph: Graph) -> Graph:
    """A graph with operators in place of unrolled layers; a recording has longer ones as loops.

    Example:
        >>> import minitorch as mt
        >>> from minitorch.passes.lifting import LIFTING
        >>> with mt.no_grad():
        ...     graph = mt.jit(mt.nn.RNN(3, 4)).graph(mt.ones(3, 2, 3))
        >>> recurrences(LIFTING(graph)).count()["rnn_tanh"]
        2
    """
    chains = chains_of(graph)
    if not chains:
        return graph
    whole = {tuple(chain.states): chain for chain in chains}
    stacks = {node: whole[rows] for node in graph.nodes if (rows := _rows(node)) in whole}
    places = {node: place for place, node in enumerate((*graph.inputs, *graph.nodes))}
    become: dict[Node, Node] = {}
    for node in graph.nodes:  # two directions at a time
        pair = [stacks[each] for each in operands(node, P.concatenate) if each in stacks]
        if len(pair) == len(node.inputs) == 2 and node.params["dim"] == 2 and _are_alike(pair, places):
            joined = _replace(become, pair, stacks)
            turned = apply(P.permute, joined, dims=(0, 2, 1, 3), source=node.source)
            become[node] = apply(P.reshape, turned, shape=node.shape, source=node.source)
            chains = [chain for chain in chains if chain not in pair]
    for chain in chains:
        _replace(become, [chain], stacks)
    for node in graph.nodes:
        if node.primitive is P.concatenate and node.params["dim"] == 0 and node not in become:
            _join_ends(become, node)
    return DEAD_CODE(MOVEMENT(_with(graph, become)))


def _rows(node: Node) -> tuple[Node, ...]:
    """The values that a node has one after another, as rows."""
    parts = node.inputs if node.primitive is P.concatenate and node.params["dim"] == 0 else (node,)
    rows = [operands(each, P.reshape) for each in parts]
    is_rows = all(row and each.shape == (1, *row[0].shape) for row, each in zip(rows, parts, strict=True))
    return tuple([row[0] for row in rows]) if is_rows else ()


def _are_alike(pair: list[Chain], places: dict[Node, int]) -> bool:
    """Whether two chains are the directions of one layer, the second of which can be computed with the first."""
    one, other = pair
    begin = min(places[step.state[0]] for step in one.steps)
    given = (*other.operands, *other.steps[0].before)
    needed = [part for each in given for part in ((each,) if each in places else each.inputs)]
    return (
        one.x is other.x
        and (one.reverse, other.reverse) == (False, True)
        and one.steps[0].kind is other.steps[0].kind
        and one.steps[0].weight.shape == other.steps[0].weight.shape
        and one.starts_at_zero == other.starts_at_zero
        and all(places[each] < begin for each in needed)
    )


def _replace(become: dict[Node, Node], chains: list[Chain], stacks: dict[Node, Chain]) -> Node:
    """Enter what takes the place of the states of a layer's directions; returns all of its hidden states."""
    first = chains[0].steps[0]
    given: list[Node] = [each for chain in chains for each in chain.operands]
    if not all(chain.starts_at_zero for chain in chains):
        given += [_joined(each) for each in zip(*[chain.steps[0].before for chain in chains], strict=True)]
    reverse, source = tuple([chain.reverse for chain in chains]), first.state[0].source

    def result(gives: str) -> Node:
        return apply(first.kind, chains[0].x, *given, source=source, reverse=reverse, gives=gives)

    def part(whole: Node, start: tuple[int, ...], shape: tuple[int, ...]) -> Node:
        """The only element at a place, as a value of this shape."""
        begin = (*start, *(0,) * (len(whole.shape) - len(start)))
        end = (*[at + 1 for at in start], *whole.shape[len(start) :])
        taken = apply(P.slice_, whole, start=begin, stop=end, step=(1,) * len(begin), source=source)
        return apply(P.reshape, taken, shape=shape, source=source)

    everything = result("all")
    ends = [result(name) for name in ("hidden", "cell")[: len(first.state)]]
    for direction, chain in enumerate(chains):
        for at, h in enumerate(chain.states):
            become[h] = part(everything, (at, direction), h.shape)
        for end, state in zip(ends, chain.steps[-1].state, strict=True):
            become[state] = part(end, (direction,), state.shape)
        for stack in [node for node, each in stacks.items() if each is chain]:
            one = apply(P.slice_, everything, start=(0, direction, 0, 0), step=(1,) * 4, source=source,
                        stop=(everything.shape[0], direction + 1, *everything.shape[2:]))  # fmt: skip
            become[stack] = apply(P.reshape, one, shape=stack.shape, source=source)
    return everything


def _join_ends(become: dict[Node, Node], node: Node) -> None:
    """Enter the last states of both directions as they are, where a node puts them one after the other."""
    rows = _rows(node)
    taken = [operands(become[row], P.reshape) for row in rows if row in become]
    ends = [operands(each[0], P.slice_) for each in taken if each]
    if rows and len(ends) == len(rows) and all(ends):
        wholes = [each[0] for each in ends]
        starts = [each[0].params["start"][0] for each in taken]
        kept = [whole for whole, start in zip(wholes, starts, strict=True) if start == 0]
        if [whole for whole in kept for _ in range(whole.shape[0])] == wholes:
            become[node] = kept[0] if len(kept) == 1 else apply(P.concatenate, *kept, dim=0, source=node.source)


def _joined(parts: Sequence[Node]) -> Node:
    """States as the rows of one value; those that are rows of a value are a slice of it."""
    rows = [operands(each, P.reshape) for each in parts]
    taken = [row[0] for row in rows if row and row[0].primitive is P.slice_]
    starts = [each.params["start"] for each in taken]
    if len(taken) == len(parts) and len({each.inputs for each in taken}) == 1:
        (whole,), (first, *rest) = taken[0].inputs, starts[0]
        follow = starts == [(first + at, *rest) for at in range(len(parts))] and not any(rest)
        if follow and all(each.shape == (1, *whole.shape[1:]) for each in taken) and whole.shape[1:] == parts[0].shape:
            stop = (first + len(parts), *whole.shape[1:])
            return apply(P.slice_, whole, start=starts[0], stop=stop, step=taken[0].params["step"], source=whole.source)
    made = [apply(P.reshape, each, shape=(1, *each.shape), source=each.source) for each in parts]
    return made[0] if len(made) == 1 else apply(P.concatenate, *made, dim=0, source=parts[0].source)


def _with(graph: Graph, become: dict[Node, Node]) -> Graph:
    """A graph with expressions of its nodes in place of some of them."""
    mapped = {node: node for node in graph.inputs}
    for node in graph.nodes:
        target = become.get(node, node)
        for each in topological_order((target,), mapped):
            mapped[each] = with_inputs(each, tuple([mapped[operand] for operand in each.inputs]))
        mapped[node] = mapped[target]
    nodes = dict.fromkeys(each for each in mapped.values() if each.primitive is not INPUT)
    return graph.with_nodes(nodes, [mapped[node] for node in graph.outputs])


RECURRENCES = Pass("recurrences", recurrences, "operators such as lstm in place of unrolled layers")
