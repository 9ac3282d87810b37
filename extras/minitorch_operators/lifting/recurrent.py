"""Recurrent layers: a loop over time whose body is the step of an LSTM, GRU or RNN becomes one operator.

    x ──product──► [T, N, gates * H] ──slices──► scan: state ──► step ──► state ──► last state
                                                                  └── h ──► [T, N, H]

Two such loops over the same x whose hidden states are joined are the two directions of one operator. The pass goes by
what lifting has found before it, also in the body of the loop, and gives layers of float32 alone: other runtimes have
them in no other type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import minitorch_operators as O
from minitorch import dtypes
from minitorch import primitives as P
from minitorch.graph import Graph
from minitorch.graph.build import apply, literal, topological_order, with_inputs
from minitorch.graph.control_flow import scan
from minitorch.graph.values import siblings
from minitorch.ir import INPUT, Node, Primitive, Shape, Spec
from minitorch.passes.dead_code import DEAD_CODE
from minitorch.passes.movement import MOVEMENT
from minitorch.passes.pipeline import Pass
from minitorch_operators.recurrent import RESULTS

from .matching import Found, before_expand, either, is_number, last, operands
from .recurrent_steps import steps_of


@dataclass(frozen=True, eq=False)
class Loop:
    """A layer in one direction: its operator, the nodes of its results, its sequence, parameters and first states.

    Attributes:
        states: the hidden states at all times; None if nobody reads them.
        ends: the nodes of last states, by their places.
        operands: the parameters, as the operators have them.
    """

    kind: Primitive
    reverse: bool
    states: Found
    ends: dict[int, Node]
    x: Node
    operands: tuple[Node, ...]
    before: tuple[Node, ...]

    @property
    def starts_at_zero(self) -> bool:
        """Whether the state before the first step is zero."""
        return all(is_number(before_expand(each), 0) for each in self.before)


def _loop(group: Sequence[Node]) -> Loop | None:
    """The layer that the results of a loop are those of."""
    node, params = group[0], group[0].params
    if node.primitive is not scan or params["sliced"] != 1:
        return None
    body, carried = params["body"], params["carried"]
    outer = dict(zip(body.inputs, node.inputs, strict=True))
    states, before, x = body.outputs[:carried], tuple(body.inputs[:carried]), body.inputs[carried]
    given = _product(node.inputs[carried])
    if given is None or x.dtype is not dtypes.float32 or any(each is not states[0] for each in body.outputs[carried:]):
        return None
    sequence, weight, bias = given
    zero = literal(0, Spec(weight.shape[:1], dtypes.float32))
    for step in steps_of(states[0]):
        matrix = outer.get(step.weight)
        wide = None if step.bias is None else outer.get(step.bias)
        small = wide and last(wide, 1)
        fits = step.x is x and step.before == before and step.state == tuple(states)
        if matrix is not None and fits and (small is not None or step.bias is None):
            parameters = weight, _turned(matrix), bias or zero, small or zero
            ends = {each.params["result"]: each for each in group}
            everything = next((ends.pop(place) for place in list(ends) if place >= carried), None)
            return Loop(step.kind, params["reverse"], everything, ends, sequence, parameters, node.inputs[:carried])
    return None


def _turned(matrix: Node) -> Node:
    """A matrix with its dimensions exchanged."""
    turned = operands(matrix, P.permute)
    return turned[0] if turned else apply(P.permute, matrix, dims=(1, 0))


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
        return x, _turned(matrix), bias
    rows = operands(node, P.reshape)
    if rows and rows[0].primitive is O.gemm and rows[0].params["transposed"]:
        x, weight, *more = rows[0].inputs
        x = apply(P.reshape, x, shape=(*node.shape[:-1], x.shape[-1]), source=x.source)
        return (x, weight, more[0] if more else bias) if not more or bias is None else None
    return None


# From loops to operators ----------------------------------------------------------------------------------


def recurrences(graph: Graph) -> Graph:
    """A graph with operators in place of loops over the steps of recurrent layers.

    Example:
        >>> import minitorch as mt
        >>> from minitorch.passes.lifting import LIFTING
        >>> with mt.no_grad():
        ...     graph = mt.jit(mt.nn.RNN(3, 4)).graph(mt.ones(5, 2, 3))
        >>> recurrences(LIFTING(graph)).count()["rnn_tanh"]
        2
    """
    loops = [found for group in siblings(graph.nodes).values() if (found := _loop(group)) is not None]
    if not loops:
        return graph
    by_states = {loop.states: loop for loop in loops if loop.states is not None}
    places = {node: place for place, node in enumerate((*graph.inputs, *graph.nodes))}
    become: dict[Node, Node] = {}
    for node in graph.nodes:  # two directions at a time
        pair = [by_states[each] for each in operands(node, P.concatenate) if each in by_states]
        if len(pair) == len(node.inputs) == 2 and node.params["dim"] == 2 and _are_alike(pair, places):
            joined = _replace(become, pair)
            turned = apply(P.permute, joined, dims=(0, 2, 1, 3), source=node.source)
            become[node] = apply(P.reshape, turned, shape=node.shape, source=node.source)
            loops = [loop for loop in loops if loop not in pair]
    for loop in loops:
        _replace(become, [loop])
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


def _are_alike(pair: list[Loop], places: dict[Node, int]) -> bool:
    """Whether two loops are the directions of one layer, the second of which can be computed with the first."""
    one, other = pair
    begin = min(places[each] for each in (one.states, *one.ends.values()) if each is not None)
    given = (*other.operands, *other.before)
    needed = [part for each in given for part in ((each,) if each in places else each.inputs)]
    return (
        one.x is other.x
        and (one.reverse, other.reverse) == (False, True)
        and one.kind is other.kind
        and one.operands[1].shape == other.operands[1].shape
        and one.starts_at_zero == other.starts_at_zero
        and all(places[each] < begin for each in needed)
    )


def _replace(become: dict[Node, Node], loops: list[Loop]) -> Node:
    """Enter what takes the place of the results of a layer's directions; returns all of its hidden states."""
    first = loops[0]
    given: list[Node] = [each for loop in loops for each in loop.operands]
    if not all(loop.starts_at_zero for loop in loops):
        given += [_joined(each) for each in zip(*[loop.before for loop in loops], strict=True)]
    reverse, source = tuple([loop.reverse for loop in loops]), (first.states or first.ends[0]).source

    def result(gives: str) -> Node:
        return apply(first.kind, first.x, *given, source=source, reverse=reverse, gives=gives)

    def part(whole: Node, axis: int, at: int, shape: Shape) -> Node:
        """The only slice at a place of an axis, as a value of this shape."""
        start = [0] * len(whole.shape)
        stop = list(whole.shape)
        start[axis], stop[axis] = at, at + 1
        step = (1,) * len(start)
        taken = apply(P.slice_, whole, start=tuple(start), stop=tuple(stop), step=step, source=source)
        return apply(P.reshape, taken, shape=shape, source=source)

    everything = result("all")
    ends = [result(name) for name in RESULTS[1 : 1 + len(first.before)]]
    for direction, loop in enumerate(loops):
        if loop.states is not None:
            become[loop.states] = part(everything, 1, direction, loop.states.shape)
        for place, node in loop.ends.items():
            become[node] = part(ends[place], 0, direction, node.shape)
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


RECURRENCES = Pass("recurrences", recurrences, "operators such as lstm in place of loops over their steps")
